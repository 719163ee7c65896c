"""The state of an item: its text-like parts or its one call. This module contains only state and queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.assemble.part.call import MAX_ALIASES
from streamweld._pure.assemble.part.labels import Labels
from streamweld._pure.assemble.part.surrogates import Joiner

if TYPE_CHECKING:
    from streamweld._pure.assemble.part.call import Call
    from streamweld._pure.assemble.part.text import Channel, TextPart
    from streamweld._pure.model.delta import ItemKind
    from streamweld.events import ReasoningKind

__all__ = ["Item", "ItemPart", "LateText"]


class LateText:
    """Text that arrived after its part was closed, held back while it repeats the closed text from its beginning."""

    __slots__ = ("_earlier", "_offset", "_own", "_piece", "label", "length", "sub")

    def __init__(self, earlier: list[str], own: str, label: int | None) -> None:
        """`earlier` and `own`: the closed text, in pieces. `label`: the label that is closed, if others are open."""
        self._earlier = earlier
        self._own = own
        self.label = label
        self.length = 0  # number of characters of the closed text that the late text has repeated
        self.sub: int | None = None  # sub-index of the last delta
        self._piece = 0  # the position of the piece that is repeated next
        self._offset = 0  # offset in this piece

    @property
    def is_whole(self) -> bool:
        """True if the late text has repeated all of the closed text."""
        return self._piece > len(self._earlier)

    def held(self) -> str:
        """Return the late text that has been held back."""
        pieces = self._earlier[: self._piece]
        pieces.append(self._own if self.is_whole else self._at(self._piece)[: self._offset])
        return "".join(pieces)

    def take(self, text: str) -> str | None:
        """Return the rest of the late text that follows the complete closed text, or None if the late text differs.

        An empty string means that all of the text was held back. If the late text differs, nothing changes.
        """
        piece, taken, offset = self._piece, 0, self._offset
        while piece <= len(self._earlier):
            own = self._at(piece)
            size = min(len(own) - offset, len(text) - taken)
            if own[offset : offset + size] != text[taken : taken + size]:
                return None
            taken += size
            offset += size
            if offset < len(own):
                break
            piece, offset = piece + 1, 0
        self._piece, self._offset = piece, offset
        self.length += taken
        return text[taken:]

    def is_in(self, whole: str) -> bool | None:
        """Return whether a complete text contains the late text after the closed text, or None if it does not show
        that.
        """
        end = 0
        for piece in range(len(self._earlier) + 1):
            own = self._at(piece)
            if not whole.startswith(own, end):
                return None
            end += len(own)
        if end == len(whole):
            return False
        return True if len(whole) == end + self.length and whole.endswith(self.held()) else None

    def _at(self, piece: int) -> str:
        return self._earlier[piece] if piece < len(self._earlier) else self._own


class ItemPart:
    """A text-like part of an item that the stream opens and closes explicitly."""

    __slots__ = (
        "again",
        "closed",
        "conflict_reported",
        "earlier",
        "joiner",
        "labels",
        "last_sub",
        "late",
        "late_reported",
        "length",
        "part",
        "repeated",
        "restated",
        "snapshot",
        "sub_is_reliable",
        "sub",
        "value_sub",
        "valued",
    )

    def __init__(self, part: TextPart, sub: int | None, snapshot: str | None) -> None:
        self.part = part
        self.sub = sub
        self.joiner = Joiner()
        self.snapshot = snapshot  # the text in the opening event, kept while deltas may still repeat it
        self.again = 0  # number of characters at the beginning of the snapshot that deltas have repeated
        self.last_sub = sub  # sub-index of the last delta
        self.value_sub = sub  # sub-index of the last event that contained the complete text
        # Two consecutive deltas had the same sub-index, so the stream does not simply number its deltas.
        self.sub_is_reliable = False
        self.valued = False  # the complete text has been received
        self.length = 0  # number of characters of the text
        self.labels = Labels()  # the sub-indexes of the deltas, and the closing texts received for these sub-indexes
        self.closed = False  # the stream closed the part; its closing event may not be emitted before the item ends
        self.restated = False  # a terminal list contains the part
        # The number of characters of the part that the stream has repeated so far. None if the stream does not repeat
        # the part.
        self.repeated: int | None = None
        self.late: LateText | None = None  # text that arrived after the part was closed and that may repeat the part
        self.earlier: list[str] = []  # the texts of the closed parts that this part continues; none is empty
        self.late_reported = False
        self.conflict_reported = False

    def has_sub_index(self, sub: int | None) -> bool:
        """Return True if any event about the part had this sub-index: its opening event, a delta, or an event with its
        complete text.
        """
        return sub in (self.sub, self.last_sub, self.value_sub) or self.labels.has(sub)

    def show(self, text: str) -> None:
        """Append text to the part. No event is emitted."""
        self.part.pieces.append(text)
        self.length += len(text)

    def put(self, text: str) -> None:
        """Replace the text of the part. No event is emitted."""
        self.part.pieces = [text]
        self.length = len(text)
        self.labels.replaced(self.length)

    @property
    def has_pending(self) -> bool:
        """True if the part is open and holds back text.

        A part may hold back half of a surrogate pair, text from its opening event that deltas may repeat, or the text
        of redacted reasoning.
        """
        return self.part.open and bool(self.joiner.held or self.snapshot is not None or self.part.kind == "redacted")


class Item:
    """One item: the unit that the wire format addresses."""

    __slots__ = (
        "_aliases",
        "_unclosed",
        "again_reported",
        "alias_reported",
        "announced",
        "begins_again",
        "call",
        "conflict_reported",
        "ended",
        "first",
        "alias_of",
        "index",
        "item_id",
        "kind",
        "late",
        "late_reported",
        "latest",
        "lists",
        "by_sub_index",
        "number",
        "open",
        "opened_bare",
        "own_text",
        "parts",
        "public_id",
        "repeated_arguments",
        "repeats",
        "restated",
        "snapshot",
        "valued",
    )

    def __init__(self, number: int, kind: ItemKind) -> None:
        self.number = number
        self.kind: ItemKind = kind
        self.item_id: str | None = None  # the first item id received
        self.index: int | None = None  # the first index received
        self.public_id: str | None = None  # the item id that events report, if it differs from `item_id`
        # An opening event announced the item. If false, the item was created for another event that referred to it.
        self.announced = False
        self.opened_bare = False  # the opening event contained no part, so the item has its own closing event
        self.open = True
        self.parts: list[ItemPart] = []
        self.ended = 0  # number of parts that ended before the item was last reopened; they are all closed
        self.late: list[ItemPart] = []  # the parts that may hold late text
        self._unclosed: list[ItemPart] = []  # all open parts, and some closed ones, which are removed only from the end
        # The last part of each channel and reasoning kind and, for each sub-index, the last part that an event with
        # this sub-index addressed.
        self.latest: dict[tuple[Channel, ReasoningKind], ItemPart] = {}
        self.by_sub_index: dict[tuple[Channel, ReasoningKind, int | None], ItemPart] = {}
        self.call: Call | None = None
        self.snapshot: str | None = None  # the arguments in the call's opening event
        # Deltas with argument text have arrived, so the snapshot is used only if it is more complete than their text.
        self.own_text = False
        self.valued = False  # the complete arguments have been received
        # The earlier item whose closed call this item announces again. None once `decide` has decided whether both
        # items have the same call.
        self.first: Item | None = None
        self.alias_of: Item | None = None  # the earlier item, if both turned out to have the same call
        self.repeats = False  # the stream opened the item or one of its parts again
        # The message began again while the item was open, so the next opening event at its index repeats the item.
        self.begins_again = False
        # The number of bytes of the open call's arguments that the stream has repeated so far; None if it does not
        # repeat them.
        self.repeated_arguments: int | None = None
        self.restated = False
        self.again_reported = False
        self.alias_reported = False
        self.late_reported = False
        self.conflict_reported = False
        self.lists = 0  # the number of content lists that have been applied to the item
        self._aliases = 0

    @property
    def emitted_id(self) -> str | None:
        return self.public_id or self.item_id

    def add(self, one: ItemPart) -> None:
        """Add a part and mark it as open."""
        self.parts.append(one)
        self._unclosed.append(one)

    def parts_of(self, channel: Channel, kind: ReasoningKind, *, first: int = 0) -> list[ItemPart]:
        """Return the parts of one channel and kind that were not retracted, from the part at position `first` on."""
        parts = self.parts[first:]
        return [one for one in parts if (one.part.channel, one.part.kind) == (channel, kind) and not one.part.void]

    @property
    def has_open_part(self) -> bool:
        while self._unclosed and not self._unclosed[-1].part.open:
            self._unclosed.pop()
        return bool(self._unclosed)

    def count_alias(self) -> bool:
        """Count one more id of the item. Return False if the item has too many ids.

        An id beyond this limit must not be stored, because a stream may send a new id in every delta.
        """
        self._aliases += 1
        return self._aliases <= MAX_ALIASES
