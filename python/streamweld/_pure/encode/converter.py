"""Convert a stream from one dialect to another by sending a parser's events to an encoder.

An error is written immediately in the target's own form, and is also available as `error`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld._pure.encode import load_encoder
from streamweld._pure.encode.common.carrier import CARRYING, Carriers
from streamweld._pure.encode.common.encode_context import EncodeContext
from streamweld._pure.encode.common.finish import Ending, ending_fault, fault_of
from streamweld._pure.encode.common.held_calls import HeldCalls, holds
from streamweld._pure.encode.common.id_mint import IdMint
from streamweld._pure.encode.common.tool_ids import ToolIds
from streamweld._pure.encode.transcript import Transcripts
from streamweld._pure.pipeline.parser import Parser
from streamweld._pure.sse.frame import as_bytes
from streamweld.errors import StreamError, UpstreamError, UsageError
from streamweld.events import Diagnostic, ToolCallStarted, ToolResult, ToolResultDelta, UpstreamErrorEvent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.encode.common.finish import Fault
    from streamweld._pure.encode.common.held_calls import Opening
    from streamweld.events import Event

__all__ = ["Converter"]

_LONG_BYTES: Final = 16 * 1024
_JOINED_BYTES: Final = 256 * 1024
_SAME: Final = "source and target are both {}: a stream of its own dialect cannot be converted"


class Converter:
    """Converts the bytes of a response to another dialect."""

    __slots__ = (
        "_cap",
        "_carriers",
        "_encoder",
        "_context",
        "_held",
        "_over",
        "_parser",
        "_partial_results",
        "_reported",
        "_stored",
        "_target",
        "_taken",
        "_tool_ids",
        "_transcripts",
        "_unread",
        "error",
    )

    def __init__(self, source: str, target: str, config: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        """Create a converter.

        `config` is the parser's configuration. `options` contains the encoder's options (`prefix` for ids, and the
        fields of `EncodeContext`).
        """
        if source == target:
            raise UsageError(_SAME.format(target))
        self._target = target
        # Maximum number of bytes to read before the dialect is detected. The number is limited because the caller may
        # have to store these bytes.
        self._cap: int | None = config["limits"]["max_event_bytes"]
        self._taken = 0  # number of bytes read before the dialect was detected
        # Input that was stored because the dialect was unknown: the part that was read, and the part that was not.
        self._stored, self._unread = _StoredInput(), _StoredInput()
        self._parser = Parser(source, config)
        own = dict(options)
        form = own.pop("tool_id_form", None)
        self._context = EncodeContext(
            IdMint(own.pop("prefix")), known_call_ids=frozenset(config["known_call_ids"]), target=target, **own
        )
        self._tool_ids = None if form is None else ToolIds(self._context.mint, *form)
        self._encoder = load_encoder(target)(self._context)
        self._carriers = Carriers(target) if target in CARRYING else None
        self._transcripts = Transcripts()
        # The held calls, or None if servers of the source's dialect run only calls that are marked as run by the
        # provider. Before the dialect is detected, nothing is held.
        self._held = HeldCalls(config["tools"]) if source == "auto" or holds(source) else None
        self._parser.out.on_request_tools = None if self._held is None else self._held.add_client_tools
        self._reported: Fault | None = None  # error that the upstream sent, if the policy continues after it
        self._partial_results: set[int] = set()  # part numbers of tool results that have arrived only in pieces
        self._over = False
        self.error: StreamError | None = None
        self._parser.out.sink = self._take

    @property
    def dialect(self) -> str | None:
        """The dialect of the source, or None until it is detected."""
        return self._parser.dialect

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """The stored diagnostics."""
        return self._parser.diagnostics

    @property
    def tool_ids(self) -> list[tuple[str, str]]:
        """The target id and the source id of every renamed call."""
        return [] if self._tool_ids is None else self._tool_ids.renamed()

    def snapshot(self) -> tuple[list[Event], str, int]:
        """Return the parser's snapshot of the response so far: its events, completeness and offset."""
        return self._parser.snapshot()

    def fold(self, _choice: object, /) -> None:
        """Return None, because this backend has no folded response and the caller builds one from `snapshot`."""

    def feed(self, data: bytes | bytearray | memoryview) -> bytes:
        """Read the next bytes and return output bytes in the target dialect. Returns no bytes after the ending."""
        if self._over:
            return b""
        try:
            self._read(as_bytes(data))
        except StreamError as fault:
            self._failed(fault)
        self._refuse_same()
        return self._context.frames.take()

    def store(self, piece: bytes) -> None:
        """Store the next input, which does not complete a payload."""
        self._unread.add(piece)

    def feed_stored(self, piece: bytes) -> bytes:
        """Read the stored input that was not read yet, and `piece`, which completes a payload."""
        self._unread.add(piece)
        return self._feed_unread()

    def take_stored(self) -> list[bytes]:
        """Return the whole input, because the source turned out to be in the target dialect."""
        return self._stored.take()

    def close(self, broken: bool = False) -> bytes:
        """End the input and return the last bytes. `broken` is true if the transport failed."""
        made = self._feed_unread()
        if self._over:
            return made
        try:
            self._parser.close(broken)
        except StreamError as fault:
            self._failed(fault)
        else:
            self._end(Ending(self._parser.completeness, self._reported))
        self._refuse_same()
        return made + self._context.frames.take()

    def overflow(self, piece: bytes) -> bytes:
        """End the conversion because too many bytes arrived before the dialect was detected, and return the ending.

        `piece` does not complete a payload. Each stored piece is released when it is read.
        """
        self._stored.take()
        self._unread.add(piece)
        unread = self._unread.take()
        unread.reverse()
        made: list[bytes] = []
        while unread:
            made.append(self.feed(unread.pop()))
        if not self._over:
            self._failed(self._too_much())
            made.append(self._context.frames.take())
        return b"".join(made)

    def exceed(self, name: str) -> bytes:
        """End the conversion because a limit that only the caller can measure was exceeded, and return the ending."""
        if self._over:
            return b""
        self._stored.take()
        try:
            self._parser.exceed(name, self._unread.take())
        except StreamError as fault:
            self._failed(fault)
        self._refuse_same()
        return self._context.frames.take()

    # Internals

    def _feed_unread(self) -> bytes:
        """Read the stored input that was not read yet. The input stays stored as long as the dialect is unknown."""
        unread = self._unread.take()
        for piece in unread:
            self._stored.add(piece)
        made = [self.feed(piece) for piece in unread]
        if self._over or self.dialect is not None:
            self._stored.take()
        return b"".join(made)

    def _read(self, data: bytes) -> None:
        parser = self._parser
        if self._cap is None or self.dialect is not None:
            parser.feed(data)
            return
        room = self._cap - self._taken
        self._taken += len(data)
        if len(data) <= room:
            parser.feed(data)
            return
        parser.feed(data[:room])
        if parser.dialect is None:
            raise self._too_much()
        parser.feed(data[room:])

    def _too_much(self) -> StreamError:
        """Return the error for too many bytes before the dialect was detected."""
        out = self._parser.out
        out.offset, out.ordinal, out.event_type, out.payload = 0, self._parser.payloads, None, b""
        return out.limit("max_event_bytes", self._cap or 0)

    def _take(self, event: Event) -> None:
        """Pass an event from the parser to the encoder, or hold it."""
        context, out = self._context, self._parser.out
        if context.source is None:
            self._detected()
        if context.source == self._target or out.refusal is not None:
            return  # no more output is written; `feed` raises
        if isinstance(event, ToolResultDelta):
            self._partial_results.add(event.part)
            return  # the result that follows contains the whole output
        if isinstance(event, ToolResult):
            self._partial_results.discard(event.part)
        if isinstance(event, UpstreamErrorEvent):
            self._reported = fault_of("UpstreamError", event.message, event.kind, event.code)
        context.cut = self._parser.is_cut
        opening = out.opening if isinstance(event, ToolCallStarted) else (False, False)
        if self._held is None:
            self._write(event, opening)
        else:
            for one in self._held.take(event, opening):
                self._write(*one)

    def _detected(self) -> None:
        """Record the source's dialect once it is detected."""
        self._context.source = self._parser.dialect
        if not holds(self._context.source):
            self._held = None

    def _write(self, event: Event, opening: Opening = (False, False)) -> None:
        """Change an event for the target, pass it to the encoder, and report the losses.

        `opening` contains two facts that a call's start event lacks: whether the call is custom, and whether the
        provider runs it.
        """
        context, out = self._context, self._parser.out
        if out.refusal is not None:
            return
        if isinstance(event, ToolCallStarted):
            context.custom, context.provider_executed = opening
        if self._tool_ids is not None:
            event = self._tool_ids.with_target_id(event)
        self._encode(context.as_written(event))
        try:
            for loss in context.losses.take():
                out.diagnose("not_carried", detail=loss)
        except StreamError as fault:
            out.refusal = fault
        if context.broken and out.refusal is None:
            out.refusal = out.fault("LifecycleError", "lifecycle")

    def _encode(self, event: Event) -> None:
        """Pass an event to the encoder, after adding the transcript of Chat audio, and replacing data that only one
        provider can use with a carrier.
        """
        context, carriers = self._context, self._carriers
        for written in self._transcripts.written(event) if context.source == "chat" else (event,):
            carries = carriers is not None and context.carries
            carried = carriers.carried(context.source or "", written) if carriers is not None and carries else None
            for one in carried or (written,):
                self._encoder.event(one)

    def _refuse_same(self) -> None:
        if self._parser.dialect == self._target:
            self._over = True
            raise UsageError(_SAME.format(self._target))

    def _failed(self, fault: StreamError) -> None:
        self.error = fault
        reported = self._reported if isinstance(fault, UpstreamError) else None
        self._end(Ending(self._parser.completeness, reported or ending_fault(fault)))

    def _end(self, ending: Ending) -> None:
        self._over = True
        if self._parser.dialect == self._target:
            return
        if self._context.source is None:
            self._detected()
        out = self._parser.out
        out.faulted = True  # the response is over, so a loss cannot raise an exception here
        if not self._context.broken:
            waiting = () if self._held is None else self._held.release()
            for one in waiting:
                self._write(*one)
            self.error = self.error or out.refusal
        if not self._context.broken:
            for event in self._parser.assumed_ends:
                self._encode(self._context.as_written(event))
            if self._partial_results:
                self._context.losses.note("server_tool")
            self._encoder.end(ending)
        for loss in self._context.losses.take():
            out.diagnose("not_carried", detail=loss)


class _StoredInput:
    """Stored input, as pieces in order.

    A long piece is stored unchanged. Short pieces are joined into large ones, because each bytes object has an
    overhead, and because short pieces among other small objects would leave unused gaps in memory.
    """

    __slots__ = ("_pieces", "_short")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._short = bytearray()

    def add(self, piece: bytes) -> None:
        if len(piece) >= _LONG_BYTES:
            self._join()
            self._pieces.append(piece)
            return
        self._short += piece
        if len(self._short) >= _JOINED_BYTES:
            self._join()

    def take(self) -> list[bytes]:
        """Return all pieces and remove them."""
        self._join()
        pieces, self._pieces = self._pieces, []
        return pieces

    def _join(self) -> None:
        if self._short:
            self._pieces.append(bytes(self._short))
            self._short.clear()
