"""Classify payloads one at a time and pass each to the decoder. Runs after the framer and before the decoder.

Checks each payload in a fixed order (keep-alive, end, duplicate, marker or null, JSON, salvage), and adds the payload's
place to events and faults. Contains no rules about calls or about the members of a document. This module is the twin of
`rust/core/src/pipeline/payload_pipeline.rs`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from streamweld._pure.assemble import InputEnd
from streamweld._pure.dialect import detect
from streamweld._pure.dialect.chat import ChatDecoder
from streamweld._pure.dialect.upstream_error import is_blank_error, is_message, is_notice
from streamweld._pure.json.automaton import MAX_DEPTH
from streamweld._pure.json.kinds import is_object
from streamweld._pure.json.scanner import JsonFault, Payload, parse
from streamweld._pure.model.output import RAW_HEAD
from streamweld._pure.pipeline.detect import (
    DECODERS,
    KEEP_ALIVE,
    MARKER_IS_JSON,
    WALKED,
    WRAPPED_NAMES,
    DialectWatch,
    HeldPayload,
    UndetectedPayloads,
)
from streamweld._pure.pipeline.nested_event import nested_event
from streamweld._pure.pipeline.salvage import (
    MARKER,
    MOST_JOINS,
    WHITE,
    Salvaged,
    count_documents,
    has_joined_lines,
    joined_field,
    salvage,
    split_joined_line,
    whole_lines,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble import Assembler, UnfinishedInput
    from streamweld._pure.model.output import Output
    from streamweld._pure.pipeline.detect import Decoder
    from streamweld._pure.pipeline.salvage import Caps
    from streamweld.errors import StreamError

__all__ = ["BODY_HEAD", "HEAD", "PayloadPipeline"]

# Number of body bytes that are kept until the first payload. The number is this large because a gateway may send many
# comments first.
HEAD = 4096
BODY_HEAD = 512  # number of body bytes that a fault shows if the body is not an event stream


@dataclass(frozen=True, slots=True)
class _LastMessage:
    """A payload with its place. If no other payload ends the response, this payload is decoded as an error."""

    payload: Payload
    offset: int
    ordinal: int
    data: bytes


@dataclass(frozen=True, slots=True)
class _SalvagedText:
    """The place of a text within the payload from which it is salvaged, and what preceded the text."""

    event: str
    first: bool  # no payload with content preceded this one
    start: int = 0  # offset of the text in the trimmed text of the payload
    joins: int = 0  # number of line endings that were missing before the text


class PayloadPipeline:
    """State of a stream between the framer and the decoder."""

    __slots__ = (
        "_assembler",
        "_config",
        "_content_type",
        "_drops_duplicates",
        "_last_message",
        "_lines",
        "_max_depth",
        "_max_events",
        "_max_values",
        "_out",
        "_previous",
        "_reported_after_done",
        "_undecided",
        "_waiting",
        "_watch",
        "decoder",
        "dialect",
        "done",
        "head",
        "is_array",
        "is_framed",
        "salvages",
        "ordinal",
        "seen",
    )

    def __init__(self, config: Mapping[str, Any], assembler: Assembler, out: Output) -> None:
        limits: Mapping[str, int | None] = config["limits"]
        self._config = config
        self._assembler = assembler
        self._out = out
        self._content_type: str | None = config["content_type"]
        self._drops_duplicates: bool = config["switches"]["duplicate_payload"] == "drop"
        depth = limits["max_json_depth"]
        self._max_depth = MAX_DEPTH if depth is None else min(depth, MAX_DEPTH)  # the limit can only be lowered
        self._max_values = limits["max_json_values"]
        self._max_events = limits["max_events"]
        self.salvages = config["base"] != "strict"
        self.dialect: str | None = None
        self.decoder: Decoder | None = None
        self._waiting: UndetectedPayloads | None = UndetectedPayloads()
        self._watch: DialectWatch | None = None
        self._undecided: HeldPayload | None = None  # may be the complete response or the first of several lines
        self._last_message: _LastMessage | None = None
        self._previous: bytes | None = None
        self.ordinal = 0
        self.head = b""  # the first bytes of the body, kept until the first payload
        self.seen = False  # a payload other than a keep-alive was seen
        self.done = False
        self._reported_after_done = False
        self._lines = False  # each document is on its own line, without `data:`
        self.is_framed = False  # data arrived in a `data:` line
        self.is_array = False  # the body is one JSON array

    def set_specified_dialect(self, dialect: str) -> None:
        """Set the dialect that the caller specified."""
        self.set_dialect(dialect)
        self._watch = DialectWatch(dialect)

    def set_dialect(self, dialect: str) -> None:
        """Set the dialect of the stream."""
        self.dialect = dialect
        self.decoder = DECODERS[dialect](self._config, self._assembler, self._out)
        self._assembler.set_dialect(dialect)

    @property
    def caps(self) -> Caps:
        """The JSON limits of one payload."""
        return self._max_depth, self._max_values, WALKED.get(self.dialect or "chat")

    @property
    def waits(self) -> bool:
        """Whether a payload is held until a later payload determines how to interpret it."""
        return self._undecided is not None or (self.decoder is None and self.ordinal > 0)

    def set_position(self, offset: int, ordinal: int, event: str = "message", data: bytes = b"") -> None:
        """Set the place that later events, diagnostics and faults refer to."""
        out = self._out
        out.offset = offset
        out.ordinal = ordinal
        out.event_type = None if event == "message" else event
        out.payload = data

    def is_keep_alive(self, event: str) -> bool:
        """Return True if the event name marks a keep-alive in this dialect or, before detection, in all dialects."""
        if self.dialect is not None:
            return event in KEEP_ALIVE[self.dialect]
        return all(event in names for names in KEEP_ALIVE.values())

    def _is_ignored(self, text: bytes, event: str) -> bool:
        """Return True if the payload is empty or a keep-alive, and is therefore ignored.

        If clients would parse the data of the payload and raise an exception, the payload is also marked so that repair
        omits it.
        """
        if not text:
            self._out.leave_out("empty_event")  # openai-python and the AI SDK parse empty data as JSON
            return True
        is_keep_alive = self.is_keep_alive(event)
        if is_keep_alive and self._is_keep_alive_read(event):
            self._out.leave_out("keep_alive")
        return is_keep_alive

    def _is_keep_alive_read(self, event: str) -> bool:
        """Return True if clients would parse the data of a keep-alive as a payload and raise an exception.

        Clients of Messages expect `ping`. In Responses, a `keepalive` after the first event passes through, because
        OpenAI counts it in the sequence numbers; openai-node raises an exception for all other keep-alives.
        """
        match self.dialect:
            case "chat":
                return True
            case "responses":
                return not self.seen or event != "keepalive"
            case _:
                return event != "ping"

    # One payload

    def payload(self, data: bytes, event: str, offset: int, *, stray: bool) -> None:
        """Process one dispatched payload at its place."""
        ordinal = self.ordinal
        self.set_position(offset, ordinal, event, data)
        if self._max_events is not None and ordinal >= self._max_events:
            raise self._out.limit("max_events", self._max_events)
        self.ordinal = ordinal + 1
        self.is_framed = self.is_framed or not (stray or self.is_array)
        nested = None if stray or self.is_array else nested_event(data)
        if nested is not None:
            self._out.diagnose("comment_as_data" if nested.data is None else "fields_in_data")
            if nested.data is None:
                return
            data = nested.data
            event = event if nested.event is None else nested.event.decode("utf-8", "replace")
            self.set_position(offset, ordinal, event, data)
        waiting = self._waiting if self.decoder is None else None
        if waiting is not None and self._waits(waiting, HeldPayload(data, event, offset, ordinal, stray)):
            return
        self._read(data, event, offset, stray=stray)

    def _waits(self, waiting: UndetectedPayloads, one: HeldPayload) -> bool:
        """Return True if the payload needs no further processing: it was held, ignored, or decoded as an error.

        If the payload identifies the dialect, the held payloads are dispatched first.
        """
        text = one.data.strip(WHITE)
        if self._is_ignored(text, one.event):
            return True
        if self.done:
            return False  # the marker ends the stream in every dialect; the caller reports later data
        if text == MARKER or (one.stray and not self.seen and text[:1] == b"<"):
            if text == MARKER and waiting.held and not self._read_held(waiting):
                raise self._unknown_dialect(waiting)
            self.set_position(one.offset, one.ordinal, one.event, one.data)
            return False
        payload = self._document_of(text)
        if payload is None:
            # Detection cannot use plain text or data that is still to be salvaged, so the held payloads stay held.
            return False
        event = "error" if self._is_error_body(payload, stray=one.stray) else one.event
        dialect = waiting.identifies(payload.value, event)
        alone = dialect is None and self._is_alone(waiting, payload)
        if alone:
            dialect = waiting.identifies(payload.value, "error")
        if dialect is None:
            self.seen = True
            if waiting.hold(one, payload):
                return True
            waiting.note(payload)
            raise self._unknown_dialect(waiting, at=one)
        self.set_dialect(dialect)
        self._release(waiting)
        self.set_position(one.offset, one.ordinal, one.event, one.data)
        if alone:
            self._read(one.data, "error", one.offset, stray=one.stray)
        return alone

    @property
    def keeps_head(self) -> bool:
        """Whether an error message may still have to quote the first bytes of the body.

        The result is true until the first payload that is not a keep-alive. Held payloads do not count, because once
        the dialect is detected they may turn out to be keep-alives.
        """
        return not self.seen or (self._waiting is not None and bool(self._waiting.held))

    def _release(self, waiting: UndetectedPayloads) -> None:
        """Dispatch the held payloads, each at its original place, once the dialect is detected."""
        self._waiting = None
        if waiting.held:
            self.seen = False
        for held in waiting.held:
            self.set_position(held.offset, held.ordinal, held.event, held.data)
            self._read(held.data, held.event, held.offset, stray=held.stray)

    def _document_of(self, text: bytes) -> Payload | None:
        try:
            return parse(text, *self.caps)
        except JsonFault:
            return None

    def _read(self, data: bytes, event: str, offset: int, *, stray: bool) -> None:
        try:
            self._take(data, event, offset, stray=stray)
        finally:
            self._out.end_payload()

    def _take(self, data: bytes, event: str, offset: int, *, stray: bool) -> None:
        out = self._out
        text = data.strip(WHITE)
        if self._is_ignored(text, event):
            return
        if self._undecided is not None:
            self._report_json_lines(self._undecided)
        if text == MARKER and self.dialect is not None:
            self._check_marker(MARKER_IS_JSON[self.dialect], event)
        if self.done:
            self._after_done(text, event)
            return
        if stray and not self.seen and text[:1] == b"<":
            raise self.no_stream(self.head[: offset + len(data)])
        if self._drops_duplicates and text != MARKER:
            if data == self._previous:
                out.diagnose("duplicate_payload")
                return
            self._previous = data
        if self._word(text, stray=stray):
            return
        first, self.seen = not self.seen, True
        self._last_message = None
        try:
            payload = parse(text, *self.caps)
        except JsonFault as fault:
            self._salvage(text, fault, _SalvagedText(event, first=first), stray=stray)
            return
        if "\ufffd" in payload.text:
            self._check_utf8(text)
        self._document(payload, event, stray=stray, first=first)
        self._watch_dialect(event, payload)

    def _watch_dialect(self, event: str, payload: Payload) -> None:
        """Check whether the payload belongs to a dialect other than the specified one.

        The check ends with the first payload that produces content, because the stream is then in the specified
        dialect.
        """
        if self._watch is not None and self._assembler.is_blank:
            self._watch.look(self._here(event), payload)
        else:
            self._watch = None

    def _check_utf8(self, text: bytes) -> None:
        try:
            text.decode()
        except UnicodeDecodeError:
            self._out.diagnose("invalid_utf8")

    def _word(self, text: bytes, *, stray: bool = False) -> bool:
        """Handle a payload that is not a document: the marker, null or a comment. Returns False for other payloads."""
        if text == MARKER:
            if stray and not self._in_lines():
                self._out.diagnose("stray_payload")
            self._marker()
            return True
        if text == b"null":
            self._out.diagnose("null_payload")
            return True
        if text[:1] == b":":
            self._check_utf8(text)
            self._out.diagnose("comment_as_data")
            return True
        return False

    def _marker(self) -> None:
        decoder = self.decoder
        if decoder is None:
            self.seen = self.done = True
            self._assembler.done()
            return
        self.seen = True
        self._report_other_dialect()
        self._end_with_message(decoder)
        decoder.marker()
        self.done = decoder.ended

    def _salvage(self, text: bytes, fault: JsonFault, here: _SalvagedText, *, stray: bool) -> None:
        """Handle a payload that is not valid JSON."""
        self._check_utf8(text)
        self._salvage_from(text, fault, here, stray=stray)

    def _salvage_from(self, text: bytes, fault: JsonFault, here: _SalvagedText, *, stray: bool = False) -> None:
        """Salvage a payload, or the part of it that begins at `here.start`."""
        out, event = self._out, here.event
        joined = joined_field(text, self._max_depth)
        if joined is not None:
            if stray:
                out.diagnose("stray_payload")
            self._joined_line(text, joined, here)
            return
        if fault.reason == "too_deep":
            raise out.limit("max_json_depth", self._max_depth)
        if fault.reason == "too_many" and self._max_values is not None:
            raise out.limit("max_json_values", self._max_values)
        found = salvage(text, self.caps, self.has_usable_data) if self.salvages else None
        if event == "error" and (found is None or found.kind == "none"):
            self._text_error(text)
            return
        if found is None or found.kind == "none":
            if out.action("malformed_json") == "raise":
                pos = fault.pos + here.start + _leading(out.payload)
                raise out.fault("ChunkDecodeError", "malformed_json", pos=pos)
            out.diagnose("malformed_json")
            return
        if stray:
            out.diagnose("stray_payload")
        if found.kind == "text":
            self._text_error(text)
            return
        self._apply_salvaged(found, event)
        if found.remainder is not None:
            self._salvage_remainder(text[found.remainder :], replace(here, start=here.start + found.remainder))

    def _salvage_remainder(self, text: bytes, here: _SalvagedText) -> None:
        """Handle the text after a payload's complete lines: a document on several lines, or a broken document."""
        here = replace(here, start=here.start + _leading(text))
        text = text.strip(WHITE)
        if not text:
            return  # only other fields followed the document
        if self.done:
            self._after_done(text, here.event)
            return
        if self._word(text):
            return
        try:
            payload = parse(text, *self.caps)
        except JsonFault as fault:
            self._salvage_from(text, fault, here)
            return
        self._document(payload, here.event)

    def _joined_line(self, text: bytes, at: int, here: _SalvagedText) -> None:
        """Handle a line that contains a document and other fields.

        Before the first complete payload, such a line means that the caller removed the line endings, unless the
        document reports an error, to which some relays append the terminal marker. In all other cases, a single line
        ending is missing, directly after the document.
        """
        event = self._error_event(text[:at], here.event) if here.first else here.event
        if event is None or here.joins == MOST_JOINS:
            raise self._joined_fault(at + here.start)
        out = self._out
        out.diagnose("fields_on_one_line", detail=f"position {at + here.start + _leading(out.payload)}")
        joined = split_joined_line(text, at)
        if not self._word(joined.document):
            try:
                payload = parse(joined.document, *self.caps)
            except JsonFault as fault:
                self._salvage_from(joined.document, fault, here)
            else:
                self._document(payload, event)
        event = here.event if joined.event is None else joined.event.decode("utf-8", "replace")
        rest = _SalvagedText(event, first=False, start=here.start + joined.remainder, joins=here.joins + 1)
        self._salvage_remainder(text[joined.remainder :], rest)

    def _error_event(self, document: bytes, event: str) -> str | None:
        """Return the event name for decoding a document that reports an error, or None for any other document.

        `event`: the name of the event that contains the document.
        """
        payload = self._document_of(document.strip(WHITE))
        value = None if payload is None else payload.value
        if (self.decoder or ChatDecoder).is_error_body(value):
            return "error"
        is_error = is_object(value) and (value.get("type") == "error" or not is_blank_error(value.get("error")))
        return event if is_error else None

    def report_joined_frame(self, data: bytes, event: str, offset: int) -> None:
        """Report a frame whose data begins on the line of another field."""
        if self.done:
            return  # reported as data after the end
        self.set_position(offset, self.ordinal, event, data)
        if not self.seen:
            raise self._out.fault("FramingError", "line_ends_missing")
        self._out.diagnose("fields_on_one_line")

    def _apply_salvaged(self, found: Salvaged, event: str) -> None:
        if found.kind == "json_lines":
            self._out.diagnose("json_lines", detail=str(count_documents(found.lines)))
            for line in whole_lines(found.lines):
                if self.done:
                    self._after_done(line, event)
                elif not self._word(line):
                    self._document(parse(line, *self.caps), event)
            return
        self._out.diagnose(found.kind)
        for payload in found.documents:
            self._document(payload, event, recovered=found.kind == "recovered_tail")

    def has_usable_data(self, value: object) -> bool:
        """Return True if a document after a broken document contains usable data."""
        if self.decoder is not None:
            return self.decoder.has_usable_data(value)
        return any(decoder.has_usable_data(value) for decoder in DECODERS.values())

    def _document(
        self, payload: Payload, event: str, *, stray: bool = False, first: bool = False, recovered: bool = False
    ) -> None:
        """Pass one document to the decoder of its dialect, and report how the document was framed."""
        if first and self._is_error_body(payload, stray=stray):
            event = "error"
        decoder = self.decoder
        if decoder is None:
            decoder = self._detected(payload, event)
        if event.startswith(WRAPPED_NAMES.get(self.dialect or "", ())):
            self._out.mark_misread("event_name")  # clients misread an event with this name
        whole = False
        if self.is_array:
            if first:
                self._out.diagnose("array_body")
        elif stray:
            whole = self._outside(payload, event, decoder, first=first)
        self._assembler.unknown_size = 0
        self._assembler.begin_document()
        decoder.decode(payload, event, recovered=recovered)
        self.done = self.done or decoder.ended
        is_unknown = self._assembler.unknown_size == len(payload.text.encode())
        if is_unknown and not is_notice(event) and is_message(payload.value) and detect(payload.value, event) is None:
            out = self._out
            self._last_message = _LastMessage(payload, out.offset, out.ordinal, out.payload)
        if whole and not self.done:
            self.seen = self.done = True
            decoder.flush()
            self._assembler.done()

    def _outside(self, payload: Payload, event: str, decoder: Decoder, *, first: bool) -> bool:
        """Report how a document outside any data line was framed. Returns True if it is the complete response."""
        whole = first and decoder.is_body(payload.value)
        if first and not self.is_framed and b"\n" not in self._out.payload:
            if whole and decoder.may_be_json_line(payload.value):
                here = self._here(event)
                self._undecided = replace(here, data=here.data[:RAW_HEAD])  # a fault does not show more of the payload
                return False
            if not whole:
                self._lines = True
                self._out.diagnose("json_lines_body")
                return False
        if self._in_lines():
            self._out.mend()  # reported once, at the first line
        else:
            self._out.diagnose("body_not_streamed" if whole else "stray_payload")
        return whole

    def _here(self, event: str) -> HeldPayload:
        out = self._out
        return HeldPayload(out.payload, event, out.offset, out.ordinal, stray=False)

    def _report_at(self, one: HeldPayload, code: str) -> None:
        """Report a diagnostic about an earlier payload, at that payload's place."""
        out = self._out
        here = out.offset, out.ordinal, out.event_type or "message", out.payload
        self.set_position(one.offset, one.ordinal, one.event, one.data)
        out.diagnose(code)
        self.set_position(*here)

    def _report_json_lines(self, first: HeldPayload) -> None:
        """Report that the body is JSON Lines, because more input follows its first document.

        `first`: the first document, which could have been the complete response.
        """
        self._undecided = None
        self._lines = True
        self._report_at(first, "json_lines_body")

    def _in_lines(self) -> bool:
        return self._lines and not self.is_framed

    def _is_error_body(self, payload: Payload, *, stray: bool) -> bool:
        """Return True if the document is a plain body that reports an error without an `error` member."""
        held = self._waiting is not None and bool(self._waiting.held)
        if self.is_array or not stray or (self.decoder is None and held):
            return False
        return (self.decoder or ChatDecoder).is_error_body(payload.value)

    def _is_alone(self, waiting: UndetectedPayloads, payload: Payload) -> bool:
        """Return True if the document reports an error, is the first payload, and does not identify a dialect."""
        return not self.is_array and not waiting.held and ChatDecoder.reports_error(payload.value)

    def _detected(self, payload: Payload, event: str) -> Decoder:
        """Detect the dialect from a salvaged document, and dispatch the held payloads.

        A salvaged document is never held: if it does not identify the dialect, detection fails.
        """
        waiting = self._waiting or UndetectedPayloads()
        dialect = waiting.identifies(payload.value, event)
        if dialect is None:
            waiting.note(payload)
            raise self._unknown_dialect(waiting)
        here_before = self._out.offset, self._out.ordinal, self._out.event_type or "message", self._out.payload
        self.set_dialect(dialect)
        self._release(waiting)
        self.set_position(*here_before)
        self.seen = True
        return self._decoder()

    def _decoder(self) -> Decoder:
        """Return the decoder. Before detection, return a Chat decoder, which only handles errors."""
        return self.decoder or ChatDecoder(self._config, self._assembler, self._out)

    def _text_error(self, text: bytes) -> None:
        """Pass an error that was sent as plain text to the decoder. The error does not identify a dialect."""
        self._out.mark_misread("plain_words")  # clients expect JSON
        decoder = self._decoder()
        decoder.text(text.decode("utf-8", "replace"))
        self.done = self.done or decoder.ended

    def _check_marker(self, is_json: str, event: str) -> None:
        """Let repair remove a `[DONE]` that clients would parse as JSON."""
        if is_json == "always":
            self._out.leave_out("done_marker")
        elif is_json == "named" and event != "message":
            self._out.mark_misread("done_marker")

    def _after_done(self, text: bytes, event: str) -> None:
        """Report data after the terminal marker, and do not decode it.

        A document that contains no part of the response is not reported; it is passed on as `Unknown`. A second marker
        and comments are ignored.
        """
        if text == MARKER or text[:1] == b":":
            return
        payload = self._document_of(text) if text[:1] == b"{" else None
        is_without_output = (
            event != "error" and payload is not None and (self.decoder or ChatDecoder).is_without_output(payload.value)
        )
        if is_without_output:
            self._assembler.unknown(None if event == "message" else event, text.decode("utf-8", "replace").encode())
        else:
            self.after_end()

    def after_end(self) -> None:
        """Report data after the end of the stream, at most once."""
        self._out.emptied = True
        if not self._reported_after_done:
            self._reported_after_done = True
            self._out.diagnose("data_after_done")

    def _read_held(self, waiting: UndetectedPayloads) -> bool:
        """Dispatch the held payloads if the last one contains only a message text. The last payload is an error,
        because nothing follows it.

        Return False, and leave the dialect unknown, for any other payload.
        """
        payload = self._document_of(waiting.held[-1].data.strip(WHITE))
        if payload is None or is_notice(waiting.held[-1].event) or not is_message(payload.value):
            return False
        dialect = waiting.identifies(payload.value, "error")
        if dialect is None:
            return False
        self.set_dialect(dialect)
        self._release(waiting)
        return True

    def _end_with_message(self, decoder: Decoder) -> None:
        """Decode the last payload as an error if it contains only a message text and the response has no other end."""
        last, self._last_message = self._last_message, None
        if last is None:
            return
        decoder.flush()
        if self._assembler.states_end:
            return
        out = self._out
        here = out.offset, out.ordinal, out.event_type or "message", out.payload
        self.set_position(last.offset, last.ordinal, "message", last.data)
        decoder.decode(last.payload, "error")
        self.set_position(*here)

    # End of the input

    def finish(self, unfinished: UnfinishedInput, how: InputEnd) -> None:
        """Handle the end of the input. `unfinished`: the kind of unfinished input."""
        waiting = self._waiting
        if self.decoder is None and waiting is not None and waiting.held and not self.done and unfinished == "nothing":
            here = self._out.offset, self._out.ordinal
            self._read_held(waiting)
            self.set_position(*here)
        if self.decoder is not None:
            undecided = self._undecided
            if undecided is not None and unfinished != "nothing":
                self._report_json_lines(undecided)
            elif undecided is not None:
                self._report_at(undecided, "body_not_streamed")
            self._report_other_dialect()
            self.decoder.flush()
            if unfinished == "nothing" and not self.done:
                self._end_with_message(self.decoder)
                if isinstance(self.decoder, ChatDecoder):
                    self.decoder.end_input()
            if undecided is not None and unfinished == "nothing":
                self._assembler.done()
        elif self._waiting is not None and self._waiting.held and not self.done and how is InputEnd.CLEAN:
            raise self._unknown_dialect(self._waiting, at=self._waiting.held[0])

    def _report_other_dialect(self) -> None:
        """Report that the detected dialect differs from the specified dialect, if no payload could be decoded.

        Called at the end of the stream.
        """
        watch, self._watch = self._watch, None
        found = None if watch is None else watch.found
        if found is None or not self._assembler.is_blank:
            return
        out, shown = self._out, found.shown
        here = out.offset, out.ordinal, out.event_type or "message", out.payload
        self.set_position(shown.offset, shown.ordinal, shown.event, shown.data)
        if out.action("other_dialect") == "raise":
            raise out.fault(
                "UnknownDialect", "other_dialect", found.dialect, seen=found.seen, specified=found.specified
            )
        out.diagnose("other_dialect", detail=found.dialect)
        self.set_position(*here)

    def _unknown_dialect(self, waiting: UndetectedPayloads, at: HeldPayload | None = None) -> StreamError:
        if at is not None:
            self.set_position(at.offset, at.ordinal, at.event, at.data)
        return self._out.fault("UnknownDialect", "unknown_dialect", seen=waiting.seen())

    def reject_joined(self, text: bytes) -> None:
        """Raise a fault if a field name follows a document on the same line and the document does not report an
        error.
        """
        at = joined_field(text, self._max_depth)
        if at is not None and self._error_event(text[:at], "message") is None:
            raise self._joined_fault(at)

    def _joined_fault(self, at: int) -> StreamError:
        """Return the fault for a field name at a position in the trimmed text of the current payload."""
        position = at + _leading(self._out.payload)
        return self._out.fault("FramingError", "line_ends_missing", f"position {position}")

    def reject_joined_head(self, offset: int, *, is_open: bool, end: int | None = None) -> None:
        """Raise a fault if the beginning of the body shows that its lines were passed on without line endings.

        `offset`: the byte offset that the fault reports. `is_open`: true if the body has no line ending after the last
        line of `self.head`. `end`: the offset at which a line exceeds a limit. The beginning of the body is cut at
        `end`, so that the result does not depend on the sizes of the reads.
        """
        head = self.head[:end]
        if not self.seen and has_joined_lines(head, self._max_depth, is_open=is_open):
            self.set_position(offset, self.ordinal)
            raise self._out.fault("FramingError", "line_ends_missing", raw=head[:RAW_HEAD])

    def no_stream(self, head: bytes) -> StreamError:
        """Return the fault for a body that is not an event stream. The fault shows the beginning of the body."""
        self.set_position(0, 0)
        head = head[:BODY_HEAD]
        return self._out.fault(
            "NotAnEventStream", "not_an_event_stream", body_head=head, content_type=self._content_type, raw=head
        )


def _leading(data: bytes) -> int:
    """Return the number of whitespace bytes at the start of a payload."""
    return len(data) - len(data.lstrip(WHITE))
