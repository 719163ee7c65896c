"""State of an output item: its text parts or its one call. Contains only state and queries."""

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

__all__ = ["Item", "ItemPart"]


class ItemPart:
    """A text-like part of an item that the stream opens and closes explicitly."""

    __slots__ = (
        "again",
        "closed",
        "conflict_reported",
        "joiner",
        "labels",
        "last_sub",
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
        self.snapshot = snapshot  # text of the opening event, kept while the deltas may still repeat it
        self.again = 0  # number of characters of the snapshot that the deltas have repeated
        self.last_sub = sub  # sub-index of the last delta
        self.value_sub = sub  # sub-index of the event that last sent the complete text
        self.sub_is_reliable = False  # two consecutive deltas had the same sub-index, so the sub-index is meaningful
        self.valued = False  # the complete text has been received
        self.length = 0  # number of characters of the text
        self.labels = Labels()  # sub-indexes of the deltas
        self.closed = False  # the stream closed the part; its closing event may be delayed until the item ends
        self.restated = False  # a terminal list repeated the part
        # Number of characters that a repetition of the closed part has matched; None: nothing repeats the part.
        self.repeated: int | None = None
        self.late_reported = False
        self.conflict_reported = False

    def is_called(self, sub: int | None) -> bool:
        """Return True if the opening event, a delta or the complete text of the part had this sub-index."""
        return sub in (self.sub, self.last_sub, self.value_sub) or self.labels.has(sub)

    def show(self, text: str) -> None:
        """Append text to the part."""
        self.part.pieces.append(text)
        self.length += len(text)

    def put(self, text: str) -> None:
        """Replace the text of the part."""
        self.part.pieces = [text]
        self.length = len(text)
        self.labels.replaced(self.length)

    @property
    def has_pending(self) -> bool:
        """True if the part is open and holds back text.

        The part may hold back half a surrogate pair, a snapshot that deltas may repeat, or all of its text.
        """
        return self.part.open and bool(self.joiner.held or self.snapshot is not None or self.part.kind == "redacted")


class Item:
    """One output item."""

    __slots__ = (
        "_aliases",
        "_unclosed",
        "again_reported",
        "alias_reported",
        "announced",
        "call",
        "conflict_reported",
        "first",
        "alias_of",
        "index",
        "item_id",
        "kind",
        "late_reported",
        "latest",
        "lists",
        "named",
        "number",
        "open",
        "opened_bare",
        "own_text",
        "parts",
        "public_id",
        "repeats",
        "restated",
        "snapshot",
        "valued",
    )

    def __init__(self, number: int, kind: ItemKind) -> None:
        self.number = number
        self.kind: ItemKind = kind
        self.item_id: str | None = None  # first item id received
        self.index: int | None = None  # first index received
        self.public_id: str | None = None  # item id that is emitted, if it differs from `item_id`
        # The stream opened the item explicitly. Otherwise, the item was created because a delta addressed it.
        self.announced = False
        self.opened_bare = False  # the stream opened the item without a part, so the item has its own closing event
        self.open = True
        self.parts: list[ItemPart] = []
        self._unclosed: list[ItemPart] = []  # all open parts; closed parts are removed only from the end
        # The last part of each channel and kind, and the part that was last opened or extended at each sub-index.
        self.latest: dict[tuple[Channel, ReasoningKind], ItemPart] = {}
        self.named: dict[tuple[Channel, ReasoningKind, int | None], ItemPart] = {}
        self.call: Call | None = None
        self.snapshot: str | None = None  # arguments in the event that opened the call
        self.own_text = False  # the deltas contain the complete arguments; the snapshot is only a fallback
        self.valued = False  # the complete arguments have been received
        # Earlier item whose closed call this item announces again; set until `decide` runs.
        self.first: Item | None = None
        self.alias_of: Item | None = None  # the earlier item, if this item turned out to announce the same call
        self.repeats = False  # the stream opened a part of the closed item again
        self.restated = False
        self.again_reported = False
        self.alias_reported = False
        self.late_reported = False
        self.conflict_reported = False
        self.lists = 0  # number of lists that have been applied to the item's parts
        self._aliases = 0

    @property
    def emitted_id(self) -> str | None:
        return self.public_id or self.item_id

    def add(self, one: ItemPart) -> None:
        """Add a part and mark it as open."""
        self.parts.append(one)
        self._unclosed.append(one)

    def parts_of(self, channel: Channel, kind: ReasoningKind) -> list[ItemPart]:
        """Return the parts of one channel and kind that were not retracted."""
        return [one for one in self.parts if (one.part.channel, one.part.kind) == (channel, kind) and not one.part.void]

    @property
    def has_open_part(self) -> bool:
        while self._unclosed and not self._unclosed[-1].part.open:
            self._unclosed.pop()
        return bool(self._unclosed)

    def count_alias(self) -> bool:
        """Count an additional id of the item; return False if there are too many.

        Limits the memory for a stream with a new id in every delta.
        """
        self._aliases += 1
        return self._aliases <= MAX_ALIASES
