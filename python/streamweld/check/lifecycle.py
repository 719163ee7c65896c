"""What the checkers of all dialects share: the shape of one, safe looks into JSON, texts compared without keeping them.

Memory is bounded: of a text only its length and a digest stay, of JSON text only an automaton, and what must be
remembered for each id is counted against `MOST_KEPT`. It knows no dialect.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from streamweld._pure.json.automaton import Automaton

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streamweld.check.violation import Report

__all__ = ["MOST_KEPT", "Json", "Lifecycle", "Text", "array", "count", "digest", "missing", "object_", "string"]

MOST_KEPT: Final = 32 << 20  # bytes, about, that one stream may make a checker remember
_ENTRY: Final = 256  # what one remembered thing costs beside its words


class Lifecycle:
    """The rules of one dialect, fed one payload after the other. `name` is the frame's event name."""

    dialect: ClassVar[str]

    def __init__(self, report: Report) -> None:
        self.report: Report = report
        self.full: bool = False  # too much to remember: what comes is not looked at
        self._kept = 0

    def event(self, value: dict[str, Any], name: str, identifier: str) -> None:
        """A payload object."""
        raise NotImplementedError

    def marker(self) -> None:
        """`[DONE]`."""
        raise NotImplementedError

    def end(self) -> None:
        """The end of the input."""
        raise NotImplementedError

    def say(self, rule: str, detail: str = "") -> None:
        self.report.say(f"{self.dialect}.{rule}", detail)

    def once(self, rule: str, detail: str = "") -> None:
        self.report.once(f"{self.dialect}.{rule}", detail)

    def remember(self, *words: str | None) -> None:
        """Something was put into a table for the rest of the stream."""
        self._kept += _size(words)
        if self._kept > MOST_KEPT and not self.full:
            self.full = True
            self.report.say("framing.too_much")

    def forget(self, *words: str | None) -> None:
        """It was taken out again."""
        self._kept -= _size(words)


def _size(words: Iterable[str | None]) -> int:
    return _ENTRY + sum(len(word) for word in words if word)


class Text:
    """A text that came in pieces, to be compared with one that comes whole."""

    __slots__ = ("_doubtful", "_hash", "length", "pieces")

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._doubtful = False
        self.length: int = 0
        self.pieces: int = 0

    def add(self, piece: str) -> None:
        self._hash.update(piece.encode("utf-8", "surrogatepass"))
        self._doubtful = self._doubtful or "\ufffd" in piece
        self.length += len(piece)
        self.pieces += 1

    def is_(self, whole: str) -> bool:
        if self._doubtful:  # a character that was cut in two pieces is none in each of them
            return True
        return digest(whole) == self._hash.digest() and len(whole) == self.length


class Json:
    """A JSON text that comes in pieces."""

    __slots__ = ("_automaton", "length")

    def __init__(self) -> None:
        self._automaton = Automaton()
        self.length: int = 0

    def add(self, piece: str) -> None:
        self._automaton.feed(piece)
        self.length += len(piece.strip(" \t\r\n"))

    def fault(self) -> str:
        """What keeps it from being one JSON object; `""` if nothing does."""
        verdict = self._automaton.final
        if verdict == "broken":
            return f"no JSON at byte {self._automaton.pos}"
        if self._automaton.root != "object":
            return f"the root is {self._automaton.root}" if self._automaton.root else "nothing but blanks"
        return "" if verdict == "complete" else "it is cut"


def digest(value: object) -> bytes:
    """Of a text, or of any other JSON value whatever the order of its members."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def object_(value: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """A member that is an object; None where it is not."""
    found = value.get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def array(value: Mapping[str, Any], name: str) -> list[object] | None:
    """A member that is an array; None where it is not."""
    found = value.get(name)
    return cast("list[object]", found) if isinstance(found, list) else None


def string(value: Mapping[str, Any], name: str) -> str | None:
    """A member that is a string; None where it is not."""
    found = value.get(name)
    return found if isinstance(found, str) else None


def count(value: Mapping[str, Any], name: str) -> int | None:
    """A member that is an integer from 0; None where it is not."""
    found = value.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def missing(value: Mapping[str, Any], names: Iterable[str]) -> str:
    """Those of the names that are no members, as a list to read."""
    return ", ".join([name for name in names if name not in value])
