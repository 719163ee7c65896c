"""Converts the tool calls in a delta or message to call fragments. The module supports every shape that gateways use.

Absent, null, and blank values are equivalent, and a number is accepted as an id. The assembler determines which call a
fragment belongs to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.chat.metadata import CALL_FIELDS, CUSTOM_FIELDS, FUNCTION_FIELDS
from streamweld._pure.dialect.unread_arguments import may_hold_arguments
from streamweld._pure.json.kinds import integer, is_array, is_object
from streamweld._pure.json.members import as_object, leftovers
from streamweld._pure.json.scanner import BigInteger
from streamweld._pure.model.delta import Fragment
from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streamweld._pure.dialect.anomalies import Anomalies
    from streamweld._pure.json.scanner import Path, Payload

ABSENT_IDS = frozenset(DIALECTS["chat"]["absent_ids"])
CALL_TYPES = frozenset(DIALECTS["chat"]["call_types"])

_OTHER_CALLS = ("toolCalls", "tool_call")
_CALLS = ("tool_calls", *_OTHER_CALLS)
# Members in which gateways send calls on the choice or the chunk instead of in the delta.
NO_CALLS: frozenset[str] = frozenset()
OUTER_CALLS = frozenset((*_CALLS, "function_call"))
TOOL_USE_LISTS = ("content_list", "content", "tool_use", "tool_uses")
_TOOL_USE_CALLS = ("tool_use", "tool_uses")  # lists in which every object is a call
_TOOL_USE_TEXTS = ("input", "partial_json", "arguments")  # members that may contain the arguments, in order
# Names that some gateways use in place of `arguments`.
_OTHER_ARGUMENTS: tuple[str, ...] = tuple(DIALECTS["chat"]["other_arguments"])
_TOOL_USE_IDS = ("tool_use_id", "toolUseId", "id")
_TOOL_USE_MEMBERS = (*_TOOL_USE_IDS, "name", *_TOOL_USE_TEXTS)
_INDEX_HEAD = 64  # an unusable index is reported with at most this many characters
_INDEX_CAP = 2**32 - 1  # maximum index if the limit is disabled


def _has_custom(entry: dict[str, Any]) -> bool:
    """Return True if the member `custom` contains the call. Some gateways add an empty `custom` to function calls
    (https://github.com/earendil-works/pi/issues/7097).
    """
    custom = entry.get("custom")
    return is_object(custom) and (any(custom.values()) or not is_object(entry.get("function")))


def is_typed_tool_use(part: Mapping[str, Any]) -> bool:
    """Return whether a list element has the type `tool_use`, and at least one of an id, a name, and arguments."""
    if part.get("type") != "tool_use":
        return False
    call = part["tool_use"] if is_object(part.get("tool_use")) else part
    return any(call.get(key) is not None for key in _TOOL_USE_MEMBERS)


def is_tool_use(delta: Mapping[str, Any]) -> bool:
    """Return whether the delta itself is a call fragment, because its type is `tool_use` or it contains a `tool_use`
    object.
    """
    return delta.get("type") == "tool_use" or is_object(delta.get("tool_use"))


def continues_tool_use(delta: Mapping[str, Any]) -> bool:
    """Return whether the delta can continue the preceding `tool_use` call, because it has argument text but no type."""
    return "type" not in delta and any(isinstance(delta.get(key), str) for key in _TOOL_USE_TEXTS)


class CallReader:
    """Reads the tool-call members of the choices in one stream."""

    __slots__ = ("_max_index",)

    def __init__(self, max_index: int | None) -> None:
        self._max_index = _INDEX_CAP if max_index is None else max_index

    def tool_calls(self, payload: Payload, value: object, path: Path, notes: Anomalies) -> list[Fragment]:
        """Return the fragments in the value of `tool_calls`.

        The value is a list of calls, one call, or an object whose keys are numbers. Nested lists are accepted, and null
        elements are ignored.
        """
        fragments: list[Fragment] = []
        if is_object(value):
            notes.mark_misread("no_list")
            numbered = value.items() if is_numbered(value) else ()
            fragments = [self._entry(payload, entry, (*path, key), notes) for key, entry in numbered]
            fragments = fragments or [self._entry(payload, value, path, notes)]
        elif is_array(value):
            for index, entry in enumerate(value):
                inner, here = [entry], path
                if is_array(entry) and entry:
                    notes.mark_misread("no_list")
                    inner, here = entry, (*path, index)
                for position, one in enumerate(inner, 0 if inner is entry else index):
                    if is_object(one):
                        fragments.append(self._entry(payload, one, (*here, position), notes))
                    elif one is not None:
                        notes.shape((*here, position))
        else:
            notes.shape(path)
        for position, fragment in enumerate(fragments):
            fragment.position = position
            fragment.array_len = len(fragments)
        return fragments

    def function_call(self, payload: Payload, value: object, path: Path, notes: Anomalies) -> list[Fragment]:
        """Return the fragment in the legacy `function_call` member. A legacy call has no index.

        The list is empty if the member is not an object.
        """
        if not is_object(value):
            notes.shape(path)
            return []
        arguments, object_arguments = self._arguments(payload, value, path, "arguments")
        return [
            Fragment(
                id=self._id(payload, value, path, notes),
                name=self._name(value, path, notes),
                arguments=arguments,
                object_arguments=object_arguments,
                legacy=True,
                misses_arguments=arguments is None
                and object_arguments is None
                and may_hold_arguments(value, FUNCTION_FIELDS),
                metadata=as_object(leftovers(payload, path, value, FUNCTION_FIELDS)),
            )
        ]

    def plain_calls(
        self, payload: Payload, holder: Mapping[str, Any], path: Path, names: Iterable[str], notes: Anomalies
    ) -> list[Fragment]:
        """Return the fragments in the members of `holder` that are listed in `names`, in any of their forms."""
        found: list[Fragment] = []
        for name in names:
            read = self.function_call if name == "function_call" else self.tool_calls
            found += read(payload, holder[name], (*path, name), notes)
        return found

    def tool_uses(
        self, payload: Payload, holder: Mapping[str, Any], path: Path, notes: Anomalies, *, is_call: bool
    ) -> list[Fragment]:
        """Return the `tool_use` calls (Snowflake) in a delta or message. These calls have no index.

        `is_call`: whether `holder` itself is a `tool_use` call. If `is_call` is False, or if `holder` has no members of
        a call, return the calls in its lists.
        """
        own = self._tool_use(payload, holder, path, notes) if is_call else None
        if own is not None:
            return [own]
        found: list[Fragment] = []
        for key in TOOL_USE_LISTS:
            entries = holder.get(key)
            for index, entry in enumerate(entries if is_array(entries) else ()):
                is_named = key in _TOOL_USE_CALLS or (is_call and key == "content_list")
                is_listed = is_object(entry) and (is_named or is_typed_tool_use(entry))
                one = self._tool_use(payload, entry, (*path, key, index), notes) if is_listed else None
                if one is not None:
                    found.append(one)
        return found

    def _tool_use(self, payload: Payload, holder: Mapping[str, Any], path: Path, notes: Anomalies) -> Fragment | None:
        """Return the fragment in a `tool_use` object, or None if the object has no id, name, or arguments."""
        call, here = holder, path
        if is_object(holder.get("tool_use")):
            call, here = holder["tool_use"], (*path, "tool_use")
        ids = [self._id(payload, call, here, notes, key) for key in _TOOL_USE_IDS]
        identity = next((one for one in ids if one is not None), None)
        name = self._name(call, here, notes)
        member = next((key for key in _TOOL_USE_TEXTS if call.get(key) is not None), "input")
        arguments, object_arguments = self._arguments(payload, call, here, member)
        if identity is None and name is None and arguments is None and object_arguments is None:
            return None
        notes.mark_misread("no_list")
        return Fragment(id=identity, name=name, arguments=arguments, object_arguments=object_arguments)

    def _entry(self, payload: Payload, entry: dict[str, Any], path: Path, notes: Anomalies) -> Fragment:
        index, index_raw = None, None
        if "index" in entry:
            index, index_raw = self._index(payload, entry["index"], path)
        # Without a `function` or `custom` object, the call object itself contains the name and the arguments (for a
        # free-form tool, the input).
        custom = _has_custom(entry)
        inner_key = "custom" if custom else "function"
        wrapped = entry.get(inner_key)
        inner, inner_path = entry, path
        if is_object(wrapped):
            inner, inner_path = wrapped, (*path, inner_key)
        elif wrapped is not None:
            notes.shape((*path, inner_key))
        extra = leftovers(payload, path, entry, CALL_FIELDS)
        kind = entry.get("type")
        arguments_key = "input" if custom else "arguments"
        name = self._name(inner, inner_path, notes)
        arguments, object_arguments = self._arguments(payload, inner, inner_path, arguments_key)
        if inner is not entry:
            if name is None and "name" in entry:
                name = self._name(entry, path, notes)
            if arguments is None and object_arguments is None and arguments_key in entry and not custom:
                arguments, object_arguments = self._arguments(payload, entry, path, arguments_key)
        free_form = custom or kind == "custom"
        if arguments is None and object_arguments is None and entry.get("input") is not None:
            # In a free-form call, the fragments after the first may have no type.
            piece = kind is None and name is None and wrapped is None and isinstance(entry["input"], str)
            if free_form or piece:
                arguments, object_arguments = self._arguments(payload, entry, path, "input")
                extra.pop("input", None)
                free_form = True
        if inner is not entry:
            extra.update(leftovers(payload, inner_path, inner, CUSTOM_FIELDS if custom else FUNCTION_FIELDS))
        if arguments is None and object_arguments is None and not free_form:
            for holder, here in ((inner, inner_path), (entry, path)):
                member = _arguments_member(holder, is_wrapped=holder is not entry)
                if member is not None:
                    arguments, object_arguments = self._arguments(payload, holder, here, member)
                    extra.pop(member, None)
                    notes.mark_misread("other_member")
                    break
        if kind and kind not in CALL_TYPES if isinstance(kind, str) else kind is not None:
            extra["type"] = payload.raw(*path, "type") or "null"
        identity = self._id(payload, entry, path, notes)
        if identity is None and inner is not entry and "id" in inner:
            identity = self._id(payload, inner, inner_path, notes)
        return Fragment(
            index=index,
            index_raw=index_raw,
            has_index_key="index" in entry,
            id=identity,
            name=name,
            arguments=arguments,
            object_arguments=object_arguments,
            custom=free_form,
            metadata=as_object(extra) if extra else None,
            misses_arguments=arguments is None
            and object_arguments is None
            and (
                may_hold_arguments(entry, CALL_FIELDS)
                or (inner is not entry and may_hold_arguments(inner, CUSTOM_FIELDS if custom else FUNCTION_FIELDS))
            ),
        )

    def _index(self, payload: Payload, value: object, path: Path) -> tuple[int | None, str | None]:
        """Return the index of a call, or the beginning of its JSON text if the index is invalid.

        Both values are None if the index is absent or null.
        """
        if value is None:
            return None, None
        number = integer(value)
        if number is not None and 0 <= number <= self._max_index:
            return number, None
        return None, (payload.raw(*path, "index") or "")[:_INDEX_HEAD]

    def _id(
        self, payload: Payload, holder: Mapping[str, Any], path: Path, notes: Anomalies, key: str = "id"
    ) -> str | None:
        """Return the id as text, or None if it is absent, blank, or a placeholder.

        A numeric id is returned with the digits that the payload contains.
        """
        identity = holder.get(key)
        if identity is None:
            return None
        if isinstance(identity, str):
            trimmed = identity.strip()
            if trimmed and trimmed in ABSENT_IDS:
                notes.mark_misread("id_word")  # clients use the placeholder as the id
            return None if not trimmed or trimmed in ABSENT_IDS else notes.clean(identity)
        if isinstance(identity, int | float | BigInteger) and not isinstance(identity, bool):
            notes.mark_misread("id_number")
            return payload.raw(*path, key)
        notes.shape((*path, key))
        return None

    def _name(self, holder: Mapping[str, Any], path: Path, notes: Anomalies) -> str | None:
        name = holder.get("name")
        if name is None:
            return None
        if isinstance(name, str):
            return notes.clean(name) if name.strip() else None
        notes.shape((*path, "name"))
        return None

    def _arguments(
        self, payload: Payload, holder: Mapping[str, Any], path: Path, key: str
    ) -> tuple[str | None, str | None]:
        """Return the text of string arguments, or the JSON of an argument object.

        The JSON of any other value is returned as text, and the assembler classifies it later.
        """
        value = holder.get(key)
        if value is None or isinstance(value, str):
            return value, None
        raw = payload.raw(*path, key)
        return (None, raw) if is_object(value) else (raw, None)


def calls_member(holder: Mapping[str, Any]) -> str:
    """Return `tool_calls`, or the name of the member that the gateway sends in its place."""
    if holder.get("tool_calls") is None:
        for name in _OTHER_CALLS:
            if is_array(holder.get(name)) or is_object(holder.get(name)):
                return name
    return "tool_calls"


def call_members(holder: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the members in which a choice or a chunk contains calls outside its deltas."""
    sent = {name: holder.get(name) for name in OUTER_CALLS}
    return frozenset([name for name, calls in sent.items() if (is_array(calls) or is_object(calls)) and calls])


def ordered(names: frozenset[str]) -> list[str]:
    """Sort the names of members with calls into the order in which the members are read."""
    return [name for name in (*_CALLS, "function_call") if name in names]


def read_calls(holder: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the members of a delta or message from which calls are read."""
    return frozenset((calls_member(holder), "function_call"))


def main_calls(names: frozenset[str]) -> frozenset[str]:
    """Return the names of the members from which calls are used: the first list, and `function_call`.

    `names`: the names of the members that contain calls.
    """
    return frozenset([name for name in _CALLS if name in names][:1]) | (names & {"function_call"})


def is_numbered(value: Mapping[str, Any]) -> bool:
    """Return whether all keys of the object are numbers. PHP writes some arrays in this form."""
    return bool(value) and all(key.isascii() and key.isdigit() and is_object(value[key]) for key in value)


def _arguments_member(holder: Mapping[str, Any], *, is_wrapped: bool) -> str | None:
    """Return the name of the member that a gateway sends in place of `arguments`. The value must be an object or a
    string.

    `is_wrapped`: whether `holder` is a `function` or `custom` object. In any other object, a string in `input` is not
    accepted, because the string belongs to a free-form tool.
    """
    for member in _OTHER_ARGUMENTS:
        value = holder.get(member)
        may_be_text = is_wrapped or member != "input"
        if is_object(value) or (may_be_text and isinstance(value, str)):
            return member
    return None


def is_repeated(legacy: Fragment, entries: list[Fragment]) -> bool:
    """Return whether a call in `tool_calls` of the same delta or message has the same name and arguments as
    `legacy`.
    """
    sent = call_content(legacy)
    return any(call_content(entry) == sent for entry in entries)


def call_content(fragment: Fragment) -> tuple[str, str, str]:
    """Return the name and the arguments of a fragment for comparison with other fragments."""
    return fragment.name or "", fragment.arguments or "", fragment.object_arguments or ""
