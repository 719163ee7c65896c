"""Distinguishes replayed events from new events that have the same `sequence_number`.

A resumed or replayed stream repeats events with their `sequence_number`. A gateway that hard-codes the number uses it
for different events. Exact duplicates are therefore dropped until two different events have the same number.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamweld._pure.model.output import Output

# Number of recent events that are compared. Older events that are replayed count as new events, but the assembler still
# matches them by item id and terminal output.
WINDOW = 16_384


class Sequence:
    """The sequence numbers of one stream. The numbers are used until one of them proves unreliable."""

    __slots__ = ("_order", "_out", "_reported", "_seen", "_trusted")

    def __init__(self, out: Output) -> None:
        self._out = out
        self._seen: dict[int, int] = {}  # hash of the payload by number
        self._order: deque[int] = deque()  # numbers in order of arrival
        self._trusted = True
        self._reported = False

    def is_replayed(self, number: object, text: str) -> bool:
        """Return whether an event with this number and content has been seen before.

        Return False if the number is not an integer.
        """
        if type(number) is not int:
            return False
        self._out.sequence = number
        if not self._trusted:
            return False
        mark = hash(text)
        known = self._seen.get(number)
        if known is None:
            if len(self._seen) >= WINDOW:
                del self._seen[self._order.popleft()]
            self._seen[number] = mark
            self._order.append(number)
            return False
        if known != mark:
            self._trusted = False
            self._seen.clear()
            self._order.clear()
            self._out.diagnose("sequence_untrusted", detail=str(number))
            return False
        self._out.emptied = True
        if not self._reported:
            self._reported = True
            self._out.diagnose("sequence_replayed", detail=str(number))
        return True
