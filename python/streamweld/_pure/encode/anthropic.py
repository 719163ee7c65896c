"""Writes Messages streams: `message_start`, blocks with dense indexes one after the other, `message_delta`,
`message_stop`; or an `error` event, behind which nothing comes.

What upstream said at its end (the usage, why it ended) stands in `message_delta`, which Anthropic's own readers merge
into the message. Knows these events; knows no other dialect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.encode.blocks import arguments_of
from streamweld._pure.encode.custody import is_genuine
from streamweld._pure.encode.sequential import Sequential
from streamweld._pure.encode.writer import members, quoted
from streamweld.events import File, ReasoningDone, Source, TextDone

if TYPE_CHECKING:
    from streamweld._pure.encode.blocks import Beside, Block
    from streamweld._pure.encode.finish import Fault
    from streamweld._pure.encode.job import Job
    from streamweld._pure.encode.usage import Counts
    from streamweld.events import Finished, ResponseStarted, ToolCall

__all__ = ["Anthropic"]


class Anthropic(Sequential):
    """One message."""

    target = "anthropic"
    corrects = False  # content_block_stop says nothing
    runs_calls = False  # the blocks of its server tools are its own

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._index = -1  # of the latest block

    # The message

    def write_start(self, started: ResponseStarted) -> None:
        self.job.losses.metadata(started)
        identity = started.id if started.id and started.id.startswith("msg_") else self.job.mint.new("msg")
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
        delta = members(stop_reason=quoted(word), stop_sequence="null")
        self._frame("message_delta", delta=delta, usage=self._usage(counts))
        self._frame("message_stop")

    def write_fault(self, fault: Fault, counts: Counts | None) -> None:  # noqa: ARG002
        """What is open stays open: a reader that runs a call at its content_block_stop must not be told of one."""
        self._frame("error", error=members(type='"api_error"', message=quoted(fault.message)))

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
            self._start_call(block.call_id, block.name)
        elif block.kind != "reasoning":
            if block.kind == "refusal":
                self.job.losses.note("refusal")
            self._start('{"type":"text","text":""}')
        elif isinstance(done, ReasoningDone) and done.encrypted_content and not done.text:
            block.told = True
            self._start(members(type='"redacted_thinking"', data=quoted(done.encrypted_content)))
        else:
            self._start('{"type":"thinking","thinking":"","signature":""}')

    def piece(self, block: Block, text: str) -> None:
        if block.kind == "call":
            self._delta(members(type='"input_json_delta"', partial_json=quoted(text)))
        elif block.kind == "reasoning":
            self._delta(members(type='"thinking_delta"', thinking=quoted(text)))
        else:
            self._delta(members(type='"text_delta"', text=quoted(text)))

    def close(self, block: Block) -> None:
        done = block.done
        if done is None and block.call is None:
            block.mark = "broken"
        elif isinstance(done, ReasoningDone) and done.signature and self._is_signed(block, done):
            block.told = True
            self._delta(members(type='"signature_delta"', signature=quoted(done.signature)))
        self._stop()

    def _is_signed(self, block: Block, done: ReasoningDone) -> bool:
        """Whether a signature is that of the block: one that was broken in two is no longer what was signed."""
        return not block.told and block.mark != "broken" and is_genuine(self.job, "anthropic", done.provider_metadata)

    def over(self, block: Block) -> None:
        done, losses = block.done, self.job.losses
        if isinstance(done, ReasoningDone):
            if done.signature and not block.told:
                losses.note("reasoning_signature")
            if done.encrypted_content and not block.told:
                losses.note("encrypted_reasoning")
            if not is_genuine(self.job, "anthropic", done.provider_metadata):
                losses.metadata(done)
        elif done is not None:
            losses.metadata(done)
        if isinstance(done, TextDone) and done.annotations:
            losses.note("sources")

    def is_worth(self, block: Block) -> bool:
        done = block.done
        if not isinstance(done, ReasoningDone) or block.out:
            return False
        return bool(done.signature or done.encrypted_content) and is_genuine(
            self.job, "anthropic", done.provider_metadata
        )

    def _start(self, block: str) -> None:
        self._index += 1
        self._frame("content_block_start", index=str(self._index), content_block=block)

    def _delta(self, delta: str) -> None:
        self._frame("content_block_delta", index=str(self._index), delta=delta)

    def _stop(self) -> None:
        self._frame("content_block_stop", index=str(self._index))

    # Calls

    def _start_call(self, call_id: str, name: str) -> None:
        self._start(members(type='"tool_use"', id=quoted(call_id), name=quoted(name), input="{}"))

    def close_call(self, call: ToolCall, text: str) -> bool:  # noqa: ARG002
        self._note_call(call)
        if call.state in ("incomplete", "open"):
            return False  # whether it may be closed is known at the end
        self._stop()
        return True

    def whole_call(self, call: ToolCall) -> None:
        self._note_call(call)
        text = members(input=quoted(call.arguments)) if call.custom else arguments_of(call)
        self._start_call(call.call_id, call.name)
        if text:
            self._delta(members(type='"input_json_delta"', partial_json=quoted(text)))
        self._stop()

    def _note_call(self, call: ToolCall) -> None:
        losses = self.job.losses
        losses.metadata(call)
        if call.custom:
            losses.note("custom_call")
        if call.state == "invalid":
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
