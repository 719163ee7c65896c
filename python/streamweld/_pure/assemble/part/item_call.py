"""Calls that the wire opens and closes: how their text comes together, and their close.

    opening   its arguments are a snapshot: what the deltas repeat, or begin with (the first delta goes on
              with it), or leave out
    deltas    the argument rules of `arguments`, as in Chat
    value     replaces what was streamed, unless it is empty, or {} over real arguments, or no object over one
    close     emits the call if it has text or the provider runs it; else it waits for text or for the end

`reannounced` handles a call that is announced again until it is decided what it is. Does not look up addresses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.assemble.part import call_events
from streamweld._pure.assemble.part.arguments import ArgumentText
from streamweld._pure.assemble.part.call import MAX_ALIASES
from streamweld._pure.assemble.part.canonical_json import canonical, is_whole
from streamweld._pure.assemble.part.close_calls import close_call, unwrap
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
    "name_call",
    "note_ids",
    "say_conflict",
    "says",
    "settle_text",
    "tell_arguments",
]

_SHORT = 64  # bytes of an empty object with white space in it
_LOST = b'{"'  # what a gateway drops when it eats the first fragment


def begin_call(
    choice: Choice, item: Item, address: Address, *, custom: bool, provider_executed: bool, hidden: bool = False
) -> Call:
    """The call of an item. `hidden`: it may turn out to be none."""
    shared = choice.shared
    nameless = address.call_id is None and not shared.ids_optional
    if hidden:
        shared.out.touch("another_call")
    elif nameless:
        shared.out.touch("no_id")
    elif address.call_id is not None and shared.is_used(address.call_id):
        shared.out.touch("id_taken")
    call = choice.create(custom=custom)
    call.item_id = item.told_id
    choice.own(call, address.call_id)
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
    """What the wire says about a call beside its name and text, until the call is told."""
    if call.verdict is not None:
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
    """The protocol sends a name whole: the first holds, and shows the call."""
    if name is None or not name or name.isspace():
        return
    choice.shared.check_name(name)
    if not call.name:
        call.name = name
        if not call.dropped:
            call_events.show_start(choice, call)
            call_events.publish(choice, call)
    elif name != call.name and not call.name_conflict_said:
        call.name_conflict_said = True
        choice.shared.out.diagnose("name_conflict", call.part, name)


def note_ids(choice: Choice, item: Item, address: Address, other: str | None) -> None:
    """Ids that led to the item: the first ones are its own, the others aliases. `other` is news worth telling."""
    call = item.call
    if call is None:
        part = item.parts[0].part.part if item.parts else None
        if other is not None:
            choice.shared.out.diagnose("unstable_id", part, other)
        return
    if call.verdict is None:
        if call.item_id is None:
            call.item_id = item.told_id
        if call.id is None and address.call_id is not None:
            choice.own(call, address.call_id)
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
    """Arguments that the opening carries."""
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
    """One delta of the arguments."""
    call = item.call
    if call is None or not text:
        return
    if item.valued or call.verdict is not None:
        if not item.late_said:
            item.late_said = True
            choice.shared.out.diagnose("late_delta", call.part)
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


def _goes_on(held: str, text: str) -> bool:
    """The text, behind what the opening carried, keeps it JSON."""
    automaton = Automaton()
    automaton.feed(held.encode())
    return automaton.verdict == "prefix" and automaton.after(text.encode()).verdict != "broken"


def tell_arguments(choice: Choice, item: Item, arguments: str | None) -> None:
    """The whole arguments, with authority."""
    call = item.call
    if not arguments or call is None:
        return
    payload = replace_lone_surrogates(arguments).encode()
    if call.verdict is not None:
        if not _says_the_same(call, payload):
            say_conflict(choice, item)
        return
    if call.raw is not None and _says_nothing(payload):
        return  # it was read as no arguments before
    choice.shared.check_piece(len(payload))
    if item.snapshot is not None and call.empty and not _is_placeholder(item.snapshot.encode()):
        if not call.custom and _is_placeholder(payload):
            say_conflict(choice, item)  # a conflict with what the opening carried
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
            say_conflict(choice, item)
            return
    goes_on = payload.startswith(text.data)
    same = _says_the_same(call, payload)
    choice.shared.count_arguments(text.size, len(payload))
    text.replace(payload)
    text.plain = call.custom  # whatever was streamed
    if not goes_on:
        call_events.reset(choice, call)
        if not same:
            say_conflict(choice, item)
    call_events.publish(choice, call)


def says(call: Call, arguments: str | None) -> bool:
    """The arguments are the call's own, or say nothing beside them."""
    payload = replace_lone_surrogates(arguments or "").encode()
    return not payload or _says_the_same(call, payload) or (not call.custom and _is_placeholder(payload))


def _says_the_same(call: Call, payload: bytes) -> bool:
    if bytes(call.text.data) == payload:
        return True
    if call.custom or not call.text.complete or not is_whole(payload):
        return False
    return call.canonical() == canonical(payload.decode())


def _says_nothing(payload: bytes) -> bool:
    text = ArgumentText()
    text.replace(payload)
    return text.says_nothing()


def _is_placeholder(payload: bytes) -> bool:
    text = ArgumentText()
    text.replace(payload)
    return text.is_placeholder() or (
        len(payload) < _SHORT and is_whole(payload) and canonical(payload.decode()) == "{}"
    )


def say_conflict(choice: Choice, item: Item) -> None:
    if not item.conflict_said and item.call is not None:
        item.conflict_said = True
        choice.shared.out.diagnose("conflict", item.call.part)


def settle_text(choice: Choice, item: Item, *, ended: bool) -> None:
    """No more text: what the opening carried counts where the deltas came to nothing, and what was lost is put back."""
    call, held = item.call, item.snapshot
    if call is None or call.verdict is not None:
        return
    text = call.text
    item.snapshot = None
    better = None if held is None else _better(call, held.encode(), ended=ended)
    if better is not None:
        _replace(choice, call, better)
        return
    if ended and not call.custom and text.automaton.verdict == "broken" and not text.overflow:
        restored = _LOST + bytes(text.data)
        automaton = Automaton()
        if automaton.feed(restored) == "complete" and automaton.root == "object":
            choice.shared.out.diagnose("args_restored", call.part)
            _replace(choice, call, restored)


def _better(call: Call, held: bytes, *, ended: bool) -> bytes | None:
    """The opening's arguments, or what they are together with the deltas, where the deltas alone are worth less."""
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


def _replace(choice: Choice, call: Call, data: bytes) -> None:
    choice.shared.count_arguments(call.text.size, len(data))
    call.text.replace(data)
    call.text.plain = call.custom
    call_events.reset(choice, call)
    call_events.publish(choice, call)


def end_call(choice: Choice, item: Item) -> None:
    """The wire closes the call: it is told, if there is anything to tell."""
    call = item.call
    if call is None or call.verdict is not None or call.dropped:
        return
    settle_text(choice, item, ended=True)
    if not call.custom and call.text.says_nothing():
        unwrap(choice, call)
    # Nobody but the provider needs the arguments of its own calls, and many have none: no text is waited for.
    if call.provider_executed or not call.text.is_blank() or (call.custom and not call.empty):
        close_call(choice, call)
