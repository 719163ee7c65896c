"""Applies a tool-call fragment to the call that it belongs to, as decided by `by_evidence`: opens and names calls, and
appends text.

`call_events` emits the events. This module decides only the cases in which the argument text shows that a fragment
belongs to another call: R1g, AM3 and an overflow (A8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from streamweld._pure.assemble.choice import LEGACY_INDEX
from streamweld._pure.assemble.part import call_events
from streamweld._pure.assemble.part.arguments import Change
from streamweld._pure.assemble.part.call import MAX_ALIASES
from streamweld._pure.assemble.part.object_merge import ObjectMerge, RawMembers
from streamweld._pure.assemble.part.shared_id import SharedId
from streamweld._pure.assemble.resolve.by_evidence import decide, guess, relation_of
from streamweld._pure.assemble.resolve.decision import Decision, Incoming, Resolution
from streamweld._pure.assemble.resolve.names import relate
from streamweld._pure.json.scanner import replace_lone_surrogates
from streamweld.errors import LimitExceeded

if TYPE_CHECKING:
    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.call import Call
    from streamweld._pure.assemble.resolve.names import Progress
    from streamweld._pure.model.delta import Fragment

_MAX_POSITIONS = 4096  # R3c3: the number of list positions for which the last call is stored

__all__ = [
    "append_to_arguments",
    "close_shared_id",
    "divide",
    "open_call",
    "push_text",
    "take_fragment",
    "take_id",
    "take_name",
]


def take_fragment(choice: Choice, fragment: Fragment) -> None:
    """Apply one tool-call fragment from the wire to the choice."""
    index, unusable = _usable_index(choice, fragment)
    text = fragment.arguments or ""
    identity = _present(fragment.id)
    name = _present(fragment.name)
    if identity is None and name is None and not text and fragment.object_arguments is None:
        if fragment.metadata is None:
            return  # the fragment is empty
    elif index is not None and text and fragment.object_arguments is None and fragment.metadata is None:
        bound = choice.by_index.get(index)
        finished = choice.finish.raw is not None
        if bound is not None and not (fragment.custom or finished) and _continues(bound, identity, name):
            # The fast path handles the next piece of a call in progress (R1a, R3a1, A1).
            choice.textual.close_open()
            _record_position(choice, bound, fragment.position, fragment.array_len)
            _check_order(choice, bound)
            choice.latest = bound
            if identity is not None or name is not None:
                choice.shared.out.mark_misread("header_again")  # clients concatenate a repeated id or name
            call_events.flush_unstarted(choice, by_call=True)
            push_text(choice, bound, text, index, header=name is not None, identified=identity is not None)
            return
    if identity is not None:
        choice.shared.check_id(identity)
    if name is not None:
        choice.shared.check_name(name)
    is_object = fragment.object_arguments is not None
    shown = fragment.object_arguments if fragment.object_arguments is not None else text
    incoming = Incoming(
        index,
        identity,
        name,
        replace_lone_surrogates(shown).encode(),
        is_object=is_object,
        custom=fragment.custom,
        position=fragment.position,
        array_len=fragment.array_len,
    )
    call = route(choice, incoming, text)
    if call is None:
        if fragment.metadata is not None:
            choice.shared.spend_growth(choice.metadata.add(fragment.metadata))
        return
    call.misses_arguments |= fragment.misses_arguments
    if fragment.metadata is not None:
        if call.metadata is None:
            call.metadata = RawMembers()
        choice.shared.spend_growth(call.metadata.add(fragment.metadata))
    if index is None and not call.index_reported:
        call.index_reported = True
        code = "index_missing" if unusable is None else "index_unusable"
        choice.shared.out.diagnose(code, call.part, unusable or "")


def route(choice: Choice, incoming: Incoming, text: str) -> Call | None:
    """Apply the fragment to its call and return the call, or return None if the fragment belongs to no call. Open the
    call if necessary.

    `text`: the payload with its surrogate halves, unless the payload is an object.
    """
    decision = decide(choice, incoming)
    if decision.resolution is Resolution.IGNORE:
        return None
    choice.textual.close_open()
    call = decision.call
    _check_order(choice, call)
    if call is None:
        call = open_call(choice, incoming, decision)
    else:
        if incoming.payload:
            call.settle_type(custom=incoming.custom)
        if _means_another(choice, call, incoming):
            choice.shared.out.mark_misread("header_again" if incoming.id or incoming.name else "other_index")
        _address(choice, call, incoming)
        if decision.note is not None:
            _report_guess(choice, call, decision.note)
        if call.pending_ambiguity is not None and incoming.id is None and incoming.payload:
            _report_guess(choice, call, call.pending_ambiguity)
            call.pending_ambiguity = None
    _record_position(choice, call, incoming.position, incoming.array_len)
    if decision.resolution is Resolution.DROP:
        call.text.replayed = 0
        choice.shared.out.diagnose("args_replay_dropped", call.part)
    elif decision.resolution is Resolution.REPLAY:
        call.text.begin_replay(incoming.payload)
        choice.shared.out.mark_misread("args_again")
    elif incoming.is_object:
        choice.shared.out.mark_misread("args_object")  # clients expect text
        push_object(choice, call, incoming)
    elif text:
        if call.displaced_empty and call.empty and decision.rule not in ("R1a", "R1f"):
            # AM1: only the order of the calls indicates that the text belongs to this call, whose index was taken.
            call.displaced_empty = False
            choice.shared.out.diagnose("ambiguous_same_index", call.part)
        header, identified = incoming.name is not None, incoming.id is not None
        push_text(choice, call, text, incoming.index, header=header, identified=identified)
    call.late = call.late or choice.finish.raw is not None
    choice.track(call)
    return call


def _check_order(choice: Choice, call: Call | None) -> None:
    """Mark the payload as misread if clients do not expect the fragment at this point. `call`: the call of the
    fragment, or None if the fragment opens a call.

    openai-python parses the arguments of a call when a fragment with another index or the finish reason arrives.
    """
    is_finished = choice.finish.raw is not None
    if (is_finished or choice.latest is not call) and choice.has_cut_call:
        choice.shared.out.mark_misread("calls_after_finish" if is_finished else "calls_mixed")


def _means_another(choice: Choice, call: Call, incoming: Incoming) -> bool:
    """Return True if clients would assign the fragment to another call, or would append its id or name to the id or
    name that they already have.

    Clients identify a call by its index alone.
    """
    if incoming.index is None or incoming.index != call.index or incoming.id is not None:
        return True
    return incoming.name is not None and relation_of(choice, call, incoming.name, incoming.payload) != "fragment"


def _record_position(choice: Choice, call: Call, position: int, array_len: int) -> None:
    """R3c3: store the call of a fragment by the fragment's position, if its list has several fragments."""
    if array_len > 1 and position < _MAX_POSITIONS:
        choice.multi[position] = call


