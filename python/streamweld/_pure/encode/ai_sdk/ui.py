"""Writes the UI message stream of the AI SDK, version 1, which `useChat` reads. The written stream has one step and
ends with `[DONE]`.

The schema is strict: clients reject chunks with unknown members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.encode.ai_sdk.common import OCTETS, TRUE, AiSdk
from streamweld._pure.encode.common.encode_context import arguments_of
from streamweld._pure.encode.common.writer import compact_json, members, quoted, spliced

if TYPE_CHECKING:
    from streamweld._pure.encode.common.finish import Fault
    from streamweld._pure.encode.common.sequential_blocks import Block
    from streamweld._pure.encode.common.usage import Counts
    from streamweld.events import File, Finished, ResponseStarted, ToolCall, ToolResult

__all__ = ["AiSdkUi"]


class AiSdkUi(AiSdk):
    """Writes `start`, `start-step`, the chunks, `finish-step`, `finish`, and `[DONE]`."""

    target = "ai-sdk-ui"

    # Opening and ending

    def write_start(self, started: ResponseStarted) -> None:
        self.context.losses.metadata(started)
        if started.model is not None or started.created is not None:
            self.context.losses.note("metadata")
        self.frame("start", messageId=quoted(started.id or self.context.mint.new("msg")))
        self._step("start-step")

    def write_end(self, word: str, finished: Finished, counts: Counts | None) -> None:
        if self.context.passed.finished:
            self.context.frames.done()
            return
        self.refuse_cut(finished.finish_reason)
        self._step("finish-step")
        metadata = None
        if counts is not None and not counts.is_blank:
            if self.context.include_usage:
                metadata = members(usage=_usage(counts))
            else:
                self.context.losses.note("usage_detail")
        self.frame("finish", finishReason=quoted(word), messageMetadata=metadata)
        self.context.frames.done()

    def _step(self, kind: str) -> None:
        """Write a step chunk, unless the source has the same dialect and sends its own step chunks."""
        if not self.context.passed.own:
            self.frame(kind)

    def write_fault(self, fault: Fault, counts: Counts | None) -> None:  # noqa: ARG002
        self.blocks.abandon()
        self.frame("error", errorText=quoted(fault.message))
        self.context.frames.done()

    def broken_off(self, block: Block) -> None:
        """Leave the block open, because clients treat a part without an end as incomplete."""

    # Calls

    def call_start(self, call_id: str, name: str, executed: str | None) -> None:
        self.frame("tool-input-start", toolCallId=quoted(call_id), toolName=quoted(name), providerExecuted=executed)

    def call_delta(self, call_id: str, text: str) -> None:
        self.frame("tool-input-delta", toolCallId=quoted(call_id), inputTextDelta=quoted(text))

    def call_end(self, call_id: str) -> None:
        """Write nothing, because `tool-input-available` contains the complete input."""

    def call_whole(self, call: ToolCall, text: str, metadata: str | None) -> None:
        self.frame(
            "tool-input-available",
            toolCallId=quoted(call.call_id),
            toolName=quoted(call.name),
            input=text if call.custom else spliced(text),
            providerExecuted=TRUE if call.provider_executed else None,
            providerMetadata=metadata,
        )

    def call_refused(self, call: ToolCall, reason: str) -> None:
        self.frame(
            "tool-input-error",
            toolCallId=quoted(call.call_id),
            toolName=quoted(call.name),
            input=quoted(arguments_of(call)),
            errorText=quoted(f"invalid arguments: {reason}"),
            providerExecuted=TRUE if call.provider_executed else None,
        )

    # Sources, files and results

    def write_result(self, result: ToolResult, call: ToolCall) -> None:
        executed = TRUE if call.provider_executed else None
        call_id, output = quoted(call.call_id), result.output
        if result.is_error:
            quoted_title = output if isinstance(output, str) else compact_json(output)
            self.frame(
                "tool-output-error", toolCallId=call_id, errorText=quoted(quoted_title), providerExecuted=executed
            )
        else:
            output = compact_json(output)
            self.frame("tool-output-available", toolCallId=call_id, output=output, providerExecuted=executed)

    def write_url(self, url: str, title: str | None) -> None:
        quoted_title = quoted(title) if title else None
        self.frame("source-url", sourceId=quoted(self.context.mint.new("src")), url=quoted(url), title=quoted_title)

    def write_document(self, media_type: str, title: str, filename: str | None) -> None:
        self.frame(
            "source-document",
            sourceId=quoted(self.context.mint.new("src")),
            mediaType=quoted(media_type),
            title=quoted(title),
            filename=quoted(filename) if filename else None,
        )

    def write_file(self, file: File) -> None:
        media_type = file.media_type or OCTETS
        url = file.url if file.data is None else f"data:{media_type};base64,{file.data}"
        self.frame("file", url=quoted(url or ""), mediaType=quoted(media_type))


def _usage(counts: Counts) -> str:
    """Return the usage as a `LanguageModelUsage` object, which applications expect here."""
    fresh = plain = None
    if counts.input is not None and (counts.cached is not None or counts.cache_write is not None):
        fresh = max(0, counts.input - (counts.cached or 0) - (counts.cache_write or 0))
    if counts.output is not None and counts.reasoning is not None:
        plain = max(0, counts.output - counts.reasoning)
    given = members(
        noCacheTokens=_number(fresh),
        cacheReadTokens=_number(counts.cached),
        cacheWriteTokens=_number(counts.cache_write),
    )
    made = members(textTokens=_number(plain), reasoningTokens=_number(counts.reasoning))
    return members(
        inputTokens=_number(counts.input),
        inputTokenDetails=_details(given),
        outputTokens=_number(counts.output),
        outputTokenDetails=_details(made),
        totalTokens=_number(counts.total),
    )


def _details(text: str) -> str | None:
    return None if text == "{}" else text


def _number(count: int | None) -> str | None:
    return None if count is None else str(count)
