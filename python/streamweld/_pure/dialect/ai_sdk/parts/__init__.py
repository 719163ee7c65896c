"""Language-model stream parts of the AI SDK (provider specification V2, V3, V4, and `streamText`'s `fullStream`), as
JSON payloads, to wire deltas.

Knows every part type and what frames the others: the start, the steps, the finish. `finish` ends the stream. Knows no
parts of an answer, no identity of calls and no framing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.ai_sdk.blocks import BlockReader
from streamweld._pure.dialect.ai_sdk.part import Schema, TypedPart
from streamweld._pure.dialect.ai_sdk.parts.sources_files import error_of, is_complaint, read_file, read_source
from streamweld._pure.dialect.ai_sdk.parts.start import StartReader
from streamweld._pure.dialect.ai_sdk.parts.tools import ToolReader
from streamweld._pure.dialect.anomalies import Anomalies
from streamweld._pure.dialect.upstream_error import is_bare, text_error
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
_FRAMES = frozenset(_SPEC["frames"])  # what comes before, between and behind the content
_BEHIND_A_STEP = frozenset({"finish-step", "finish", "raw"})  # what may follow the last step
_RECOVERED = frozenset(_SPEC["recovered"])  # from behind a broken document: only text, finish, usage and errors count


class AiSdkPartsDecoder:
    """One stream's decoder."""

    __slots__ = ("_assembler", "_blocks", "_handlers", "_out", "_reason", "_start", "_tools", "ended")

    def __init__(self, config: Mapping[str, Any], assembler: Assembler, out: Output) -> None:  # noqa: ARG002
        self._assembler = assembler
        self._out = out
        self._start = StartReader(assembler)
        # Providers say `delta`, `streamText` says `text`.
        self._blocks = BlockReader(assembler, ("delta", "text"))
        self._tools = ToolReader(assembler)
        self._reason: str | None = None  # of the last step, until something comes behind it
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
        """A whole answer is no document of this dialect; the error in its place may be one."""
        return is_object(value) and not isinstance(value.get("type"), str) and is_complaint(value)

    @staticmethod
    def is_line(value: object) -> bool:  # noqa: ARG004
        """Whether more whole answers may follow, a line each: there is no whole answer."""
        return False

    @staticmethod
    def is_complaint(value: object) -> bool:
        """Whether a body that no event stream is and no dialect claims is an error in a shape of its own."""
        return is_object(value) and (is_complaint(value) or is_bare(value))

    @staticmethod
    def is_of_use(value: object) -> bool:
        """Whether a document behind a broken one brings what may be taken from there."""
        if not is_object(value):
            return False
        kind = value.get("type")
        return (isinstance(kind, str) and kind in _RECOVERED) or is_complaint(value)

    @staticmethod
    def is_note(value: object) -> bool:
        """A part that says nothing of the answer."""
        return is_object(value) and value.get("type") == "raw"

    def decode(self, payload: Payload, event: str, *, recovered: bool = False) -> None:
        """One payload that is JSON."""
        value: object = payload.value
        name = None if event == "message" else event
        if not is_object(value):
            self._assembler.unknown(name, payload.text.encode())
            return
        notes = Anomalies(self._out, self._assembler, payload, (), _is_read)
        kind = value.get("type")
        if not isinstance(kind, str):
            if is_complaint(value) or event == "error":
                self._error(error_of(payload, value), payload, notes)
            else:
                self._assembler.unknown(name, payload.text.encode())
            return
        handler = self._handlers.get(kind)
        part = TypedPart(payload, value, kind, name, notes, _SCHEMA)
        if handler is None or (recovered and kind not in _RECOVERED):
            self._unknown(part)
            return
        if kind not in _FRAMES:
            self._start.tell()
        if kind not in _BEHIND_A_STEP:
            self._reason = None
        handler(part)
        notes.tell()

    def marker(self) -> None:
        """`[DONE]` of a gateway: this dialect has none, but behind a finish reason nothing was to come."""
        if self._reason is not None:
            self.flush()
            self._assembler.finish(0, self._reason)
            self._assembler.done()
            self.ended = True

    def text(self, text: str) -> None:
        """A payload that is no JSON at all: an error in plain words."""
        self.flush()
        error = text_error(text)
        self._assembler.upstream_error(error.code, error.kind, error.message, text.encode())

    def flush(self) -> None:
        """The stream is about to close. The reason of a step is not that of the answer: the next one may be missing."""
        self._start.tell_if_seen()

    # What frames the content

    def _finish_step(self, part: TypedPart) -> None:
        """A step of `streamText`: its reason is the stream's only if nothing comes behind it; its ids come again."""
        self._usage(part, "usage")
        reason, metadata = self._reason_of(part)
        self._reason = reason
        if metadata is not None:
            self._assembler.choice_metadata(0, metadata)
        self._assembler.forget_addresses(0)
        self._blocks.forget()

    def _finish(self, part: TypedPart) -> None:
        """The terminal part. `totalUsage` of `streamText` is that of all steps."""
        self._start.tell()
        self._usage(part, "usage")
        self._usage(part, "totalUsage")
        reason, metadata = self._reason_of(part)
        if metadata is not None:
            self._assembler.choice_metadata(0, metadata)
        part.notes.tell()
        reason = reason or self._reason
        if reason is not None:
            self._assembler.finish(0, reason)
        self._assembler.done()
        self.ended = True

    def _reason_of(self, part: TypedPart) -> tuple[str | None, str | None]:
        """The unified reason; that of the provider goes along as metadata, beside what else the part says."""
        sent = part.value.get("finishReason")
        if is_object(sent):
            unified, provider = sent.get("unified"), sent.get("raw")
            reason = next((text for text in (unified, provider) if isinstance(text, str) and text.strip()), None)
            more = part.json("finishReason") if isinstance(provider, str) else None
            return None if reason is None else part.notes.clean(reason), part.metadata(("finishReason", more))
        return part.words("finishReason"), part.metadata()

    def _usage(self, part: TypedPart, key: str) -> None:
        usage = part.notes.an_object(part.value, (), key)
        if usage is not None:
            self._assembler.merge_usage(read_counts(usage, part.payload.raw(key), _COUNTS))

    def _abort(self, part: TypedPart) -> None:
        """The caller stopped it: what is open was cut, and there is no reason that would make it whole."""
        self._unknown(part)
        self._assembler.cut()

    # What is passed on

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
        self._start.tell_if_seen()
        error = error.cleaned(notes.clean)
        notes.tell()
        self._assembler.upstream_error(error.code, error.kind, error.message, payload.text.encode())


def _is_read(path: Path) -> bool:
    """Whether the decoder looks at the member at `path` of a part."""
    return len(path) == 1 and path[0] in _SCHEMA.read
