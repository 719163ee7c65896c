"""AM3 among items: the id of an open call is announced at a second index. One call, or two that share an id?

`fork` collects what each index brings, and tells when they were two; here the further ones get items of their own. Only
where nothing but the index addresses a call (Anthropic blocks): an item id says itself which one is meant. It knows
items and calls, and no rule of their text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.assemble.part import call_events
from streamweld._pure.assemble.part.shared_id import SharedId
from streamweld._pure.assemble.resolve.route_fragment import divide, push_text
from streamweld._pure.model.delta import Address

if TYPE_CHECKING:
    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.item import Item

__all__ = ["fork_item", "push_item", "settle_fork"]


def fork_item(choice: Choice, item: Item, address: Address) -> None:
    """An open call is announced at an index that does not mean it yet."""
    call, index = item.call, address.index
    if call is None or call.index is None or index is None or address.item_id is not None:
        return
    if call.custom or call.complete or choice.book.at("call", index) is item:
        return
    if choice.shared.settings.switches.dup_id_parallel_headers != "auto":
        return
    if call.fork is None:
        call.fork = SharedId(call.index, call.text.data)
    call.fork.announce(index)
    call.announced_again |= {call.index, index}  # an overflow at either is a second call


def push_item(choice: Choice, item: Item, text: str, index: int | None) -> None:
    """Text for the item's call. If it was two calls all along, the second one is the item's from here on."""
    call, count = item.call, len(choice.calls)
    if call is None:
        return
    fork = call.fork
    push_text(choice, call, text, None if fork is None else index, header=False, identified=True)
    if len(choice.calls) > count and fork is not None and call.fork is None:
        _adopt(choice, item, count)
    elif len(choice.calls) > count:
        item.call = choice.calls[-1]
        item.call.provider_executed = call.provider_executed
        call_events.show_start(choice, item.call)


def settle_fork(choice: Choice, item: Item) -> bool:
    """The wire closes one of the indexes: whether they were several, as the joined text is nothing whole by then."""
    call, count = item.call, len(choice.calls)
    if call is None or call.fork is None or call.complete or not call.fork.divides_in_part():
        return False
    divide(choice, call, call.fork)
    _adopt(choice, item, count)
    return True


def _adopt(choice: Choice, item: Item, count: int) -> None:
    """The calls from there on get items of their own, at the indexes that announced them."""
    call = item.call
    if call is None:
        return
    choice.shared.out.diagnose("ambiguous_duplicate_id", call.part)
    for other in choice.calls[count:]:
        own = choice.book.create("call", Address(index=other.index))
        own.announced = True
        own.call = other
        other.provider_executed = call.provider_executed
        choice.book.filled.append(own)
        call_events.show_start(choice, other)