def _report_guess(choice: Choice, call: Call, code: str) -> None:
    """Report an ambiguity, unless it has already been reported for this call."""
    if code in call.guess_reported:
        return
    call.guess_reported.add(code)
    choice.shared.out.diagnose(code, call.part)
    if code == "ambiguous_orphan_index":
        choice.mark_ambiguous(call, code)


def push_text(choice: Choice, call: Call, text: str, index: int | None, *, header: bool, identified: bool) -> None:
    """Append one piece of argument text to a call. Joins surrogate halves that arrive in two pieces."""
    piece = call.joiner.push(text).encode()
    if call.joiner.divides:
        choice.shared.out.mark_misread("half_character")
    if call.joiner.lone:
        choice.shared.out.diagnose("lone_surrogate", call.part)
    if piece:
        append_to_arguments(choice, call, piece, index, header=header, identified=identified)


def append_to_arguments(
    choice: Choice, call: Call, piece: bytes, index: int | None, *, header: bool, identified: bool
) -> None:
    """Append bytes to the arguments of a call. Bytes that belong to another call are appended to that call."""
    siblings: list[Call] = []
    # After each complete JSON value in the piece, the remaining bytes may belong to another call.
    spill = _give_one(choice, call, piece, index, header=header, identified=identified)
    while spill is not None:
        if spill.is_sibling:
            siblings.append(spill.call)
        known = spill.is_sibling
        spill = _give_one(choice, spill.call, spill.piece, index, header=known, identified=known)
    for sibling in reversed(siblings):
        choice.track(sibling)


