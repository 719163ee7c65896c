"""Which call a result belongs to, when ids recur: the calls of the latest turn first, among them in order.

It knows calls and results, no target.
"""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["OpenCalls"]

_T = TypeVar("_T")


class OpenCalls(Generic[_T]):
    """Calls that wait for a result. A result without an id takes a call without one: of its name, else the next."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[list[tuple[str, _T]]]] = {}
        self._turn: dict[str, int] = {}

    def add(self, turn: int, call_id: str, name: str, what: _T) -> None:
        """A call of that turn."""
        turns = self._waiting.setdefault(call_id, [])
        if not turns or self._turn.get(call_id) != turn:
            turns.append([])
            self._turn[call_id] = turn
        turns[-1].append((name, what))

    def take(self, call_id: str, name: str | None) -> _T | None:
        """The call that this result answers; None where none waits."""
        turns = self._waiting.get(call_id)
        if not turns:
            return None
        latest = turns[-1]
        at = 0
        if not call_id and name:
            at = next((n for n, (called, _) in enumerate(latest) if called == name), 0)
        what = latest.pop(at)[1]
        if not latest:
            turns.pop()
            self._turn.pop(call_id, None)
        return what
