"""Where in a Markdown text a call may stand: not in fences, inline code, quotations, lists, diffs, tables, reasoning.

Reads the text outside of blocks, once, line by line. In doubt the answer is no: a call that stays text can be read.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from streamweld._pure.text_calls.cursor import WHITE

if TYPE_CHECKING:
    from streamweld._pure.text_calls.families import Settings

__all__ = ["Layout", "Place"]

_HEAD: Final = 256  # characters of a line that tell what kind of line it is
_CODE_INDENT: Final = 4
_LIST_INDENT: Final = 2
_FENCE: Final = 3
_LIST: Final = re.compile(r"(?:[-*+•‣◦]|[0-9]+[.)])(?:\s|$)")
_NUMBERED: Final = re.compile(r"[0-9]+(?:[.):|\t]|\s{2})")
_DIFF_HEAD: Final = ("@@", "diff --git ", "--- ", "+++ ")
_DIFF_LINE: Final = (" ", "+", "-", "@", "\\", "index ", "diff ")
# Quotation marks and openers; the typographic ones by number, because they are easily taken for ASCII ones.
_QUOTING: Final = "\"'([{`*_~|\xab\xbb\u201c\u201d\u2018\u2019\u201e\u2039\u203a"


class Place(Enum):
    """What a place allows."""

    NOWHERE = "nowhere"
    START = "start"  # only white space before it on its line, the end of the reasoning, or a block
    AFTER_PROSE = "after_prose"  # special tokens may follow


class Layout:
    """The state of the text up to a place."""

    __slots__ = (
        "_blank",
        "_candidate",
        "_closer",
        "_fence",
        "_follows",
        "_head",
        "_in_diff",
        "_in_list",
        "_counts",
        "_last",
        "_openers",
        "_pipe",
        "_reasoning",
        "_run",
        "is_empty",
        "line",
    )

    def __init__(self, settings: Settings) -> None:
        self._openers, self._reasoning, self._counts = _tags(settings)
        self._fence: tuple[str, int, int] | None = None  # character, length, indentation
        self._closer: str | None = None  # what ends the reasoning or the quoting element that is open
        self._run = 0  # the length of the backtick run that opened inline code
        self._in_list = False
        self._in_diff = False
        self.is_empty = True  # nothing was said yet, reasoning tags aside
        self.line = 0
        self._begin_line()

    def _begin_line(self) -> None:
        self._head = ""
        self._blank = True
        self._follows = False  # on this line a block or the reasoning ended, and only white space follows
        self._candidate: tuple[str, int, int] | None = None  # what is a fence if the line has no other backtick
        self._pipe = False
        self._last = ""

    def place(self) -> Place:
        """What may stand behind the text so far."""
        if self._fence or self._candidate or self._closer or self._run:
            return Place.NOWHERE
        if self._follows:
            return Place.START
        indent = _indent(self._head)
        if indent >= _CODE_INDENT or (self._in_list and indent >= _LIST_INDENT) or (self._in_diff and indent):
            return Place.NOWHERE
        if self._blank:
            return Place.START
        content = self._head.lstrip(WHITE)
        marked = content[:1] in (">", "|", "+", "-") or _LIST.match(content) or _NUMBERED.match(content)
        if marked or self._pipe or self._in_diff or content.startswith("@@") or self._last in _QUOTING:
            return Place.NOWHERE
        return Place.AFTER_PROSE

    @property
    def is_line_open(self) -> bool:
        """A block ended on this line, and only white space follows."""
        return self._follows

    def end_block(self) -> None:
        """A block ended here that may be a call."""
        self._blank = self._follows = True
        self.is_empty = False

    def end_refused(self) -> None:
        """A block ended here that is text, or the text after one goes on."""
        self.is_empty = False
        if self._follows or not self._blank:
            self._follows = self._blank = False
            self._last = ">"

    def begin_part(self) -> None:
        """Another part: it starts a line."""
        if self._head or self._follows:
            self._end_line()

    def feed(self, text: str) -> None:
        """More text outside of blocks."""
        lines = text.split("\n")
        for piece in lines[:-1]:
            if piece:
                self._piece(piece)
            self._end_line()
        if lines[-1]:
            self._piece(lines[-1])

    def _piece(self, piece: str) -> None:
        """More of one line."""
        if self._fence is not None:
            self._head = (self._head + piece[:_HEAD])[:_HEAD]
            return
        at = 0
        while at < len(piece):
            pattern = self._counts if self._closer is None else _closer_pattern(self._closer)
            found = pattern.search(piece, at)
            if found is None:
                if self._closer is None:
                    self._say(piece[at:])
                return
            if self._closer is None:
                self._say(piece[at : found.start()])
                self._mark(found[0].lower())
            else:
                self._close(found[0].lower())
            at = found.end()

    def _close(self, closer: str) -> None:
        """The reasoning or the quoting element ends."""
        self._closer = None
        if closer in self._reasoning:
            self._begin_line()
            self._follows = True
        else:
            self._say(closer)

    def _mark(self, mark: str) -> None:
        if mark[0] == "`":
            self._ticks(len(mark))
        elif mark[0] == "~":
            if self._blank and not self._follows:
                self._candidate = ("~", len(mark), _indent(self._head))
        elif mark == "|":
            self._pipe = True
        elif not (self._candidate or self._run):
            if mark in self._reasoning:
                self._close(mark)
                return
            self._closer = self._openers[mark]
            if self._closer in self._reasoning:
                return
        self._say(mark)

    def _ticks(self, length: int) -> None:
        """A run of backticks: a fence, if it begins its line and the line has no other; else inline code."""
        if self._blank and not self._follows and length >= _FENCE:
            self._candidate = ("`", length, _indent(self._head))
            return
        if self._candidate is not None:
            if self._candidate[0] == "~":
                return
            self._run, self._candidate = self._candidate[1], None
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
            self._blank = self._follows = self.is_empty = False
        self._last = text[-1]

    def _end_line(self) -> None:
        content = self._head.strip(WHITE)
        if self._fence is not None:
            mark, length, indent = self._fence
            whole = len(self._head) < _HEAD and len(content) >= length and content == mark * len(content)
            if whole and _indent(self._head) < indent + _CODE_INDENT:
                self._fence = None
        elif self._closer is None and self._candidate is not None:
            self._fence = self._candidate
            self._run = 0
        elif self._closer is None:
            self._note(content)
        self.line += 1
        self._begin_line()

    def _note(self, content: str) -> None:
        """What a line that ended means for the next ones."""
        if not content:
            if self._blank and not self._follows:
                self._run = 0  # inline code does not reach over a blank line
            return
        indent = _indent(self._head)
        if _LIST.match(content):
            self._in_list = True
        elif indent == 0:
            self._in_list = False
        if self._head.startswith(_DIFF_HEAD):
            self._in_diff = True
        elif not self._head.startswith(_DIFF_LINE):
            self._in_diff = False


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
def _tags(settings: Settings) -> tuple[dict[str, str], frozenset[str], re.Pattern[str]]:
    """Opener -> closer, the closers of reasoning, and the pattern of everything that counts in a line."""
    openers = {opener.lower(): closer.lower() for opener, closer in settings.reasoning_tags}
    reasoning = frozenset(openers.values())
    for name in settings.quoting:
        openers |= {f"<{name}>": f"</{name}>", f"<{name} ": f"</{name}>"}
    openers["<!--"] = "-->"
    words = sorted({*openers, *reasoning}, key=lambda word: (-len(word), word))
    tags = "|".join([re.escape(word) for word in words])
    pattern = re.compile(rf"`+|~{{3,}}|(?<!<)\|(?!>)|{tags}", re.IGNORECASE | re.ASCII)
    return openers, reasoning, pattern