class _OverflowBytes(NamedTuple):
    """Bytes that belong to another call."""

    call: Call
    piece: bytes
    is_sibling: bool  # the call was created for these bytes


def _give_one(
    choice: Choice, call: Call, piece: bytes, index: int | None, *, header: bool, identified: bool
) -> _OverflowBytes | None:
    shared = choice.shared
    shared_id = call.shared_id
    if shared_id is not None:
        shared_id.add(index, piece)
        if shared_id.divides() and not call.text.accepts(piece):
            divide(choice, call, shared_id)
            return None
    if call.merge is not None:
        before = call.merge.size
        call.settle_merge()
        shared.count_arguments(before, call.text.size)
    call.object_arguments = False
    text = call.text
    size = text.size
    shared.check_piece(len(piece))
    push = text.push(piece, header=header or index in call.announced_again)
    _count(choice, call, size)
    if push.change is Change.OVERFLOW:
        call_events.publish(choice, call)
        choice.track(call)
        return _overflow(choice, call, push.spill, index, identified=identified or header)
    if push.code is not None:
        shared.out.diagnose(push.code, call.part)
    if push.change is Change.REPLACED:
        call_events.reset(choice, call)
    if not text.empty:
        call.tentative = False
    call_events.publish(choice, call)
    choice.track(call)
    return None


def _count(choice: Choice, call: Call, before: int) -> None:
    """Count the bytes that were added to the call's arguments, which had `before` bytes. If a limit is exceeded, remove
    the added bytes and raise.
    """
    try:
        choice.shared.count_arguments(before, call.text.size)
    except LimitExceeded:
        call.text.undo(before)
        raise


def divide(choice: Choice, call: Call, shared_id: SharedId) -> None:
    """AM3: split the call into several calls, one for each index at which its id was announced."""
    texts = shared_id.texts()
    shared_id.close()
    call.shared_id = None
    shared = choice.shared
    for position, (index, own) in enumerate(texts):
        if position == 0:
            size = call.text.size
            call.text.replace(own)
            shared.count_arguments(size, len(own))
            call_events.reset(choice, call)
            call.indexes = {index}
            choice.by_index[index] = call
            call_events.publish(choice, call)
            choice.track(call)
            continue
        if choice.by_index.get(index) is call:
            del choice.by_index[index]  # only the other call ever had this index, so no index moves between calls
        other = _sibling(choice, call, index)
        choice.set_first_id(other, call.id)
        other.last_id = call.id
        other.first = call
        if own:
            append_to_arguments(choice, other, own, index, header=True, identified=True)
        else:
            other.tentative = True
        choice.track(other)
    if call.id is not None:
        choice.by_id[call.id] = choice.calls[-1]


def close_shared_id(choice: Choice, call: Call) -> None:
    """AM3: split the call when it closes, if its joined text is not complete but the text of each index is a complete
    object.
    """
    shared_id = call.shared_id
    if shared_id is not None and not call.complete and shared_id.divides_whole():
        divide(choice, call, shared_id)
    call.shared_id = None


def _usable_index(choice: Choice, fragment: Fragment) -> tuple[int | None, str | None]:
    """Return the index of the fragment, or None if it is missing or exceeds `max_tool_index`. The second value is the
    text of an unusable index.
    """
    if fragment.legacy:
        return LEGACY_INDEX, None
    index = fragment.index
    if index is None:
        return None, fragment.index_raw
    limit = choice.shared.settings.limits.max_tool_index
    if index < 0 or (limit is not None and index > limit):
        return None, str(index)
    return index, None


