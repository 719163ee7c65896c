"""What of an answer went out as it was sent, so that an encoder of the same dialect can go on behind it.

Empty where another dialect is written: nothing passes then. Facts only, each said by the core (`Output`) or by the
bytes of a passed event; what is done with them is each encoder's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streamweld._pure.model.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.model.output import AddedItem

__all__ = ["PassedThrough"]


@dataclass(slots=True)
class PassedThrough:
    """One stream's."""

    own: bool = False  # the source speaks the dialect that is written: its ids, indexes and metadata hold
    # Of the part that the Started at hand opens: its index on the wire, and that inside of its item. `index` is the
    # same while nothing was left out or added, and may be kept.
    at: int | None = None
    index: int | None = None
    sub: int | None = None
    item_id: str | None = None  # of its item, as the wire has it
    moved: bool = False  # said by the encoder: a place was another one's already, so something was written at another
    choices: set[int] = field(default_factory=set[int])  # of which something has passed
    announced: set[int] = field(default_factory=set[int])  # indexes of items whose opening has
    standing: int | None = None  # the index of a block that is no part, and whose stop has not
    closed: set[int] = field(default_factory=set[int])  # parts whose close has
    ended: Journal = field(default_factory=Journal)  # parts of items whose close has
    finished: set[int] = field(default_factory=set[int])  # choices whose reason has passed
    counted: bool = False  # the latest token counts have, at the end
    sequence: int | None = 0  # the number of the next event; None where the source numbers none
    behind: int = 0  # the index behind those of all items whose opening or close has
    added: Mapping[int, AddedItem] = field(default_factory=dict[int, Any])  # items that the wire has opened, by index
    items: dict[int, Mapping[str, Any]] = field(default_factory=dict[int, Any])  # closed items by index, as sent
    created: tuple[str | None] | None = None  # the id of the response, where the event that opens it has
    unopened: bool = False  # the source has no opening: one that is written stands before what it sent
    payload: bytes = b""  # what is at hand
