"""One stream, bytes of one dialect to bytes of the same: what needs no repair passes as it is, the rest is rewritten.

The parser judges every block (`block`), and the dialect's own encoder writes along into a scratch. As long as the
judgement is "as sent", the bytes go out and the scratch is thrown away; from the first block that is not, the scratch
goes out instead, to the end. A block that lacks nothing but the right name of its event, or the answer's opening before
it, passes with that put in, and those behind it are judged as ever. Knows blocks, verdicts and the order of the output;
no frame, no event's meaning, no JSON.

A block is held, with those behind it, while the parser owes something: a call that was announced may yet turn out to be
none. What is held is capped: those that wait are written anew where they are too many, and one block that is too long
is a fault. What wire facts the encoder needs to go on behind passed bytes is in `encode.common.passed_through`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld._pure.encode import load_encoder
from streamweld._pure.encode.common.encode_context import EncodeContext, OpensChoices
from streamweld._pure.encode.common.finish import Ending, fault_of, told
from streamweld._pure.encode.common.id_mint import IdMint
from streamweld._pure.pipeline.after_error import AfterError, is_beside
from streamweld._pure.pipeline.detect import READ_EMPTY
from streamweld._pure.pipeline.parser import Parser
from streamweld._pure.repair.own_error import is_own
from streamweld._pure.sse.block_splitter import Splitter, behind_opening, has_fields, named
from streamweld._pure.sse.frame import as_bytes
from streamweld.errors import StreamError, UpstreamError
from streamweld.events import (
    Diagnostic,
    ResponseStarted,
    ToolCall,
    ToolCallRetracted,
    ToolCallStarted,
    UpstreamErrorEvent,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.encode.common.encode_context import Encoder
    from streamweld._pure.encode.common.finish import Fault
    from streamweld._pure.sse.block_splitter import Place
    from streamweld.events import Event

__all__ = ["Repairer"]

# Dialects that number nothing: a later event that was sent right passes behind a repair, too, if it is of these.
_TEXT: Final = frozenset(
    {
        *("text_started", "text_delta", "reasoning_started", "reasoning_delta", "refusal_started", "refusal_delta"),
        "unknown",
    }
)
_UNNUMBERED: Final = {
    "chat": _TEXT,
    "gemini": _TEXT,
    "ai-sdk-parts": _TEXT | {"text_done", "reasoning_done", "source", "file"},
    "ai-sdk-ui": _TEXT | {"text_done", "reasoning_done", "source", "file"},
}
_UNMARKED: Final = frozenset({"gemini"})  # no event of theirs says that an answer is over
_WHOLE_CALLS: Final = frozenset({"gemini"})  # written whole: one that passed in part could not be gone on with


class Repairer:
    """Bytes of one response in, bytes of the same response in the same dialect out."""

    __slots__ = (
        "_at",
        "_behind_error",
        "_begin",
        "_block",
        "_brought",
        "_calls",
        "_cap",
        "_counted",
        "_encoder",
        "_ended",
        "_explained",
        "_held",
        "_instead",
        "_items",
        "_items_size",
        "_is_first",
        "_job",
        "_last_out",
        "_opening",
        "_ordinal",
        "_over",
        "_parser",
        "_plain",
        "_rendering",
        "_reported",
        "_said",
        "_sent",
        "_size",
        "_splitter",
        "_told",
        "_unread",
        "error",
        "repaired",
    )

    def __init__(self, source: str, target: str, config: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        """`config`: of the parser; `options`: of the encoder. `target` is `source`, or `same`."""
        del target
        self._parser = Parser(source, config)
        own = dict(options)
        self._job = EncodeContext(IdMint(own.pop("prefix")), known_call_ids=frozenset(config["known_call_ids"]), **own)
        self._job.passed.own = self._job.losses.own = True
        self._encoder: Encoder | None = None  # until the dialect is known
        self._splitter = Splitter()
        self._sent: list[bytes | bytearray] = []  # the output that was not handed out yet
        self._cap: int | None = config["limits"]["max_event_bytes"]  # of what is held
        self._at = 0  # bytes taken
        self._begin = 0  # where the block at hand does
        self._block: list[bytes] = []  # the pieces of the block at hand, as long as it can pass
        self._size = 0  # of these pieces
        self._unread: list[bytes] = []  # those of them that the parser has not read: it would keep them a second time
        self._held = bytearray()  # blocks that wait: they pass or are written anew all together
        self._instead = bytearray()  # what would be written instead of them
        self._last_out = True  # the last whole block went out as it was, or waits
        self._calls: set[int] = set()  # that are under way, where they are to be held
        self._counted = 0  # how often token counts have passed
        self._items: list[tuple[int, Mapping[str, Any]]] = []  # whole ones of blocks that did not pass yet
        self._items_size = 0  # of all that are kept
        self._reported: Fault | None = None  # an error that the upstream sent, where a policy reads on behind it
        self._behind_error: AfterError | None = None  # the upstream's own error has passed
        self._rendering = False
        self._explained = False  # it is known why the stream is written anew, or where it is
        self._told: set[str] = set()  # what was told once of the stream
        self._ended = False  # the answer's end went out or passed
        self._over = False  # nothing is read any more
        self._begin_block()
        self._is_first = True  # the block at hand
        self.error: StreamError | None = None
        self.repaired = False
        self._parser.out.sink = self._take
        self._parser.out.on_element = self._tell
        self._parser.out.on_item = self._keep_item
        self._job.passed.added = self._parser.out.added

    @property
    def dialect(self) -> str | None:
        """What the stream speaks; None until that is known."""
        return self._parser.dialect

    @property
    def is_over(self) -> bool:
        """Nothing that is fed has any effect."""
        return self._over

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Those that were kept."""
        return self._parser.diagnostics

    def snapshot(self) -> tuple[list[Event], str, int]:
        """The answer so far, as the parser tells it."""
        return self._parser.snapshot()

    def feed(self, data: bytes | bytearray | memoryview) -> bytes:
        """Take the next bytes; those that may go out, repaired. After an ending of ours there are none."""
        for piece, place in self._splitter.split(as_bytes(data)):
            if self._over:
                break
            self._piece(piece, place)
        return self._taken()

    def close(self, broken: bool = False) -> bytes:
        """The input has ended: the last bytes. `broken`: because the transport failed."""
        if not (self._over or self._behind_error):
            try:
                self._read()
                self._parser.close(broken)
                self._finish()
                if self._rendering or self._parser.out.touched:
                    self._explain()
                    self._render()
                elif self._parser.out.emptied:
                    self.repaired = True
                    self._pass(b"")
                else:
                    self._pass(b"".join(self._block))
            except StreamError as fault:
                self._failed(fault)
        self._over = True
        return self._taken()

    def exceed(self, name: str) -> bytes:
        """A cap was passed that only the caller can measure: the last bytes."""
        if not (self._over or self._behind_error):
            try:
                self._read()
                self._parser.exceed(name)
            except StreamError as fault:
                self._failed(fault)
        self._over = True
        return self._taken()

    # Blocks

    def _piece(self, piece: bytes, place: Place) -> None:
        if place == "behind":
            self._behind(piece)
            return
        try:
            self._keep(piece)
            if self._behind_error is not None:
                if place == "end":
                    self._end_behind_error(self._behind_error)
            elif place == "end":
                self._read()
                if self._parser.is_done:
                    self._finish()
                self._judge(b"".join(self._block))
                self._begin_block()
            elif place == "ready" or self._parser.out.touched:
                self._read_inside()
        except StreamError as fault:
            self._failed(fault)
        self._splitter.merges = not self._held

    def _keep(self, piece: bytes) -> None:
        """Hold more of the block at hand. One that was touched cannot pass: its bytes are read, and not kept."""
        self._at += len(piece)
        if self._cap is not None and self._kept + len(piece) > self._cap:
            piece = self._exceed(piece, self._cap)
        if self._behind_error is None:
            self._unread.append(piece)
        if not self._parser.out.touched:
            self._block.append(piece)
            self._size += len(piece)

    @property
    def _kept(self) -> int:
        """How many bytes are kept, of the blocks that wait and of the one at hand."""
        return len(self._held) + len(self._instead) + self._size

    def _exceed(self, piece: bytes, cap: int) -> bytes:
        """The blocks that wait and the one at hand are too much. Gives back what is not read yet."""
        if self._held and self.dialect is not None:
            self._write_held()
        room = cap - self._kept
        if len(piece) <= room:
            return piece
        if self._behind_error is not None:
            self._block.clear()  # it does not pass
            return piece
        # What it begins with may be a fault of its own, or touch it.
        self._unread.append(piece[:room])
        self._read_inside()
        out = self._parser.out
        if not out.touched:
            out.offset, out.ordinal, out.event_type, out.payload = self._begin, self._parser.payloads, None, b""
            raise out.limit("max_event_bytes", cap)
        return piece[room:]

    def _read(self) -> None:
        """Read on, as far as the block at hand goes."""
        unread, self._unread = self._unread, []
        unread.reverse()
        while unread:
            self._parser.feed(unread.pop())

    def _read_inside(self) -> None:
        """The same before the block is whole. From where it is touched it is written anew."""
        self._read()
        if self._parser.out.touched:
            self._block.clear()
            self._size = 0
            if self._rendering:
                self._flush()
            else:
                self._render()

    def _end_behind_error(self, behind: AfterError) -> None:
        """A block behind the upstream's own error is whole."""
        block = b"".join(self._block)
        self._last_out = len(block) == self._size and behind.passes(block)
        if self._last_out:
            self._go_out(block)
        self._begin_block()

    def _behind(self, piece: bytes) -> None:
        """The rest of the line end of the last block."""
        self._at += len(piece)
        self._begin = self._at
        if self._behind_error is None:
            self._parser.feed(piece)
        if self._held:
            self._held += piece
        elif self._last_out:
            self._sent.append(piece)

    def _begin_block(self) -> None:
        out = self._parser.out
        self._block = []
        self._size = 0
        self._unread = []
        self._begin = self._at
        self._is_first = False
        self._brought = False  # an event
        self._plain = True  # none but text
        self._ordinal = self._parser.payloads
        self._said = len(out.reasons), out.counted
        out.touched = out.emptied = out.mended = out.unopened = False
        out.name = out.why = ""
        out.roleless = []
        self._opening = b""  # what has to stand before the block

    @property
    def _holds_calls(self) -> bool:
        """A call that is under way keeps its blocks until it is whole."""
        return self._job.hold_arguments or self.dialect in _WHOLE_CALLS

    @property
    def _is_empty(self) -> bool:
        """The block brought nothing at all."""
        out = self._parser.out
        return not self._brought and self._said == (len(out.reasons), out.counted)

    def _judge(self, block: bytes) -> None:
        """The block is whole: as sent, to be left out, or the first to be written anew."""
        out = self._parser.out
        self._last_out = False
        if self._parser.reads_array:
            out.mend()  # also what stands between two elements
        elif self._parser.payloads == self._ordinal and self.dialect in READ_EMPTY and has_fields(block):
            out.offset, out.ordinal = self._begin, self._parser.payloads
            self._leave_out_empty()
            return
        if out.touched or (out.emptied and not self._is_empty and not self._ended):
            self._explain()
            self._render()
        elif out.emptied:
            self.repaired = True
            if out.why and not out.mended:
                self._leave_out_empty()
        elif self._rendering:
            if self._passes_behind_repair():
                block = self._with_roles(block)
                self._drop_scratch()
                self._go_out(block)
            else:
                self._flush()
        elif self._parser.payloads == self._ordinal and not self._held:
            self._go_out(block)  # a comment, or blank lines: nothing waits for them
        else:
            block = self._mended(block)
            if self._parser.owes or (self._calls and self._holds_calls):
                self._last_out = True
                self._hold(block)
            else:
                self._pass(block)

    def _leave_out_empty(self) -> None:
        """The block has fields and no data."""
        self._tell_once("empty_event")

    def _tell_once(self, why: str) -> None:
        """Something is put in or left out for that reason: say so the first time."""
        self.repaired = True
        if why not in self._told:
            self._told.add(why)
            self._parser.out.diagnose("rewritten", detail=why)

    def _hold(self, block: bytes) -> None:
        self._held += block
        self._instead += self._job.frames.take()

    def _let_go(self) -> None:
        self._held, self._instead = bytearray(), bytearray()

    def _write_held(self) -> None:
        """Too much waits: write it anew."""
        if not self._explained:
            self._explained = True
            self._parser.out.diagnose("rewritten", detail="held_too_long")
        self._render()

    def _mended(self, block: bytes) -> bytes:
        """The block that is to pass, with the name and the opening that readers want."""
        out = self._parser.out
        if out.unopened:
            self._write_opening(None)
            self.repaired = True
            out.diagnose("rewritten", detail=out.why)
            block = behind_opening(block, self._opening, is_first=self._is_first)
        block = self._with_roles(block)
        if out.name:
            self._tell_once("event_name")
            block = named(block, out.name)
        return block

    def _with_roles(self, block: bytes) -> bytes:
        """The block, behind chunks with the roles that it lacks."""
        out = self._parser.out
        encoder: object = self._encoder
        if not (out.roleless and isinstance(encoder, OpensChoices)):
            return block
        self._tell_once("role_missing")
        self._job.passed.payload = out.payload
        roles = b"".join([encoder.role(choice) for choice in out.roleless])
        return behind_opening(block, roles, is_first=self._is_first)

    def _passes_behind_repair(self) -> bool:
        """Whether the block, sent right behind one that was not, can go out as it is."""
        out = self._parser.out
        if self._parser.payloads == self._ordinal:
            return True
        if self._ended or self._parser.owes or self._said != (len(out.reasons), out.counted):
            return False
        if not self._brought:
            return is_beside(self.dialect or "", out.payload)
        return self._plain and self.dialect in _UNNUMBERED

    def _pass(self, block: bytes) -> None:
        """The block goes out as it was sent, and those that waited before it."""
        out, passed = self._parser.out, self._job.passed
        self._sent.append(self._held)
        self._let_go()
        self._drop_scratch()
        passed.choices.update(out.choices.collected())
        announced = out.announced.collected()
        passed.announced.update(announced)
        passed.behind = max([passed.behind, *(index + 1 for index in announced), *(at + 1 for at, _ in self._items)])
        passed.created = out.created
        passed.closed.update(out.closed.collected())
        passed.ended.update(out.ended.collected())
        passed.finished.update(out.reasons.collected())
        passed.items.update(self._items)
        self._items.clear()
        passed.standing, self._counted = out.standing, out.counted
        if self._ordinal != self._parser.payloads:
            passed.sequence = None if out.sequence is None else out.sequence + 1
        self._go_out(block)

    def _drop_scratch(self) -> None:
        self._job.frames.drop()
        self._job.losses.forget()

    def _go_out(self, block: bytes) -> None:
        self._sent.append(block)
        self._last_out = True

    def _render(self) -> None:
        """From here on what the encoder writes goes out."""
        self.repaired = True
        if self._ended and not self._rendering and not self._job.frames:
            return  # behind the end that passed: there is nothing to go on with
        self._rendering = True
        self._items.clear()
        self._sent.append(self._instead)
        self._let_go()
        self._flush()

    def _explain(self) -> None:
        """Say of the first block that does not pass why, unless a code did; what is a fault is said as one."""
        out = self._parser.out
        if not self._explained:
            self._explained = True
            if out.why and not out.mended:
                out.diagnose("rewritten", detail=out.why)

    def _flush(self) -> None:
        self._sent.append(self._job.frames.take())
        self._tell()

    def _tell(self) -> None:
        """Say what was lost of the payload at hand."""
        for loss in self._job.losses.take():
            self._parser.out.diagnose("not_carried", detail=loss)

    def _taken(self) -> bytes:
        taken = b"".join(self._sent)
        self._sent.clear()
        return taken

    # Events

    def _take(self, event: Event) -> None:
        """One event of the parser, while the payload that brought it is at hand."""
        job, out = self._job, self._parser.out
        encoder = self._encoder or self._load()
        if encoder is None or out.refusal is not None:
            return  # nothing more is written
        self._brought = True
        self._plain = self._plain and event.type in _UNNUMBERED.get(self._parser.dialect or "", ())
        passed = job.passed
        passed.at, passed.sub, passed.item_id = out.address
        passed.index = None if self._rendering or out.touched else passed.at
        passed.payload = out.payload
        if isinstance(event, ToolCallStarted):
            job.custom, job.provider_executed = out.opening
            self._calls.add(event.part)
        elif isinstance(event, ToolCall | ToolCallRetracted):
            self._calls.discard(event.part)
        elif isinstance(event, UpstreamErrorEvent):
            self._reported = self._own_or_sent(fault_of("UpstreamError", event.message, event.kind, event.code))
        job.cut = self._parser.is_cut
        passed.moved = False
        if not (out.unopened and self._write_opening(event)):
            encoder.event(job.as_written(event))
        if passed.moved:
            out.touch("index_taken")
        if job.broken:
            out.touched = True
            out.refusal = out.fault("LifecycleError", "lifecycle")

    def _own_or_sent(self, fault: Fault) -> Fault:
        """The upstream's error: it is rewritten, with what was sent, unless clients raise it as it was sent."""
        out = self._parser.out
        if is_own(self.dialect or "", out.event_type, out.payload):
            return fault
        out.touch("foreign_error")
        return fault.keep_sent(out.payload)

    def _write_opening(self, event: Event | None) -> bool:
        """Write what has to stand before the block, once. `event`: its first. True if that opens the answer itself."""
        encoder = self._encoder or self._load()
        if self._opening or self._parser.out.touched or encoder is None:
            return False
        job, first = self._job, self._parser.out.sequence
        job.passed.unopened = True
        # One less than the first number of the source, which can be -1: each number is one more than the one before it.
        job.passed.sequence = None if first is None else first - 1
        started = isinstance(event, ResponseStarted)
        encoder.event(event if isinstance(event, ResponseStarted) else ResponseStarted())
        job.passed.sequence = first or 0
        self._opening = job.frames.shown()
        return started

    def _keep_item(self, index: int, item: Mapping[str, Any]) -> None:
        """An item ends as it was sent: what tells the whole answer at its end has it so."""
        self._items_size += len(self._parser.out.payload)
        if not self._rendering and (self._cap is None or self._items_size <= self._cap):
            self._items.append((index, item))

    def _load(self) -> Encoder | None:
        """The encoder of the dialect, once that is known."""
        dialect = self._parser.dialect
        if dialect is not None:
            self._job.source = dialect
            self._encoder = load_encoder(dialect)(self._job)
        return self._encoder

    # The end

    def _finish(self) -> None:
        """The answer is over, whole or as far as it came."""
        encoder = self._encoder or self._load()
        if self._ended or encoder is None:
            return
        self._ended = True
        out, completeness = self._parser.out, self._parser.completeness
        if self._reported is None and completeness == "assumed" and self.dialect not in _UNMARKED:
            out.touch("end_missing")
        for event in self._parser.assumed_ends:
            encoder.event(self._job.as_written(event))
        self._end(encoder, Ending(completeness, self._reported))

    def _end(self, encoder: Encoder, ending: Ending) -> None:
        # Running counts may be said in every chunk: the last ones are those that hold.
        out, passed = self._parser.out, self._job.passed
        passed.counted = 0 < self._counted == out.counted
        passed.payload = out.payload  # also where it brought no event, but ended the answer
        encoder.end(ending)

    def _failed(self, fault: StreamError) -> None:
        """What went wrong ends the answer; as sent, where the upstream itself said so."""
        self._over = True
        self.error = fault
        encoder = self._encoder or self._load()
        out = self._parser.out
        if isinstance(fault, UpstreamError) and encoder is None:
            self._pass(b"".join(self._block))  # an error before anything else: no dialect to say it in but its own
            return
        if encoder is None or self._ended:
            return
        self._ended = True
        out.faulted = True
        ending = told(fault)
        if isinstance(fault, UpstreamError):
            ending = self._own_or_sent(ending)
        if self._parser.has_ended and not (out.touched or self._rendering or isinstance(fault, UpstreamError)):
            self._pass(b"".join(self._block))  # the wire itself has said that it breaks off (AI SDK: `abort`)
            return
        if isinstance(fault, UpstreamError) and not (out.touched or self._rendering):
            self._pass(self._mended(b"".join(self._block)))
            self._over = False
            self._behind_error = AfterError(self.dialect or "")
            self._begin_block()
            return
        if not self._job.broken:
            reported = self._reported if isinstance(fault, UpstreamError) else None
            self._end(encoder, Ending(self._parser.completeness, reported or ending))
        self._explain()
        self._render()
