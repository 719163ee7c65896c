"""What a decoder hands to the assembler beside plain texts: one tool-call fragment, one address, one usage object.

Plain data. It knows no dialect: a decoder has normalised what it puts in (absent, null and blank are None).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from streamweld.events import ReasoningKind

__all__ = ["Address", "Fragment", "ItemKind", "ListedPart", "Usage"]

ItemKind = Literal["message", "reasoning", "call"]  # what an item of the wire holds


@dataclass(slots=True)
class Fragment:
    """One entry of a list of tool-call deltas."""

    index: int | None = None  # if what was sent can be an index
    index_raw: str | None = None  # what was sent instead of an index
    has_index_key: bool = False  # an index was sent at all, null included
    id: str | None = None
    name: str | None = None
    arguments: str | None = None  # may begin or end with half of a surrogate pair
    object_arguments: str | None = None  # the arguments as an object: its text on the wire
    position: int = 0  # the place in its list, and the length of that list
    array_len: int = 1
    legacy: bool = False  # the one call of the `function_call` member
    custom: bool = False  # a free-form tool: its input is text, not JSON
    metadata: str | None = None  # unmodelled members of the entry: the text of a JSON object


@dataclass(slots=True, frozen=True)
class Address:
    """Whom a delta speaks of, where the wire itself opens and closes what it sends. Evidence, not proof."""

    item_id: str | None = None  # of a Responses output item; of an AI SDK text or reasoning
    call_id: str | None = None  # `call_id`, `tool_use` id, `toolCallId`
    index: int | None = None  # `output_index`, the index of a content block
    sub: int | None = None  # `content_index`, `summary_index` inside of the item
    # No evidence: the id of the output item that is told to readers, where what pairs the deltas is another one (the
    # AI SDK numbers its blocks, and says beside that which item of the provider's API a block is).
    public_id: str | None = None


class ListedPart(NamedTuple):
    """One entry of the list of parts that a whole item brings. `address.sub`: its place there."""

    item: ItemKind
    address: Address
    channel: Literal["text", "reasoning", "refusal"]
    kind: ReasoningKind
    text: str | None
    annotations: str | None  # the text of a JSON array: those that did not come before
    metadata: str | None


@dataclass(slots=True)
class Usage:
    """Token counts; None where the gateway did not say. `raw` is its own object as sent."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    raw: str | None = None

    def is_blank(self) -> bool:
        """No number, or nothing but zeros: a placeholder that says nothing."""
        return not (
            self.input_tokens
            or self.output_tokens
            or self.total_tokens
            or self.cached_input_tokens
            or self.cache_write_tokens
            or self.reasoning_tokens
        )
