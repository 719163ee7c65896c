"""Reads a block that arrives in pieces. The steps of the grammars are generators that wait for more text.

Each character is examined a bounded number of times. Text that has been read is not stored here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["INDENT", "NOT_WHITE", "WHITE", "Cursor", "Malformed", "Steps"]

_T = TypeVar("_T")
Steps: TypeAlias = "Generator[None, None, _T]"

WHITE: Final = " \t\r\n"
INDENT: Final = " \t\r"  # white space within a line
_MOST_NAME: Final = 256
NOT_WHITE: Final = re.compile(r"[^ \t\r\n]")
_NAME: Final = re.compile(r"""[^\x00-\x20<>"'`{}\[\](),;=|]*""")
_ATTRIBUTE: Final = re.compile('[^"<]*')
_DIGITS: Final = re.compile("[0-9]*")
_WORD: Final = re.compile(r"""[^\x00-\x20<>"'`{}\[\](),;=|:]*""")
_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_CALLEE: Final = re.compile(r"[A-Za-z0-9_.-]*")
_OUTSIDE: Final = {'"': re.compile(r'["{}\[\]]'), "\"'": re.compile(r"""["'{}\[\]()]""")}
_INSIDE: Final = {'"': re.compile(r'["\\]'), "'": re.compile(r"['\\]")}


class Malformed(Exception):
    """The text does not match the grammar of the family."""


class Cursor:
    """Position of a grammar in the text of a block."""

    __slots__ = ("at", "began", "buffer", "matched", "passed")

    def __init__(self) -> None:
        self.buffer = ""
        self.at = 0
        self.passed = 0  # number of characters that were read and removed from the buffer
        self.matched = False  # more than whitespace and a name has been read; any word in a sentence could be a name
        self.began = False  # the bracket of an object or a list has been read

    def feed(self, text: str) -> None:
        self.passed += self.at
        self.buffer = self.buffer[self.at :] + text
        self.at = 0

    @property
    def sees_bracket(self) -> bool:
        """True if an object or a list begins here, or has already begun."""
        return self.began or self.buffer.startswith(("{", "["), self.at)

    @property
    def offset(self) -> int:
        """Number of characters read."""
        return self.passed + self.at

    def skip_space(self) -> Steps[str]:
        """Skip whitespace, and return the next character without consuming it."""
        while True:
            found = NOT_WHITE.search(self.buffer, self.at)
            if found is not None:
                self.at = found.start()
                return found[0]
            self.at = len(self.buffer)
            yield

    def sees(self, literal: str) -> Steps[bool]:
        """Check whether the literal comes next, without consuming it."""
        while True:
            here = self.buffer[self.at : self.at + len(literal)]
            if here == literal:
                return True
            if not literal.startswith(here):
                return False
            yield

    def take(self, literal: str) -> Steps[bool]:
        """Read the literal if it comes next. Returns True if it does."""
        found = yield from self.sees(literal)
        if found:
            self.at += len(literal)
            self.matched = self.matched or bool(literal)
        return found

    def expect(self, *literals: str) -> Steps[None]:
        """Read literals, each with optional whitespace before it."""
        for literal in literals:
            yield from self.skip_space()
            if not (yield from self.take(literal)):
                raise Malformed

    def name(self) -> Steps[str]:
        """Read a name: everything up to whitespace, a quotation mark, a bracket, or a separator."""
        return self._run(_NAME)

    def word(self) -> Steps[str]:
        """Read a name without colons."""
        return self._run(_WORD)

    def attribute(self) -> Steps[str]:
        """Read the value of a quoted attribute, up to its closing quotation mark."""
        return self._run(_ATTRIBUTE)

    def digits(self) -> Steps[str]:
        """Read at least one ASCII digit."""
        return self._run(_DIGITS)

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

    def _pass(self, pattern: re.Pattern[str]) -> Steps[str]:
        """Read a run of matching characters, which may be empty, and return it."""
        pieces: list[str] = []
        while True:
            found = pattern.match(self.buffer, self.at)
            end = self.at if found is None else found.end()
            pieces.append(self.buffer[self.at : end])
            self.at = end
            if end < len(self.buffer):
                return "".join(pieces)
            yield

    def until(self, literal: str) -> Steps[str]:
        """Read up to and including the literal, and return the text before it."""
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

    def value(self, quotes: str = '"', first: str = "") -> Steps[str]:
        """Read a bracketed value, up to the position at which all brackets outside strings are closed.

        `first` must follow the bracket, unless it is empty; if `first` is a parenthesis, a name may precede it. Any
        other bracketed text is not a call, so it is not read to its end.
        """
        pieces: list[str] = []
        depth = 0
        quote = ""
        outside = _OUTSIDE[quotes]
        if first:
            self.began = True
            pieces.append(self.buffer[self.at])
            self.at += 1
            depth = 1
            pieces.append((yield from self._pass(_BLANKS)))
            if first == "(":
                pieces += [(yield from self._pass(_CALLEE)), (yield from self._pass(_BLANKS))]
            if self.buffer[self.at] != first:
                raise Malformed
        while True:
            buffer, offset = self.buffer, self.at
            while True:
                found = (_INSIDE[quote] if quote else outside).search(buffer, offset)
                if found is None:
                    offset = len(buffer)
                    break
                mark, offset = found[0], found.end()
                if mark == "\\":
                    if offset == len(buffer):
                        offset -= 1
                        break
                    offset += 1
                elif quote:
                    quote = ""
                elif mark in "\"'":
                    quote = mark
                else:
                    depth += 1 if mark in "{[(" else -1
                    if depth == 0:
                        pieces.append(buffer[self.at : offset])
                        self.at = offset
                        self.matched = True
                        return "".join(pieces)
            pieces.append(buffer[self.at : offset])
            self.at = offset
            yield
