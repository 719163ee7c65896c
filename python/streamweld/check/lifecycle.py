"""Code shared by the checkers of all dialects: their interface, access to JSON members, and comparison of texts by
digest.

Memory is bounded: text is stored as a length and a digest, JSON text as the state of an automaton, and everything that
is stored per id counts toward `MOST_KEPT`. This module does not depend on a dialect.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from streamweld._pure.json.automaton import Automaton

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streamweld.check.violation import Report

__all__ = [
    "MOST_KEPT",
    "TRUNCATED",
    "Json",
    "Lifecycle",
    "Text",
    "array",
    "count",
    "digest",
    "missing",
    "object_",
    "string",
]

MOST_KEPT: Final = 32 << 20  # approximate number of bytes that a checker may store for one stream
TRUNCATED: Final = "it is truncated"  # the fault to report for an incomplete JSON object
_ENTRY: Final = 256  # number of bytes counted per stored value, in addition to its text


class Lifecycle:
    """Base class for the rules of one dialect. `event` or `marker` is called for each payload, and `end` at the end."""

    dialect: ClassVar[str]

    def __init__(self, report: Report) -> None:
        self.report: Report = report
        self.full: bool = False  # the memory limit was reached, so the rest of the stream is not checked
        self._kept = 0

    def event(self, value: dict[str, Any], name: str, identifier: str) -> None:
        """Check a payload object. `name` and `identifier` are the event name and id of its frame."""
        raise NotImplementedError

    def marker(self) -> None:
        """Check `[DONE]`."""
        raise NotImplementedError

    def end(self) -> None:
        """Check for events that are missing at the end of the input."""
        raise NotImplementedError

    def record(self, rule: str, detail: str = "") -> None:
        self.report.record(f"{self.dialect}.{rule}", detail)

    def once(self, rule: str, detail: str = "") -> None:
        self.report.once(f"{self.dialect}.{rule}", detail)

    def remember(self, *words: str | None) -> None:
        """Count the size of a value that is stored until the end of the stream."""
        self._kept += _size(words)
        if self._kept > MOST_KEPT and not self.full:
            self.full = True
            self.report.record("framing.too_much")

    def forget(self, *words: str | None) -> None:
        """Stop counting the size of a value that was removed."""
        self._kept -= _size(words)


def _size(words: Iterable[str | None]) -> int:
    return _ENTRY + sum(len(word) for word in words if word)


class Text:
    """The digest of a text that arrives in fragments, for comparison with the complete text sent later."""

    __slots__ = ("_has_replacement", "_hash", "length", "pieces")

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._has_replacement = False
        self.length: int = 0
        self.pieces: int = 0

    def add(self, piece: str) -> None:
        self._hash.update(piece.encode("utf-8", "surrogatepass"))
        self._has_replacement = self._has_replacement or "\ufffd" in piece
        self.length += len(piece)
        self.pieces += 1

    def is_(self, whole: str) -> bool:
        if self._has_replacement:  # two fragments may each contain one half of a surrogate pair
            return True
        return digest(whole) == self._hash.digest() and len(whole) == self.length


class Json:
    """JSON text that arrives in fragments, checked by an automaton."""

    __slots__ = ("_automaton", "length")

    def __init__(self) -> None:
        self._automaton = Automaton()
        self.length: int = 0

    def add(self, piece: str) -> None:
        self._automaton.feed(piece)
        self.length += len(piece.strip(" \t\r\n"))

    def fault(self) -> str:
        """Return why the text is not a single JSON object, or `""` if it is."""
        verdict = self._automaton.final
        if verdict == "broken":
            return f"no JSON at byte {self._automaton.pos}"
        if self._automaton.root != "object":
            return f"the root is {self._automaton.root}" if self._automaton.root else "nothing but blanks"
        return "" if verdict == "complete" else TRUNCATED


def digest(value: object) -> bytes:
    """Return the digest of a string or other JSON value. The order of members does not affect the digest."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def object_(value: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """Return the member if it is an object, otherwise None."""
    found = value.get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def array(value: Mapping[str, Any], name: str) -> list[object] | None:
    """Return the member if it is an array, otherwise None."""
    found = value.get(name)
    return cast("list[object]", found) if isinstance(found, list) else None


def string(value: Mapping[str, Any], name: str) -> str | None:
    """Return the member if it is a string, otherwise None."""
    found = value.get(name)
    return found if isinstance(found, str) else None


def count(value: Mapping[str, Any], name: str) -> int | None:
    """Return the member if it is an integer of at least 0, otherwise None."""
    found = value.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def missing(value: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return the names of the missing members as text for a message."""
    return ", ".join([name for name in names if name not in value])
