"""Wire deltas: the values that a decoder passes to the assembler, for any dialect.

The decoder normalizes the values, so that absent, null, and blank members are None.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from streamweld.events import ReasoningKind

__all__ = ["Address", "Fragment", "ItemKind", "ListedPart", "Usage"]

ItemKind = Literal["message", "reasoning", "call"]  # the kind of an item


@dataclass(slots=True)
class Fragment:
    """One fragment of a tool call: an element of a list of tool-call deltas."""

    index: int | None = None  # None if the fragment has no index or an unusable index
    index_raw: str | None = None  # the received text of an unusable index
    has_index_key: bool = False  # the fragment has a member `index`, which may be null
    id: str | None = None
    name: str | None = None
    arguments: str | None = None  # may begin or end with half of a surrogate pair
    object_arguments: str | None = None  # the JSON text of arguments that were sent as an object instead of a string
    position: int = 0  # position of the fragment in its list, which has `array_len` fragments
    array_len: int = 1
    legacy: bool = False  # the fragment comes from the legacy member `function_call`
    custom: bool = False  # the tool is free-form (custom): the arguments are plain text
    metadata: str | None = None  # unmodeled members of the fragment, as the text of a JSON object
    misses_arguments: bool = False  # the fragment has no arguments, but an unknown member may contain them


@dataclass(slots=True, frozen=True)
class Address:
    """The ids and indexes that a delta contains to identify its item. An address may be wrong, so the assembler also
    considers other evidence. Dialects that open and close their items use addresses.
    """

    item_id: str | None = None  # id of a Responses output item, or of an AI SDK text or reasoning block
    call_id: str | None = None  # `call_id`, `tool_use` id or `toolCallId`
    index: int | None = None  # `output_index`, or the index of a content block
    sub: int | None = None  # `content_index` or `summary_index` inside the item
    # Item id to report in events, if it differs from the id that links the deltas. The AI SDK numbers its blocks, and
    # sends the item id of the provider separately. The public id is not used to find the item.
    public_id: str | None = None


class CallEnding(Enum):
    """How complete a call is, according to the event that closes the call."""

    WHOLE = auto()
    CUT = auto()  # the call was cut off; it is complete only if its arguments are complete JSON
    OPEN = auto()  # in progress; complete if the response ends with success, otherwise like CUT
    OPEN_OBJECT = auto()  # like OPEN, but success adds the closing brace to the arguments


class ListedPart(NamedTuple):
    """One part in the content list of an item. `address.sub` is the position of the part in the list."""

    item: ItemKind
    address: Address
    channel: Literal["text", "reasoning", "refusal"]
    kind: ReasoningKind
    text: str | None
    annotations: str | None  # the annotations that no earlier event contained, as the text of a JSON array
    metadata: str | None


@dataclass(slots=True)
class Usage:
    """Token counts. A count is None if the gateway did not send it. `raw` is the JSON text of the received usage
    object.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    raw: str | None = None

    def is_blank(self) -> bool:
        """Return True if every count is absent or zero. Counts that are all absent or zero never replace earlier
        counts.
        """
        return not (
            self.input_tokens
            or self.output_tokens
            or self.total_tokens
            or self.cached_input_tokens
            or self.cache_write_tokens
            or self.reasoning_tokens
        )
