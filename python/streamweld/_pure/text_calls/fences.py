"""Tracks the fences and the inline code of a Markdown text that is read line by line."""

from __future__ import annotations

from typing import Final, NamedTuple

from streamweld._pure.text_calls.cursor import WHITE

__all__ = ["CODE_INDENT", "HEAD", "Code", "indent_of"]

HEAD: Final = 256  # number of characters at the start of a line that determine the line's kind
CODE_INDENT: Final = 4
_FENCE: Final = 3


class _Fence(NamedTuple):
    mark: str
    length: int
    indent: int


class Code:
    """Fences and inline code.

    A fence that is indented by four or more columns is a fence inside a list and indented code elsewhere. Both
    interpretations are tracked.
    """

    __slots__ = ("_fences", "candidate", "run")

    def __init__(self) -> None:
        # The open fence under each interpretation. The first interpretation allows any indentation; the second allows
        # fewer than four columns.
        self._fences: list[_Fence | None] = [None, None]
        self.candidate: _Fence | None = None  # a run that is a fence, unless the line contains another backtick
        self.run = 0  # length of the backtick run that opened inline code; 0 outside it

    @property
    def is_open(self) -> bool:
        """True if the text is code under either interpretation."""
        return any(self._fences) or self.candidate is not None or self.run > 0

    @property
    def is_fenced(self) -> bool:
        """True if a fence is open under both interpretations."""
        return all(self._fences)

    def read_run(self, run: str, head: str | None) -> None:
        """Read a run of backticks or tildes. `head`: the whitespace before it, if it begins its line.

        A run of backticks is a fence if it begins its line and is the line's only run. Otherwise, it is inline code.
        """
        length = len(run)
        if head is not None and length >= _FENCE:
            self.candidate = _Fence(run[0], length, indent_of(head))
            return
        if run[0] == "~":
            return
        if self.candidate is not None:
            if self.candidate.mark == "~":
                return
            self.run, self.candidate = self.candidate.length, None
        if self.run == 0:
            self.run = length
        elif self.run == length:
            self.run = 0

    def end_line(self, head: str) -> bool:
        """End the current line. Return True if the line opens a fence.

        `head`: the start of the line, at most `HEAD` characters.
        """
        candidate, self.candidate = self.candidate, None
        begins = False
        for reading, fence in enumerate(self._fences):
            if fence is not None:
                if _closes(fence, head):
                    self._fences[reading] = None
            elif candidate is not None and (reading == 0 or candidate.indent < CODE_INDENT):
                self._fences[reading] = candidate
                begins = True
        return begins


def _closes(fence: _Fence, head: str) -> bool:
    content = head.strip(WHITE)
    is_whole = len(head) < HEAD and len(content) >= fence.length
    is_only = is_whole and content == fence.mark * len(content)
    return is_only and indent_of(head) < fence.indent + CODE_INDENT


def indent_of(head: str) -> int:
    """Return the number of columns of whitespace at the start of a line."""
    columns = 0
    for mark in head:
        if mark == " ":
            columns += 1
        elif mark == "\t":
            columns += CODE_INDENT - columns % CODE_INDENT
        else:
            break
    return columns
