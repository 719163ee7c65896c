"""Where in a Markdown text a call may stand: not in fences, inline code, quotations, lists, diffs, tables, reasoning.

Reads the text outside of blocks, once, line by line. In doubt the answer is no: a call that stays text can be read.

A fence that is indented by four columns or more is a fence in a list and code elsewhere. Both readings are kept, and a
call may stand only where neither has an open fence.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from streamweld._pure.text_calls.cursor import WHITE

if TYPE_CHECKING:
    from streamweld._pure.text_calls.families import Settings

__all__ = ["Layout", "Place"]

_HEAD: Final = 256  # characters of a line that tell what kind of line it is
_CODE_INDENT: Final = 4
_LIST_INDENT: Final = 2
_FENCE: Final = 3
_LIST: Final = re.compile(r"(?:[-*+•‣◦]|[0-9]+[.)])(?:[ \t\r]|$)")
_NUMBERED: Final = re.compile(r"[0-9]+(?:[.):|\t→]|[ \r]{2})")
_QUOTING_LINE: Final = (">", "|", "+", "-", "@@")
_DIFF_HEAD: Final = ("@@", "diff --git ", "--- ", "+++ ")
_DIFF_LINE: Final = (" ", "+", "-", "@", "\\", "index ", "diff ")
# Quotation marks and openers; the typographic ones by number, because they are easily taken for ASCII ones.
_QUOTING: Final = "\"'([{`*_~|\xab\xbb\u201c\u201d\u2018\u2019\u201e\u2039\u203a"


class Place(Enum):
    """What a place allows."""

    NOWHERE = "nowhere"
    START = "start"  # only white space before it on its line, the end of the reasoning, or a block
    AFTER_PROSE = "after_prose"  # special tokens may follow


class _Before(Enum):
    """What stands before the place on its line."""

    NOTHING = "nothing"  # white space at most
    BLOCK = "block"  # a block or the end of the reasoning, and then white space at most
    PROSE = "prose"


class _Fence(NamedTuple):
    mark: str
    length: int
    indent: int


class Layout:
    """The state of the text up to a place."""

    __slots__ = (
        "_before",
        "_candidate",
        "_closer",
        "_fences",
        "_head",
        "_in_diff",
        "_in_list",
        "_in_quotation",
        "_last",
        "_pipe",
        "_run",
        "_tags",
        "_tail",
        "is_empty",
        "line",
    )

    def __init__(self, settings: Settings) -> None:
        self._tags = _tags_of(settings)
        self._fences: list[_Fence | None] = [None, None]  # of any indentation; of less than four columns
        self._closer: str | None = None  # what ends the reasoning or the quoting element that is open
        self._run = 0  # the length of the backtick run that opened inline code
        self._in_list = False
        self._in_diff = False
        self._in_quotation = False
        self._tail = ""  # the end of the text, if it may be the beginning of a tag, a run of backticks or `|>`
        self.is_empty = True  # nothing was said yet, reasoning tags aside
        self.line = 0
        self._begin_line()

    def _begin_line(self) -> None:
        self._head = ""
        self._before = _Before.NOTHING
        self._candidate: _Fence | None = None  # what is a fence if the line has no other backtick
        self._pipe = False
        self._last = ""

    def place(self) -> Place:
        """What may stand after the text so far."""
        if any(self._fences) or self._candidate or self._closer or self._run:
            return Place.NOWHERE
        before = _Before.PROSE if self._tail else self._before
        if before is _Before.BLOCK:
            return Place.START
        if self._is_quoting_line():
            return Place.NOWHERE
        if before is _Before.NOTHING:
            return Place.START
        if self._pipe or (self._tail or self._last)[-1:] in _QUOTING:
            return Place.NOWHERE
        return Place.AFTER_PROSE

    @property
    def is_line_open(self) -> bool:
        """A block ended on this line, and only white space follows."""
        return self._before is _Before.BLOCK and not self._tail

    def end_block(self) -> None:
        """A block ended here that may be a call."""
        self._settle()
        self._before = _Before.BLOCK
        self.is_empty = False

    def end_refused(self) -> None:
        """A block ended here that is text, or the text after one goes on."""
        self._settle()
        self.is_empty = False
        self._before = _Before.PROSE
        self._last = ">"

    def begin_part(self) -> None:
        """Another part: it starts a line."""
        self._settle()
        if self._head or self._before is not _Before.NOTHING:
            self._end_line()

    def feed(self, text: str) -> None:
        """More text outside of blocks."""
        *lines, last = (self._tail + text).split("\n")
        for line in lines:
            self._piece(line, is_open=False)
            self._end_line()
        self._tail = last[self._piece(last, is_open=True) :]

    def _settle(self) -> None:
        """What might have been the beginning of a tag is text."""
        tail, self._tail = self._tail, ""
        self._say(tail)

    def _is_quoting_line(self) -> bool:
        """The line is a quotation, a list item, a table row, code, numbered, or of a diff."""
        head, indent = self._head, _indent(self._head)
        content = head.lstrip(WHITE)
        return (
            indent >= _CODE_INDENT
            or self._in_quotation
            or (self._in_list and indent >= _LIST_INDENT)
            or (self._in_diff and head != "")
            or content.startswith(_QUOTING_LINE)
            or _LIST.match(content) is not None
            or _NUMBERED.match(content) is not None
        )

    def _piece(self, piece: str, *, is_open: bool) -> int:
        """More of one line, that goes on if it is open. Returns how much was read: the rest may begin a tag."""
        if all(self._fences):
            self._head = (self._head + piece[:_HEAD])[:_HEAD]
            return len(piece)
        at = 0
        while True:
            closer = self._closer
            end = self._tags.settled(piece, at, closer) if is_open else len(piece)
            found = (self._tags.marks if closer is None else _closer_pattern(closer)).search(piece, at, end)
            if closer is None:
                self._say(piece[at : end if found is None else found.start()])
            if found is None:
                return end
            if closer is None:
                self._mark(found[0].lower())
            else:
                self._close(closer)
            at = found.end()

    def _close(self, closer: str) -> None:
        """The reasoning or the quoting element ends."""
        self._closer = None
        if closer in self._tags.reasoning and not self._is_quoting_line():
            self._begin_line()
            self._before = _Before.BLOCK
        else:
            self._say(closer)

    def _mark(self, mark: str) -> None:
        if mark[0] == "`":
            self._ticks(len(mark))
        elif mark[0] == "~":
            if self._before is _Before.NOTHING:
                self._candidate = _Fence("~", len(mark), _indent(self._head))
        elif mark == "|":
            self._pipe = True
        elif not (self._candidate or self._run):
            if mark in self._tags.reasoning:
                self._close(mark)
                return
            self._closer = self._tags.openers[mark]
            if self._closer in self._tags.reasoning:
                return
        self._say(mark)

    def _ticks(self, length: int) -> None:
        """A run of backticks: a fence, if it begins its line and the line has no other; else inline code."""
        if self._before is _Before.NOTHING and length >= _FENCE:
            self._candidate = _Fence("`", length, _indent(self._head))
            return
        if self._candidate is not None:
            if self._candidate.mark == "~":
                return
            self._run, self._candidate = self._candidate.length, None
        if self._run == 0:
            self._run = length
        elif self._run == length:
            self._run = 0

    def _say(self, text: str) -> None:
        if not text:
            return
        if len(self._head) < _HEAD:
            self._head = (self._head + text[:_HEAD])[:_HEAD]
        if text.strip(WHITE):
            self._before = _Before.PROSE
            self.is_empty = False
        self._last = text[-1]

    def _end_line(self) -> None:
        content = self._head.strip(WHITE)
        candidate = None if self._closer else self._candidate
        if not all(self._fences) and self._closer is None and candidate is None:
            self._note(content)
        for reading, fence in enumerate(self._fences):
            if fence is not None:
                if self._closes(fence, content):
                    self._fences[reading] = None
            elif candidate is not None and (reading == 0 or candidate.indent < _CODE_INDENT):
                self._fences[reading] = candidate
                self._run = 0
        self.line += 1
        self._begin_line()

    def _closes(self, fence: _Fence, content: str) -> bool:
        is_whole = len(self._head) < _HEAD and len(content) >= fence.length
        is_only = is_whole and content == fence.mark * len(content)
        return is_only and _indent(self._head) < fence.indent + _CODE_INDENT

    def _note(self, content: str) -> None:
        """What a line that ended means for the next ones."""
        if not content:
            if self._before is _Before.NOTHING:
                self._run = 0  # inline code does not reach over a blank line
                self._in_quotation = False
            return
        # The text after a quotation belongs to it, up to a blank line.
        self._in_quotation = self._in_quotation or content.startswith(">")
        if _LIST.match(content):
            self._in_list = True
        elif _indent(self._head) == 0:
            self._in_list = False
        if self._head.startswith(_DIFF_HEAD):
            self._in_diff = True
        elif not self._head.startswith(_DIFF_LINE):
            self._in_diff = False


class _Tags:
    """What changes the meaning of text: reasoning, quoting elements and comments."""

    __slots__ = ("longest", "marks", "openers", "prefixes", "reasoning")

    def __init__(self, settings: Settings) -> None:
        reasoning = {opener.lower(): closer.lower() for opener, closer in settings.reasoning_tags}
        names = {f"<{name.lower()}": f"</{name.lower()}>" for name in settings.quoting}
        self.openers = reasoning | names | {"<!--": "-->"}
        self.reasoning = frozenset(reasoning.values())
        whole = {*reasoning, *self.reasoning, "<!--"}
        parts = [(word, re.escape(word)) for word in whole]
        parts += [(name, re.escape(name) + r"(?=[ \t\r/>]|$)") for name in names]
        tags = "|".join([pattern for _, pattern in sorted(parts, key=lambda part: (-len(part[0]), part[0]))])
        self.marks = re.compile(rf"`+|~{{3,}}|(?<!<)\|(?!>)|{tags}", re.IGNORECASE | re.ASCII)
        words = [*whole, *[name + " " for name in names]]
        self.prefixes = frozenset(word[:end] for word in words for end in range(1, len(word)))
        self.longest = max(len(word) for word in words)

    def settled(self, text: str, at: int, closer: str | None) -> int:
        """Where the end of the text begins that may be the beginning of a tag, a run or `|>`; else its length."""
        longest = self.longest if closer is None else len(closer)
        for place in range(max(at, len(text) - longest + 1), len(text)):
            end = text[place:].lower()
            if end in self.prefixes if closer is None else closer.startswith(end):
                return place
        if closer is not None:
            return len(text)
        return max(at, len(text) - 1 if text.endswith("|") else len(text.rstrip("`~")))


def _indent(head: str) -> int:
    """The columns of white space with which a line begins."""
    columns = 0
    for mark in head:
        if mark == " ":
            columns += 1
        elif mark == "\t":
            columns += _CODE_INDENT - columns % _CODE_INDENT
        else:
            break
    return columns


@cache
def _closer_pattern(closer: str) -> re.Pattern[str]:
    return re.compile(re.escape(closer), re.IGNORECASE | re.ASCII)


@lru_cache(maxsize=16)
def _tags_of(settings: Settings) -> _Tags:
    return _Tags(settings)
