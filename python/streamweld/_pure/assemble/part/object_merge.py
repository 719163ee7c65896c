"""Merges JSON objects that arrive in several pieces: arguments sent as objects, and provider metadata.

`ObjectMerge` merges arguments member by member: a string that begins with the previous string replaces it, any other
string is appended to the previous string, and a value of any other type replaces the previous value. `RawMembers` keeps
the last text of each key. The cost of a merge is proportional to the new piece; the whole text is built only on demand.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from streamweld._pure.assemble.part.canonical_json import canonical, is_whole
from streamweld._pure.json.kinds import is_object
from streamweld._pure.json.scanner import parse, replace_lone_surrogates

__all__ = ["Growth", "ObjectMerge", "RawMembers"]


class _Pieces:
    """A string value, stored in pieces so that adding one takes time proportional only to that piece."""

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
    """The members merged so far: for each key, the JSON text of its value or the pieces of a string."""

    __slots__ = ("_members", "size")

    def __init__(self, first: str) -> None:
        self._members: dict[str, str | _Pieces] = {}
        self.size = 2  # approximate size in characters, for the limits
        self.add(first)

    def add(self, raw: str) -> None:
        """Merge the JSON text of one more object."""
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
        """Return True if another object has the same members. The cost is proportional to the size of that object."""
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
    """Return the text of each member. If a key is repeated, the last value is returned at the position of the first.

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
    # To bound the cost, a much longer value is treated as different, even if it is only spelled differently.
    return value == text or (len(value) <= 2 * len(text) and canonical(value) == canonical(text))


class Growth(NamedTuple):
    """Change in the size of the stored members."""

    size: int
    entries: int  # values stored separately; 0 while there is only one object, which is stored as one text

    def released(self) -> Growth:
        """Return the change that undoes this one."""
        return Growth(-self.size, -self.entries)


class RawMembers:
    """Members of raw objects; for each key, the last value that is not null."""

    __slots__ = ("_entries", "_members", "size")

    def __init__(self) -> None:
        self._members: dict[str, str] = {}
        self._entries = 0  # 0 while there is only one object, which the native backend stores as one text
        self.size = 0

    def add(self, raw: str) -> Growth:
        """Add the members of one object. Return the change in the size of the stored members."""
        before = self.held()
        several = bool(self._members)
        for key, text in parse(raw).members().items():
            old = self._members.get(key)
            if old is not None and text == "null":  # a later null does not replace a value
                continue
            self.size += len(text) - len(old) if old is not None else len(key) + len(text) + 4
            self._members[key] = text
        if several:
            self._entries = len(self._members)
        after = self.held()
        return Growth(after.size - before.size, after.entries - before.entries)

    def held(self) -> Growth:
        """Return the size of all stored members."""
        return Growth(self.size, self._entries)

    def put(self, key: str, text: str) -> None:
        self._members[key] = text

    def text(self) -> str | None:
        if not self._members:
            return None
        return "{" + ",".join(f"{json.dumps(key)}:{text}" for key, text in self._members.items()) + "}"
