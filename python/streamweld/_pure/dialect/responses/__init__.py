"""Decodes OpenAI Responses and OpenResponses streams, and complete `response` bodies, into wire deltas.

Events are dispatched by their type. At the end of a response, the module decodes the output, the usage, and the status,
in this order. `_spec/dialects.json` contains most event and member names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.anomalies import Anomalies
from streamweld._pure.dialect.responses.audio import Audio
from streamweld._pure.dialect.responses.calls import ArgumentReader
from streamweld._pure.dialect.responses.edits import edit_event
from streamweld._pure.dialect.responses.items import ItemReader
from streamweld._pure.dialect.responses.read import INDEX_CAP, Reader
from streamweld._pure.dialect.responses.readers import Readers
from streamweld._pure.dialect.responses.sequence import Sequence
from streamweld._pure.dialect.responses.spec_tables import (
    ARGUMENT_DELTAS,
    ARGUMENT_VALUES,
    AUDIO_DELTAS,
    CONTENTLESS,
    COUNTS,
    ERRORS,
    EVENT_FIELDS,
    KEEP_ALIVE,
    OFFICIAL_KEEP_ALIVE,
    OPENINGS,
    PROGRESS,
    PROGRESS_ADDRESS,
    RESPONSE_FIELDS,
    RESULT_DELTAS,
    STATUSES,
    TERMINALS,
    TEXT_DELTAS,
    TEXT_VALUES,
    is_read,
    is_read_of_response,
    is_read_unwrapped,
)
from streamweld._pure.dialect.responses.text import TextReader
from streamweld._pure.dialect.upstream_error import (
    ErrorFields,
    is_bare,
    is_blank_error,
    is_problem,
    is_raised_by_clients,
    read_error,
    reports_failure,
    text_error,
)
from streamweld._pure.dialect.usage_counts import read_counts
from streamweld._pure.json.kinds import integer, is_array, is_object
from streamweld._pure.json.members import as_object
from streamweld._pure.json.scanner import replace_lone_surrogates
from streamweld._pure.model.delta import Address
from streamweld._pure.model.finish_words import meaning
from streamweld._pure.model.unmodelled import ItemEnd, ItemEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.json.members import Raw
    from streamweld._pure.json.scanner import Path, Payload
    from streamweld._pure.model.output import Output

_REMEMBERED = 64  # maximum number of response members to compare between start and end
_USUAL = "max_output_tokens"  # the reason that the status `incomplete` implies
_ITEM_ADDED = "response.output_item.added"
# Types of events whose items and content parts the decoder itself reports to the repair stage.
_REPORTED = (_ITEM_ADDED, "response.content_part.added", "response.content_part.done")
_NO_REASON = "failed"  # message of an error for which the upstream gave no reason
_UNSUCCESSFUL = frozenset({"length", "content_filter", "error", "other"})
# Beginnings of the types of events with arguments that an encoder writes.
_WRITTEN_ARGUMENTS = ("response.function_call_arguments.", "response.custom_tool_call_input.")
_UNWRAPPED_FIELDS = RESPONSE_FIELDS | EVENT_FIELDS


@dataclass(slots=True, frozen=True)
class _Response:
    """A response, the path to it in its payload, and the members that are not kept as metadata."""

    members: dict[str, Any]
    path: Path
    modelled: frozenset[str]


@dataclass(slots=True, frozen=True)
class _Failure:
    """A `response.failed` event without an error, and its position in the input."""

    text: str
    offset: int
    ordinal: int
    event_type: str | None
    data: bytes


class ResponsesDecoder:
    """Decodes the payloads of one stream. The choice is always 0, because a response has only one choice."""

    def __init__(self, config: Mapping[str, Any], assembler: Assembler, out: Output) -> None:
        max_index: int | None = config["limits"]["max_tool_index"]
        self._assembler = assembler
        self._out = out
        self._max_index = INDEX_CAP if max_index is None else max_index
        self._tools = frozenset[str](config["tools"] or ())
        self._restarts: bool = config["switches"]["restart_on_new_stream_id"]
        self._id: str | None = None
        self._sequence = Sequence(out)
        self._readers = Readers(out)
        self._text = TextReader(assembler)
        self._items = ItemReader(assembler, self._text)
        self._arguments = ArgumentReader(assembler)
        self._audio = Audio(assembler)
        self._start_members: Raw | None = None  # metadata of the start event; None before it
        self._unexplained: _Failure | None = None  # a failure without an error; the next event may contain the error
        self.ended = False
        self._steps: Mapping[str, Callable[[dict[str, Any], Reader], bool]] = {
            _ITEM_ADDED: self._items.added,
            "response.output_item.done": self._item_done,
            "response.content_part.added": self._part_added,
            "response.content_part.done": self._part_done,
            "response.reasoning_summary_part.added": self._summary_added,
            "response.reasoning_summary_part.done": self._summary_done,
            "response.output_text.annotation.added": self._annotation,
            **dict.fromkeys(TEXT_DELTAS, self._text_delta),
            **dict.fromkeys(TEXT_VALUES, self._text_value),
            **dict.fromkeys(ARGUMENT_DELTAS, self._argument_delta),
            **dict.fromkeys(ARGUMENT_VALUES, self._argument_value),
            **dict.fromkeys(PROGRESS, self._progress),
            **dict.fromkeys(AUDIO_DELTAS, self._audio_delta),
            **dict.fromkeys(RESULT_DELTAS, self._items.result_delta),
            **dict.fromkeys(CONTENTLESS, self._contentless),
            **dict.fromkeys(OPENINGS, self._opening),
            **dict.fromkeys(TERMINALS, self._terminal),
        }

    @staticmethod
    def is_body(value: object) -> bool:
        """Return whether a payload outside an event stream is a complete response, or an error in place of one."""
        if not is_object(value):
            return False
        if value.get("object") == "response":
            return value.get("status") not in ("queued", "in_progress")
        return not is_blank_error(value.get("error")) or ResponsesDecoder.is_error_body(value)

    @staticmethod
    def may_be_json_line(value: object) -> bool:  # noqa: ARG004
        """Return False, because a body contains one complete response, so no further document can follow."""
        return False

    @staticmethod
    def is_error_body(value: object) -> bool:
        """Return whether a document without an `error` member reports an error.

        An error document has a message with a code, contains only `message` or `detail`, or has another known error
        shape.
        """
        return is_object(value) and (is_bare(value) or _reports_error(value))

    @staticmethod
    def has_usable_data(value: object) -> bool:
        """Return whether a document that follows a broken document is an error, a text delta, or a terminal event."""
        if not is_object(value):
            return False
        kind = value.get("type")
        known = isinstance(kind, str) and (kind in TEXT_DELTAS or kind in TERMINALS or kind in ERRORS)
        return known or value.get("error") is not None

    @staticmethod
    def is_without_output(value: object) -> bool:
        """Return whether the event is a keepalive, which is ignored even after the end of the stream."""
        if not is_object(value):
            return False
        kind = value.get("type")
        return isinstance(kind, str) and kind in KEEP_ALIVE

    def decode(self, payload: Payload, event: str, *, recovered: bool = False) -> None:
        """Decode a JSON payload. `recovered`: whether the payload follows a broken document."""
        value = payload.value
        if not is_object(value):
            self._no_object(payload, event)
            return
        kind = value.get("type")
        if not isinstance(kind, str) or not kind:
            kind = "" if event == "message" else event
        if kind in KEEP_ALIVE:
            if kind != OFFICIAL_KEEP_ALIVE:
                self._out.leave_out("keep_alive")
            return
        if not recovered and self._sequence.is_replayed(value.get("sequence_number"), payload.text):
            return
        if value.get("object") == "response" and kind not in self._steps:
            self._body(payload, value)
            return
        reader = self._reader(payload, kind)
        error = _find_error(payload, value, kind, event)
        if error is not None and _is_unwrapped(kind, value) and kind in TERMINALS:
            self._end(value, reader, with_output=not recovered, error=error)
            return
        if error is not None:
            self._error(error, payload.text, reader.notes)
            return
        if self._fail():
            return
        if is_raised_by_clients(value.get("error")):
            self._out.mark_misread("empty_error")
        reports = not recovered and self._out.on_unmodelled is not None
        if kind.startswith("response.") and not recovered:
            self._readers.event(kind, value)
            if reports:
                edit_event(kind, payload, self._out)
        step = (self._recovered if recovered else self._steps.get(kind)) if kind in self._steps else None
        is_reported = reports and _is_copied(kind)
        if is_reported:
            self._report_event(payload, event)
        known = step is not None and step(value, reader)
        if not self.ended:
            reader.notes.report()
        has_type = isinstance(value.get("type"), str) and value["type"]
        if not (known or is_reported or has_type or kind.startswith("response.")):
            # No client can read an event without a type: openai-node and the AI SDK raise an exception.
            self._out.leave_out("no_event_type")
            self._unknown(payload, event)
            return
        if not known:
            if reports and not is_reported and kind not in _REPORTED:
                self._report_event(payload, event)
            self._unknown(payload, event)
        if is_reported or (reports and not known):
            self._out.keep(ItemEnd())

    def marker(self) -> None:
        """Ignore `[DONE]`, because the OpenResponses specification sends it after the terminal event.

        Clients stop reading at `[DONE]`, so repair drops a `[DONE]` that comes before the terminal event.
        """
        self._out.leave_out("done_marker")
        self._fail()

    def text(self, text: str) -> None:
        """Report a payload that is not JSON as an upstream error."""
        self._error(text_error(text), text, None)

    def flush(self) -> None:
        """Mark the stream as truncated if its last item cannot end a response, such as a call that the provider runs.

        The stream is truncated even if the policy accepts a missing terminal marker.
        """
        self._audio.leave()
        self._fail()
        if not self.ended and not self._items.ends_with_answer:
            self._assembler.cut()

    # Events

    def _reader(self, payload: Payload, kind: str) -> Reader:
        is_member_read = is_read_unwrapped if _is_unwrapped(kind, payload.value) else is_read
        notes = Anomalies(self._out, self._assembler, payload, (), is_member_read)
        return Reader(payload, notes, self._out, self._max_index, kind, self._tools)

    def _recovered(self, event: dict[str, Any], reader: Reader) -> bool:
        """Decode an event that follows a broken document.

        Only message text, the usage, and the end of the response are used, because calls, reasoning, and ids may be
        corrupt.
        """
        if reader.kind in TEXT_DELTAS:
            self._text.recovered(event, reader, Address())
        elif reader.kind in TERMINALS:
            self._end(event, reader, with_output=False)
        return True

    def _item_done(self, event: dict[str, Any], reader: Reader) -> bool:
        self._items.done(event, reader)
        return True

    def _part_added(self, event: dict[str, Any], reader: Reader) -> bool:
        return self._text.part(event, reader, summary=False, closes=False)

    def _part_done(self, event: dict[str, Any], reader: Reader) -> bool:
        return self._text.part(event, reader, summary=False, closes=True)

    def _summary_added(self, event: dict[str, Any], reader: Reader) -> bool:
        return self._text.part(event, reader, summary=True, closes=False)

    def _summary_done(self, event: dict[str, Any], reader: Reader) -> bool:
        return self._text.part(event, reader, summary=True, closes=True)

    def _annotation(self, event: dict[str, Any], reader: Reader) -> bool:
        self._text.annotation(event, reader)
        return True

    def _text_delta(self, event: dict[str, Any], reader: Reader) -> bool:
        self._text.delta(event, reader)
        return True

    def _text_value(self, event: dict[str, Any], reader: Reader) -> bool:
        self._text.value(event, reader)
        return True

    def _argument_delta(self, event: dict[str, Any], reader: Reader) -> bool:
        self._arguments.delta(event, reader)
        return True

    def _argument_value(self, event: dict[str, Any], reader: Reader) -> bool:
        self._arguments.value(event, reader)
        return True

    def _progress(self, event: dict[str, Any], reader: Reader) -> bool:
        """Handle an event that reports the progress of a call. Return False if the event does not refer to an open
        call.
        """
        metadata = as_object(reader.extra_fields(event, (), PROGRESS_ADDRESS))
        return self._assembler.call_progress(0, reader.address(event), metadata)

    def _audio_delta(self, event: dict[str, Any], reader: Reader) -> bool:
        return self._audio.delta(event, reader)

    def _contentless(self, event: dict[str, Any], reader: Reader) -> bool:  # noqa: ARG002
        """Handle an event that only announces or repeats the content of other events."""
        return True

    def _opening(self, event: dict[str, Any], reader: Reader) -> bool:
        response = _response(event, reader)
        if response is not None:
            # The id next to the type may be the id of the event, so it does not show that the response was restarted.
            if response.path and self._restarts and self._is_another(response.members):
                self._begin_again()
            if self._out.on_request_tools is not None:
                self._out.on_request_tools(response.members.get("tools"))
            self._start(response, reader)
            self._usage(response, reader)
        return True

    def _terminal(self, event: dict[str, Any], reader: Reader) -> bool:
        self._end(event, reader, with_output=True)
        return True

    # The response

    def _is_another(self, response: Mapping[str, Any]) -> bool:
        """Return whether the response id differs from the last response id, which means that the response was restarted
        (AM10).
        """
        identity = response.get("id")
        if not isinstance(identity, str) or not identity.strip():
            return False
        before, self._id = self._id, identity
        return before is not None and before != identity

    def _begin_again(self) -> None:
        self._assembler.restart(0)
        self._audio.forget()
        self._text = TextReader(self._assembler)
        self._items.begin_again(self._text)

    def _body(self, payload: Payload, value: dict[str, Any]) -> None:
        """Decode a response that was sent as one document. The response may be complete or in progress."""
        notes = Anomalies(self._out, self._assembler, payload, (), is_read_of_response)
        reader = Reader(payload, notes, self._out, self._max_index, "", self._tools)
        response = _Response(value, (), RESPONSE_FIELDS)
        status = value.get("status")
        self._start(response, reader)
        self._output(response, reader)
        if not isinstance(status, str):
            status = "completed"  # some gateways omit the status
        if _is_final(status):
            self._conclude(response, reader, status, {}, is_whole=True)
        else:
            self._usage(response, reader)
            notes.report()

    def _end(
        self, event: dict[str, Any], reader: Reader, *, with_output: bool, error: ErrorFields | None = None
    ) -> None:
        """Handle a terminal event. `error`: the error next to the type of the event.

        The status of the response takes precedence over the type of the event (`response.done`).
        """
        response = _response(event, reader) or _Response({}, ("response",), RESPONSE_FIELDS)
        status = response.members.get("status")
        if not isinstance(status, str) or not _is_final(status):
            status = TERMINALS[reader.kind]
        if with_output:
            if response.members:
                self._start(response, reader)
            self._output(response, reader)
        enclosing = reader.extra_fields(event, (), EVENT_FIELDS) if response.path else {}
        self._conclude(response, reader, status, enclosing, is_whole=False, error=error)

    def _start(self, response: _Response, reader: Reader) -> None:
        """Emit the response's start event from the first event that identifies the response, or complete the start
        event from a later event.

        In a resumed stream, the terminal event may be the first event that identifies the response.
        """
        members, path = response.members, response.path
        created = members.get("created_at")
        if self._start_members is not None:
            number = None if isinstance(created, str) else integer(created)
            self._assembler.complete_start(members.get("id"), members.get("model"), number)
            return
        extra = reader.extra_fields(members, path, response.modelled)
        model = reader.text(members, path, "model")
        identity = reader.identity(members, path, "id")
        if identity is None and not model and created is None and not extra:
            return
        self._start_members = dict(list(extra.items())[:_REMEMBERED])
        self._assembler.started(
            identity,
            reader.notes.clean(model) if model else None,
            None if isinstance(created, str) else integer(created),
            as_object(extra),
        )

    def _output(self, response: _Response, reader: Reader) -> None:
        output = response.members.get("output")
        path = (*response.path, "output")
        if is_array(output):
            self._items.restate(output, path, reader)
        elif output is not None:
            reader.notes.shape(path)
        self._text.top_level(response.members, reader)

    def _usage(self, response: _Response, reader: Reader) -> None:
        usage = reader.notes.an_object(response.members, response.path, "usage")
        if usage is not None:
            raw = reader.payload.raw(*response.path, "usage")
            self._assembler.merge_usage(read_counts(usage, raw, COUNTS))

    def _conclude(
        self,
        response: _Response,
        reader: Reader,
        status: str,
        enclosing: Raw,
        *,
        is_whole: bool,
        error: ErrorFields | None = None,
    ) -> None:
        """Emit the usage, the changed members of the response, and the finish reason or error.

        `is_whole`: whether the response was sent as one document, so that no event follows.
        """
        self._usage(response, reader)
        start_members = self._start_members or {}
        extra = reader.extra_fields(response.members, response.path, response.modelled)
        members = {k: raw for k, raw in extra.items() if start_members.get(k) != raw}
        details = reader.notes.an_object(response.members, response.path, "incomplete_details")
        if details is not None:
            members["incomplete_details"] = reader.payload.raw(*response.path, "incomplete_details") or "null"
            status = _worse(status, details.get("reason"))
        self._audio.leave()
        left = as_object({**members, **enclosing})
        if left is not None:
            self._assembler.choice_metadata(0, left)
        error = error or _response_error(response, reader)
        if status == "failed" and error is None and not is_whole:
            out = self._out
            reader.notes.report()
            self._unexplained = _Failure(reader.payload.text, out.offset, out.ordinal, out.event_type, out.payload)
            return
        self.ended = True
        if status == "failed" or error is not None:
            self._error(error or ErrorFields(None, None, _NO_REASON), reader.payload.text, reader.notes)
            return
        reader.notes.report()
        self._assembler.finish(0, status)
        self._assembler.done()

    # Payloads that are not response events

    def _fail(self) -> bool:
        """Report the held failure, because no event contained its error. The report refers to the position of the
        failure event. Return False if no failure is held.
        """
        failure, self._unexplained = self._unexplained, None
        if failure is None:
            return False
        out = self._out
        here = out.offset, out.ordinal, out.event_type, out.payload
        out.offset, out.ordinal, out.event_type, out.payload = (
            failure.offset,
            failure.ordinal,
            failure.event_type,
            failure.data,
        )
        self._error(ErrorFields(None, None, _NO_REASON), failure.text, None)
        out.offset, out.ordinal, out.event_type, out.payload = here
        return True

    def _error(self, error: ErrorFields, text: str, notes: Anomalies | None) -> None:
        self._unexplained = None
        self.ended = True
        if notes is not None:
            error = error.cleaned(notes.clean)
            notes.report()
        self._assembler.upstream_error(error.code, error.kind, error.message, text.encode())

    def _no_object(self, payload: Payload, event: str) -> None:
        value = payload.value
        notes = Anomalies(self._out, self._assembler, payload, (), is_read)
        if is_array(value) and value and is_object(value[0]) and not is_blank_error(value[0].get("error")):
            # Some gateways send an error object in an array.
            self._error(read_error(payload, (0, "error"), value[0]["error"]), payload.text, notes)
        elif event in ERRORS:
            self._error(read_error(payload, (), value), payload.text, notes)
        elif not self._fail():
            self._out.leave_out("no_event_type")
            self._unknown(payload, event)

    def _report_event(self, payload: Payload, event: str) -> None:
        """Report an event that the encoder does not write itself to the repair stage."""
        self._out.keep(ItemEvent(None if event == "message" else event, payload.text))

    def _unknown(self, payload: Payload, event: str) -> None:
        name = payload.value.get("type") if is_object(payload.value) else None
        if isinstance(name, str) and name:
            event = replace_lone_surrogates(name)
        self._assembler.unknown(None if event == "message" else event, payload.text.encode())


def _is_copied(kind: str) -> bool:
    """Return whether the decoder reads events of this type and no encoder writes them, because they concern neither the
    response, an item, a text, nor the arguments of an ordinary call.
    """
    if kind in ARGUMENT_DELTAS or kind in ARGUMENT_VALUES:
        return not kind.startswith(_WRITTEN_ARGUMENTS)
    return kind in PROGRESS or kind in AUDIO_DELTAS or kind in RESULT_DELTAS or kind in CONTENTLESS


def _find_error(payload: Payload, value: Mapping[str, Any], kind: str, event: str) -> ErrorFields | None:
    """Return the error in an event, or None. The error is the `error` member or the event itself.

    An `error` member in a response event or an extension event may have another meaning.
    """
    error = value.get("error")
    is_named_error = kind in ERRORS or event in ERRORS
    bare = kind in TERMINALS and _is_unwrapped(kind, value)
    if not is_blank_error(error) and (is_named_error or bare or not (kind.startswith("response.") or ":" in kind)):
        return read_error(payload, ("error",), error)
    if is_named_error or (bare and TERMINALS[kind] == "failed" and value.get("message") is not None):
        found = read_error(payload, (), value)
        # The type of an error event is not the type of the error.
        is_event = kind in ERRORS or kind in TERMINALS
        return ErrorFields(found.code, None if is_event else found.kind, found.message)
    return read_error(payload, (), value) if _reports_error(value) else None


def _is_unwrapped(kind: str, event: Mapping[str, Any]) -> bool:
    """Return whether an event that opens or ends a response has the members of the response next to its type.

    Some gateways omit `response`.
    """
    return (kind in OPENINGS or kind in TERMINALS) and event.get("response") is None


def _response(event: dict[str, Any], reader: Reader) -> _Response | None:
    """Return the response in an event that opens or ends it, or None if `response` is not an object."""
    if _is_unwrapped(reader.kind, event):
        return _Response(event, (), _UNWRAPPED_FIELDS)
    response = reader.notes.an_object(event, (), "response")
    return None if response is None else _Response(response, ("response",), RESPONSE_FIELDS)


def _reports_error(value: Mapping[str, Any]) -> bool:
    """Return whether an object without an `error` member reports an error, even if more documents follow."""
    kind = value.get("type")
    if is_problem(value) or (kind is None and value.get("object") != "response" and reports_failure(value)):
        return True
    if value.get("message") is None:
        return False
    # A document with a `type` is an event. Extension events may also have a `message`, so an event is treated as an
    # error only if its type ends in `error`.
    return value.get("code") is not None if kind is None else isinstance(kind, str) and kind.endswith("error")


def _is_final(status: str) -> bool:
    """Return whether a response with this status has ended. Some gateways send a finish reason as the status."""
    return status in STATUSES or meaning("responses", status) in _UNSUCCESSFUL


def _worse(status: str, why: object) -> str:
    """Return the status, or the reason why the response is incomplete.

    The reason is not used if it is blank or `max_output_tokens`. A response whose reason does not mean success is
    incomplete, even if its status is `completed`.
    """
    if not isinstance(why, str) or not why.strip():
        return status
    if status == "completed" and meaning("responses", why) in _UNSUCCESSFUL:
        status = "incomplete"
    return why if status == "incomplete" and why != _USUAL else status


def _response_error(response: _Response, reader: Reader) -> ErrorFields | None:
    """Return the error of a response, or None."""
    error = response.members.get("error")
    return None if is_blank_error(error) else read_error(reader.payload, (*response.path, "error"), error)
