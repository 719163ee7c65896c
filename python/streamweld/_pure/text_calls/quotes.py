"""Determines whether the text before a marker begins a quotation, or whether a quotation is open there."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final

from streamweld._pure.text_calls.cursor import WHITE

if TYPE_CHECKING:
    from streamweld._pure.text_calls.families import Settings

__all__ = ["NAME_CHAR", "Quotes", "QuotingMarks"]

_MAX_OPEN: Final = 8  # a line with more open marks is not read further
_NOT_WORD: Final = re.compile("[\x80-\xbf\u2000-\u206f\u3000-\u303f]|(?![0-9A-Za-z])[\\x00-\\x7f]")
# A character that can continue a name, such as that of a role: every character of a word, and `_`, `-` and `.`.
NAME_CHAR: Final = rf"(?:[_.-]|(?!{_NOT_WORD.pattern})[\s\S])"
_SMILEY: Final = re.compile("[:;]-?$")


class QuotingMarks:
    """The marks of quotations and emphasis, from the settings."""

    __slots__ = (
        "_enclosing",
        "apostrophes",
        "brackets",
        "find",
        "marks",
        "may_follow_word",
        "may_open",
        "openers",
        "pairs",
        "parentheses",
        "runs",
        "same",
        "span_openers",
        "spans",
    )

    def __init__(self, settings: Settings) -> None:
        firsts = {first for first, _ in settings.quotation_marks}
        seconds = {second for _, second in settings.quotation_marks}
        closing: set[str] = set()  # the marks that close a quotation in the first row of the table that contains them
        opening: set[str] = set()
        for first, second in settings.quotation_marks:
            closing |= {second} - opening
            opening |= {first} - closing
        self.parentheses = frozenset(first for first, _ in settings.parentheses)
        self.brackets = frozenset(settings.brackets)
        self.apostrophes = frozenset(settings.apostrophes)
        self.same = self.apostrophes | frozenset(settings.emphasis)  # marks that close what they open
        # The marks that quote what directly follows them.
        self.openers = firsts | self.parentheses | self.same | self.brackets | frozenset(settings.table_marks)
        # The first members of pairs that open a quotation after a word, too. The others are then more likely an inch
        # mark, or the end of a quotation that began on another line.
        self.may_follow_word = frozenset(firsts - closing) | self.parentheses
        self.may_open = firsts | self.same
        self.pairs = frozenset(first + second for first, second in settings.quotation_marks)
        self.runs = frozenset(settings.emphasis)
        self.marks = frozenset(firsts | seconds | self.same) - {"`"}
        self.spans = self.pairs | frozenset(first + second for first, second in settings.parentheses)
        self.span_openers = firsts | self.parentheses
        self._enclosing = self.pairs | frozenset(mark + mark for mark in self.apostrophes)
        single = self.marks | {mark for pair in settings.parentheses for mark in pair}
        runs = "|".join([re.escape(mark) + "+" for mark in sorted({"`", *self.runs})])
        self.find = re.compile(f"{runs}|[{re.escape(''.join(sorted(single)))}]")

    def enclose(self, before: str, after: str) -> bool:
        """Return True if two characters are the marks at both ends of a quotation."""
        return before + after in self._enclosing


class _Last(Enum):
    """The kind of the character that was read last."""

    TEXT = "text"
    OPENER = "opener"
    CLOSER = "closer"


class Quotes:
    """Quotation marks, parentheses, emphasis and inline code that are open on a line.

    The line is read only if a marker or the end of reasoning follows. Each of its characters is read only once.
    """

    __slots__ = ("_before", "_code", "_is_full", "_last", "_marks", "_open", "_spans")

    def __init__(self, marks: QuotingMarks, code: int) -> None:
        self._marks = marks
        self._open: list[str] = []  # quotation marks and emphasis: does the last mark of the line close all of them?
        self._spans: list[str] = []  # quotation marks and parentheses that quote the rest of the line
        self._is_full = False  # too many of them are open
        self._code = code  # length of the backtick run that opened inline code; 0 outside it
        self._before = ""  # the last two characters
        self._last = _Last.TEXT

    @property
    def is_open(self) -> bool:
        """True if a quotation, a parenthesis or inline code is open."""
        return self._is_full or bool(self._spans) or self._code > 0

    @property
    def closes(self) -> bool:
        """True if the text ends with a closing mark and nothing is open after it."""
        return self._last is _Last.CLOSER and not self._open and self._code == 0

    def read(self, text: str, following: str) -> None:
        """Read more text of the line. `following`: the next character, which does not continue a run of marks."""
        end = 0
        for found in self._marks.find.finditer(text):
            self._pass(text[end : found.start()])
            end = found.end()
            mark = found[0]
            if mark[0] == "`":
                self._last = self._read_backticks(len(mark))
            elif self._code:
                self._last = _Last.TEXT
            else:
                self._read_span(mark)
                self._last = self._read(mark, text[end : end + 1] or following)
            self._before = (self._before + mark)[-2:]
        self._pass(text[end:])

    def _pass(self, text: str) -> None:
        if text:
            self._last = _Last.TEXT
            self._before = (self._before + text[-2:])[-2:]

    def _read(self, mark: str, after: str) -> _Last:
        marks, char = self._marks, mark[0]
        before = self._before[-1:].strip(WHITE)
        is_in_word = _is_word(before) and _is_word(after)
        is_apostrophe = is_in_word and (char in marks.apostrophes or char == "_")
        if len(self._open) == _MAX_OPEN or is_apostrophe or char not in marks.marks:
            return _Last.TEXT
        opener = self._open[-1] if self._open else ""
        is_pair = opener + mark in marks.pairs or (opener == mark and char in marks.same)
        if is_pair and self._last is not _Last.OPENER and (before or not mark.isascii()):
            self._open.pop()
            return _Last.CLOSER
        opens = mark in marks.may_follow_word or (char in marks.may_open and not is_in_word and after.strip(WHITE))
        if opens:
            self._open.append(mark)
            return _Last.OPENER
        return _Last.TEXT

    def _read_span(self, mark: str) -> None:
        """Read a mark that may begin or end the quotation of the rest of the line."""
        marks, spans = self._marks, self._spans
        if spans and spans[-1] + mark in marks.spans:
            spans.pop()
            return
        is_inch = mark not in marks.may_follow_word and _is_word(self._before[-1:])
        is_smiley = mark in marks.parentheses and _SMILEY.search(self._before) is not None
        if mark not in marks.span_openers or is_inch or is_smiley:
            return
        self._is_full = self._is_full or len(spans) == _MAX_OPEN
        if not self._is_full:
            spans.append(mark)

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
