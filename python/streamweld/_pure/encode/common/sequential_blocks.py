"""One block at a time, out of parts that come as they please: who writes now, who waits, in which order it goes on.

For targets whose blocks stand one behind the other (Anthropic, AI SDK). Text gives way to whatever comes next; a tool
call keeps its place until it is whole, and what others bring meanwhile waits in order, so that parallel calls are never
cross-wired. Calls are written in the order in which they were announced. What waits is bounded by
the parser's own limits, which counted it already.

Knows events and their parts. Knows no dialect, no frame and no JSON: a `Writer` does the writing.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from streamweld._pure.encode.common.encode_context import arguments_of
from streamweld._pure.encode.common.part_details import Told
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
    from streamweld.events import Event

__all__ = ["Beside", "Block", "Blocks", "Done", "Writer"]

Done: TypeAlias = TextDone | ReasoningDone | RefusalDone
Beside: TypeAlias = Source | File | ToolResult
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
    """One part, and how much of it was written."""

    kind: Kind
    call_id: str = ""
    name: str = ""
    provider_executed: bool = False
    held: bool = False  # a call that is written whole, at its ToolCall
    out: Told = field(default_factory=Told)  # what went out
    waiting: list[str] = field(default_factory=list[str])  # what did not
    queued: bool = False
    gone: bool = False  # it is in the row, but has nothing to write any more
    over: bool = False  # a call that was written, or never will be
    passed: bool = False  # a call that had something to write when it was not its turn, and left the row
    turn: int = 0  # of a call: its part, which is the place of its first fragment
    has_turn: bool = False  # of a call: those announced after it wait for it
    frozen: bool = False  # its deltas were taken back: only the close speaks for it now
    done: Done | None = None
    call: ToolCall | None = None
    results: list[ToolResult] = field(default_factory=list[ToolResult])  # that came before their call was written
    mark: str = ""  # the writer's own: what the open block is called on the wire
    told: bool = False  # the writer's own: what hangs on the part was written
    comes_whole: bool = False  # nothing is shown of it before its end
    part: int = -1  # where several blocks are open at once: which one it is
    sent: int | None = None  # its index on the wire, and its id, where that is the target's own
    item: str | None = None


class Writer(Protocol):
    """What a target does with blocks. None is opened before the one before it is closed."""

    corrects: bool  # the close of a call says again, with authority, what its arguments are
    runs_calls: bool  # calls that somebody else ran, and their results, have a place
    side_by_side: bool  # readers of the target take several open blocks, where a source of its own opens them

    def open(self, block: Block) -> None:
        """A block begins. Where its Done came already (`block.done`), nothing else will be known of it."""
        ...

    def piece(self, block: Block, text: str) -> None:
        """More of its text or arguments, never empty."""
        ...

    def close(self, block: Block) -> None:
        """The block is over; without `block.done` or `block.call` another part only took its place."""
        ...

    def over(self, block: Block) -> None:
        """Its part is over: what else its Done said. Once a part, behind the close of its block if it had one."""
        ...

    def is_worth(self, block: Block) -> bool:
        """Whether a part that ended without an open block has still something to write."""
        ...

    def close_call(self, call: ToolCall, text: str) -> bool:
        """A call that was opened is whole or cut, `text` is its arguments; False if its block stays open to the end."""
        ...

    def whole_call(self, call: ToolCall) -> None:
        """A call of which nothing was written yet."""
        ...

    def beside(self, event: Beside, call: ToolCall | None) -> None:
        """A source, a file, or the result of that call."""
        ...

    def broken_off(self, block: Block) -> None:
        """The answer ended inside of the block."""
        ...

    def contradicted(self) -> None:
        """Upstream took back what went out, and the target cannot: the stream ends here."""
        ...


class Blocks:
    """The parts of one answer, put in a row."""

    __slots__ = (
        "_active",
        "_calls",
        "_ids",
        "_job",
        "_later",
        "_parts",
        "_row",
        "_turns",
        "_unanswered",
        "_writer",
        "answered",
        "client_calls",
    )

    def __init__(self, job: EncodeContext, writer: Writer) -> None:
        self._job = job
        self._writer = writer
        self._active: Block | None = None
        self._parts: dict[int, Block] = {}  # those that are not over
        self._row: deque[Block | Beside] = deque()
        # A heap of calls by their parts, which have the order of their first fragments; without those that are over.
        self._turns: list[tuple[int, Block]] = []
        self._ids: dict[str, Block] = {}  # calls that were announced under an id and are not over
        self._later: dict[str, Block] = {}  # calls that are over and wait
        self._calls: dict[str, ToolCall] = {}  # those that were written: results name them
        self._unanswered: dict[str, Block] = {}  # those that may yet be answered, and then must not be run again
        self.client_calls = 0
        self.answered = False  # a call was left out because its answer came

    def event(self, event: Event) -> None:
        """Take the next event of a part; others are nothing to it."""
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
                self._beside(event)
            case _:
                pass

    def finish(self) -> None:
        """The answer is whole: what was left open for the end is closed, and nothing waits any more."""
        while self._active is not None:
            block, self._active = self._active, None
            self._writer.close(block)
            if block.call is not None:
                self._written(block, block.call)
            self._go_on()
        for block in sorted(self._unanswered.values(), key=lambda block: block.turn):
            self._write(block)

    def abandon(self) -> None:
        """The answer broke off: texts that wait are written as far as they came, calls are not begun."""
        block, self._active = self._active, None
        if block is not None:
            self._writer.broken_off(block)
        row, self._row = self._row, deque()
        for item in row:
            if not isinstance(item, Block):
                self._write_beside(item)
            elif item.kind == "call" and not item.gone:
                self._job.losses.note("cut_call")
            elif not item.gone:
                self._write(item)
                self._give_way()
        if any(block.passed for _, block in self._turns):
            self._job.losses.note("cut_call")

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
            self._line_up(block)
            return
        if self._active is not block:
            self._open(block)
        block.out.add(text)
        self._writer.piece(block, text)

    def _done(self, block: Block, event: Done) -> None:
        del self._parts[event.part]
        block.done = event
        rest = block.out.rest(event.text)
        block.waiting = [rest or ""]
        if rest is None:
            self._job.losses.note("text_corrected")
        if self._waits(block):
            self._line_up(block)
        else:
            self._write(block)

    # Calls

    def _call_started(self, event: ToolCallStarted) -> None:
        job, call_id = self._job, event.call_id or ""
        executed = job.provider_executed
        held = job.hold_arguments or job.custom or not call_id or not event.name.strip()
        held = held or call_id in job.known_call_ids
        held = held or call_id in self._ids or call_id in self._later or call_id in self._calls
        held = held or (not self._writer.runs_calls and (executed or self._may_be_answered()))
        block = self._parts[event.part] = Block("call", call_id, event.name, executed, held)
        # What another one runs is not written: nobody waits for it.
        self._give_turn(block, event.part, waits=self._writer.runs_calls or not (executed or self._may_be_answered()))
        if call_id:
            self._ids.setdefault(call_id, block)

    def _call_delta(self, event: ToolCallDelta) -> None:
        block = self._parts.get(event.part)
        if block is None or block.held or block.frozen or not event.arguments:
            return
        if not block.out and not block.waiting and event.arguments.lstrip(_BLANK)[:1] != "{":
            block.held = True  # no object: it will be repaired, or it is invalid
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
                self._job.losses.note("server_tool")
            self._is_over(block)
        elif not self._writer.runs_calls and self._may_be_answered():
            self._unanswered[event.call_id] = block
            self._is_over(block)
        elif self._waits(block):
            self._later[event.call_id] = block
            self._line_up(block)
        else:
            self._write(block)
            self._go_on()

    def _may_be_answered(self) -> bool:
        """UI messages go on behind their calls: which of them the application ran is known when the answer ends."""
        return self._job.source == "ai-sdk-ui"

    def _is_written(self, call: ToolCall) -> bool:
        """Whether a call of which nothing went out is written at all."""
        losses = self._job.losses
        if not call.name.strip():
            losses.note("nameless_call")
        elif call.provider_executed and not self._writer.runs_calls:
            losses.note("server_tool")
        elif call.state in ("incomplete", "open"):
            losses.note("cut_call")
        else:
            return True
        return False

    def _close_call(self, block: Block, call: ToolCall) -> bool:
        """Its end; False if its block stays open."""
        text, writer = arguments_of(call), self._writer
        right = call.call_id == block.call_id and (call.name == block.name or self._renames)
        rest = block.out.rest(text)
        if rest:
            writer.piece(block, rest)
        elif rest is None and same_value(block.out.text(), text):
            # UI messages give a parsed input back, spelled anew.
            self._job.losses.note("arguments_spelling")
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
        """The close says the name again, in a dialect whose readers saw the source say it so."""
        return self._writer.corrects and self._job.passed.own

    def _written(self, block: Block, call: ToolCall) -> None:
        self._calls[call.call_id] = call
        if not call.provider_executed:
            self.client_calls += 1
        self._take_turn(block)
        for result in block.results:
            self._writer.beside(result, call)

    def _forget(self, block: Block) -> None:
        if self._ids.get(block.call_id) is block:
            del self._ids[block.call_id]

    # What stands beside

    def _beside(self, event: Beside) -> None:
        if isinstance(event, ToolResult):
            owner = self._ids.get(event.call_id) or self._later.get(event.call_id)
            if owner is not None:
                owner.results.append(event)
                return
            if event.call_id not in self._calls:
                if self._unanswered.pop(event.call_id, None) is not None:
                    self.answered = True
                self._job.losses.note("server_tool")
                return
        if self._active is not None and self._active.kind == "call":
            self._row.append(event)
        else:
            self._write_beside(event)

    def _write_beside(self, event: Beside) -> None:
        if not isinstance(event, Source):  # a source stands in its text
            self._give_way()
        self._writer.beside(event, self._calls.get(event.call_id) if isinstance(event, ToolResult) else None)

    # The row

    def _waits(self, block: Block) -> bool:
        """A call is open, and everything else has to wait; or a call that was announced before is not over."""
        active = self._active
        if active is not None and active is not block and active.kind == "call":
            return True
        return self._is_behind(block)

    def _is_behind(self, block: Block) -> bool:
        """A call that was announced before this one is not begun, nor is this one."""
        return block.has_turn and not (block.over or block.out) and self._turns[0][1] is not block

    def _give_turn(self, block: Block, part: int, *, waits: bool) -> None:
        """A call is announced. `waits`: those announced after it wait for it."""
        block.turn = part
        block.has_turn = waits
        if waits:
            heappush(self._turns, (part, block))

    def _take_turn(self, block: Block) -> None:
        """The call is over: the next one that is not may be written."""
        block.over = True
        turns = self._turns
        while turns and turns[0][1].over:
            heappop(turns)
        if turns and turns[0][1].passed:
            following = turns[0][1]
            following.passed, following.queued = False, True
            self._row.appendleft(following)

    def _is_over(self, block: Block) -> None:
        """The same of a call that is not written."""
        self._take_turn(block)
        self._go_on()

    def _line_up(self, block: Block) -> None:
        if not (block.queued or block.passed):
            block.queued = True
            self._row.append(block)

    def _open(self, block: Block) -> None:
        self._give_way()
        self._active = block
        self._writer.open(block)

    def _give_way(self) -> None:
        """The open text makes room for another part; it may go on in a block of its own."""
        if self._active is not None:
            block, self._active = self._active, None
            self._writer.close(block)

    def _go_on(self) -> None:
        """Write what waits, until a call takes the place again."""
        row = self._row
        while row and (self._active is None or self._active.kind != "call"):
            item = row.popleft()
            if not isinstance(item, Block):
                self._write_beside(item)
            elif not item.gone:
                item.queued = False
                if self._is_behind(item):
                    item.passed = True
                else:
                    self._write(item)

    def _write(self, block: Block) -> None:
        """All that a block has so far; nobody is in its way."""
        if block.call is not None:
            self._give_way()
            self._later.pop(block.call.call_id, None)
            self._writer.whole_call(block.call)
            self._written(block, block.call)
            return
        text, block.waiting = "".join(block.waiting), []
        if text:
            self._push(block, text)
        elif self._active is not block and block.done is not None and self._writer.is_worth(block):
            self._open(block)
        if block.done is not None:
            if self._active is block:
                self._active = None
                self._writer.close(block)
            self._writer.over(block)
