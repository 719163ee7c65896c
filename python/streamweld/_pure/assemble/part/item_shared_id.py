"""Splits an item if the stream turns out to use one call id for several calls at different indexes (AM3).

`SharedId` collects the text of each index and detects that there were several calls. This module then creates an item
for each additional call. An item is split only if calls have no item id (Anthropic blocks), because an item id would
identify the call.
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

__all__ = ["push_item", "resolve_shared_id", "share_id"]


def share_id(choice: Choice, item: Item, address: Address) -> None:
    """Start to collect the text of each index, because an open call was announced again at a different index."""
    call, index = item.call, address.index
    if call is None or call.index is None or index is None or address.item_id is not None:
        return
    if call.custom or call.complete or choice.item_index.at("call", index) is item:
        return
    if choice.shared.settings.switches.dup_id_parallel_headers != "auto":
        return
    if call.shared_id is None:
        call.shared_id = SharedId(call.index, call.text.data)
    call.shared_id.announce(index)
    call.announced_again |= {call.index, index}  # an overflow (A8) at either index then belongs to a second call


def push_item(choice: Choice, item: Item, text: str, index: int | None) -> None:
    """Append argument text to the call of an item. If the text turns out to belong to a second call, that call becomes
    the item's call.
    """
    call, count = item.call, len(choice.calls)
    if call is None:
        return
    shared_id = call.shared_id
    push_text(choice, call, text, None if shared_id is None else index, header=False, identified=True)
    if len(choice.calls) > count and shared_id is not None and call.shared_id is None:
        _adopt(choice, item, count)
    elif len(choice.calls) > count:
        item.call = choice.calls[-1]
        item.call.provider_executed = call.provider_executed
        call_events.show_start(choice, item.call)


def resolve_shared_id(choice: Choice, item: Item) -> bool:
    """AM3: split the call of an item when the item closes, if its joined text is incomplete but the text of an index is
    a complete object.

    Return True if the call was split.
    """
    call, count = item.call, len(choice.calls)
    if call is None or call.shared_id is None or call.complete or not call.shared_id.divides_in_part():
        return False
    divide(choice, call, call.shared_id)
    _adopt(choice, item, count)
    return True


def _adopt(choice: Choice, item: Item, count: int) -> None:
    """Create an item for each call at position `count` or later in the list of calls. The item has the index of its
    call. Report AM3.
    """
    call = item.call
    if call is None:
        return
    choice.shared.out.diagnose("ambiguous_duplicate_id", call.part)
    for other in choice.calls[count:]:
        own = choice.item_index.create("call", Address(index=other.index))
        own.announced = True
        own.call = other
        other.provider_executed = call.provider_executed
        choice.item_index.filled.append(own)
        call_events.show_start(choice, other)
