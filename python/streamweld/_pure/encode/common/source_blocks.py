"""Blocks in the dialect that they came in: each is opened, goes on and is closed where the source did that.

The source's own order needs no row. Where a source opens a block beside another, and readers of its dialect have one at
a time, the first keeps its place until it is closed, and the others wait in the order in which they began. What was
announced in a way that it cannot be told yet is written whole, at its end, as in `blocks`. Knows no dialect, no frame
and no JSON.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from streamweld._pure.encode.common.encode_context import arguments_of
from streamweld._pure.encode.common.sequential_blocks import Block, Blocks
from streamweld.events import ReasoningStarted, RefusalStarted, TextStarted

if TYPE_CHECKING:
    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.encode.common.sequential_blocks import Beside, Writer
    from streamweld.events import Event, ToolCall, ToolCallDelta, ToolCallRetracted, ToolCallStarted

__all__ = ["SourceBlocks"]


class SourceBlocks(Blocks):
    """The parts of one answer, as they come."""

    __slots__ = ("_holding", "_late", "_open_blocks", "_open_calls", "_unseen")

    def __init__(self, job: EncodeContext, writer: Writer) -> None:
        super().__init__(job, writer)
        self._open_blocks: set[Block] = set()
        self._holding: dict[int, Block] = {}  # those of them whose stop has not passed, by part
        self._open_calls: Counter[str] = Counter()  # and how many of them are calls with that id
        self._unseen: Block | None = None  # has the place of an open one, and nothing to show yet
        self._late: list[Block] = []  # calls that are not whole: whether they may be closed is known at the end

    def event(self, event: Event) -> None:
        super().event(event)
        match event:
            case TextStarted() | ReasoningStarted() | RefusalStarted():
                block = self._parts[event.part]
                block.part, block.sent = event.part, self._job.passed.index
                block.item = self._job.passed.item_id
                block.comes_whole = isinstance(event, ReasoningStarted) and event.kind == "redacted"
                self._begin(block)
            case _:
                pass
        self._go_on()

    def finish(self) -> None:
        while self._late and not self._job.broken:
            late, self._late = self._late, []
            for block in late:
                self._shut(block)
                if block.call is not None:
                    self._written(block, block.call)
            self._go_on()

    def abandon(self) -> None:
        for block in sorted(self._open_blocks, key=lambda block: block.part):
            self._writer.broken_off(block)
        self._open_blocks.clear()

    # The row

    def _waits(self, block: Block) -> bool:
        return not (block is self._unseen or block in self._open_blocks) and self._is_taken()

    def _is_taken(self) -> bool:
        """A block is open, and no other may be. Of one that was stopped on the wire the stop has passed."""
        if self._writer.side_by_side:
            return False
        for part in self._job.passed.ended.collected():
            self._holding.pop(part, None)
        return self._unseen is not None or bool(self._holding)

    def _go_on(self) -> None:
        """Write what waits, as long as nobody is in its way. Where upstream took something back, nothing follows."""
        while self._row and not (self._job.broken or self._is_taken()):
            block = self._row.popleft()
            if isinstance(block, Block) and not block.gone:
                block.queued = False
                self._write(block)

    def _is_over(self, block: Block) -> None:
        self._take_turn(block)  # what waits goes on behind the event

    # Blocks

    def _begin(self, block: Block) -> None:
        if self._waits(block):
            self._line_up(block)
        elif block.comes_whole:
            self._unseen = block
        else:
            self._open(block)

    def _push(self, block: Block, text: str) -> None:
        if not text:
            return
        if self._waits(block):
            block.waiting.append(text)
            self._line_up(block)
            return
        self._open(block)
        block.out.add(text)
        self._writer.piece(block, text)

    def _open(self, block: Block) -> None:
        if block not in self._open_blocks:
            self._open_blocks.add(block)
            if block.part not in self._job.passed.ended:
                self._holding[block.part] = block
            if block.kind == "call":
                self._open_calls[block.call_id] += 1
            self._writer.open(block)

    def _shut(self, block: Block) -> None:
        self._leave(block)
        self._writer.close(block)

    def _leave(self, block: Block) -> None:
        """It is open no more."""
        if block in self._open_blocks:
            self._open_blocks.remove(block)
            self._holding.pop(block.part, None)
            if block.kind == "call":
                self._open_calls[block.call_id] -= 1

    def _write(self, block: Block) -> None:
        call = block.call
        if call is not None:
            self._later.pop(call.call_id, None)
            if block.held or block.part < 0:
                self._write_call(block, call)
            else:
                self._open(block)
                self._end_call(block, call)
            return
        if block is self._unseen:
            self._unseen = None
        text, block.waiting = "".join(block.waiting), []
        if text:
            self._push(block, text)
        elif block.done is None:
            self._begin(block)  # more may come
        elif block not in self._open_blocks and self._writer.is_worth(block):
            self._open(block)
        if block.done is not None:
            if block in self._open_blocks:
                self._shut(block)
            self._writer.over(block)

    def _write_call(self, block: Block, call: ToolCall) -> None:
        """A call of which nothing was written yet. One that takes the id of an open one takes it back."""
        if self._open_calls[call.call_id]:
            self._writer.contradicted()
        else:
            self._writer.whole_call(call)
            self._written(block, call)

    def _call_started(self, event: ToolCallStarted) -> None:
        super()._call_started(event)
        block = self._parts[event.part]
        block.part, block.sent = event.part, self._job.passed.index
        # Also the calls that the provider runs have their place in their own dialect.
        block.held = self._is_held(event)
        if not block.held:
            self._begin(block)

    def _is_held(self, event: ToolCallStarted) -> bool:
        job, call_id = self._job, event.call_id or ""
        used = (
            call_id in job.known_call_ids
            or call_id in self._calls
            or call_id in self._later
            or self._ids.get(call_id) is not (self._parts[event.part])
        )
        return job.hold_arguments or job.custom or used or not event.name.strip()

    def _call_delta(self, event: ToolCallDelta) -> None:
        block = self._parts.get(event.part)
        if block is None or block.held or block.frozen:
            return
        if event.arguments and event.part in self._job.passed.ended:
            self._writer.contradicted()  # readers have it as a call without arguments
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
            self._later[event.call_id] = block
        else:
            self._end_call(block, event)

    def _end_call(self, block: Block, event: ToolCall) -> None:
        if event.part in self._job.passed.ended and block.out.rest(arguments_of(event)):
            self._writer.contradicted()  # its block is over, and had less
        elif self._close_call(block, event):
            self._leave(block)
        else:
            self._late.append(block)

    def _beside(self, event: Beside) -> None:
        self._write_beside(event)

    def _give_way(self) -> None:
        """Nothing is in anybody's way."""
