"""One stream, bytes of one dialect to bytes of another: the parser, an encoder as the sink of its events, and the end.

Knows when an answer is over and that nothing follows its ending; knows no dialect, no frame and no event. What goes
wrong upstream is written as the target's honest ending and kept as `error`; it is not raised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld._pure.encode import load_encoder
from streamweld._pure.encode.common.carrier import CARRYING, Carriers
from streamweld._pure.encode.common.encode_context import EncodeContext
from streamweld._pure.encode.common.finish import Ending, fault_of, told
from streamweld._pure.encode.common.id_mint import IdMint
from streamweld._pure.pipeline.parser import Parser
from streamweld._pure.sse.frame import as_bytes
from streamweld.errors import StreamError, UpstreamError, UsageError
from streamweld.events import Diagnostic, ToolCallStarted, UpstreamErrorEvent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.encode.common.finish import Fault
    from streamweld.events import Event

__all__ = ["Converter"]

_SAME: Final = "source and target are both {}: a stream of its own dialect cannot be converted"


class Converter:
    """Bytes of one response in, bytes of the same response in another dialect out."""

    __slots__ = ("_cap", "_carriers", "_encoder", "_job", "_over", "_parser", "_reported", "_target", "_taken", "error")

    def __init__(self, source: str, target: str, config: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        """`config`: of the parser; `options`: of the encoder (`prefix` of ids, and the fields of `EncodeContext`)."""
        if source == target:
            raise UsageError(_SAME.format(target))
        self._target = target
        # Until the dialect is known a caller may have to keep what was fed.
        self._cap: int | None = config["limits"]["max_event_bytes"]
        self._taken = 0  # bytes, until then
        self._parser = Parser(source, config)
        own = dict(options)
        self._job = EncodeContext(IdMint(own.pop("prefix")), known_call_ids=frozenset(config["known_call_ids"]), **own)
        self._encoder = load_encoder(target)(self._job)
        self._carriers = Carriers(target) if target in CARRYING else None
        self._reported: Fault | None = None  # an error that the upstream sent, where a policy reads on behind it
        self._over = False
        self.error: StreamError | None = None
        self._parser.out.sink = self._take

    @property
    def dialect(self) -> str | None:
        """What the source speaks; None until that is known."""
        return self._parser.dialect

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Those that were kept."""
        return self._parser.diagnostics

    def snapshot(self) -> tuple[list[Event], str, int]:
        """The answer so far, as the parser tells it."""
        return self._parser.snapshot()

    def feed(self, data: bytes | bytearray | memoryview) -> bytes:
        """Take the next bytes; those of the target that they complete. After the ending there are none."""
        if self._over:
            return b""
        try:
            self._read(as_bytes(data))
        except StreamError as fault:
            self._failed(fault)
        self._refuse_same()
        return self._job.frames.take()

    def close(self, broken: bool = False) -> bytes:
        """The source has ended: the last bytes. `broken`: because the transport failed."""
        if self._over:
            return b""
        try:
            self._parser.close(broken)
        except StreamError as fault:
            self._failed(fault)
        else:
            self._end(Ending(self._parser.completeness, self._reported))
        self._refuse_same()
        return self._job.frames.take()

    def overflow(self, unread: list[bytes]) -> bytes:
        """More came than may be kept before the dialect is known: the last bytes.

        `unread` comes next, and completes no payload. Each piece is taken from the list when it is read.
        """
        made: list[bytes] = []
        unread.reverse()
        while unread:
            made.append(self.feed(unread.pop()))
        return b"".join(made)

    def exceed(self, name: str) -> bytes:
        """A cap was passed that only the caller can measure: the last bytes."""
        if self._over:
            return b""
        try:
            self._parser.exceed(name)
        except StreamError as fault:
            self._failed(fault)
        self._refuse_same()
        return self._job.frames.take()

    # Inside

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
            out = parser.out
            out.offset, out.ordinal, out.event_type, out.payload = 0, parser.payloads, None, b""
            raise out.limit("max_event_bytes", self._cap)
        parser.feed(data[room:])

    def _take(self, event: Event) -> None:
        """One event of the parser, while the payload that brought it is at hand."""
        job, out = self._job, self._parser.out
        if job.source is None:
            job.source = self._parser.dialect
        if job.source == self._target or out.refusal is not None:
            return  # nothing more is written; `feed` refuses
        if isinstance(event, ToolCallStarted):
            job.custom, job.provider_executed = out.opening
        elif isinstance(event, UpstreamErrorEvent):
            self._reported = fault_of("UpstreamError", event.message, event.kind, event.code)
        job.cut = self._parser.is_cut
        self._write(job.as_written(event))
        try:
            for loss in job.losses.take():
                out.diagnose("not_carried", detail=loss)
        except StreamError as fault:
            out.refusal = fault
        if job.broken and out.refusal is None:
            out.refusal = out.fault("LifecycleError", "lifecycle")

    def _write(self, event: Event) -> None:
        """Hand an event to the encoder; a carrier stands in the place of what only its provider can use."""
        job, carriers = self._job, self._carriers
        carried = carriers.carried(job.source or "", event) if carriers is not None and job.carries else None
        for one in carried or (event,):
            self._encoder.event(one)

    def _refuse_same(self) -> None:
        if self._parser.dialect == self._target:
            self._over = True
            raise UsageError(_SAME.format(self._target))

    def _failed(self, fault: StreamError) -> None:
        self.error = fault
        reported = self._reported if isinstance(fault, UpstreamError) else None
        self._end(Ending(self._parser.completeness, reported or told(fault)))

    def _end(self, ending: Ending) -> None:
        self._over = True
        if self._parser.dialect == self._target:
            return
        if self._job.source is None:
            self._job.source = self._parser.dialect
        out = self._parser.out
        out.faulted = True  # here a loss is no fault any more: the answer is over
        if not self._job.broken:
            for event in self._parser.assumed_ends:
                self._write(self._job.as_written(event))
            self._encoder.end(ending)
        for loss in self._job.losses.take():
            out.diagnose("not_carried", detail=loss)
