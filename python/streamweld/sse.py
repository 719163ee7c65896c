"""Server-sent events alone: bytes in, frames out, exactly as the WHATWG HTML Standard reads them.

    for frame in streamweld.sse.iter_frames(response.iter_bytes()):
        print(frame.event, frame.data)

An event that the input does not finish with a blank line is dropped, as the standard says; `StreamParser` tells of it.
Layer 5: with `_backend` the one module that knows both backends. It knows no dialect.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

from streamweld import _backend
from streamweld._extension import extension
from streamweld._pure.sse import Frame as PureFrame
from streamweld._pure.sse import Framer as PureFramer
from streamweld._pure.sse import FramerLimit
from streamweld.errors import LimitExceeded, UsageError
from streamweld.options import to_config

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Generator, Iterable

    from streamweld.options import Limits

__all__ = ["Frame", "FrameReader", "aiter_frames", "iter_frames"]

Buffer: TypeAlias = "bytes | bytearray | memoryview"


@dataclass(frozen=True, slots=True)
class Frame:
    """One dispatched event."""

    event: str
    """Its type; `message` if it named none."""
    data: str
    """Its data lines, joined by LF. What is no UTF-8 became U+FFFD."""
    id: str
    """The last event id when it was dispatched: of this event or of one before it; `""` if there was none."""
    retry: int | None
    """The reconnection time in ms that this event's block set, or None."""


class FrameReader:
    """Takes reads of any size and gives the frames that each completes.

    `last_event_id` is that of the connection that this one goes on from. Of the limits, `max_event_bytes` and
    `max_field_bytes` hold here.
    """

    __slots__ = ("_failed", "_framer")

    def __init__(self, *, limits: Limits | None = None, last_event_id: str = "") -> None:
        caps = to_config(limits=limits)["limits"]
        self._framer = _open(caps, last_event_id)
        self._failed = False

    def feed(self, data: Buffer, /) -> list[Frame]:
        """The frames that these bytes complete.

        Raises:
            LimitExceeded: with the frames of this call that came before it in `.events`; nothing can be fed after it.
            UsageError: after LimitExceeded.
            TypeError: for what is no contiguous buffer of bytes.
        """
        if self._failed:
            raise UsageError("the reader has failed; nothing can be fed any more")
        try:
            return self._framer.feed(data)
        except LimitExceeded:
            self._failed = True
            raise

    @property
    def last_event_id(self) -> str:
        """What a client would send as `Last-Event-ID` to go on from here."""
        return self._framer.last_event_id

    @property
    def reconnection_time(self) -> int | None:
        """The last valid `retry` in ms, which applies as soon as it is read; None without any."""
        return self._framer.reconnection_time


def iter_frames(
    chunks: Iterable[Buffer], *, limits: Limits | None = None, last_event_id: str = "", close_source: bool = True
) -> Generator[Frame, None, None]:
    """The frames of an iterable of bytes, each as soon as it is complete.

    However the iteration ends (at the end, by an exception, early with `close()`), it closes its source, once, if that
    can be closed; `close_source=False` leaves it open.

    Raises:
        LimitExceeded: while iterating, after the frames before it.
    """
    frames = _frames(FrameReader(limits=limits, last_event_id=last_event_id), chunks, close_source)
    next(frames)  # now its end closes the source, even if it comes before the first frame
    return frames


def aiter_frames(
    chunks: AsyncIterable[Buffer], *, limits: Limits | None = None, last_event_id: str = "", close_source: bool = True
) -> AsyncFrames:
    """`iter_frames` for an asynchronous iterable. To leave the loop early, close it: `contextlib.aclosing` does."""
    return AsyncFrames(FrameReader(limits=limits, last_event_id=last_event_id), chunks, close_source)


def _frames(reader: FrameReader, chunks: Iterable[Buffer], close_source: bool) -> Generator[Frame, None, None]:
    source = iter(chunks)
    try:
        yield _STARTED
        for chunk in source:
            yield from _step(reader, chunk)
    finally:
        if close_source:
            for open_source in _sources(chunks, source):
                close = getattr(open_source, "close", None)
                if close is not None:
                    close()


