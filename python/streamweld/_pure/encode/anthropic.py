"""Writes Messages streams: `message_start`, blocks with consecutive indexes, `message_delta`, and `message_stop`. An
incomplete response ends with an `error` event, after which nothing follows.

If the source is also a Messages stream, content that streamweld's events cannot represent is copied as sent. Examples
are server tool results, citations, unknown blocks, and unknown members of the message.

The usage and the stop reason are written in `message_delta`, because they are not known before the end of the stream.
Anthropic's own clients merge `message_delta` into the message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._json import loads_raw
from streamweld._pure.encode.common.citations import read_citation
from streamweld._pure.encode.common.encode_context import arguments_of
from streamweld._pure.encode.common.extra_members import joined, size, writable
from streamweld._pure.encode.common.provider_metadata import is_genuine
from streamweld._pure.encode.common.sequential_answer import SequentialAnswer
from streamweld._pure.encode.common.sequential_blocks import Block, UnmodelledBlock
from streamweld._pure.encode.common.source_blocks import SourceBlocks
from streamweld._pure.encode.common.writer import compact_json, members, quoted, spliced
from streamweld._pure.model.unmodelled import (
    Annotated,
    BlockClosed,
    BlockDelta,
    BlockMembers,
    BlockOpened,
    Members,
    OtherEvent,
)
from streamweld.events import File, ReasoningDone, Source, TextDone

if TYPE_CHECKING:
    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.encode.common.finish import Fault
    from streamweld._pure.encode.common.sequential_blocks import StandalonePart
    from streamweld._pure.encode.common.usage import Counts
    from streamweld._pure.json.members import Raw
    from streamweld._pure.model.unmodelled import MembersOf, Unmodelled
    from streamweld.events import Finished, ResponseStarted, ToolCall

__all__ = ["Anthropic"]

# Usage members that the encoder writes from the normalized token counts.
_COUNTS = frozenset({"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"})
_DELTA_MEMBERS = ("stop_sequence", "stop_details")  # clients read these members only from the delta of `message_delta`
_LATE_MEMBERS = ("container",)  # other members of a message that clients also read from the delta of `message_delta`
_MAX_MERGED_SIZE = 4096  # maximum size of the members that are merged from several events, in bytes
_MOST_WAITING = 1 << 20  # maximum number of characters in the deltas of queued blocks


class Anthropic(SequentialAnswer):
    """The encoder for Messages streams. Each stream contains one message."""

    target = "anthropic"
    corrects = False  # `content_block_stop` has no content
    runs_calls = False  # Anthropic's server tools have their own block types
    side_by_side = False  # official clients track one open block, and a stop event ends the latest one
    cites_in_text = True
    writes_unmodelled = True

    def __init__(self, context: EncodeContext) -> None:
        super().__init__(context)
        self._index = -1  # index of the latest block
        self._at: dict[int, int] = {}  # index of each open block, by part number
        # Indexes of the latest block in the source and in the output. None after the block's `content_block_stop`.
        self._latest: tuple[int | None, int] | None = None
        self._bare: int | None = None  # index of the latest block, if that block has no part and is open
        self._waiting = 0  # number of characters in queued deltas
        self._members: dict[MembersOf, Raw] = {}  # unknown members that have not been written yet

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
            usage=joined('{"input_tokens":0,"output_tokens":0}', self._taken("start_usage", _COUNTS)),
        )
        message = joined(message, self._taken("message"))
        self._frame("message_start", message=message)

    def write_end(self, word: str, finished: Finished, counts: Counts | None) -> None:  # noqa: ARG002
        self._leave()
        if not self.context.passed.finished:
            extra = self._taken("delta")
            sequence = spliced(extra.pop("stop_sequence", "null"))
            delta = joined(members(stop_reason=quoted(word), stop_sequence=sequence), extra)
            extra = self._taken("end_usage", _COUNTS)
            usage = joined(self._usage(counts, is_detailed="output_tokens_details" in extra), extra)
            body = members(type='"message_delta"', delta=delta, usage=usage)
            self.context.frames.named("message_delta", joined(body, self._taken("end")))
        self.context.frames.named("message_stop", joined(members(type='"message_stop"'), self._taken("stop")))

    def write_fault(self, fault: Fault, counts: Counts | None) -> None:  # noqa: ARG002
        """Write the error, which ends the stream.

        Open blocks stay open, because some clients run a call when they receive its `content_block_stop`.
        """
        kind = fault.sent_type if self.context.passed.own else None
        sent = None if fault.sent is None else quoted(fault.sent)
        self._frame(
            "error", error=members(type=quoted(kind or "api_error"), message=quoted(fault.message), detail=sent)
        )

    def broken_off(self, block: Block) -> None:
        """Write nothing, because the error event alone shows that the response ended inside the block."""

    def _frame(self, kind: str, **fields: str | None) -> None:
        self.context.frames.named(kind, members(type=quoted(kind), **fields))

    def _usage(self, counts: Counts | None, *, is_detailed: bool) -> str:
        if counts is None:
            return '{"output_tokens":0}'
        fresh = counts.input
        if fresh is not None:
            fresh -= (counts.cached or 0) + (counts.cache_write or 0)
        if (counts.reasoning and not is_detailed) or (fresh is not None and fresh < 0):
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
            self._start(block, joined('{"type":"text","text":""}', block.members))
        elif isinstance(done, ReasoningDone) and done.encrypted_content and not done.text:
            block.metadata_written = True
            start = members(type='"redacted_thinking"', data=quoted(done.encrypted_content))
            self._start(block, joined(start, block.members))
        else:
            self._start(block, joined('{"type":"thinking","thinking":"","signature":""}', block.members))

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
        elif isinstance(done, TextDone) and self.context.passed.own:
            for annotation in done.annotations[block.cited :]:
                self._cite(block.part, compact_json(annotation))
        elif isinstance(done, TextDone):
            for annotation in done.annotations:
                citation = read_citation(annotation)
                if citation is not None:
                    block.cited += 1
                    self._cite(block.part, _page(citation.url, citation.title, citation.content))
        self._stop(block.part)

    def _is_signed(self, block: Block, done: ReasoningDone) -> bool:
        """Return True if the signature of a reasoning block can be written.

        The signature must come from Anthropic, unless it is written as a carrier, and must not have been written
        before. The signature of an interrupted block is written only in a carrier, because the signature covers the
        text of both blocks.
        """
        whole = block.mark != "broken" or self.context.carries
        return not block.metadata_written and whole and self._is_genuine(done)

    def _is_genuine(self, done: ReasoningDone) -> bool:
        if self.context.passed.own or self.context.carries:
            return True
        # In a Chat stream, `thinking` and `redacted` reasoning comes only from `thinking_blocks`, whose entries are
        # Messages blocks.
        if self.context.source == "chat" and done.kind in ("thinking", "redacted"):
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
        if isinstance(done, TextDone) and block.cited < len(done.annotations) and not self.context.passed.own:
            losses.note("sources")

    def needs_empty_block(self, block: Block) -> bool:
        done = block.done
        if isinstance(done, TextDone) and self.context.passed.own:
            return bool(done.annotations)
        if not isinstance(done, ReasoningDone) or block.out:
            return False
        return bool(done.signature or done.encrypted_content) and self._is_genuine(done)

    def _start(self, block: Block, content: str) -> None:
        index = block.sent
        if index is None or index <= self._index:
            index = self._index + 1
        self._at[block.part] = self._index = index
        self._leave()
        self._latest = block.at, index
        self._frame("content_block_start", index=str(index), content_block=content)

    def _leave(self) -> None:
        """Stop the open block that has no part, if there is one, because another block follows or the message ends."""
        if self._bare is not None:
            self._frame("content_block_stop", index=str(self._bare))
            self._bare = self._latest = None

    def _delta(self, part: int, delta: str) -> None:
        self._frame("content_block_delta", index=str(self._at[part]), delta=delta)

    def _stop(self, part: int) -> None:
        index = self._at.pop(part)
        if self._latest is not None and self._latest[1] == index:
            self._latest = None
        if part not in self.context.passed.ended:
            self._frame("content_block_stop", index=str(index))

    # Calls

    def _start_call(self, block: Block, provider_executed: bool) -> None:
        extra = dict(block.members)
        kind = extra.pop("type", None)
        if not provider_executed:
            kind = '"tool_use"'
        elif kind != '"mcp_tool_use"':
            kind = '"server_tool_use"'
        start = members(type=kind, id=quoted(block.call_id), name=quoted(block.name), input="{}")
        self._start(block, joined(start, extra))

    def close_call(self, call: ToolCall, text: str) -> bool:  # noqa: ARG002
        self._note_call(call)
        if call.state in ("incomplete", "open"):
            return False  # only the end of the response shows whether the block may be closed
        self._stop(call.part if call.part in self._at else -1)
        return True

    def whole_call(self, call: ToolCall) -> None:
        self._note_call(call)
        text = members(input=quoted(call.arguments)) if call.custom else arguments_of(call)
        block = Block("call", call.call_id, call.name)
        if self.context.passed.own and call.provider_metadata:
            block.members = {name: compact_json(value) for name, value in call.provider_metadata.items()}
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

    def write_standalone(self, event: StandalonePart, call: ToolCall | None) -> None:  # noqa: ARG002
        if isinstance(event, Source):
            self.context.losses.note("sources")
        elif isinstance(event, File):
            self.context.losses.note("files")
        elif not self.context.passed.own:
            self.context.losses.note("server_tool")

    def cite(self, page: Source, block: Block | None) -> None:
        if page.url is None or block is None:
            self.context.losses.note("sources")  # a block of text cannot be empty, so none is opened for a citation
        else:
            self.context.losses.metadata(page)
            self._cite(block.part, _page(page.url, page.title, ""))

    # Content that no streamweld event represents

    def write_unmodelled(self, content: Unmodelled) -> None:
        """Write content of the source's own dialect that no streamweld event represents."""
        if self._over or not isinstance(self.blocks, SourceBlocks):
            return
        match content:
            case BlockOpened():
                block = Block("text")
                block.at, block.sent = content.index, self.context.passed.index
                self.blocks.unmodelled(block, UnmodelledBlock(content.block))
            case BlockDelta():
                self._unmodelled_delta(self.blocks, content)
            case BlockClosed():
                waiting = self.blocks.waiting(content.index)
                if waiting is not None:
                    waiting.is_closed = True
                elif self._latest is not None and self._latest[0] == content.index:
                    self._leave()
            case BlockMembers():
                self.context.passed.members = content.index, writable(content.members)
            case Annotated():
                self._annotated(self.blocks, content)
            case OtherEvent():
                if content.event is None:
                    self.context.frames.data(spliced(content.payload))
                else:
                    self.context.frames.named(content.event, spliced(content.payload))
            case Members():
                self._keep_members(content.of, writable(content.members))
            case _:
                pass  # other dialects

    def unmodelled_block(self, block: Block, content: UnmodelledBlock) -> None:
        self._start(block, spliced(content.start))
        self._bare = self._at.pop(block.part)
        for delta in content.deltas:
            self._frame("content_block_delta", index=str(self._bare), delta=spliced(delta))
        if content.is_closed:
            self._leave()

    def _unmodelled_delta(self, blocks: SourceBlocks, content: BlockDelta) -> None:
        waiting = blocks.waiting(content.index)
        if waiting is not None and self._waiting + len(content.delta) <= _MOST_WAITING:
            self._waiting += len(content.delta)
            waiting.deltas.append(content.delta)
        elif waiting is None and self._latest and self._latest[0] == content.index:
            self._frame("content_block_delta", index=str(self._latest[1]), delta=spliced(content.delta))
        else:
            self.context.losses.note("unknown")

    def _annotated(self, blocks: SourceBlocks, content: Annotated) -> None:
        block = blocks.open_block(content.part)
        if block is None or block.cites_late:
            blocks.cites_late(content.part)
            return
        for citation in loads_raw(content.annotations):
            block.cited += 1
            self._cite(block.part, compact_json(citation))

    def _cite(self, part: int, citation: str) -> None:
        self._delta(part, members(type='"citations_delta"', citation=citation))

    def _keep_members(self, of: MembersOf, extra: Raw) -> None:
        """Store unknown members until their event is written. Members that clients read only from the delta of
        `message_delta` are kept until that event is written.
        """
        if of in ("message", "end"):
            moved = {name: extra.pop(name) for name in _DELTA_MEMBERS if name in extra}
            self._keep_members("delta", moved)
            extra.pop("stop_reason", None)
        if self.opened and of == "start_usage":
            of = "end_usage"  # `message_start` arrived too late, but `message_delta` can also contain the usage
        elif self.opened and of == "message":
            of, lost = "delta", {name: raw for name, raw in extra.items() if name not in _LATE_MEMBERS}
            if any(raw != "null" for raw in lost.values()):
                self.context.losses.note("metadata")
            extra = {name: raw for name, raw in extra.items() if name in _LATE_MEMBERS}
        if not extra:
            return
        known = self._members.setdefault(of, {})
        if known and size(known) + size(extra) > _MAX_MERGED_SIZE:
            if not extra.keys() >= known.keys():
                self.context.losses.note("metadata")
            known.clear()
        known.update(extra)

    def _taken(self, of: MembersOf, written: frozenset[str] = frozenset()) -> Raw:
        """Remove the stored members for an event that is about to be written, and return those that the event does not
        have yet.
        """
        return {name: raw for name, raw in self._members.pop(of, {}).items() if name not in written}


def _page(url: str, title: str | None, content: str) -> str:
    """Return the citation of a page.

    `encrypted_index` is empty, because only Anthropic can create it.
    """
    return members(
        type='"web_search_result_location"',
        cited_text=quoted(content),
        url=quoted(url),
        title=quoted(title) if title else "null",
        encrypted_index='""',
    )


def _number(count: int | None) -> str | None:
    return None if count is None else str(count)
