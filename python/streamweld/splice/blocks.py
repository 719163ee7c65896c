"""Split event streams into blocks, so that two streams can be compared event by event and joined byte by byte.

An event may be as long as the limit allows, so no function here copies one: blocks are positions in the data, and lines
and payloads are examined where they lie.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from io import BytesIO
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from streamweld._pure.json.automaton import Automaton
from streamweld.errors import LimitExceeded
from streamweld.options import Limits
from streamweld.splice.payload import LONG, Span, fingerprint, fingerprint_of_text, summarize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = [
    "MOST_LEAD",
    "Block",
    "BlockReader",
    "BlockScanner",
    "after_mark",
    "blocks_of",
    "has_same_shape",
    "have_equal_payloads",
    "head_of",
    "is_event",
    "is_text",
    "lines_of",
    "may_be_cut_json",
    "starts_inside_line",
    "terminator_of",
]

MOST_LEAD: Final = 1 << 16
"""The maximum number of bytes of keep-alives that are kept before the first event."""
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_OTHER_THAN_LINE_END: Final = re.compile(rb"[^\r\n]")
# Matches at the start of a line that is blank, a comment, or a field.
_NO_TEXT: Final = re.compile(rb"(?:data|event|id|retry)?(?:[:\r\n]|\Z)")
_FIELD: Final = re.compile(rb"(data|event|id)(?:: ?|\Z)")
_DATA: Final = re.compile(rb"data[^:]*(?:: ?|\Z)")
_NAME: Final = re.compile(rb"[^:]*")
_WORD: Final = re.compile(rb"\S")
_MESSAGE: Final = b"message"  # the name of an event without a name
_MARKER: Final = b"[DONE]"
_BLANK_OR_MARKER: Final = re.compile(rb"\s*(?:(\[DONE\])\s*)?")
_FIELDS: Final = (b"data", b"event", b"id", b"retry")
_LONGEST_FIELD: Final = len(b"event:")
_BOM: Final = b"\xef\xbb\xbf"
_CR: Final = 0x0D
_LONGEST_LINE_END: Final = len(b"\r\n")
_WINDOW: Final = 1 << 16  # number of bytes that are passed to the JSON automaton at a time
_UNLIMITED: Final = Limits(max_event_bytes=None, max_field_bytes=None)


@dataclass(frozen=True, slots=True)
class Block:
    """The bytes up to and including a blank line."""

    start: int
    """Position of the first byte in the data that was scanned."""
    end: int
    offset: int
    """Offset of the first byte in the body that contains the block."""
    key: int | None = None
    """Key for comparing events: a hash of the name and the payload. None if the block does not contain an event, or
    contains only a ping.
    """
    number: int | None = None
    """The `sequence_number` of the payload."""
    id: str | None = None
    """The SSE id that this event sets; None if it sets none."""
    response_id: str | None = None
    """The id of the response that the event belongs to, if every event of its format contains it. These formats are
    Chat Completions chunks (`id`) and Gemini chunks (`responseId`).
    """
    is_json: bool = False
    """Whether the payload is a JSON object or array, or the terminal marker `[DONE]`."""
    is_done: bool = False
    """Whether the event is the terminal marker `[DONE]`, without a name."""
    is_long: bool = False
    """Whether the payload is too long to be parsed. The keys of short and long payloads cannot be compared."""

    @property
    def size(self) -> int:
        return self.end - self.start


class BlockScanner:
    """Finds the blocks in data that may still grow. The positions are those of the data."""

    __slots__ = ("_id", "_last_id", "_max_event", "_max_field", "line", "origin", "scanned", "start")

    def __init__(self, limits: Limits | None = None, origin: int = 0) -> None:
        caps = limits or Limits()
        self._max_event: Final = caps.max_event_bytes or 0
        self._max_field: Final = caps.max_field_bytes or 0
        self._id = self._last_id = ""
        self.origin: int = origin  # position of the first byte of the stream; negative if it was dropped
        self.start: int = origin  # start of the next block
        self.line: int = origin  # start of the incomplete line
        self.scanned: int = origin  # bytes from `line` to here contain no line end

    def move(self, count: int) -> None:
        """Adjust the positions after this number of bytes was dropped before them."""
        self.origin -= count
        self.start -= count
        self.line -= count
        self.scanned -= count

    def next(self, data: memoryview, *, is_end: bool) -> Block | None:
        """Return the next complete block.

        A CR at the end of the data is kept until the next byte shows whether the CR is half of a CRLF, unless it is
        the end of the body.
        """
        while (found := _LINE_END.search(data, self.scanned)) is not None:
            at, end = found.span()
            if not is_end and end == len(data) and end - at == 1 and data[at] == _CR:
                self.scanned = at
                return None
            is_blank = at in (self.line, after_mark(data, self.line, is_first=self.line == self.origin))
            self.line = self.scanned = end
            if is_blank:
                start, self.start = self.start, end
                return self._block(data, start, end)
        self.scanned = len(data)
        return None

    def check_rest(self, data: memoryview) -> None:
        """Raise LimitExceeded if the incomplete block is too long."""
        self._check("max_event_bytes", self._max_event, len(data) - self.start, self.start)

    def last(self, data: memoryview) -> Block | None:
        """Return the rest of the data as a block, if only its blank line is missing. Call this method at the end, after
        the last complete block.
        """
        if _OTHER_THAN_LINE_END.search(data, self.start) is None:
            return None
        block = self.rest(data)
        if block.key is None or not block.is_json:
            return None
        self.start = self.line = self.scanned = len(data)
        return block

    def rest(self, data: memoryview) -> Block:
        """Return the incomplete block, as if its blank line followed."""
        return self._block(data, self.start, len(data))

    def _block(self, data: memoryview, start: int, end: int) -> Block:
        if end - start <= _LONGEST_LINE_END and start > self.origin:
            return Block(start, end, start - self.origin)
        name, size = b"", 0
        spans: list[Span] = []  # the first data lines; further ones are found again when the payload is read
        begin = after_mark(data, start, is_first=start == self.origin)
        for at, stop in lines_of(data, begin, end):
            field = _FIELD.match(data, at, stop)
            if field is None:
                continue
            if field[1] == b"data":
                size += stop - field.end() + 1
                self._check("max_event_bytes", self._max_event, size, start)
                if len(spans) < 2:
                    spans.append((field.end(), stop))
                continue
            self._check("max_field_bytes", self._max_field, stop - field.end(), start)
            value = bytes(data[field.end() : stop])
            if field[1] == b"event":
                name = value
            elif b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        offset = start - self.origin
        if not spans:
            return Block(start, end, offset)
        own_id, self._last_id = (self._id if self._id != self._last_id else None), self._id

        def lines() -> Iterable[Span]:
            return spans if len(spans) == 1 else _data_lines(data, begin, end)

        payload = summarize(data, lines(), size)
        if payload is None:
            key = hash((name or _MESSAGE, fingerprint_of_text(data, lines())))
            is_marker = _is_done(data, lines())
            is_done = is_marker and size == len(_MARKER) + 1 and name in (b"", _MESSAGE)
            return Block(start, end, offset, key, id=own_id, is_json=is_marker, is_done=is_done)
        kind, number = payload.members.get("type"), payload.members.get("sequence_number")
        if kind == "ping" or (name == b"ping" and kind is None):
            return Block(start, end, offset, id=own_id, is_json=True)
        found = payload.members.get("id" if "choices" in payload.members else "responseId")
        return Block(
            start,
            end,
            offset,
            hash((name or _MESSAGE, payload.key)),
            number if type(number) is int else None,
            own_id,
            found if isinstance(found, str) and found else None,
            is_json=True,
            is_long=size > LONG,
        )

    def _check(self, name: str, limit: int, size: int, start: int) -> None:
        if limit and size > limit:
            offset = start - self.origin
            raise LimitExceeded(limit_name=name, limit=limit, observed=limit + 1, byte_offset=offset)


class BlockReader:
    """Reads chunks of any size into one buffer, and returns the blocks that they complete one by one.

    The buffer contains `prefix`, the blocks that are kept, the blocks that have not been returned yet, and the
    incomplete block. The prefix is the incomplete event of the first stream, so that the event that it and the second
    stream form together can be examined in one piece.
    """

    __slots__ = ("_buffer", "_kept", "_max", "_scanner", "prefix")

    def __init__(self, limits: Limits | None, prefix: memoryview) -> None:
        self._max: Final = (limits or Limits()).max_event_bytes
        self._buffer = BytesIO()
        self._buffer.write(prefix)
        self.prefix: int = len(prefix)
        self._kept: int = len(prefix)  # start of the blocks that are kept
        self._scanner = BlockScanner(limits, len(prefix))

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Accept the next bytes."""
        self._buffer.write(data)

    def next(self, *, is_end: bool) -> Block | None:
        """Return the next complete block. Its positions are valid until `settle` is called."""
        with self.view() as data:
            return self._scanner.next(data, is_end=is_end)

    def last(self) -> Block | None:
        """Return the incomplete block, if only its blank line is missing."""
        with self.view() as data:
            return self._scanner.last(data)

    @property
    def tail(self) -> int:
        """The position after the last block that was returned."""
        return self._scanner.start

    @property
    def size(self) -> int:
        """The number of bytes in the buffer."""
        return self._buffer.tell()

    @property
    def lead(self) -> int:
        """Start of the first block that is still in the buffer. Positions before it must not be used."""
        return self._kept

    def view(self) -> memoryview:
        """Return the bytes in the buffer. The caller must release the view before the next call of a method."""
        return self._buffer.getbuffer()

    def drop(self) -> None:
        """Keep neither the prefix nor the blocks that have been returned so far."""
        self.prefix = 0
        self._kept = self._scanner.start

    def settle(self) -> None:
        """Delete what is not kept, and check the size of the rest."""
        size = self._buffer.tell()
        count = 0 if self.prefix else self._kept
        if count:
            with self.view() as data:
                data[: size - count] = data[count:]
            size -= count
            self._buffer.seek(size)
            self._buffer.truncate()
            self._kept -= count
            self._scanner.move(count)
        lead = self._scanner.start - self._kept
        held = size - min(lead, MOST_LEAD)
        if self._max and held > self._max:
            raise LimitExceeded(limit_name="max_event_bytes", limit=self._max, observed=held)

    def contains(self, text: memoryview, block: Block) -> bool:
        """Return whether a block contains a text."""
        return self._buffer.getvalue().find(text, block.start, block.end) >= 0

    def append(self, data: bytes) -> None:
        """Append a line ending that the second stream does not contain."""
        self._buffer.write(data)

    def without(self, is_dropped: Callable[[memoryview], bool], end: int) -> int:
        """Remove some of the kept blocks before a position. Return the position at which the others now start."""
        start = min(self._kept, end)
        at = 0
        with self.view() as data, data[start:end] as lead:
            for block in blocks_of(lead):
                raw = lead[block.start : block.end]
                if not is_dropped(raw):
                    lead[at : at + block.size] = raw
                    at += block.size
            lead[len(lead) - at :] = lead[:at]
        return end - at

    def take(self, before: Sequence[memoryview | bytes], start: int, end: int | None = None) -> bytes:
        """Empty the buffer, and return its bytes from `start` to `end`, after other bytes.

        The bytes are moved within the buffer, which becomes the result, so that they are never stored twice.
        """
        size = self._buffer.tell() if end is None else end
        begin = sum(map(len, before))
        total = begin + size - start
        if total > self._buffer.tell():
            self._buffer.seek(total - 1)
            self._buffer.write(b"\0")
        with self.view() as data:
            data[begin:total] = data[start:size]
            at = 0
            for piece in before:
                data[at : at + len(piece)] = piece
                at += len(piece)
        self._buffer.truncate(total)
        joined = self._buffer.getvalue()
        self._buffer = BytesIO()
        return joined


