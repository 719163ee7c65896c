"""Closes the tool calls of a choice: repairs and drops calls, and determines the final state, id and order of the
others.

    drop       drop tentative calls without arguments, and nameless calls without any text
    join       join neighbors that are valid JSON only when joined
    echo       drop a call without name and id that only repeats the arguments of a named one
    restore    put back the beginning of arguments that lack only `{"`, if the response ended with success
    pair       move the arguments of the only nameless call to the only named call without arguments
    unwrap     treat null and "" as no arguments; replace a JSON string that contains an object with that object
    dedupe     drop the later of two calls with the same name, arguments and id (AM5: without an id, the same index)
    opening    drop the duplicate of a call that was opened with one id and closed with another
    identify   make ids unique, and mint missing ones
    ignore     remove a placeholder if the response ended without a finish reason
    order      by index if each call has exactly one index and no two calls share one, otherwise by creation
    classify   complete, empty, incomplete or invalid, with a reason

The steps run in the order of the table. Each step takes time linear in the number of calls and the length of their
text. `CallsEnd` describes what the finish reason means for the calls.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from streamweld._pure.assemble.choice import LEGACY_INDEX
from streamweld._pure.assemble.finish_reason import CallsEnd
from streamweld._pure.assemble.lost_beginning import restore_beginnings
from streamweld._pure.assemble.part import call_events
from streamweld._pure.assemble.part.arguments import Change
from streamweld._pure.assemble.part.call import MAX_ALIASES, CallOutcome
from streamweld._pure.assemble.part.canonical_json import is_whole
from streamweld._pure.assemble.resolve.names import is_name
from streamweld._pure.assemble.resolve.route_fragment import append_to_arguments, close_shared_id
from streamweld._pure.json.scanner import replace_lone_surrogates
from streamweld._pure.model.delta import CallEnding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.call import Call
    from streamweld.events import ToolCallState

__all__ = ["close_call", "close_calls", "in_order", "unwrap"]

_JOIN_COST = 8


def close_calls(choice: Choice, end: CallsEnd, *, broken_off: bool) -> None:
    """Close every call of the choice that is not final yet, and emit its final event.

    `broken_off`: the input ended too early, so a call with a fragment after the finish reason is treated as truncated,
    unless its JSON is complete.
    """
    ended = end is not CallsEnd.CUT
    for call in list(choice.calls):
        if not call.dropped and call.outcome is None:
            if call.ending is CallEnding.OPEN_OBJECT and end is CallsEnd.SUCCESS and not call.complete:
                append_to_arguments(choice, call, b"}", call.index, header=False, identified=True)
            _finish_arguments(choice, call, ended=ended)
    for call in choice.calls:
        if call.outcome is None:
            _drop_empty(choice, call)
    if ended:
        _join_fragments(choice)
    _drop_echoes(choice)
    if end is CallsEnd.SUCCESS:
        restore_beginnings(choice)
    if ended:
        _pair(choice)
        for call in _undecided(choice):
            unwrap(choice, call)
    _dedupe(choice)
    _drop_openings(choice)
    calls = _undecided(choice)
    ids = {call.slot: _identify(choice, call) for call in calls}
    if end is CallsEnd.UNSTATED:
        for call in calls:
            _ignore_placeholder(choice, call)
    for call in calls:
        if call.displaced_empty and call.empty:
            choice.shared.out.diagnose("ambiguous_same_index", call.part)
    # Classify all calls before emitting any of them, so that the client runs none of them if the policy raises for one.
    ordered = [call for call in in_order(choice) if call.outcome is None]
    owners = Counter([call.id for call in _live(choice)])
    closes = any(call.ended for call in choice.calls)
    outcomes: list[tuple[Call, CallOutcome]] = []
    for call in ordered:
        went_on = broken_off and call.late and not call.complete
        own_end = CallsEnd.CUT if went_on else end
        outcome = _classify(choice, call, ids[call.slot], owners, own_end, unclosed=closes and not call.ended)
        outcomes.append((call, outcome))
    for call, outcome in outcomes:
        call.outcome = outcome
        call_events.show_final(choice, call)


def close_call(choice: Choice, call: Call) -> None:
    """Close one call that the stream closed explicitly, and emit its final event."""
    _finish_arguments(choice, call, ended=True)
    unwrap(choice, call)
    owners = choice.owners(call) if call.aliases else {}
    given = _identify(choice, call)
    call.outcome = _classify(choice, call, given, owners, CallsEnd.SUCCESS, unclosed=False)
    call_events.show_final(choice, call)


def in_order(choice: Choice) -> list[Call]:
    """Return the calls that are not dropped, in their final order. The calls are sorted by index if each call has
    exactly one index, no two calls share an index, no index moved between calls, and no call came from `function_call`.
    If not, the calls are in order of creation.
    """
    calls = _live(choice)
    indexes = [call.index for call in calls if call.index is not None and len(call.indexes) == 1]
    if choice.rebound or len(set(indexes)) < len(calls) or LEGACY_INDEX in indexes:
        return calls
    return sorted(calls, key=lambda call: call.index or 0)


def _live(choice: Choice) -> list[Call]:
    return [call for call in choice.calls if not call.dropped]


def _undecided(choice: Choice) -> list[Call]:
    """Return the calls that are not dropped and have no final result yet."""
    return [call for call in choice.calls if not call.dropped and call.outcome is None]


def _finish_arguments(choice: Choice, call: Call, *, ended: bool) -> None:
    """End the text of a call, because no more fragments follow: add or drop held-back text, and resolve AM3.
    `ended`: the input was not truncated.
    """
    out = choice.shared.out
    tail = call.joiner.flush()
    if tail:
        out.diagnose("lone_surrogate", call.part)
        append_to_arguments(choice, call, tail.encode(), call.index, header=False, identified=True)
    call.settle_merge()
    if ended:
        close_shared_id(choice, call)
    push = call.text.end() if ended else call.text.drop_replay()
    if push.change is Change.REPLACED:
        call_events.reset(choice, call)
    if push.code is not None:
        out.diagnose(push.code, call.part)


def _drop_empty(choice: Choice, call: Call) -> None:
    if call.dropped or not call.empty:
        return
    if call.tentative:
        call_events.retract(choice, call)
        choice.shared.out.diagnose("dup_id_header_dropped", call.part)
        if not choice.shared.settings.tools.needs_arguments(call.name):
            choice.shared.out.diagnose("ambiguous_empty_header", call.part)
    elif not call.name:
        call_events.retract(choice, call)


def _join_fragments(choice: Choice) -> None:
    """Join fragments that were treated as separate calls, if they are valid JSON only together. Try the calls of each
    index first, then all calls in order of creation.
    """
    calls = _undecided(choice)
    if not any(call.text.unfinished and not call.empty for call in calls):
        return
    # Maximum number of bytes to examine, as a multiple of the total text size. The limit keeps the search linear even
    # for hostile streams.
    budget = _JOIN_COST * sum(call.text.size for call in calls)
    by_index: dict[int | None, list[Call]] = {}
    for call in calls:
        by_index.setdefault(call.index, []).append(call)
    for group in (*by_index.values(), calls):
        budget = _join_group(choice, [call for call in group if not call.dropped], budget)


def _join_group(choice: Choice, calls: list[Call], budget: int) -> int:
    position = 0
    while position + 1 < len(calls):
        length, cost = _pieces_of_one(calls, position, budget)
        budget -= cost
        left, others = calls[position], calls[position + 1 : position + length]
        if others:
            left.text.replace(b"".join([left.text.data, *[right.text.data + right.text.overflow for right in others]]))
        for right in others:
            _merge_call(choice, left, right)
            choice.shared.out.diagnose("args_stitched", left.part, str(right.part))
        position += length
    return budget


def _pieces_of_one(calls: list[Call], position: int, budget: int) -> tuple[int, int]:
    """Return how many calls from `position` on form one JSON object when joined (1 if none do), and how many bytes were
    examined.

    Calls with different names are never joined.
    """
    left = calls[position]
    cost = 0
    if left.custom or left.empty or not left.text.unfinished:
        return 1, cost
    joined = left.text.automaton.copy()
    for length, right in enumerate(calls[position + 1 :], 2):
        if right.custom or right.empty or (left.name and right.name and left.name != right.name):
            break
        piece = bytes(right.text.data + right.text.overflow)
        cost += len(piece)
        if cost > budget or joined.feed(piece) == "broken":
            break
        if joined.root == "object" and joined.verdict == "complete":
            return length, cost
    return 1, cost


def _drop_echoes(choice: Choice) -> None:
    """Drop calls that have neither a name nor an id, and whose complete arguments equal those of a named call."""
    calls = _live(choice)
    nameless = [call for call in _undecided(choice) if not call.name and call.id is None and call.complete]
    if not nameless:
        return
    contents = {call.canonical() for call in calls if call.name and call.complete and not call.custom}
    for call in nameless:
        if call.text.automaton.root == "object" and call.canonical() in contents:
            call_events.retract(choice, call)
            choice.shared.out.diagnose("args_replay_dropped", call.part)


def _drop_openings(choice: Choice) -> None:
    """Drop a call that was opened but not closed, if a call that was closed but not opened has the same name and
    arguments.

    The two are the same call, which was sent with two ids.
    """
    unopened = [call for call in _live(choice) if call.unopened and call.ended]
    closed = {(call.name, call.canonical()) for call in unopened if _is_json(call)}
    for call in _undecided(choice) if closed else ():
        if not call.ended and _is_json(call) and (call.name, call.canonical()) in closed:
            call_events.retract(choice, call)
            choice.shared.out.diagnose("args_replay_dropped", call.part)


def _is_json(call: Call) -> bool:
    return call.complete and not call.custom


def _pair(choice: Choice) -> None:
    calls = _undecided(choice)
    nameless = [call for call in calls if not call.name and call.complete]
    bare = [call for call in calls if call.name and call.text.is_blank() and not call.custom]
    if len(nameless) != 1 or len(bare) != 1 or nameless[0].text.automaton.root != "object":
        return
    bare[0].text.replace(nameless[0].text.data)
    call_events.reset(choice, bare[0])
    _merge_call(choice, bare[0], nameless[0])
    choice.shared.out.diagnose("args_paired", bare[0].part, str(nameless[0].part))


def _merge_call(choice: Choice, call: Call, other: Call) -> None:
    """Drop the call `other`, and add its ids, name and metadata to `call`. The caller has already moved the text of
    `other`.
    """
    call_events.retract(choice, other)
    for identity in (other.id, *other.aliases):
        if identity is not None and call.id is None:
            call.id = identity
        elif identity is not None and not call.has_id(identity) and len(call.aliases) < MAX_ALIASES:
            call.aliases.append(identity)
    if not call.name:
        call.name, call.doubtful_piece = other.name, other.doubtful_piece
    call.misses_arguments |= other.misses_arguments
    if other.metadata is not None:
        if call.metadata is None:
            call.metadata = other.metadata
        else:
            call.metadata.add(other.metadata.text() or "{}")


def unwrap(choice: Choice, call: Call) -> None:
    """Replace whitespace, null and "" with empty text: some gateways send them for a call without arguments. Replace a
    JSON string that contains an object with this object.
    """
    text = call.text
    if text.empty:
        return
    call.raw = None  # real arguments may have followed the placeholder
    if text.is_blank():
        call.raw = text.text()
        text.replace(b"")
        return
    if not call.complete or text.overflow or text.automaton.root not in ("string", "literal"):
        return
    raw = text.text()
    value = json.loads(raw)
    if value is None or value == "":
        inner, code = "", "args_placeholder_replaced"
    elif isinstance(value, str) and value.lstrip(" \t\n\r").startswith("{") and is_whole(value):
        inner, code = replace_lone_surrogates(value), "args_double_encoded"
    else:
        return
    text.replace(inner.encode())
    call.raw = raw
    call_events.reset(choice, call)
    choice.shared.out.diagnose(code, call.part)


def _ignore_placeholder(choice: Choice, call: Call) -> None:
    """Remove a placeholder from the arguments, because the response has no finish reason and the real arguments may
    have been cut off.

    Keep the placeholder if the token counts show that the response is complete.
    """
    if choice.shared.settings.switches.empty_call_without_reason == "run" or choice.shared.is_counted:
        return
    if call.text.gives_way() and not call.text.overflow:
        call.raw = call.text.text()
        call.text.replace(b"")
        call_events.reset(choice, call)


def _dedupe(choice: Choice) -> None:
    """Drop the later of two calls with the same name and arguments, if they have the same id, or the same index and no
    id.
    """
    by_key: dict[tuple[str, str | int, str], list[Call]] = {}
    drops_twins = choice.shared.settings.switches.identical_idless_same_index == "drop"
    for call in _live(choice):
        if call.id is not None:
            by_key.setdefault(("id", call.id, call.name), []).append(call)
        elif drops_twins and call.index is not None and call.complete:
            by_key.setdefault(("index", call.index, call.name), []).append(call)
    for (kind, _, _), group in by_key.items():
        if len(group) == 1:
            continue
        # Calls that are already final are kept. Every other call that repeats a final call is dropped.
        contents: set[str] = set()
        for call in sorted(group, key=lambda call: call.outcome is None):
            content = call.canonical() if call.complete else call.text.text()
            if content not in contents or call.outcome is not None:
                contents.add(content)
                continue
            call_events.retract(choice, call)
            choice.shared.out.diagnose("args_replay_dropped", call.part)
            if kind == "index":
                choice.shared.out.diagnose("ambiguous_identical_call", call.part)


def _identify(choice: Choice, call: Call) -> str:
    shared = choice.shared
    wire = _wire_id(choice, call)
    first = None if wire is None else _first_with_id(call, wire)
    if wire is not None and first is not None:
        # The earlier call may still be open, so the id is reserved for it.
        first.keeps_id |= first.outcome is None and _wire_id(choice, first) == wire and not shared.is_taken(wire)
        shared.ids_given.add(wire)  # two calls received the id, one of them perhaps as an alias
    if wire is not None and call.keeps_id:
        return wire
    given = shared.fresh_id(call_events.minted_id(choice, call) if wire is None else wire, minted=wire is None)
    shared.ids_given.add(given)
    if given != wire:
        allowed = wire is None and shared.ids_optional
        shared.out.diagnose("id_absent" if allowed else "id_minted", call.part, given)
    return given


def _first_with_id(call: Call, identity: str) -> Call | None:
    """Return the first earlier call that received this id, or None. Excludes dropped calls."""
    found, earlier = None, call.first
    while earlier is not None and (earlier.dropped or earlier.has_id(identity)):
        found, earlier = found if earlier.dropped else earlier, earlier.first
    later: Call | None = call
    while found is not None and later is not None and later is not found:
        later.first, later = found, later.first  # later lookups take one step
    return found


def _wire_id(choice: Choice, call: Call) -> str | None:
    """AM12: return the first id received, or the last one if the policy prefers it. None if the call received no id.

    An id that a merged call contributed is never the last one.
    """
    if choice.shared.settings.switches.unstable_id == "last" and call.last_id is not None:
        return call.last_id
    return call.id


def _classify(
    choice: Choice,
    call: Call,
    given: str,
    owners: Mapping[str | None, int],
    end: CallsEnd,
    *,
    unclosed: bool,
) -> CallOutcome:
    """Return the final result of a call with the final id `given`, and report what is wrong with the call.

    `owners`: for each id, the number of calls that received it as their first id. Aliases that belong to another call
    are omitted. `unclosed`: the stream closed other calls explicitly, but not this call.
    """
    text = call.text
    reason: str | None = None
    state: ToolCallState = "incomplete"
    runs_unstated = choice.shared.settings.switches.empty_call_without_reason == "run"
    if end is not CallsEnd.CUT:
        reason = _fault(choice, call, given)
        if reason is not None:
            state = "invalid"
        elif text.is_blank():
            counts = end is CallsEnd.SUCCESS or (end is CallsEnd.UNSTATED and runs_unstated)
            if counts and (unclosed or call.is_cut(succeeded=end is CallsEnd.SUCCESS) or call.misses_arguments):
                choice.shared.out.diagnose("args_invalid", call.part, "incomplete")
            elif counts:
                state = "empty"
        elif _is_whole(call, end):
            state = "complete"
        elif end not in (CallsEnd.UNFINISHED, CallsEnd.FAILED):
            choice.shared.out.diagnose("args_invalid", call.part, "incomplete")
    raw = call.raw
    if text.overflow:
        raw = (text.data + text.overflow).decode("utf-8", "replace")
    own = () if call.id is None else (call.id,)
    wire = _wire_id(choice, call)
    aliases = [alias for alias in own if owners.get(alias, 0) < 2]
    aliases += [alias for alias in call.aliases if not owners.get(alias, 0)]
    shown = tuple([alias for alias in aliases if alias not in (given, wire)])
    return CallOutcome(given, text.text(), state, reason, raw, shown)


def ends_whole(call: Call) -> bool:
    """Return True if the text is one complete JSON value, assuming that nothing follows. A number is then complete,
    because no more digits can follow.
    """
    return call.text.automaton.copy().finish() == "complete"


def _fault(choice: Choice, call: Call, given: str) -> str | None:
    """Report and return the reason if the call is invalid; otherwise, return None. Unfinished text does not make a call
    invalid.
    """
    out = choice.shared.out
    text = call.text
    if not call.name:
        out.diagnose("no_name", call.part)
        return "no_name"
    if not choice.shared.settings.tools.has(call.name):
        if call.doubtful_piece is not None:
            out.diagnose("name_joined", call.part, call.doubtful_piece)
        if not is_name(call.name):
            out.diagnose("id_invalid", call.part, "name")
            return "bad_name"
        if not call.name.isascii():
            out.diagnose("name_not_ascii", call.part, call.name)
    if any(character < " " or "\x7f" <= character <= "\x9f" for character in given):
        out.diagnose("id_invalid", call.part, "id")
        return "bad_id"
    if text.overflow:
        return "overflow"
    reason = _fault_of_text(call) or ("refused" if call.refused else None)
    if reason is not None:
        out.diagnose("args_invalid", call.part, reason)
    return reason


def _is_whole(call: Call, end: CallsEnd) -> bool:
    """Return True if the arguments of the call are complete.

    JSON must be one complete value; free-form text is complete if the response ended with success.
    """
    if call.is_cut(succeeded=end is CallsEnd.SUCCESS):
        return False
    if call.custom:
        return end is CallsEnd.SUCCESS
    return end is not CallsEnd.FAILED and ends_whole(call)


def _fault_of_text(call: Call) -> str | None:
    """Return why the text can never be a JSON object, or None if the text is a JSON object or may still become one."""
    text = call.text
    if call.custom or text.is_blank():
        return None
    final = "broken" if text.plain else text.automaton.copy().finish()
    if final == "broken":
        # The closing event reports that the arguments were cut off, which explains why they are not JSON.
        return None if call.ending is CallEnding.CUT else "not_json"
    return "not_object" if final == "complete" and text.automaton.root != "object" else None
