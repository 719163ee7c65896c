"""Split an event stream into blocks. A block ends with a blank line, and may contain no event.

A comment line before the first field of an event is a separate block, so that it can be forwarded immediately. The
splitter handles line endings (LF, CR, CRLF), comments, the field names that it needs, and a byte order mark at the
start of the stream. The splitter does not apply other SSE rules. The result does not depend on how the input is split.
If a CRLF ends a block, its LF belongs to that block even if the LF arrives later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ARRAY_WINDOW", "PiecePosition", "Splitter", "after_opening", "has_fields", "inside_of_array", "named"]

_BOM = b"\xef\xbb\xbf"
_WHITE: Final = b" \t\r\n"
ARRAY_WINDOW: Final = 4096  # number of bytes within which the body must be recognized as an array
# A document outside any SSE field begins with a byte in _OPENING and ends with a byte in _CLOSING.
_OPENING: Final = frozenset(b"{[<")
_CLOSING: Final = frozenset(b"}]")
_LF, _CR, _COLON, _SPACE, _DATA = b"\n\r: d"
_FIELDS: Final = frozenset({b"data", b"retry"})
_FIRST_OF_FIELDS: Final = frozenset(b":deir")
_WORDS: Final = frozenset({b"event", b"id"})
_LINES: Final = 4096  # number of bytes that are split into lines at a time; the last line may extend beyond them

# The position at which a piece ends. `inside`: within a block. `ready`: within a block, after a payload that can pass
# through before its block ends. `end`: at the end of a block. `between`: at the end of several blocks that contain only
# comments and blank lines. `line_end`: after the LF that completes the previous line ending.
PiecePosition: TypeAlias = Literal["inside", "ready", "end", "between", "line_end"]


class Splitter:
    """Splits one stream into blocks."""

    __slots__ = (
        "_after_cr",
        "_array",
        "_begun",
        "_comment",
        "_data",
        "_cr_before",
        "_has_data",
        "_in_document",
        "_document",
        "_ended",
        "_head",
        "_in_line",
        "_last",
        "_mark",
        "_waits",
        "is_joined",
        "merges",
    )

    def __init__(self) -> None:
        # Number of bytes of a byte order mark so far; None once the start of the stream has been checked.
        self._mark: int | None = 0
        self._in_line = False  # the last line has bytes, but no line ending yet
        self._begun = False  # the block has a line other than a comment
        self._comment = False  # the last line is a comment without a line ending
        self._data = False  # the line may have the field `data`
        self._document: bool | None = False  # the line may be a document outside any SSE field; None if undecided
        self._last = 0  # last byte of the current line
        # True if the block has data, or a payload that is not complete within its line. All later payloads of the block
        # then wait for the end of the block.
        self._waits = False
        self._after_cr = False
        self._ended = False  # the last byte ended a block
        self._head: bytes | None = b""  # beginning of the stream while it may be an array; otherwise None
        self._array = False  # the stream is an array of objects
        self._has_data = False  # the block has a complete data line
        self._in_document = False  # the block has an unfinished document outside any SSE field
        self._cr_before = False  # the last line ended in CR or CRLF
        self.is_joined = False  # the parser joins the payload lines of the last piece, and those before it, in a copy
        self.merges = True  # blank lines and comments between two blocks are emitted in one piece

    def split(self, data: bytes) -> Iterator[tuple[bytes, PiecePosition]]:
        """Split the bytes into pieces that never extend past the end of a block, or into the first line for which
        `is_joined` is true.
        """
        start = 0
        if self._after_cr and data.startswith(b"\n"):
            start = 1
            yield b"\n", "line_end" if self._ended else "inside"
        if start == len(data):
            self._after_cr = self._after_cr and not start
            return
        self._after_cr = data.endswith(b"\r")
        if self._head is not None:
            self._look_for_array(self._head + data[:ARRAY_WINDOW])
        at = start + self._skip_mark(data)
        idle = start  # end of the complete comments and blank lines between two blocks
        for line in _lines(data, at):
            ends = line[-1] == _LF or line[-1] == _CR
            blank = not self._in_line and ends and not line.rstrip(b"\r\n")
            if not self._begun and (blank or line[0] == _COLON or self._comment):
                self._comment = not ends
                at += len(line)
                if ends:
                    if self.merges:
                        idle = at
                    else:
                        yield data[start:at], "end"
                        start = idle = at
                self._in_line = not ends
                continue
            if start < idle:
                yield data[start:idle], "between"
                start = idle
            if not self._in_line:
                self._comment = line[0] == _COLON
                self._data = line[0] == _DATA
                if not (blank or self.is_joined) and self._joins(line[0]):
                    if start < at:
                        yield data[start:at], "inside"
                        start = idle = at
                    self.is_joined = True
                self._document = line[0] in _OPENING if line[0] > _SPACE else None
            at += len(line)
            self._begun = not blank
            if self._document is not False:
                self._look(line, ends=ends)
            self._in_line = not ends
            if blank:
                self._waits = False
                yield data[start:at], "end"
                self.is_joined = self._has_data = self._in_document = False
                start = idle = at
            elif ends and self._document and self._last in _CLOSING and not self._waits:
                self._in_document = False
                yield data[start:at], "ready"
                start = idle = at
            elif ends and (self._data or self._document):
                self._waits = True
                self._has_data = self._has_data or self._data
                self._in_document = self._in_document or bool(self._document)
            self._cr_before = line.endswith((b"\r", b"\r\n"))
            self._comment = self._comment and not ends
        if start < idle:
            yield data[start:idle], "between"
            start = idle
        self._ended = start == at and not self._begun
        if start < at:
            yield data[start:at], "ready" if self._array or self._head is not None else "inside"

    def _joins(self, first: int) -> bool:
        """Return True if a line that begins with this byte is joined with earlier lines in a copy.

        In Rust, the lines of a document are a slice of the input as long as each ends in LF and no field or comment is
        between them. No line of a JSON document begins like a field.
        """
        if self._in_document and (self._cr_before or first in _FIRST_OF_FIELDS):
            return True
        return self._has_data and first == _DATA

    def _skip_mark(self, data: bytes) -> int:
        """Return how many bytes at the start of the data belong to the byte order mark at the start of the stream.

        An incomplete byte order mark is the beginning of a line without a known field.
        """
        if self._mark is None:
            return 0
        mark = _BOM[self._mark :]
        if data.startswith(mark):
            self._mark = None
            return len(mark)
        if mark.startswith(data):
            self._mark += len(data)
            return len(data)
        self._begun = self._in_line = self._mark > 0
        self._mark = None
        return 0

    def _look_for_array(self, head: bytes) -> None:
        """Determine whether the stream is an array, or store its beginning until that can be determined."""
        inside = inside_of_array(head[:ARRAY_WINDOW])
        self._array = bool(inside)
        self._head = head if inside is None and len(head) < ARRAY_WINDOW else None

    def _look(self, line: bytes, *, ends: bool) -> None:
        """Determine from this piece of the line whether the line may be a document outside any SSE field."""
        if self._document is None:
            first = line.lstrip(b" \t")[:1]
            self._document = first[0] in _OPENING if first else None
        if self._document:
            body = line.rstrip(b"\r\n") if ends else line
            self._last = body[-1] if body else self._last


def _lines(data: bytes, start: int) -> Iterator[bytes]:
    """Yield the lines from `start` on, with their line endings. The bytes are split in steps, to limit the memory that
    many short lines use.
    """
    while start < len(data):
        end = data.find(b"\n", start + _LINES) + 1 or len(data)
        yield from data[start:end].splitlines(keepends=True)  # for bytes, splits only at LF, CR and CRLF
        start = end


def inside_of_array(head: bytes) -> int | None:
    """If a body that begins with these bytes is an array of objects, return the offset of its first element.

    Return 0 if the body is not an array of objects, or None if more bytes are needed.
    """
    text = head.removeprefix(_BOM).lstrip(_WHITE)
    if not text or (len(head) < len(_BOM) and _BOM.startswith(head)):
        return None
    if text[:1] != b"[":
        return 0
    inside = text[1:].lstrip(_WHITE)
    if not inside:
        return None
    return len(head) - len(text) + 1 if inside[:1] == b"{" else 0


def after_opening(block: bytes, opening: bytes, *, is_first: bool) -> bytes:
    """Insert `opening` at the start of the block. In the first block of a stream, `opening` is inserted after the byte
    order mark.
    """
    rest = block.removeprefix(_BOM) if is_first else block
    return block[: len(block) - len(rest)] + opening + rest


def has_fields(block: bytes) -> bool:
    """Return True if the block has data, a retry time, or a name or id that is not blank."""
    lines = (line.partition(b":") for line in block.removeprefix(_BOM).splitlines())
    return any(name in _FIELDS or (name in _WORDS and value.strip(_WHITE)) for name, _, value in lines)


def named(block: bytes, name: str) -> bytes:
    """Replace the event names in a block with the given name. The block must end in a blank line and have other
    lines.
    """
    *lines, blank = block.splitlines(keepends=True)
    end = lines[-1][len(lines[-1].rstrip(b"\r\n")) :]
    others = [line for line in lines if line.partition(b":")[0].rstrip(b"\r\n") != b"event"]
    return b"".join([*others, f"event: {name}".encode(), end, blank])
