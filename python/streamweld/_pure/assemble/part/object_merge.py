"""Merges the members of several JSON objects: arguments that arrive as objects, and provider metadata.

`ObjectMerge` merges arguments. For each key, a string that begins with the previous string replaces it, any other
string is appended to it, and a value of another type replaces the previous value. `RawMembers` keeps the last value of
each key. A merge takes time proportional to the size of the new object; the whole text is built only on demand.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from streamweld._pure.assemble.part.canonical_json import canonical, is_whole
from streamweld._pure.json.kinds import is_object
from streamweld._pure.json.scanner import parse, replace_lone_surrogates

__all__ = ["Growth", "ObjectMerge", "RawMembers"]


class _Pieces:
    """The pieces of a string value. The pieces are joined on demand, so that adding a piece takes time proportional to
    the length of the piece.
    """

    __slots__ = ("length", "pieces")

    def __init__(self, text: str) -> None:
        self.pieces = [text]
        self.length = len(text)

    def whole(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0]

    def take(self, text: str) -> None:
        if len(text) >= self.length and text.startswith(self.whole()):
            self.pieces = [text]
            self.length = len(text)
        else:
            self.pieces.append(text)
            self.length += len(text)


class ObjectMerge:
    """The members merged so far, by key: the pieces of a string, or the JSON text of any other value."""

    __slots__ = ("_members", "size")

    def __init__(self, first: str) -> None:
        self._members: dict[str, str | _Pieces] = {}
        self.size = 2  # approximate size of the merged text in characters, for the limits on arguments
        self.add(first)

    def add(self, raw: str) -> None:
        """Merge one more object, given as JSON text."""
        for key, text in _members(raw).items():
            before = self._members.get(key)
            if before is None:
                self.size += len(key) + 4
            else:
                self.size -= before.length if isinstance(before, _Pieces) else len(before)
            if not text.startswith('"'):
                after: str | _Pieces = text
            elif isinstance(before, _Pieces):
                before.take(_string(text))
                after = before
            else:
                after = _Pieces(_string(text))
            self._members[key] = after
            self.size += after.length if isinstance(after, _Pieces) else len(after)

    def has_same_members(self, raw: str) -> bool:
        """Return True if the other object has equal members. Takes time proportional to the size of the other
        object.
        """
        if not is_whole(raw):
            return False
        members = _members(raw)
        if members.keys() != self._members.keys():
            return False
        return all(_same(self._members[key], text) for key, text in members.items())

    def text(self) -> str:
        """Return the members as compact JSON, in the order in which they first appeared."""
        members: list[str] = []
        for key, value in self._members.items():
            text = json.dumps(value.whole(), ensure_ascii=False) if isinstance(value, _Pieces) else value
            members.append(f"{json.dumps(key, ensure_ascii=False)}:{text}")
        return "{" + ",".join(members) + "}"


def _members(raw: str) -> dict[str, str]:
    """Return the key of each member and the JSON text of its value, in order. A repeated key appears once, at its first
    position and with its last value.

    Text that is not an object has no members.
    """
    payload = parse(raw)
    if not is_object(payload.value):
        return {}
    texts = payload.members()
    return {replace_lone_surrogates(key): texts[key] for key in payload.value}


def _string(text: str) -> str:
    value: str = json.loads(text)
    return replace_lone_surrogates(value)


def _same(value: str | _Pieces, text: str) -> bool:
    if isinstance(value, _Pieces):
        if not text.startswith('"'):
            return False
        string = _string(text)
        return len(string) == value.length and string == value.whole()
    # To limit the time, a value of more than twice the length counts as different, even if it is equal JSON.
    return value == text or (len(value) <= 2 * len(text) and canonical(value) == canonical(text))


class Growth(NamedTuple):
    """A change in the size of stored members, for `max_text_bytes`."""

    size: int
    entries: int  # values that are stored separately; a single object is stored as one text and has none

    def released(self) -> Growth:
        """Return the change that undoes this one."""
        return Growth(-self.size, -self.entries)


class RawMembers:
    """The members of several raw JSON objects. The value of a key is the last one received that is not null."""

    __slots__ = ("_entries", "_members", "size")

    def __init__(self) -> None:
        self._members: dict[str, str] = {}
        self._entries = 0  # not counted while there is only one object, which the native backend stores as one text
        self.size = 0

    def add(self, raw: str) -> Growth:
        """Add the members of one object. Return the change in the size of the stored members."""
        before = self.held()
        several = bool(self._members)
        for key, text in parse(raw).members().items():
            old = self._members.get(key)
            if old is not None and text == "null":  # a null does not replace a value
                continue
            self.size += len(text) - len(old) if old is not None else len(key) + len(text) + 4
            self._members[key] = text
        if several:
            self._entries = len(self._members)
        after = self.held()
        return Growth(after.size - before.size, after.entries - before.entries)

    def held(self) -> Growth:
        """Return the size of all stored members, as the growth from an empty state."""
        return Growth(self.size, self._entries)

    def put(self, key: str, text: str) -> None:
        self._members[key] = text

    def text(self) -> str | None:
        if not self._members:
            return None
        return "{" + ",".join(f"{json.dumps(key)}:{text}" for key, text in self._members.items()) + "}"
