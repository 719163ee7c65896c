"""The common data type for findings in a stream: diagnostics, rule violations, and the error that ended the stream."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from streamweld._messages import error_help_url, help_url

if TYPE_CHECKING:
    from streamweld._spec import Severity
    from streamweld.check import Violation
    from streamweld.errors import StreamError
    from streamweld.events import Diagnostic

__all__ = ["Finding", "Kind", "Lines"]

Kind: TypeAlias = Literal["diagnostic", "rule", "error"]

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")


class Lines:
    """Converts byte offsets in a body that is read in chunks to 1-based line numbers.

    A line ends with LF, CRLF or CR.
    """

    __slots__ = ("_after_cr", "_size", "_starts")

    def __init__(self) -> None:
        self._starts = array("Q", [0])
        self._size = 0
        self._after_cr = False

    def feed(self, piece: bytes) -> None:
        """Add the next chunk of the body."""
        if self._after_cr and piece.startswith(b"\n"):
            self._starts.pop()  # the chunk starts with the LF of a CRLF that is split between two chunks
        self._starts.extend(self._size + end.end() for end in _LINE_END.finditer(piece))
        self._size += len(piece)
        if piece:
            self._after_cr = piece.endswith(b"\r")

    def __getitem__(self, offset: int) -> int:
        return bisect_right(self._starts, offset)

    def bytes_to_line_end(self, offset: int) -> int | None:
        """Return the number of bytes from `offset` to the end of its line; None at the end of the body."""
        line = self[offset]
        end = self._starts[line] if line < len(self._starts) else self._size
        return end - offset if end > offset else None


@dataclass(frozen=True, slots=True)
class Finding:
    """A diagnostic, a rule violation, or the error that ended the stream."""

    kind: Kind
    code: str
    severity: Severity
    byte_offset: int | None
    event_ordinal: int | None
    line: int | None
    message: str
    help_url: str
    byte_length: int | None = None
    """The number of bytes to the end of the line; None if unknown."""

    @classmethod
    def of_diagnostic(cls, found: Diagnostic, lines: Lines) -> Finding:
        position = (found.byte_offset, found.event_ordinal, lines[found.byte_offset])
        rest = lines.bytes_to_line_end(found.byte_offset)
        return cls("diagnostic", found.code, found.severity, *position, found.message, found.help_url, rest)

    @classmethod
    def of_violation(cls, found: Violation, lines: Lines) -> Finding:
        where = found.where
        line = lines[where.byte_offset]
        message = f"{found.message} ({found.source})"
        page = help_url(found.rule)
        position = (where.byte_offset, where.event_ordinal, line)
        return cls(
            "rule", found.rule, found.severity, *position, message, page, lines.bytes_to_line_end(where.byte_offset)
        )

    @classmethod
    def of_error(cls, error: StreamError, lines: Lines) -> Finding:
        offset = error.byte_offset
        position = (offset, error.event_ordinal, None if offset is None else lines[offset])
        rest = None if offset is None else lines.bytes_to_line_end(offset)
        return cls("error", error.rule, "error", *position, str(error), error_help_url(error.rule), rest)
