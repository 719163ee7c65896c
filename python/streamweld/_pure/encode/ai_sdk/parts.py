"""Writes language-model stream parts of the AI SDK (LanguageModelV4StreamPart): one `data:` event per part, without a
terminal marker.

Like the SDK's own providers, this encoder uses one id per call in `tool-input-start`, `-delta`, `-end` and `tool-call`,
and sends each of these parts once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld._pure.encode.ai_sdk.common import OCTETS, TRUE, AiSdk
from streamweld._pure.encode.common.encode_context import arguments_of
from streamweld._pure.encode.common.finish import finish_word
from streamweld._pure.encode.common.writer import compact_json, members, quoted

if TYPE_CHECKING:
    from streamweld._pure.encode.common.finish import Fault
    from streamweld._pure.encode.common.sequential_blocks import Block
    from streamweld._pure.encode.common.usage import Counts
    from streamweld.events import File, Finished, ResponseStarted, ToolCall, ToolResult

__all__ = ["AiSdkParts"]

_YEARS: Final = range(-62_135_596_800, 253_402_300_800)  # Unix times from the start of year 1 to the end of year 9999
_DAY: Final = 86_400


class AiSdkParts(AiSdk):
    """Writes `stream-start`, the parts, and `finish`."""

    target = "ai-sdk-parts"

    # Opening and ending

    def write_start(self, started: ResponseStarted) -> None:
        self.context.losses.metadata(started)
        self.frame("stream-start", warnings="[]")
        identity = quoted(started.id) if started.id else None
        model = quoted(started.model) if started.model else None
        timestamp = None if started.created is None else _timestamp(started.created)
        if identity or model or timestamp:
            self.frame("response-metadata", id=identity, timestamp=timestamp, modelId=model)

    def write_end(self, word: str, finished: Finished, counts: Counts | None) -> None:
        if self.context.passed.finished:
            return
        self.refuse_cut(finished.finish_reason)
        # For a source in the same dialect, `raw_reason` is the unified reason and is not repeated as `raw`.
        raw = None if finished.raw_reason is None or self.context.passed.own else quoted(finished.raw_reason)
        self._finish(word, raw, counts)

    def write_fault(self, fault: Fault, counts: Counts | None) -> None:
        if not self.opened:
            self.frame("stream-start", warnings="[]")
        self.blocks.abandon()
        sent = None if fault.sent is None else quoted(fault.sent)
        error = members(message=quoted(fault.message), type=quoted(fault.type), code=quoted(fault.code), detail=sent)
        self.frame("error", error=error)
        self._finish(finish_word(self.target, "error") or "error", None, counts)

    def broken_off(self, block: Block) -> None:
        if block.kind == "call":
            self.call_end(block.call_id)
        else:
            self.close(block)

    def _finish(self, word: str, raw: str | None, counts: Counts | None) -> None:
        reason = members(unified=quoted(word), raw=raw)
        self.frame("finish", finishReason=reason, usage=_usage(counts))

    # Calls

    def call_start(self, call_id: str, name: str, executed: str | None) -> None:
        self.frame("tool-input-start", id=quoted(call_id), toolName=quoted(name), providerExecuted=executed)

    def call_delta(self, call_id: str, text: str) -> None:
        self.frame("tool-input-delta", id=quoted(call_id), delta=quoted(text))

    def call_end(self, call_id: str) -> None:
        self.frame("tool-input-end", id=quoted(call_id))

    def call_whole(self, call: ToolCall, text: str, metadata: str | None) -> None:
        self._call(call, text, None, metadata)

    def call_refused(self, call: ToolCall, reason: str) -> None:  # noqa: ARG002
        self._call(call, arguments_of(call), TRUE, None)

    def _call(self, call: ToolCall, text: str, invalid: str | None, metadata: str | None) -> None:
        self.frame(
            "tool-call",
            toolCallId=quoted(call.call_id),
            toolName=quoted(call.name),
            input=quoted(text),
            providerExecuted=TRUE if call.provider_executed else None,
            invalid=invalid,
            providerMetadata=metadata,
        )

    # Sources, files and results

    def write_result(self, result: ToolResult, call: ToolCall) -> None:
        self.frame(
            "tool-result",
            toolCallId=quoted(call.call_id),
            toolName=quoted(call.name),
            result="{}" if result.output is None else compact_json(result.output),  # the schema does not allow null
            isError=TRUE if result.is_error else None,
        )

    def write_url(self, url: str, title: str | None) -> None:
        quoted_title = quoted(title) if title else None
        self.frame(
            "source", sourceType='"url"', id=quoted(self.context.mint.new("src")), url=quoted(url), title=quoted_title
        )

    def write_document(self, media_type: str, title: str, filename: str | None) -> None:
        self.frame(
            "source",
            sourceType='"document"',
            id=quoted(self.context.mint.new("src")),
            mediaType=quoted(media_type),
            title=quoted(title),
            filename=quoted(filename) if filename else None,
        )

    def write_file(self, file: File) -> None:
        # Specification V4 puts `data` or `url` in a nested object, which @ai-sdk/gateway reads. V3 cannot represent a
        # URL.
        if file.data is not None:
            data = members(type='"data"', data=quoted(file.data))
        else:
            data = members(type='"url"', url=quoted(file.url or ""))
        self.frame("file", mediaType=quoted(file.media_type or OCTETS), data=data)


def _usage(counts: Counts | None) -> str:
    if counts is None:
        return '{"inputTokens":{},"outputTokens":{}}'
    fresh = plain = None
    if counts.input is not None and (counts.cached is not None or counts.cache_write is not None):
        fresh = max(0, counts.input - (counts.cached or 0) - (counts.cache_write or 0))
    if counts.output is not None and counts.reasoning is not None:
        plain = max(0, counts.output - counts.reasoning)
    given = members(
        total=_number(counts.input),
        noCache=_number(fresh),
        cacheRead=_number(counts.cached),
        cacheWrite=_number(counts.cache_write),
    )
    made = members(total=_number(counts.output), text=_number(plain), reasoning=_number(counts.reasoning))
    return members(inputTokens=given, outputTokens=made)


def _number(count: int | None) -> str | None:
    return None if count is None else str(count)


def _timestamp(seconds: int) -> str | None:
    """Format a time as JavaScript's `toISOString` does. Return None for years that JavaScript formats differently."""
    if seconds not in _YEARS:
        return None
    days, rest = divmod(seconds, _DAY)
    # Years are counted from 0000-03-01 and begin in March, so that the leap day is the last day of a year.
    era, day = divmod(days + 719_468, 146_097)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    year += era * 400 + (month > 9)
    month = month + 3 if month < 10 else month - 9
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f'"{year:04}-{month:02}-{day + 1:02}T{clock}.000Z"'
