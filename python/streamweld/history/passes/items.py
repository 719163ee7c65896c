"""Remove members of items and messages that a target rejects on replay: malformed or repeated ids, states, annotations.

Constraints: `item_id`, `strip_fields`, `not_null`, `members`, `annotations`, `required_members`, `text_types`,
`assistant_content`.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# (the input is JSON from the caller, so the types inside its containers are unknown)

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from streamweld.history.chat_members import COMMON
from streamweld.history.chat_reasoning import DETAILS, REASONING_ITEMS, SIGNATURE_MEMBERS, THINKING_BLOCKS
from streamweld.history.ids import form_of
from streamweld.history.model import (
    MISSING,
    Call,
    Media,
    Opaque,
    Origin,
    Reasoning,
    Result,
    Text,
    changed,
    copied,
    members_of,
    with_parts,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from streamweld.history.context import Context
    from streamweld.history.model import Part, Turn

__all__ = ["CONSTRAINTS", "run"]

_P = TypeVar("_P", bound="Part")
CONSTRAINTS: Final = ("item_id", "strip_fields", "not_null", "members", "text_types", "assistant_content")
_NONE: Final[frozenset[str]] = frozenset()
_REASONING: Final = frozenset({"reasoning_content"})
_ITEMS: Final[Mapping[Any, str]] = {
    Reasoning: "reasoning",
    Call: "function_call",
    Result: "function_call_output",
}
# The id of these items belongs to another item or, for the output of a local shell, is the id of the call.
_OTHER_IDS: Final = frozenset({"item_reference", "local_shell_call_output"})
_ITEM_PARTS: Final = (Reasoning, Call, Result)
_CONTENT_PARTS: Final = (Text, Media)


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns without the members that the target rejects."""
    names = [name for name in CONSTRAINTS if context.fact(name)]
    found = context.survey(turns)
    if names == ["strip_fields"]:  # only members of the target's dialect for which the model has no field are stripped
        stripped = frozenset[str]().union(*context.facts("strip_fields").values())
        if context.family not in found.dialects or not any(_has_extra(turn, stripped) for turn in found.beyond):
            return turns
    only_members = names == ["members"]
    if context.family not in found.dialects and (
        only_members or (not found.reasoned and not _have_ids(found.calls, found.results))
    ):
        return turns  # the model has fields for all members of these messages, so there is nothing to remove
    if only_members and found.common and context.fact("common_members"):
        return turns
    allows = _Schema(context).allows if only_members else None
    cleaner: _Cleaner | None = None
    out: list[Turn] = []
    altered = False
    for turn in turns:
        if allows is not None and allows(turn):
            out.append(turn)
            continue
        cleaner = _Cleaner(context) if cleaner is None else cleaner
        parts = [cleaner.part(part, turn) for part in turn.parts]
        same = all(map(is_, parts, turn.parts))
        altered = altered or not same
        out.append(turn if same else with_parts(turn, parts))
    if not altered:
        return turns
    # The survey stays valid for later passes and writers, because this pass does not change the types, texts and ids of
    # parts.
    after = [part for turn in out for part in turn.parts]
    found.adopt(
        out,
        [part for part in after if type(part) is Call],
        [part for part in after if type(part) is Result],
    )
    return out


def _has_extra(turn: Turn, names: frozenset[str]) -> bool:
    """Return whether a message or block has one of these members, and the model has no field for it."""
    origin = turn.origin
    if origin is not None and not names.isdisjoint(origin.extra):
        return True
    for part in turn.parts:
        if not names.isdisjoint(part.extra):
            return True
        if part.origin is not origin and part.origin is not None:
            origin = part.origin
            if not names.isdisjoint(origin.extra):
                return True
    return False


def _have_ids(calls: Iterable[Call], results: Iterable[Result]) -> bool:
    return any(part.item_id for part in calls) or any(part.item_id for part in results)


def _is_listed(raw: Any, listed: frozenset[str]) -> bool:
    """Return whether the value is an object, and the target's schema lists all members of the object."""
    return raw.__class__ is dict and listed.issuperset(raw)


def _are_common(parts: Iterable[Part]) -> bool:
    """Return whether the parts were read from messages with only common members."""
    for part in parts:
        origin = part.origin
        if origin is None or origin.extra is not COMMON:
            return False
    return True


