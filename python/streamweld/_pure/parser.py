"""One stream, bytes to events: framer, ladder, detection, decoder, assembler, in this order, and the end of input.

Knows the order of the stages, where every payload stands, and that after a fault nothing more is fed.
Knows no member of a chunk and no rule of a tool call. The twin of `rust/core/src/parser.rs`; same names, same places.
"""

from __future__ import annotations

from _thread import allocate_lock
from typing import TYPE_CHECKING, Any, TypeVar

from streamweld._pure.assemble import Assembler
from streamweld._pure.dialect import detect, seen
from streamweld._pure.dialect.chat import ChatDecoder
from streamweld._pure.json_door import JsonFault, Payload, parse, replace_lone_surrogates
from streamweld._pure.ladder import MARKER, WHITE, Climb, climb, is_foreign
from streamweld._pure.out import Out
from streamweld._pure.sse import Frame, Framer, FramerLimit, Pending, Stray, as_bytes
from streamweld._spec import DIALECTS
from streamweld.errors import ParserBusy, StreamError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld._pure.assemble import Rest
    from streamweld.events import Diagnostic, Event

BODY_HEAD = 512  # bytes of a body that is no event stream

_DECODERS = {"chat": ChatDecoder}
_KEEP_ALIVE: frozenset[str] = frozenset(DIALECTS["chat"]["keepalive_events"])

_T = TypeVar("_T")


