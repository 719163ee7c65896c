"""`OpenCalls`: pair tool results with calls by id or, without an id, by name and order."""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["OpenCalls"]

_T = TypeVar("_T")


class OpenCalls(Generic[_T]):
    """Calls that wait for a result.

    A result without an id belongs to a call without an id: the first call with the same name, otherwise the first call.
    """

    def __init__(self) -> None:
        # For each call id: the turns with calls that wait for a result, and the name and value of each such call.
        self._waiting: dict[str, list[tuple[int, list[tuple[str, _T]]]]] = {}

    def add(self, turn: int, call_id: str, name: str, what: _T) -> None:
        """Add a call in a turn. `what`: the value that `take` returns for this call."""
        turns = self._waiting.get(call_id)
        if turns is None:
            self._waiting[call_id] = [(turn, [(name, what)])]
        elif turns and turns[-1][0] == turn:
            turns[-1][1].append((name, what))
        else:
            turns.append((turn, [(name, what)]))

    def take(self, call_id: str, name: str | None) -> _T | None:
        """Remove and return the call that this result belongs to, or return None if no such call is waiting."""
        turns = self._waiting.get(call_id)
        if not turns:
            return None
        latest = turns[-1][1]
        at = 0
        if name and not call_id:
            at = next((n for n, (called, _) in enumerate(latest) if called == name), 0)
        what = latest.pop(at)[1]
        if not latest:
            turns.pop()
        return what
