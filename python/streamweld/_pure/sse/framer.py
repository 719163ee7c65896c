"""Parse bytes into server-sent-event frames (WHATWG HTML section 9.2.6), and payloads outside any SSE field.

The framer does no I/O and does not decode data. A line is classified as soon as its field name is complete. Bytes of
ignored lines are dropped on arrival. Bytes of an event are stored once and never scanned again.

Stray lines (only with `keep_stray`) have no known field, are not comments, and begin with `{`, `[` or `<` after spaces
and tabs. All further lines without a known field up to the next blank line are stray lines, too.
 - The stray lines are joined and emitted at the blank line or at the end. The stray payload and the frame of its block
   are emitted in the order in which they began. If the data of the frame is empty, only the stray payload is emitted.
 - The first stray line is emitted immediately if it ends in `}` or `]` and the block has no data so far, because a
   document on one line, `[DONE]` and newline-delimited JSON are not followed by a blank line. The next stray line then
   counts as the first.
"""

from __future__ import annotations

import codecs
from io import BytesIO
from typing import TYPE_CHECKING, Final, NoReturn

from streamweld._pure.sse.frame import (
    Frame,
    FramerLimit,
    Pending,
    Stray,
    as_bytes,
    ends_inside_character,
    split_joined,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Frame", "Framer", "FramerLimit", "Pending", "Stray", "as_bytes"]


class Framer:
    """Parses one event stream. Frames and offsets do not depend on how the bytes are split into reads."""

    __slots__ = (
        "_after_cr",
        "_block_offset",
        "_bom",
        "_data",
        "_data_offset",
        "_event",
        "_fault",
        "_head",
        "_is_joined",
        "_id",
        "_keep_stray",
        "_kind",
        "_line_offset",
        "_max_event",
        "_max_field",
        "_pending",
        "_retry",
        "_retry_suffix",
        "_size",
        "_space",
        "_stray",
        "_stray_given",
        "_stray_offset",
        "_tail",
        "_value",
        "last_event_id",
        "reconnection_time",
        "total",
    )

    def __init__(self, limits: Mapping[str, int | None], *, keep_stray: bool = False, last_event_id: str = "") -> None:
        self._max_event: Final = _cap(limits.get("max_event_bytes"))
        self._max_field: Final = _cap(limits.get("max_field_bytes"))
        self._keep_stray: Final = keep_stray
        self.last_event_id: str = last_event_id
        self.reconnection_time: int | None = None  # last valid `retry` value in milliseconds; it applies immediately
        self.total: int = 0  # number of bytes that have been received
        self._fault: FramerLimit | None = None
        # The bytes of a possible byte order mark. The value is None once the start of the input has been checked.
        self._bom: bytes | None = b""
        self._tail: bytes = b""  # the last three bytes received; an incomplete UTF-8 sequence has at most three
        self._after_cr: bool = False  # the last byte was a CR; a following LF belongs to the same line ending
        # State of the unfinished line.
        self._kind: int = _LINE_START
        self._line_offset: int = 0
        self._head: bytes = b""  # beginning of a line whose field is not known yet
        self._space: bool = False  # one space may precede the value
        self._value = _Pieces()  # value of an event, id or retry line, or the blanks before a possible stray line
        self._retry_suffix = _Pieces()  # the bytes after the digits of a retry line
        self._pending: int = 0  # number of bytes in the value of the current data or stray line
        # State of the block up to the next blank line.
        self._block_offset: int = -1
        self._size: int = 0  # total length of its complete data and stray lines, with one byte for each line ending
        self._data = _Pieces()
        self._data_offset: int = -1  # -1 if the block has no data line
        self._is_joined: bool = False  # the data begins on the line of another field
        self._stray = _Pieces()
        self._stray_offset: int = -1
        self._stray_given: bool = False  # a stray line of this block was already emitted, before the blank line
        self._event: bytes = b""
        self._id: str = last_event_id
        self._retry: int | None = None

    @property
    def is_joined(self) -> bool:
        """Whether the data of the open event begins on the line of another field."""
        return self._is_joined

    def feed(self, data: bytes | bytearray | memoryview) -> list[Frame | Stray]:
        """Return the frames and stray payloads that these bytes complete. Raise FramerLimit if a limit is exceeded."""
        piece = as_bytes(data)
        if self._fault is not None:
            raise FramerLimit(*self._fault.args)
        items: list[Frame | Stray] = []
        try:
            if len(piece) <= _WINDOW:
                self._take(piece, items)
            else:  # to limit the size of temporary copies
                for start in range(0, len(piece), _WINDOW):
                    self._take(piece[start : start + _WINDOW], items)
        except FramerLimit as fault:
            fault.items = items
            self._fault = fault
            for kept in (self._data, self._stray, self._value):
                kept.clear()
            raise
        return items

    def forget(self) -> None:
        """Drop the bytes of the open event. Use this method if its payload is not needed. The limits still apply."""
        self._data.forget()
        self._stray.forget()

    def finish(self) -> Pending | None:
        """End the input. Return the unfinished input, or None if there is none."""
        partial = self._kind != _LINE_START or bool(self._bom)
        if self._fault is not None or (not partial and self._block_offset < 0):
            return None
        data = self._data.join() if self._data_offset >= 0 else None
        offset = self._data_offset
        if offset < 0:
            offset = self._stray_offset if self._stray_offset >= 0 else self._block_offset
        return Pending(
            data=data,
            offset=offset if offset >= 0 else self._line_offset,
            event=_text(self._event) or "message",
            id=self._id,
            retry=self._retry,
            stray=self._stray.join() if self._stray_offset >= 0 else None,
            stray_offset=self._stray_offset,
            is_joined=self._is_joined,
            open_line=None if self._kind == _LINE_START else self._line_offset,
            partial=partial,
            mid_utf8=partial and ends_inside_character(self._tail),
            open=self._block_offset >= 0 or self._kind == _HEAD or bool(self._bom),
        )

    def _take(self, piece: bytes, items: list[Frame | Stray]) -> None:
        if not piece:
            return
        offset = self.total
        self.total = offset + len(piece)
        self._tail = piece[-3:] if len(piece) >= 3 else (self._tail + piece)[-3:]
        if self._bom is not None:
            # "The UTF-8 decode algorithm strips one leading BOM", regardless of how the BOM is split.
            held = self._bom
            piece = held + piece
            if len(piece) < 3 and codecs.BOM_UTF8.startswith(piece):
                self._bom = piece
                return
            self._bom = None
            offset -= len(held)
            if piece.startswith(codecs.BOM_UTF8):
                piece = piece[3:]
                offset += 3
        if self._after_cr and piece.startswith(b"\n"):
            piece = piece[1:]
            offset += 1
        for line in piece.splitlines(keepends=True):  # for bytes, splits only at LF, CR and CRLF
            last = line[-1]
            if self._kind == _LINE_START and (last == _LF or last == _CR):  # noqa: SIM109 (the hottest line)
                end = -2 if last == _LF and line[-2:-1] == b"\r" else -1
                if line.startswith(b"data:"):
                    self._whole_data(line[6 if line[5:6] == b" " else 5 : end], offset)
                elif len(line) == -end:
                    self._dispatch(items)
                else:
                    self._line(line[:end], offset)
                    self._end_line(items)
            elif last == _LF or last == _CR:  # noqa: SIM109
                self._line(line.rstrip(b"\r\n"), offset)
                self._end_line(items)
            else:
                self._line(line, offset)
            offset += len(line)
        self._after_cr = piece.endswith(b"\r")

    # Methods that handle a line that may arrive in several pieces

    def _line(self, piece: bytes, offset: int) -> None:
        if self._kind == _LINE_START:
            if not piece:
                return
            self._line_offset = offset
            self._kind = _HEAD
        if self._kind == _HEAD:
            piece = self._head + piece
            self._head = b""
            self._decide(piece)
        elif self._kind == _BLANKS:
            self._blanks(piece)
        else:
            self._more(piece)

    def _decide(self, head: bytes) -> None:
        """Determine the field from the first bytes of a line."""
        if head.startswith(b":"):
            self._kind = _SKIP
            return
        name, colon, _ = head[:_LONGEST_NAME].partition(b":")
        kind = _FIELDS.get(name)
        if kind is not None and colon:
            self._enter(kind)
            self._more(head[len(name) + 1 :])
        elif len(head) < _LONGEST_NAME and not colon and any(field.startswith(head) for field in _FIELDS):
            self._head = head
        elif not self._keep_stray:
            self._kind = _SKIP
        elif self._stray_offset >= 0:
            self._start_stray()
            self._more(head)
        else:
            self._kind = _BLANKS
            self._blanks(head)

    def _enter(self, kind: int) -> None:
        self._kind = kind
        self._space = True
        if self._block_offset < 0:
            self._block_offset = self._line_offset
        if kind == _DATA:
            self._start_data()

    def _start_data(self) -> None:
        if self._data_offset < 0:
            self._data_offset = self._line_offset
        else:
            self._data.add(b"\n")

    def _start_stray(self) -> None:
        self._kind = _STRAY
        self._space = False
        if self._block_offset < 0:
            self._block_offset = self._line_offset
        if self._stray_offset < 0:
            self._stray_offset = self._line_offset
        else:
            self._stray.add(b"\n")

    def _blanks(self, piece: bytes) -> None:
        """Classify a line that begins with spaces or tabs, using the first other byte."""
        first = piece.lstrip(b" \t")[:1]
        if first and first not in b"{[<":
            self._kind = _SKIP
            self._value.clear()
            return
        # Blanks beyond the limit are not stored, because a payload after them would be too long anyway.
        if self._value.length <= self._max_event:
            self._value.add(piece)
        if first:
            self._start_stray()
            self._more(self._value.take())

    def _more(self, piece: bytes) -> None:
        """Add a piece of a line whose kind is known."""
        if self._space and piece:
            self._space = False
            if piece.startswith(b" "):
                piece = piece[1:]
        kind = self._kind
        if kind in (_DATA, _STRAY):
            self._pending += len(piece)
            if self._size + self._pending > self._max_event:
                self._exceeds("max_event_bytes", self._max_event)
            (self._data if kind == _DATA else self._stray).add(piece)
        elif kind in (_EVENT, _ID):
            if self._value.length + len(piece) > self._max_field:
                self._exceeds("max_field_bytes", self._max_field)
            self._value.add(piece)
        elif kind == _RETRY:
            self._more_retry(piece)

    def _more_retry(self, piece: bytes) -> None:
        """Add digits of a retry time, and the bytes after them.

        At most one digit more than the longest valid time is stored. A stored leading 0 means that the value is
        present.
        """
        others = piece if self._retry_suffix.length else piece.lstrip(_DIGITS)
        digits = piece[: len(piece) - len(others)]
        if digits and self._value.length == 0:
            self._value.add(b"0")
        if self._value.length == 1:
            digits = digits.lstrip(b"0")
        self._value.add(digits[: 2 + _RETRY_DIGITS - self._value.length])
        if others and not self._keep_stray:
            self._kind = _SKIP
            self._value.clear()
        elif others:
            self._more_after_retry(others)

    def _more_after_retry(self, piece: bytes) -> None:
        """Add the bytes after the digits of a retry time, as long as they may be a data line and are within the
        limit.
        """
        kept = self._retry_suffix
        if kept.length == 0 or kept.join() == b" ":
            # Keep one of the blanks before the data. If nothing follows the blank, the blank shows that the value is
            # not a number.
            rest = piece.lstrip(b" \t")
            is_blank = len(rest) < len(piece) and kept.length == 0
            piece = b" " + rest if is_blank else rest
        begins = len(_DATA_NAME)
        may_be_data = kept.length > begins or _DATA_NAME.startswith((kept.join() + piece).lstrip(b" ")[:begins])
        if may_be_data and kept.length + len(piece) <= self._max_field:
            kept.add(piece)
            return
        self._kind = _SKIP
        self._value.clear()
        kept.clear()

    def _whole_data(self, value: bytes, offset: int) -> None:
        """Add a data line that lies entirely within one read. This is a fast path for `_line` and `_end_line`."""
        self._size += len(value) + 1
        if self._block_offset < 0:
            self._block_offset = offset
        if self._size > self._max_event:
            self._exceeds("max_event_bytes", self._max_event)
        if self._data_offset < 0:
            self._data_offset = offset
        else:
            self._data.add(b"\n")
        self._data.add(value)

    def _end_line(self, items: list[Frame | Stray]) -> None:
        kind = self._kind
        if kind == _HEAD:  # without a colon, the whole line is the field name, and the value is empty
            head, self._head = self._head, b""
            field = _FIELDS.get(head)
            if field is not None:
                self._enter(field)
            elif self._stray_offset >= 0:
                self._start_stray()
                self._more(head)
            kind = self._kind
        if kind in (_DATA, _STRAY):
            self._size += self._pending + 1
            if self._size > self._max_event:
                self._exceeds("max_event_bytes", self._max_event)
            if kind == _STRAY and self._stray.length == self._pending and self._stray.last in b"}]":
                self._give_stray(items)
            self._pending = 0
        else:
            value, data = self._value.take(), None
            if self._keep_stray:
                # Split the value only if stray payloads are requested. Otherwise, the value is the rest of the line.
                rest = self._retry_suffix.take()
                own, data = split_joined(rest if kind == _RETRY else value)
                if kind != _RETRY:
                    value = own
                elif own:
                    value = b""  # the value is not a number
            if kind == _EVENT:
                self._event = value
            elif kind == _ID and b"\0" not in value:
                self._id = _text(value)
            elif kind == _RETRY and value and int(value) <= _LONGEST_RETRY:
                self._retry = self.reconnection_time = int(value)
            if data is not None:
                self._is_joined = True
                self._whole_data(data, self._line_offset)
        self._kind = _LINE_START
        self._space = False

    def _give_stray(self, items: list[Frame | Stray]) -> None:
        """Emit the first stray line of a block immediately, because the line ends like a document.

        Emit nothing if the block has data, because the frame of the block must be emitted first.
        """
        if self._data.length:  # the stray line is emitted after the frame, at the blank line
            return
        if self._block_offset == self._stray_offset:
            self._block_offset = -1
        self._size -= self._stray.length + 1
        self._give_lines(items, has_data_lines=self._data_offset >= 0)
        self._stray_given = True

    def _dispatch(self, items: list[Frame | Stray]) -> None:
        """Process a blank line: emit the frame and the stray payload of the block."""
        self.last_event_id = self._id
        has_data_lines = self._data_offset >= 0
        if has_data_lines:
            data = self._data.take()
            replaces_frame = not data and (self._stray_given or self._stray_offset >= 0)
            if 0 <= self._stray_offset < self._data_offset:
                self._give_lines(items, has_data_lines=True)
            if not replaces_frame:
                event = _text(self._event) if self._event else "message"
                place = self._data_offset
                items.append(Frame(event, data, self._id, self._retry, place, is_joined=self._is_joined))
            self._data_offset = -1
            self._is_joined = False
        if self._stray_offset >= 0:
            self._give_lines(items, has_data_lines=has_data_lines)
        self._stray_given = False
        self._event = b""
        self._retry = None
        self._size = 0
        self._block_offset = -1

    def _give_lines(self, items: list[Frame | Stray], *, has_data_lines: bool) -> None:
        """Emit the stray lines of the block."""
        items.append(Stray(self._stray.take(), self._stray_offset, has_data_lines=has_data_lines))
        self._stray_offset = -1

    def _exceeds(self, name: str, limit: int) -> NoReturn:
        raise FramerLimit(name, limit, self._block_offset)


class _Pieces:
    """Byte buffer that keeps a single piece as it is, and copies several pieces into one buffer.

    The joined bytes are that buffer, not a copy of it, because an event may be as long as the limit allows.
    """

    __slots__ = ("_buffer", "_only", "last", "length")

    def __init__(self) -> None:
        self._only = b""
        self._buffer: BytesIO | None = None
        self.length = 0
        self.last = b""

    def add(self, piece: bytes) -> None:
        if not piece:
            return
        if self.length == 0:
            self._only = piece
        else:
            if self._buffer is None:
                self._buffer = BytesIO()
                self._buffer.write(self._only)
                self._only = b""
            self._buffer.write(piece)
        self.length += len(piece)
        self.last = piece[-1:]

    def join(self) -> bytes:
        return self._only if self._buffer is None else self._buffer.getvalue()

    def take(self) -> bytes:
        """Return all bytes and empty the buffer."""
        whole = self.join()
        self.clear()
        return whole

    def clear(self) -> None:
        self.forget()
        self.length = 0

    def forget(self) -> None:
        """Drop the bytes, but not their number."""
        self._only = b""
        self._buffer = None


def _cap(limit: int | None) -> int:
    return _NO_CAP if limit is None else limit


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


_NO_CAP: Final = (1 << 63) - 1
_WINDOW: Final = 16_384
_LF, _CR = b"\n\r"
_LINE_START, _HEAD, _DATA, _STRAY, _EVENT, _ID, _RETRY, _BLANKS, _SKIP = range(9)
_FIELDS: Final = {b"data": _DATA, b"event": _EVENT, b"id": _ID, b"retry": _RETRY}
_LONGEST_NAME: Final = len(b"event:")
_LONGEST_RETRY: Final = (1 << 63) - 1
_DATA_NAME: Final = b"data:"
_DIGITS: Final = b"0123456789"
_RETRY_DIGITS: Final = len(str(_LONGEST_RETRY))
