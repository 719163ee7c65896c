"""Writes Messages streams: `message_start`, sequential blocks with consecutive indexes, `message_delta`,
`message_stop`; or an `error` event, after which nothing follows.

The usage and stop reason that the upstream sent at its end go into `message_delta`; Anthropic's own clients merge that
event into the message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.encode.common.encode_context import arguments_of
from streamweld._pure.encode.common.provider_metadata import is_genuine
from streamweld._pure.encode.common.sequential_answer import SequentialAnswer
from streamweld._pure.encode.common.sequential_blocks import Block
from streamweld._pure.encode.common.writer import members, quoted
from streamweld.events import File, ReasoningDone, Source, TextDone

if TYPE_CHECKING:
    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.encode.common.finish import Fault
    from streamweld._pure.encode.common.sequential_blocks import Beside
    from streamweld._pure.encode.common.usage import Counts
    from streamweld.events import Finished, ResponseStarted, ToolCall

__all__ = ["Anthropic"]


class Anthropic(SequentialAnswer):
    """Writes one message."""

    target = "anthropic"
    corrects = False  # `content_block_stop` has no content
    runs_calls = False  # Anthropic's server tools have their own block types
    side_by_side = False  # official clients track one open block, and a stop ends the latest block

    def __init__(self, context: EncodeContext) -> None:
        super().__init__(context)
        self._index = -1  # index of the latest block
        self._at: dict[int, int] = {}  # index of each open block, by part

    # The message

    def write_start(self, started: ResponseStarted) -> None:
        self.context.losses.metadata(started)
        kept = started.id and (self.context.passed.own or started.id.startswith("msg_"))
        identity = started.id if started.id and kept else self.context.mint.new("msg")
        message = members(
            id=quoted(identity),
            type='"message"',
            role='"assistant"',
            model=quoted(started.model or "unknown"),
            content="[]",
            stop_reason="null",
            stop_sequence="null",
            usage='{"input_tokens":0,"output_tokens":0}',
        )
        self._frame("message_start", message=message)

    def write_end(self, word: str, finished: Finished, counts: Counts | None) -> None:  # noqa: ARG002
        self._leave()
        if not self.context.passed.finished:
            delta = members(stop_reason=quoted(word), stop_sequence="null")
            self._frame("message_delta", delta=delta, usage=self._usage(counts))
        self._frame("message_stop")

    def write_fault(self, fault: Fault, counts: Counts | None) -> None:  # noqa: ARG002
        """Write the error.

        Open blocks stay open, because some clients run a call when they receive its `content_block_stop`.
        """
        kind = fault.sent_type if self.context.passed.own else None
        sent = None if fault.sent is None else quoted(fault.sent)
        self._frame(
            "error", error=members(type=quoted(kind or "api_error"), message=quoted(fault.message), detail=sent)
        )

    def broken_off(self, block: Block) -> None:
        """Write nothing, because the error event shows that the response ended inside the block."""

    def _frame(self, kind: str, **fields: str | None) -> None:
        self.context.frames.named(kind, members(type=quoted(kind), **fields))

    def _usage(self, counts: Counts | None) -> str:
        if counts is None:
            return '{"output_tokens":0}'
        fresh = counts.input
        if fresh is not None:
            fresh -= (counts.cached or 0) + (counts.cache_write or 0)
        if counts.reasoning or (fresh is not None and fresh < 0):
            self.context.losses.note("usage_detail")
        return members(
            input_tokens=_number(None if fresh is None else max(0, fresh)),
            cache_creation_input_tokens=_number(counts.cache_write),
            cache_read_input_tokens=_number(counts.cached),
            output_tokens=str(counts.output or 0),
        )

    # Blocks

    def open(self, block: Block) -> None:
        done = block.done
        if block.kind == "call":
            self._start_call(block, block.provider_executed)
        elif block.kind != "reasoning":
            if block.kind == "refusal":
                self.context.losses.note("refusal")
            self._start(block, '{"type":"text","text":""}')
        elif isinstance(done, ReasoningDone) and done.encrypted_content and not done.text:
            block.metadata_written = True
            self._start(block, members(type='"redacted_thinking"', data=quoted(done.encrypted_content)))
        else:
            self._start(block, '{"type":"thinking","thinking":"","signature":""}')

    def piece(self, block: Block, text: str) -> None:
        if block.kind == "call":
            self._delta(block.part, members(type='"input_json_delta"', partial_json=quoted(text)))
        elif block.kind == "reasoning":
            self._delta(block.part, members(type='"thinking_delta"', thinking=quoted(text)))
        else:
            self._delta(block.part, members(type='"text_delta"', text=quoted(text)))

    def close(self, block: Block) -> None:
        done = block.done
        if done is None and block.call is None:
            block.mark = "broken"
        elif isinstance(done, ReasoningDone) and done.signature and self._is_signed(block, done):
            block.metadata_written = True
            self._delta(block.part, members(type='"signature_delta"', signature=quoted(done.signature)))
        self._stop(block.part)

    def _is_signed(self, block: Block, done: ReasoningDone) -> bool:
        """Return True if the signature matches the block.

        If the block was interrupted, the signature does not match the text.
        """
        whole = block.mark != "broken" or self.context.carries
        return not block.metadata_written and whole and self._is_genuine(done)

    def _is_genuine(self, done: ReasoningDone) -> bool:
        if self.context.passed.own or self.context.carries:
            return True
        return is_genuine(self.context, "anthropic", done.provider_metadata)

    def over(self, block: Block) -> None:
        done, losses = block.done, self.context.losses
        if isinstance(done, ReasoningDone):
            if done.signature and not block.metadata_written:
                losses.note("reasoning_signature")
            if done.encrypted_content and not block.metadata_written:
                losses.note("encrypted_reasoning")
            if self.context.passed.own or not self._is_genuine(done):
                losses.metadata(done)
        elif done is not None:
            losses.metadata(done)
        if isinstance(done, TextDone) and done.annotations:
            losses.note("sources")

    def is_worth(self, block: Block) -> bool:
        done = block.done
        if not isinstance(done, ReasoningDone) or block.out:
            return False
        return bool(done.signature or done.encrypted_content) and self._is_genuine(done)

    def _start(self, block: Block, content: str) -> None:
        index = block.sent
        if index is None or index <= self._index:
            index = self._index + 1
            while index in self.context.passed.announced:  # blocks without a part
                index += 1
        self._at[block.part] = index
        self._index = max(index, self._index)
        self._leave()
        self._frame("content_block_start", index=str(index), content_block=content)

    def _leave(self) -> None:
        """Stop a passed-through block that has no part, because another block follows."""
        passed = self.context.passed
        if passed.open_block is not None:
            self._frame("content_block_stop", index=str(passed.open_block))
            passed.open_block = None

    def _delta(self, part: int, delta: str) -> None:
        self._frame("content_block_delta", index=str(self._at[part]), delta=delta)

    def _stop(self, part: int) -> None:
        index = self._at.pop(part)
        if part not in self.context.passed.ended:
            self._frame("content_block_stop", index=str(index))

    # Calls

    def _start_call(self, block: Block, provider_executed: bool) -> None:
        kind = '"server_tool_use"' if provider_executed else '"tool_use"'
        self._start(block, members(type=kind, id=quoted(block.call_id), name=quoted(block.name), input="{}"))

    def close_call(self, call: ToolCall, text: str) -> bool:  # noqa: ARG002
        self._note_call(call)
        if call.state in ("incomplete", "open"):
            return False  # the end of the response decides whether the block may be closed
        self._stop(call.part if call.part in self._at else -1)
        return True

    def whole_call(self, call: ToolCall) -> None:
        self._note_call(call)
        text = members(input=quoted(call.arguments)) if call.custom else arguments_of(call)
        block = Block("call", call.call_id, call.name)
        self._start_call(block, call.provider_executed)
        if text:
            self._delta(block.part, members(type='"input_json_delta"', partial_json=quoted(text)))
        self._stop(block.part)

    def _note_call(self, call: ToolCall) -> None:
        losses = self.context.losses
        losses.metadata(call)
        if call.custom:
            losses.note("custom_call")
        if call.reason == "refused":
            losses.note("refused_call")
        elif call.state == "invalid":
            losses.note("invalid_call")

    # Sources, files and results

    def beside(self, event: Beside, call: ToolCall | None) -> None:  # noqa: ARG002
        if isinstance(event, Source):
            self.context.losses.note("sources")
        elif isinstance(event, File):
            self.context.losses.note("files")
        else:
            self.context.losses.note("server_tool")


def _number(count: int | None) -> str | None:
    return None if count is None else str(count)