def after_mark(data: memoryview, start: int = 0, *, is_first: bool = True) -> int:
    """Return the position after the byte order mark at the start of a stream."""
    return start + len(_BOM) if is_first and data[start : start + len(_BOM)].tobytes() == _BOM else start


def _is_done(data: memoryview, spans: Iterable[Span]) -> bool:
    """Return whether the only word in these lines is the terminal marker."""
    markers = 0
    for start, end in spans:
        found = _BLANK_OR_MARKER.fullmatch(data, start, end)
        if found is None:
            return False
        markers += found[1] is not None
    return markers == 1


def _data_lines(data: memoryview, start: int, end: int) -> Iterator[Span]:
    """Yield the positions of the data in each data line."""
    for at, stop in lines_of(data, start, end):
        field = _FIELD.match(data, at, stop)
        if field is not None and field[1] == b"data":
            yield field.end(), stop


def blocks_of(data: memoryview, start: int = 0) -> Iterator[Block]:
    """Yield the complete blocks of a body from a position on, without limits."""
    scanner = BlockScanner(_UNLIMITED, start)
    while (block := scanner.next(data, is_end=True)) is not None:
        yield block


def head_of(data: memoryview) -> Block:
    """Return the first block of a body. The block may be incomplete."""
    scanner = BlockScanner(_UNLIMITED)
    return scanner.next(data, is_end=True) or scanner.rest(data)


