"""Join a truncated stream and the stream that a reconnect returned: `StreamSplicer`, which does no I/O."""

from __future__ import annotations

import re
from contextlib import suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from streamweld._messages import reject_text
from streamweld.errors import RAW_BYTES, SpliceError, StreamError, UsageError
from streamweld.splice.align import (
    Continuation,
    FirstStream,
    Marks,
    Overlap,
    Start,
    continuation,
    later_continuation,
    locate,
    may_continue,
)
from streamweld.splice.blocks import MOST_LEAD, BlockReader, is_event, is_text, terminator_of
from streamweld.splice.error_page import TEXT, describe_error_page
from streamweld.stream import StreamParser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld import Response
    from streamweld.options import Limits
    from streamweld.splice.blocks import Block

__all__ = ["StreamSplicer"]

_STARTS: Final = ("auto", "first_event", "next_event", "next_byte")
_BLANK_LINE: Final = (b"\n\n", b"\r\r", b"\r\n\r\n")
_LONGEST_BLANK: Final = len(b"\r\n\r\n")  # maximum number of bytes that may be missing after the last line of an event
_READ: Final = 1 << 16  # number of bytes of the first stream that are parsed at a time
_BARE: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*[{\[]")
_DATA_LINE: Final = re.compile(rb"(?:\A|[\r\n])data[^\r\n]*[\r\n]")
_OTHER_THAN_LINE_END: Final = re.compile(rb"[^\r\n]")


class _State(Enum):
    LOCATING = auto()
    """No event of the second stream has arrived, so the position of the stream is unknown."""
    OVERLAPPING = auto()
    """The second stream repeats events of the first stream; repeated events are compared and skipped."""
    COMPARING = auto()
    """The bodies are not event streams, so the second body must repeat the first body byte by byte."""
    PASSING = auto()
    """All further bytes are new."""
    CLOSED = auto()


class _Alignment(Enum):
    """Whether the second stream starts at an event boundary."""

    UNKNOWN = auto()
    """No line of the second stream has arrived that is not blank."""
    LATER = auto()
    """The second stream starts in the middle of a line, which may continue a comment or an event without data."""
    ALIGNED = auto()


class StreamSplicer:
    """Joins a truncated stream and the stream that a reconnect returned, without duplicating or losing bytes.

    The second stream may replay the first stream from the start, repeat a part of it, or continue right after it. The
    concatenated results of `feed` and `close` are the joined stream, starting with its first byte.

    Args:
        first: the truncated body, including an incomplete last event, if any.
        second_starts: where the second stream starts: `"first_event"` (a replay), `"next_event"` (after the last
            complete event, such as `starting_after`), `"next_byte"` (exactly where the first one ended), or the number
            of an event of the first stream, from 0. `"auto"` determines the position, and raises if the bytes do not
            prove it.
        limits: how much input to accept; only `max_event_bytes` and `max_field_bytes` apply.

    Raises:
        UsageError: if an option is invalid.

    >>> splicer = StreamSplicer(b'data: {"sequence_number":0}\\n\\ndata: {"seq')
    >>> splicer.feed(b'data: {"sequence_number":1}\\n\\n') + splicer.close()
    b'data: {"sequence_number":0}\\n\\ndata: {"sequence_number":1}\\n\\n'
    """

    __slots__ = ("_alignment", "_first", "_is_identical", "_next", "_reader", "_start", "_state", "_trailing")

    def __init__(
        self,
        first: bytes | bytearray | memoryview,
        *,
        second_starts: Start = "auto",
        limits: Limits | None = None,
    ) -> None:
        reject_text(first)
        body = bytes(first)
        self._first = FirstStream(body, limits)
        self._reader = BlockReader(limits, self._first.tail)
        self._start = _checked(second_starts, len(self._first.events))
        # Comments and pings after the first stream's last event, which the second stream may omit.
        self._trailing = self._first.trailing()
        self._alignment = _Alignment.UNKNOWN if second_starts == "auto" else _Alignment.ALIGNED
        self._is_identical = True  # True as long as the repeated events have identical bytes
        self._next = 0  # index of the event of the first stream that the second stream must repeat next
        self._state = _State.LOCATING if body else _State.PASSING
        if second_starts != "next_byte" and _is_bare(body):
            if second_starts not in ("auto", "first_event"):
                raise UsageError(f"second_starts={second_starts!r}: the first body is not an event stream")
            self._state = _State.COMPARING

    def feed(self, data: bytes | bytearray | memoryview) -> bytes:
        """Accept the next bytes of the second stream, and return the bytes of the joined stream that they complete.

        The first stream is returned together with the first new bytes.

        Raises:
            SpliceError: if the second stream does not belong to the first, if events between them are missing, or if
                its position cannot be proven. In this case, no bytes have been returned.
            LimitExceeded: if an event of the second stream is too long.
            UsageError: after `close`, or after an exception.
        """
        reject_text(data)
        state = self._state
        if state is _State.CLOSED:
            raise UsageError("the splicer is closed and accepts no more input")
        if state is _State.PASSING:
            return bytes(data)
        self._state = _State.CLOSED  # if this call raises, the state remains CLOSED
        if self._start == "next_byte" and state is not _State.COMPARING:
            self._state = _State.PASSING
            return self._first.body + bytes(data)
        try:
            if state is _State.COMPARING:
                return self._compare(bytes(data))
            self._reader.feed(data)
            return self._join(state)
        except SpliceError as error:
            error.partial = _response_of(self._first.body)
            raise

    def close(self) -> bytes:
        """End the second stream and return the remaining bytes.

        If the second stream added nothing, these bytes are the first stream.

        A second call returns `b""`.

        Raises:
            SpliceError: as `feed`.
        """
        state, self._state = self._state, _State.CLOSED
        if state in (_State.PASSING, _State.CLOSED):
            return b""
        if state is _State.COMPARING or self._start == "next_byte":
            return self._first.body
        try:
            left = self._join(state, is_end=True) or self._unfinished()
        except SpliceError as error:
            error.partial = _response_of(self._first.body)
            raise
        self._state = _State.CLOSED
        return left

    def _join(self, state: _State, *, is_end: bool = False) -> bytes:
        reader, first = self._reader, self._first
        while (block := self._next_block(is_end=is_end)) is not None:
            if state is _State.LOCATING:
                if block.key is None:
                    self._reject_page(block.start, block.end)
                if self._continues(block):
                    return self._pass([first.view[: len(first.body) - reader.prefix]], 0)
                if block.key is None:
                    if self._alignment is _Alignment.ALIGNED:
                        self._reject_text(block.start, block.end)
                    continue
                overlap = self._locate(block)
                self._next = overlap.event
                state = _State.OVERLAPPING
                if overlap.keeps_tail:
                    return self._pass([first.body, terminator_of(first.view)], block.start)
                if self._next == len(first.events):
                    self._check_tail(block)
                    return self._pass(first.kept, reader.without(self._repeats_trailing, block.start))
                reader.drop()
            if self._next < len(first.events):
                if block.key is not None:
                    self._check(block)
            elif block.key is not None or not self._is_trailing(block):
                self._check_tail(block)
                return self._pass(first.kept, block.start)
            reader.drop()
        reader.settle()
        self._state = state
        return b""

    def _next_block(self, *, is_end: bool) -> Block | None:
        block = self._reader.next(is_end=is_end)
        if block is None and is_end:
            block = self._reader.last()
        return block

    def _repeats_trailing(self, raw: memoryview) -> bool:
        """Return True if a block equals the next comment or ping of the first stream."""
        return raw == next(self._trailing, b"")

    def _is_trailing(self, block: Block) -> bool:
        with self._reader.view() as data:
            return self._repeats_trailing(data[block.start : block.end])

    def _reject_page(self, start: int, end: int) -> None:
        """Raise if the gateway sent an error page instead of the second stream.

        If the bytes up to the end of the page complete an event of the first stream, they are not an error page.
        """
        with self._reader.view() as data:
            page = data[start:end]
            found = describe_error_page(page)
            if found and not is_event(data[0 if self._reader.prefix else self._reader.lead : end]):
                raise _page_fault(found, page)

    def _reject_text(self, start: int, end: int) -> None:
        """Raise if the gateway sent text instead of the second stream."""
        with self._reader.view() as data:
            if is_text(data[start:end]):
                raise _page_fault(TEXT, data[start:end])

    def _pass(self, before: Sequence[memoryview | bytes], start: int) -> bytes:
        """Return the bytes of the first stream, and those of the second stream from a position in the buffer."""
        self._state = _State.PASSING
        return self._reader.take(before, start)

    def _continues(self, block: Block) -> bool:
        """Return True if the second stream starts exactly at the byte where the first one ended.

        The result is determined once, at the first non-blank line of the second stream.
        """
        reader = self._reader
        if self._alignment is _Alignment.ALIGNED:
            if block.end - reader.lead > MOST_LEAD:
                reader.drop()
            return False
        with reader.view() as data:
            lead = data[reader.lead : block.end]
            if self._alignment is _Alignment.LATER:
                found = later_continuation(data[block.start : block.end])
            else:
                found = continuation(self._first, data[: block.end], lead)
            match found:
                case Continuation.YES:
                    return True
                case Continuation.LATER:
                    self._alignment = _Alignment.LATER
                    return False
                case Continuation.TEXT:
                    raise _page_fault(TEXT, lead)
                case Continuation.INSIDE_LINE:
                    raise _page_fault("the second stream starts in the middle of a line", lead, "splice_other_stream")
                case Continuation.NO:
                    pass
            if _OTHER_THAN_LINE_END.search(lead) is not None or len(lead) >= _LONGEST_BLANK:
                self._alignment = _Alignment.ALIGNED
        return False

    def _locate(self, block: Block) -> Overlap:
        match self._start:
            case int(event):
                return Overlap(event)
            case "next_event":
                return Overlap(len(self._first.events))
            case "first_event":
                return Overlap(0)
            case _:
                pass
        try:
            return locate(self._first, self._reader, block)
        except SpliceError as fault:
            raise self._placed(fault.rule, fault.detail, block) from None

    def _check(self, block: Block) -> None:
        first = self._first
        expected = first.events[self._next]
        if not first.is_repeated(self._next, self._reader, block):
            raise self._placed(
                "splice_other_stream", "an event that occurs in both streams differs between them", block
            )
        with self._reader.view() as data:
            self._is_identical = (
                self._is_identical
                and block.size == expected.size
                and first.has_at(expected.start, data[block.start : block.end])
            )
        self._next += 1

    def _check_tail(self, block: Block) -> None:
        """Raise SpliceError if the server repeats the incomplete event with a different beginning."""
        first = self._first
        if first.marks is not Marks.NONE or not first.events or self._start != "auto" or not self._is_identical:
            return
        if block.key is None or first.is_only_comments_after:
            return
        if not self._reader.contains(first.tail_after_line_ends, block):
            raise self._placed(
                "splice_other_stream", "the incomplete event of the first stream continues differently", block
            )

    def _placed(self, rule: str, detail: str, block: Block) -> SpliceError:
        with self._reader.view() as data:
            raw = bytes(data[block.start : min(block.end, block.start + RAW_BYTES)])
        return SpliceError(rule=rule, detail=detail, byte_offset=block.offset, raw=raw)

    def _compare(self, data: bytes) -> bytes:
        body = self._first.body
        location = self._next
        if not data.startswith(body[location : location + len(data)]):
            raise SpliceError(rule="splice_other_stream", detail="it does not repeat the first body")
        self._next = location + len(data)
        self._state = _State.PASSING if self._next > len(body) else _State.COMPARING
        return body + data[len(body) - location :] if self._state is _State.PASSING else b""

    def _unfinished(self) -> bytes:
        """Return the joined bytes if the second stream ended before its first new complete event."""
        first, reader, state = self._first, self._reader, self._state
        size = reader.size
        if state is _State.LOCATING and self._continues_at_end(size):
            return reader.take([first.view[: len(first.body) - reader.prefix]], 0, size)
        is_next = self._start in ("next_event", len(first.events)) or not first.events
        if state is _State.OVERLAPPING:
            is_next = self._next == len(first.events)
        # If both streams end in the same incomplete event, keep the longer version.
        if is_next and self._repeats_tail(size):
            return reader.take(first.kept, reader.tail, size)
        return first.body if first.tail else b"".join(first.kept)

    def _continues_at_end(self, size: int) -> bool:
        """Return True if a second stream without a complete event starts exactly at the byte where the first one ended.

        `size`: the size of the bytes before the line endings that are added here to terminate the event.
        """
        first, reader = self._first, self._reader
        begin, start = 0 if reader.prefix else reader.lead, reader.tail
        with reader.view() as data, data[begin:] as joined:
            ending = terminator_of(joined)
            is_terminated = bytes(joined[-_LONGEST_BLANK:]).endswith(_BLANK_LINE)
        reader.append(ending)
        with reader.view() as data:
            tail, second = data[start:size], data[reader.lead : size]
            found = describe_error_page(tail)
            if found and not is_event(data[begin : size if is_terminated else len(data)]):
                raise _page_fault(found, tail)
            if self._alignment is not _Alignment.ALIGNED:
                if len(second) and len(first.tail) and bytes(first.tail[-1:]) not in (b"\r", b"\n"):
                    if self._alignment is _Alignment.LATER:
                        decision = later_continuation(data[start:])
                    else:
                        decision = continuation(first, data, data[reader.lead :])
                    if decision in (Continuation.YES, Continuation.LATER):
                        return True
                    if decision is Continuation.TEXT:
                        if may_continue(first, data[:size], second):
                            return True
                        raise _page_fault(TEXT, second)
                if _DATA_LINE.search(tail) is not None and not first.agrees(second):
                    raise SpliceError(rule="splice_ambiguous", detail="it contains no event with a payload")
            if is_text(second):
                raise _page_fault(TEXT, second)
        return False

    def _repeats_tail(self, size: int) -> bool:
        """Return True if the incomplete event of the second stream starts with that of the first stream."""
        first, start = self._first, self._reader.tail
        length = len(first.tail)
        with self._reader.view() as data:
            return size - start >= length and first.has_at(len(first.body) - length, data[start : start + length])


def _page_fault(detail: str, page: memoryview, rule: str = "splice_error_page") -> SpliceError:
    """Return the error for a body that does not continue the event stream."""
    return SpliceError(rule=rule, detail=detail, byte_offset=0, raw=bytes(page[:RAW_BYTES]))


def _response_of(body: bytes) -> Response:
    """Return the response that a truncated body contains. The body is parsed in pieces, so that the events of only one
    piece exist at a time.
    """
    parser = StreamParser(policy="salvage")
    with suppress(StreamError):
        for start in range(0, len(body), _READ):
            parser.feed(body[start : start + _READ])
        parser.close()
    return parser.response


def _checked(start: Start, events: int) -> Start:
    if isinstance(start, int) and not isinstance(start, bool):
        if 0 <= start <= events:
            return start
        raise UsageError(f"second_starts={start}: the first stream has {events} complete events")
    if start not in _STARTS:
        raise UsageError(f"second_starts={start!r}: one of {', '.join(_STARTS)}, or the number of an event")
    return start


def _is_bare(body: bytes) -> bool:
    """Return True if the body is JSON and not an event stream."""
    return _BARE.match(body) is not None
