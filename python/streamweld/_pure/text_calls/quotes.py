"""Determines whether the text before a marker begins or ends a quotation or emphasis."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from streamweld._pure.text_calls.cursor import WHITE

__all__ = ["QUOTING", "Quotes"]

# Quotation marks, opening brackets and emphasis. The typographic ones are escaped, because they look like ASCII ones.
QUOTING: Final = "\"'([{`*_~|\xab\xbb\u201c\u201d\u2018\u2019\u201e\u2039\u203a"
_MAX_OPEN: Final = 8  # a line with more open marks is not read further
_OPENERS: Final = "\u201c\u201e\u2018\u201a\xab\u2039"
_MARKS: Final = frozenset(QUOTING + "\u201a") - frozenset("([{`|")
# Opening and closing marks. Languages use the same marks differently.
_PAIRS: Final = frozenset(
    {
        "\u201c\u201d",
        "\u201e\u201d",
        "\u201e\u201c",
        "\u2018\u2019",
        "\u201a\u2019",
        "\u201a\u2018",
        "\xab\xbb",
        "\xbb\xab",
        "\u2039\u203a",
        "\u203a\u2039",
    }
)
_SAME: Final = "\"'*_~\u201d\u2019"  # marks that also close what they open
_RUN: Final = re.compile(r"`+|\*+|_+|~+|[\s\S]")
_NOT_WORD: Final = re.compile("[\x80-\xbf\u2000-\u206f\u3000-\u303f]|(?![0-9A-Za-z])[\\x00-\\x7f]")


class _Last(Enum):
    """The kind of the character that was read last."""

    TEXT = "text"
    OPENER = "opener"
    CLOSER = "closer"


class Quotes:
    """Quotation marks, emphasis and inline code that are open on a line.

    The line is read only if a marker follows a quotation or emphasis mark. Each of its characters is read only once.
    """

    __slots__ = ("_at", "_before", "_code", "_last", "_open")

    def __init__(self, code: int) -> None:
        self._open: list[str] = []
        self._code = code  # length of the backtick run that opened inline code; 0 outside it
        self._before = ""
        self._last = _Last.TEXT
        self._at = 0  # number of pieces of the line that have been read

    def closes(self, line: list[str], following: str) -> bool:
        """Return True if the line ends with a closing mark and nothing is open after it.

        `line`: the text of the line so far, in pieces. `following`: the next character.
        """
        text = "".join(line[self._at :])
        if text.endswith(following):
            return False  # the run of marks continues
        for run in _RUN.finditer(text):
            self._last = self._read(run[0], text[run.end() : run.end() + 1] or following)
            self._before = run[0][0]
        self._at = len(line)
        return self._last is _Last.CLOSER and not self._open and self._code == 0

    def _read(self, mark: str, after: str) -> _Last:
        if mark[0] == "`":
            return self._read_backticks(len(mark))
        before = self._before.strip(WHITE)
        is_in_word = _is_word(before) and _is_word(after)
        is_apostrophe = is_in_word and mark[0] in "'\u2019_"
        if self._code or len(self._open) == _MAX_OPEN or is_apostrophe or mark[0] not in _MARKS:
            return _Last.TEXT
        opener = self._open[-1] if self._open else ""
        is_pair = opener + mark in _PAIRS or (opener == mark and mark[0] in _SAME)
        if is_pair and self._last is not _Last.OPENER and (before or not mark.isascii()):
            self._open.pop()
            return _Last.CLOSER
        if mark in _OPENERS or (not is_in_word and after.strip(WHITE)):
            self._open.append(mark)
            return _Last.OPENER
        return _Last.TEXT

    def _read_backticks(self, length: int) -> _Last:
        if self._code == 0:
            self._code = length
        elif self._code == length:
            self._code = 0
            return _Last.CLOSER
        return _Last.TEXT


def _is_word(char: str) -> bool:
    """Return True for characters that can be part of a word. Every non-ASCII character except punctuation is such a
    character.
    """
    return char != "" and _NOT_WORD.match(char) is None
