"""Applies a complete message to the streamed content of a choice. The message corrects and completes the content; it is
not appended to it.

If a gateway responds to a streaming request with a complete body, the message is the only content. Content that the
message omits is kept. If the message differs from the streamed content, the message takes precedence. However, complete
streamed arguments are kept if the message has no arguments, `{}`, or arguments that are not a JSON object. The identity
rules for deltas are not used, because each call in the message is complete.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from streamweld._pure.assemble.part import call_events
from streamweld._pure.assemble.part.canonical_json import canonical, is_whole
from streamweld._pure.assemble.part.object_merge import RawMembers
from streamweld._pure.assemble.resolve.decision import Decision, Incoming, Resolution
from streamweld._pure.assemble.resolve.route_fragment import append_to_arguments, open_call, take_id, take_name
from streamweld._pure.json.scanner import replace_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.call import Call
    from streamweld._pure.assemble.part.text import Channel
    from streamweld._pure.model.delta import Fragment

__all__ = ["reconcile"]


def reconcile(
    choice: Choice,
    content: str | None,
    reasoning: str | None,
    refusal: str | None,
    fragments: Sequence[Fragment],
) -> None:
    """Apply a complete message to its choice."""
    choice.message_seen = True
    _channel(choice, "reasoning", reasoning)
    _channel(choice, "text", content)
    _channel(choice, "refusal", refusal)
    if fragments:
        _calls(choice, fragments)


def _channel(choice: Choice, channel: Channel, text: str | None) -> None:
    if not text:
        return
    textual = choice.textual
    length = textual.length(channel)
    if length == 0:
        call_events.flush_unstarted(choice)
        textual.push(channel, text, None, raw=True)
        return
    clean = replace_lone_surrogates(text)
    if len(clean) >= length and clean.startswith(textual.channel_text(channel)):
        if len(clean) > length:
            call_events.flush_unstarted(choice)
            textual.push(channel, clean[length:], None, raw=True)
        return
    part = textual.current
    corrected = textual.correct(channel, clean)
    choice.shared.out.diagnose("conflict", part.part if corrected and part is not None else None, channel)


def _calls(choice: Choice, fragments: Sequence[Fragment]) -> None:
    streamed = list(islice(filter(_was_streamed, choice.calls), len(fragments)))
    count = len(choice.calls)
    by_id: dict[str, Iterator[Call]] = {}
    met: set[int] = set()
    for list_index, fragment in enumerate(fragments):
        incoming = _read(choice, fragment)
        if incoming is None:
            continue
        choice.textual.close_open()
        if incoming.id is not None and incoming.id not in by_id:
            by_id[incoming.id] = filter(_was_streamed, choice.owned(incoming.id))
        found = _match(choice, incoming, streamed[list_index] if list_index < len(streamed) else None, by_id, met)
        if found is not None:
            call = found
            _take(choice, call, incoming)
        else:
            call = open_call(choice, incoming, Decision("message", None, Resolution.NEW))
            if incoming.payload:
                append_to_arguments(choice, call, incoming.payload, incoming.index, header=True, identified=True)
            choice.track(call)
        met.add(call.slot)
        call.misses_arguments |= fragment.misses_arguments
        if fragment.metadata is not None:
            if call.metadata is None:
                call.metadata = RawMembers()
            choice.shared.spend_growth(call.metadata.add(fragment.metadata))
    for call in choice.take_changed(count):
        if call.conflict_reported:
            continue
        if call.slot in met:
            choice.changed[call.slot] = call
        elif _was_streamed(call) and (call.name or not call.empty):
            call.conflict_reported = True
            choice.shared.out.diagnose("conflict", call.part, "tool_calls")


def _was_streamed(call: Call) -> bool:
    return not call.dropped and not (call.tentative and call.empty)


def _read(choice: Choice, fragment: Fragment) -> Incoming | None:
    """Read one call of the message, or return None if the call is empty. The index of the call is ignored, because it
    can only repeat the position in the list.
    """
    payload = replace_lone_surrogates(fragment.object_arguments or fragment.arguments or "")
    if fragment.id is None and fragment.name is None and not payload:
        return None
    if fragment.id is not None:
        choice.shared.check_id(fragment.id)
    if fragment.name is not None:
        choice.shared.check_name(fragment.name)
    return Incoming(None, fragment.id, fragment.name, payload.encode(), custom=fragment.custom)


def _match(
    choice: Choice, incoming: Incoming, at_index: Call | None, by_id: Mapping[str, Iterator[Call]], met: set[int]
) -> Call | None:
    """Return the streamed call that a call in the message repeats, or None. The call with the same first id is
    preferred, then a call that has the id as an alias, then the call at the same position.
    """
    if incoming.id is not None:
        for named in by_id[incoming.id]:
            if named.slot not in met and named.suits(incoming.payload, custom=incoming.custom):
                return named
        alias = choice.by_id.get(incoming.id)
        known = alias is not None and alias.slot not in met and alias.has_id(incoming.id)
        if alias is not None and known and alias.suits(incoming.payload, custom=incoming.custom):
            return alias
    if at_index is None or at_index.slot in met or (at_index.name and at_index.name != incoming.name):
        return None
    if not at_index.suits(incoming.payload, custom=incoming.custom):
        return None
    if incoming.id is None or at_index.id is None or not at_index.complete or at_index.repeats(incoming.payload):
        return at_index
    return None


def _take(choice: Choice, call: Call, incoming: Incoming) -> None:
    take_id(choice, call, incoming.id)
    if incoming.name is not None and incoming.name != call.name:
        take_name(choice, call, incoming.name, "none" if call.empty else "started")
    choice.latest = call
    payload = incoming.payload
    call.settle_merge()
    if payload:
        call.settle_type(custom=incoming.custom)
    text = call.text
    if not payload or bytes(text.data) == payload:
        call_events.publish(choice, call)
        return
    if text.complete and not call.custom:
        if not is_whole(payload) or not incoming.starts_object:
            choice.shared.out.diagnose("conflict", call.part)
            return
        content = canonical(payload.decode())
        if content == call.canonical():
            return
        if content == "{}":
            choice.shared.out.diagnose("conflict", call.part)
            return
    goes_on = payload.startswith(text.data)
    before = text.size
    choice.shared.check_piece(len(payload))
    choice.shared.count_arguments(before, len(payload))
    text.replace(payload)
    call.shared_id = None
    call.tentative = False
    if not goes_on:
        call_events.reset(choice, call)
        choice.shared.out.diagnose("conflict", call.part)
    call_events.publish(choice, call)
    choice.track(call)
