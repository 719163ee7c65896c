"""Splits items whose calls share one id: the id of an open call is announced again at a second index (AM3).

`SharedId` collects the text of each index and detects that there were several calls; this module creates items for the
additional calls. This applies only if the index alone addresses a call (Anthropic blocks), because an item id would
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
    """Start to collect the text of each index when an open call is announced again at an unbound index."""
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
    call.announced_again |= {call.index, index}  # an overflow at either index is then treated as a second call


def push_item(choice: Choice, item: Item, text: str, index: int | None) -> None:
    """Append text to the item's call. If the text shows that there are two calls, the item continues with the second
    one.
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
    """Resolve AM3 when a close event arrives for one of the indexes while the joined text is incomplete.

    Return True if the call was split.
    """
    call, count = item.call, len(choice.calls)
    if call is None or call.shared_id is None or call.complete or not call.shared_id.divides_in_part():
        return False
    divide(choice, call, call.shared_id)
    _adopt(choice, item, count)
    return True


def _adopt(choice: Choice, item: Item, count: int) -> None:
    """Create an item for each call from number `count` on, at the index that announced the call."""
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
