"""Checks Chat chunks against the requirements of official clients, so that repair can rewrite the chunks that these
clients would misread.

openai-python's `stream()` skips chunks whose `object` is not `chat.completion.chunk`. In all other chunks,
openai-python requires a `choices` array in which each choice has a `delta` object. openai-python merges lists in a
delta by `index`. openai-python stores tool calls in a list, so a new tool call must have the next index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld._pure.dialect.chat.calls import call_members
from streamweld._pure.dialect.chat.metadata import DELTA_FIELDS
from streamweld._pure.json.kinds import is_array, is_object
from streamweld._pure.json.scanner import BigInteger
from streamweld._pure.model.list_path import MAX_LISTS, ListPath

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.dialect.anomalies import Anomalies
    from streamweld._pure.model.output import Output

# Deltas with these roles are not part of the answer.
OTHER_ROLES: Final = ("tool", "function", "user", "system", "developer")
RUNS_CALLS: Final = frozenset({"natural", "stop", "tool_calls"})  # finish reasons after which clients run the calls
_CHUNK: Final = "chat.completion.chunk"
_LEGACY: Final = "text_completion"  # clients of legacy Completions use the token counts of such a chunk
_COUNTS: Final = ("prompt_tokens", "completion_tokens", "total_tokens")


def check_chunk(chunk: Mapping[str, Any], notes: Anomalies) -> None:
    """Mark a chunk as misread if clients would skip its content or reject one of its members, if it has no choices, or
    if one of its choices has no delta.
    """
    choices, outer = chunk.get("choices"), call_members(chunk)
    kind = chunk.get("object", _CHUNK)
    if kind != _LEGACY and has_wrong_kind(chunk):
        notes.mark_misread("wrong_kind")
    if not is_array(choices) and (kind == _CHUNK or is_object(choices) or outer):
        notes.mark_misread("no_choices")
    elif kind != _LEGACY and is_array(choices) and not all(map(_has_delta, choices)):
        notes.mark_misread("no_delta")
    elif kind != _CHUNK and (
        outer or (is_array(choices) and any(map(_has_content, choices))) or (chunk.get("usage") and kind != _LEGACY)
    ):
        notes.mark_misread("other_object")


def has_wrong_kind(chunk: Mapping[str, Any]) -> bool:
    """Return whether the schemas of @ai-sdk/openai and @ai-sdk/openai-compatible reject a member of the chunk, or
    openai-python cannot read it.
    """
    created: object = chunk.get("created")
    choices: object = chunk.get("choices")
    return (
        not (created is None or _is_number(created))
        or not all(isinstance(chunk.get(key), str | None) for key in ("id", "model"))
        or not all(map(_is_assistant, choices if is_array(choices) else ()))
        or not _is_usage(chunk.get("usage"))
    )


def _is_assistant(choice: object) -> bool:
    """Return whether the delta of a choice has no role or a known one."""
    delta: object = choice.get("delta") if is_object(choice) else None
    role: object = delta.get("role") if is_object(delta) else None
    return role is None or (isinstance(role, str) and (role == "assistant" or role in OTHER_ROLES))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | BigInteger) and not isinstance(value, bool)


def _is_usage(usage: object) -> bool:
    """Return whether the value is null or an object whose counts are numbers."""
    if not is_object(usage):
        return usage is None
    return all(usage.get(key) is None or _is_number(usage[key]) for key in _COUNTS)


def has_counts(usage: object) -> bool:
    """Return whether clients read token counts from a usage object."""
    return is_object(usage) and _is_usage(usage) and any(usage.get(key) for key in _COUNTS)


def lacks_object(chunk: Mapping[str, Any]) -> bool:
    """Return whether a chunk has content or usage but no `object`.

    Repair adds `object` without rewriting the rest of the chunk.
    """
    choices = chunk.get("choices")
    if (
        not is_array(choices)
        or "object" in chunk
        or any(is_object(choice) and _is_legacy(choice) for choice in choices)
    ):
        return False
    return bool(chunk.get("usage")) or any(map(_has_content, choices))


def _is_index(value: object) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _has_delta(choice: object) -> bool:
    return is_object(choice) and (is_object(choice.get("delta")) or _is_legacy(choice))


def _is_legacy(choice: Mapping[str, Any]) -> bool:
    return "text" in choice and choice.get("delta") is None and choice.get("message") is None


def _has_content(choice: object) -> bool:
    """Return whether a choice has a delta, a message, or a finish reason that is not empty.

    Return False for a legacy choice.
    """
    if not is_object(choice) or _is_legacy(choice):
        return False
    is_read = bool(call_members(choice)) or (is_content(choice.get("content")) and not is_object(choice.get("message")))
    return is_read or any(choice.get(member) for member in ("delta", "message", "finish_reason", "finishReason"))


def is_content(value: object) -> bool:
    """Return whether the value is non-empty text, or a non-empty object or list that may contain text."""
    return bool(value) and (isinstance(value, str) or is_object(value) or is_array(value))


def _has_name(entry: Mapping[str, Any]) -> bool:
    """Return whether a tool call contains the name of the tool."""
    holders: tuple[object, ...] = (entry.get("function"), entry.get("custom"), entry)
    return any(is_object(holder) and holder.get("name") for holder in holders)


class Readers:
    """Counters and names that model the lists that clients store for one choice."""

    __slots__ = ("_bare", "_begun", "_blank", "_calls", "_lists")

    def __init__(self) -> None:
        self._begun = False  # whether a delta of the choice has been received
        self._calls = 0  # length of the client's list of tool calls
        self._bare: set[int] = set()  # indexes of the calls that have no arguments string yet
        self._blank: set[int] = set()  # indexes of the calls whose arguments are still empty
        self._lists: set[str] = set()  # paths of lists of objects in deltas

    def begin(self, out: Output, choice: int, delta: Mapping[str, Any], *, is_typed: bool) -> None:
        """Record the first delta of a choice, and whether it lacks a role. openai-node raises if no delta has a role.

        `is_typed`: whether the `object` of the chunk is correct or absent. Repair does not add a role to other chunks.
        """
        if not self._begun:
            self._begun = True
            out.begun.append(choice)
            if is_typed and not delta.get("role"):
                out.roleless.append(choice)

    def end(self, out: Output, *, runs: bool) -> None:
        """Check whether a call has no arguments, at the end of the choice or the stream.

        `runs`: whether clients run the calls. If clients run them, an empty arguments string is also an error.
        """
        if self._bare or (runs and self._blank):
            out.mark_misread("no_arguments")  # clients store null or an empty string, which is not JSON
        self._bare.clear()
        self._blank.clear()

    def has_calls(self, count: int) -> bool:
        return self._calls >= count

    def delta(self, delta: Mapping[str, Any], notes: Anomalies, *, is_typed: bool) -> None:
        """Check the members of a delta.

        `is_typed`: the same as in `begin`. If `is_typed` is False, repair does not add the type of a call either.
        """
        if not isinstance(delta.get("content", ""), str | None):
            notes.mark_misread("content_list")
        calls = delta.get("tool_calls")
        if is_array(calls):
            for entry in calls:
                self._entry(entry, notes, is_typed=is_typed)
        for key, value in delta.items():
            if key not in ("content", "tool_calls"):
                self._member(ListPath(key), value, notes, is_known=key in DELTA_FIELDS)

    def _member(self, path: ListPath, value: object, notes: Anomalies, *, is_known: bool) -> None:
        """Check the lists in a member of a delta. Clients also merge the lists inside the objects of a delta.

        `is_known`: whether the decoder reads an object in this place. If `is_known` is True, the lists inside the
        object are not checked.
        """
        if is_array(value):
            if value:
                self._list(path, value, notes)
        elif is_object(value) and not is_known:
            for name, member in value.items():
                here = path.member(name) if is_array(member) or is_object(member) else None
                if here is not None:
                    self._member(here, member, notes, is_known=False)

    def _list(self, path: ListPath, value: list[Any], notes: Anomalies) -> None:
        indexes = [entry["index"] for entry in value if is_object(entry) and "index" in entry]
        # Clients merge the entries of the first list at a path if any entry has an index, even an invalid index.
        merges = bool(indexes)
        is_indexed = len(indexes) == len(value) and all(map(_is_index, indexes))
        if path.text in self._lists:
            if not is_indexed:
                notes.mark_misread("list_without_index")
        elif any(is_object(entry) for entry in value):
            is_stored = len(self._lists) < MAX_LISTS and not path.is_long()
            if (merges and not is_indexed) or not is_stored:
                notes.mark_misread("list_without_index")
            if is_stored:
                self._lists.add(path.text)

    def _entry(self, entry: object, notes: Anomalies, *, is_typed: bool) -> None:
        if not is_object(entry):
            notes.mark_misread("empty_entry")
            return
        if entry.get("type", "function") not in ("function", "custom"):
            notes.mark_misread("other_type")
        index = entry.get("index")
        if type(index) is not int or not 0 <= index < 2**63:
            notes.mark_misread("no_index")
            return
        if index > self._calls:
            notes.mark_misread("other_index")
            return
        function = entry.get("function")
        is_new = index == self._calls
        if is_new and not (entry.get("id") or _has_name(entry)):
            notes.mark_misread("empty_entry")
            return
        self._calls += is_new
        if is_new and is_typed and "type" not in entry:
            notes.mark_misread("no_type")  # openai-node raises at the end of the stream
        if is_object(function):
            arguments = function.get("arguments")
            if isinstance(arguments, str):
                self._bare.discard(index)
                if arguments:
                    self._blank.discard(index)
            elif is_new:
                self._bare.add(index)
            if is_new and not arguments:
                self._blank.add(index)
        custom = entry.get("custom")
        if is_object(custom):
            if custom.get("input"):
                self._blank.discard(index)  # only this fragment shows that the call is free-form
        elif not is_object(function) and entry.get("type") != "custom":
            notes.mark_misread("empty_entry")
