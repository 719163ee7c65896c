"""Writes Gemini `streamGenerateContent` chunks: parts as they come, calls whole, reasons and usage in the last chunk.

Knows this dialect's wire, and of the source only its events. There is no marker: a stream that ends without a reason is
a cut one, and an unfinished answer ends with `{"error":…}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamweld._pure.encode.common.finish import CUT, fault_of, finish_word, own_word
from streamweld._pure.encode.common.part_details import Told
from streamweld._pure.encode.common.provider_metadata import is_genuine
from streamweld._pure.encode.common.usage import neutral
from streamweld._pure.encode.common.writer import members, quoted, spliced
from streamweld.events import (
    File,
    Finished,
    ReasoningDelta,
    ReasoningDone,
    ReasoningStarted,
    RefusalDelta,
    RefusalDone,
    RefusalStarted,
    ResponseStarted,
    Source,
    TextDelta,
    TextDone,
    TextStarted,
    ToolCall,
    ToolCallStarted,
    ToolResult,
    Unknown,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.encode.common.finish import Ending, Fault
    from streamweld.events import Event

__all__ = ["Gemini"]

_Delta: TypeAlias = TextDelta | ReasoningDelta | RefusalDelta
_Done: TypeAlias = TextDone | ReasoningDone | RefusalDone

_TARGET: Final = "gemini"
_PROVIDER: Final = "google"
_MALFORMED: Final = "MALFORMED_FUNCTION_CALL"
# Reasons that say nothing of a call that is no object.
_HIDING: Final = frozenset({"stop", "tool_calls", "other"})
_ANY_TYPE: Final = "application/octet-stream"


class Gemini:
    """One answer, with all its candidates."""

    def __init__(self, job: EncodeContext) -> None:
        self._job = job
        self._tail: str | None = None  # the members that stand last in every chunk; made when the first is written
        self._started: ResponseStarted | None = None
        self._candidates: set[int] = set()  # those that said something
        self._malformed: set[int] = set()  # those with a call that could not be written
        self._finished: dict[int, str] = {}
        self._raw: dict[int, str | None] = {}  # as the source's own word was
        self._told: dict[int, Told] = {}  # of the parts that are open
        self._usage: Usage | None = None
        self._take: Mapping[type[Any], Callable[[Any], None]] = {
            ResponseStarted: self._begin,
            TextStarted: self._open,
            TextDelta: self._delta,
            TextDone: self._text_done,
            ReasoningStarted: self._open,
            ReasoningDelta: self._delta,
            ReasoningDone: self._reasoning_done,
            RefusalStarted: self._open,
            RefusalDelta: self._delta,
            RefusalDone: self._rest,
            ToolCallStarted: self._open,
            ToolCall: self._call,
            ToolResult: self._result,
            Source: self._source,
            File: self._file,
            Usage: self._count,
            Finished: self._finish,
            Unknown: self._unknown,
        }

    def event(self, event: Event) -> None:
        """Write what the event brings."""
        handler = self._take.get(type(event))
        if handler is not None:
            if not isinstance(event, ToolCall | ReasoningDone):
                self._job.losses.metadata(event)
            handler(event)

    def end(self, ending: Ending) -> None:
        """The last chunk, with every reason; or the error, and nothing behind it."""
        fault = ending.fault
        if fault is None and (ending.completeness == "truncated" or not self._finished):
            fault = fault_of(CUT)
        if fault is None and self._candidates - self._finished.keys():
            fault = fault_of(CUT)
        if fault is None and None in (self._word(index) for index in self._finished):
            fault = fault_of("finish")
        if fault is not None:
            self._fail(fault)
            return
        ends = [
            f'{{"finishReason":{quoted(self._word(index) or "")},"index":{index}}}'
            for index in sorted(self._finished.keys() - self._job.passed.finished)
        ]
        counts = None if self._job.passed.counted else self._counts()
        if ends or counts is not None:
            self._chunk(",".join(ends), counts)

    # Chunks

    def _begin(self, started: ResponseStarted) -> None:
        self._started = self._started or started

    def _chunk(self, candidates: str, usage: str | None = None) -> None:
        if self._tail is None:
            started = self._started or ResponseStarted()
            self._tail = ""
            if started.model:
                self._tail += f',"modelVersion":{quoted(started.model)}'
            if started.id:
                self._tail += f',"responseId":{quoted(started.id)}'
        counted = "" if usage is None else f',"usageMetadata":{usage}'
        self._job.frames.data(f'{{"candidates":[{candidates}]{counted}{self._tail}}}')

    def _part(self, index: int, part: str) -> None:
        self._candidates.add(index)
        self._chunk(f'{{"content":{{"parts":[{part}],"role":"model"}},"index":{index}}}')

    def _fail(self, fault: Fault) -> None:
        sent = None if fault.sent is None else f'[{{"detail":{quoted(fault.sent)}}}]'
        said = members(code="500", message=quoted(fault.message), status='"INTERNAL"', details=sent)
        self._job.frames.data(f'{{"error":{said}}}')

    # Text

    def _open(self, event: TextStarted | ReasoningStarted | RefusalStarted | ToolCallStarted) -> None:
        self._candidates.add(event.choice)

    def _delta(self, event: _Delta) -> None:
        if event.text:
            self._told.setdefault(event.part, Told()).add(event.text)
            self._say(event, event.text)

    def _rest(self, event: _Done) -> None:
        rest = self._told.pop(event.part, Told()).rest(event.text)
        if rest is None:
            self._job.losses.note("text_corrected")
        elif rest:
            self._say(event, rest)

    def _say(self, event: _Delta | _Done, text: str) -> None:
        thought = isinstance(event, ReasoningDelta | ReasoningDone)
        if isinstance(event, RefusalDelta | RefusalDone):
            self._job.losses.note("refusal")
        self._part(event.choice, members(text=quoted(text), thought="true" if thought else None))

    def _text_done(self, event: TextDone) -> None:
        self._rest(event)
        signature = (event.provider_metadata or {}).get("thoughtSignature")
        if self._job.passed.own and isinstance(signature, str):
            self._part(event.choice, members(text='""', thoughtSignature=quoted(signature)))
        if event.annotations:
            self._job.losses.note("sources")

    def _reasoning_done(self, event: ReasoningDone) -> None:
        self._rest(event)
        signature = self._signature(event)
        if signature is not None:
            self._part(event.choice, members(text='""', thought="true", thoughtSignature=signature))
        elif event.signature:
            self._job.losses.note("reasoning_signature")
        if event.encrypted_content:
            self._job.losses.note("encrypted_reasoning")
        if event.kind == "redacted" and not event.text:
            self._job.losses.note("redacted_reasoning")

    # Calls

    def _call(self, call: ToolCall) -> None:
        losses = self._job.losses
        self._candidates.add(call.choice)
        if call.provider_executed:
            losses.note("server_tool")
        elif not call.name or not call.call_id:
            losses.note("nameless_call")
        elif call.state == "incomplete":
            losses.note("cut_call")
        elif call.state not in ("complete", "empty"):
            losses.note("invalid_call")
            self._malformed.add(call.choice)
        else:
            if call.custom:
                losses.note("custom_call")
                arguments = f'{{"input":{quoted(call.arguments)}}}'
            else:
                arguments = spliced(call.arguments)
            wanted = members(id=quoted(call.call_id), name=quoted(call.name), args=arguments)
            self._part(call.choice, members(functionCall=wanted, thoughtSignature=self._signature(call)))
            return
        losses.metadata(call)

    def _signature(self, event: ToolCall | ReasoningDone) -> str | None:
        """What Google asks back with the part, if Google made it; all its other metadata is lost."""
        metadata: Mapping[str, Any] = event.provider_metadata or {}
        if self._job.passed.own or (self._job.carries and isinstance(event, ReasoningDone)):
            sent = event.signature if isinstance(event, ReasoningDone) else metadata.get("thoughtSignature")
            return quoted(sent) if isinstance(sent, str) and sent else None
        if not metadata:
            return None
        if not is_genuine(self._job, _PROVIDER, metadata):
            self._job.losses.metadata(event)
            return None
        own: Mapping[str, Any] = metadata[_PROVIDER]
        signature = own.get("thoughtSignature")
        if len(metadata) > 1 or own.keys() - {"thoughtSignature"}:
            self._job.losses.metadata(event)
        return quoted(signature) if isinstance(signature, str) else None

    def _result(self, _: ToolResult) -> None:
        self._job.losses.note("server_tool")

    # The rest

    def _source(self, _: Source) -> None:
        self._job.losses.note("sources")

    def _file(self, event: File) -> None:
        kind = None if event.media_type is None else quoted(event.media_type)
        if event.data is not None:
            held = members(mimeType=kind or quoted(_ANY_TYPE), data=quoted(event.data))
            self._part(event.choice, members(inlineData=held))
        elif event.url is not None:
            self._part(event.choice, members(fileData=members(mimeType=kind, fileUri=quoted(event.url))))
        else:
            self._job.losses.note("files")

    def _unknown(self, _: Unknown) -> None:
        self._job.losses.note("unknown")

    def _count(self, usage: Usage) -> None:
        self._usage = usage
        if usage.cache_write_tokens:
            self._job.losses.note("usage_detail")

    def _finish(self, event: Finished) -> None:
        self._candidates.add(event.choice)
        self._finished[event.choice] = event.finish_reason
        self._raw[event.choice] = own_word(_TARGET, event)

    def _word(self, index: int) -> str | None:
        reason = self._finished[index]
        if index in self._malformed and reason in _HIDING:
            return _MALFORMED
        word = finish_word(_TARGET, reason)
        return (self._raw.get(index) or word) if self._job.passed.own else word

    def _counts(self) -> str | None:
        """`candidatesTokenCount` is what the answer is without its thoughts."""
        if self._usage is None:
            return None
        counts = neutral(self._usage, self._job.source)
        if counts.is_blank:
            return None
        answer = None if counts.output is None else max(0, counts.output - (counts.reasoning or 0))
        return members(
            promptTokenCount=_number(counts.input),
            candidatesTokenCount=_number(answer),
            totalTokenCount=_number(counts.total),
            cachedContentTokenCount=_number(counts.cached),
            thoughtsTokenCount=_number(counts.reasoning),
        )


def _number(count: int | None) -> str | None:
    return None if count is None else str(count)
