"""Finds the item that an event refers to, or creates it if no event opened it.

A new item at an index closes the item that was open there, unless more of that item may follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.assemble.late_text import continue_part
from streamweld._pure.assemble.part.item_call import begin_call, note_ids
from streamweld._pure.assemble.part.item_end import end_item
from streamweld._pure.assemble.part.item_text import add_joined_text, open_part
from streamweld._pure.assemble.part.surrogates import Joiner
from streamweld._pure.assemble.resolve.restatement import Restatement

if TYPE_CHECKING:
    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.call import Call
    from streamweld._pure.assemble.part.item import Item, ItemPart
    from streamweld._pure.assemble.part.text import Channel
    from streamweld._pure.model.delta import Address, ItemKind
    from streamweld.events import ReasoningKind

__all__ = [
    "addressed_call",
    "diverged",
    "end_repetition",
    "end_shorter_repetition",
    "fill",
    "item_of_opening",
    "known_item",
    "learn",
    "new_call",
    "new_item",
    "opened",
    "report_late",
    "restatement",
    "split_shorter_repetition",
]


def learn(state: Choice, item: Item, address: Address) -> None:
    """Store the ids of the address that was resolved to the item, so that later events with these ids are resolved to
    it too. Report an unexpected id.
    """
    note_ids(state, item, address, state.item_index.learn(item, address))


def restatement(state: Choice) -> Restatement:
    """Return the lookup tables for matching a terminal list with streamed parts and calls. The first call builds the
    tables.
    """
    if state.restatement is None:
        state.restatement = Restatement(state.item_index)
    return state.restatement


def _make_room(state: Choice, address: Address) -> None:
    """Close the items that are open at the index of the address, to make room for a new one. An item with an item id
    stays open, because later deltas may refer to it by that id.
    """
    if address.index is None:
        return
    for kind in ("message", "reasoning", "call"):
        before = state.item_index.at(kind, address.index)
        if before is None or not before.open or before.item_id is not None:
            continue
        call = before.call
        if call is not None and (before.first is not None or (call.text.unfinished and not call.empty)):
            continue  # a call with incomplete arguments stays open, because more of them may arrive with its call id
        end_item(state, before, None, None)


def new_item(state: Choice, kind: ItemKind, address: Address) -> Item:
    """Create an item, after closing the items that are open at the same index."""
    _make_room(state, address)
    return state.item_index.create(kind, address)


def new_call(state: Choice, address: Address, *, custom: bool, provider_executed: bool) -> Item:
    """Create an item with its call, after closing the items that are open at the same index."""
    _make_room(state, address)
    return _begin_call(state, address, custom=custom, provider_executed=provider_executed)


def _begin_call(state: Choice, address: Address, *, custom: bool, provider_executed: bool) -> Item:
    before = None if address.call_id is None else state.item_index.call_of(address.call_id)
    item = state.item_index.create("call", address)
    call = begin_call(state, item, address, custom=custom, provider_executed=provider_executed)
    if before is not None and before.outcome is None and not before.dropped:
        call.first = before  # the earlier call closes later and keeps its id
    fill(state, item)
    return item


def fill(state: Choice, item: Item) -> None:
    """Add the item to `filled`, the list of items with content, unless the item already has a part."""
    if not item.parts and (item.call is None or item.kind == "call"):
        state.item_index.filled.append(item)


def item_of_opening(state: Choice, kind: ItemKind, address: Address) -> Item:
    """Return the item for a part that an opening event announces, and create the item if necessary."""
    item_index = state.item_index
    item = item_index.by_ids(kind, address)
    if item is not None and (item.open or address.sub is not None):
        learn(state, item, address)
        return item
    bound = item_index.at(kind, address.index)
    if item is None and bound is not None and bound.open and (address.sub is not None or not bound.announced):
        learn(state, bound, address)
        item = bound
    else:
        item = new_item(state, kind, address)
    item.announced = True
    item_index.bind(item, address)
    return item


def known_item(state: Choice, kind: ItemKind, address: Address, item: Item | None) -> Item:
    """Return the item that was found for an event (`item`), after storing the ids of the address in it. Create an item
    if none was found.
    """
    if item is None:
        return state.item_index.create(kind, address)
    learn(state, item, address)
    return item


def addressed_call(state: Choice, address: Address, brings: str | None) -> Item | None:
    """Return the item that a delta of a call refers to. If no item is found and the delta has content (`brings`),
    create the item.
    """
    address = state.item_index.usable(address)
    item = state.item_index.find("call", address, "delta")
    if item is None:
        if not brings:
            return None
        if not state.shared.ids_optional:
            state.shared.out.mark_misread("not_opened")  # the opening event is missing
        return _begin_call(state, address, custom=False, provider_executed=False)
    if brings and item.call is not None and state.item_index.is_guess(address):
        _report_guess(state, item.call)
    learn(state, item, address)
    return item


def _report_guess(state: Choice, call: Call) -> None:
    """Report AM2, at most once per call: the delta was assigned to this call, but may belong to another open call."""
    if "ambiguous_orphan_index" not in call.guess_reported:
        call.guess_reported.add("ambiguous_orphan_index")
        state.shared.out.diagnose("ambiguous_orphan_index", call.part)


def opened(state: Choice, item: Item, channel: Channel, reasoning_kind: ReasoningKind, sub: int | None) -> ItemPart:
    """Open a part for which no opening event arrived."""
    fill(state, item)
    return open_part(state, item, channel, reasoning_kind, sub, None, None)


def diverged(state: Choice, item: Item, one: ItemPart, address: Address) -> tuple[Item, ItemPart]:
    """Open a new part for content that first repeated a part but then differed from it.

    The new part begins with the repeated text. Return the item of the new part, and the part.
    """
    equal, one.repeated = one.part.text()[: one.repeated or 0], None
    if item.item_id is None:
        joiner, one.joiner = one.joiner, Joiner()
        opened_bare = item.opened_bare
        item = new_item(state, item.kind, address)
        item.announced, item.opened_bare = True, opened_bare
        new = opened(state, item, one.part.channel, one.part.kind, address.sub)
        new.joiner = joiner
    else:
        new = continue_part(state, item, one, address.sub)
    if equal:
        add_joined_text(state, item, new, equal, address.sub, None)
    state.update_pending_part(new)
    return item, new


def end_shorter_repetition(state: Choice, address: Address) -> None:
    """End a block that repeated only the beginning of the closed part at its index. The text of the block becomes a new
    part.
    """
    item = state.item_index.repeated_at("message", address) or state.item_index.repeated_at("reasoning", address)
    if item is not None:
        end_repetition(state, item, address)


def end_repetition(state: Choice, item: Item, address: Address) -> None:
    """End the repetition of a closed item. A repeated beginning of a part becomes a new part."""
    for one in list(item.parts):
        if one.repeated is not None and 0 < one.repeated < one.length:
            end_item(state, diverged(state, item, one, address)[0], None, None)
        one.repeated = None
    item.repeats = False


def split_shorter_repetition(state: Choice, item: Item, address: Address) -> Item:
    """Return the item that an event closes. If the event ends the repetition of an open part before it is complete, the
    repeated text becomes a new item.
    """
    for one in item.parts[item.ended :]:
        if one.part.open and one.repeated is not None and 0 < one.repeated < one.length:
            return diverged(state, item, one, address)[0]
    return item


def report_late(state: Choice, item: Item) -> None:
    """Report, at most once per item, that a delta arrived after the item was closed."""
    if not item.late_reported:
        item.late_reported = True
        state.shared.out.diagnose("late_delta")
