"""Content that no event type can contain. An encoder for the same dialect writes this content unchanged.

The decoder creates these values only for repair. Strings in these values contain the received JSON text.
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
    "CandidatePart",
    "ChoiceEnd",
    "ChoiceMembers",
    "ChunkFacts",
    "ChunkMembers",
    "ItemEnd",
    "ItemEvent",
    "ItemPlace",
    "Members",
    "MembersOf",
    "OtherEvent",
    "ReasoningFacts",
    "SentItem",
    "SentPart",
    "Unmodelled",
]

# The Messages object that contained unknown members: the message, its usage, the `message_delta` event, the delta or
# the usage in that event, or the `message_stop` event.
MembersOf: TypeAlias = Literal["message", "start_usage", "end", "delta", "end_usage", "stop"]

# Where a Responses stream contains an output item: in the event that announces the item, in the event that ends it, or
# in the output of the response object.
ItemPlace: TypeAlias = Literal["added", "done", "output"]


@dataclass(slots=True, frozen=True)
class BlockMembers:
    """Unknown members in the `content_block_start` event of a block that has a part."""

    index: int
    members: Mapping[str, str]


@dataclass(slots=True, frozen=True)
class BlockOpened:
    """A block without a part was opened: a tool result, or a block of unknown type."""

    index: int
    block: str  # in a tool result, the call id is the id that events report


@dataclass(slots=True, frozen=True)
class BlockDelta:
    """A delta contains data that no event type can contain. The block of the delta may have a part."""

    index: int | None
    delta: str


@dataclass(slots=True, frozen=True)
class BlockClosed:
    """A block without a part was closed."""

    index: int


@dataclass(slots=True, frozen=True)
class Annotated:
    """Annotations arrived for an open part. `annotations` is a JSON array. The closing event of the part contains the
    annotations again.
    """

    part: int
    annotations: str


@dataclass(slots=True, frozen=True)
class OtherEvent:
    """A payload of unknown type was read. `event` is the name of the server-sent event that contained the payload."""

    event: str | None
    payload: str


@dataclass(slots=True, frozen=True)
class Members:
    """The unknown members of one Messages object."""

    of: MembersOf
    members: Mapping[str, str]


@dataclass(slots=True, frozen=True)
class ChunkFacts:
    """The content of a Chat chunk that no event contains.

    These facts are not reported if the chunk has the same unknown members as the previous chunk, and contains neither a
    finish reason nor token counts.
    """

    members: Mapping[str, str]  # the unknown members
    has_choice: bool
    finishes: bool  # a choice of the chunk has a finish reason
    counts: bool  # the chunk contains token counts


@dataclass(slots=True, frozen=True)
class ReasoningFacts:
    """The form of the reasoning in a Chat delta. These facts are reported before the event with the reasoning text."""

    choice: int
    # The members that contain the text. The value is None if the members are unchanged, and empty if only
    # `reasoning_details` contains the text.
    fields: tuple[str, ...] | None
    details: str | None  # the entries of `reasoning_details`, as a JSON array
    has_text: bool  # an event with the reasoning text follows


@dataclass(slots=True, frozen=True)
class ChoiceMembers:
    """The unknown members of a Chat choice and its delta. The members are reported before the events of the choice.

    The members are not reported if neither this chunk nor the previous chunk has unknown members of the choice.
    """

    choice: int
    members: Mapping[str, str]
    delta: Mapping[str, str]
    finishes: bool  # the choice has a finish reason


@dataclass(slots=True, frozen=True)
class ChoiceEnd:
    """A Chat choice in a chunk has members that no event contains, or it has a finish reason and the chunk has such
    members. All events of the choice in the chunk were reported.
    """

    choice: int
    finishes: bool  # the choice has a finish reason


@dataclass(slots=True, frozen=True)
class CandidatePart:
    """A part of a Gemini candidate that the encoder does not write itself, as it was sent."""

    choice: int
    part: str


@dataclass(slots=True, frozen=True)
class ChunkMembers:
    """The unknown members of a Gemini chunk and of its candidates. All parts of the chunk were reported before."""

    candidates: tuple[tuple[int, Mapping[str, str]], ...]  # index and members of each candidate that has any
    members: Mapping[str, str]


@dataclass(slots=True, frozen=True)
class SentItem:
    """A Responses output item, as it was sent. The item is reported before its events, which end with `ItemEnd`."""

    place: ItemPlace
    kind: str  # type of the item, or the type that the decoder assumes if the item has none
    index: int | None  # output index
    item: str
    payload: str  # the event that contains the item


@dataclass(slots=True, frozen=True)
class SentPart:
    """A Responses content part of unknown type was opened or closed. The events that it causes follow, and end with
    `ItemEnd`.
    """

    item_id: str | None
    index: int | None  # output index
    sub: int | None  # index of the part inside its item
    part: str
    closes: bool


@dataclass(slots=True, frozen=True)
class ItemEvent:
    """A Responses event that does not concern text or the arguments of an ordinary call. The events that it causes
    follow, and end with `ItemEnd`.
    """

    event: str | None  # name of the server-sent event
    payload: str


@dataclass(slots=True, frozen=True)
class ItemEnd:
    """All events of a Responses item, a `SentPart` or an `ItemEvent` were reported."""


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
    | ChoiceEnd
    | CandidatePart
    | ChunkMembers
    | SentItem
    | SentPart
    | ItemEvent
    | ItemEnd
)
