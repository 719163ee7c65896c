"""Handles tool calls that the stream opens and closes explicitly: combines opening event, deltas and final value, and
closes the calls.

    opening   its arguments are a snapshot; the deltas repeat it, continue it, or contain other text
    delta     the argument text goes through the rules of `arguments`, as in Chat
    value     the complete arguments replace the streamed text, except that complete streamed arguments are kept if the
              value is a placeholder or not an object
    closing   a call with text, or one that the provider executes, becomes final; any other call stays open until text
              arrives or the choice ends

`reannounced` handles calls that are announced again. The callers determine which call an address refers to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.assemble.lost_beginning import with_beginning
from streamweld._pure.assemble.part import call_events
from streamweld._pure.assemble.part.arguments import ArgumentText
from streamweld._pure.assemble.part.call import MAX_ALIASES
from streamweld._pure.assemble.part.canonical_json import canonical, is_whole
from streamweld._pure.assemble.part.close_calls import close_call, ends_whole, unwrap
from streamweld._pure.assemble.part.item_shared_id import push_item
from streamweld._pure.assemble.part.object_merge import RawMembers
from streamweld._pure.json.automaton import Automaton
from streamweld._pure.json.scanner import replace_lone_surrogates

if TYPE_CHECKING:
    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.call import Call
    from streamweld._pure.assemble.part.item import Item
    from streamweld._pure.model.delta import Address

__all__ = [
    "add_arguments",
    "begin_call",
    "describe",
    "end_call",
    "hold",
    "is_same_or_empty",
    "name_call",
    "note_ids",
    "report_conflict",
    "set_whole_arguments",
    "settle_text",
]

_SHORT = 64  # an empty object is a placeholder only if it has fewer bytes than this


def begin_call(
    choice: Choice, item: Item, address: Address, *, custom: bool, provider_executed: bool, hidden: bool = False
) -> Call:
    """Create the call of an item. `hidden`: the call is created as dropped, because it may be a repetition of an
    earlier call.
    """
    shared = choice.shared
    nameless = address.call_id is None and not shared.ids_optional
    if hidden:
        shared.out.mark_misread("another_call")
    elif nameless:
        shared.out.mark_misread("no_id")
    elif address.call_id is not None and shared.is_used(address.call_id):
        shared.out.mark_misread("id_taken")
    call = choice.create(custom=custom)
    call.item_id = item.emitted_id
    choice.set_first_id(call, address.call_id)
    call.last_id = address.call_id
    call.provider_executed = provider_executed
    if hidden:
        call.dropped = True
    if address.call_id is not None:
        choice.shared.ids_seen.add(address.call_id)
    choice.bind(call, address.index)
    item.call = call
    return call


def describe(choice: Choice, call: Call, *, custom: bool, provider_executed: bool, metadata: str | None) -> None:
    """Store properties of a call. Does nothing if the call is final."""
    if call.outcome is not None:
        return
    call.provider_executed = call.provider_executed or provider_executed
    if custom and not call.custom and call.empty:
        call.custom = True
        call.text = ArgumentText(plain=True)
    if metadata is not None:
        if call.metadata is None:
            call.metadata = RawMembers()
        choice.shared.spend_growth(call.metadata.add(metadata))


def name_call(choice: Choice, call: Call, name: str | None) -> None:
    """Set the name of a call and emit its start event, because the dialect sends each name in one piece.

    If the call already has another name, only report the conflict.
    """
    if name is None or not name or name.isspace():
        return
    choice.shared.check_name(name)
    if not call.name:
        call.name = name
        if not call.dropped:
            call_events.show_start(choice, call)
            call_events.publish(choice, call)
    elif name != call.name and not call.name_conflict_reported:
        call.name_conflict_reported = True
        choice.shared.out.diagnose("name_conflict", call.part, name)


def note_ids(choice: Choice, item: Item, address: Address, other: str | None) -> None:
    """Store in the item's call the ids of an address that was resolved to the item. The first call id becomes the id of
    the call; other ids become aliases.

    `other`: an id that is reported as unstable.
    """
    call = item.call
    if call is None:
        part = item.parts[0].part.part if item.parts else None
        if other is not None:
            choice.shared.out.diagnose("unstable_id", part, other)
        return
    if call.outcome is None:
        if call.item_id is None:
            call.item_id = item.emitted_id
        if call.id is None and address.call_id is not None:
            choice.set_first_id(call, address.call_id)
            call.last_id = address.call_id
            choice.shared.ids_seen.add(address.call_id)
        for identity in (address.item_id, address.call_id):
            if identity is None or identity in (item.item_id, call.item_id) or call.has_id(identity):
                continue
            if len(call.aliases) < MAX_ALIASES and "|" not in identity:
                call.aliases.append(identity)
    if other is not None and not call.dropped:
        choice.shared.out.diagnose("unstable_id", call.part, other)


def hold(choice: Choice, item: Item, arguments: str | None, index: int | None) -> None:
    """Store the arguments in the opening event as a snapshot. If the call already has other arguments, appends them
    instead.
    """
    call = item.call
    if not arguments or call is None or item.valued:
        return
    held = replace_lone_surrogates(arguments)
    if item.snapshot is None and call.empty:
        size = len(held.encode())
        choice.shared.check_piece(size)
        choice.shared.count_arguments(0, size)
        item.snapshot = held
    elif item.snapshot != held and not call.text.data.startswith(held.encode()):
        push_item(choice, item, held, index)


def add_arguments(choice: Choice, item: Item, text: str, index: int | None) -> None:
    """Apply one delta with argument text. Report the delta as late if the call already has its complete arguments."""
    call = item.call
    if call is None or not text:
        return
    if item.valued or call.outcome is not None:
        if not item.late_reported:
            item.late_reported = True
            choice.shared.out.diagnose("late_delta", call.part)
        return
    if call.ended and not item.late_reported:
        item.late_reported = True
        choice.shared.out.diagnose("late_delta", call.part)
    text = _after_repetition(item, call, text)
    if not text:
        return
    held = item.snapshot
    if held is not None and not item.own_text:
        item.own_text = True
        whole = replace_lone_surrogates(text)
        repeated = held.startswith(whole) or whole.startswith(held)
        if not repeated and (call.custom or _goes_on(held, whole)):
            item.snapshot = None
            push_item(choice, item, held, index)
    push_item(choice, item, text, index)


def _after_repetition(item: Item, call: Call, text: str) -> str:
    """Return the text of a delta without the arguments that the delta repeats because the message began again.

    If the delta differs from the arguments, return it with the text that was treated as repeated.
    """
    done = item.repeated_arguments
    if done is None:
        return text
    sent, data = replace_lone_surrogates(text).encode(), call.text.data
    if data.startswith(sent, done):
        item.repeated_arguments = done + len(sent)
        return ""
    item.repeated_arguments = None
    left = len(data) - done
    if len(sent) > left and sent.startswith(bytes(data[done:])):
        return sent[left:].decode()
    return bytes(data[:done]).decode() + text


def _goes_on(held: str, text: str) -> bool:
    """Return True if the snapshot is the beginning of a JSON value and the text continues this value."""
    automaton = Automaton()
    automaton.feed(held.encode())
    return automaton.verdict == "prefix" and automaton.after(text.encode()).verdict != "broken"


def set_whole_arguments(choice: Choice, item: Item, arguments: str | None) -> None:
    """Set the arguments of a call to the complete arguments in a closing event or a terminal list. Report a conflict if
    the streamed arguments differ.
    """
    call = item.call
    if not arguments or call is None:
        return
    payload = replace_lone_surrogates(arguments).encode()
    if call.outcome is not None:
        if not _has_same_arguments(call, payload):
            report_conflict(choice, item)
        return
    if call.raw is not None and _has_no_arguments(payload):
        return  # the call already has no arguments
    choice.shared.check_piece(len(payload))
    if item.snapshot is not None and call.empty and not _is_placeholder(item.snapshot.encode()):
        if not call.custom and _is_placeholder(payload):
            # The opening event contained arguments, but the complete value contains none.
            report_conflict(choice, item)
            return
        item.snapshot = None
    call.joiner.held = ""
    text = call.text
    item.valued = True
    choice.shared.out.closed.add(call.part)
    if bytes(text.data) == payload and not text.overflow:
        return
    if text.complete and not call.custom and not text.overflow:
        weaker = not is_whole(payload) or not payload.lstrip(b" \t\n\r").startswith(b"{")
        if not text.is_placeholder() and (weaker or _is_placeholder(payload)):
            report_conflict(choice, item)
            return
    goes_on = payload.startswith(text.data)
    same = _has_same_arguments(call, payload)
    choice.shared.count_arguments(text.size, len(payload))
    text.replace(payload)
    text.plain = call.custom  # only the type of the call matters, not the earlier text
    if not goes_on:
        call_events.reset(choice, call)
        if not same:
            report_conflict(choice, item)
    call_events.publish(choice, call)


def is_same_or_empty(call: Call, arguments: str | None) -> bool:
    """Return True if the given arguments equal those of the call, or are empty or a placeholder."""
    payload = replace_lone_surrogates(arguments or "").encode()
    return not payload or _has_same_arguments(call, payload) or (not call.custom and _is_placeholder(payload))


def _has_same_arguments(call: Call, payload: bytes) -> bool:
    if bytes(call.text.data) == payload:
        return True
    if call.custom or not call.text.complete or not is_whole(payload):
        return False
    return call.canonical() == canonical(payload.decode())


def _has_no_arguments(payload: bytes) -> bool:
    text = ArgumentText()
    text.replace(payload)
    return text.has_no_arguments()


def _is_placeholder(payload: bytes) -> bool:
    text = ArgumentText()
    text.replace(payload)
    return text.is_placeholder() or (
        len(payload) < _SHORT and is_whole(payload) and canonical(payload.decode()) == "{}"
    )


def report_conflict(choice: Choice, item: Item) -> None:
    if not item.conflict_reported and item.call is not None:
        item.conflict_reported = True
        choice.shared.out.diagnose("conflict", item.call.part)


def settle_text(choice: Choice, item: Item, *, ended: bool) -> None:
    """End the argument text of a call. Use the snapshot if it is more complete than the deltas. `ended`: the input was
    not truncated.
    """
    call, held = item.call, item.snapshot
    if call is None or call.outcome is not None:
        return
    item.snapshot = None
    better = None if held is None else _better(call, held.encode(), ended=ended)
    if better is not None:
        choice.shared.count_arguments(call.text.size, len(better))
        call.text.replace(better)
        call.text.plain = call.custom
        call_events.reset(choice, call)
        call_events.publish(choice, call)


def _better(call: Call, held: bytes, *, ended: bool) -> bytes | None:
    """Return the text to use instead of the text of the deltas: the snapshot, or both joined. Return None if the text
    of the deltas is at least as complete.
    """
    text = call.text
    if call.empty or text.is_blank():
        return held
    if call.custom or text.overflow:
        return None
    if text.complete:
        return held if text.is_placeholder() and not _is_placeholder(held) else None
    if not ended:
        return None
    joined = held + bytes(text.data)
    return joined if is_whole(joined) else held if is_whole(held) else None


def end_call(choice: Choice, item: Item) -> None:
    """Close the call of an item that the stream closed.

    If the arguments are incomplete JSON and no event contained their complete value, more text may follow, so the call
    stays open. The call also stays open if its arguments may lack only their beginning. A call that the provider
    executes closes in any case.
    """
    call = item.call
    if call is None or call.outcome is not None or call.dropped:
        return
    settle_text(choice, item, ended=True)
    goes_on = not item.valued and call.text.unfinished and not call.custom and not ends_whole(call)
    if goes_on and not call.provider_executed:
        return
    if with_beginning(call, choice.shared.settings.tools) is not None:
        return
    if not call.custom and call.text.has_no_arguments():
        unwrap(choice, call)
    # A call that the provider executes closes immediately, because only the provider needs its arguments, and it often
    # has none.
    if call.provider_executed or not call.text.is_blank() or (call.custom and not call.empty):
        close_call(choice, call)