def have_equal_payloads(one: memoryview, other: memoryview) -> bool:
    """Return True if two blocks contain events with the same name and payload. This function is slow for short events,
    whose keys can be compared instead.
    """
    return _key_of(one) == _key_of(other)


def _key_of(raw: memoryview) -> tuple[bytes, int | None]:
    name, begin = b"", after_mark(raw)
    for at, stop in lines_of(raw, begin, len(raw)):
        field = _FIELD.match(raw, at, stop)
        if field is not None and field[1] == b"event":
            name = bytes(raw[field.end() : stop])
    return name or _MESSAGE, fingerprint(raw, _data_lines(raw, begin, len(raw)))


def is_event(data: memoryview) -> bool:
    """Return True if these bytes are exactly one complete event with a usable payload."""
    block = next(blocks_of(data), None)
    return block is not None and block.end == len(data) and block.key is not None and block.is_json


def lines_of(data: memoryview, start: int, end: int) -> Iterator[Span]:
    """Yield the positions of the lines without their line endings. The last line is empty if the data ends with a line
    ending.
    """
    while (found := _LINE_END.search(data, start, end)) is not None:
        yield start, found.start()
        start = found.end()
    yield start, end


def is_text(data: memoryview) -> bool:
    """Return True if the bytes contain text, but no comment and no field. The last line may be incomplete."""
    has_text = False
    at = after_mark(data)
    while (found := _LINE_END.search(data, at)) is not None:
        start, at = at, found.end()
        if start < found.start() and _NO_TEXT.match(data, start) is not None:
            return False
        has_text = has_text or _WORD.search(data, start, at) is not None
    if at == len(data):
        return has_text
    name, colon, _ = bytes(data[at : at + _LONGEST_FIELD]).partition(b":")
    return not (name in _FIELDS or not name or (not colon and any(field.startswith(name) for field in _FIELDS)))


