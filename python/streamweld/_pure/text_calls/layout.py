"""Determines where in Markdown text a call is allowed: not in fences, inline code, quotations, lists, diffs, or tables.

The text outside blocks is read once, line by line. If a position is ambiguous, no call is allowed there, because a call
that remains text is still readable.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from streamweld._pure.text_calls.cursor import WHITE
from streamweld._pure.text_calls.fences import CODE_INDENT, HEAD, Code, indent_of
from streamweld._pure.text_calls.quotes import Quotes
from streamweld._pure.text_calls.turn import Turn
from streamweld._pure.text_calls.words import Closer, Kind, words_of

if TYPE_CHECKING:
    from streamweld._pure.text_calls.families import Settings

__all__ = ["Layout", "MarkerPosition"]

_LIST_INDENT: Final = 2
_QUOTING_LINE: Final = (">", "+", "-", "@@", "< ", "<\t", "! ", "!\t")
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


class Layout:
    """Markdown state of the text read so far."""

    __slots__ = (
        "_before",
        "_closer",
        "_code",
        "_code_closer",
        "_depth",
        "_head",
        "_in_diff",
        "_in_list",
        "_in_quotation",
        "_in_reasoning_part",
        "_is_rest_quoted",
        "_kept",
        "_last",
        "_line",
        "_markers",
        "_quotes",
        "_row",
        "_solid",
        "_spoken",
        "_split",
        "_tail",
        "_turn",
        "_words",
        "is_empty",
        "line",
    )

    def __init__(self, settings: Settings) -> None:
        self._words = words_of(settings)
        self._markers = settings.markers
        self._line: list[str] = []  # text of the line, after the last block in it
        self._spoken: list[str] = []  # the text of `_line` outside reasoning that `_quotes` has not read yet
        self._code = Code()
        self._closer: Closer | None = None
        self._depth = 0  # number of open elements of the closer's name
        self._turn: Turn | None = None  # the open turn of another role
        # Closer of the first opener in inline code. The opener counts if no backticks end the code.
        self._code_closer: Closer | None = None
        self._in_list = False
        self._in_diff = False
        self._in_quotation = False
        self._tail = ""  # rest of the text that may turn out to be a tag, a run of backticks, or `|>`
        self._split = ""  # end of an earlier part that begins an opener, if `_tail` may continue it
        self._kept = {False: "", True: ""}  # such an end, for text and for reasoning
        self._in_reasoning_part = False
        self.is_empty = True  # the text so far consists only of reasoning tags
        self.line = 0
        self._restart_line()
        self._begin_line()

    def _restart_line(self) -> None:
        """Discard the text of the line, because a line, a part or a block has ended."""
        self._line.clear()
        self._spoken.clear()
        self._quotes = Quotes(self._words.quoting, self._code.run)

    def _begin_line(self) -> None:
        self._head = ""
        self._before = _Before.NOTHING
        self._row = False  # the line contains a mark that divides cells
        self._is_rest_quoted = False  # reasoning has ended in a quotation
        self._last = ""
        self._solid = ""  # the last character that is not whitespace

    def marker_position(self, following: str) -> MarkerPosition:
        """Return which markers are allowed after the text read so far. `following`: the next character."""
        self._read_tail(following, is_open=True)
        held = self._split + self._tail
        if self._code.is_open or self._closer is not None or held.lower() in self._words.roles:
            return MarkerPosition.NOWHERE
        before = _Before.PROSE if self._tail else self._before
        if before is _Before.BLOCK:
            return MarkerPosition.START
        if self._is_quoting_line():
            return MarkerPosition.NOWHERE
        if before is _Before.NOTHING:
            return MarkerPosition.START
        return MarkerPosition.NOWHERE if self._is_quoted(following) else MarkerPosition.AFTER_PROSE

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
        self._last = self._solid = ">"

    def begin_part(self, *, is_reasoning: bool) -> None:
        """Start another part, which also starts a new line.

        The opener of a message, an element, a section or reasoning counts even if it is split between two parts. A role
        or a closer does not continue in another part.
        """
        held, closer = self._split + self._tail, self._closer
        self._read_tail("", is_open=False)
        is_same = self._closer is closer  # otherwise the held text was a whole opener or closer
        self._kept[self._in_reasoning_part] = self._words.beginning(held, closer) if is_same else ""
        if self._head or self._before is not _Before.NOTHING or (self._turn is not None and self._turn.has_text):
            self._end_line()
        self._restart_line()
        self._in_reasoning_part = is_reasoning
        self._split, self._kept[is_reasoning] = self._kept[is_reasoning], ""

    def feed(self, text: str) -> None:
        """Read more text outside blocks."""
        first, *others = text.split("\n")
        self._add(first)
        for other in others:
            self._read_tail("", is_open=False)
            self._end_line()
            self._add(other)

    def _add(self, text: str) -> None:
        self._line.append(text)
        self._tail += text
        self._read_tail("", is_open=True)

    def _read_tail(self, following: str, *, is_open: bool) -> None:
        """Read the held text, as far as its meaning is certain.

        `following`: the next character, if it is known. `is_open`: the line continues.
        """
        if self._split and not self._read_split(following, is_open=is_open):
            return
        tail, self._tail = self._tail, ""
        self._tail = tail[self._piece(tail + following, len(tail), is_open=is_open) :]

    def _read_split(self, following: str, *, is_open: bool) -> bool:
        """Read the rest of an opener that began in an earlier part. The beginning is not part of this line.

        Returns False if it is not yet certain whether this is an opener.
        """
        split, words, closer = len(self._split), self._words, self._closer
        text, most = self._split + self._tail + following, split + len(self._tail)
        if is_open and words.settled(text, 0, closer) < split:
            return False
        found = words.pattern(closer).search(text)
        while found is not None and found.start() < split:
            opener = found[0].lower()
            if found.end() > split and words.opens(opener, closer):
                if found.end() > most:
                    return False
                rest = found.end() - split
                written, self._split, self._tail = self._tail[:rest], "", self._tail[rest:]
                if not self._code.is_fenced:
                    self._read_found(opener, written, "")
                return True
            found = words.pattern(closer).search(text, found.end())
        self._split = ""
        return True

    def _accept_as_text(self) -> None:
        """Treat the held end of the text as ordinary text, although it might have begun a tag."""
        tail, self._tail, self._split = self._tail, "", ""
        self._note_text(tail)

    def _is_quoting_line(self) -> bool:
        """Return True if the line is a quotation, a list item, a table row, code, a numbered line, or in a diff."""
        head, indent = self._head, indent_of(self._head)
        content = head.lstrip(WHITE)
        return (
            indent >= CODE_INDENT
            or self._in_quotation
            or (self._in_list and indent >= _LIST_INDENT)
            or (self._in_diff and head != "")
            or content.startswith((*_QUOTING_LINE, *self._words.row_starts))
            or self._words.list_item.match(content) is not None
            or self._words.numbered.match(content) is not None
        )

    def _is_quoted(self, following: str) -> bool:
        """Return True if the text before this position on its line quotes what follows. `following`: the next
        character.
        """
        marks, held = self._words.quoting, self._tail
        last = (held or self._last)[-1:]
        solid = held.rstrip(WHITE)[-1:] or self._solid
        if self._row or self._is_rest_quoted or solid in marks.brackets or (last == following and last in marks.runs):
            return True
        self._quotes.read("".join(self._spoken), (held + following)[0])
        self._spoken.clear()
        return self._quotes.is_open or (last in marks.openers and (held != "" or not self._quotes.closes))

    def _piece(self, piece: str, most: int, *, is_open: bool) -> int:
        """Read at most this number of characters of a piece of one line. `is_open`: the line continues after the piece.

        Returns the number of characters read. The rest may be the beginning of a tag.
        """
        if self._code.is_fenced:
            self._head = (self._head + piece[: min(most, HEAD)])[:HEAD]
            return most
        at = 0
        end, closer = -1, self._closer
        while True:
            if end < at or self._closer is not closer:
                closer = self._closer
                end = min(self._words.settled(piece, at, closer), most) if is_open else most
            found = self._words.pattern(closer).search(piece, at)
            if found is not None and (found.start() >= end or found.end() > most):
                end = min(end, found.start())  # text after `end` may show that a name continues
                found = None
            self._read_plain(piece[at : end if found is None else found.start()])
            if found is None:
                return end
            at = found.end()
            self._read_found(found[0].lower(), found[0], piece[at : at + 1])

    def _read_plain(self, text: str) -> None:
        """Read text without tags."""
        if not text or (self._closer is not None and self._closer.kind is Kind.REASONING):
            return
        self._spoken.append(text)
        if self._closer is None:
            self._note_text(text)
        elif self._turn is not None:
            self._turn.read(text)

    def _read_found(self, mark: str, written: str, following: str) -> None:
        """Read a tag or a run. `mark`: in lower case; `written`: its text on this line."""
        closer = self._closer
        if closer is None:
            self._mark(mark, written)
        elif closer.kind is Kind.REASONING:
            self._end_reasoning(closer)
        elif closer.nests(mark):
            self._depth += 1
            self._spoken.append(written)
        elif self._turn is not None:
            self._spoken.append(written)
            if mark[0] in "`~":
                self._turn.read_run(mark)
            elif self._turn.quotes(following, self._words.quoting):
                self._turn.read(written)
            else:
                self._close(closer)
        else:
            self._spoken.append(written)
            self._depth -= 1
            if self._depth == 0:
                self._close(closer)

    def _open(self, closer: Closer | None) -> None:
        self._closer, self._depth = closer, 1
        if closer is not None and closer.kind is Kind.MESSAGE:
            self._turn = Turn()

    def _close(self, closer: Closer) -> None:
        """Close the quoting element, the section or the message."""
        self._closer = self._turn = None
        self._note_text(closer.literal)

    def _end_reasoning(self, closer: Closer) -> None:
        self._closer = None
        if self._is_quoting_line():
            self._note_text(closer.literal)
        elif self._is_quoted(closer.literal[0]):
            # The quotation began before the reasoning ended, so it goes on.
            self._is_rest_quoted = True
            self._note_text(closer.literal)
        else:
            self._begin_line()
            self._before = _Before.BLOCK
        self._spoken.append(closer.literal)

    def _mark(self, mark: str, written: str) -> None:
        words, code = self._words, self._code
        if mark[0] in "`~":
            code.read_run(mark, self._head if self._before is _Before.NOTHING else None)
            if code.candidate is None and code.run == 0:
                self._code_closer = None
        elif words.is_row_mark(mark):
            self._row = True
        elif code.candidate or code.run:
            self._code_closer = self._code_closer or words.openers.get(mark)
        elif mark in words.reasoning:
            self._end_reasoning(words.reasoning[mark])
            return
        else:
            self._open(words.openers[mark])
            if words.openers[mark].kind is Kind.REASONING:
                return
        self._spoken.append(written)
        self._note_text(written)

    def _leave_code(self) -> None:
        """Treat an open run of backticks as text, because inline code cannot continue here."""
        if self._code.run:
            self._open(self._code_closer)
        self._code.run, self._code_closer = 0, None

    def _note_text(self, text: str) -> None:
        if not text:
            return
        if len(self._head) < HEAD:
            self._head = (self._head + text[:HEAD])[:HEAD]
        content = text.rstrip(WHITE)
        if content:
            self._before = _Before.PROSE
            self._solid = content[-1]
            self.is_empty = False
        self._last = text[-1]

    def _end_line(self) -> None:
        if self._turn is not None:
            self._turn.end_line()
        if not self._code.is_fenced and self._closer is None and self._code.candidate is None:
            self._note(self._head.strip(WHITE))
        if self._code.end_line(self._head):
            self._leave_code()  # inline code does not continue after a fence
        self.line += 1
        self._restart_line()
        self._begin_line()

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
        if self._words.list_item.match(content):
            self._in_list = True
        elif indent_of(self._head) == 0:
            self._in_list = False
        if self._head.startswith(_DIFF_HEAD):
            self._in_diff = True
        elif not self._head.startswith(_DIFF_LINE):
            self._in_diff = False