class AsyncFrames(AsyncIterator[Frame]):
    """What `aiter_frames` gives: an asynchronous iterator of frames that can be closed before its end."""

    __slots__ = ("_chunks", "_frames", "_started")

    def __init__(self, reader: FrameReader, chunks: AsyncIterable[Buffer], close_source: bool) -> None:
        self._chunks: AsyncIterable[Buffer] | None = chunks if close_source else None
        self._frames = _aframes(reader, chunks, close_source)
        self._started = False

    def __anext__(self) -> Awaitable[Frame]:
        self._started = True
        return anext(self._frames)

    async def aclose(self) -> None:
        """Ends the iteration and closes the source, if that did not happen."""
        await self._frames.aclose()
        if not self._started and self._chunks is not None:  # what never ran has no end that would do it
            self._started = True
            await _aclose(self._chunks)


async def _aframes(
    reader: FrameReader, chunks: AsyncIterable[Buffer], close_source: bool
) -> AsyncGenerator[Frame, None]:
    source = aiter(chunks)
    try:
        async for chunk in source:
            for frame in _step(reader, chunk):
                yield frame
    finally:
        if close_source:
            for open_source in _sources(chunks, source):
                await _aclose(open_source)


async def _aclose(source: object) -> None:
    close = getattr(source, "aclose", None) or getattr(source, "close", None)
    if close is not None:
        closing = close()
        if isawaitable(closing):
            await closing


def _step(reader: FrameReader, chunk: Buffer) -> Generator[Frame, None, None]:
    """The frames of one read; then what it raises."""
    try:
        frames = reader.feed(chunk)
    except LimitExceeded as fault:
        yield from cast("list[Frame]", fault.events)
        raise
    yield from frames


def _sources(chunks: object, source: object) -> tuple[object, ...]:
    """An iterable and the iterator of it, where these are two."""
    return (source,) if source is chunks else (source, chunks)


# The two backends, in one shape.


class _Framer(Protocol):
    @property
    def last_event_id(self) -> str: ...
    @property
    def reconnection_time(self) -> int | None: ...
    def feed(self, data: Buffer, /) -> list[Frame]: ...


def _open(limits: dict[str, int | None], last_event_id: str) -> _Framer:
    module = extension() if _backend.backend == "native" else None
    if module is None or not hasattr(module, "Framer"):
        return _Pure(limits, last_event_id)
    return _Native(module.Framer(limits, last_event_id))


class _Native:
    """`streamweld._native.Framer` gives rows of (event, data, id, retry)."""

    __slots__ = ("_framer",)

    def __init__(self, framer: Any) -> None:
        self._framer = framer

    @property
    def last_event_id(self) -> str:
        return cast("str", self._framer.last_event_id)

    @property
    def reconnection_time(self) -> int | None:
        return cast("int | None", self._framer.reconnection_time)

    def feed(self, data: Buffer, /) -> list[Frame]:
        try:
            return [Frame(*row) for row in self._framer.feed(data)]
        except LimitExceeded as fault:
            fault.events = cast("Any", [Frame(*row) for row in cast("list[Any]", fault.events)])
            raise


class _Pure:
    __slots__ = ("_count", "_framer")

    def __init__(self, limits: dict[str, int | None], last_event_id: str) -> None:
        self._framer = PureFramer(limits, last_event_id=last_event_id)
        self._count = 0

    @property
    def last_event_id(self) -> str:
        return self._framer.last_event_id

    @property
    def reconnection_time(self) -> int | None:
        return self._framer.reconnection_time

    def feed(self, data: Buffer, /) -> list[Frame]:
        fault = None
        try:
            items = self._framer.feed(data)
        except FramerLimit as limit:
            fault = limit
            items = limit.items
        frames = [
            Frame(item.event, item.data.decode("utf-8", "replace"), item.id, item.retry)
            for item in items
            if isinstance(item, PureFrame)
        ]
        self._count += len(frames)
        if fault is not None:
            raise LimitExceeded(
                limit_name=fault.limit_name,
                limit=fault.limit,
                observed=fault.observed,
                byte_offset=fault.offset,
                event_ordinal=self._count,
                events=cast("Any", frames),
            )
        return frames


_STARTED: Final = Frame("", "", "", None)