def _present(text: str | None) -> str | None:
    """Return the id or name, or None if it contains only whitespace."""
    return text if text and not text.isspace() else None


def _continues(bound: Call, identity: str | None, name: str | None) -> bool:
    """Return True if the fast path applies: the call has incomplete arguments, and the fragment has no id or name that
    differs from the call's.
    """
    return (
        bound.text.unfinished
        and not bound.empty
        and bound.shared_id is None
        and bound.pending_ambiguity is None
        and bound.merge is None
        and (identity is None or (identity == bound.id and not bound.id_changed))
        and (name is None or name == bound.name)
        and bound.name != ""
    )


def open_call(choice: Choice, incoming: Incoming, decision: Decision) -> Call:
    if incoming.index is not None:
        displaced = choice.by_index.get(incoming.index)
        if displaced is not None and displaced.id is None:
            choice.remember(displaced, incoming.index)
    first = None
    if incoming.id is not None:
        first = choice.by_id.get(incoming.id)
        if first is not None:
            choice.remember(first, incoming.id)
    before = None if incoming.index is None else choice.by_index.get(incoming.index)
    taken = incoming.id is not None and choice.shared.is_used(incoming.id)
    if before is not None or taken or decision.tentative or not (incoming.id and incoming.name):
        # Clients would add this fragment to another call, or read it as a call for which they cannot send a result.
        why = "no_name" if incoming.id else "no_id"
        choice.shared.out.mark_misread("index_taken" if before is not None else "id_taken" if taken else why)
    call = choice.create(custom=incoming.custom)
    if before is not None and before.text.unfinished and not (before.empty or before.dropped):
        call.pending_ambiguity = "ambiguous_same_index"  # the fragment takes the index of a call in progress
    call.tentative = decision.tentative and choice.shared.settings.switches.dup_id_empty_header == "drop"
    if decision.displaced_empty is not None:
        decision.displaced_empty.displaced_empty = True
    if incoming.id is not None:
        choice.set_first_id(call, incoming.id)
        call.last_id = incoming.id
        call.first = first
        choice.by_id[incoming.id] = call
        choice.shared.ids_seen.add(incoming.id)
    if incoming.name is not None:
        call.name = incoming.name
        if not call.tentative:
            call_events.named(choice, call)
    else:
        choice.unnamed.append(call)
    choice.bind(call, incoming.index)
    return call


def _sibling(choice: Choice, call: Call, index: int | None) -> Call:
    """Open another call with the same name and type as this call."""
    call_events.flush_unstarted(choice)
    choice.shared.out.mark_misread("another_call")
    other = choice.create(custom=call.custom)
    other.name = call.name
    call_events.named(choice, other)
    choice.bind(other, index)
    return other


def _address(choice: Choice, call: Call, incoming: Incoming) -> None:
    """Apply the id, name and index of a fragment to the existing call that it belongs to."""
    take_id(choice, call, incoming.id)
    repeated = incoming.name is not None and incoming.name == call.name
    if incoming.name is not None and not repeated:
        take_name(choice, call, incoming.name, call.progress(incoming.payload))
    if repeated and not incoming.payload and call.complete:
        call.announced_again.add(incoming.index)
    index = incoming.index
    if (
        repeated
        and index is not None
        and incoming.id is not None
        and index not in choice.by_index
        and call.index is not None
        and not call.complete
        and not call.custom
    ):
        _start_shared_id(choice, call, index)
    choice.bind(call, index)


def _start_shared_id(choice: Choice, call: Call, index: int) -> None:
    """AM3: record that the id of a call with incomplete arguments was announced at a second index. From now on, the
    text of each index is collected.
    """
    if choice.shared.settings.switches.dup_id_parallel_headers != "auto" or call.index is None:
        call.announced_again.add(index)
        return
    if call.shared_id is None:
        call.shared_id = SharedId(call.index, call.text.data)
        choice.shared.out.diagnose("ambiguous_duplicate_id", call.part)
    call.shared_id.announce(index)
    call.announced_again.add(index)


