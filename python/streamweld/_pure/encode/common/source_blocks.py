"""Writes blocks in the dialect of their source: opens, continues and closes each block where the source did.

`SourceBlocks` replaces the queue in `Blocks`. Some sources open a block while another block is open, although clients
of the dialect support only one open block. In that case, the first block stays open until the source closes it, and the
other blocks wait in the order in which they started. As in `Blocks`, a call that cannot be written as it arrives is
written when it is complete.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from streamweld._pure.encode.common.encode_context import arguments_of, is_empty_cut
from streamweld._pure.encode.common.sequential_blocks import Block, Blocks
from streamweld.events import ReasoningStarted, RefusalStarted, TextStarted

if TYPE_CHECKING:
    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.encode.common.sequential_blocks import StandalonePart, UnmodelledBlock, Writer
    from streamweld.events import Event, ToolCall, ToolCallDelta, ToolCallRetracted, ToolCallStarted

__all__ = ["SourceBlocks"]


class SourceBlocks(Blocks):
    """Writes the parts of one response in the source's order."""

    __slots__ = ("_holding", "_ended_open_calls", "_open_blocks", "_open_calls", "_reserved")

    def __init__(self, context: EncodeContext, writer: Writer) -> None:
        super().__init__(context, writer)
        self._open_blocks: set[Block] = set()
        self._holding: dict[int, Block] = {}  # open blocks whose stop event has not passed through, by part number
        self._open_calls: Counter[str] = Counter()  # number of open calls with each id
        self._reserved: Block | None = None  # a part treated as the open block, although it has no content to write yet
        self._ended_open_calls: list[Block] = []  # calls whose block must stay open until the response ends

    def event(self, event: Event) -> None:
        super().event(event)
        match event:
            case TextStarted() | ReasoningStarted() | RefusalStarted():
                block = self._parts[event.part]
                self._address(block, event.part)
                block.item = self._context.passed.item_id
                block.comes_whole = isinstance(event, ReasoningStarted) and event.kind == "redacted"
                self._begin(block)
            case _:
                pass
        self._go_on()

    def finish(self) -> None:
        while self._ended_open_calls and not self._context.broken:
            late, self._ended_open_calls = self._ended_open_calls, []
            for block in late:
                self._close_block(block)
                if block.call is not None:
                    self._written(block, block.call)
            self._go_on()

    def has_empty_cut_call(self) -> bool:
        waiting = [item for item in self._queue if isinstance(item, Block) and not item.gone]
        return any(block.call is not None and is_empty_cut(block.call) for block in (*self._ended_open_calls, *waiting))

    def abandon(self) -> None:
        for block in sorted(self._open_blocks, key=lambda block: block.part):
            self._writer.broken_off(block)
        self._open_blocks.clear()

    # Content that no streamweld event represents

    def open_block(self, part: int) -> Block | None:
        """Return the part's block, or None if the block is not open."""
        block = self._parts.get(part)
        return block if block in self._open_blocks else None

    def cites_late(self, part: int) -> None:
        """Record that an annotation arrived while the part was not open, so it is written when the block closes."""
        block = self._parts.get(part)
        if block is not None:
            block.cites_late = True

    def unmodelled(self, block: Block, content: UnmodelledBlock) -> None:
        """Write a block that no streamweld event represents, or queue it until no other block is open."""
        block.unmodelled = content
        if self._is_taken():
            self._enqueue(block)
        else:
            self._writer.unmodelled_block(block, content)

    def waiting(self, at: int | None) -> UnmodelledBlock | None:
        """Return the last queued block if it has no part and its index is `at`."""
        last = self._queue[-1] if self._queue else None
        return last.unmodelled if isinstance(last, Block) and last.at == at else None

    # The queue

    def _waits(self, block: Block) -> bool:
        return not (block is self._reserved or block in self._open_blocks) and self._is_taken()

    def _is_taken(self) -> bool:
        """Return True if no block may be opened because another block is open.

        A block whose stop event has passed through counts as closed.
        """
        if self._writer.side_by_side:
            return False
        for part in self._context.passed.ended.collected():
            self._holding.pop(part, None)
        return self._reserved is not None or bool(self._holding)

    def _go_on(self) -> None:
        """Write the waiting parts as long as a block may be opened.

        Writes nothing if the upstream contradicted text that was already written.
        """
        while self._queue and not (self._context.broken or self._is_taken()):
            block = self._queue.popleft()
            if isinstance(block, Block) and not block.gone:
                block.queued = False
                self._write(block)

    def _is_over(self, block: Block) -> None:
        self._take_turn(block)  # waiting blocks continue after the current event

    # Blocks

    def _address(self, block: Block, part: int) -> None:
        passed = self._context.passed
        block.part, block.at, block.sent = part, passed.at, passed.index
        if passed.members is not None and passed.members[0] == block.at:
            block.members, passed.members = passed.members[1], None

    def _begin(self, block: Block) -> None:
        if self._waits(block):
            self._enqueue(block)
        elif block.comes_whole:
            self._reserved = block
        else:
            self._open(block)

    def _push(self, block: Block, text: str) -> None:
        if not text:
            return
        if self._waits(block):
            block.waiting.append(text)
            self._enqueue(block)
            return
        self._open(block)
        block.out.add(text)
        self._writer.piece(block, text)

    def _open(self, block: Block) -> None:
        if block not in self._open_blocks:
            self._open_blocks.add(block)
            if block.part not in self._context.passed.ended:
                self._holding[block.part] = block
            if block.kind == "call":
                self._open_calls[block.call_id] += 1
            self._writer.open(block)

    def _close_block(self, block: Block) -> None:
        self._mark_closed(block)
        self._writer.close(block)

    def _mark_closed(self, block: Block) -> None:
        """Mark the block as closed, if it is open."""
        if block in self._open_blocks:
            self._open_blocks.remove(block)
            self._holding.pop(block.part, None)
            if block.kind == "call":
                self._open_calls[block.call_id] -= 1

    def _write(self, block: Block) -> None:
        if block.unmodelled is not None:
            self._writer.unmodelled_block(block, block.unmodelled)
            return
        call = block.call
        if call is not None:
            self._unwritten_calls.pop(call.call_id, None)
            if block.held or block.part < 0:
                self._write_call(block, call)
            else:
                self._open(block)
                self._end_call(block, call)
            return
        if block is self._reserved:
            self._reserved = None
        text, block.waiting = "".join(block.waiting), []
        if text:
            self._push(block, text)
        elif block.done is None:
            self._begin(block)  # more pieces may follow
        elif block not in self._open_blocks and self._writer.needs_empty_block(block):
            self._open(block)
        if block.done is not None:
            if block in self._open_blocks:
                self._close_block(block)
            self._writer.over(block)

    def _write_call(self, block: Block, call: ToolCall) -> None:
        """Write a whole call.

        If an open call has the same id, end the stream with an error instead.
        """
        if self._open_calls[call.call_id]:
            self._writer.contradicted()
        else:
            self._writer.whole_call(call)
            self._written(block, call)

    def _call_started(self, event: ToolCallStarted) -> None:
        super()._call_started(event)
        block = self._parts[event.part]
        self._address(block, event.part)
        # If the source has the same dialect, calls that the provider runs are also written.
        block.held = self._is_held(event)
        if not block.held:
            self._begin(block)

    def _is_held(self, event: ToolCallStarted) -> bool:
        context, call_id = self._context, event.call_id or ""
        used = (
            call_id in context.known_call_ids
            or call_id in self._calls
            or call_id in self._unwritten_calls
            or self._ids.get(call_id) is not (self._parts[event.part])
        )
        return context.hold_arguments or context.custom or used or not event.name.strip()

    def _call_delta(self, event: ToolCallDelta) -> None:
        block = self._parts.get(event.part)
        if block is None or block.held or block.frozen:
            return
        if event.arguments and event.part in self._context.passed.ended:
            self._writer.contradicted()  # clients already received the end of a call without arguments
        else:
            self._push(block, event.arguments)

    def _call_retracted(self, event: ToolCallRetracted) -> None:
        block = self._parts.get(event.part)
        begun = block is not None and block in self._open_blocks and not block.out
        super()._call_retracted(event)
        if begun:
            self._writer.contradicted()

    def _call(self, event: ToolCall) -> None:
        block = self._parts.get(event.part)
        if block is None or not (block in self._open_blocks or (block.queued and not block.held)):
            super()._call(event)
            return
        del self._parts[event.part]
        self._forget(block)
        block.call = event
        if block.queued:
            self._unwritten_calls[event.call_id] = block
        else:
            self._end_call(block, event)

    def _end_call(self, block: Block, event: ToolCall) -> None:
        if event.part in self._context.passed.ended and block.out.remaining(arguments_of(event)):
            self._writer.contradicted()  # clients already received the end of the block with less text
        elif self._close_call(block, event):
            self._mark_closed(block)
        else:
            self._ended_open_calls.append(block)

    def _standalone(self, event: StandalonePart) -> None:
        self._write_standalone(event)

    def _give_way(self) -> None:
        """Do nothing, because blocks from a source are not interrupted."""
