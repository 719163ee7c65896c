"""Join a truncated stream and the stream that a reconnect returned: `StreamSplicer`, which does no I/O."""

from __future__ import annotations

import re
from contextlib import suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from streamweld._messages import reject_text
from streamweld.errors import SpliceError, StreamError, UsageError
from streamweld.splice.align import Continuation, FirstStream, Marks, Overlap, Start, continuation, locate, may_continue
from streamweld.splice.blocks import BlockReader, is_event, is_text, raw_blocks, terminator_of
from streamweld.splice.error_page import TEXT, describe_error_page
from streamweld.stream import StreamParser

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from streamweld import Response
    from streamweld.options import Limits
    from streamweld.splice.blocks import Block

__all__ = ["StreamSplicer"]

_STARTS: Final = ("auto", "first_event", "next_event", "next_byte")
_BLANK_LINE: Final = (b"\n\n", b"\r\r", b"\r\n\r\n")
_LONGEST_BLANK: Final = len(b"\r\n\r\n")  # maximum number of bytes that may be missing after the last line of an event
_MOST_LEAD: Final = 1 << 16  # maximum number of bytes of keep-alives kept before the first event


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

    __slots__ = (
        "_first",
        "_is_aligned",
        "_is_identical",
        "_lead",
        "_next",
        "_reader",
        "_start",
        "_state",
        "_trailing",
    )

    def __init__(
        self,
        first: bytes | bytearray | memoryview,
        *,
        second_starts: Start = "auto",
        limits: Limits | None = None,
    ) -> None:
        reject_text(first)
        body = bytes(first)
        self._reader = BlockReader(limits)
        self._first = FirstStream(body, limits)
        self._start = _checked(second_starts, len(self._first.events))
        self._lead = bytearray()  # comments and pings of the second stream before its first event
        # Comments and pings after the first stream's last event, which the second stream may omit.
        self._trailing = self._first.trailing()
        # True after it has been determined that the second stream starts at an event boundary.
        self._is_aligned = second_starts != "auto"
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
            return (
                self._compare(bytes(data)) if state is _State.COMPARING else self._join(state, self._reader.feed(data))
            )
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
            left = self._join(state, self._last_blocks()) or self._unfinished()
        except SpliceError as error:
            error.partial = _response_of(self._first.body)
            raise
        self._state = _State.CLOSED
        return left

    def _last_blocks(self) -> Iterator[Block]:
        yield from self._reader.finish()
        last = self._reader.take_unterminated()
        if last is not None:
            yield last

    def _join(self, state: _State, blocks: Iterable[Block]) -> bytes:
        for block in blocks:
            if state is _State.LOCATING:
                self._lead += block.raw
                if block.key is None:
                    self._reject_page(block.raw)
                if self._continues():
                    return self._pass(self._first.body + self._lead)
                if block.key is None:
                    if self._is_aligned and is_text(block.raw):
                        raise _page_fault(TEXT, block.raw)
                    continue
                del self._lead[-len(block.raw) :]
                overlap = self._locate(block)
                self._next = overlap.event
                state = _State.OVERLAPPING
                if overlap.keeps_tail:
                    body = self._first.body
                    return self._pass(body + terminator_of(body) + block.raw)
                if self._next == len(self._first.events):
                    self._check_tail(block)
                    new = [raw for raw in raw_blocks(bytes(self._lead)) if raw != next(self._trailing, None)]
                    return self._pass(self._first.kept + b"".join(new) + block.raw)
            if self._next < len(self._first.events):
                if block.key is not None:
                    self._check(block)
            elif block.key is not None or block.raw != next(self._trailing, None):
                self._check_tail(block)
                return self._pass(self._first.kept + block.raw)
        self._state = state
        return b""

    def _reject_page(self, page: bytes, tail: bytes = b"") -> None:
        """Raise if the gateway sent an error page instead of the second stream.

        `tail`: the bytes of the second stream after its last complete block. If the tail completes an event of the
        first stream, `page` is not an error page.
        """
        found = describe_error_page(page)
        if not found:
            return
        joined = self._first.tail + bytes(self._lead) + tail
        if not is_event(joined if joined.endswith(_BLANK_LINE) else joined + terminator_of(joined)):
            raise _page_fault(found, page)

    def _pass(self, joined: bytes) -> bytes:
        self._state = _State.PASSING
        return joined + self._reader.tail

    def _continues(self) -> bool:
        """Return True if the second stream starts exactly at the byte where the first one ended.

        The result is determined once, at the first non-blank line of the second stream.
        """
        if self._is_aligned:
            if len(self._lead) > _MOST_LEAD:
                self._lead.clear()
            return False
        lead = bytes(self._lead)
        match continuation(self._first, lead):
            case Continuation.YES:
                return True
            case Continuation.LATER:
                return False
            case Continuation.TEXT:
                raise _page_fault(TEXT, lead)
            case Continuation.INSIDE_LINE:
                raise _page_fault("the second stream starts in the middle of a line", lead, "splice_other_stream")
            case Continuation.NO:
                pass
        self._is_aligned = bool(lead.strip(b"\r\n")) or len(lead) >= _LONGEST_BLANK
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
            return locate(self._first, block)
        except SpliceError as fault:
            raise _placed(fault.rule, fault.detail, block) from None

    def _check(self, block: Block) -> None:
        expected = self._first.events[self._next]
        if block.key != expected.key:
            raise _placed("splice_other_stream", "an event that occurs in both streams differs between them", block)
        self._is_identical = self._is_identical and block.raw == expected.raw
        self._next += 1

    def _check_tail(self, block: Block) -> None:
        """Raise SpliceError if the server repeats the incomplete event with a different beginning."""
        first = self._first
        if first.marks is not Marks.NONE or not first.events or self._start != "auto" or not self._is_identical:
            return
        if block.key is not None and not first.is_only_comments_after and first.tail.lstrip(b"\r\n") not in block.raw:
            raise _placed(
                "splice_other_stream", "the incomplete event of the first stream continues differently", block
            )

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
        first, tail, state = self._first, self._reader.tail, self._state
        if state is _State.LOCATING:
            self._reject_page(tail, tail)
        if state is _State.LOCATING and not self._is_aligned:
            second = bytes(self._lead) + tail
            is_inside_line = bool(first.tail) and not first.tail.endswith((b"\r", b"\n"))
            if second and is_inside_line:
                match continuation(first, second + terminator_of(first.tail + second)):
                    case Continuation.YES | Continuation.LATER:
                        return first.body + second
                    case Continuation.TEXT if may_continue(first, second):
                        return first.body + second
                    case Continuation.TEXT:
                        raise _page_fault(TEXT, second)
                    case Continuation.NO | Continuation.INSIDE_LINE:
                        pass
            if _has_data_line(tail) and not first.body.startswith(second) and not second.startswith(first.body):
                raise SpliceError(rule="splice_ambiguous", detail="it contains no event with a payload")
        if state is _State.LOCATING and is_text(bytes(self._lead) + tail):
            raise _page_fault(TEXT, bytes(self._lead) + tail)
        is_next = self._start in ("next_event", len(first.events)) or not first.events
        if state is _State.OVERLAPPING:
            is_next = self._next == len(first.events)
        # If both streams end in the same incomplete event, keep the longer version.
        return first.kept + tail if is_next and tail.startswith(first.tail) else first.kept + first.tail


def _page_fault(detail: str, page: bytes, rule: str = "splice_error_page") -> SpliceError:
    """Return the error for a body that does not continue the event stream."""
    return SpliceError(rule=rule, detail=detail, byte_offset=0, raw=page)


def _response_of(body: bytes) -> Response:
    """Return the response that a truncated body contains."""
    parser = StreamParser(policy="salvage")
    with suppress(StreamError):
        parser.feed(body)
        parser.close()
    return parser.response


def _has_data_line(tail: bytes) -> bool:
    return re.search(rb"(?:\A|[\r\n])data[^\r\n]*[\r\n]", tail) is not None


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
    return body.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def _placed(rule: str, detail: str, block: Block) -> SpliceError:
    return SpliceError(rule=rule, detail=detail, byte_offset=block.offset, raw=block.raw)
