"""Writes interleaved parts as a sequence of blocks, for targets that allow only one open block at a time (Anthropic, AI
SDK).

An open block of text is closed when another part follows, and the text may continue in a new block. A tool call stays
open until it is complete. While a call is open, other parts wait in order, so that parallel calls are never mixed.
Calls are written in the order in which they were announced. The parser's limits also bound the amount of waiting
content. A `Writer` writes the bytes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from streamweld._pure.encode.common.encode_context import arguments_of
from streamweld._pure.encode.common.part_details import WrittenText
from streamweld._pure.encode.common.same_json import same_value
from streamweld.events import (
    File,
    ReasoningDelta,
    ReasoningDone,
    ReasoningStarted,
    RefusalDelta,
    RefusalDone,
    RefusalStarted,
    Source,
    TextDelta,
    TextDone,
    TextStarted,
    ToolCall,
    ToolCallDelta,
    ToolCallReset,
    ToolCallRetracted,
    ToolCallStarted,
    ToolResult,
)

if TYPE_CHECKING:
    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.json.members import Raw
    from streamweld.events import Event

__all__ = ["Block", "Blocks", "Done", "StandalonePart", "UnmodelledBlock", "Writer"]

Done: TypeAlias = TextDone | ReasoningDone | RefusalDone
StandalonePart: TypeAlias = Source | File | ToolResult
Kind: TypeAlias = Literal["text", "reasoning", "refusal", "call"]
_Textual: TypeAlias = (
    TextStarted
    | TextDelta
    | TextDone
    | ReasoningStarted
    | ReasoningDelta
    | ReasoningDone
    | RefusalStarted
    | RefusalDelta
    | RefusalDone
)

_BLANK = " \t\r\n"


@dataclass(slots=True, eq=False)
class Block:
    """One part, and how much of it has already been written."""

    kind: Kind
    call_id: str = ""
    name: str = ""
    provider_executed: bool = False
    held: bool = False  # a call that is written whole once it is complete
    out: WrittenText = field(default_factory=WrittenText)  # text that has already been written
    waiting: list[str] = field(default_factory=list[str])  # text that has not been written yet
    queued: bool = False
    gone: bool = False  # nothing is left to write, even if the block is still in the queue
    over: bool = False  # a call that was written or dropped
    passed: bool = False  # a call that was removed from the queue, because an earlier call has not been written yet
    turn: int = 0  # calls only: the part number, which determines the order of calls
    has_turn: bool = False  # calls only: calls that were announced later wait for this call
    frozen: bool = False  # the upstream reset arguments that were already written
    done: Done | None = None
    call: ToolCall | None = None
    # Tool results that arrived before this call was written.
    results: list[ToolResult] = field(default_factory=list[ToolResult])
    mark: str = ""  # id of the open block on the wire; the writer sets it
    metadata_written: bool = False  # True once the metadata of the part has been written
    comes_whole: bool = False  # nothing of the block is written before its closing event arrives
    part: int = -1  # part number, for targets with several open blocks
    # If the source has the same dialect: `at` is the block's index in the source, `sent` is that index if it can be
    # kept, and `item` is the id of the item that contains the block.
    at: int | None = None
    sent: int | None = None
    item: str | None = None
    # Unknown members of the start event (empty if the source has another dialect).
    members: Raw = field(default_factory=dict[str, str])
    cited: int = 0  # number of annotations that were written
    cites_late: bool = False  # an annotation arrived while the block was not open
    unmodelled: UnmodelledBlock | None = None  # the content of a block without a part


@dataclass(slots=True)
class UnmodelledBlock:
    """A source's block that no streamweld event represents, as sent.

    The block waits in the queue while another block is open.
    """

    start: str
    deltas: list[str] = field(default_factory=list[str])
    is_closed: bool = False


class Writer(Protocol):
    """Writes the blocks of one target. Unless `side_by_side` is true, a block is opened only after the previous one was
    closed.
    """

    corrects: bool  # the closing event of a call repeats its arguments, and clients use these
    runs_calls: bool  # the target can represent calls that the client does not run, and their results
    # True if clients of the dialect accept several open blocks, which a source of the same dialect may send.
    side_by_side: bool
    cites_in_text: bool  # a cited page is written into the open block of text

    def open(self, block: Block) -> None:
        """Write the start event of a block.

        `block.done` is the closing event of the part, if that event has already arrived.
        """
        ...

    def piece(self, block: Block, text: str) -> None:
        """Write the next, non-empty piece of the block's text or arguments."""
        ...

    def close(self, block: Block) -> None:
        """Write the end of a block.

        If neither `block.done` nor `block.call` is set, the part has not ended, for example because another part
        interrupts it.
        """
        ...

    def over(self, block: Block) -> None:
        """Write the content of the part's closing event that `close` did not write. Called once for each part, after
        the part's last block, if any, was closed.
        """
        ...

    def needs_empty_block(self, block: Block) -> bool:
        """Return True if a part that ended without text still needs a block."""
        ...

    def close_call(self, call: ToolCall, text: str) -> bool:
        """Write the end of an open call. The call may be incomplete. `text` contains the call's arguments.

        Returns False if the block must stay open until the response ends.
        """
        ...

    def whole_call(self, call: ToolCall) -> None:
        """Write all events of a complete call."""
        ...

    def write_standalone(self, event: StandalonePart, call: ToolCall | None) -> None:
        """Write a source, a file, or a tool result.

        `call` is the call that a tool result belongs to, if that call was written.
        """
        ...

    def cite(self, page: Source, block: Block | None) -> None:
        """Write a cited page into the open block of text. `block` is None if no such block is open. Called only if
        `cites_in_text` is true.
        """
        ...

    def broken_off(self, block: Block) -> None:
        """Handle a block that is still open when a truncated response ends."""
        ...

    def unmodelled_block(self, block: Block, content: UnmodelledBlock) -> None:
        """Write a block of the same dialect that no streamweld event represents."""
        ...

    def contradicted(self) -> None:
        """End the stream with an error, because the upstream changed or retracted content that was already written, and
        the target cannot express such a change.
        """
        ...


