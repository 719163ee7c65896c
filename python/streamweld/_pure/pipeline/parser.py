"""Parse one stream from bytes to events: framer or array splitter, payload pipeline, decoder, assembler, end of input.

Calls the stages in this order, enforces the limit on the bytes of the stream, and stops after a fault. Contains no
rules about payloads or tool calls. This module is the twin of `rust/core/src/pipeline/parser.rs`, with the same names
in the same order.
"""

from __future__ import annotations

from _thread import allocate_lock
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from streamweld._pure.assemble import Assembler, InputEnd
from streamweld._pure.model.output import Output
from streamweld._pure.pipeline.array_body import ArrayBody, ElementTooLong
from streamweld._pure.pipeline.detect import DECODERS
from streamweld._pure.pipeline.end_of_stream import Ending
from streamweld._pure.pipeline.payload_pipeline import BODY_HEAD, HEAD, PayloadPipeline
from streamweld._pure.pipeline.salvage import is_foreign
from streamweld._pure.sse.framer import Frame, Framer, FramerLimit, Stray, as_bytes
from streamweld._pure.text_calls.stage import StagedOutput, TextCallStage
from streamweld.errors import ParserBusy, StreamError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld._pure.assemble import UnfinishedInput
    from streamweld.events import Diagnostic, Event

_T = TypeVar("_T")


