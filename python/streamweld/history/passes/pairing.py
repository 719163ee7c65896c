"""Pair every call with exactly one result and place the result after its call. Constraints: `results`, `reasoning`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from streamweld.history.model import (
    ApprovalRequest,
    ApprovalResponse,
    Call,
    Reasoning,
    Result,
    Text,
    Turn,
    arguments_text,
    changed,
    removed_value,
    result_text,
    with_parts,
)
from streamweld.history.open_calls import OpenCalls

if TYPE_CHECKING:
    from streamweld.history.context import Context
    from streamweld.history.model import Part

__all__ = ["NO_RESULT", "run"]

NO_RESULT: Final = "Error: this tool call has no result. It was not run, or it was interrupted."


@dataclass(slots=True, eq=False)
class _CallRecord:
    """A call with its turn, its approval and its results.

    `requested`: whether the call has an approval request. `answered`: the turn that contains the result. `early`:
    whether the result precedes the call. `spare`: all other results for the call.
    """

    turn: int
    call: Call
    requested: bool = False
    response: ApprovalResponse | None = None
    result: Result | None = None
    answered: int = -1
    early: bool = False
    spare: list[Result] = field(default_factory=list[Result])


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with calls and results paired as the target requires."""
    if context.survey(turns).paired:
        return turns
    turns = _without_repeats(turns, context)
    call_records: dict[int, list[_CallRecord]] = {}
    owner: dict[int, _CallRecord] = {}  # id() of a result or an approval -> its call
    orphans: set[int] = set()
    _match(turns, call_records, owner, orphans)
    out: list[Turn] = []
    late: dict[int, list[Part]] = {}  # added results, keyed by the turn after which they are placed
    for n, turn in enumerate(turns):
        if turn.role == "tool":
            out += _of_tool_turn(turn, owner, orphans, context)
        elif n in call_records:
            after = turns[n + 1] if n + 1 < len(turns) else None
            out += _of_calls(turn, after, n, turns, call_records[n], late, context)
        else:
            out.append(turn)
        if n in late:
            out.append(Turn("tool", tuple(late.pop(n))))
    return out


def _without_repeats(turns: list[Turn], context: Context) -> list[Turn]:
    """Merge calls of one turn that have the same id, name and arguments."""
    out: list[Turn] = []
    for turn in turns:
        calls = [part for part in turn.parts if isinstance(part, Call)] if turn.role == "assistant" else []
        if len(calls) < 2 or len({call.call_id for call in calls}) == len(calls):
            out.append(turn)
            continue
        seen: set[tuple[str, str, str]] = set()
        kept: list[Part] = []
        for part in turn.parts:
            if isinstance(part, Call) and part.call_id:
                key = (part.call_id, part.name, arguments_text(part))
                if key in seen:
                    context.edit(
                        "call_repeated", part.path, f"dropped a second call of {part.name!r} with the same id", part.raw
                    )
                    continue
                seen.add(key)
            kept.append(part)
        out.append(with_parts(turn, kept) if len(kept) < len(turn.parts) else turn)
    return out


def _match(
    turns: list[Turn], call_records: dict[int, list[_CallRecord]], owner: dict[int, _CallRecord], orphans: set[int]
) -> None:
    waiting: OpenCalls[_CallRecord] = OpenCalls()
    latest: dict[str, _CallRecord] = {}  # latest call by call id
    requests: dict[str, _CallRecord] = {}  # approval id -> call to approve
    last: dict[str, _CallRecord] = {}  # call to which the latest result was assigned, by call id
    early: list[Result] = []
    for n, turn in enumerate(turns):
        for part in turn.parts:
            if isinstance(part, Call) and turn.role == "assistant":
                one = _CallRecord(n, part)
                call_records.setdefault(n, []).append(one)
                waiting.add(n, part.call_id, part.name, one)
                latest[part.call_id] = one
            elif isinstance(part, ApprovalRequest) and part.call_id in latest:
                latest[part.call_id].requested = True
                requests[part.approval_id] = latest[part.call_id]
            elif isinstance(part, ApprovalResponse) and part.approval_id in requests:
                requests[part.approval_id].response = part
                owner[id(part)] = requests[part.approval_id]
            elif isinstance(part, Result):
                found = waiting.take(part.call_id, part.name)
                if found is not None:
                    found.result, found.answered = part, n
                    owner[id(part)] = last[part.call_id] = found
                elif part.call_id in last and part.call_id:
                    last[part.call_id].spare.append(part)
                    owner[id(part)] = last[part.call_id]
                else:
                    early.append(part)
    for part in early:  # results that precede their call
        found = waiting.take(part.call_id, part.name)
        if found is not None:
            found.result = part
            found.early = True
            owner[id(part)] = last[part.call_id] = found
        elif part.call_id in last and part.call_id:
            last[part.call_id].spare.append(part)
            owner[id(part)] = last[part.call_id]
        else:
            orphans.add(id(part))


