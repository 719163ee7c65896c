"""Stores the members of the source's items that the encoder does not write itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from streamweld._json import loads_raw
from streamweld._pure.dialect.responses.spec_tables import CONTENT, OTHER_ARGUMENTS
from streamweld._pure.encode.common.extra_members import size
from streamweld._pure.encode.responses.copied_items import object_members
from streamweld._pure.json.scanner import Payload

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.json.members import Raw

__all__ = ["ItemMembers", "SentParts", "read_members"]

# Members of items and of content parts that the encoder writes itself. `function` contains a call in the form of Chat
# Completions, which is written as name and arguments.
_OF_ITEM: Final = {
    "message": frozenset({"type", "id", "status", "role", "content"}),
    "reasoning": frozenset({"type", "id", "summary", "content"}),
    "function_call": frozenset({"type", "id", "call_id", "name", "arguments", "status", "function"}),
    "custom_tool_call": frozenset({"type", "id", "call_id", "name", "input", "status"}),
}
_OF_PART: Final = frozenset({"type", "text", "refusal", "annotations", "logprobs"})
# Types of parts that the encoder writes, and the member that contains the text.
_TEXTS: Final = {"output_text": "text", "summary_text": "text", "reasoning_text": "text", "refusal": "refusal"}
_ARGUMENTS: Final = {"function_call": "arguments", "custom_tool_call": "input"}


@dataclass(slots=True)
class SentParts:
    """The content parts or summary parts of the source's item, without their text."""

    # The type and the unknown members of each part that the encoder writes.
    written: list[tuple[str, Raw]] = field(default_factory=list[tuple[str, "Raw"]])
    # The JSON of the parts of other types, each with the number of written parts before it. Only `content` has any.
    others: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])

    def members(self, place: int, kind: str) -> Raw:
        """Return the unknown members of a part that the encoder writes. `place` is the number of written parts before
        it.
        """
        known, members = self.written[place] if place < len(self.written) else ("", {})
        return members if known == kind else {}

    def size(self) -> int:
        """Return the size of the stored members and parts, in bytes."""
        return sum([size(members) for _, members in self.written]) + sum([len(raw.encode()) for _, raw in self.others])


@dataclass(slots=True)
class ItemMembers:
    """The members of an item that the encoder does not write itself."""

    item: Raw = field(default_factory=dict[str, str])
    content: SentParts = field(default_factory=SentParts)
    summary: SentParts = field(default_factory=SentParts)
    is_done: bool = False  # the item is complete, so that its parts are


def read_members(context: EncodeContext, kind: str, item: str, *, is_done: bool) -> ItemMembers:
    """Return the members of an item of type `kind`. If there is no room to store them, record a loss."""
    whole = object_members(item)
    members = _others(whole, _OF_ITEM[kind])
    if kind in _ARGUMENTS and not _string(whole, _ARGUMENTS[kind]):
        # The encoder writes the arguments from another member into the call's own member.
        members = _others(members, frozenset(OTHER_ARGUMENTS))
    if kind == "reasoning" and _string(whole, "encrypted_content"):
        del members["encrypted_content"]  # an event contains it
    found = ItemMembers(members, _parts(whole, kind, "content"), _parts(whole, kind, "summary"), is_done)
    if not context.passed.keeps(size(members) + found.content.size() + found.summary.size()):
        context.losses.note("metadata")
        return ItemMembers(is_done=is_done)
    return found


def _parts(item: Raw, kind: str, name: str) -> SentParts:
    """Return the parts in a list of an item of type `kind`.

    Return no members if all parts have none, and no other parts if all have a type that the encoder writes.
    """
    found = SentParts()
    for raw in Payload(item.get(name, "null"), None).elements():
        part = object_members(raw) if raw.startswith("{") else {}
        sent = part.get("type", "null")
        text_kind = _text_kind(kind, name, loads_raw(sent) if sent.startswith('"') else None)
        if text_kind is None:
            found.others.append((len(found.written), raw))
        elif raw.startswith('"') or _string(part, _TEXTS[text_kind]):  # the encoder writes no part without text
            found.written.append((text_kind, _others(part, _OF_PART)))
    if not any(members for _, members in found.written):
        found.written.clear()
    return found


def _text_kind(kind: str, name: str, sent: str | None) -> str | None:
    """Return the type that the encoder writes for a part of the type `sent`, or None if it does not write the part."""
    if name == "summary":
        return "summary_text"
    if sent is not None and sent not in CONTENT:
        return None
    if kind == "reasoning":
        return "reasoning_text"
    return "refusal" if sent == "refusal" else "output_text"


def _others(members: Raw, known: AbstractSet[str]) -> Raw:
    return {name: raw for name, raw in members.items() if name not in known}


def _string(members: Raw, name: str) -> str:
    """Return a member that is a string, or an empty string."""
    raw = members.get(name, "")
    text: str = loads_raw(raw) if raw.startswith('"') else ""
    return text