class _Schema:
    """The members that the target's schema lists."""

    def __init__(self, context: Context) -> None:
        self.members: Mapping[str, frozenset[str]] = context.facts("members")
        required: Mapping[str, Any] = context.facts("required_members")
        self.typed_calls = "type" in required.get("call", ())
        self.filled_results = "content" in required.get("tool", ())
        self.common = bool(context.fact("common_members"))

    def allows(self, turn: Turn) -> bool:
        """Return whether the target's schema lists every member of the turn's messages and blocks.

        For most turns, this quick test returns True. If it returns False, the target may still accept all members.
        """
        parts = turn.parts
        if self.common and _are_common(parts):
            return True
        listed = self.members.get(turn.role, _NONE)
        if turn.role == "tool":
            for part in parts:
                if type(part) is not Result or part.origin is None or not _is_listed(part.origin.raw, listed):
                    return False
                if self.filled_results and not part.parts and part.origin.raw.get("content") is None:
                    return False
                for inner in part.parts:
                    if inner.raw is not None:
                        return False
            return True
        origin = turn.origin
        if origin is None or not (_is_listed(origin.raw, listed) or self._lists_but_reasoning(origin.raw, listed)):
            return False
        for part in parts:
            if part.origin is not origin:
                return False
            raw = part.raw
            if type(part) is Text:
                if raw is not None and not _is_listed(raw, self.members.get("text", _NONE)):
                    return False
            elif type(part) is Call:
                if not _is_listed(raw, self.members.get("call", _NONE)) or (self.typed_calls and "type" not in raw):
                    return False
                if not part.custom and not _is_listed(raw.get("function"), self.members.get("function", _NONE)):
                    return False
            elif type(part) is not Media or part.extra or not _is_listed(raw, self.members.get(part.kind, _NONE)):
                return False
        return True

    def _lists_but_reasoning(self, raw: Any, listed: frozenset[str]) -> bool:
        """Return whether the schema lists all members except reasoning, which `passes.reasoning` has handled."""
        return raw.__class__ is dict and bool(raw.get("reasoning_content")) and raw.keys() - listed == _REASONING


