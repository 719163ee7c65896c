"""Emits the events of tool calls: started, delta, reset, retracted, and the final event.

The text emitted since the last reset is always a prefix of the call's text, so the deltas add up to the complete text.
Text that a rule may still replace is held back, so resets are rare. A call is emitted once its name is final, that is,
once argument text, another part, or the end of the call has arrived.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._json import loads_raw
from streamweld.events import ToolCall, ToolCallDelta, ToolCallReset, ToolCallRetracted, ToolCallStarted

if TYPE_CHECKING:
    from typing import Any

    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.call import Call

__all__ = [
    "final_event",
    "flush_unstarted",
    "named",
    "parse_metadata",
    "progress",
    "publish",
    "reset",
    "retract",
    "show_final",
    "show_start",
]


def parse_metadata(raw: str | None) -> dict[str, Any] | None:
    return None if raw is None else loads_raw(raw)


def named(choice: Choice, call: Call) -> None:
    """Queue the start event of a call that has received a name. The event is not emitted yet, because more of the name
    may follow.
    """
    if not call.started:
        choice.unstarted.append(call)


def flush_unstarted(choice: Choice, other_than: Call | None = None, *, by_call: bool = False) -> int | None:
    """Emit the start events of the queued calls except `other_than`. The names of these calls are final, because
    another part of the choice receives data.

    The calls are emitted in order of creation. Return the position of the first call that must wait, if any. Calls
    after a call without a name wait until that call has a name. `by_call`: another call receives data. If names arrive
    in pieces and `by_call` is true, a call without arguments also waits, because more of its name may follow.
    """
    if not choice.unstarted:
        return choice.first_unnamed
    waiting, choice.unstarted = sorted(choice.unstarted, key=lambda call: call.slot), []
    first = choice.first_unnamed
    for call in waiting:
        if call.started or call.dropped:
            continue
        if by_call and choice.joins_names and call.text.is_blank() and (first is None or call.slot < first):
            first = call.slot
        if call is other_than or (first is not None and first <= call.slot):
            choice.unstarted.append(call)
            continue
        _start(choice, call)
        if not (call.tentative or call.text.is_blank()):
            _show(choice, call, call.settled)
            choice.update_pending_call(call)
    return first


def publish(choice: Choice, call: Call) -> None:
    """Emit the argument text that is safe to emit and has not been emitted yet. Text that consists only of whitespace
    is held back, because it may still mean "no arguments".
    """
    if call.dropped:
        return
    text = call.text
    if not (call.tentative or not call.name or text.is_blank()):
        first = flush_unstarted(choice, by_call=True)
        if call.started or first is None or first > call.slot:
            _start(choice, call)
            _show(choice, call, call.settled)
    if choice.pending_calls or text.shown < len(text.data):
        choice.update_pending_call(call)


def reset(choice: Choice, call: Call) -> None:
    """Emit a reset event if the arguments no longer start with the text that was emitted."""
    if call.text.taken_back:
        call.text.taken_back = False
        out = choice.shared.out
        if not out.silent:
            out.emit(ToolCallReset(call.part, choice=choice.index))


def retract(choice: Choice, call: Call) -> None:
    """Mark the call as dropped. If it was emitted, also emit `ToolCallRetracted`."""
    call.dropped = True
    choice.track(call)
    choice.update_pending_call(call)
    if call.started:
        out = choice.shared.out
        if not out.silent:
            out.emit(ToolCallRetracted(call.part, choice=choice.index))


def show_final(choice: Choice, call: Call) -> None:
    """Emit the text that has not been emitted yet, and then the final event."""
    _start(choice, call)
    _show(choice, call, len(call.text.data))
    choice.update_pending_call(call)
    out = choice.shared.out
    if not out.silent:
        out.emit(final_event(choice, call))


def final_event(choice: Choice, call: Call) -> ToolCall:
    """Return the final event of a closed call. For an open call, the event contains the current values and the state
    `open`.
    """
    metadata = None if call.metadata is None else parse_metadata(call.metadata.text())
    outcome = call.outcome
    if outcome is None:
        merged = None if call.merge is None else call.merge.text()
        return ToolCall(
            call.part,
            call.id or minted_id(choice, call),
            call.name,
            call.text.text() if merged is None else merged,
            "open",
            call.item_id,
            provider_executed=call.provider_executed,
            aliases=tuple(call.aliases),
            custom=call.custom,
            choice=choice.index,
            provider_metadata=metadata,
        )
    return ToolCall(
        call.part,
        outcome.call_id,
        call.name,
        outcome.arguments,
        outcome.state,
        call.item_id,
        reason=outcome.reason,
        raw_arguments=outcome.raw_arguments,
        provider_executed=call.provider_executed,
        aliases=outcome.aliases,
        custom=call.custom,
        choice=choice.index,
        provider_metadata=metadata,
    )


def minted_id(choice: Choice, call: Call) -> str:
    """Return an id for a call that received none. The id depends only on the seed and the part number, so it is the
    same in every run.
    """
    seed = choice.shared.settings.seed
    return f"call_sw_{call.part}" if seed is None else f"call_{seed}_{call.part}"


def show_start(choice: Choice, call: Call) -> None:
    """Emit the start event of a call that has a name. Used in dialects that send each name in one piece, so that the
    name is final.
    """
    if call.name:
        _start(choice, call)


def progress(choice: Choice, call: Call, metadata: str | None) -> bool:
    """Emit a delta with metadata but without argument text. Return False if the call has no name yet, or is dropped or
    final.
    """
    if call.dropped or call.outcome is not None or not call.name:
        return False
    flush_unstarted(choice, call)
    _start(choice, call)
    out = choice.shared.out
    if not out.silent:
        out.emit(ToolCallDelta(call.part, "", choice=choice.index, provider_metadata=parse_metadata(metadata)))
    return True


def _start(choice: Choice, call: Call) -> None:
    if call.started:
        return
    call.started = True
    out = choice.shared.out
    if not out.silent:
        out.opening = (call.custom, call.provider_executed)
        out.address = (call.index, None, call.item_id)
        # Omit the id if it may change, because an earlier call had it or the policy prefers the last id.
        settled = call.first is None and choice.shared.settings.switches.unstable_id == "first"
        call_id = call.id if settled else None
        out.emit(ToolCallStarted(call.part, call_id, call.item_id, call.name, choice=choice.index))


def _show(choice: Choice, call: Call, end: int) -> None:
    """Emit the text up to byte `end`, except what has already been emitted."""
    text, out = call.text, choice.shared.out
    if end <= text.shown:
        return
    if not out.silent:
        piece = text.data[text.shown : end].decode("utf-8", "replace")
        out.emit(ToolCallDelta(call.part, piece, choice=choice.index))
    text.shown = end
