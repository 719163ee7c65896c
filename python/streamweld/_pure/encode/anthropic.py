"""Writes Messages streams: `message_start`, blocks with dense indexes one after the other, `message_delta`,
`message_stop`; or an `error` event, behind which nothing comes.

What upstream said at its end (the usage, why it ended) stands in `message_delta`, which Anthropic's own readers merge
into the message. Knows these events; knows no other dialect.
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
    """One message."""

    target = "anthropic"
    corrects = False  # content_block_stop says nothing
    runs_calls = False  # the blocks of its server tools are its own
    side_by_side = False  # official clients have one open block: what is stopped is the latest to them

    def __init__(self, job: EncodeContext) -> None:
        super().__init__(job)
        self._index = -1  # of the latest block
        self._at: dict[int, int] = {}  # part of an open block -> its index

    # The message

    def write_start(self, started: ResponseStarted) -> None:
        self.job.losses.metadata(started)
        kept = started.id and (self.job.passed.own or started.id.startswith("msg_"))
        identity = started.id if started.id and kept else self.job.mint.new("msg")
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
        if not self.job.passed.finished:
            delta = members(stop_reason=quoted(word), stop_sequence="null")
            self._frame("message_delta", delta=delta, usage=self._usage(counts))
        self._frame("message_stop")

    def write_fault(self, fault: Fault, counts: Counts | None) -> None:  # noqa: ARG002
        """What is open stays open: a reader that runs a call at its content_block_stop must not be told of one."""
        kind = fault.sent_type if self.job.passed.own else None
        sent = None if fault.sent is None else quoted(fault.sent)
        self._frame(
            "error", error=members(type=quoted(kind or "api_error"), message=quoted(fault.message), detail=sent)
        )

    def broken_off(self, block: Block) -> None:
        """Said by the error alone."""

    def _frame(self, kind: str, **fields: str | None) -> None:
        self.job.frames.named(kind, members(type=quoted(kind), **fields))

    def _usage(self, counts: Counts | None) -> str:
        if counts is None:
            return '{"output_tokens":0}'
        fresh = counts.input
        if fresh is not None:
            fresh -= (counts.cached or 0) + (counts.cache_write or 0)
        if counts.reasoning or (fresh is not None and fresh < 0):
            self.job.losses.note("usage_detail")
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
                self.job.losses.note("refusal")
            self._start(block, '{"type":"text","text":""}')
        elif isinstance(done, ReasoningDone) and done.encrypted_content and not done.text:
            block.told = True
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
            block.told = True
            self._delta(block.part, members(type='"signature_delta"', signature=quoted(done.signature)))
        self._stop(block.part)

    def _is_signed(self, block: Block, done: ReasoningDone) -> bool:
        """Whether a signature is that of the block: one that was broken in two is no longer what was signed."""
        whole = block.mark != "broken" or self.job.carries
        return not block.told and whole and self._is_genuine(done)

    def _is_genuine(self, done: ReasoningDone) -> bool:
        if self.job.passed.own or self.job.carries:
            return True
        return is_genuine(self.job, "anthropic", done.provider_metadata)

    def over(self, block: Block) -> None:
        done, losses = block.done, self.job.losses
        if isinstance(done, ReasoningDone):
            if done.signature and not block.told:
                losses.note("reasoning_signature")
            if done.encrypted_content and not block.told:
                losses.note("encrypted_reasoning")
            if self.job.passed.own or not self._is_genuine(done):
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
            while index in self.job.passed.announced:  # blocks that are no parts
                index += 1
        self._at[block.part] = index
        self._index = max(index, self._index)
        self._leave()
        self._frame("content_block_start", index=str(index), content_block=content)

    def _leave(self) -> None:
        """A block that passed, and is no part, is stopped where something else comes."""
        passed = self.job.passed
        if passed.standing is not None:
            self._frame("content_block_stop", index=str(passed.standing))
            passed.standing = None

    def _delta(self, part: int, delta: str) -> None:
        self._frame("content_block_delta", index=str(self._at[part]), delta=delta)

    def _stop(self, part: int) -> None:
        index = self._at.pop(part)
        if part not in self.job.passed.ended:
            self._frame("content_block_stop", index=str(index))

    # Calls

    def _start_call(self, block: Block, provider_executed: bool) -> None:
        kind = '"server_tool_use"' if provider_executed else '"tool_use"'
        self._start(block, members(type=kind, id=quoted(block.call_id), name=quoted(block.name), input="{}"))

    def close_call(self, call: ToolCall, text: str) -> bool:  # noqa: ARG002
        self._note_call(call)
        if call.state in ("incomplete", "open"):
            return False  # whether it may be closed is known at the end
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
        losses = self.job.losses
        losses.metadata(call)
        if call.custom:
            losses.note("custom_call")
        if call.reason == "refused":
            losses.note("refused_call")
        elif call.state == "invalid":
            losses.note("invalid_call")

    # Beside

    def beside(self, event: Beside, call: ToolCall | None) -> None:  # noqa: ARG002
        if isinstance(event, Source):
            self.job.losses.note("sources")
        elif isinstance(event, File):
            self.job.losses.note("files")
        else:
            self.job.losses.note("server_tool")


def _number(count: int | None) -> str | None:
    return None if count is None else str(count)
