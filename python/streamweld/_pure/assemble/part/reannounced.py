"""Handles tool calls that are announced again, and decides whether this means the same call or a second call.

- If the earlier call is still open, the announcement means the same call: its ids become aliases, and its text goes
  through the argument rules. An overflow (A8) is a second call.
- If the earlier call is closed, the new text is collected without events until the item closes or the choice ends. A
  first call without text gets this text, and so does a first call with unfinished arguments that the text continues or
  repeats. The announcement means the same call if no new text arrived, or if the names and arguments are equal. In
  every other case, the announcement means a second call.

An event with the same id but another name always belongs to a second call, unless it closes an open call with that
name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.assemble.part import call_events
from streamweld._pure.assemble.part.item_call import (
    begin_call,
    end_call,
    is_same_or_empty,
    name_call,
    report_conflict,
    settle_text,
)
from streamweld._pure.model.delta import Address

if TYPE_CHECKING:
    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.call import Call
    from streamweld._pure.assemble.part.item import Item
    from streamweld._pure.assemble.resolve.item_index import ItemIndex

__all__ = ["decide", "is_another", "is_close_under_another_id", "is_closed", "is_own_close", "rename_call"]
__all__ += ["begin_reannounced", "report_reannounced"]


def is_another(call: Call, address: Address, name: str | None) -> bool:
    """Return True if the event is about a different call from `call`.

    The calls differ if their names differ, or if their ids differ and the arguments of `call` are complete.
    """
    if name is not None and call.name and name != call.name:
        return True
    other_id = address.call_id is not None and call.id is not None and not call.has_id(address.call_id)
    return other_id and (call.outcome is not None or call.complete)


def is_own_close(item: Item, call: Call, address: Address) -> bool:
    """Return True if a closing event with this address closes the open call of the item. The call ids must be equal or,
    if one is missing, the item ids. The name of the call does not matter.

    The AI SDK may rename a call between its opening and closing events, when it repairs the call.
    """
    if not item.open or call.outcome is not None:
        return False
    if address.call_id is not None and call.id is not None:
        return call.has_id(address.call_id)
    return address.item_id is not None and address.item_id == item.item_id


def is_close_under_another_id(
    item_index: ItemIndex, item: Item, address: Address, name: str | None, arguments: str | None
) -> bool:
    """Return True if a closing event has the item id, name and arguments of the item's open call, but a call id that no
    call has.
    """
    call = item.call
    if call is None or not item.open or call.outcome is not None:
        return False
    its_own = address.item_id is not None and address.item_id == item.item_id and name == call.name
    unknown = address.call_id is None or item_index.call_of(address.call_id) is None
    return its_own and unknown and not call.empty and bool(arguments) and is_same_or_empty(call, arguments)


def rename_call(choice: Choice, item: Item, name: str | None) -> None:
    """Replace the name of a call with the name in its closing event, and report a conflict if the two names differ."""
    call = item.call
    if call is None:
        return
    if name and call.name and name != call.name:
        choice.shared.check_name(name)
        call.name = name
        report_conflict(choice, item)
    else:
        name_call(choice, call, name)


def is_closed(item: Item) -> bool:
    """Return True if the item is closed or its call is final."""
    return not item.open or (item.call is not None and item.call.outcome is not None)


def report_reannounced(choice: Choice, item: Item, address: Address) -> None:
    """Report, at most once per item, that the item's call was announced again."""
    if item.call is None:
        return
    item.call.announced_again.add(None)  # an overflow (A8) then belongs to a second call
    if item.again_reported:
        return
    item.again_reported = True
    detail = address.item_id or ("" if address.index is None else str(address.index))
    choice.shared.out.diagnose("announced_again", item.call.part, detail)


def begin_reannounced(
    choice: Choice, item: Item, first: Item, address: Address, *, custom: bool, provider_executed: bool
) -> None:
    """Create a call for a new item that announces the closed call of the item `first` again.

    The new call is not emitted before `decide` has decided whether it is another call.
    """
    item.first = first
    item.announced = True
    begin_call(choice, item, address, custom=custom, provider_executed=provider_executed, hidden=True)


def decide(choice: Choice, item: Item, address: Address, *, closed: bool) -> None:
    """Decide whether an item that announced an earlier call again contains the same call or another one.

    Called when the item closes (`closed`) or the choice ends. At the end of the choice, `close_calls` closes the calls.
    """
    first, call = item.first, item.call
    if first is None or call is None or first.call is None:
        return
    item.first = None
    earlier = first.call
    if item.snapshot is None and _goes_on(choice, first, earlier, item, call):
        item.alias_of = first
        if closed:
            end_call(choice, first)
        return
    settle_text(choice, item, ended=True)
    empty = not call.text.data if call.custom else call.text.has_no_arguments()
    if not empty and earlier.outcome is None and earlier.text.is_blank():
        # The first call has no text yet, so it gets this text.
        earlier.text.replace(call.text.data)
        call_events.publish(choice, earlier)
        item.alias_of = first
        report_reannounced(choice, first, address)
        if closed:
            end_call(choice, first)
        return
    if empty or (call.name in ("", earlier.name) and _same(earlier, call)):
        item.alias_of = first
        report_reannounced(choice, first, address)
        return
    call.dropped = False
    if earlier.outcome is None:
        call.first = earlier  # the earlier call closes later and keeps its id
    name_call(choice, call, earlier.name)
    call_events.show_start(choice, call)
    call_events.publish(choice, call)


def _goes_on(choice: Choice, first: Item, earlier: Call, item: Item, later: Call) -> bool:
    """Give the text of a later item to an earlier call with unfinished arguments if the text continues or repeats them.
    Return False if the text does neither.

    Some gateways send every fragment in a separate item. The rules A2 to A8 do not apply to a whole item.
    """
    # Read alone, the rest of an object may be a complete value and overflow: `[0]` and `}`.
    piece, text = bytes(later.text.data + later.text.overflow), earlier.text
    if earlier.outcome is not None or earlier.custom or text.empty or not text.unfinished:
        return False
    if not piece or later.name not in ("", earlier.name):
        return False
    if any(call.joiner.held or call.merge is not None for call in (earlier, later)):
        return False
    goes_on = text.accepts(piece)
    is_json = not later.text.overflow and later.text.automaton.verdict != "broken"
    if not goes_on and not (is_json and piece.startswith(text.data)):
        return False
    # The text was counted when the later item received it.
    size = text.size + later.text.size
    if goes_on:
        text.append(piece)
    else:
        text.replace(piece)
        choice.shared.out.diagnose("args_restart", earlier.part)
    choice.shared.count_arguments(size, text.size)
    call_events.reset(choice, earlier)
    call_events.publish(choice, earlier)
    report_reannounced(choice, first, Address(item.item_id, index=item.index))
    return True


def _same(one: Call, other: Call) -> bool:
    if one.custom == other.custom and one.text.data == other.text.data:
        return True
    if not (one.complete and other.complete) or one.custom or other.custom:
        return False
    return one.canonical() == other.canonical()
