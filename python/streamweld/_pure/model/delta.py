"""Wire deltas that a decoder passes to the assembler: tool-call fragment, address, usage object.

This is plain data for all dialects. The decoder normalizes the values: absent, null and blank members are None.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from streamweld.events import ReasoningKind

__all__ = ["Address", "Fragment", "ItemKind", "ListedPart", "Usage"]

ItemKind = Literal["message", "reasoning", "call"]  # kind of a wire item


@dataclass(slots=True)
class Fragment:
    """One element of a list of tool-call deltas."""

    index: int | None = None  # None if the received index is not usable
    index_raw: str | None = None  # the index as received, if it is not usable
    has_index_key: bool = False  # an index member was sent, even with the value null
    id: str | None = None
    name: str | None = None
    arguments: str | None = None  # may begin or end with half of a surrogate pair
    object_arguments: str | None = None  # arguments sent as an object: its JSON text
    position: int = 0  # position in the list of fragments; `array_len` is the length of that list
    array_len: int = 1
    legacy: bool = False  # whether the fragment is the call in the legacy `function_call` member
    custom: bool = False  # whether the call is to a free-form tool: its input is text, not JSON
    metadata: str | None = None  # unmodeled members of the fragment, as the text of a JSON object


@dataclass(slots=True, frozen=True)
class Address:
    """Address of a delta, in dialects that open and close their items. It may be wrong, so it is only evidence."""

    item_id: str | None = None  # id of a Responses output item, or of an AI SDK text or reasoning block
    call_id: str | None = None  # `call_id`, `tool_use` id or `toolCallId`
    index: int | None = None  # `output_index`, or the index of a content block
    sub: int | None = None  # `content_index` or `summary_index` inside the item
    # Id of the output item that events report, if the deltas are matched by a different id. It is not used as evidence.
    # The AI SDK numbers its blocks and sends the provider's item id separately.
    public_id: str | None = None


class CallEnding(Enum):
    """What the event that closes a call states about its end."""

    WHOLE = auto()
    CUT = auto()  # the call was cut off, unless its arguments are complete JSON
    OPEN = auto()  # as CUT, unless the response ends with success: the call was still in progress
    OPEN_OBJECT = auto()  # as OPEN, and a successful end adds the brace that closes the arguments


class ListedPart(NamedTuple):
    """One part in an item's content list. `address.sub`: its position in the list."""

    item: ItemKind
    address: Address
    channel: Literal["text", "reasoning", "refusal"]
    kind: ReasoningKind
    text: str | None
    annotations: str | None  # annotations that have not been sent before, as the text of a JSON array
    metadata: str | None


@dataclass(slots=True)
class Usage:
    """Token counts; None if the gateway did not send them. `raw` is the gateway's usage object as sent."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    raw: str | None = None

    def is_blank(self) -> bool:
        """Return True for a placeholder: no numbers, or only zeros."""
        return not (
            self.input_tokens
            or self.output_tokens
            or self.total_tokens
            or self.cached_input_tokens
            or self.cache_write_tokens
            or self.reasoning_tokens
        )