def take_id(choice: Choice, call: Call, identity: str | None) -> None:
    if identity is None:
        return
    if identity == call.id:
        call.last_id = identity
        return
    if call.id is None:
        choice.set_first_id(call, identity)
    elif identity not in call.aliases:
        call.id_changed = True
        if len(call.aliases) == MAX_ALIASES:
            call.last_id = identity
            return
        call.aliases.append(identity)
        choice.shared.out.diagnose("unstable_id", call.part, identity)
    call.last_id = identity
    choice.by_id[identity] = call
    choice.shared.ids_seen.add(identity)


def take_name(choice: Choice, call: Call, name: str, progress: Progress) -> None:
    relation = relate(call.name, name, choice.shared.settings.tools, progress)
    if relation in ("late", "grows"):
        if call.name == "":
            call.name = name
            call_events.named(choice, call)
        else:
            call.name = name
            choice.shared.out.mark_misread("name_in_pieces")  # clients concatenate all pieces, or use only the last
    elif relation == "fragment":
        call.name += name
        choice.joins_names = True
        choice.shared.check_name(call.name)
        choice.shared.out.mark_misread("name_in_pieces")  # clients concatenate all pieces, or use only the last
        # A name that begins like a tool's name is checked against the tool list when it is complete.
        call.doubtful_piece = name if choice.shared.settings.tools.begins(call.name) else None
        if call.doubtful_piece is None:
            choice.shared.out.diagnose("name_joined", call.part, name)
    elif relation == "other" and not call.name_conflict_reported:
        call.name_conflict_reported = True
        choice.shared.out.diagnose("name_conflict", call.part, name)


def push_object(choice: Choice, call: Call, incoming: Incoming) -> None:
    """Append arguments that arrived as an object instead of a string. The first object becomes the text; later objects
    are merged into it.
    """
    if not call.object_arguments:
        first = call.empty
        call.held_back = first
        header = incoming.name is not None
        append_to_arguments(
            choice, call, incoming.payload, incoming.index, header=header, identified=incoming.id is not None
        )
        call.object_arguments = first and call.text.complete
        return
    shared = choice.shared
    before = call.text.size if call.merge is None else call.merge.size
    if call.merge is None:
        shared.out.diagnose("args_merged", call.part)
        call.merge = ObjectMerge(call.text.text())
    call.merge.add(incoming.payload.decode())
    shared.count_arguments(before, call.merge.size)


def _overflow(
    choice: Choice, call: Call, spill: bytes, index: int | None, *, identified: bool
) -> _OverflowBytes | None:
    """Handle an overflow (A8), that is, text after a complete value. Store the text as overflow of the call, or return
    the other call that the text belongs to.
    """
    text = call.text
    if not text.overflow:
        if index in call.announced_again or text.replay_has_header:
            # R1g, R1e: the call was announced again, so this text belongs to a second call.
            text.replay_has_header = False
            return _OverflowBytes(_new_sibling(choice, call, index, keep_id=True), spill, is_sibling=True)
        other = None if identified else choice.accepting(spill, other_than=call)
        if other is not None:
            note = guess(choice, other)
            if note is not None:
                _report_guess(choice, other, note)
            choice.bind(other, index)
            return _OverflowBytes(other, spill, is_sibling=False)
        if choice.shared.settings.switches.on_overflow == "split":
            return _OverflowBytes(_new_sibling(choice, call, index, keep_id=False), spill, is_sibling=True)
        choice.shared.out.diagnose("args_overflow", call.part)
    size = text.size
    text.overflow += spill
    _count(choice, call, size)
    return None


def _new_sibling(choice: Choice, call: Call, index: int | None, *, keep_id: bool) -> Call:
    if call.id is not None:
        choice.remember(call, call.id)
    elif index is not None:
        choice.remember(call, index)
    other = _sibling(choice, call, index)
    if keep_id and call.id is not None:
        choice.set_first_id(other, call.id)
        other.last_id, other.first = call.id, call
        choice.by_id[call.id] = other
    return other
