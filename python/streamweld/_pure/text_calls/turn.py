"""Reads the turn of another role, to determine whether the turn quotes the token that would end it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.text_calls.cursor import WHITE
from streamweld._pure.text_calls.fences import HEAD, Code

if TYPE_CHECKING:
    from streamweld._pure.text_calls.quotes import QuotingMarks

__all__ = ["Turn"]


class Turn:
    """Markdown state of a turn of another role. The turn is a text of its own, so no code is open where it begins."""

    __slots__ = ("_code", "_head", "_is_blank", "_last")

    def __init__(self) -> None:
        self._code = Code()
        self._begin_line()

    def _begin_line(self) -> None:
        self._head = ""
        self._is_blank = True
        self._last = ""

    @property
    def has_text(self) -> bool:
        """True if the line has text."""
        return self._last != ""

    def read(self, text: str) -> None:
        """Read text of one line, without backticks and fences."""
        if not text:
            return
        if len(self._head) < HEAD:
            self._head = (self._head + text[:HEAD])[:HEAD]
        self._is_blank = self._is_blank and not text.strip(WHITE)
        self._last = text[-1]

    def read_run(self, run: str) -> None:
        """Read a run of backticks, or one of at least three tildes."""
        if not self._code.is_fenced:
            self._code.read_run(run, self._head if self._is_blank else None)
        self.read(run)

    def end_line(self) -> None:
        is_text = not self._code.is_fenced and self._code.candidate is None
        begins = self._code.end_line(self._head)
        if begins or (is_text and self._is_blank):
            self._code.run = 0  # inline code does not continue after a fence or a blank line
        self._begin_line()

    def quotes(self, following: str, marks: QuotingMarks) -> bool:
        """Return True if a closing token is quoted that stands between the text so far and the next character.

        Backticks without a partner count, too, because text that stays text is still readable.
        """
        is_quotation = self._head.lstrip(WHITE).startswith(">")
        return self._code.is_open or is_quotation or marks.enclose(self._last, following)
