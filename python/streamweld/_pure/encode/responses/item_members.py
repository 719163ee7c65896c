"""Stores the members of the source's items that the encoder does not write itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from streamweld._json import loads_raw
from streamweld._pure.dialect.responses.spec_tables import CONTENT, OTHER_ARGUMENTS, RAW, SUMMARY, TEXT
from streamweld._pure.encode.common.extra_members import size
from streamweld._pure.encode.common.writer import spliced
from streamweld._pure.encode.responses.copied_items import object_members
from streamweld._pure.json.scanner import Payload

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from streamweld._pure.dialect.responses.spec_tables import TextKind
    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.json.members import Raw

__all__ = ["NO_MEMBERS", "ItemMembers", "OtherPart", "OtherParts", "SentParts", "read_members"]

# Members of items and of content parts that the encoder writes itself. `function` contains a call in the form of Chat
# Completions, which is written as name and arguments.
_OF_ITEM: Final = {
    "message": frozenset({"type", "id", "status", "role", "content"}),
    "reasoning": frozenset({"type", "id", "summary", "content"}),
    "function_call": frozenset({"type", "id", "call_id", "name", "arguments", "status", "function"}),
    "custom_tool_call": frozenset({"type", "id", "call_id", "name", "input", "status"}),
}
_OF_PART: Final = frozenset({"type", "text", "refusal", "annotations", "logprobs"})
_ARGUMENTS: Final = {"function_call": "arguments", "custom_tool_call": "input"}


@dataclass(frozen=True, slots=True)
class ListedPart:
    """A content part in the source's item that the encoder does not write from events."""

    before: int  # number of earlier parts that the encoder writes from events
    position: int  # position in the source's list
    json: str


@dataclass(slots=True)
class OtherPart:
    """A content part that is written as it was sent."""

    sub: int
    json: str  # the part as it was last sent
    is_done: bool = False

    def whole(self, _: SentParts) -> str:
        """Return the JSON of the part."""
        return spliced(self.json)


class OtherParts:
    """The content parts of one item that are written as they were sent."""

    __slots__ = ("_by_index", "all", "open", "waiting")

    def __init__(self) -> None:
        self.all: list[OtherPart] = []
        self._by_index: dict[int, OtherPart] = {}  # by the index in the source
        # Parts of the source's item that are not written yet, the next one last. A list takes less memory than a deque.
        self.waiting: list[ListedPart] = []
        self.open = 0  # number of parts that have not ended

    def find(self, index: int | None, *, closes: bool) -> OtherPart | None:
        """Return the part with this index in the source. A part that has ended does not open again.

        If the source sent no index, return the last part, unless that part has ended.
        """
        part = (self.all[-1] if self.all else None) if index is None else self._by_index.get(index)
        return part if part is not None and (not part.is_done or (closes and index is not None)) else None

    def add(self, index: int | None, sub: int, json: str) -> OtherPart:
        """Add and return an open part."""
        part = OtherPart(sub, json)
        if index is not None:
            self._by_index[index] = part
        self.all.append(part)
        self.open += 1
        return part

    def end(self, part: OtherPart) -> bool:
        """End a part. Return False if the part had already ended."""
        ends = not part.is_done
        part.is_done = True
        self.open -= ends
        return ends

    def list(self, listed: Iterable[ListedPart]) -> None:
        """Store the parts that the source's item lists.

        A listed part is the known part with the same position in the source. Otherwise, it is the first known part that
        the list does not contain, because sources may number the parts differently. Parts that are not known yet wait
        until they are written.
        """
        found: set[int] = set()  # indexes of the parts in their item
        others: list[ListedPart] = []
        for one in listed:
            part = self._by_index.get(one.position)
            if part is None or part.sub in found:
                others.append(one)
            else:
                found.add(part.sub)
                part.json = one.json
        self.waiting.clear()
        rest = iter([part for part in self.all if part.sub not in found])
        for one in others:
            part = next(rest, None)
            if part is None:
                self.waiting.append(one)
            else:
                part.json = one.json
        self.waiting.reverse()