class Parser:
    """Bytes of one response in, events out."""

    __slots__ = (
        "_assembler",
        "_closed",
        "_config",
        "_content_type",
        "_decoder",
        "_done",
        "_drops_duplicates",
        "_failed",
        "_framer",
        "_head",
        "_ladder",
        "_lock",
        "_max_depth",
        "_max_events",
        "_max_stream",
        "_ordinal",
        "_out",
        "_previous",
        "_said_after_done",
        "_seen",
        "dialect",
    )

    def __init__(self, dialect: str, config: Mapping[str, Any]) -> None:
        limits: Mapping[str, int | None] = config["limits"]
        self.dialect: str | None = None
        self._config = config
        self._lock = allocate_lock()
        self._out = Out(config)
        self._assembler = Assembler(config, self._out)
        self._framer = Framer(limits, keep_stray=True)
        self._decoder: ChatDecoder | None = None
        self._ladder = config["base"] != "strict"
        self._drops_duplicates: bool = config["switches"]["duplicate_payload"] == "drop"
        self._content_type: str | None = config["content_type"]
        self._max_depth = limits["max_json_depth"]
        self._max_events = limits["max_events"]
        self._max_stream = limits["max_stream_bytes"]
        self._ordinal = 0
        self._head = b""
        self._previous: bytes | None = None
        self._seen = False  # a payload that is more than a heartbeat
        self._done = False
        self._said_after_done = False
        self._closed = False
        self._failed = False
        if dialect != "auto":
            if dialect not in _DECODERS:
                raise UsageError(f"dialect {dialect!r} cannot be read")
            self._speak(dialect)

    # What the caller may do

    def feed(self, data: bytes | bytearray | memoryview) -> list[Event]:
        """Take the next bytes; the events of this call."""
        self._enter()
        try:
            return self._fed(as_bytes(data))
        finally:
            self._lock.release()

    def feed_silent(self, data: bytes | bytearray | memoryview) -> None:
        """The same, for a caller who wants no events."""
        self._enter()
        try:
            self._out.silent = True
            self._fed(as_bytes(data))
        finally:
            self._out.silent = False
            self._lock.release()

    def close(self) -> list[Event]:
        """The input has ended: the last events. After a fault or a second time there is nothing left to say."""
        self._enter()
        try:
            return self._ended()
        finally:
            self._lock.release()

    def close_silent(self) -> None:
        self._enter()
        try:
            self._out.silent = True
            self._ended()
        finally:
            self._out.silent = False
            self._lock.release()

    def snapshot(self) -> tuple[list[Event], str, int]:
        """The events that rebuild the answer so far, how complete it is, and how many diagnostics were not kept."""
        self._enter()
        try:
            if not self._closed and not self._failed:
                completeness = "open"
            else:
                completeness = self._assembler.completeness
                if completeness == "open":
                    completeness = "truncated"
            return self._assembler.snapshot(), completeness, self._out.diagnostics_dropped
        finally:
            self._lock.release()

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """The diagnostics that were kept."""
        return list(self._out.diagnostics)

    # One call

    def _enter(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise ParserBusy("another call into this parser is running")

    def _fed(self, data: bytes) -> list[Event]:
        if self._closed or self._failed:
            raise UsageError("the parser is closed" if self._closed else "the parser has raised; it reads no more")
        return self._guarded(self._read, data)

    def _ended(self) -> list[Event]:
        if self._closed or self._failed:
            self._closed = True
            return []
        self._closed = True
        return self._guarded(self._end, None)

    def _guarded(self, step: Callable[[_T], None], argument: _T) -> list[Event]:
        """Run a step; a fault takes the events with it and is the last thing that happens."""
        out = self._out
        try:
            step(argument)
        except StreamError as fault:
            self._failed = True
            fault.events = out.take()
            raise
        except Exception as bug:
            self._failed = True
            broken = out.fault("InternalError", "internal", type(bug).__name__)
            broken.events = out.take()
            raise broken from bug
        except BaseException:
            # An interrupt leaves the stages half way.
            self._failed = True
            raise
        return out.take()

    # Bytes to payloads

    def _read(self, data: bytes) -> None:
        room = None if self._max_stream is None else self._max_stream - self._framer.total
        over = room is not None and len(data) > room
        if over:
            data = data[:room]
        if not self._seen and len(self._head) < BODY_HEAD:
            self._head += data[: BODY_HEAD - len(self._head)]
        try:
            items = self._framer.feed(data)
        except FramerLimit as hit:
            for item in hit.items:
                self._item(item)
            self._place(hit.offset, self._ordinal)
            raise self._out.limit(hit.limit_name, hit.limit) from None
        for item in items:
            self._item(item)
        if over and self._max_stream is not None:
            self._place(self._max_stream, self._ordinal)
            raise self._out.limit("max_stream_bytes", self._max_stream)

    def _place(self, offset: int, ordinal: int, event: str = "message", data: bytes = b"") -> None:
        """Where everything that is said from here on belongs."""
        out = self._out
        out.offset = offset
        out.ordinal = ordinal
        out.event_type = None if event == "message" else event
        out.payload = data

    def _item(self, item: Frame | Stray) -> None:
        if isinstance(item, Frame):
            self._payload(item.data, item.event, item.offset, stray=False)
        else:
            self._payload(item.data, "message", item.offset, stray=True)

    def _payload(self, data: bytes, event: str, offset: int, *, stray: bool) -> None:
        """One dispatched payload, at its place."""
        out = self._out
        ordinal = self._ordinal
        self._place(offset, ordinal, event, data)
        if self._max_events is not None and ordinal >= self._max_events:
            raise out.limit("max_events", self._max_events)
        self._ordinal = ordinal + 1
        if event in _KEEP_ALIVE:
            return
        text = data.strip(WHITE)
        if not text:
            return
        if self._done:
            self._after_done(text, event)
            return
        if stray and not self._seen and text[:1] == b"<":
            raise self._no_stream(self._head[: offset + len(data)])
        if self._drops_duplicates and text != MARKER:
            if data == self._previous:
                out.diagnose("duplicate_payload")
                return
            self._previous = data
        if self._word(text, stray=stray):
            return
        first, self._seen = not self._seen, True
        try:
            payload = parse(text, self._max_depth)
        except JsonFault as fault:
            self._climb(text, fault, event, stray=stray)
            return
        if "\ufffd" in payload.text:
            self._check_utf8(text)
        self._document(payload, event, stray=stray, first=first)

    def _check_utf8(self, text: bytes) -> None:
        try:
            text.decode()
        except UnicodeDecodeError:
            self._out.diagnose("invalid_utf8")

    def _word(self, text: bytes, *, stray: bool = False) -> bool:
        """A payload that is no document: the marker, null, or a comment."""
        if text == MARKER:
            if stray:
                self._out.diagnose("stray_payload")
            self._finish()
            return True
        if text == b"null":
            self._out.diagnose("null_payload")
            return True
        if text[:1] == b":":
            self._check_utf8(text)
            self._out.diagnose("comment_as_data")
            return True
        return False

    def _climb(self, text: bytes, fault: JsonFault, event: str, *, stray: bool) -> None:
        """The payload is not JSON as it stands."""
        out = self._out
        self._check_utf8(text)
        if fault.reason == "too_deep" and self._max_depth is not None:
            raise out.limit("max_json_depth", self._max_depth)
        found = climb(text, self._max_depth, ChatDecoder.is_of_use) if self._ladder else None
        if event == "error" and (found is None or found.rung == "none"):
            self._complain(text)
            return
        if found is None or found.rung == "none":
            if out.action("malformed_json") == "raise":
                raise out.fault("ChunkDecodeError", "malformed_json", pos=fault.pos + _leading(out.payload))
            out.diagnose("malformed_json")
            return
        if stray:
            out.diagnose("stray_payload")
        if found.rung == "text":
            self._complain(text)
            return
        self._climbed(found, event)

    def _climbed(self, found: Climb, event: str) -> None:
        if found.rung == "json_lines":
            documents = sum(line != MARKER and line[:1] in (b"{", b"[") for line in found.lines)
            self._out.diagnose("json_lines", detail=str(documents))
            for line in found.lines:
                if self._done:
                    self._after_done(line, event)
                elif not self._word(line):
                    self._document(parse(line, self._max_depth), event)
            return
        self._out.diagnose(found.rung)
        for payload in found.documents:
            self._document(payload, event, recovered=found.rung == "recovered_tail")

    def _document(
        self,
        payload: Payload,
        event: str,
        *,
        stray: bool = False,
        first: bool = False,
        recovered: bool = False,
    ) -> None:
        """One JSON document, to its dialect's decoder."""
        if stray and first and ChatDecoder.is_complaint(payload.value):
            event = "error"
        decoder = self._decoder
        if decoder is None:
            decoder = self._detected(payload, event)
        whole = False
        if stray:
            whole = first and decoder.is_body(payload.value)
            self._out.diagnose("body_not_streamed" if whole else "stray_payload")
        decoder.decode(payload, event, recovered=recovered)
        if whole and not self._done:
            self._finish()

    def _after_done(self, text: bytes, event: str) -> None:
        """What comes behind the terminal marker is not processed. A note without any choice is no anomaly."""
        if text == MARKER or text[:1] == b":":
            return
        if _is_note(text, self._max_depth):
            self._assembler.unknown(None if event == "message" else event, text.decode("utf-8", "replace").encode())
        elif not self._said_after_done:
            self._said_after_done = True
            self._out.diagnose("data_after_done")

    def _finish(self) -> None:
        """The terminal marker, or what stands for it."""
        self._done = self._seen = True
        if self._decoder is not None:
            self._decoder.flush()
        self._assembler.done()

    # Which decoder

    def _detected(self, payload: Payload, event: str) -> ChatDecoder:
        dialect = detect(payload.value, event)
        if dialect not in _DECODERS:
            names = [replace_lone_surrogates(name) for name in seen(payload.value, payload.text)]
            raise self._out.fault("UnknownDialect", "unknown_dialect", dialect or "", seen=tuple(names))
        return self._speak(dialect)

    def _complain(self, text: bytes) -> None:
        """An error in plain words; before any dialect was seen it tells none."""
        decoder = self._decoder or ChatDecoder(self._config, self._assembler, self._out)
        decoder.text(text.decode("utf-8", "replace"))

    def _speak(self, dialect: str) -> ChatDecoder:
        self.dialect = dialect
        self._decoder = _DECODERS[dialect](self._config, self._assembler, self._out)
        return self._decoder

    # The end of input

    def _end(self, _: None) -> None:
        pending = self._framer.finish()
        rest: Rest = "nothing" if pending is None else self._last(pending)
        begun = pending is not None and bool(pending.data or pending.stray)
        if not self._seen and not begun and is_foreign(self._head):
            raise self._no_stream(self._head)
        self._place(self._framer.total, self._ordinal)
        if self._decoder is not None:
            self._decoder.flush()
        self._assembler.end("empty" if not self._seen and rest == "nothing" else rest)

    def _last(self, pending: Pending) -> Rest:
        """What the input ends inside of. An unfinished event that is whole is used, and leaves nothing."""
        cut = pending.open and not pending.data and not pending.stray
        if pending.data and not self._used(pending.data, pending.event, pending.offset, stray=False):
            cut = True
        if pending.stray and not self._used(pending.stray, "message", pending.stray_offset, stray=True):
            cut = True
        if not cut:
            return "nothing"
        return "mid_utf8" if pending.mid_utf8 else "mid_event"

    def _used(self, data: bytes, event: str, offset: int, *, stray: bool) -> bool:
        """Whether an unfinished event says something whole, or nothing at all."""
        text = data.strip(WHITE)
        if not text or text[:1] == b":" or event in _KEEP_ALIVE:
            return True
        if stray and text[:1] == b"<" and not self._seen:
            raise self._no_stream(self._head)
        if text != MARKER and not self._done and not self._is_whole(text):
            return False
        if not stray and not self._done:
            self._place(offset, self._ordinal, event, data)
            self._out.diagnose("unterminated_event")
        self._payload(data, event, offset, stray=stray)
        return True

    def _is_whole(self, text: bytes) -> bool:
        """Whether an unfinished event can be read as it is; a broken one is a cut one."""
        if text[:1] not in (b"{", b"["):
            return False
        try:
            parse(text, self._max_depth)
        except JsonFault as fault:
            # Too deep is too deep, whole or not.
            if fault.reason == "too_deep":
                return True
            return self._ladder and climb(text, self._max_depth, ChatDecoder.is_of_use, finished=False).rung != "none"
        return True

    def _no_stream(self, head: bytes) -> StreamError:
        """There is a body, but it is something else; it is told from its beginning."""
        self._place(0, 0)
        return self._out.fault(
            "NotAnEventStream", "not_an_event_stream", body_head=head, content_type=self._content_type, raw=head
        )


def _is_note(text: bytes, max_depth: int | None) -> bool:
    """A document that says nothing of any choice: some gateways send the price behind the terminal marker."""
    if text[:1] != b"{":
        return False
    try:
        return ChatDecoder.is_note(parse(text, max_depth).value)
    except JsonFault:
        return False


def _leading(data: bytes) -> int:
    """How many bytes of white space stand before a payload."""
    return len(data) - len(data.lstrip(WHITE))