class Blocks:
    """Writes the parts of one response as a sequence of blocks."""

    __slots__ = (
        "_active",
        "_calls",
        "_ids",
        "_context",
        "_unwritten_calls",
        "_parts",
        "_queue",
        "_turns",
        "_unanswered",
        "_writer",
        "answered",
        "client_calls",
    )

    def __init__(self, context: EncodeContext, writer: Writer) -> None:
        self._context = context
        self._writer = writer
        self._active: Block | None = None
        self._parts: dict[int, Block] = {}  # parts that are not finished
        self._queue: deque[Block | StandalonePart] = deque()
        # Heap of the unfinished calls by part number. A lower part number means that the call's first fragment arrived
        # earlier.
        self._turns: list[tuple[int, Block]] = []
        self._ids: dict[str, Block] = {}  # unfinished calls, by the id with which they were announced
        self._unwritten_calls: dict[str, Block] = {}  # complete calls that have not been written yet, by id
        self._calls: dict[str, ToolCall] = {}  # written calls, needed for their results
        # Complete calls that are written at the end of the response, unless their result arrives earlier. The client
        # must not run a call that already has a result.
        self._unanswered: dict[str, Block] = {}
        self.client_calls = 0
        self.answered = False  # a call was omitted because its result arrived

    def event(self, event: Event) -> None:
        """Handle the next event of a part, and ignore other events."""
        match event:
            case TextDelta() | ReasoningDelta() | RefusalDelta():
                self._push(self._textual(event), event.text)
            case ToolCallDelta():
                self._call_delta(event)
            case TextStarted() | ReasoningStarted() | RefusalStarted():
                self._textual(event)
            case TextDone() | ReasoningDone() | RefusalDone():
                self._done(self._textual(event), event)
            case ToolCallStarted():
                self._call_started(event)
            case ToolCallReset():
                self._call_reset(event)
            case ToolCallRetracted():
                self._call_retracted(event)
            case ToolCall():
                self._call(event)
            case Source() | File() | ToolResult():
                self._standalone(event)
            case _:
                pass

    def finish(self) -> None:
        """End a complete response by closing the open block and writing all waiting content."""
        while self._active is not None:
            block, self._active = self._active, None
            self._writer.close(block)
            if block.call is not None:
                self._written(block, block.call)
            self._go_on()
        for block in sorted(self._unanswered.values(), key=lambda block: block.turn):
            self._write(block)

    def has_empty_cut_call(self) -> bool:
        """Return True if `finish` would close a truncated call without arguments, which clients would run.

        In this class, a call is opened only with the first piece of its arguments, so this method always returns False.
        """
        return False

    def abandon(self) -> None:
        """End an incomplete response. Waiting text is written, but no waiting call is started."""
        block, self._active = self._active, None
        if block is not None:
            self._writer.broken_off(block)
        queue, self._queue = self._queue, deque()
        for item in queue:
            if not isinstance(item, Block):
                self._write_standalone(item)
            elif item.kind == "call" and not item.gone:
                self._context.losses.note("cut_call")
            elif not item.gone:
                self._write(item)
                self._give_way()
        if any(block.passed for _, block in self._turns):
            self._context.losses.note("cut_call")

    # Texts

    def _textual(self, event: _Textual) -> Block:
        block = self._parts.get(event.part)
        if block is None:
            kind: Kind = "text"
            if isinstance(event, ReasoningStarted | ReasoningDelta | ReasoningDone):
                kind = "reasoning"
            elif isinstance(event, RefusalStarted | RefusalDelta | RefusalDone):
                kind = "refusal"
            block = self._parts[event.part] = Block(kind)
        return block

    def _push(self, block: Block, text: str) -> None:
        if not text:
            return
        if self._waits(block):
            block.waiting.append(text)
            self._enqueue(block)
            return
        if self._active is not block:
            self._open(block)
        block.out.add(text)
        self._writer.piece(block, text)

    def _done(self, block: Block, event: Done) -> None:
        del self._parts[event.part]
        block.done = event
        rest = block.out.remaining(event.text)
        block.waiting = [rest or ""]
        if rest is None:
            self._context.losses.note("text_corrected")
        if self._waits(block):
            self._enqueue(block)
        else:
            self._write(block)

    # Calls

    def _call_started(self, event: ToolCallStarted) -> None:
        context, call_id = self._context, event.call_id or ""
        executed = context.provider_executed
        held = context.hold_arguments or context.custom or not call_id or not event.name.strip()
        held = held or call_id in context.known_call_ids
        held = held or call_id in self._ids or call_id in self._unwritten_calls or call_id in self._calls
        held = held or (not self._writer.runs_calls and (executed or self._may_be_answered()))
        block = self._parts[event.part] = Block("call", call_id, event.name, executed, held)
        # A call that the client does not run may be omitted, so no other call waits for it.
        self._give_turn(block, event.part, waits=self._writer.runs_calls or not (executed or self._may_be_answered()))
        if call_id:
            self._ids.setdefault(call_id, block)

    def _call_delta(self, event: ToolCallDelta) -> None:
        block = self._parts.get(event.part)
        if block is None or block.held or block.frozen or not event.arguments:
            return
        if not block.out and not block.waiting and event.arguments.lstrip(_BLANK)[:1] != "{":
            block.held = True  # the arguments are not an object, so the call will be repaired or is invalid
            return
        self._push(block, event.arguments)

    def _call_reset(self, event: ToolCallReset) -> None:
        block = self._parts.get(event.part)
        if block is None:
            return
        block.waiting = []
        block.frozen = bool(block.out)

    def _call_retracted(self, event: ToolCallRetracted) -> None:
        block = self._parts.pop(event.part, None)
        if block is None:
            return
        self._forget(block)
        block.gone = True
        if block.out:
            self._writer.contradicted()
        else:
            self._is_over(block)

    def _call(self, event: ToolCall) -> None:
        block = self._parts.pop(event.part, None)
        if block is None:
            block = Block("call", event.call_id, event.name)
            self._give_turn(block, event.part, waits=True)
        self._forget(block)
        block.call = event
        if block.out:
            self._close_call(block, event)
        elif not self._is_written(event):
            block.gone = True
            if block.results:
                self._context.losses.note("server_tool")
            self._is_over(block)
        elif not self._writer.runs_calls and self._may_be_answered():
            self._unanswered[event.call_id] = block
            self._is_over(block)
        elif self._waits(block):
            self._unwritten_calls[event.call_id] = block
            self._enqueue(block)
        else:
            self._write(block)
            self._go_on()

    def _may_be_answered(self) -> bool:
        """Return True if the results of calls may follow in the same stream.

        A UI message continues after its calls, so only the end of the response shows which calls the client must run.
        """
        return self._context.source == "ai-sdk-ui"

    def _is_written(self, call: ToolCall) -> bool:
        """Return True if a call that has not been written must be written. Otherwise, report the loss."""
        losses = self._context.losses
        if not call.name.strip():
            losses.note("nameless_call")
        elif call.provider_executed and not (self._writer.runs_calls or self._context.passed.own):
            losses.note("server_tool")
        elif call.state in ("incomplete", "open"):
            losses.note("cut_call")
        else:
            return True
        return False

    def _close_call(self, block: Block, call: ToolCall) -> bool:
        """Write the end of the call. Return False if the call's block stays open."""
        text, writer = arguments_of(call), self._writer
        right = call.call_id == block.call_id and (call.name == block.name or self._renames)
        rest = block.out.remaining(text)
        if rest:
            writer.piece(block, rest)
        elif rest is None and same_value(block.out.text(), text):
            # In UI messages the input is parsed JSON, so its original formatting is lost.
            self._context.losses.note("arguments_spelling")
            text = block.out.text()
        elif rest is None and not writer.corrects:
            right = False
        if not right:
            writer.contradicted()
        elif writer.close_call(call, text):
            self._active = None
            self._written(block, call)
            self._go_on()
            return True
        return False

    @property
    def _renames(self) -> bool:
        """Whether a call may be closed with a name that differs from the name already written.

        This is the case if the target's closing event contains the name and the source has the same dialect. The
        closing event of the source may then have passed through, so that clients may already have the new name.
        """
        return self._writer.corrects and self._context.passed.own

    def _written(self, block: Block, call: ToolCall) -> None:
        self._calls[call.call_id] = call
        if not call.provider_executed:
            self.client_calls += 1
        self._take_turn(block)
        for result in block.results:
            self._writer.write_standalone(result, call)

    def _forget(self, block: Block) -> None:
        if self._ids.get(block.call_id) is block:
            del self._ids[block.call_id]

    # Sources, files and results

    def _standalone(self, event: StandalonePart) -> None:
        if isinstance(event, Source) and self._writer.cites_in_text:
            is_text = self._active is not None and self._active.kind == "text"
            self._writer.cite(event, self._active if is_text else None)
            return
        if isinstance(event, ToolResult):
            owner = self._ids.get(event.call_id) or self._unwritten_calls.get(event.call_id)
            if owner is not None:
                owner.results.append(event)
                return
            if event.call_id not in self._calls:
                if self._unanswered.pop(event.call_id, None) is not None:
                    self.answered = True
                self._context.losses.note("server_tool")
                return
        if self._active is not None and self._active.kind == "call":
            self._queue.append(event)
        else:
            self._write_standalone(event)

    def _write_standalone(self, event: StandalonePart) -> None:
        if not isinstance(event, Source):  # a citation, which belongs to a position in its text
            self._give_way()
        self._writer.write_standalone(event, self._calls.get(event.call_id) if isinstance(event, ToolResult) else None)

    # The queue

    def _waits(self, block: Block) -> bool:
        """Return True if the block must wait because another call is open, or because a call that was announced earlier
        is not finished.
        """
        active = self._active
        if active is not None and active is not block and active.kind == "call":
            return True
        return self._is_not_started(block)

    def _is_not_started(self, block: Block) -> bool:
        """Return True if this call has not started and a call that was announced earlier is not finished."""
        return block.has_turn and not (block.over or block.out) and self._turns[0][1] is not block

    def _give_turn(self, block: Block, part: int, *, waits: bool) -> None:
        """Announce a call. `waits` is true if calls that are announced later wait for this call."""
        block.turn = part
        block.has_turn = waits
        if waits:
            heappush(self._turns, (part, block))

    def _take_turn(self, block: Block) -> None:
        """Mark the call as finished. If the next unfinished call was skipped in the queue, queue it again."""
        block.over = True
        turns = self._turns
        while turns and turns[0][1].over:
            heappop(turns)
        if turns and turns[0][1].passed:
            following = turns[0][1]
            following.passed, following.queued = False, True
            self._queue.appendleft(following)

    def _is_over(self, block: Block) -> None:
        """Mark a call as finished even though the call is never written."""
        self._take_turn(block)
        self._go_on()

    def _enqueue(self, block: Block) -> None:
        if not (block.queued or block.passed):
            block.queued = True
            self._queue.append(block)

    def _open(self, block: Block) -> None:
        self._give_way()
        self._active = block
        self._writer.open(block)

    def _give_way(self) -> None:
        """Close the open text block to make room for another part. The text may continue in a new block."""
        if self._active is not None:
            block, self._active = self._active, None
            self._writer.close(block)

    def _go_on(self) -> None:
        """Write the waiting parts until a call is open or the queue is empty."""
        queue = self._queue
        while queue and (self._active is None or self._active.kind != "call"):
            item = queue.popleft()
            if not isinstance(item, Block):
                self._write_standalone(item)
            elif not item.gone:
                item.queued = False
                if self._is_not_started(item):
                    item.passed = True
                else:
                    self._write(item)

    def _write(self, block: Block) -> None:
        """Write the waiting content of a part. No other call may be open."""
        if block.call is not None:
            self._give_way()
            self._unwritten_calls.pop(block.call.call_id, None)
            self._writer.whole_call(block.call)
            self._written(block, block.call)
            return
        text, block.waiting = "".join(block.waiting), []
        if text:
            self._push(block, text)
        elif self._active is not block and block.done is not None and self._writer.needs_empty_block(block):
            self._open(block)
        if block.done is not None:
            if self._active is block:
                self._active = None
                self._writer.close(block)
            self._writer.over(block)
