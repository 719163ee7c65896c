"""A set of numbers that can return the numbers added since the last query.

Returning the whole set for each event would take quadratic time in streams with many items.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["NumberSet"]


class NumberSet:
    """A set of numbers that can list the numbers added since the last query, in order of arrival."""

    __slots__ = ("_fresh", "_seen")

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._fresh: list[int] = []

    def __contains__(self, number: int) -> bool:
        return number in self._seen

    def overlaps(self, numbers: set[int]) -> bool:
        return not self._seen.isdisjoint(numbers)

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
        """Return the numbers added since the last call to this method."""
        if not self._fresh:
            return []
        fresh, self._fresh = self._fresh, []
        return fresh
