"""An ordered set of calls or items. Adding or removing a call or item, counting them, and reading the first or last one
all take constant time.

The set is a doubly linked list of numbers, so that neither finding the call of a fragment nor removing a call scans all
calls. A number that is removed and added again moves to the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CallList"]


class CallList:
    """The numbers of calls or items, in the order in which they were added."""

    __slots__ = ("_first", "_last", "_next", "_previous", "count")

    def __init__(self) -> None:
        self._next: dict[int, int | None] = {}
        self._previous: dict[int, int | None] = {}
        self._first: int | None = None
        self._last: int | None = None
        self.count = 0

    def __contains__(self, number: int) -> bool:
        return number in self._next

    def add(self, number: int) -> None:
        if number in self._next:
            return
        last = self._last
        self._previous[number] = last
        self._next[number] = None
        if last is None:
            self._first = number
        else:
            self._next[last] = number
        self._last = number
        self.count += 1

    def remove(self, number: int) -> None:
        if number not in self._next:
            return
        after = self._next.pop(number)
        before = self._previous.pop(number)
        if before is None:
            self._first = after
        else:
            self._next[before] = after
        if after is None:
            self._last = before
        else:
            self._previous[after] = before
        self.count -= 1

    def set(self, number: int, present: bool) -> None:
        if present:
            self.add(number)
        else:
            self.remove(number)

    def first(self) -> int | None:
        return self._first

    def last(self) -> int | None:
        return self._last

    def latest(self, most: int) -> Iterator[int]:
        """Iterate over the last `most` numbers, from the last to the first."""
        number = self._last
        while number is not None and most > 0:
            yield number
            number = self._previous[number]
            most -= 1
