"""Stores unknown members of the choices and deltas of a source in the same dialect, so that they can be written.

The members are written in the first output chunk for the source's chunk. Members that arrive with a finish reason are
written in the output chunk with that finish reason, unless the finish reason of the choice has already passed through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.encode.chat.list_indexes import ListIndexes
from streamweld._pure.encode.common.extra_members import joined, members_text, merged, writable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamweld._pure.json.members import Raw
    from streamweld._pure.model.unmodelled import ChoiceMembers

__all__ = ["OwnMembers"]


class OwnMembers:
    """The unwritten members of all choices."""

    __slots__ = ("_delta_names", "_finish", "_lists", "_lossy", "_names", "_unwritten")

    def __init__(self) -> None:
        self._unwritten: dict[int, tuple[Raw, Raw]] = {}  # members of a choice, and members of its delta
        # The members of a choice, and the members of its delta, that arrived with the finish reason.
        self._finish: dict[int, tuple[Raw, Raw]] = {}
        self._names: dict[int, set[str]] = {}  # names of the members in the source's current chunk
        self._delta_names: dict[int, set[str]] = {}  # names of the delta's members in the source's current chunk
        self._lists: dict[int, ListIndexes] = {}  # the lists in the deltas
        self._lossy: set[int] = set()  # choices with members in the current chunk that cannot be written

    def record(self, content: ChoiceMembers, *, is_over: bool) -> None:
        """Store the members of a choice, which replace the members from the choice's previous chunk.

        `is_over` is true if a finish reason of the choice has already passed through, so that no other finish reason is
        written.
        """
        finishes = content.finishes and not is_over
        own, delta = writable(content.members), self._indexed(content.choice, writable(content.delta))
        self._names[content.choice], self._delta_names[content.choice] = {*own, *delta}, {*delta}
        self._unwritten.pop(content.choice, None)
        if finishes:
            before, delta_before = self._finish.get(content.choice, ({}, {}))
            own, delta = merged(before, own), merged(delta_before, delta)
        if own or delta:
            (self._finish if finishes else self._unwritten)[content.choice] = own, delta

    def _indexed(self, choice: int, members: Raw) -> Raw:
        """Return the members of a delta that can be written. In their lists, elements without an `index` get one."""
        lists = self._lists.setdefault(choice, ListIndexes())
        self._lossy.discard(choice)
        made: Raw = {}
        for name, raw in members.items():
            indexed = lists.index(name, raw)
            if indexed.json is not None:
                made[name] = indexed.json
            if indexed.is_lossy:
                self._lossy.add(choice)
        return made

    def has_list(self, choice: int, name: str) -> bool:
        """Return True if a delta of the choice contained this list, so that the list is written with the delta's other
        members.
        """
        return choice in self._lists and self._lists[choice].has(name)

    def has_in_delta(self, choice: int, name: str) -> bool:
        """Return True if the delta of the choice in the source's current chunk has this member."""
        return name in self._delta_names.get(choice, ())

    def is_lossy(self, choice: int) -> bool:
        """Return True if the source's current chunk has members of the choice that cannot be written."""
        return choice in self._lossy

    def has_unwritten(self, choice: int) -> bool:
        """Return True if the choice has members in the source's current chunk that were not written yet."""
        return choice in self._unwritten

    def begin_finish(self, choice: int) -> None:
        """Add the choice's unknown members that arrived with its finish reason to the next chunk."""
        if choice in self._finish:
            self._unwritten[choice] = self._finish.pop(choice)

    def take(self, choice: int, delta: str) -> tuple[str, Raw]:
        """Return two values: `delta` with the members of the source's delta, and the members of the source's choice."""
        own, in_delta = self._unwritten.pop(choice, ({}, {}))
        if not in_delta:
            return delta, own
        return "{" + members_text(in_delta)[1:] + "}" if delta == "{}" else joined(delta, in_delta), own

    def lost(self, choice: int, names: Iterable[str]) -> list[str]:
        """Return those of the names that are not members of the choice or its delta."""
        known = self._names.get(choice, ())
        return [name for name in names if name not in known]