def _chosen(one: _CallRecord, context: Context) -> Result | None:
    """Return the result to keep, and record the call's other results as dropped."""
    if one.result is None or not one.spare:
        return one.result
    everything = [one.result, *one.spare]
    chosen = everything[-1] if context.policy.duplicate_result == "last" else everything[0]
    for result in everything:
        if result is not chosen:
            gone = removed_value(result)
            context.edit("result_repeated", result.path, f"dropped another result of call {result.call_id!r}", gone)
    return chosen


def _of_calls(
    turn: Turn,
    after: Turn | None,
    n: int,
    turns: list[Turn],
    call_records: list[_CallRecord],
    late: dict[int, list[Part]],
    context: Context,
) -> list[Turn]:
    """Return a turn that has calls, followed by the turn with their results.

    Results with equal ids belong to the calls with that id in order. If results are not moved, a result added for one
    of these calls must therefore follow the results of the others. Added results of this kind are stored in `late`.
    """
    facts = context.facts("results")
    adjacent = bool(facts.get("adjacent"))
    behind = after.parts if after is not None and after.role == "tool" else ()
    there = {id(part): at for at, part in enumerate(behind)}
    unanswered = context.pending and not any(
        later.role in ("user", "assistant", "tool") for later in turns[n + 1 : n + 2]
    )
    placed: list[tuple[int, Result | ApprovalResponse]] = []
    dropped: set[int] = set()
    for order, one in enumerate(call_records):
        result = _chosen(one, context)
        if one.response is not None and adjacent:
            placed.append((there.get(id(one.response), len(there) + order), one.response))
        if result is None:
            if unanswered or not facts.get("required") or _waits(one, turns, context):
                continue
            if context.policy.orphan_call == "drop":
                dropped.add(id(one.call))
                context.edit(
                    "call_unanswered",
                    one.call.path,
                    f"dropped the call of {one.call.name!r} because it has no result",
                    one.call.raw,
                )
                continue
            context.edit(
                "call_unanswered",
                one.call.path,
                f"added an error result to the call of {one.call.name!r} because it had no result",
            )
            text = Text(text=NO_RESULT)
            made = Result(
                call_id=one.call.call_id, name=one.call.name, parts=(text,), is_error=True, path=one.call.path
            )
            place = (
                -1
                if adjacent
                else max(other.answered for other in call_records if other.call.call_id == one.call.call_id)
            )
            if place > n:
                late.setdefault(place, []).append(made)
            else:
                placed.append((len(there) + order, made))
            continue
        if not adjacent and not one.early:
            continue
        at = there.get(id(result))
        if at is None and one.result is not None and result is not one.result:
            at = there.get(id(one.result))
        if at is None:
            context.edit("result_moved", result.path, f"moved the result of {one.call.name!r} after its call")
        placed.append((len(there) + order if at is None else at, _named(result, one.call, context)))
    out = [turn]
    if dropped:
        kept = _without(turn, dropped, context)
        out = [with_parts(turn, kept)] if kept else []
    if not facts.get("same_order"):
        placed.sort(key=lambda pair: pair[0])
    elif [pair[0] for pair in placed] != sorted(pair[0] for pair in placed):
        context.edit("result_order", placed[0][1].path, "sorted the results by the order of their calls")
    results: list[Part] = [part for _, part in placed]
    if results:
        out.append(_as_it_was(after, results) if adjacent else Turn("tool", tuple(results)))
    return out


