"""Matches the entries of an item's content list with the item's streamed parts. An entry is the text of one listed
part. This module compares only texts; it does not change parts.

1   If the entries and the streamed parts concatenate to the same text, they agree, regardless of how that text is
    divided.
2a  A part that has been closed is matched with an entry that has the same text: the entry at the part's position,
    otherwise the first free entry.
2b  If there is no such entry and other parts are still open, the part is matched with the start of an entry: the entry
    at the part's position, otherwise the first free entry. The open parts get the rest of that entry.
2c  If neither 2a nor 2b applies, the part keeps its text. The entry at the part's position is then skipped, unless an
    open part has the same text as that entry.
3   Open parts are matched with the remaining entries in order, equal texts first. An entry between two parts is added
    to the part before it. Entries at the end become new parts, or are added to the last part if its deltas had several
    sub-indexes.
4   A part without an entry becomes empty, unless the entry at the part's position is empty. A part that contains late
    text keeps it, because the list may contain only the part that was closed before.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Assignment", "PartUpdate", "Plan", "StreamedPart"]

Assignment = int | Literal["new", "unassigned"]  # what an entry is assigned to: a part, a new part, or nothing


class StreamedPart(NamedTuple):
    """The facts about a streamed part that the matching uses."""

    text: str
    done: bool  # the closing event of the part was emitted
    several_labels: bool  # the deltas of the part had several sub-indexes
    is_late: bool  # the part contains text that arrived after an earlier part was closed


class PartUpdate(NamedTuple):
    """The effect of the list on one streamed part.

    `kept`: the part keeps its streamed text. `text`: the new text of the part. `contradicted`: the closing event of the
    part was emitted, but the list has a different text for it or omits it. `left`: the list omits the part.
    """

    kind: Literal["kept", "text", "contradicted", "left"]
    text: str = ""


KEPT = PartUpdate("kept")


class Plan:
    """The result of the matching: the effect on each streamed part, and the part to which each entry is assigned."""

    __slots__ = ("assignments", "updates")

    def __init__(self, parts: Sequence[StreamedPart], entries: Sequence[str]) -> None:
        self.updates = [KEPT] * len(parts)
        self.assignments: list[Assignment] = ["unassigned"] * len(entries)
        if "".join([part.text for part in parts]) == "".join(entries):
            self._divide(parts, entries)
        elif any(entries):
            starts = [0] * len(entries)  # length of each entry's beginning that belongs to closed parts
            free = self._take_done(parts, entries, starts)
            self._take_open(parts, entries, starts, free)
            self._check_order(parts)
        # An empty entry belongs to the part at the same position, but does not change that part.
        for position, (text, update) in enumerate(zip(entries, self.updates, strict=False)):
            if not text:
                self.assignments[position] = position
                if update.kind == "left":
                    self.updates[position] = KEPT

    def _divide(self, parts: Sequence[StreamedPart], entries: Sequence[str]) -> None:
        """Rule 1: assign each entry to the part in which the entry starts."""
        for position, part in enumerate(parts):
            if not part.done and part.text:
                self.updates[position] = PartUpdate("text", part.text)
        if not parts:
            return
        at, end, start = 0, len(parts[0].text), 0
        for entry, text in enumerate(entries):
            while start >= end and at + 1 < len(parts):
                at += 1
                end += len(parts[at].text)
            self.assignments[entry] = at
            start += len(text)

    def _take_done(self, parts: Sequence[StreamedPart], entries: Sequence[str], starts: list[int]) -> list[int]:
        """Rule 2: assign entries to closed parts, and return the positions of the entries that remain free.

        For each entry, store in `starts` the offset of the text that does not belong to a closed part.
        """
        free = [bool(text) for text in entries]
        unequal: list[int] = []
        for position, part in enumerate(parts):
            if not (part.done and part.text):
                continue
            if position < len(entries) and entries[position] == part.text:
                self._assign_part(position, position, free)
            else:
                unequal.append(position)
        by_text: dict[str, deque[int]] = {}
        for entry, text in enumerate(entries):
            if free[entry]:
                by_text.setdefault(text, deque()).append(entry)
        rest: list[int] = []
        for position in unequal:
            same = by_text.get(parts[position].text)
            if same:
                self._assign_part(position, same.popleft(), free)
            else:
                rest.append(position)
        open_texts = {part.text for part in parts if not part.done}
        first = 0
        for position in rest:
            text = parts[position].text
            while first < len(free) and not free[first]:
                first += 1
            here = position if position < len(free) and free[position] else None
            taken = first if here is None and open_texts and first < len(free) else here
            if taken is not None and open_texts and entries[taken].startswith(text, starts[taken]):
                if starts[taken] + len(text) == len(entries[taken]):
                    self._assign_part(position, taken, free)
                else:
                    starts[taken] += len(text)
                continue
            self.updates[position] = PartUpdate("contradicted")
            if here is not None and entries[here] not in open_texts:
                self._assign_part(position, here, free)
        return [entry for entry, is_free in enumerate(free) if is_free]

    def _take_open(
        self, parts: Sequence[StreamedPart], entries: Sequence[str], starts: list[int], free: list[int]
    ) -> None:
        """Rules 3 and 4: assign the remaining entries to open parts. `free` contains the positions of these entries.

        For each entry, `starts` contains the offset of the text that does not belong to a closed part.
        """
        open_positions = [position for position, part in enumerate(parts) if not part.done]
        open_texts = [parts[position].text for position in open_positions]
        free_texts = [entries[entry][starts[entry] :] for entry in free]
        if len(open_positions) > len(free):
            matched = _matched(free_texts, open_texts)
            taken = 0
            for number, position in enumerate(open_positions):
                if taken < len(matched) and matched[taken] == number:
                    self.updates[position] = PartUpdate("text", free_texts[taken])
                    self.assignments[free[taken]] = position
                    taken += 1
                elif parts[position].text:
                    # The list may show only the text before the part was closed, so the late text is kept.
                    self.updates[position] = PartUpdate("contradicted" if parts[position].is_late else "left")
            return
        matched = _matched(open_texts, free_texts)
        taken = 0
        for number, position in enumerate(open_positions):
            if number + 1 < len(matched):
                end = matched[number + 1]
            elif parts[position].several_labels:
                end = len(free)
            else:
                end = matched[number] + 1
            self.updates[position] = PartUpdate("text", "".join(free_texts[taken:end]))
            for entry in free[taken:end]:
                self.assignments[entry] = position
            taken = end
        for entry in free[taken:]:
            self.assignments[entry] = "new"

    def _check_order(self, parts: Sequence[StreamedPart]) -> None:
        """Mark closed parts as contradicted if the list contains the parts in another order, because a closed part
        cannot be moved.
        """
        last = 0
        for assignment in self.assignments:
            if not isinstance(assignment, int):
                continue
            if assignment < last:
                self.updates[assignment if parts[assignment].done else last] = PartUpdate("contradicted")
            last = max(last, assignment)

    def _assign_part(self, position: int, entry: int, free: list[bool]) -> None:
        self.assignments[entry] = position
        free[entry] = False


def _matched(fewer: Sequence[str], others: Sequence[str]) -> list[int]:
    """Return a position in the longer list `others` for each text of the shorter list `fewer`, in ascending order.

    Each position is that of the first equal text that leaves enough positions for the other texts, or else the next
    free position.
    """
    by_text: dict[str, deque[int]] = {}
    for position, text in enumerate(others):
        by_text.setdefault(text, deque()).append(position)
    following, spare = 0, len(others) - len(fewer)
    positions: list[int] = []
    for text in fewer:
        position = following
        same = by_text.get(text, deque())
        while same and same[0] < following:
            same.popleft()
        if same and same[0] - following <= spare:
            position = same[0]
        spare -= position - following
        positions.append(position)
        following = position + 1
    return positions
