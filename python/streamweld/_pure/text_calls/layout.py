"""Determines where in Markdown text a call is allowed: not in fences, inline code, quotations, lists, diffs, or tables.

The text outside blocks is read once, line by line. A fence that is indented by four or more columns is a fence inside a
list and indented code elsewhere. Both interpretations are tracked, and a call is allowed only if neither has an open
fence. If a position is ambiguous, no call is allowed there, because a call that remains text is still readable.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from streamweld._pure.text_calls.cursor import WHITE
from streamweld._pure.text_calls.quotes import QUOTING, Quotes

if TYPE_CHECKING:
    from streamweld._pure.text_calls.families import Settings

__all__ = ["Layout", "MarkerPosition"]

_HEAD: Final = 256  # number of characters at the start of a line that determine the line's kind
_CODE_INDENT: Final = 4
_LIST_INDENT: Final = 2
_FENCE: Final = 3
_LIST: Final = re.compile(r"(?:[-*+•‣◦]|[0-9]+[.)])(?:[ \t\r]|$)")
_NUMBERED: Final = re.compile(r"[0-9]+(?:[.):|\t→]|[ \r]{2})")
_QUOTING_LINE: Final = (">", "|", "+", "-", "@@", "< ", "<\t", "! ", "!\t")
_DIFF_HEAD: Final = ("@@", "diff --git ", "--- ", "+++ ", "*** ", "***************")
_DIFF_LINE: Final = (" ", "+", "-", "!", "@", "\\", "index ", "diff ")


class MarkerPosition(Enum):
    """Which markers are allowed at a position."""

    NOWHERE = "nowhere"
    START = "start"  # every marker is allowed; whitespace, the end of reasoning, or a block precedes it on its line
    AFTER_PROSE = "after_prose"  # only special tokens are allowed, because other text precedes them on the line


class _Before(Enum):
    """What precedes a position on its line."""

    NOTHING = "nothing"  # at most whitespace precedes the position
    BLOCK = "block"  # a block or the end of reasoning precedes the position, followed by at most whitespace
    PROSE = "prose"


class _Fence(NamedTuple):
    mark: str
    length: int
    indent: int


class _Closer(NamedTuple):
    """The literal that ends reasoning, a quoting element, a message, or a comment."""

    text: str
    is_reasoning: bool


class Layout:
    """Markdown state of the text read so far."""

    __slots__ = (
        "_before",
        "_candidate",
        "_closer",
        "_code_closer",
        "_fences",
        "_head",
        "_in_diff",
        "_in_list",
        "_in_quotation",
        "_last",
        "_line",
        "_markers",
        "_pipe",
        "_quotes",
        "_run",
        "_tags",
        "_tail",
        "is_empty",
        "line",
    )

    def __init__(self, settings: Settings) -> None:
        self._tags = _tags_of(settings)
        self._markers = settings.markers
        self._line: list[str] = []  # text of the line, after the last block in it
        # The open fence under each interpretation. The first interpretation allows any indentation; the second allows
        # fewer than four columns.
        self._fences: list[_Fence | None] = [None, None]
        self._closer: _Closer | None = None
        self._run = 0  # length of the backtick run that opened inline code; 0 outside it
        # Closer of the first opener in that code. The opener counts if no backticks end the code.
        self._code_closer: _Closer | None = None
        self._in_list = False
        self._in_diff = False
        self._in_quotation = False
        self._tail = ""  # rest of the text that may turn out to be a tag, a run of backticks, or `|>`
        self.is_empty = True  # the text so far consists only of reasoning tags
        self.line = 0
        self._quotes = Quotes(0)  # quotation marks and emphasis in `_line`
        self._begin_line()

    def _restart_line(self) -> None:
        """Discard the text of the line, because a line, a part or a block has ended."""
        self._line.clear()
        self._quotes = Quotes(self._run)

    def _begin_line(self) -> None:
        self._head = ""
        self._before = _Before.NOTHING
        self._candidate: _Fence | None = None  # a run that is a fence, unless the line contains another backtick
        self._pipe = False
        self._last = ""

    def marker_position(self, following: str) -> MarkerPosition:
        """Return which markers are allowed after the text read so far. `following`: the next character."""
        self._settle(following)
        if any(self._fences) or self._candidate or self._closer or self._run:
            return MarkerPosition.NOWHERE
        before = _Before.PROSE if self._tail else self._before
        if before is _Before.BLOCK:
            return MarkerPosition.START
        if self._is_quoting_line():
            return MarkerPosition.NOWHERE
        if before is _Before.NOTHING:
            return MarkerPosition.START
        last = (self._tail or self._last)[-1:]
        if self._pipe or (last in QUOTING and not self._quotes.closes(self._line, following)):
            return MarkerPosition.NOWHERE
        return MarkerPosition.AFTER_PROSE

    def _settle(self, following: str) -> None:
        """Read the held end of the text if the next character determines how it is read."""
        if self._tail and self._closer is None and self._tags.is_settled_by(self._tail, following):
            tail, self._tail = self._tail, ""
            self._piece(tail, is_open=False)

    @property
    def is_line_open(self) -> bool:
        """True if a block ended on this line and only whitespace follows it."""
        return self._before is _Before.BLOCK and not self._tail

    def end_block(self) -> None:
        """Record the end of a block that may become a call."""
        self._accept_as_text()
        self._restart_line()
        self._before = _Before.BLOCK
        self.is_empty = False

    def end_refused(self) -> None:
        """Record that a block stays text, or that text follows a block."""
        self._accept_as_text()
        self._restart_line()
        self.is_empty = False
        self._before = _Before.PROSE
        self._last = ">"

    def begin_part(self) -> None:
        """Start another part, which also starts a new line."""
        self._accept_as_text()
        if self._head or self._before is not _Before.NOTHING:
            self._end_line()
        self._restart_line()

    def feed(self, text: str) -> None:
        """Read more text outside blocks."""
        *written, rest = text.split("\n")
        *lines, last = (self._tail + text).split("\n")
        for line, more in zip(lines, written, strict=True):
            self._line.append(more)
            self._piece(line, is_open=False)
            self._end_line()
        self._line.append(rest)
        self._tail = last[self._piece(last, is_open=True) :]

    def _accept_as_text(self) -> None:
        """Treat the held end of the text as ordinary text, although it might have begun a tag."""
        tail, self._tail = self._tail, ""
        self._note_text(tail)

    def _is_quoting_line(self) -> bool:
        """Return True if the line is a quotation, a list item, a table row, code, a numbered line, or in a diff."""
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
        """Read a piece of one line. `is_open`: the line continues after the piece.

        Returns the number of characters read. The rest may be the beginning of a tag.
        """
        if all(self._fences):
            self._head = (self._head + piece[:_HEAD])[:_HEAD]
            return len(piece)
        at = 0
        while True:
            closer = self._closer
            end = self._tags.settled(piece, at, closer.text if closer else None) if is_open else len(piece)
            found = (self._tags.marks if closer is None else _closer_pattern(closer.text)).search(piece, at)
            if found is not None and found.start() >= end:
                found = None  # text after `end` may show that a name continues, but nothing begins there
            if closer is None:
                self._note_text(piece[at : end if found is None else found.start()])
            if found is None:
                return end
            if closer is None:
                self._mark(found[0].lower())
            else:
                self._close(closer)
            at = found.end()

    def _close(self, closer: _Closer) -> None:
        """Close the reasoning or the quoting element."""
        self._closer = None
        if closer.is_reasoning and not self._is_quoting_line():
            self._begin_line()
            self._before = _Before.BLOCK
        else:
            self._note_text(closer.text)

    def _mark(self, mark: str) -> None:
        if mark[0] == "`":
            self._ticks(len(mark))
        elif mark[0] == "~":
            if self._before is _Before.NOTHING:
                self._candidate = _Fence("~", len(mark), _indent(self._head))
        elif mark == "|":
            self._pipe = True
        elif self._candidate or self._run:
            self._code_closer = self._code_closer or self._tags.openers.get(mark)
        elif mark in self._tags.reasoning:
            self._close(_Closer(mark, is_reasoning=True))
            return
        else:
            self._closer = self._tags.openers[mark]
            if self._closer.is_reasoning:
                return
        self._note_text(mark)

    def _ticks(self, length: int) -> None:
        """Read a run of backticks. The run is a fence if it begins its line and is the line's only run.

        Otherwise, it is inline code.
        """
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
            self._code_closer = None

    def _leave_code(self) -> None:
        """Treat an open run of backticks as text, because inline code cannot continue here."""
        if self._run:
            self._closer = self._code_closer
        self._run, self._code_closer = 0, None

    def _note_text(self, text: str) -> None:
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
        begins = False
        for reading, fence in enumerate(self._fences):
            if fence is not None:
                if self._closes(fence, content):
                    self._fences[reading] = None
            elif candidate is not None and (reading == 0 or candidate.indent < _CODE_INDENT):
                self._fences[reading] = candidate
                begins = True
        if begins:
            self._leave_code()  # inline code does not continue after a fence
        self.line += 1
        self._restart_line()
        self._begin_line()

    def _closes(self, fence: _Fence, content: str) -> bool:
        is_whole = len(self._head) < _HEAD and len(content) >= fence.length
        is_only = is_whole and content == fence.mark * len(content)
        return is_only and _indent(self._head) < fence.indent + _CODE_INDENT

    def _note(self, content: str) -> None:
        """Update the state of lists, quotations and diffs after a line."""
        if not content:
            if self._before is _Before.NOTHING:
                self._leave_code()  # inline code does not continue after a blank line
                self._in_quotation = False
            return
        # In Markdown, lines after a quotation or a list item belong to it until a blank line. A list item or another
        # quoting line that contains a marker quotes a call, and the following lines may be the rest of the quotation or
        # its next call. A call that remains text is still readable, but a quoted call cannot be undone once it has been
        # run. Therefore, no call is allowed before the blank line. After list items without a marker, a call is
        # allowed, because models often list their steps just before they make a call. A line that ends in a marker
        # quotes a block whose content is on the following lines.
        self._in_quotation = (
            self._in_quotation
            or content.startswith(">")
            or "".join(self._line).rstrip(WHITE).endswith(self._markers.literals)
            or (self._is_quoting_line() and self._markers.find.search("".join(self._line)) is not None)
        )
        if _LIST.match(content):
            self._in_list = True
        elif _indent(self._head) == 0:
            self._in_list = False
        if self._head.startswith(_DIFF_HEAD):
            self._in_diff = True
        elif not self._head.startswith(_DIFF_LINE):
            self._in_diff = False


class _Tags:
    """Literals that change the meaning of text: reasoning tags, quoting elements and comments."""

    __slots__ = ("longest", "marks", "messages", "openers", "prefixes", "reasoning")

    def __init__(self, settings: Settings) -> None:
        reasoning = {opener.lower(): closer.lower() for opener, closer in settings.reasoning_tags}
        names = {f"<{name.lower()}": f"</{name.lower()}>" for name in settings.quoting}
        # The role of the model, for each opener that it may follow.
        self.messages = {opener.lower(): role.lower() for opener, role, _ in settings.messages if role is not None}
        messages = {opener.lower(): closer.lower() for opener, _, closer in settings.messages}
        quoting = names | messages | {"<!--": "-->"}
        self.openers = {opener: _Closer(closer, is_reasoning=True) for opener, closer in reasoning.items()}
        self.openers |= {opener: _Closer(closer, is_reasoning=False) for opener, closer in quoting.items()}
        self.reasoning = frozenset(reasoning.values())
        other = messages.keys() - self.messages.keys()  # the openers that name another role
        whole = {*reasoning, *self.reasoning, *other, "<!--"}
        parts = [(word, re.escape(word)) for word in whole]
        parts += [(name, re.escape(name) + r"(?=[ \t\r/>]|$)") for name in names]
        parts += [(opener, rf"{re.escape(opener)}(?!{re.escape(role)})") for opener, role in self.messages.items()]
        tags = "|".join([pattern for _, pattern in sorted(parts, key=lambda part: (-len(part[0]), part[0]))])
        self.marks = re.compile(rf"`+|~{{3,}}|(?<!<)\|(?!>)|{tags}", re.IGNORECASE | re.ASCII)
        words = [*whole, *[name + " " for name in names]]
        words += [opener + role for opener, role in self.messages.items()]
        self.prefixes = frozenset(word[:end] for word in words for end in range(1, len(word)))
        self.longest = max(len(word) for word in words)

    def is_settled_by(self, tail: str, following: str) -> bool:
        """Return True if the character after a held end of the text determines how that end is read."""
        if not tail.strip("`"):
            return following != "`"
        role = self.messages.get(tail.lower())
        return role is not None and not role.startswith(following.lower())

    def settled(self, text: str, at: int, closer: str | None) -> int:
        """Return the offset from which the rest of the text may be the beginning of a tag, a run of backticks, or `|>`.

        Returns the text's length if there is no such offset.
        """
        longest = self.longest if closer is None else len(closer)
        for position in range(max(at, len(text) - longest + 1), len(text)):
            end = text[position:].lower()
            if end in self.prefixes if closer is None else closer.startswith(end):
                return position
        if closer is not None:
            return len(text)
        return max(at, len(text) - 1 if text.endswith("|") else len(text.rstrip("`~")))


def _indent(head: str) -> int:
    """Return the number of columns of whitespace at the start of a line."""
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