class _Cleaner:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.item_id: Mapping[str, Any] = context.facts("item_id")
        self.form = form_of(self.item_id)
        self.strip: Mapping[str, Any] = context.facts("strip_fields")
        self.not_null: Mapping[str, Any] = context.facts("not_null")
        self.members: Mapping[str, frozenset[str]] = context.facts("members")
        self.text_types: Mapping[str, str] = context.facts("text_types")
        self.annotations: Collection[str] | None = context.fact("annotations")
        required: Mapping[str, Any] = context.facts("required_members")
        self.typed_calls = "type" in required.get("call", ())
        self.filled_results = "content" in required.get("tool", ())
        self.strings = context.fact("assistant_content") == "string"
        self.seen: dict[str, Origin | None] = {}  # item id -> origin of the item with that id
        self.origins: dict[int, Origin] = {}  # id() of an origin -> its replacement

    def _lists(self, raw: Any, kind: str) -> bool:
        return _is_listed(raw, self.members.get(kind, _NONE))

    def part(self, part: Part, turn: Turn) -> Part:
        if isinstance(part, _ITEM_PARTS):
            kind = _ITEMS[type(part)]
            # A free-form call is an item of a different type, and its ids have a different form.
            formed = "custom_tool_call" if isinstance(part, Call) and part.custom else kind
            if part.item_id is not None and self._refused(part.item_id, formed, part.origin):
                self.context.edit("item_id_dropped", part.path, f"dropped the item id {part.item_id!r}", part.item_id)
                part = changed(part, item_id=None)
            part = self._stripped(part, kind)
            if isinstance(part, Call) and self.typed_calls and self._lacks_type(part):
                self.context.edit("member_required", part.path, "added the type of the call")
                part = changed(part)
            if isinstance(part, Result) and self.filled_results and self._lacks_content(part):
                self.context.edit("member_required", part.path, "added empty content to the result")
                part = changed(part)
            if isinstance(part, Result) and self.members:
                inner = tuple([one if isinstance(one, Opaque) else self._content(one) for one in part.parts])
                part = part if all(map(is_, inner, part.parts)) else changed(part, parts=inner)
            origin = part.origin
            # A message may consist of nothing but calls, so the message's rejected members are also removed here.
            whole = isinstance(part, Call) or bool(self.members) or "message" in self.strip
            if whole and origin is not None and origin.dialect == self.context.family:
                return self._message(part, origin, turn)
            return part
        origin = part.origin
        if origin is None or origin.dialect != self.context.family:
            return part
        if isinstance(part, Opaque) and part.raw is origin.raw:
            return self._opaque(part)
        part = self._message(part, origin, turn)
        if isinstance(part, _CONTENT_PARTS):
            part = self._content(part)
        return self._typed(part, turn) if isinstance(part, Text) else part

    def _lacks_type(self, part: Call) -> bool:
        own = part.origin is not None and part.origin.dialect == self.context.family
        return own and not part.touched and isinstance(part.raw, Mapping) and part.raw.get("type") is None

    def _lacks_content(self, part: Result) -> bool:
        own = part.origin is not None and part.origin.dialect == self.context.family
        return own and not part.touched and members_of(part.raw).get("content") is None

    def _opaque(self, part: Opaque) -> Opaque:
        """Return an opaque item, without its id if the target rejects that id."""
        raw = members_of(part.raw)
        item_id = raw.get("id")
        if part.kind in _OTHER_IDS or item_id is None or not self.item_id:
            return part
        if isinstance(item_id, str) and not self._refused(item_id, part.kind, part.origin):
            return part
        self.context.edit("item_id_dropped", part.path, f"dropped the item id {item_id!r}", item_id)
        return changed(part, raw={name: value for name, value in raw.items() if name != "id"})

    def _refused(self, item_id: str, kind: str, owner: Origin | None) -> bool:
        if not self.item_id:
            return False
        if self.item_id.get("send") is False and not (kind == "reasoning" and self._reasoning_ids()):
            return True
        prefix: str | None = members_of(self.item_id.get("prefixes")).get(kind)
        if not self.form.fits(item_id) or (prefix is not None and not item_id.startswith(prefix)):
            return True
        if item_id in self.seen and self.seen[item_id] is not owner:
            return bool(self.item_id.get("unique", True))
        self.seen[item_id] = owner
        return False

    def _reasoning_ids(self) -> bool:
        return bool(self.context.facts("reasoning").get("item_ids"))

    def _message(self, part: _P, origin: Origin, turn: Turn) -> _P:
        """Return the part with a copy of its origin from which the message's rejected members are removed."""
        if id(origin) not in self.origins and self._is_clean(origin.raw, origin.extra, turn.role, "message"):
            self.origins[id(origin)] = origin
        if id(origin) not in self.origins:
            refused = {name for name in self.strip.get("message", ()) if name in origin.extra}
            refused |= self._unknown(origin.raw, origin.extra, turn.role)
            refused |= self._carriers(part, origin.raw, turn.role)
            if members_of(origin.raw).get("type", "message") == "message":
                names = self.not_null.get("message", ())
                refused |= {name for name in names if members_of(origin.raw).get(name, MISSING) is None}
            item_id = origin.extra.get("id")
            if item_id is not None and (not isinstance(item_id, str) or self._refused(item_id, "message", origin)):
                refused.add("id")
            if refused:
                members_sent = {**members_of(origin.raw), **origin.extra}
                gone = {name: members_sent[name] for name in sorted(refused) if members_sent.get(name)}
                self.context.edit(
                    "member_refused",
                    origin.path,
                    f"dropped members that the target rejects: {', '.join(sorted(refused))}",
                    gone or None,
                )
            self.origins[id(origin)] = origin.without(frozenset(refused)) if refused else origin
        bare = self.origins[id(origin)]
        if bare is origin:
            return part
        # Members of reasoning are kept. Calls and results are rewritten without the rejected members.
        return copied(part, origin=bare) if isinstance(part, Reasoning) else changed(part, origin=bare)

    def _content(self, part: Text | Media) -> Text | Media:
        if isinstance(part, Text) and self.annotations is not None and part.extra.get("annotations"):
            part = self._annotated(part)
        return self._stripped(part, part.kind if isinstance(part, Media) else "text")

    def _annotated(self, part: Text) -> Text:
        """Return the text without annotations of types that the target rejects."""
        given: Any = part.extra["annotations"]
        if part.origin is None or part.origin.dialect != self.context.family or not isinstance(given, list):
            return part
        listed: list[Any] = given
        kept = [one for one in listed if members_of(one).get("type") in (self.annotations or ())]
        if len(kept) == len(listed):
            return part
        gone = [one for one in listed if one not in kept]
        self.context.edit("member_refused", part.path, "dropped annotations that the target rejects", gone)
        return changed(part, extra={**part.extra, "annotations": kept})

    def _stripped(self, part: _P, kind: str) -> _P:
        if part.origin is None or part.origin.dialect != self.context.family:
            return part
        if self._is_clean(part.raw, part.extra, "call" if kind == "function_call" else kind, kind):
            return part
        refused = [name for name in self.strip.get(kind, ()) if name in part.extra]
        refused += sorted(self._unknown(part.raw, part.extra, "call" if kind == "function_call" else kind))
        refused += [name for name in self.not_null.get(kind, ()) if members_of(part.raw).get(name, MISSING) is None]
        refused += sorted(self._carriers(part, part.raw, kind) if kind == "function_call" else ())
        function = members_of(members_of(part.raw).get("function"))
        beneath = {
            name: function[name] for name in sorted(function.keys() - set(self.members.get("function", function)))
        }
        refused += beneath
        if not refused:
            return part
        members_sent = {**members_of(part.raw), **beneath, **part.extra}
        worth = {name: members_sent.get(name) for name in refused}
        worth = {name: value for name, value in worth.items() if value not in (None, [], "completed")}
        self.context.edit(
            "member_refused", part.path, f"dropped members that the target rejects: {', '.join(refused)}", worth or None
        )
        gone = {*refused, *(f"function/{name}" for name in beneath)}
        return changed(part, extra={name: value for name, value in part.extra.items() if name not in gone})

    def _is_clean(self, raw: Any, extra: Mapping[str, Any], kind: str, item: str) -> bool:
        """Return whether a message or block has only members that the target's schema lists.

        For most messages and blocks, this quick test returns True. If it returns False, the target may still accept all
        members.
        """
        if extra or item in self.not_null:
            return False
        if raw is None or not self.members:
            return True
        return self._lists(raw, kind) and (kind != "call" or self._lists(raw.get("function"), "function"))

    def _unknown(self, raw: Any, extra: Mapping[str, Any], kind: str) -> set[str]:
        """Return the members that would be written back unchanged although the target's schema does not list them.

        A member is written back unchanged if the model has no field for it, if its value is empty, or if the reader
        skips it.
        """
        known = self.members.get(kind)
        if known is None:
            return set()
        members_sent = members_of(raw)
        found = {name for name in members_sent if name not in known}
        skipped = {"index"} if members_sent.get("reasoning_content") is None else {"index", "reasoning"}
        return {name for name in found if name in extra or name in skipped or not members_sent[name]}

    def _carriers(self, part: Part, raw: Any, kind: str) -> set[str]:
        """Return the members that contain a call's signature or a result's tool name, unless the target's schema lists
        them.
        """
        known = self.members.get("call" if kind == "function_call" else kind)
        if known is None:
            return set()
        names: set[str] = {"name"} if isinstance(part, Result) else set()
        if isinstance(part, Call) and part.signature:
            names = {DETAILS, *SIGNATURE_MEMBERS}
        elif isinstance(part, Text) and part.signature:
            names = {*SIGNATURE_MEMBERS}
        sent = members_of(raw)
        if any(name in sent and name in known for name in (DETAILS, REASONING_ITEMS, THINKING_BLOCKS)):
            names |= {"reasoning", "reasoning_content"}  # copies for display
        if DETAILS in sent and DETAILS not in known and _signs_calls(sent):
            names.add(DETAILS)
        return {name for name in names if name in members_of(raw) and name not in known}

    def _typed(self, part: Text, turn: Turn) -> Text:
        """Return the text with the block type that its role requires.

        If assistant content must be a string, mark the text as changed so that it is written as a string.
        """
        raw: Any = part.raw
        if self.strings and turn.role == "assistant":
            content = members_of(part.origin.raw if part.origin is not None else None).get("content", "")
            if not isinstance(content, str) and not part.touched:
                self.context.edit("assistant_string", part.path, "changed the content of the message to a string")
                return changed(part)
            return part
        wanted = self.text_types.get("system" if turn.role == "developer" else turn.role)
        if wanted is None or not isinstance(raw, Mapping) or part.refusal:
            return part
        members_sent = cast("Mapping[str, Any]", raw).get("type")
        if members_sent != wanted and not part.touched:
            self.context.edit("text_type", part.path, f"changed the type of the part from {members_sent} to {wanted}")
            return changed(part)
        return part


def _signs_calls(message: Mapping[str, Any]) -> bool:
    """Return whether the `reasoning_details` of a message contain signatures for its calls."""
    calls, details = message.get("tool_calls"), message[DETAILS]
    if not isinstance(calls, list) or not isinstance(details, list):
        return False
    ids = {members_of(call).get("id") for call in calls}
    entries = [members_of(entry) for entry in details]
    return any(entry.get("data") and entry.get("id") in ids for entry in entries)