def _waits(one: _CallRecord, turns: list[Turn], context: Context) -> bool:
    """Return whether a call does not need a result, because it awaits approval, or because it was approved and has not
    run yet.

    Only a call at the end of the history can be waiting. If a later user message supersedes the approval request, the
    call does not need a result either, provided that the target omits such calls (`supersedes_requests`).
    """
    facts = context.facts("results")
    if not one.requested or not facts.get("awaits_approval"):
        return False
    later = turns[one.turn + 1 :]
    if one.response is None and facts.get("supersedes_requests") and any(turn.role == "user" for turn in later):
        return True
    return not later or (len(later) == 1 and later[0].role == "tool")


def _named(result: Result, call: Call, context: Context) -> Result:
    """Return the result. A result without an id is paired by name, so this function adds the tool name of its call."""
    if result.call_id or result.name == call.name:
        return result
    context.edit("result_name", result.path, f"changed the tool name {result.name!r} to {call.name!r}")
    return changed(result, name=call.name)


def _as_it_was(after: Turn | None, results: list[Part]) -> Turn:
    same = after is not None and len(after.parts) == len(results)
    if after is not None and same and all(a is b for a, b in zip(after.parts, results, strict=True)):
        return after
    return Turn("tool", tuple(results), after.origin if after is not None and after.role == "tool" else None)


def _without(turn: Turn, dropped: set[int], context: Context) -> list[Part]:
    """Return the parts without the dropped calls and without reasoning that led only to dropped calls."""
    kept: list[Part] = [part for part in turn.parts if id(part) not in dropped]
    if not any(isinstance(part, Call) for part in kept) and context.facts("reasoning").get("accept") == "blocks":
        for part in kept:
            if isinstance(part, Reasoning):
                gone = removed_value(part)
                context.edit(
                    "reasoning_of_dropped_call",
                    part.path,
                    "dropped the reasoning because its tool call was dropped",
                    gone,
                )
        kept = [part for part in kept if not isinstance(part, Reasoning)]
    return kept


def _of_tool_turn(turn: Turn, owner: dict[int, _CallRecord], orphans: set[int], context: Context) -> list[Turn]:
    """Return turns for the remaining parts of a turn of results: the results without a call, and parts that are not
    results.
    """
    facts = context.facts("results")
    adjacent = bool(facts.get("adjacent"))
    out: list[Turn] = []
    rest: list[Part] = []
    for part in turn.parts:
        if isinstance(part, ApprovalResponse) and adjacent and id(part) in owner:
            continue
        if not isinstance(part, Result):
            rest.append(part)
        elif id(part) in orphans:
            if not facts.get("matched") or context.chained:
                rest.append(part)
                continue
            if rest:
                out.append(_same_or(turn, rest))
                rest = []
            out += _orphan(part, context)
        elif not adjacent:
            one = owner[id(part)]
            if part is one.result and not one.early:
                rest.append(one.spare[-1] if one.spare and context.policy.duplicate_result == "last" else part)
    if rest:
        out.append(_same_or(turn, rest))
    return out


def _same_or(turn: Turn, rest: list[Part]) -> Turn:
    same = len(rest) == len(turn.parts) and all(a is b for a, b in zip(rest, turn.parts, strict=True))
    return turn if same else with_parts(turn, rest)


def _orphan(result: Result, context: Context) -> list[Turn]:
    """Return the turns that replace a result without a call; `policy.orphan_result` selects the repair."""
    gone = removed_value(result)
    if context.policy.orphan_result == "drop":
        context.edit(
            "result_unasked",
            result.path,
            f"dropped the result of call {result.call_id!r} because that call is missing",
            gone,
        )
        return []
    if context.policy.orphan_result == "text":
        context.edit(
            "result_unasked",
            result.path,
            f"moved the result of call {result.call_id!r} to a user message, because that call is missing",
        )
        head = f"[Tool Result for {result.call_id}]: " if result.call_id else "[Tool Result]: "
        text = Text(text=head + result_text(result), path=result.path)
        media = tuple([part for part in result.parts if not isinstance(part, Text)])
        return [Turn("user", (text, *media))]
    name = result.name or (next(iter(context.tools)) if len(context.tools) == 1 else "unknown")
    context.edit(
        "result_unasked",
        result.path,
        f"added a call of {name!r} for the result of call {result.call_id!r}, because that call is missing",
    )
    call = Call(call_id=result.call_id, name=name, arguments="{}", path=result.path)
    return [Turn("assistant", (call,)), Turn("tool", (result if result.name else changed(result, name=name),))]
