"""Copy a missing id from a call to its result, or from a result to its call. Constraint: `tool_id.optional`.

Gemini's ids are optional, and some clients add them only to calls or only to results:
https://github.com/google-gemini/gemini-cli/issues/6974. Calls and results with equal ids are paired first. The other
results are paired by name and order with the calls of the most recent turn that has calls.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# (the input is JSON from the caller, so the types inside its containers are unknown)

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamweld.history.model import Call, Result, changed, copied, with_parts

if TYPE_CHECKING:
    from streamweld.history.context import Context
    from streamweld.history.model import Part, Turn

__all__ = ["run"]


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with ids added to calls and results: if one of a pair has an id, the other gets the same id."""
    found = context.survey(turns)
    if found.paired or (all(call.call_id for call in found.calls) and all(result.call_id for result in found.results)):
        return turns
    given = _missing(turns)
    if not given:
        return turns
    optional = bool((context.fact("tool_id") or {}).get("optional"))
    new: dict[int, Part] = {}
    for part, call_id, name in given:
        if optional and part.name == name:  # the target pairs by name, so the source object needs no id and stays valid
            new[id(part)] = copied(part, call_id=call_id)
        else:
            context.edit("call_id_missing", part.path, f"added the id {call_id!r} of the matching call or result")
            new[id(part)] = changed(part, call_id=call_id)
    touched = [any(id(part) in new for part in turn.parts) for turn in turns]
    return [
        with_parts(turn, [new.get(id(part), part) for part in turn.parts]) if changes else turn
        for turn, changes in zip(turns, touched, strict=True)
    ]


class _Waiting:
    """The calls of one turn that have no result with the same id, queued by name and in order."""

    def __init__(self) -> None:
        # The key: whether the queue contains only calls without an id, and the name of the calls (None for all names).
        self._queues: dict[tuple[bool, str | None], deque[Call]] = {}
        self._taken: set[int] = set()

    def add(self, call: Call) -> None:
        for key in ((False, call.name), (False, None), (True, call.name), (True, None)):
            if not (key[0] and call.call_id):
                self._queues.setdefault(key, deque()).append(call)

    def take(self, name: str | None, *, nameless: bool) -> Call | None:
        """Remove and return the first call with that name or, if `name` is None, the first call with any name.

        `nameless`: only consider calls without an id.
        """
        queue = self._queues.get((nameless, name))
        while queue:
            call = queue.popleft()
            if id(call) not in self._taken:
                self._taken.add(id(call))
                return call
        return None


@dataclass(slots=True, eq=False)
class _Step:
    """The calls of one turn, and the results up to the next turn that has calls."""

    calls: list[Call]
    results: list[Result]

    def is_complete(self) -> bool:
        """Return whether pairing by name and order assigns a call to each result and a result to each call."""
        if any(result.name is None for result in self.results):
            return len(self.calls) == len(self.results) and all(
                result.name in (None, call.name) for call, result in zip(self.calls, self.results, strict=True)
            )
        return Counter(call.name for call in self.calls) == Counter(result.name for result in self.results)


def _missing(turns: list[Turn]) -> list[tuple[Call | Result, str, str]]:
    """Return each call or result that lacks an id, together with the id of its counterpart and the name of the call.

    Ids are compared only within a turn, because clients that number their calls use the same ids in every turn.
    """
    steps = [_without_exact_pairs(step) for step in _steps(turns)]
    called = Counter(call.call_id for step in steps for call in step.calls)
    answered = Counter(result.call_id for step in steps for result in step.results)
    found: list[tuple[Call | Result, str, str]] = []
    for step in steps:
        whole, waiting, given = step.is_complete(), _Waiting(), set[str]()
        for call in step.calls:
            if whole or not (call.call_id and answered[call.call_id]):
                waiting.add(call)
            else:
                answered[call.call_id] -= 1  # the result of this call is in another step
        for result in step.results if whole else sorted(step.results, key=lambda one: one.name is None):
            if result.call_id and called[result.call_id] and not whole:
                called[result.call_id] -= 1  # the call of this result is in another step
                continue
            if result.call_id in given:
                continue  # this is a repeated result of a paired call
            call_records = waiting.take(result.name, nameless=bool(result.call_id))
            if call_records is None:
                continue
            if result.call_id:
                given.add(result.call_id)
                found.append((call_records, result.call_id, call_records.name))
            elif call_records.call_id:  # if neither has an id, a later pass pairs them by name and order
                found.append((result, call_records.call_id, call_records.name))
    return found


def _steps(turns: list[Turn]) -> list[_Step]:
    steps = [_Step([], [])]
    for turn in turns:
        calls = [part for part in turn.parts if isinstance(part, Call)]
        if calls:
            steps.append(_Step(calls, []))
        steps[-1].results += [part for part in turn.parts if isinstance(part, Result)]
    return steps


def _without_exact_pairs(step: _Step) -> _Step:
    """Return the step without the calls and results that match by id, and without repeated results."""
    answered = Counter(result.call_id for result in step.results if result.call_id)
    called = {call.call_id for call in step.calls if call.call_id}
    calls: list[Call] = []
    for call in step.calls:
        if answered[call.call_id]:
            answered[call.call_id] -= 1
        else:
            calls.append(call)
    return _Step(calls, [result for result in step.results if result.call_id not in called])
