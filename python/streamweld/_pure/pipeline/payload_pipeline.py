"""Payloads one by one: what each is good for, which dialect it tells, and where it goes.

Behind the framer, before the decoder. Knows the order of the questions (heartbeat, end, duplicate, word, JSON, ladder)
and where every payload stands. Knows no member of a document and no rule of a call. The twin of
`rust/core/src/pipeline/payload_pipeline.rs`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streamweld._pure.assemble import InputEnd
from streamweld._pure.dialect.chat import ChatDecoder
from streamweld._pure.json.automaton import MAX_DEPTH
from streamweld._pure.json.scanner import JsonFault, Payload, parse
from streamweld._pure.model.output import RAW_HEAD
from streamweld._pure.pipeline.detect import (
    DECODERS,
    KEEP_ALIVE,
    NAMELESS_MARKER,
    READ_EMPTY,
    WALKED,
    WRAPPED_NAMES,
    DialectWatch,
    HeldPayload,
    UndetectedPayloads,
)
from streamweld._pure.pipeline.salvage import MARKER, WHITE, Climb, climb, count_documents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble import Assembler, Rest
    from streamweld._pure.model.output import Output
    from streamweld._pure.pipeline.detect import Decoder
    from streamweld._pure.pipeline.salvage import Caps
    from streamweld.errors import StreamError

__all__ = ["BODY_HEAD", "PayloadPipeline"]

BODY_HEAD = 512  # bytes of a body that is no event stream


class PayloadPipeline:
    """Where the payloads of one stream go."""

    __slots__ = (
        "_assembler",
        "_config",
        "_content_type",
        "_drops_duplicates",
        "_lines",
        "_max_depth",
        "_max_events",
        "_max_values",
        "_out",
        "_previous",
        "_said_after_done",
        "_undecided",
        "_waiting",
        "_watch",
        "decoder",
        "dialect",
        "done",
        "head",
        "is_array",
        "is_framed",
        "ladder",
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
        self._max_depth = MAX_DEPTH if depth is None else min(depth, MAX_DEPTH)  # the cap can only be lowered
        self._max_values = limits["max_json_values"]
        self._max_events = limits["max_events"]
        self.ladder = config["base"] != "strict"
        self.dialect: str | None = None
        self.decoder: Decoder | None = None
        self._waiting: UndetectedPayloads | None = UndetectedPayloads()
        self._watch: DialectWatch | None = None
        self._undecided: HeldPayload | None = None  # it is the whole answer, or the first of several lines
        self._previous: bytes | None = None
        self.ordinal = 0
        self.head = b""  # of the body, as long as nothing came of it
        self.seen = False  # a payload that is more than a heartbeat
        self.done = False
        self._said_after_done = False
        self._lines = False  # documents stand on lines of their own, and nothing else does
        self.is_framed = False  # data stood in a data line
        self.is_array = False  # the body is one JSON array

    def given(self, dialect: str) -> None:
        """The caller says that the stream is of that dialect."""
        self.speak(dialect)
        self._watch = DialectWatch(dialect)

    def speak(self, dialect: str) -> None:
        """The stream is of that dialect."""
        self.dialect = dialect
        self.decoder = DECODERS[dialect](self._config, self._assembler, self._out)
        self._assembler.speak(dialect)

    @property
    def caps(self) -> Caps:
        """Of each payload."""
        return self._max_depth, self._max_values, WALKED.get(self.dialect or "chat")

    @property
    def waits(self) -> bool:
        """A payload waits for another one to tell what it is."""
        return self._undecided is not None or (self.decoder is None and self.ordinal > 0)

    def place(self, offset: int, ordinal: int, event: str = "message", data: bytes = b"") -> None:
        """Where everything that is said from here on belongs."""
        out = self._out
        out.offset = offset
        out.ordinal = ordinal
        out.event_type = None if event == "message" else event
        out.payload = data

    def is_keep_alive(self, event: str) -> bool:
        """A heartbeat by its name; before a dialect is known, one in all of them."""
        if self.dialect is not None:
            return event in KEEP_ALIVE[self.dialect]
        return all(event in names for names in KEEP_ALIVE.values())

    # One payload

    def payload(self, data: bytes, event: str, offset: int, *, stray: bool) -> None:
        """One dispatched payload, at its place."""
        ordinal = self.ordinal
        self.place(offset, ordinal, event, data)
        if self._max_events is not None and ordinal >= self._max_events:
            raise self._out.limit("max_events", self._max_events)
        self.ordinal = ordinal + 1
        self.is_framed = self.is_framed or not (stray or self.is_array)
        waiting = self._waiting if self.decoder is None else None
        if waiting is not None and self._waits(waiting, HeldPayload(data, event, offset, ordinal, stray)):
            return
        self._read(data, event, offset, stray=stray)

    def _waits(self, waiting: UndetectedPayloads, one: HeldPayload) -> bool:
        """Whether the payload has to wait until another one tells the dialect; if it tells it, those before it go."""
        text = one.data.strip(WHITE)
        if not text or self.is_keep_alive(one.event):
            return True
        if self.done:
            return False  # the marker ends every dialect: what comes behind it is told as such
        if text == MARKER or (one.stray and not self.seen and text[:1] == b"<"):
            if text == MARKER and waiting.held:
                raise self._unknown_dialect(waiting)
            return False
        payload = self._document_of(text)
        if payload is None:
            # Words, or what the ladder can make something of: nothing is known of those before it, and need not be.
            return False
        event = "error" if self._is_complaint(payload, stray=one.stray) else one.event
        dialect = waiting.tells(payload.value, event)
        alone = dialect is None and self._is_alone(waiting, payload)
        if alone:
            dialect = waiting.tells(payload.value, "error")
        if dialect is None:
            self.seen = True
            if waiting.hold(one, payload):
                return True
            waiting.note(payload)
            raise self._unknown_dialect(waiting, at=one)
        self.speak(dialect)
        self._release(waiting)
        self.place(one.offset, one.ordinal, one.event, one.data)
        if alone:
            self._read(one.data, "error", one.offset, stray=one.stray)
        return alone

    def _release(self, waiting: UndetectedPayloads) -> None:
        """The dialect is known: what waited goes its way, from its own place."""
        self._waiting = None
        if waiting.held:
            self.seen = False
        for held in waiting.held:
            self.place(held.offset, held.ordinal, held.event, held.data)
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
        if self.is_keep_alive(event):
            return
        text = data.strip(WHITE)
        if not text:
            if self.dialect in READ_EMPTY:
                out.leave_out("empty_event")
            return
        if self._undecided is not None:
            self._several(self._undecided)
        if text == MARKER and event != "message" and self.dialect in NAMELESS_MARKER:
            out.touch("done_marker")  # readers take it for JSON
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
        try:
            payload = parse(text, *self.caps)
        except JsonFault as fault:
            self._climb(text, fault, event, stray=stray)
            return
        if "\ufffd" in payload.text:
            self._check_utf8(text)
        self._document(payload, event, stray=stray, first=first)
        self._watch_dialect(event, payload)

    def _watch_dialect(self, event: str, payload: Payload) -> None:
        """Look for another dialect in a payload that was read.

        Only a stream of which nothing is understood can be in another dialect than the given one, so the check ends
        with the first payload that brings content.
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
        """A payload that is no document: the marker, null, or a comment."""
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
        self._tell_other()
        decoder.marker()
        self.done = decoder.ended

    def _climb(self, text: bytes, fault: JsonFault, event: str, *, stray: bool) -> None:
        """The payload is not JSON as it stands."""
        self._check_utf8(text)
        self._rungs(text, 0, fault, event, stray=stray)

    def _rungs(self, text: bytes, start: int, fault: JsonFault, event: str, *, stray: bool = False) -> None:
        """The ladder on a payload, or on the rest of it from `start` on."""
        out = self._out
        if fault.reason == "too_deep":
            raise out.limit("max_json_depth", self._max_depth)
        if fault.reason == "too_many" and self._max_values is not None:
            raise out.limit("max_json_values", self._max_values)
        found = climb(text, self.caps, self.is_of_use) if self.ladder else None
        if event == "error" and (found is None or found.rung == "none"):
            self._complain(text)
            return
        if found is None or found.rung == "none":
            if out.action("malformed_json") == "raise":
                raise out.fault("ChunkDecodeError", "malformed_json", pos=fault.pos + start + _leading(out.payload))
            out.diagnose("malformed_json")
            return
        if stray:
            out.diagnose("stray_payload")
        if found.rung == "text":
            self._complain(text)
            return
        self._climbed(found, event)
        if found.rest is not None:
            self._rest(text[found.rest :], found.rest, event)

    def _rest(self, text: bytes, start: int, event: str) -> None:
        """What follows the whole lines of a payload: one document over several lines, or something broken."""
        start += _leading(text)
        text = text.strip(WHITE)
        if self.done:
            self._after_done(text, event)
            return
        try:
            payload = parse(text, *self.caps)
        except JsonFault as fault:
            self._rungs(text, start, fault, event)
            return
        self._document(payload, event)

    def _climbed(self, found: Climb, event: str) -> None:
        if found.rung == "json_lines":
            self._out.diagnose("json_lines", detail=str(count_documents(found.lines)))
            for line in found.lines:
                if self.done:
                    self._after_done(line, event)
                elif not self._word(line):
                    self._document(parse(line, *self.caps), event)
            return
        self._out.diagnose(found.rung)
        for payload in found.documents:
            self._document(payload, event, recovered=found.rung == "recovered_tail")

    def is_of_use(self, value: object) -> bool:
        """Whether a document behind a broken one brings what may be taken from there."""
        if self.decoder is not None:
            return self.decoder.is_of_use(value)
        return any(decoder.is_of_use(value) for decoder in DECODERS.values())

    def _document(
        self, payload: Payload, event: str, *, stray: bool = False, first: bool = False, recovered: bool = False
    ) -> None:
        """One JSON document, to its dialect's decoder."""
        if first and self._is_complaint(payload, stray=stray):
            event = "error"
        decoder = self.decoder
        if decoder is None:
            decoder = self._detected(payload, event)
        if event.startswith(WRAPPED_NAMES.get(self.dialect or "", ())):
            self._out.touch("event_name")  # readers find something else in it
        whole = False
        if self.is_array:
            if first:
                self._out.diagnose("array_body")
        elif stray:
            whole = self._outside(payload, event, decoder, first=first)
        decoder.decode(payload, event, recovered=recovered)
        self.done = self.done or decoder.ended
        if whole and not self.done:
            self.seen = self.done = True
            decoder.flush()
            self._assembler.done()

    def _outside(self, payload: Payload, event: str, decoder: Decoder, *, first: bool) -> bool:
        """A document that stands in no data line; whether it is the whole answer."""
        whole = first and decoder.is_body(payload.value)
        if first and not self.is_framed and b"\n" not in self._out.payload:
            if whole and decoder.is_line(payload.value):
                here = self._here(event)
                self._undecided = replace(here, data=here.data[:RAW_HEAD])  # no more of it is shown
                return False
            if not whole:
                self._lines = True
                self._out.diagnose("json_lines_body")
                return False
        if self._in_lines():
            self._out.mend()  # the first line was told for all
        else:
            self._out.diagnose("body_not_streamed" if whole else "stray_payload")
        return whole

    def _here(self, event: str) -> HeldPayload:
        out = self._out
        return HeldPayload(out.payload, event, out.offset, out.ordinal, stray=False)

    def _say_at(self, one: HeldPayload, code: str) -> None:
        """Say something of an earlier payload, at its place."""
        out = self._out
        here = out.offset, out.ordinal, out.event_type or "message", out.payload
        self.place(one.offset, one.ordinal, one.event, one.data)
        out.diagnose(code)
        self.place(*here)

    def _several(self, first: HeldPayload) -> None:
        """Something follows what could have been the whole answer: it was the first of several lines."""
        self._undecided = None
        self._lines = True
        self._say_at(first, "json_lines_body")

    def _in_lines(self) -> bool:
        return self._lines and not self.is_framed

    def _is_complaint(self, payload: Payload, *, stray: bool) -> bool:
        """A plain body that is an error in a shape of its own."""
        held = self._waiting is not None and bool(self._waiting.held)
        if self.is_array or not stray or (self.decoder is None and held):
            return False
        return (self.decoder or ChatDecoder).is_complaint(payload.value)

    def _is_alone(self, waiting: UndetectedPayloads, payload: Payload) -> bool:
        """An event that tells no dialect, and nothing else than an error."""
        return not self.is_array and not waiting.held and ChatDecoder.is_complaint(payload.value)

    def _detected(self, payload: Payload, event: str) -> Decoder:
        """What the ladder made of a payload has to tell the dialect at once."""
        waiting = self._waiting or UndetectedPayloads()
        dialect = waiting.tells(payload.value, event)
        if dialect is None:
            waiting.note(payload)
            raise self._unknown_dialect(waiting)
        place = self._out.offset, self._out.ordinal, self._out.event_type or "message", self._out.payload
        self.speak(dialect)
        self._release(waiting)
        self.place(*place)
        self.seen = True
        return self._decoder()

    def _decoder(self) -> Decoder:
        """The decoder, or of an error before any dialect was seen, one that reads errors."""
        return self.decoder or ChatDecoder(self._config, self._assembler, self._out)

    def _complain(self, text: bytes) -> None:
        """An error in plain words; before any dialect was seen it tells none."""
        self._out.touch("plain_words")  # readers want JSON
        decoder = self._decoder()
        decoder.text(text.decode("utf-8", "replace"))
        self.done = self.done or decoder.ended

    def _after_done(self, text: bytes, event: str) -> None:
        """What comes behind the end is not processed. A note that says nothing of the answer is no anomaly."""
        if text == MARKER or text[:1] == b":":
            return
        payload = self._document_of(text) if text[:1] == b"{" else None
        if payload is not None and (self.decoder or ChatDecoder).is_note(payload.value):
            self._assembler.unknown(None if event == "message" else event, text.decode("utf-8", "replace").encode())
        else:
            self.after_end()

    def after_end(self) -> None:
        """Something stands behind the end; it is said once."""
        self._out.emptied = True
        if not self._said_after_done:
            self._said_after_done = True
            self._out.diagnose("data_after_done")

    # The end of input

    def finish(self, rest: Rest, how: InputEnd) -> None:
        """No payload comes any more. `rest`: what of one is left over."""
        if self.decoder is not None:
            undecided = self._undecided
            if undecided is not None and rest != "nothing":
                self._several(undecided)
            elif undecided is not None:
                self._say_at(undecided, "body_not_streamed")
            self._tell_other()
            self.decoder.flush()
            if undecided is not None and rest == "nothing":
                self._assembler.done()
        elif self._waiting is not None and self._waiting.held and not self.done and how is InputEnd.CLEAN:
            raise self._unknown_dialect(self._waiting, at=self._waiting.held[0])

    def _tell_other(self) -> None:
        """The stream ends, and nothing of it was understood: another dialect may have been given than it speaks."""
        watch, self._watch = self._watch, None
        found = None if watch is None else watch.found
        if found is None or not self._assembler.is_blank:
            return
        out, shown = self._out, found.shown
        here = out.offset, out.ordinal, out.event_type or "message", out.payload
        self.place(shown.offset, shown.ordinal, shown.event, shown.data)
        if out.action("other_dialect") == "raise":
            raise out.fault("UnknownDialect", "other_dialect", found.dialect, seen=found.seen)
        out.diagnose("other_dialect", detail=found.dialect)
        self.place(*here)

    def _unknown_dialect(self, waiting: UndetectedPayloads, at: HeldPayload | None = None) -> StreamError:
        if at is not None:
            self.place(at.offset, at.ordinal, at.event, at.data)
        return self._out.fault("UnknownDialect", "unknown_dialect", seen=waiting.seen())

    def no_stream(self, head: bytes) -> StreamError:
        """There is a body, but it is something else; it is told from its beginning."""
        self.place(0, 0)
        return self._out.fault(
            "NotAnEventStream", "not_an_event_stream", body_head=head, content_type=self._content_type, raw=head
        )


def _leading(data: bytes) -> int:
    """How many bytes of white space stand before a payload."""
    return len(data) - len(data.lstrip(WHITE))
