"""Pair a call and a result of which only one has an id: the other gets that id. Constraint: `tool_id.optional`.

Gemini's ids are optional, and clients add them on one side only: https://github.com/google-gemini/gemini-cli/issues/6974.
A result is paired by name and order with a call of the last turn that has calls. Exact ids always win.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# (JSON as callers give it: what is in a container is known only once it is looked at)

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

from streamweld.history.model import Call, Result, changed, copied, with_parts

if TYPE_CHECKING:
    from streamweld.history.context import Context
    from streamweld.history.model import Part, Turn

__all__ = ["run"]


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with an id on both sides of every pair that has one."""
    found = context.survey(turns)
    if found.paired or (all(call.call_id for call in found.calls) and all(result.call_id for result in found.results)):
        return turns
    given = _missing(turns, Counter(call.call_id for call in found.calls), Counter(r.call_id for r in found.results))
    if not given:
        return turns
    optional = bool((context.fact("tool_id") or {}).get("optional"))
    new: dict[int, Part] = {}
    for part, call_id in given:
        if optional:  # the target pairs them as they are: what was read is written back
            new[id(part)] = copied(part, call_id=call_id)
        else:
            context.edit("call_id_missing", part.path, f"gave it the id {call_id!r} of the other side of its pair")
            new[id(part)] = changed(part, call_id=call_id)
    touched = [any(id(part) in new for part in turn.parts) for turn in turns]
    return [
        with_parts(turn, [new.get(id(part), part) for part in turn.parts]) if changes else turn
        for turn, changes in zip(turns, touched, strict=True)
    ]


class _Waiting:
    """Calls of one turn that no exact id answers, by name and in order."""

    def __init__(self) -> None:
        self._queues: dict[tuple[bool, str | None], deque[Call]] = {}  # (only those without an id, name or any)
        self._taken: set[int] = set()

    def add(self, call: Call) -> None:
        for key in ((False, call.name), (False, None), (True, call.name), (True, None)):
            if not (key[0] and call.call_id):
                self._queues.setdefault(key, deque()).append(call)

    def take(self, name: str | None, *, nameless: bool) -> Call | None:
        """Take the first call of that name; without a name the first of all. `nameless`: of those without an id."""
        queue = self._queues.get((nameless, name))
        while queue:
            call = queue.popleft()
            if id(call) not in self._taken:
                self._taken.add(id(call))
                return call
        return None


def _missing(turns: list[Turn], called: Counter[str], answered: Counter[str]) -> list[tuple[Call | Result, str]]:
    """Return each call or result that lacks an id, with the id of the other side of its pair."""
    found: list[tuple[Call | Result, str]] = []
    waiting = _Waiting()  # of the last turn that has calls
    for turn in turns:
        calls = [part for part in turn.parts if isinstance(part, Call)]
        if calls:
            waiting = _Waiting()
        for call in calls:
            if call.call_id and answered[call.call_id]:
                answered[call.call_id] -= 1
            else:
                waiting.add(call)
        for part in turn.parts:
            if not isinstance(part, Result) or (part.call_id and called[part.call_id]):
                continue
            asked = waiting.take(part.name, nameless=bool(part.call_id))
            if asked is None:
                continue
            if part.call_id:
                called[part.call_id] += 1
                found.append((asked, part.call_id))
            elif asked.call_id:  # else neither has an id: name and order pair them later
                found.append((part, asked.call_id))
    return found
