"""Ends an item when the stream closes it, and ends all open items when their choice ends.

`item_text` closes the parts of an item; `item_call` and `close_calls` close tool calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.assemble.late_text import end_late_texts
from streamweld._pure.assemble.part.item_call import end_call, settle_text
from streamweld._pure.assemble.part.item_text import finish_item, report_unfinished_repetitions
from streamweld._pure.assemble.part.reannounced import decide
from streamweld._pure.model.delta import Address

if TYPE_CHECKING:
    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.item import Item

__all__ = ["end_item", "end_items"]


def end_item(state: Choice, item: Item, encrypted_content: str | None, metadata: str | None) -> None:
    """End an item and close its parts or its call, because the stream closed the item."""
    if item.first is not None:
        decide(state, item, Address(item.item_id), closed=True)
    if item.kind == "call":
        state.item_index.close(item)
        if item.call is not None:
            item.call.ended = True
        end_call(state, item)
        if item.call is not None:
            state.shared.out.ended.add(item.call.part)
    else:
        end_late_texts(state, item)
        first = item.ended
        state.item_index.close(item)
        finish_item(state, item, encrypted_content, metadata)
        state.shared.out.ended.update([one.part.part for one in item.parts[first:]])


def end_items(state: Choice, *, ended: bool) -> None:
    """End all open items of a choice that has ended, and close their parts. `ended`: the choice was not truncated.

    The calls of these items are closed later, all together, by `close_calls`.
    """
    for item in state.item_index.filled:
        if item.repeats and not item.open:
            report_unfinished_repetitions(state, item)
    for item in state.item_index.take_late():
        end_late_texts(state, item)
    for item in state.item_index.opened():
        if item.first is not None:
            decide(state, item, Address(item.item_id), closed=False)
        state.item_index.close(item)
        if item.kind == "call":
            settle_text(state, item, ended=ended)
        else:
            finish_item(state, item, None, None, whole=ended)
