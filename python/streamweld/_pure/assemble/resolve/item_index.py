"""Finds the item that the address of an event refers to.

The rules a to f are tried in order. Events always report the first id of an item. Any other id of an address that was
resolved to the item becomes an alias. Every lookup takes constant time.

    a   `item_id` is known, or one half of an id `call|item` is; a call is also found if `item_id` is its call id
    b   `call_id` is the id of a call (if several calls have it, the one that the index is bound to)
    c   `index` is bound to an item of the kind (a closed item is not found for a text delta with an unknown `item_id`)
    d   for a call whose address is unknown: the latest open call, unless an id shows that another call is meant
    e   for text without `item_id` and `index`, or whose `index` is bound to another kind: the latest open item of the
        kind
    f   otherwise, no item is found
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from streamweld._pure.assemble.part.item import Item
from streamweld._pure.assemble.resolve.call_list import CallList
from streamweld._pure.model.delta import Address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamweld._pure.assemble.part.call import Call
    from streamweld._pure.assemble.part.item import ItemPart
    from streamweld._pure.assemble.rule_context import RuleContext
    from streamweld._pure.model.delta import ItemKind

__all__ = ["ItemIndex"]

Purpose = Literal["delta", "close"]

KINDS: tuple[ItemKind, ...] = ("message", "reasoning", "call")


class ItemIndex:
    """The items of one choice and their lookup tables."""

    __slots__ = (
        "_at_index",
        "_by_call",
        "_by_id",
        "_by_index",
        "_count",
        "_earlier",
        "_items",
        "_late",
        "_namesakes",
        "_open",
        "_order",
        "_shared",
        "_since",
        "filled",
        "last_kind",
        "may_repeat",
    )

    def __init__(self, shared: RuleContext) -> None:
        self._shared = shared
        self._count = 0
        self._items: dict[int, Item] = {}  # the open items, by number
        self._order = CallList()  # the numbers of the open items
        self._since = 0  # number of the first item in the current step
        self._open: dict[ItemKind, CallList] = {kind: CallList() for kind in KINDS}
        self._by_id: dict[tuple[ItemKind, str], Item] = {}
        self._by_call: dict[str, Item] = {}
        self._earlier: dict[str, Item] = {}  # entries of `_by_call` from earlier steps; results may arrive later
        self._namesakes: dict[tuple[str, str], Item] = {}  # items of calls whose id was reused, by id and name
        self._by_index: dict[tuple[ItemKind, int], Item] = {}
        self._at_index: dict[int, Item] = {}  # the item, of any kind, that was last bound to each index
        # The items that have a part or a call, in the order in which their first part or call was added.
        self.filled: list[Item] = []
        self._late: list[Item] = []  # the items that may hold late text
        self.last_kind: ItemKind | None = None  # the kind of the item that was created last
        self.may_repeat = False  # the message began again, so blocks may repeat earlier ones at the same index

    @property
    def used(self) -> bool:
        return self._count > 0

    @property
    def all_closed(self) -> bool:
        """True if there is at least one item, all items are closed, and the last one is not reasoning.

        Reasoning alone is not a response.
        """
        return self._count > 0 and not self._items and self.last_kind != "reasoning"

    def usable(self, address: Address) -> Address:
        """Return the address without its unusable values: blank ids, and an index that is negative or exceeds
        `max_tool_index`.
        """
        index, limit = address.index, self._shared.settings.limits.max_tool_index
        if index is not None and (index < 0 or (limit is not None and index > limit)):
            index = None
        usable = Address(
            _present(address.item_id), _present(address.call_id), index, address.sub, _present(address.public_id)
        )
        return address if usable == address else usable

    def create(self, kind: ItemKind, address: Address) -> Item:
        self._shared.count_item()
        item = Item(self._count, kind)
        self._count += 1
        self.last_kind = kind
        self._items[item.number] = item
        self._order.add(item.number)
        self._open[kind].add(item.number)
        # An id that was already in use refers to the new item from now on.
        if address.item_id is not None:
            self._by_id.pop((kind, address.item_id), None)
        if address.call_id is not None:
            before = self._by_call.pop(address.call_id, None)
            if before is not None and before.call is not None:
                self._namesakes[address.call_id, before.call.name] = before
        self.learn(item, address)
        self.bind(item, address)
        return item

    def close(self, item: Item) -> None:
        item.open = False
        self._items.pop(item.number, None)
        self._order.remove(item.number)
        self._open[item.kind].remove(item.number)

    def reopen(self, item: Item) -> None:
        """Open a closed item again, because the stream continues it."""
        item.open = True
        self._items[item.number] = item
        self._order.add(item.number)
        self._open[item.kind].add(item.number)

    def add_late(self, item: Item, one: ItemPart) -> None:
        """Record that the part may hold late text."""
        if not item.late:
            self._late.append(item)
        item.late.append(one)

    def take_late(self) -> list[Item]:
        """Return the items that may hold late text, and forget them."""
        late, self._late = self._late, []
        return late

    def bind(self, item: Item, address: Address) -> None:
        """Bind the index of the address to the item, so that later events with the index refer to it."""
        if address.index is not None:
            if item.index is None:
                item.index = address.index
            self._by_index[item.kind, address.index] = item
            self._at_index[address.index] = item

    def learn(self, item: Item, address: Address) -> str | None:
        """Store the ids of the address that was resolved to the item, so that later events with these ids are resolved
        to it too. Report an unexpected id.

        Return the item id of the address if that id unexpectedly differs from the item's own id, but only once per
        item.
        """
        other = None
        for identity in (address.item_id, address.call_id, address.public_id):
            if identity is not None:
                self._shared.check_id(identity)
        if address.public_id is not None and item.public_id is None:
            item.public_id = address.public_id
            for one in item.parts:
                one.part.item_id = address.public_id
        item_id = address.item_id
        if item_id is not None and (item.kind, item_id) not in self._by_id:
            known_otherwise = item.kind == "call" and (item_id in self._by_call or "|" in item_id)
            if item.item_id is None and not known_otherwise:
                item.item_id = item_id
                self._keep(item, item_id)
            elif item.count_alias():
                self._keep(item, item_id)
                other = None if known_otherwise else item_id
        elif item_id is not None and item.item_id is None:
            item.item_id = item_id
        call_id = address.call_id
        if call_id is not None and item.kind == "call" and call_id not in self._by_call and item.count_alias():
            self._by_call[call_id] = item
        if other is not None and not item.alias_reported:
            item.alias_reported = True
            return other
        return None

    def _keep(self, item: Item, item_id: str) -> None:
        self._by_id[item.kind, item_id] = item
        if item.kind != "call":
            self._shared.spend_text(len(item_id))

    def by_ids(self, kind: ItemKind, address: Address) -> Item | None:
        """Return the item that the ids of the address refer to (rules a and b), or None."""
        found = None
        if address.item_id is not None:
            found = self._by_item_id(kind, address.item_id)
        if found is None and kind == "call" and address.call_id is not None:
            found = self._by_call.get(address.call_id) or self._by_id.get((kind, address.call_id))
            found = found or self._unanswered(address.call_id)
            bound = self.at(kind, address.index)
            if found is not None and bound is not None and bound.call is not None:
                found = bound if bound.call.id == address.call_id else found
        return _resolve_alias(found)

    def _by_item_id(self, kind: ItemKind, item_id: str) -> Item | None:
        found = self._by_id.get((kind, item_id))
        if found is not None or kind != "call":
            return found
        found = self._by_call.get(item_id)
        if found is None and "|" in item_id:
            for half in item_id.split("|", 1):
                found = found or self._by_id.get((kind, half)) or self._by_call.get(half)
        return found

    def _unanswered(self, call_id: str) -> Item | None:
        """Return the item of a call with this id from an earlier step, if the call has no result yet.

        Until the result of a call arrives, the id of the call cannot refer to another call. After the result, a later
        step may reuse the id, because each step is a separate model response.
        """
        item = _resolve_alias(self._earlier.get(call_id))
        call = None if item is None else item.call
        return item if call is not None and not call.dropped and not call.answered else None

    def closing(self, address: Address, name: str | None) -> Item | None:
        """Return the item of the call that a closing event refers to, or None. If several open calls have the id,
        return the one with the given name.
        """
        found = self.find("call", address, "close")
        call = None if found is None else found.call
        if call is None or address.call_id is None or not name or call.name in ("", name):
            return found
        same = self._namesakes.get((address.call_id, name))
        return same if same is not None and same.open else found

    def at(self, kind: ItemKind, index: int | None) -> Item | None:
        """Return the item of this kind to which the index is bound, or None."""
        return None if index is None else _resolve_alias(self._by_index.get((kind, index)))

    def repeated_at(self, kind: ItemKind, address: Address) -> Item | None:
        """Return the closed item at the index, if the message or the item began again and the event may repeat this
        item. An item with an id is never repeated in this way.
        """
        if address.item_id is not None:
            return None
        item = self.at(kind, address.index)
        if item is None or item.open or item.item_id is not None:
            return None
        return item if self.may_repeat or item.repeats else None

    def begin_again(self) -> None:
        """Record that the message began again, so the items that follow may repeat earlier items at the same index."""
        self.may_repeat = True
        for item in self.opened_in_step():
            item.begins_again = item.item_id is None

    def take_begun_again(self, kind: ItemKind, address: Address) -> Item | None:
        """Return the open item at the index, if the message began again since the item was opened and the opening event
        is the first one at this index.
        """
        item = self.at(kind, address.index) if self.may_repeat else None
        if item is None or not item.begins_again:
            return None
        item.begins_again = False
        return item if item.open else None

    def find(self, kind: ItemKind, address: Address, purpose: Purpose) -> Item | None:
        """Return the item that a delta or a closing event refers to (rules a to f)."""
        found = self.by_ids(kind, address)
        if found is not None:
            return found
        bound = self.at(kind, address.index)
        if bound is not None and not _contradicts(bound, address):
            if bound.open or purpose == "close" or address.item_id is None or not bound.announced:
                return bound
            return bound if kind == "call" else None
        if kind == "call":
            return self._latest_call(address, bound)
        if address.item_id is None and (address.index is None or bound is None):
            # Text belongs to the latest open item of its kind if it has no index, or if its index is bound to an item
            # of another kind.
            return self.latest(kind) if address.index is None or address.index in self._at_index else None
        return None

    def _latest_call(self, address: Address, bound: Item | None) -> Item | None:
        latest = self.latest("call")
        if latest is None or bound is not None or _contradicts(latest, address):
            return None
        if address.item_id is not None and (address.index is not None or self._open["call"].count > 1):
            return None
        return latest

    def is_guess(self, address: Address) -> bool:
        """Return True if several calls are open and nothing in the address identifies one of them, so that choosing the
        latest open call is only a guess.
        """
        if address.item_id is not None or address.call_id is not None or self._open["call"].count < 2:
            return False
        return self.at("call", address.index) is None

    def latest(self, kind: ItemKind) -> Item | None:
        """Return the last item of this kind that is still open. Ignores items of earlier steps."""
        number = self._open[kind].last()
        return None if number is None else self._items[number]

    def whatever_at(self, address: Address) -> Item | None:
        """Return the item that a closing event without a kind refers to, or None."""
        for kind in KINDS:
            found = self.by_ids(kind, address)
            if found is not None:
                return found
        if address.index is not None:
            return max(self.open_at(address.index), key=lambda item: item.number, default=None)
        if address.item_id is None and address.call_id is None:
            number = self._order.last()
            return None if number is None else self._items[number]
        return None

    def open_at(self, index: int) -> list[Item]:
        """Return the open items of all kinds to which the index is bound."""
        here = [self.at(kind, index) for kind in KINDS]
        return [item for item in here if item is not None and item.open]

    def call_of(self, call_id: str) -> Call | None:
        """Return the latest call with this id, even if it is from an earlier step. A tool result with the id refers to
        this call.
        """
        item = _resolve_alias(self._by_call.get(call_id) or self._earlier.get(call_id))
        return None if item is None else item.call

    def opened(self) -> Iterator[Item]:
        """Return all open items, in order of creation."""
        return iter(sorted(self._items.values(), key=_number))

    def opened_in_step(self) -> list[Item]:
        """Return the open items of the current step, in order of creation."""
        found: list[Item] = []
        for number in self._order.latest(self._order.count):
            if number < self._since:
                break
            found.append(self._items[number])
        return sorted(found, key=_number)

    def forget(self) -> None:
        """End a step: clear the lookup tables, so that ids and indexes can be reused. Items stay open."""
        self._since = self._count
        self.may_repeat = False
        self._earlier.update(self._by_call)
        for table in (self._by_id, self._by_call, self._namesakes, self._by_index, self._at_index):
            table.clear()
        self._open = {kind: CallList() for kind in KINDS}

    def drop_open(self) -> None:
        """Discard the open items, and clear the lookup tables."""
        self.forget()
        self._items.clear()
        self._late.clear()
        self._order = CallList()

    def start_again(self) -> None:
        """Remove all items and clear all tables, because the response starts again."""
        self.drop_open()
        self._earlier.clear()
        self.filled.clear()
        self._count = 0
        self.last_kind = None


def _number(item: Item) -> int:
    return item.number


def _present(text: str | None) -> str | None:
    return text if text and not text.isspace() else None


def _resolve_alias(item: Item | None) -> Item | None:
    return item if item is None or item.alias_of is None else item.alias_of


def _contradicts(item: Item, address: Address) -> bool:
    """Return True if the item's call has an id, but the address contains a call id that does not belong to this
    call."""
    return (
        item.call is not None
        and item.call.id is not None
        and address.call_id is not None
        and address.call_id != item.call.id
        and address.call_id not in item.call.aliases
    )
