"""Records which parts of a response passed through unchanged, so that an encoder for the same dialect can continue the
response.

The record is empty if another dialect is written, because nothing passes through in that case. Each encoder decides how
to use these facts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streamweld._pure.model.number_set import NumberSet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.json.members import Raw
    from streamweld._pure.model.output import AddedItem

__all__ = ["PassedThrough"]


@dataclass(slots=True)
class PassedThrough:
    """The parts, items and events of one stream that passed through."""

    own: bool = False  # source and target dialect are equal, so the source's ids and indexes stay valid
    # Wire index of the part that the current start event opens, and the index of the part inside its item. The index
    # can be kept as long as nothing was omitted or inserted.
    at: int | None = None
    index: int | None = None
    sub: int | None = None
    item_id: str | None = None  # id of the part's item, as sent
    members: tuple[int, Raw] | None = None  # unknown members at the start of the block with this index
    moved: bool = False  # set by the encoder: an index was already in use, so a part was written at another index
    choices: set[int] = field(default_factory=set[int])  # choices with a part that passed through
    announced: set[int] = field(default_factory=set[int])  # indexes of items whose opening passed through
    closed: set[int] = field(default_factory=set[int])  # parts whose close passed through
    ended: NumberSet = field(default_factory=NumberSet)  # parts of items whose close passed through
    finished: set[int] = field(default_factory=set[int])  # choices whose finish reason passed through
    counted: bool = False  # whether the latest token counts passed through; set at the end
    sequence: int | None = 0  # number of the next event; None if the source does not number events
    next_index: int = 0  # one more than the highest index of an item whose opening or close passed through
    added: Mapping[int, AddedItem] = field(default_factory=dict[int, Any])  # items that the stream opened, by index
    # Items whose close passed through, as sent, by index.
    items: dict[int, Mapping[str, Any]] = field(default_factory=dict[int, Any])
    created: tuple[str | None] | None = None  # id of the response, once the event that opens it passed through
    unopened: bool = False  # the source has no opening, so an opening is written before the source's first event
    payload: bytes = b""  # the payload of the current event
