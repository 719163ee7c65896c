"""Reads a block that arrives in pieces: the steps of the grammars are generators that wait for more text.

Each character is looked at a bounded number of times, and what was read is not kept here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["WHITE", "Cursor", "Malformed", "Steps"]

_T = TypeVar("_T")
Steps: TypeAlias = "Generator[None, None, _T]"

WHITE: Final = " \t\r\n"
_MOST_NAME: Final = 256
_NOT_WHITE: Final = re.compile(r"[^ \t\r\n]")
_NAME: Final = re.compile(r"""[^\x00-\x20<>"'`{}\[\](),;=|]*""")
_WORD: Final = re.compile(r"""[^\x00-\x20<>"'`{}\[\](),;=|:]*""")
_OUTSIDE: Final = {'"': re.compile(r'["{}\[\]]'), "\"'": re.compile(r"""["'{}\[\]()]""")}
_INSIDE: Final = {'"': re.compile(r'["\\]'), "'": re.compile(r"['\\]")}


class Malformed(Exception):
    """The text is not of this family."""


class Cursor:
    """Where a grammar stands in its text."""

    __slots__ = ("at", "buffer", "matched", "passed")

    def __init__(self) -> None:
        self.buffer = ""
        self.at = 0
        self.passed = 0  # characters read that are no longer in the buffer
        self.matched = False  # something other than white space and a name was read: any word of a sentence is a name

    def feed(self, text: str) -> None:
        self.passed += self.at
        self.buffer = self.buffer[self.at :] + text
        self.at = 0

    @property
    def sees_bracket(self) -> bool:
        """An object or a list begins here."""
        return self.buffer.startswith(("{", "["), self.at)

    @property
    def place(self) -> int:
        """How many characters were read."""
        return self.passed + self.at

    def skip_space(self) -> Steps[str]:
        """Go on to the next character that is not white space, and return that, without reading it."""
        while True:
            found = _NOT_WHITE.search(self.buffer, self.at)
            if found is not None:
                self.at = found.start()
                return found[0]
            self.at = len(self.buffer)
            yield

    def sees(self, literal: str) -> Steps[bool]:
        """Whether the literal stands here. It is not read."""
        while True:
            here = self.buffer[self.at : self.at + len(literal)]
            if here == literal:
                return True
            if not literal.startswith(here):
                return False
            yield

    def take(self, literal: str) -> Steps[bool]:
        """Whether the literal stands here; then it is read."""
        found = yield from self.sees(literal)
        if found:
            self.at += len(literal)
            self.matched = self.matched or bool(literal)
        return found

    def expect(self, *literals: str) -> Steps[None]:
        """Read literals, white space before each."""
        for literal in literals:
            yield from self.skip_space()
            if not (yield from self.take(literal)):
                raise Malformed

    def name(self) -> Steps[str]:
        """Read a name: everything up to white space, a quotation mark, a bracket or a separator."""
        return self._run(_NAME)

    def word(self) -> Steps[str]:
        """Read a name without colons."""
        return self._run(_WORD)

    def _run(self, pattern: re.Pattern[str]) -> Steps[str]:
        while True:
            found = pattern.match(self.buffer, self.at)
            end = self.at if found is None else found.end()
            if end - self.at > _MOST_NAME:
                raise Malformed
            if end < len(self.buffer):
                break
            yield
        name = self.buffer[self.at : end]
        if not name:
            raise Malformed
        self.at = end
        return name

    def until(self, literal: str) -> Steps[str]:
        """Read up to the literal, and the literal; returns the text before it."""
        pieces: list[str] = []
        while True:
            found = self.buffer.find(literal, self.at)
            if found >= 0:
                pieces.append(self.buffer[self.at : found])
                self.at = found + len(literal)
                self.matched = True
                return "".join(pieces)
            end = max(self.at, len(self.buffer) - len(literal) + 1)
            pieces.append(self.buffer[self.at : end])
            self.at = end
            yield

    def value(self, quotes: str = '"') -> Steps[str]:
        """Read a bracketed value, up to where its brackets balance outside of strings."""
        pieces: list[str] = []
        depth = 0
        quote = ""
        outside = _OUTSIDE[quotes]
        while True:
            buffer, place = self.buffer, self.at
            while True:
                found = (_INSIDE[quote] if quote else outside).search(buffer, place)
                if found is None:
                    place = len(buffer)
                    break
                mark, place = found[0], found.end()
                if mark == "\\":
                    if place == len(buffer):
                        place -= 1
                        break
                    place += 1
                elif quote:
                    quote = ""
                elif mark in "\"'":
                    quote = mark
                else:
                    depth += 1 if mark in "{[(" else -1
                    if depth == 0:
                        pieces.append(buffer[self.at : place])
                        self.at = place
                        self.matched = True
                        return "".join(pieces)
            pieces.append(buffer[self.at : place])
            self.at = place
            yield
