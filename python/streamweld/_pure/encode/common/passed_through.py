"""Records which parts of a response passed through unchanged, so that an encoder for the same dialect can continue the
response.

In a conversion to another dialect, nothing passes through and the record stays empty. Each encoder decides how to use
this record.
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
    """Describes the parts, items and events of one stream that passed through."""

    own: bool = False  # the source has the target's dialect, so its ids and indexes stay valid
    # `at` is the wire index of the part that the current start event opens. `index` is the same index, or None if the
    # part needs a new index because content was omitted or inserted. `sub` is the index of the part inside its item.
    at: int | None = None
    index: int | None = None
    sub: int | None = None
    item_id: str | None = None  # id of the part's item, as sent
    members: tuple[int, Raw] | None = None  # unknown members of the start event of the block with this index
    moved: bool = False  # set by the encoder: content was written at a new position
    choices: set[int] = field(default_factory=set[int])  # choices with a part that passed through
    announced: set[int] = field(default_factory=set[int])  # indexes of items whose opening event passed through
    closed: set[int] = field(default_factory=set[int])  # parts whose closing event passed through
    ended: NumberSet = field(default_factory=NumberSet)  # parts of items whose closing event passed through
    finished: set[int] = field(default_factory=set[int])  # choices whose finish reason passed through
    counted: bool = False  # whether the latest token counts passed through; set at the end
    sequence: int | None = 0  # number of the next event; None if the source does not number events
    next_index: int = 0  # one more than the highest index of an item that passed through
    added: Mapping[int, AddedItem] = field(default_factory=dict[int, Any])  # items that the stream opened, by index
    # JSON of the items whose closing event passed through, as sent, by index.
    items: dict[int, Mapping[str, Any]] = field(default_factory=dict[int, Any])
    created: tuple[str | None] | None = None  # id of the response, once the event that opens it passed through
    unopened: bool = False  # the source has no opening event, so one is written before its first event
    payload: bytes = b""  # the payload of the current event
    # How many more bytes of the source's items an encoder may store until the response ends. None means no limit.
    room: int | None = None

    def keeps(self, size: int) -> bool:
        """Return True if an encoder may store `size` more bytes, and count them."""
        if self.room is None:
            return True
        if size > self.room:
            return False
        self.room -= size
        return True