def may_be_cut_json(data: memoryview) -> bool | None:
    """Return whether the data of an event that may be incomplete is the beginning of a JSON value. None if the event
    has no data.
    """
    automaton = Automaton()
    lines = 0
    for at, end in lines_of(data, 0, len(data)):
        field = _DATA.match(data, at, end)
        if field is None:
            continue
        if lines:
            automaton.feed(b"\n")
        lines += 1
        for start in range(field.end(), end, _WINDOW):
            automaton.feed(bytes(data[start : min(end, start + _WINDOW)]))
    if not automaton.pos and automaton.reason is None:
        return None
    return automaton.finish() == "prefix"


def terminator_of(tail: memoryview) -> bytes:
    """Return the line endings that terminate an event whose last bytes are `tail`."""
    ends = _LINE_END.search(tail)
    line_end = ends[0] if ends else b"\n"
    last = bytes(tail[-1:])
    if last == b"\r" and line_end == b"\r\n":
        return b"\n\r\n"
    return line_end if last in (b"\r", b"\n") else 2 * line_end


def has_same_shape(block: memoryview, other: memoryview) -> bool:
    """Return True if two blocks have the same field names, in order, without comments and blank lines."""
    return all(one == another for one, another in zip_longest(_names(block), _names(other)))


def _names(block: memoryview) -> Iterator[tuple[int, bytes]]:
    """Yield the length and the beginning of each field name."""
    for at, end in lines_of(block, 0, len(block)):
        name = _NAME.match(block, at, end)
        if name is not None and name.end() > at:
            yield name.end() - at, bytes(block[at : name.end()][:_WINDOW])


def starts_inside_line(data: memoryview) -> bool:
    """Return True if the bytes start in the middle of a line.

    The first line is then neither blank, a comment nor a field.
    """
    return _NO_TEXT.match(data, after_mark(data)) is None
