"""Adds an `index` to the objects in the lists of a delta, because clients merge the lists of two deltas by index.

openai-python accumulates the lists that a member of the delta has in successive chunks. The client stores the first
list unchanged, unless an entry has an `index`. In every later list, each entry must have an `index`. The client merges
the entry into the stored entry at that position, or appends it if that position is free. Lists inside the objects of a
delta, such as LiteLLM's `provider_specific_fields.thinking_blocks`, are merged in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from streamweld._json import loads_raw
from streamweld._pure.encode.common.writer import compact_json
from streamweld._pure.json.kinds import is_array, is_object
from streamweld._pure.model.list_path import MAX_LISTS, ListPath

__all__ = ["Indexed", "ListIndexes"]

_LAST: Final = 2**63 - 1


@dataclass(slots=True)
class _KnownList:
    length: int = 0
    after_last: int = 0  # the index after the highest one
    has_objects: bool = False  # whether an entry was an object


@dataclass(slots=True)
class Indexed:
    """How a member of a delta is written."""

    json: str | None  # None if the member cannot be written
    is_lossy: bool = False  # entries that clients cannot merge were removed


class ListIndexes:
    """The lists that a client has accumulated from the deltas of one choice."""

    __slots__ = ("_is_changed", "_is_lossy", "_lists")

    def __init__(self) -> None:
        self._lists: dict[str, _KnownList] = {}  # by path, such as `provider_specific_fields/thinking_blocks`
        self._is_changed = False  # whether the current member differs from what the source sent
        self._is_lossy = False

    def has(self, path: str) -> bool:
        """Return True if the list at the path has entries."""
        return path in self._lists

    def index(self, name: str, text: str) -> Indexed:
        """Add indexes to the lists in the value of a member, and store the lengths of these lists."""
        if not text.startswith(("[", "{")) or "[" not in text:
            return Indexed(text)
        self._is_changed = self._is_lossy = False
        value = self._indexed(ListPath(name), loads_raw(text))
        if not self._is_changed:
            return Indexed(text)
        return Indexed(None if value is None else compact_json(value), self._is_lossy)

    def _indexed(self, path: ListPath, value: Any) -> Any:
        """Return the value to write, or None if the value is a list that cannot be written."""
        if is_array(value):
            return self._list(path, value)
        if not is_object(value):
            return value
        indexed: dict[str, Any] = {}
        for name, member in value.items():
            here = path.member(name) if is_array(member) or is_object(member) else None
            made = member if here is None else self._indexed(here, member)
            if here is None or made is not None:
                indexed[name] = made
        return indexed

    def _list(self, path: ListPath, entries: list[Any]) -> list[Any] | None:
        if not entries:
            return entries
        found = [entry for entry in entries if is_object(entry)]
        if path.text not in self._lists and (len(self._lists) == MAX_LISTS or path.is_long()):
            return self._lossy(None) if found else entries
        known = self._lists.setdefault(path.text, _KnownList())
        had_objects, known.has_objects = known.has_objects, known.has_objects or bool(found)
        is_whole = len(found) == len(entries)
        indexes = [_index_of(entry) for entry in found]
        # Clients store the first list of a member unchanged if no entry has an index, and append later entries to a
        # list without objects.
        if not had_objects and (known.length or not (is_whole or any("index" in entry for entry in found))):
            known.length += len(entries)
            return entries
        indexed: list[Any] = []
        made: set[int] = set()  # positions of entries that had no index
        for entry, index in zip(found, indexes, strict=True):
            if index is not None and index not in made:
                indexed.append(entry)
                known.after_last = max(known.after_last, min(index + 1, _LAST))
                known.length += index >= known.length
                continue
            self._is_changed = True
            others = {name: value for name, value in entry.items() if name != "index"}
            # Clients also append an entry whose index is past the end of the list.
            index = max(known.length, known.after_last)
            indexed.append(others | {"index": index})
            known.after_last = min(index + 1, _LAST)
            made.add(known.length)
            known.length += 1
        return indexed if is_whole else self._lossy(indexed or None)

    def _lossy(self, left: list[Any] | None) -> list[Any] | None:
        """Record that some entries cannot be written, and return the entries that can."""
        self._is_changed = self._is_lossy = True
        return left


def _index_of(entry: dict[str, Any]) -> int | None:
    """Return the index of an entry, or None if clients cannot use it as a position."""
    index = entry.get("index")
    return index if type(index) is int and 0 <= index <= _LAST else None
