"""Repair one stream: accept bytes in one dialect and return bytes in the same dialect. Blocks that clients interpret
correctly pass through unchanged, and all other blocks are rewritten.

A block is the bytes of one server-sent event. The parser reads every block, and an encoder for the same dialect writes
the resulting events into a scratch buffer. As long as blocks are correct, their original bytes are sent and the scratch
buffer is discarded. Once a block must be rewritten, the encoder's output is sent instead until the end of the stream.
Some blocks only lack an event name, a member, the response's opening event, or a role. The missing bytes are added to
such a block, which then passes, and later blocks are checked as usual. This module does not interpret frames or JSON.

A block is held, together with the blocks after it, as long as later input can change the block's interpretation. For
example, an announced call may still be retracted. The number of held bytes is limited. If held blocks exceed the limit,
they are rewritten. A single block that exceeds the limit raises an error. `encode.common.passed_through` stores facts
about the blocks that passed through, which the encoder needs to continue the output.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from streamweld._pure.encode import load_encoder
from streamweld._pure.encode.common.encode_context import (
    EncodeContext,
    OpensChoices,
    WritesCallsInTurn,
    WritesUnmodelled,
)
from streamweld._pure.encode.common.finish import Ending, ending_fault, fault_of
from streamweld._pure.encode.common.id_mint import IdMint
from streamweld._pure.model.output import CREATED
from streamweld._pure.model.unmodelled import BlockOpened, ItemEvent, SentItem, SentPart
from streamweld._pure.pipeline.after_error import AfterError, is_contentless
from streamweld._pure.pipeline.parser import Parser
from streamweld._pure.repair.chunk_type import with_chunk_type
from streamweld._pure.repair.own_error import is_own
from streamweld._pure.sse.block_splitter import Splitter, after_opening, has_fields, named
from streamweld._pure.sse.frame import as_bytes
from streamweld.errors import StreamError, UnknownDialect, UpstreamError
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
    from streamweld._pure.model.unmodelled import Unmodelled
    from streamweld._pure.sse.block_splitter import PiecePosition
    from streamweld.events import Event

__all__ = ["Repairer"]

# Event types that may pass unchanged after a rewritten block. No event of Messages or Responses may pass, because these
# events contain indexes or sequence numbers.
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
_UNMARKED: Final = frozenset({"gemini"})  # dialects without a terminal marker
_DATA_LINES: Final = frozenset({"gemini"})  # dialects in which google-genai parses comments and event lines as JSON
_RUNS_AT_CLOSE: Final = frozenset({"anthropic"})  # dialects whose clients run a call when its item is closed
# Dialects whose clients parse truncated arguments, and run such a call unless the finish reason is unsuccessful.
_PARSES_PARTIAL: Final = frozenset({"anthropic"})
# Dialects without an event that ends a call. In these dialects, a stream that stops after complete calls may lack only
# the terminal marker.
_CALLS_WITHOUT_END: Final = frozenset({"chat"})
_WHOLE_CALLS: Final = frozenset({"gemini"})  # dialects whose encoders write a call only when it is complete


class FurtherInput(Enum):
    """What happens to further input.

    - `REPAIRED`: Further input is parsed, and repaired where necessary.
    - `PASSED`: Further input passes unchanged, because the dialect is unknown.
    - `IGNORED`: Further input is ignored, because the ending was written.
    """

    REPAIRED = auto()
    PASSED = auto()
    IGNORED = auto()


class Repairer:
    """Repairs the bytes of one response, without changing its dialect."""

    __slots__ = (
        "_at",
        "_after_error",
        "_begin",
        "_block",
        "_has_events",
        "_calls",
        "_cap",
        "_counted",
        "_encoder",
        "_ended",
        "_further_input",
        "_held",
        "_replacement",
        "_items",
        "_items_size",
        "_is_first",
        "_context",
        "_last_out",
        "_max_stream",
        "_opening",
        "_ordinal",
        "_parser",
        "_plain",
        "_rewriting",
        "_reported",
        "_passed_counts",
        "_sent",
        "_size",
        "_splitter",
        "_reported_reasons",
        "_unread",
        "error",
        "repaired",
    )

    def __init__(self, source: str, target: str, config: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        """Create a repairer.

        `config` configures the parser, and `options` configures the encoder. `target` equals `source` or is `same`.
        """
        del target
        self._parser = Parser(source, config)
        own = dict(options)
        self._context = EncodeContext(
            IdMint(own.pop("prefix")), known_call_ids=frozenset(config["known_call_ids"]), **own
        )
        self._context.passed.own = self._context.losses.own = True
        self._encoder: Encoder | None = None  # None until the dialect is detected
        self._splitter = Splitter()
        self._sent: list[bytes | bytearray] = []  # output that `feed` has not returned yet
        self._cap: int | None = config["limits"]["max_event_bytes"]  # maximum number of held bytes
        self._max_stream: int | None = config["limits"]["max_stream_bytes"]
        self._at = 0  # number of bytes received
        self._begin = 0  # byte offset at which the current block begins
        self._block: list[bytes] = []  # pieces of the current block; empty once the block needs rewriting
        self._size = 0  # total size of these pieces
        self._unread: list[bytes] = []  # pieces not parsed yet, because the parser would buffer a second copy
        self._held = bytearray()  # held blocks; either all of them pass through, or all are rewritten
        self._replacement = bytearray()  # the encoder's replacement for the held blocks
        self._last_out = True  # whether the last complete block passed through or is held
        self._calls: set[int] = set()  # part numbers of the open calls
        self._counted = 0  # number of payloads with token counts that have passed through
        self._items: list[tuple[int, Mapping[str, Any]]] = []  # completed items of blocks that have not passed yet
        self._items_size = 0  # total payload size of the completed items, in bytes
        self._reported: Fault | None = None  # the error that the upstream sent, if the policy continues after it
        self._after_error: AfterError | None = None  # set once an error from the upstream has passed through
        self._rewriting = False  # whether the encoder's output is sent
        self._reported_reasons: set[str] = set()  # reasons that were reported; each is reported once per stream
        self._ended = False  # whether the end of the response was written or passed through
        self._further_input = FurtherInput.REPAIRED
        self._begin_block()
        self._is_first = True  # whether the current block is the first block
        self.error: StreamError | None = None
        self.repaired = False
        self._parser.out.sink = self._take
        self._parser.out.on_element = self._report_losses
        self._parser.out.on_item = self._keep_item
        self._parser.out.on_unmodelled = self._write_unmodelled
        self._context.passed.added = self._parser.out.added
        self._context.passed.room = self._cap

    @property
    def dialect(self) -> str | None:
        """Dialect of the stream, or None until it is detected."""
        return self._parser.dialect

    @property
    def is_over(self) -> bool:
        """Whether further input is ignored."""
        return self._further_input is FurtherInput.IGNORED

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Diagnostics that were stored."""
        return self._parser.diagnostics

    def snapshot(self) -> tuple[list[Event], str, int]:
        """Return the parser's snapshot of the response so far."""
        return self._parser.snapshot()

    def fold(self, _choice: object, /) -> None:
        """Return None, because this backend has no folded response and the caller builds one from `snapshot`."""

    def feed(self, data: bytes | bytearray | memoryview) -> bytes:
        """Feed the next bytes and return the repaired bytes that are ready.

        Returns no bytes after the repairer has written an ending itself.
        """
        for piece, position in self._splitter.split(as_bytes(data)):
            blocks = [piece]
            if position == "between":
                position = "end"
                if not self._is_one_block(piece):
                    blocks = piece.splitlines(keepends=True)
            for block in blocks:
                match self._further_input:
                    case FurtherInput.REPAIRED:
                        self._handle_piece(block, position)
                    case FurtherInput.PASSED:
                        self._sent.append(block)
                    case FurtherInput.IGNORED:
                        return self._taken()
        return self._taken()

    def close(self, broken: bool = False) -> bytes:
        """End the input and return the last bytes. `broken` is true if the transport failed."""
        if self._further_input is FurtherInput.REPAIRED and self._after_error is None:
            try:
                self._read()
                self._parser.close(broken)
                if self._lacks_only_marker:
                    self._pass(b"")
                self._finish()
                if self._rewriting or self._parser.out.misread:
                    self._report_rewrite_reason()
                    self._rewrite()
                elif self._parser.out.emptied:
                    self.repaired = True
                    self._pass(b"")
                else:
                    self._pass(b"".join(self._block))
            except StreamError as fault:
                self._failed(fault)
        self._further_input = FurtherInput.IGNORED
        return self._taken()

    def exceed(self, name: str) -> bytes:
        """End the stream because a limit that only the caller can measure was exceeded, and return the last bytes."""
        if self._further_input is FurtherInput.REPAIRED and self._after_error is None:
            try:
                self._parser.exceed(name, self._unread)
            except StreamError as fault:
                self._failed(fault)
        self._further_input = FurtherInput.IGNORED
        return self._taken()

    # Blocks

    def _handle_piece(self, piece: bytes, position: PiecePosition) -> None:
        if position == "line_end":
            self._read_line_end(piece)
            return
        try:
            self._keep(piece)
            if self._after_error is not None:
                if position == "end":
                    self._end_after_error(self._after_error)
            elif position == "end":
                self._read()
                if self._parser.is_done:
                    self._finish()
                self._decide(b"".join(self._block))
                self._begin_block()
            elif position == "ready" or self._parser.out.misread:
                self._read_inside()
        except StreamError as fault:
            self._failed(fault)
        self._splitter.merges = not self._held

    def _is_one_block(self, piece: bytes) -> bool:
        """Return True if the comments and blank lines in `piece` can be handled as one block, with the same result.

        Comments are handled one by one if they could exceed a limit, if the form of the body is undecided, or if the
        first comment must be reported.
        """
        if self._parser.is_body_undecided:
            return False
        if self._max_stream is not None and self._at + len(piece) > self._max_stream:
            return False
        if self._cap is not None and self._kept + len(piece) > self._cap:
            return False
        return self.dialect not in _DATA_LINES or "other_lines" in self._reported_reasons or b":" not in piece

    def _keep(self, piece: bytes) -> None:
        """Store a piece of the current block.

        A block that must be rewritten is parsed but not stored, because it cannot pass through.
        """
        self._at += len(piece)
        if self._cap is not None and self._kept + len(piece) * self._copies > self._cap:
            piece = self._exceed(piece, self._cap)
        if self._after_error is None:
            self._unread.append(piece)
        if not self._parser.out.misread:
            self._block.append(piece)
            self._size += len(piece)

    @property
    def _copies(self) -> int:
        """Number of stored bytes for each byte of the current block. A payload on several lines is stored twice: as it
        arrived, because it may have to pass unchanged, and with its lines joined.
        """
        return 2 if self._splitter.is_joined else 1

    @property
    def _kept(self) -> int:
        """Number of stored bytes, including held blocks, their replacement and the current block."""
        return len(self._held) + len(self._replacement) + self._size * self._copies

    def _exceed(self, piece: bytes, cap: int) -> bytes:
        """Make room for `piece` within the limit, and return the bytes of `piece` that are not parsed yet. Raises an
        error if there is no room.
        """
        if self._held and self.dialect is not None:
            self._write_held()
        room = max(0, cap - self._kept) // self._copies
        if len(piece) <= room:
            return piece
        if self._after_error is not None:
            self._block.clear()  # a block above the cap cannot pass through
            return piece
        # First parse the bytes within the limit, because they may raise another error or show that the block must be
        # rewritten.
        self._unread.append(piece[:room])
        self._block.append(piece[:room])
        self._read_inside()
        out = self._parser.out
        if not out.misread:
            out.offset, out.ordinal, out.event_type, out.payload = self._begin, self._parser.payloads, None, b""
            raise out.limit("max_event_bytes", cap)
        return piece[room:]

    def _read(self) -> None:
        """Feed the unparsed pieces of the current block to the parser."""
        unread, self._unread = self._unread, []
        unread.reverse()
        while unread:
            self._parser.feed(unread.pop())

    def _read_inside(self) -> None:
        """Feed the pieces of an incomplete block to the parser.

        If the block must be rewritten, send the encoder's output without waiting for the end of the block.
        """
        self._read()
        if self._parser.out.misread:
            self._block.clear()
            self._size = 0
            if self._rewriting:
                self._flush()
            else:
                self._rewrite()

    def _end_after_error(self, after_error: AfterError) -> None:
        """Pass or drop a complete block that follows an error from the upstream."""
        block = b"".join(self._block)
        self._last_out = len(block) == self._size and after_error.passes(block)
        if self._last_out:
            self._send_block(block)
        self._begin_block()

    def _read_line_end(self, piece: bytes) -> None:
        """Handle the rest of the last block's line ending (the LF after a CR)."""
        self._at += len(piece)
        self._begin = self._at
        if self._after_error is None:
            self._parser.feed(piece)
        if not self._last_out:
            return
        if self._held:
            self._held += piece
        else:
            self._sent.append(piece)

    def _begin_block(self) -> None:
        out = self._parser.out
        self._block = []
        self._size = 0
        self._unread = []
        self._begin = self._at
        self._is_first = False
        self._has_events = False  # whether the block has produced an event
        self._plain = True  # whether the block has produced only events that may pass after a rewritten block
        self._ordinal = self._parser.payloads
        self._passed_counts = len(out.reasons), out.counted
        out.misread = out.emptied = out.mended = out.unopened = out.untyped = False
        out.name = out.why = ""
        out.begun = []
        out.roleless = []
        out.edits, out.edited = [], ""
        self._opening = b""  # opening event to insert before the block

    @property
    def _holds_calls(self) -> bool:
        """Whether blocks must be held because of an open call. Blocks are held if calls are written only when they are
        complete, or if clients might run the call before it is complete.
        """
        if not self._calls:
            return False
        if self.dialect in _RUNS_AT_CLOSE and self._parser.out.ended.overlaps(self._calls):
            return True
        return self._context.hold_arguments or self.dialect in _WHOLE_CALLS

    @property
    def _is_undecided(self) -> bool:
        """Whether later input may change the interpretation of the blocks so far."""
        return self._parser.has_pending or bool(self._calls and self._holds_calls)

    @property
    def _has_waiting_calls(self) -> bool:
        """Whether a received call has not been fully written because it must wait for another call."""
        encoder: object = self._encoder
        return isinstance(encoder, WritesCallsInTurn) and encoder.has_waiting_calls()

    @property
    def _is_empty(self) -> bool:
        """Whether the block produced no event, no new finish reason, and no token counts."""
        out = self._parser.out
        return not self._has_events and self._passed_counts == (len(out.reasons), out.counted)

    def _decide(self, block: bytes) -> None:
        """Decide what happens to a complete block: it passes, is held, is dropped, or is rewritten."""
        out = self._parser.out
        if self._parser.payloads != self._ordinal or self.dialect not in _DATA_LINES:
            self._decide_without_comments(block)
            return
        lines = block.splitlines(keepends=True)
        kept = [line for line in lines if not line.startswith(b":")]
        if len(kept) < len(lines):
            out.offset, out.ordinal, out.event_type, out.payload = self._begin, self._parser.payloads, None, b""
            self._report_once("other_lines")
        self._decide_without_comments(b"".join(kept))
        if lines and lines[-1].startswith(b":"):
            self._last_out = False  # the LF of its line ending may follow

    def _decide_without_comments(self, block: bytes) -> None:
        """Decide what happens to a block from which comments that clients would misread were removed."""
        out = self._parser.out
        self._last_out = False
        self._open_choices()
        if self._parser.reads_array:
            out.mend()  # clients also misread the bytes between two elements
        elif self._parser.payloads == self._ordinal and has_fields(block):
            out.offset, out.ordinal, out.event_type, out.payload = self._begin, self._parser.payloads, None, b""
            self._report_once("empty_event")
            return
        if not (self._rewriting or self._is_undecided) and self._has_waiting_calls:
            out.mark_misread("calls_mixed")
        if out.edits and not self._rewriting and out.edited.encode() not in block:
            out.mark_misread(out.edits[0][0])  # for example, because the payload has several lines
        if out.misread or (out.emptied and not self._is_empty and not self._ended):
            self._report_rewrite_reason()
            self._rewrite()
        elif out.emptied:
            self.repaired = True
            if out.why and not out.mended:
                self._report_once(out.why)
        elif self._rewriting:
            if self._passes_after_repair():
                block = self._with_roles(self._with_object(block))
                self._discard_output()
                self._send_block(block)
            else:
                self._flush()
        elif self._parser.payloads == self._ordinal and not self._held:
            self._send_block(block)  # the block has only comments or blank lines
        else:
            block = self._mended(block)
            if self._is_undecided:
                self._last_out = True
                self._hold(block)
            else:
                self._pass(block)

    def _open_choices(self) -> None:
        """Make the encoder write the roles of the choices that begin in the current block. The encoder's output is
        needed if the block does not pass.
        """
        out = self._parser.out
        if not out.begun:
            return
        encoder: object = self._encoder or self._load()
        if isinstance(encoder, OpensChoices):
            self._context.passed.payload = out.payload
            for choice in out.begun:
                encoder.open(choice)

    def _report_once(self, why: str) -> None:
        """Report that bytes were inserted or dropped for this reason, once per stream."""
        self.repaired = True
        if why not in self._reported_reasons:
            self._reported_reasons.add(why)
            self._parser.out.diagnose("rewritten", detail=why)

    def _hold(self, block: bytes) -> None:
        self._held += block
        self._replacement += self._context.frames.take()

    def _clear_held(self) -> None:
        self._held, self._replacement = bytearray(), bytearray()

    def _write_held(self) -> None:
        """Rewrite and send the held blocks, because they exceed the limit."""
        self._report_once("held_too_long")
        self._rewrite()

    def _mended(self, block: bytes) -> bytes:
        """Add what the block lacks but clients require (the `object` member, an event name, an opening event, and
        roles), and return the result.
        """
        out = self._parser.out
        block = self._with_edits(self._with_object(block))
        if out.name:
            self._report_once("event_name")
            block = named(block, out.name)
        if out.unopened:
            self._write_opening(None)
            self.repaired = True
            out.diagnose("rewritten", detail=out.why)
            block = after_opening(block, self._opening, is_first=self._is_first)
        return self._with_roles(block)

    def _with_object(self, block: bytes) -> bytes:
        """Return the block, with the `object` member added if its chunk lacks it."""
        if not self._parser.out.untyped:
            return block
        self._report_once("no_object")
        return with_chunk_type(block)

    def _with_edits(self, block: bytes) -> bytes:
        """Return the block, with the edits of its payload."""
        out = self._parser.out
        if not out.edits:
            return block
        text = out.edited
        for why, edit in sorted(out.edits, key=lambda one: one[1].start, reverse=True):
            self._report_once(why)
            new = edit.text.replace(CREATED, str(self._context.created))
            text = text[: edit.start] + new + text[edit.end :]
        return block.replace(out.edited.encode(), text.encode(), 1)

    def _with_roles(self, block: bytes) -> bytes:
        """Return the block, preceded by chunks with the roles that the block lacks."""
        out = self._parser.out
        encoder: object = self._encoder
        if not (out.roleless and isinstance(encoder, OpensChoices)):
            return block
        self._report_once("role_missing")
        self._context.passed.payload = out.payload
        roles = b"".join([encoder.role(choice) for choice in out.roleless])
        return after_opening(block, roles, is_first=self._is_first)

    def _passes_after_repair(self) -> bool:
        """Return True if the current block can be sent unchanged although an earlier block was rewritten."""
        out = self._parser.out
        if self._parser.payloads == self._ordinal:
            return True
        if self._ended or self._parser.has_pending or self._passed_counts != (len(out.reasons), out.counted):
            return False
        if not self._has_events:
            return is_contentless(self.dialect or "", out.payload)
        return self._plain and self.dialect in _UNNUMBERED

    def _pass(self, block: bytes) -> None:
        """Send the held blocks and this block unchanged, and record the facts about them for the encoder."""
        out, passed = self._parser.out, self._context.passed
        self._sent.append(self._held)
        self._clear_held()
        self._discard_output()
        passed.choices.update(out.choices.collected())
        announced = out.announced.collected()
        passed.announced.update(announced)
        passed.next_index = max(
            [passed.next_index, *(index + 1 for index in announced), *(at + 1 for at, _ in self._items)]
        )
        passed.created = out.created
        passed.closed.update(out.closed.collected())
        passed.ended.update(out.ended.collected())
        passed.finished.update(out.reasons.collected())
        passed.items.update(self._items)
        self._items.clear()
        self._counted = out.counted
        if self._ordinal != self._parser.payloads:
            passed.sequence = None if out.sequence is None else out.sequence + 1
        self._send_block(block)

    def _discard_output(self) -> None:
        self._context.frames.drop()
        self._context.losses.forget()

    def _send_block(self, block: bytes) -> None:
        self._sent.append(block)
        self._last_out = True

    def _rewrite(self) -> None:
        """Start rewriting, so that the encoder's output is sent from now on."""
        self.repaired = True
        if self._ended and not self._rewriting and not self._context.frames:
            return  # the original ending has passed through; nothing follows it
        self._rewriting = True
        self._items.clear()
        self._sent.append(self._replacement)
        self._clear_held()
        self._flush()

    def _report_rewrite_reason(self) -> None:
        """Report why the block cannot pass, unless another diagnostic or an error reports it. Each reason is reported
        only once per stream.
        """
        out = self._parser.out
        if out.why and out.mended:
            self._reported_reasons.add(out.why)
        elif out.why:
            self._report_once(out.why)

    def _flush(self) -> None:
        self._sent.append(self._context.frames.take())
        self._report_losses()

    def _report_losses(self) -> None:
        """Report the conversion losses since this method was last called."""
        for loss in self._context.losses.take():
            self._parser.out.diagnose("not_carried", detail=loss)

    def _taken(self) -> bytes:
        taken = b"".join(self._sent)
        self._sent.clear()
        return taken

    # Events

    def _take(self, event: Event) -> None:
        """Pass an event from the parser to the encoder, together with facts about the current payload."""
        context, out = self._context, self._parser.out
        encoder = self._encoder or self._load()
        if encoder is None or out.refusal is not None:
            return  # the output has ended
        if out.rejected == out.ordinal and event.type == "unknown":
            return  # the event is dropped together with its payload
        self._has_events = True
        self._plain = self._plain and event.type in _UNNUMBERED.get(self._parser.dialect or "", ())
        passed = context.passed
        passed.at, passed.sub, passed.item_id = out.address
        passed.index = None if self._rewriting or out.misread else passed.at
        passed.payload = out.payload
        if isinstance(event, ToolCallStarted):
            context.custom, context.provider_executed = out.opening
            self._calls.add(event.part)
        elif isinstance(event, ToolCall | ToolCallRetracted):
            self._calls.discard(event.part)
        elif isinstance(event, UpstreamErrorEvent):
            self._reported = self._own_or_sent(fault_of("UpstreamError", event.message, event.kind, event.code))
        context.cut = self._parser.is_cut
        passed.moved = False
        if not (out.unopened and self._write_opening(event)):
            written = context.as_written(event)
            if written is not event and self.dialect in _PARSES_PARTIAL:
                out.mark_misread("truncated_call")
            encoder.event(written)
        if passed.moved:
            out.mark_misread("index_taken")
        if context.broken:
            out.misread = True
            out.refusal = out.fault("LifecycleError", "lifecycle")

    def _write_unmodelled(self, content: Unmodelled) -> None:
        """Pass to the encoder content that no event type can represent."""
        encoder: object = self._encoder or self._load()
        if self._parser.out.refusal is None and isinstance(encoder, WritesUnmodelled):
            passed, is_kept = self._context.passed, not (self._rewriting or self._parser.out.misread)
            passed.payload = self._parser.out.payload
            sent = content.index if isinstance(content, BlockOpened | SentItem | SentPart) else None
            if self._parser.out.unopened and isinstance(content, SentItem | SentPart | ItemEvent):
                self._write_opening(None)  # other content comes with an event, before which the opening is written
            if isinstance(content, SentPart):
                passed.at, passed.sub, passed.item_id = content.index, content.sub, content.item_id
            elif sent is not None:
                passed.at = sent
            passed.index = sent if is_kept else None
            passed.moved = False
            encoder.write_unmodelled(content)
            if passed.moved:
                self._parser.out.mark_misread("index_taken")

    def _own_or_sent(self, fault: Fault) -> Fault:
        """Return the error that ends the output. If clients would not raise the upstream's error as sent, mark the
        block as misread and include the original payload.
        """
        out = self._parser.out
        if is_own(self.dialect or "", out.event_type, out.payload):
            return fault
        out.mark_misread("foreign_error")
        return fault.keep_sent(out.payload)

    def _write_opening(self, event: Event | None) -> bool:
        """Write the missing opening event before the block, unless it was already written.

        `event` is the first event in the block. Returns True if that event itself opens the response.
        """
        encoder = self._encoder or self._load()
        if self._opening or self._parser.out.misread or encoder is None:
            return False
        context, first = self._context, self._parser.out.sequence
        context.passed.unopened = True
        # Sequence numbers must increase by one, so the inserted event gets the number before the source's first number,
        # even if the result is -1.
        context.passed.sequence = None if first is None else first - 1
        started = isinstance(event, ResponseStarted)
        encoder.event(event if isinstance(event, ResponseStarted) else ResponseStarted())
        context.passed.sequence = first or 0
        self._opening = context.frames.shown()
        return started

    def _keep_item(self, index: int, item: Mapping[str, Any]) -> None:
        """Store a completed item as sent. The final event repeats all items."""
        self._items_size += len(self._parser.out.payload)
        if not self._rewriting and (self._cap is None or self._items_size <= self._cap):
            self._items.append((index, item))

    def _load(self) -> Encoder | None:
        """Create and return the encoder, or return None while the dialect is unknown."""
        dialect = self._parser.dialect
        if dialect is not None:
            self._context.source = self._context.target = dialect
            self._encoder = load_encoder(dialect)(self._context)
        return self._encoder

    # The end

    @property
    def _lacks_only_marker(self) -> bool:
        """Whether blocks are held, none of them needs a repair, and the stream lacks only the terminal marker."""
        out = self._parser.out
        is_intact = not (out.misread or out.emptied or self._rewriting or self._ended or self._reported)
        return (
            is_intact
            and bool(self._held)
            and self.dialect in _CALLS_WITHOUT_END
            and self._parser.completeness == "assumed"
        )

    def _finish(self) -> None:
        """Make the encoder write the ending of a complete or truncated response. Do nothing when called again."""
        encoder = self._encoder or self._load()
        if self._ended or encoder is None:
            return
        self._ended = True
        out, completeness = self._parser.out, self._parser.completeness
        if self._reported is None and completeness == "assumed" and self.dialect not in _UNMARKED:
            out.mark_misread("end_missing")
        for event in self._parser.assumed_ends:
            encoder.event(self._context.as_written(event))
        self._end(encoder, Ending(completeness, self._reported))

    def _end(self, encoder: Encoder, ending: Ending) -> None:
        # Every chunk may contain running token counts, so only the last counts are final.
        out, passed = self._parser.out, self._context.passed
        passed.counted = 0 < self._counted == out.counted
        passed.payload = out.payload  # the last payload, even if it ended the response without an event
        encoder.end(ending)

    def _failed(self, fault: StreamError) -> None:
        """End the response after an error. An error from the upstream passes unchanged if clients raise an exception
        for it.
        """
        self._further_input = FurtherInput.IGNORED
        self.error = fault
        encoder = self._encoder or self._load()
        out = self._parser.out
        if isinstance(fault, UpstreamError | UnknownDialect) and encoder is None:
            # Nothing can be rewritten, because the dialect is unknown. The dialect is also unknown if the stream begins
            # with an upstream error.
            self._pass(b"".join(self._block))
            self._further_input = FurtherInput.PASSED
            return
        if encoder is None:
            # No ending can be written, because the dialect is unknown. Input that was not sent yet is dropped.
            self.repaired = self.repaired or bool(self._held) or self._at > self._begin
            return
        if self._ended:
            return
        self._ended = True
        out.faulted = True
        ending = ending_fault(fault)
        if isinstance(fault, UpstreamError):
            ending = self._own_or_sent(ending)
        if self._parser.has_ended and not (out.misread or self._rewriting or isinstance(fault, UpstreamError)):
            self._pass(b"".join(self._block))  # the upstream reported the abort itself (AI SDK: `abort`)
            return
        if isinstance(fault, UpstreamError) and not (out.misread or self._rewriting):
            self._pass(self._mended(b"".join(self._block)))
            self._further_input = FurtherInput.REPAIRED
            self._after_error = AfterError(self.dialect or "")
            self._begin_block()
            return
        if not self._context.broken:
            reported = self._reported if isinstance(fault, UpstreamError) else None
            self._end(encoder, Ending(self._parser.completeness, reported or ending))
        self._report_rewrite_reason()
        self._rewrite()
