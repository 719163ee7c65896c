"""Distinguishes replayed events from new events that have the same `sequence_number`.

A stream that is resumed or replayed repeats events with their `sequence_number`; a gateway that hard-codes the number
does not repeat events. Exact duplicates are therefore dropped until a number occurs with two different contents.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamweld._pure.model.output import Output

# Number of events to remember. Replayed events before this window are treated as new events; the assembler still
# matches them by item ids and the terminal output.
WINDOW = 16_384


class Sequence:
    """The sequence numbers of one stream. They are used as long as they can be trusted."""

    __slots__ = ("_order", "_out", "_reported", "_seen", "_trusted")

    def __init__(self, out: Output) -> None:
        self._out = out
        self._seen: dict[int, int] = {}  # hash of the payload by number
        self._order: deque[int] = deque()  # numbers in order of arrival
        self._trusted = True
        self._reported = False

    def is_replayed(self, number: object, text: str) -> bool:
        """Return whether an event with this number and content has been seen before.

        A number that is not an integer is ignored.
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
