"""Decodes UI message stream chunks of the AI SDK (protocol v1, which `useChat` reads) into wire deltas.

Handles every chunk type, including chunks without content, such as `start-step` and `finish`. `[DONE]` ends the stream;
`finish` does not. The assembler determines which call a fragment belongs to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.ai_sdk.blocks import BlockReader
from streamweld._pure.dialect.ai_sdk.part import Schema, TypedPart
from streamweld._pure.dialect.ai_sdk.ui.message import MessageReader
from streamweld._pure.dialect.ai_sdk.ui.sources_files import ShownReader
from streamweld._pure.dialect.ai_sdk.ui.tools import ToolReader
from streamweld._pure.dialect.anomalies import Anomalies
from streamweld._pure.dialect.client_members import ClientMembers
from streamweld._pure.dialect.upstream_error import (
    ErrorFields,
    is_bare,
    is_problem,
    read_error,
    reports_failure,
    text_error,
)
from streamweld._pure.json.kinds import is_object
from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.json.scanner import Path, Payload
    from streamweld._pure.model.output import Output

_SPEC = DIALECTS["ai-sdk-ui"]
_SCHEMA = Schema(_SPEC)
_CLIENTS = ClientMembers(_SPEC)
_FRAMES = frozenset(_SPEC["frames"])  # types of chunks without content
_RECOVERED = frozenset(_SPEC["recovered"])  # types that are decoded even after a broken document
_TEXT = ("delta", "text", "textDelta")  # possible names of the text member; the protocol uses the first
_DATA = "data-"  # prefix of the chunk types that applications define


class AiSdkUiDecoder:
    """Decodes the payloads of one stream."""

    __slots__ = ("_aborted", "_assembler", "_blocks", "_handlers", "_message", "_out", "_tools", "ended")

    def __init__(self, config: Mapping[str, Any], assembler: Assembler, out: Output) -> None:  # noqa: ARG002
        self._assembler = assembler
        self._out = out
        self._message = MessageReader(assembler)
        self._blocks = BlockReader(assembler, out, _TEXT)
        shown = ShownReader(assembler)
        self._tools = ToolReader(assembler)
        self._aborted = False
        self.ended = False
        self._handlers: dict[str, Callable[[TypedPart], None]] = {
            "start": self._message.start,
            "start-step": self._step,
            "finish-step": self._finish_step,
            "reset-step": self._reset_step,
            "message-metadata": self._message.metadata,
            "text-start": self._blocks.start,
            "text-delta": self._blocks.delta,
            "text-end": self._blocks.end,
            "reasoning-start": self._blocks.start,
            "reasoning-delta": self._blocks.delta,
            "reasoning-end": self._blocks.end,
            "tool-input-start": self._tools.input_start,
            "tool-input-delta": self._tools.input_delta,
            "tool-input-available": self._tools.input_available,
            "tool-input-error": self._tools.input_error,
            "tool-approval-request": self._keep,
            "tool-approval-response": self._keep,
            "tool-output-available": self._tools.output_available,
            "tool-output-error": self._tools.output_error,
            "tool-output-denied": self._tools.output_denied,
            "source-url": shown.source_url,
            "source-document": shown.source_document,
            "file": shown.file,
            "reasoning-file": shown.file,
            "custom": self._keep,
            "error": self._error_chunk,
            "finish": self._finish,
            "abort": self._abort,
        }

    @staticmethod
    def is_body(value: object) -> bool:
        """Return whether the value is an error that was sent in place of a stream.

        No document of this dialect contains a complete response.
        """
        return is_object(value) and not isinstance(value.get("type"), str) and _reports_error(value)

    @staticmethod
    def may_be_json_line(value: object) -> bool:  # noqa: ARG004
        """Return False, because no document of this dialect contains a complete response."""
        return False

    @staticmethod
    def is_error_body(value: object) -> bool:
        """Return whether the body of a response reports an error.

        Called for a body that is not an event stream and matches no dialect.
        """
        return is_object(value) and (_reports_error(value) or is_bare(value))

    @staticmethod
    def has_usable_data(value: object) -> bool:
        """Return whether a document that follows a broken document has usable content or reports an error."""
        if not is_object(value):
            return False
        kind = value.get("type")
        return (isinstance(kind, str) and kind in _RECOVERED) or _reports_error(value)

    @staticmethod
    def is_without_output(value: object) -> bool:
        """Return whether the chunk is a transient `data-*` chunk, which does not belong to the response."""
        kind = value.get("type") if is_object(value) else None
        return is_object(value) and isinstance(kind, str) and kind.startswith(_DATA) and value.get("transient") is True

    def decode(self, payload: Payload, event: str, *, recovered: bool = False) -> None:
        """Decode a JSON payload. `recovered`: whether the payload follows a broken document."""
        value: object = payload.value
        name = None if event == "message" else event
        if not is_object(value):
            self._reject(name, payload)
            return
        notes = Anomalies(self._out, self._assembler, payload, (), _is_read)
        kind = value.get("type")
        if not isinstance(kind, str):
            if _reports_error(value) or event == "error":
                self._error(_error_of(payload, value), payload, notes)
            else:
                self._reject(name, payload)
            return
        handler = self._data if kind.startswith(_DATA) else self._handlers.get(kind)
        chunk = TypedPart(payload, value, kind, name, notes, _SCHEMA)
        if handler is None:
            if is_problem(value):
                self._error(_error_of(payload, value), payload, notes)
            else:
                self._reject(name, payload)
            return
        if recovered and kind not in _RECOVERED:
            self._unknown(chunk)
            return
        if not _CLIENTS.suit(kind, value):
            self._out.leave_out("member_type")  # `useChat` ends the stream here
        if kind not in _FRAMES:
            self._message.emit_start()
        handler(chunk)
        notes.report()

    def marker(self) -> None:
        """Handle `[DONE]`, which ends the stream.

        The SDK also sends `[DONE]` after an abort; the response then stays incomplete.
        """
        self._message.flush()
        if not self._aborted:
            self._assembler.done()
        self.ended = True

    def text(self, text: str) -> None:
        """Report a payload that is not JSON as an upstream error."""
        self.flush()
        error = text_error(text)
        self._assembler.upstream_error(error.code, error.kind, error.message, text.encode())

    def flush(self) -> None:
        """Emit the message metadata before the stream closes."""
        self._message.flush()

    # Chunks around the content

    def _step(self, chunk: TypedPart) -> None:
        """Emit the metadata of a chunk that begins or ends a step. The chunk contains no other data."""
        members = chunk.worth_keeping()
        if members is not None:
            self._assembler.choice_metadata(0, members)

    def _finish_step(self, chunk: TypedPart) -> None:
        """Handle the end of a step. The next step may use the ids of this step's text and reasoning blocks again."""
        self._step(chunk)
        self._assembler.forget_addresses(0)
        self._blocks.forget()

    def _reset_step(self, chunk: TypedPart) -> None:
        """Discard the output of a step, because the step is retried."""
        self._step(chunk)
        self._assembler.restart_step(0)
        self._blocks.forget()

    def _finish(self, chunk: TypedPart) -> None:
        self._message.emit_start()
        self._message.metadata(chunk)
        reason, members = chunk.descriptive_string("finishReason"), chunk.metadata()
        if members is not None:
            self._assembler.choice_metadata(0, members)
        if reason is not None:
            chunk.notes.report()
            self._assembler.finish(0, reason)

    def _abort(self, chunk: TypedPart) -> None:
        """Handle an abort by the user. The response is truncated, and no finish reason can complete it."""
        self._unknown(chunk)
        self._aborted = True
        self._assembler.cut()

    # Other chunks

    def _data(self, chunk: TypedPart) -> None:
        """Emit an application-defined part of the message, or an unknown event if the part is transient.

        A part replaces an earlier part with the same type and id.
        """
        if chunk.flag("transient"):
            self._unknown(chunk)
            return
        identity = chunk.identity("id")
        key = None if identity is None else f"{chunk.kind}\n{identity}"
        self._assembler.kept_unknown(0, chunk.event, chunk.raw, key)

    def _keep(self, chunk: TypedPart) -> None:
        self._assembler.kept_unknown(0, chunk.event, chunk.raw)

    def _reject(self, event: str | None, payload: Payload) -> None:
        """Emit an unknown payload.

        Repair removes the payload, because `useChat` ends the stream at a chunk that the protocol does not define.
        """
        self._out.leave_out("unknown_chunk")
        self._assembler.unknown(event, payload.text.encode())

    def _unknown(self, chunk: TypedPart) -> None:
        self._assembler.unknown(chunk.event, chunk.raw)

    def _error_chunk(self, chunk: TypedPart) -> None:
        self._error(_error_of(chunk.payload, chunk.value), chunk.payload, chunk.notes)

    def _error(self, error: ErrorFields, payload: Payload, notes: Anomalies) -> None:
        self.flush()
        error = error.cleaned(notes.clean)
        notes.report()
        self._assembler.upstream_error(error.code, error.kind, error.message, payload.text.encode())


def _reports_error(value: Mapping[str, Any]) -> bool:
    """Return whether an object reports an error.

    An object reports an error if it has an `error` member or a message with a code. An object without a type also
    reports an error if it has another known error shape.
    """
    if value.get("error") is not None or (value.get("message") is not None and value.get("code") is not None):
        return True
    return is_problem(value) or (not isinstance(value.get("type"), str) and reports_failure(value))


def _error_of(payload: Payload, value: Mapping[str, Any]) -> ErrorFields:
    """Return the error in a chunk. An error chunk should contain only `errorText`, but gateways send other shapes."""
    if value.get("errorText") is not None:
        return ErrorFields(None, None, read_error(payload, ("errorText",), value["errorText"]).message)
    if value.get("error") is not None:
        return read_error(payload, ("error",), value["error"])
    fields = read_error(payload, (), value)
    return ErrorFields(fields.code, None if value.get("type") == "error" else fields.kind, fields.message)


def _is_read(path: Path) -> bool:
    """Return whether the decoder reads the member at `path` in a chunk.

    Only duplicates of members that the decoder reads are reported.
    """
    return len(path) == 1 and path[0] in _SCHEMA.read