class Parser:
    """Parser of one stream."""

    __slots__ = (
        "_array",
        "_assembler",
        "_closed",
        "_failed",
        "_framer",
        "_limits",
        "_lock",
        "_max_stream",
        "_out",
        "_stage",
        "_text_calls",
        "_total",
    )

    def __init__(self, dialect: str, config: Mapping[str, Any]) -> None:
        self._limits: Mapping[str, int | None] = config["limits"]
        limits = self._limits
        self._lock = allocate_lock()
        staged = None if config["text_calls"] is None else StagedOutput(config)
        self._out: Output = Output(config) if staged is None else staged
        self._assembler = Assembler(config, self._out)
        self._text_calls = None if staged is None else TextCallStage(config, staged, self._assembler.shared)
        if staged is not None:
            staged.stage = self._text_calls
        self._stage = PayloadPipeline(config, self._assembler, self._out)
        self._framer = Framer(limits, keep_stray=True)
        self._array = ArrayBody(limits["max_event_bytes"])
        self._max_stream = limits["max_stream_bytes"]
        self._total = 0  # bytes read
        self._closed = False
        self._failed = False
        if dialect != "auto":
            if dialect not in DECODERS:
                raise UsageError(f"dialect {dialect!r} cannot be read")
            self._stage.set_specified_dialect(dialect)

    @property
    def out(self) -> Output:
        """The event output. A converter attaches its sink to this output and reports losses through it."""
        return self._out

    @property
    def completeness(self) -> Literal["complete", "assumed", "truncated"]:
        """The completeness of the stream once it has ended."""
        found = self._assembler.completeness
        return "truncated" if found == "open" else found

    @property
    def is_cut(self) -> bool:
        """Whether the response was truncated. If it was truncated, the events of the current method call close all open
        parts.
        """
        return self._assembler.completeness == "truncated"

    @property
    def has_pending(self) -> bool:
        """Whether consumed input has not produced all of its events yet.

        True if the dialect is undetected, text is held back, or a call is in progress.
        """
        if self._text_calls is not None and self._text_calls.has_pending:
            return True
        return self._stage.waits or self._assembler.has_pending

    @property
    def assumed_ends(self) -> list[Event]:
        """The `Finished` events of choices without a finish reason, for targets that require a finish reason.

        Used for a response that is assumed to be complete.
        """
        return self._assembler.assumed_ends()

    @property
    def payloads(self) -> int:
        """Number of payloads dispatched."""
        return self._stage.ordinal

    @property
    def reads_array(self) -> bool:
        """Whether the body is one JSON array."""
        return self._stage.is_array

    @property
    def is_body_undecided(self) -> bool:
        """Whether more input is needed to decide if the body is one JSON array."""
        return self._array.is_one is None

    @property
    def has_ended(self) -> bool:
        """Whether the dialect's terminal marker was read, even if the response is incomplete."""
        return self._stage.done

    @property
    def is_done(self) -> bool:
        """Whether the response is complete, regardless of any input that follows."""
        return self._assembler.completeness == "complete"

    @property
    def dialect(self) -> str | None:
        """The dialect of the stream; None until it is detected."""
        return self._stage.dialect

    # Public methods

    def feed(self, data: bytes | bytearray | memoryview) -> list[Event]:
        """Feed the next bytes and return the events from this call."""
        self._enter()
        try:
            return self._fed(as_bytes(data))
        finally:
            self._lock.release()

    def feed_silent(self, data: bytes | bytearray | memoryview) -> None:
        """Feed the next bytes without returning events."""
        self._enter()
        try:
            self._out.silent = self._text_calls is None  # the text-call stage needs the events
            self._fed(as_bytes(data))
        finally:
            self._out.silent = False
            self._lock.release()

    def close(self, broken: bool = False) -> list[Event]:
        """End the input and return the last events. Returns no events after a fault or on a second call.

        `broken`: the transport failed.
        """
        self._enter()
        try:
            return self._ended(broken=broken)
        finally:
            self._lock.release()

    def exceed(self, name: str, last: list[bytes]) -> None:
        """Raise the fault for a limit that only the caller can measure.

        `last` contains the last pieces before the limit was exceeded. The pieces must not complete a payload. They are
        removed from the list one by one, and not stored.
        """
        self._enter()
        try:
            if not (self._closed or self._failed):
                self._guarded(partial(self._excess, name), last)
        finally:
            self._closed = True
            self._lock.release()

    def close_silent(self, broken: bool = False) -> None:
        """End the input without returning events."""
        self._enter()
        try:
            self._out.silent = self._text_calls is None
            self._ended(broken=broken)
        finally:
            self._out.silent = False
            self._lock.release()

    def snapshot(self) -> tuple[list[Event], str, int]:
        """Return the response so far as events, its completeness, and the number of dropped diagnostics."""
        self._enter()
        try:
            over = self._closed or self._failed
            completeness: str = self.completeness if over else self._assembler.completeness
            events = self._assembler.snapshot()
            if self._text_calls is not None:
                events = self._text_calls.shown(events)
            return events, completeness, self._out.diagnostics_dropped
        finally:
            self._lock.release()

    def fold(self, _choice: object, /) -> None:
        """Return None: this backend has no folded response, so the caller builds one from `snapshot`."""

    def shown_arguments(self, part: int) -> str | None:
        """Return the arguments emitted so far for the call with part number `part`.

        Returns None if there is no such call.
        """
        self._enter()
        try:
            return self._assembler.shown_arguments(part)
        finally:
            self._lock.release()

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """The recorded diagnostics."""
        return list(self._out.diagnostics)

    # Locking and error handling for one method call

    def _enter(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise ParserBusy("another call into this parser is running: one stream, one call at a time")

    def _fed(self, data: bytes) -> list[Event]:
        if self._closed or self._failed:
            raise UsageError("the parser accepts no input after close() or an exception")
        return self._guarded(self._read, data)

    def _ended(self, *, broken: bool) -> list[Event]:
        if self._closed or self._failed:
            self._closed = True
            return []
        self._closed = True
        return self._guarded(self._end, InputEnd.BROKEN if broken else InputEnd.CLEAN)

    def _guarded(self, step: Callable[[_T], None], argument: _T) -> list[Event]:
        """Run a step and return its events. After a fault, the exception contains the events that the step emitted, and
        the stream ends.
        """
        out = self._out
        try:
            step(argument)
        except StreamError as fault:
            self._failed = True
            self._release_text()
            fault.events = out.take()
            raise
        except Exception as bug:
            self._failed = True
            broken = out.fault("InternalError", "internal", type(bug).__name__)
            broken.events = out.take()
            raise broken from bug
        except BaseException:
            # An interrupt leaves the stages in an inconsistent state.
            self._failed = True
            raise
        return out.take()

    def _release_text(self) -> None:
        """Release text that the text-call stage holds, because no more input will be read."""
        if self._text_calls is not None:
            self._out.faulted = True
            self._text_calls.end()
            self._out.end_payload()

    # From bytes to payloads

    def _read(self, data: bytes) -> None:
        room = None if self._max_stream is None else self._max_stream - self._total
        over = room is not None and len(data) > room
        if over:
            data = data[:room]
        self._total += len(data)
        stage = self._stage
        if stage.keeps_head and len(stage.head) < HEAD:
            stage.head += data[: HEAD - len(stage.head)]
        if self._array.is_one is None:
            known = self._array.decide(data)
            stage.is_array = bool(self._array.is_one)
            if known is not None:
                self._take(known)
        else:
            self._take(data)
        if over and self._max_stream is not None:
            stage.set_position(self._max_stream, stage.ordinal)
            raise self._out.limit("max_stream_bytes", self._max_stream)

    def _take(self, data: bytes) -> None:
        if self._array.is_one:
            self._elements(data)
            return
        try:
            items = self._framer.feed(data)
        except FramerLimit as hit:
            for item in hit.items:
                self._item(item)
            # A comment cannot exceed a limit, so the line that exceeded it is not a comment.
            self._stage.reject_joined_head(hit.offset, is_open=False, end=hit.offset + hit.limit)
            self._stage.set_position(hit.offset, self._stage.ordinal)
            raise self._out.limit(hit.limit_name, hit.limit) from None
        for item in items:
            self._item(item)

    def _item(self, item: Frame | Stray) -> None:
        if isinstance(item, Frame):
            if item.is_joined:
                self._stage.report_joined_frame(item.data, item.event, item.offset)
            self._stage.payload(item.data, item.event, item.offset, stray=False)
        else:
            self._stage.is_framed = self._stage.is_framed or item.has_data_lines
            self._stage.payload(item.data, "message", item.offset, stray=True)

    def _elements(self, data: bytes) -> None:
        try:
            for element, offset in self._array.feed(data):
                self._stage.payload(element, "message", offset, stray=False)
                self._out.element()
        except ElementTooLong as hit:
            self._stage.set_position(hit.offset, self._stage.ordinal)
            raise self._out.limit("max_event_bytes", hit.limit) from None

    # End of the input

    def _excess(self, name: str, last: list[bytes]) -> None:
        last.reverse()
        while last:
            self._read(last.pop())
            self._framer.forget()
        self._stage.set_position(self._total, self._stage.ordinal)
        raise self._out.limit(name, self._limits[name] or 0)

    def _end(self, how: InputEnd) -> None:
        stage, ending = self._stage, Ending(self._stage, self._out)
        if self._array.is_one is None:
            self._take(self._array.held)  # the body is too short to be anything except an event stream
        if self._array.is_one:
            unfinished: UnfinishedInput = ending.of_array(self._array)
            if self._array.closed:
                how = InputEnd.CLEAN  # a closed array is complete, even if the transport failed afterwards
        else:
            pending = self._framer.finish()
            unfinished = "nothing" if pending is None else ending.of_events(pending)
            open_line = None if pending is None else pending.open_line
            stage.reject_joined_head(0, is_open=open_line is not None and open_line < len(stage.head))
            begun = pending is not None and bool(pending.data or pending.stray)
            if not stage.seen and not begun and is_foreign(stage.head[:BODY_HEAD]):
                raise stage.no_stream(stage.head)
        stage.set_position(self._total, stage.ordinal)
        try:
            stage.finish(unfinished, how)
            self._assembler.end("empty" if not stage.seen and unfinished == "nothing" else unfinished, how)
            if self._text_calls is not None:
                self._text_calls.end()
        finally:
            self._out.end_payload()
