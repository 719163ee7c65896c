"""Decodes language-model stream parts of the AI SDK into wire deltas.

Supports provider specifications V2, V3, and V4, and the `fullStream` of `streamText`. Handles every part type,
including parts without content, such as `start-step` and `finish`. `finish` ends the stream. The assembler determines
which call a fragment belongs to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.ai_sdk.blocks import BlockReader
from streamweld._pure.dialect.ai_sdk.part import Schema, TypedPart
from streamweld._pure.dialect.ai_sdk.parts.sources_files import error_of, read_file, read_source, reports_error
from streamweld._pure.dialect.ai_sdk.parts.start import StartReader
from streamweld._pure.dialect.ai_sdk.parts.tools import ToolReader
from streamweld._pure.dialect.anomalies import Anomalies
from streamweld._pure.dialect.upstream_error import is_bare, is_problem, text_error
from streamweld._pure.dialect.usage_counts import counts_of, read_counts
from streamweld._pure.json.kinds import is_object
from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.dialect.upstream_error import ErrorFields
    from streamweld._pure.json.scanner import Path, Payload
    from streamweld._pure.model.output import Output

_SPEC = DIALECTS["ai-sdk-parts"]
_SCHEMA = Schema(_SPEC)
_COUNTS = counts_of(_SPEC["usage"])
_FRAMES = frozenset(_SPEC["frames"])  # types of parts without content
_AFTER_A_STEP = frozenset({"finish-step", "finish", "raw"})  # types that may follow the last step
_RECOVERED = frozenset(_SPEC["recovered"])  # types that are decoded even after a broken document


class AiSdkPartsDecoder:
    """Decodes the payloads of one stream."""

    __slots__ = ("_assembler", "_blocks", "_handlers", "_out", "_reason", "_start", "_tools", "ended")

    def __init__(self, config: Mapping[str, Any], assembler: Assembler, out: Output) -> None:  # noqa: ARG002
        self._assembler = assembler
        self._out = out
        self._start = StartReader(assembler)
        # The member that contains the text is `delta` in provider streams, `text` in `streamText`, and `textDelta` in
        # older releases.
        self._blocks = BlockReader(assembler, out, ("delta", "text", "textDelta"))
        self._tools = ToolReader(assembler)
        self._reason: str | None = None  # finish reason of the last step, until another part follows
        self.ended = False
        self._handlers: dict[str, Callable[[TypedPart], None]] = {
            "stream-start": self._start.opening,
            "start": self._start.opening,
            "start-step": self._start.opening,
            "response-metadata": self._start.response,
            "text-start": self._blocks.start,
            "text-delta": self._blocks.delta,
            "text-end": self._blocks.end,
            "reasoning-start": self._blocks.start,
            "reasoning-delta": self._blocks.delta,
            "reasoning-end": self._blocks.end,
            "tool-input-start": self._tools.input_start,
            "tool-input-delta": self._tools.input_delta,
            "tool-input-end": self._tools.input_end,
            "tool-call": self._tools.call,
            "tool-result": self._tools.result,
            "tool-error": self._tools.error,
            "tool-output-denied": self._tools.denied,
            "tool-approval-request": self._keep,
            "tool-approval-response": self._keep,
            "source": self._source,
            "file": self._file,
            "reasoning-file": self._file,
            "custom": self._keep,
            "finish-step": self._finish_step,
            "finish": self._finish,
            "abort": self._abort,
            "error": self._error_part,
            "raw": self._unknown,
        }

    @staticmethod
    def is_body(value: object) -> bool:
        """Return whether the value is an error that was sent in place of a stream.

        No document of this dialect contains a complete response.
        """
        return is_object(value) and not isinstance(value.get("type"), str) and reports_error(value)

    @staticmethod
    def may_be_json_line(value: object) -> bool:  # noqa: ARG004
        """Return False, because no document of this dialect contains a complete response."""
        return False

    @staticmethod
    def is_error_body(value: object) -> bool:
        """Return whether the body of a response reports an error.

        Called for a body that is not an event stream and matches no dialect.
        """
        return is_object(value) and (reports_error(value) or is_bare(value))

    @staticmethod
    def has_usable_data(value: object) -> bool:
        """Return whether a document that follows a broken document has usable content or reports an error."""
        if not is_object(value):
            return False
        kind = value.get("type")
        return (isinstance(kind, str) and kind in _RECOVERED) or reports_error(value)

    @staticmethod
    def is_without_output(value: object) -> bool:
        """Return whether the part has the type `raw`. A `raw` part does not belong to the response."""
        return is_object(value) and value.get("type") == "raw"

    def decode(self, payload: Payload, event: str, *, recovered: bool = False) -> None:
        """Decode a JSON payload. `recovered`: whether the payload follows a broken document."""
        value: object = payload.value
        name = None if event == "message" else event
        if not is_object(value):
            self._assembler.unknown(name, payload.text.encode())
            return
        notes = Anomalies(self._out, self._assembler, payload, (), _is_read)
        kind = value.get("type")
        if not isinstance(kind, str):
            if reports_error(value) or event == "error":
                self._error(error_of(payload, value), payload, notes)
            else:
                self._assembler.unknown(name, payload.text.encode())
            return
        handler = self._handlers.get(kind)
        part = TypedPart(payload, value, kind, name, notes, _SCHEMA)
        if handler is None and is_problem(value):
            self._error(error_of(payload, value), payload, notes)
            return
        if handler is None or (recovered and kind not in _RECOVERED):
            self._unknown(part)
            return
        if kind not in _FRAMES:
            self._start.emit()
        if kind not in _AFTER_A_STEP:
            self._reason = None
        handler(part)
        notes.report()

    def marker(self) -> None:
        """Handle a `[DONE]` that a gateway sends.

        The dialect does not define a `[DONE]` marker, so the marker ends the stream only after the finish reason of a
        step.
        """
        if self._reason is not None:
            self.flush()
            self._assembler.finish(0, self._reason)
            self._assembler.done()
            self.ended = True

    def text(self, text: str) -> None:
        """Report a payload that is not JSON as an upstream error."""
        self.flush()
        error = text_error(text)
        self._assembler.upstream_error(error.code, error.kind, error.message, text.encode())

    def flush(self) -> None:
        """Emit the start event before the stream closes.

        Do not emit the finish reason of the last step, because further steps may be missing.
        """
        self._start.emit_if_seen()

    # Parts around the content

    def _finish_step(self, part: TypedPart) -> None:
        """Handle the end of a `streamText` step.

        The step's finish reason becomes that of the stream only if no other part follows. The next step may reuse the
        block ids of this step.
        """
        self._usage(part, "usage")
        reason, metadata = self._reason_of(part)
        self._reason = reason
        if metadata is not None:
            self._assembler.choice_metadata(0, metadata)
        self._assembler.forget_addresses(0)
        self._blocks.forget()

    def _finish(self, part: TypedPart) -> None:
        """Handle the terminal part. `totalUsage` from `streamText` counts all steps."""
        self._start.emit()
        self._usage(part, "usage")
        self._usage(part, "totalUsage")
        reason, metadata = self._reason_of(part)
        if metadata is not None:
            self._assembler.choice_metadata(0, metadata)
        part.notes.report()
        reason = reason or self._reason
        if reason is not None:
            self._assembler.finish(0, reason)
        self._assembler.done()
        self.ended = True

    def _reason_of(self, part: TypedPart) -> tuple[str | None, str | None]:
        """Return the unified finish reason, and the part's metadata, including the provider's finish reason."""
        sent = part.value.get("finishReason")
        if is_object(sent):
            unified, provider = sent.get("unified"), sent.get("raw")
            reason = next((text for text in (unified, provider) if isinstance(text, str) and text.strip()), None)
            more = part.json("finishReason") if isinstance(provider, str) else None
            return None if reason is None else part.notes.clean(reason), part.metadata(("finishReason", more))
        return part.descriptive_string("finishReason"), part.metadata()

    def _usage(self, part: TypedPart, key: str) -> None:
        usage = part.notes.an_object(part.value, (), key)
        if usage is not None:
            self._assembler.merge_usage(read_counts(usage, part.payload.raw(key), _COUNTS))

    def _abort(self, part: TypedPart) -> None:
        """Handle an abort by the caller. The response is truncated, and no finish reason can complete it."""
        self._unknown(part)
        self._assembler.cut()

    # Other parts

    def _source(self, part: TypedPart) -> None:
        read_source(part, self._assembler)

    def _file(self, part: TypedPart) -> None:
        read_file(part, self._assembler)

    def _keep(self, part: TypedPart) -> None:
        self._assembler.kept_unknown(0, part.event, part.raw)

    def _unknown(self, part: TypedPart) -> None:
        self._assembler.unknown(part.event, part.raw)

    def _error_part(self, part: TypedPart) -> None:
        self._error(error_of(part.payload, part.value), part.payload, part.notes)

    def _error(self, error: ErrorFields, payload: Payload, notes: Anomalies) -> None:
        self._start.emit_if_seen()
        error = error.cleaned(notes.clean)
        notes.report()
        self._assembler.upstream_error(error.code, error.kind, error.message, payload.text.encode())


def _is_read(path: Path) -> bool:
    """Return whether the decoder reads the member at `path` in a part. Only duplicates of members that the decoder
    reads are reported.
    """
    return len(path) == 1 and path[0] in _SCHEMA.read
