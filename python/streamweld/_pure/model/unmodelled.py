"""Content that no event type can hold. An encoder for the same dialect writes it as it was sent.

The decoder creates these values only for repair. Strings contain JSON as sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Annotated",
    "BlockClosed",
    "BlockDelta",
    "BlockMembers",
    "BlockOpened",
    "ChoiceMembers",
    "ChunkFacts",
    "Members",
    "MembersOf",
    "OtherEvent",
    "ReasoningFacts",
    "Unmodelled",
]

# The object that contained unknown members: the message and its usage, `message_delta`, its delta and its usage, or
# `message_stop`.
MembersOf: TypeAlias = Literal["message", "start_usage", "end", "delta", "end_usage", "stop"]


@dataclass(slots=True, frozen=True)
class BlockMembers:
    """Unknown members at the start of a block that has a part."""

    index: int
    members: Mapping[str, str]


@dataclass(slots=True, frozen=True)
class BlockOpened:
    """The start of a block without a part: a tool result, or a block of unknown type."""

    index: int
    block: str  # a tool result has the call id that is used in events


@dataclass(slots=True, frozen=True)
class BlockDelta:
    """A delta with content that no event type can hold. Its block may have a part."""

    index: int | None
    delta: str


@dataclass(slots=True, frozen=True)
class BlockClosed:
    """The stop of a block without a part."""

    index: int


@dataclass(slots=True, frozen=True)
class Annotated:
    """Annotations of an open part, as a JSON array. They are repeated when the part closes."""

    part: int
    annotations: str


@dataclass(slots=True, frozen=True)
class OtherEvent:
    """A payload of unknown type, and the name of its event."""

    event: str | None
    payload: str


@dataclass(slots=True, frozen=True)
class Members:
    """Unknown members of one object."""

    of: MembersOf
    members: Mapping[str, str]


@dataclass(slots=True, frozen=True)
class ChunkFacts:
    """What no event contains about a Chat chunk.

    Not repeated for a chunk that has the same members as the chunk before it and neither a finish reason nor token
    counts.
    """

    members: Mapping[str, str]  # the unknown members
    has_choice: bool
    finishes: bool  # whether a choice has a finish reason
    counts: bool  # whether the chunk has token counts


@dataclass(slots=True, frozen=True)
class ReasoningFacts:
    """What no event contains about the reasoning of a Chat delta. Precedes its text."""

    choice: int
    # The members that contain the text, if they changed. Empty if only `reasoning_details` contains it.
    fields: tuple[str, ...] | None
    details: str | None  # the entries of `reasoning_details`, as a JSON array
    has_text: bool  # whether an event with the text follows


@dataclass(slots=True, frozen=True)
class ChoiceMembers:
    """Unknown members of a Chat choice that no event of their chunk contains."""


Unmodelled: TypeAlias = (
    BlockMembers
    | BlockOpened
    | BlockDelta
    | BlockClosed
    | Annotated
    | OtherEvent
    | Members
    | ChunkFacts
    | ReasoningFacts
    | ChoiceMembers
)
