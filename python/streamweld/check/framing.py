"""The event-stream layer of the checker: the lines as they stand, and the payloads that a reader would get.

Payloads, their numbers and offsets are the framer's, the same that `StreamParser` counts. What only a linter wants to
know (a line that every reader skips, a field that means nothing) is judged here, line by line, so that how the bytes
were cut changes nothing. It knows no dialect and no JSON.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Final

from streamweld._pure.sse import Framer, FramerLimit, Stray, as_bytes
from streamweld._spec import LIMITS
from streamweld.check.violation import Place

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld._pure.sse import Frame
    from streamweld.check.violation import Report

__all__ = ["Framing"]

_HEAD: Final = 64  # bytes of a line that are enough to judge it
_FIELD: Final = re.compile(rb"[A-Za-z][A-Za-z0-9_-]{0,31}[ \t]*(?::|$)")
_KNOWN: Final = frozenset((b"data", b"event", b"id", b"retry"))


class Framing:
    """Takes reads of any size and hands each payload on as `(data, event, id)`, with its place in the report."""

    def __init__(self, report: Report, payload: Callable[[bytes, str, str], None]) -> None:
        self.total: int = 0
        self.payloads: int = 0
        self.broken: bool = False  # a limit was hit: nothing is read any more
        self._report = report
        self._payload = payload
        self._framer = Framer(LIMITS, keep_stray=True)
        self._after_cr = False
        # The line that is not at its end.
        self._line = -1  # its offset; -1 between lines
        self._head = b""
        self._nul = False
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._bad_utf8 = False
        # The block up to the next blank line.
        self._names = 0  # its event lines
        self._name_at = Place(0, 0)
        self._has_data = False
        self._outside = False

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        piece = as_bytes(data)
        if self._after_cr and piece.startswith(b"\n"):
            self._give(b"\n")
            piece = piece[1:]
        for line in piece.splitlines(keepends=True):
            if self.broken:
                return
            body = line.rstrip(b"\r\n")
            self._look(body)
            if len(body) < len(line):
                self._judge()
            self._give(line)
        if piece:
            self._after_cr = piece.endswith(b"\r")

    def close(self) -> bool:
        """The end of the input. True if an event was left without its blank line."""
        if self.broken:
            return False
        unfinished = self._line >= 0
        if unfinished:
            self._judge()
        pending = self._framer.finish()
        lost = False
        if pending is not None:
            self._report.place = Place(pending.offset, self.payloads)
            if pending.data is not None:
                lost = True
                self._report.say("framing.unterminated")
                self._count(pending.data, pending.event, pending.id, pending.offset)
            elif self._names and not self._has_data:
                self._report.say("framing.no_data", at=self._name_at)
            if pending.stray is not None:
                self._count(pending.stray, "message", pending.id, pending.stray_offset)
        self._report.place = Place(self.total, self.payloads)
        return lost

    def _give(self, line: bytes) -> None:
        """To the framer; what it hands out goes on."""
        self.total += len(line)
        self._after_cr = False
        items: list[Frame | Stray]
        try:
            items = self._framer.feed(line)
        except FramerLimit as fault:
            items = fault.items
            self.broken = True
            self._report.say("framing.too_large", fault.limit_name, Place(fault.offset, self.payloads))
        for item in items:
            if isinstance(item, Stray):
                self._count(item.data, "message", "", item.offset)
            else:
                self._count(item.data, item.event, item.id, item.offset)

    def _count(self, data: bytes, event: str, identifier: str, offset: int) -> None:
        self._report.place = Place(offset, self.payloads)
        self.payloads += 1
        self._payload(data, event, identifier)

    # A line

    def _look(self, piece: bytes) -> None:
        if self._line < 0:
            self._line = self.total
            self._head = b""
            self._nul = self._bad_utf8 = False
            self._utf8.reset()
        if len(self._head) < _HEAD:
            self._head += piece[: _HEAD - len(self._head)]
        self._nul = self._nul or b"\0" in piece
        if not self._bad_utf8:
            try:
                self._utf8.decode(piece)
            except UnicodeDecodeError:
                self._bad_utf8 = True

    def _judge(self) -> None:
        """The line is at its end."""
        place = Place(self._line, self.payloads)
        head = self._head
        self._line = -1
        if place.byte_offset == 0 and head.startswith(codecs.BOM_UTF8):
            self._report.say("framing.bom", at=place)
            head = head[3:]
        if not self._bad_utf8:
            try:
                self._utf8.decode(b"", final=True)
            except UnicodeDecodeError:
                self._bad_utf8 = True
        if self._bad_utf8:
            self._report.say("framing.bad_utf8", at=place)
        if not head:
            self._end_block()
        elif not head.startswith(b":"):
            name, _, value = head.partition(b":")
            if name in _KNOWN:
                self._field(name, value.removeprefix(b" "), place)
            elif not self._outside:  # one word for a block, however many lines it has
                self._outside = True
                shown = head.decode("utf-8", "replace")
                self._report.say(
                    "framing.unknown_field" if _FIELD.match(head) else "framing.outside_data", shown, place
                )

    def _field(self, name: bytes, value: bytes, place: Place) -> None:
        if name == b"data":
            self._has_data = True
        elif name == b"event":
            self._names += 1
            self._name_at = place
            if self._names > 1:
                self._report.say("framing.event_repeated", value.decode("utf-8", "replace"), place)
        elif name == b"id":
            if self._nul:
                self._report.say("framing.nul_in_id", at=place)
        elif not value.isdigit():
            self._report.say("framing.bad_retry", value.decode("utf-8", "replace"), place)

    def _end_block(self) -> None:
        if self._names and not self._has_data:
            self._report.say("framing.no_data", at=self._name_at)
        self._names = 0
        self._has_data = self._outside = False