@dataclass(slots=True)
class SentParts:
    """The content parts or summary parts of the source's item, without their text."""

    # The type and the unknown members of each part that the encoder writes.
    written: list[tuple[str, Raw]] = field(default_factory=list[tuple[str, "Raw"]])
    # The parts of other types. Only `content` has any.
    others: list[ListedPart] = field(default_factory=list[ListedPart])

    def members(self, place: int, kind: str) -> Raw:
        """Return the unknown members of a part that the encoder writes. `place` is the number of written parts before
        it.
        """
        known, members = self.written[place] if place < len(self.written) else ("", {})
        return members if known == kind else {}

    def size(self) -> int:
        """Return the size of the stored members and parts, in bytes."""
        return sum([size(members) for _, members in self.written]) + sum(
            [len(part.json.encode()) for part in self.others]
        )


@dataclass(slots=True)
class ItemMembers:
    """The members of an item that the encoder does not write itself."""

    item: Raw = field(default_factory=dict[str, str])
    content: SentParts = field(default_factory=SentParts)
    summary: SentParts = field(default_factory=SentParts)
    is_done: bool = False  # the item is complete, so that its parts are
    is_incomplete: bool = False  # the item has the status `incomplete`
    has_no_content: bool = False  # the item is a message with an empty content list


# Shared by all items without such members, because a response may have many items.
NO_MEMBERS: Final = ItemMembers()


def read_members(context: EncodeContext, kind: str, item: str, *, is_done: bool) -> ItemMembers:
    """Return the members of an item of type `kind`. Members beyond the limit are dropped, and a loss is recorded."""
    whole = object_members(item)
    members = _others(whole, _OF_ITEM[kind])
    if kind in _ARGUMENTS and not _string(whole, _ARGUMENTS[kind]):
        # The encoder writes the arguments from another member into the call's own member.
        members = _others(members, frozenset(OTHER_ARGUMENTS))
    if kind == "reasoning" and _string(whole, "encrypted_content"):
        del members["encrypted_content"]  # an event contains it
    is_incomplete = _string(whole, "status") == "incomplete"
    has_no_content = kind == "message" and spliced(whole.get("content", "")) == "[]"
    content, summary = _parts(whole, kind, "content"), _parts(whole, kind, "summary")
    found = ItemMembers(members, content, summary, is_done, is_incomplete, has_no_content)
    if not context.passed.keeps(size(members) + found.content.size() + found.summary.size()):
        context.losses.note("metadata")
        return ItemMembers(is_done=is_done, is_incomplete=is_incomplete, has_no_content=has_no_content)
    return found


def _parts(item: Raw, kind: str, name: str) -> SentParts:
    """Return the parts in a list of an item of type `kind`.

    Return no members if all parts have none, and no other parts if all have a type that the encoder writes.
    """
    found = SentParts()
    sent = item.get(name, "null")
    for position, raw in enumerate([sent] if sent.startswith('"') else Payload(sent, None).elements()):
        part = object_members(raw) if raw.startswith("{") else {}
        named = part.get("type", "null")
        sent_type: str | None = loads_raw(named) if named.startswith('"') and name == "content" else None
        if sent_type is not None and sent_type not in CONTENT:
            found.others.append(ListedPart(len(found.written), position, raw))
            continue
        if name == "content" and sent_type is None and named != "null":
            continue
        text_kind, member = CONTENT[sent_type] if sent_type is not None else (_default(kind, name), "text")
        text = part.get(member, "") if part else raw
        if text.startswith('"') and loads_raw(text):  # the encoder writes no part without text
            found.written.append(
                (
                    _type_of(
                        _default(kind, name) if kind == "reasoning" and text_kind.item == "message" else text_kind
                    ),
                    _others(part, _OF_PART),
                )
            )
    if not any(members for _, members in found.written):
        found.written.clear()
    return found


def _default(kind: str, name: str) -> TextKind:
    """Return the kind of text in a part without a type, in a list of an item of type `kind`."""
    if name == "summary":
        return SUMMARY
    return RAW if kind == "reasoning" else TEXT


def _type_of(text_kind: TextKind) -> str:
    """Return the type with which the encoder writes a part."""
    if text_kind.channel == "reasoning":
        return "summary_text" if text_kind.reasoning == "summary" else "reasoning_text"
    return "refusal" if text_kind.channel == "refusal" else "output_text"


def _others(members: Raw, known: AbstractSet[str]) -> Raw:
    return {name: raw for name, raw in members.items() if name not in known}


def _string(members: Raw, name: str) -> str:
    """Return a member that is a string, or an empty string."""
    raw = members.get(name, "")
    text: str = loads_raw(raw) if raw.startswith('"') else ""
    return text
