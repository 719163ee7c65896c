"""The event-stream layer of the checker: the lines as sent, and the payloads that a reader receives.

Payloads, numbers and offsets come from the framer, so they are the same as in `StreamParser`. Two other kinds of body
are read in the same way: one JSON array (Gemini without `alt=sse`), and one JSON document per line. This module also
looks for faults that only a linter reports, such as a line that every reader skips or an unknown field. Each complete
line is checked once, so the result does not depend on the chunk boundaries. This module does not depend on a dialect
and does not parse JSON.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Final

from streamweld._pure.pipeline.array_body import ArrayBody, ElementTooLong
from streamweld._pure.sse.framer import Framer, FramerLimit, Stray, as_bytes
from streamweld._spec import LIMITS
from streamweld.check.violation import Place

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld._pure.sse.framer import Frame
    from streamweld.check.violation import Report

__all__ = ["Framing"]

_HEAD: Final = 64  # number of bytes kept from the beginning of each line; enough for all checks
_FIELD: Final = re.compile(rb"[A-Za-z][A-Za-z0-9_-]{0,31}[ \t]*(?::|$)")
_KNOWN: Final = frozenset((b"data", b"event", b"id", b"retry"))


class Framing:
    """Reads chunks of any size and passes on each payload as `(data, event, id)`, with its place in the report."""

    def __init__(self, report: Report, payload: Callable[[bytes, str, str], None]) -> None:
        self.total: int = 0
        self.payloads: int = 0
        self.broken: bool = False  # a limit was exceeded, so the rest of the input is ignored
        self._report = report
        self._payload = payload
        self._framer = Framer(LIMITS, keep_stray=True)
        self._after_cr = False
        self._array = ArrayBody(LIMITS["max_event_bytes"])
        self._framed = False  # True after a field of an event stream
        self._lines_at: tuple[Place, str] | None = None  # place and text of the first line that is a complete document
        # State of the incomplete line.
        self._line = -1  # byte offset where the line starts; -1 between two lines
        self._head = b""
        self._last = b""  # last non-blank byte of the line
        self._nul = False
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._bad_utf8 = False
        # State of the block before the next blank line.
        self._names = 0  # number of `event` lines in the block
        self._name_at = Place(0, 0)
        self._has_data = False
        self._outside = False

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        piece = as_bytes(data)
        if self._array.is_one is None:
            self._decide(piece)
        elif self._array.is_one:
            self._elements(piece)
        else:
            self._feed_lines(piece)

    def _decide(self, piece: bytes) -> None:
        """Detect the kind of body from its beginning, and process that beginning."""
        begin = self._array.held + piece
        known = self._array.decide(piece)
        if known is not None and self._array.is_one:
            self._begin_array(begin)
            self.total = len(begin) - len(known)
            self._elements(known)
        elif known is not None:
            self._feed_lines(known)

    def _feed_lines(self, piece: bytes) -> None:
        if self._after_cr and piece.startswith(b"\n"):
            self._give(b"\n")
            piece = piece[1:]
        for line in piece.splitlines(keepends=True):
            if self.broken:
                return
            body = line.rstrip(b"\r\n")
            self._look(body)
            if len(body) < len(line):
                self._check_line()
            self._give(line)
        if piece:
            self._after_cr = piece.endswith(b"\r")

    def close(self) -> bool:
        """End the input. Returns True if the last event is not followed by a blank line."""
        if self._array.is_one is None:
            self._feed_lines(self._array.held)  # the body is too short to be detected as an array, so treat it as lines
        if self.broken:
            return False
        if self._array.is_one:
            return self._end_array()
        unfinished = self._line >= 0
        if unfinished:
            self._check_line()
        if self._lines_at is not None and not self._framed:
            self._report.record("framing.json_lines_body", at=self._lines_at[0])
        pending = self._framer.finish()
        lost = False
        if pending is not None:
            self._report.position = Place(pending.offset, self.payloads)
            if pending.data is not None:
                lost = True
                if pending.is_joined:
                    self._report.record("framing.fields_on_one_line")
                self._report.record("framing.unterminated")
                self._count(pending.data, pending.event, pending.id, pending.offset)
            elif self._names and not self._has_data:
                self._report.record("framing.no_data", at=self._name_at)
            if pending.stray is not None:
                self._count(pending.stray, "message", pending.id, pending.stray_offset)
        self._report.position = Place(self.total, self.payloads)
        return lost

    def _give(self, line: bytes) -> None:
        """Pass bytes to the framer, and forward the payloads that it returns."""
        self.total += len(line)
        self._after_cr = False
        items: list[Frame | Stray]
        try:
            items = self._framer.feed(line)
        except FramerLimit as fault:
            items = fault.items
            self.broken = True
            self._report.record("framing.too_large", fault.limit_name, Place(fault.offset, self.payloads))
        for item in items:
            if isinstance(item, Stray):
                self._count(item.data, "message", "", item.offset)
            else:
                if item.is_joined:
                    self._report.record("framing.fields_on_one_line", at=Place(item.offset, self.payloads))
                self._count(item.data, item.event, item.id, item.offset)

    def _count(self, data: bytes, event: str, identifier: str, offset: int) -> None:
        self._report.position = Place(offset, self.payloads)
        self.payloads += 1
        self._payload(data, event, identifier)

    # Methods for bodies that are one JSON array

    def _begin_array(self, begin: bytes) -> None:
        position = Place(0, 0)
        if begin.startswith(codecs.BOM_UTF8):
            self._report.record("framing.bom", at=position)
        self._report.record("framing.array_body", at=position)

    def _elements(self, piece: bytes) -> None:
        if self.broken:
            return
        self.total += len(piece)
        try:
            for element, offset in self._array.feed(piece):
                if not _is_utf8(element):
                    self._report.record("framing.bad_utf8", at=Place(offset, self.payloads))
                self._count(element, "message", "", offset)
        except ElementTooLong as fault:
            self.broken = True
            self._report.record("framing.too_large", "max_event_bytes", Place(fault.offset, self.payloads))

    def _end_array(self) -> bool:
        self._report.position = Place(self.total, self.payloads)
        if not self._array.closed:
            self._report.record("framing.array_open")
        elif self._array.spilled:
            self._report.record("framing.array_spilled")
        return not self._array.closed

    # Methods that check single lines

    def _look(self, piece: bytes) -> None:
        if self._line < 0:
            self._line = self.total
            self._head = self._last = b""
            self._nul = self._bad_utf8 = False
            self._utf8.reset()
        if len(self._head) < _HEAD:
            self._head += piece[: _HEAD - len(self._head)]
        self._last = piece.rstrip(b" \t")[-1:] or self._last
        self._nul = self._nul or b"\0" in piece
        if not self._bad_utf8:
            try:
                self._utf8.decode(piece)
            except UnicodeDecodeError:
                self._bad_utf8 = True

    def _check_line(self) -> None:
        """Check a complete line."""
        position = Place(self._line, self.payloads)
        head = self._head
        self._line = -1
        if position.byte_offset == 0 and head.startswith(codecs.BOM_UTF8):
            self._report.record("framing.bom", at=position)
            head = head[3:]
        if not self._bad_utf8:
            try:
                self._utf8.decode(b"", final=True)
            except UnicodeDecodeError:
                self._bad_utf8 = True
        if self._bad_utf8:
            self._report.record("framing.bad_utf8", at=position)
        if not head:
            self._end_block()
        elif not head.startswith(b":"):
            name, _, value = head.partition(b":")
            if name not in _KNOWN and not self._framed and self._is_document(head):
                self._lines_at = self._lines_at or (position, head.decode("utf-8", "replace"))
            elif name in _KNOWN:
                self._begin_frames()
                self._field(name, value.removeprefix(b" "), position)
            elif not self._outside:  # one violation per block, regardless of the number of lines
                self._outside = True
                shown = head.decode("utf-8", "replace")
                self._report.record(
                    "framing.unknown_field" if _FIELD.match(head) else "framing.outside_data", shown, position
                )

    def _is_document(self, head: bytes) -> bool:
        """Return True if a line is a complete document: an object that spans the line, or the terminal marker."""
        return (head.startswith(b"{") and self._last == b"}") or head.strip() == b"[DONE]"

    def _begin_frames(self) -> None:
        """Treat the body as an event stream from now on, and report an earlier line that is not a field."""
        self._framed = True
        if self._lines_at is not None:
            position, shown = self._lines_at
            self._lines_at = None
            self._report.record("framing.outside_data", shown, position)

    def _field(self, name: bytes, value: bytes, position: Place) -> None:
        if name == b"data":
            self._has_data = True
        elif name == b"event":
            self._names += 1
            self._name_at = position
            if self._names > 1:
                self._report.record("framing.event_repeated", value.decode("utf-8", "replace"), position)
        elif name == b"id":
            if self._nul:
                self._report.record("framing.nul_in_id", at=position)
        elif not value.isdigit():
            self._report.record("framing.bad_retry", value.decode("utf-8", "replace"), position)

    def _end_block(self) -> None:
        if self._names and not (self._has_data or self._framer.is_joined):
            self._report.record("framing.no_data", at=self._name_at)
        self._names = 0
        self._has_data = self._outside = False


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
