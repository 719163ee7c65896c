"""A set of numbers that only grows, and which of them are new since they were last collected.

Copying such a set once an event makes a stream of many items quadratic; collecting what is new does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Journal"]


class Journal:
    """Numbers in a set, and the new ones in order."""

    __slots__ = ("_fresh", "_seen")

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._fresh: list[int] = []

    def __contains__(self, number: int) -> bool:
        return number in self._seen

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, number: int) -> None:
        if number not in self._seen:
            self._seen.add(number)
            self._fresh.append(number)

    def update(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.add(number)

    def collected(self) -> list[int]:
        """What is new since the last call."""
        if not self._fresh:
            return []
        fresh, self._fresh = self._fresh, []
        return fresh
