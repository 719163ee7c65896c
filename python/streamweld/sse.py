"""Parse server-sent events: turn bytes into frames, exactly as the WHATWG HTML Standard specifies.

    for frame in streamweld.sse.iter_frames(response.iter_bytes()):
        print(frame.event, frame.data)

An event that is not followed by a blank line is dropped, as the standard requires; `StreamParser` reports it. Only this
module and `_backend` use both backends. This module does not depend on dialects.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from streamweld import _backend
from streamweld._extension import extension
from streamweld._items import AsyncItems, Items
from streamweld._pure.sse.framer import Frame as PureFrame
from streamweld._pure.sse.framer import Framer as PureFramer
from streamweld._pure.sse.framer import FramerLimit
from streamweld._source import Source
from streamweld.errors import LimitExceeded, ParserBusy, UsageError
from streamweld.options import to_config

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable

    from streamweld.options import Limits

__all__ = ["AsyncFrameIterator", "Frame", "FrameIterator", "FrameReader", "aiter_frames", "iter_frames"]

Buffer: TypeAlias = "bytes | bytearray | memoryview"


@dataclass(frozen=True, slots=True)
class Frame:
    """One dispatched event."""

    event: str
    """The event type; `message` if the event has no `event:` line."""
    data: str
    """The data lines, joined by LF. Invalid UTF-8 is replaced with U+FFFD."""
    id: str
    """The last event id at the time of dispatch, from this event or an earlier one; `""` if there was none."""
    retry: int | None
    """The reconnection time in milliseconds that this event set, or None."""


class FrameReader:
    """Reads bytes in chunks of any size, and returns the frames that each chunk completes.

    `last_event_id` is the last event id of the connection that this connection continues. Only the limits
    `max_event_bytes` and `max_field_bytes` apply.
    """

    __slots__ = ("_failed", "_framer")

    def __init__(self, *, limits: Limits | None = None, last_event_id: str = "") -> None:
        caps = to_config(limits=limits)["limits"]
        self._framer = _open(caps, last_event_id)
        self._failed = False

    def feed(self, data: Buffer, /) -> list[Frame]:
        """Feed the next bytes and return the frames that they complete.

        Raises:
            LimitExceeded: if a limit is exceeded; `.events` holds the frames of this call before the fault. The reader
                cannot be used after this exception.
            UsageError: after LimitExceeded; as `ParserBusy`, while another call is running.
            TypeError: if the data is not a contiguous buffer of bytes.
        """
        if self._failed:
            raise UsageError("the reader has failed and accepts no more input")
        try:
            return self._framer.feed(data)
        except LimitExceeded:
            self._failed = True
            raise

    @property
    def last_event_id(self) -> str:
        """The value of `Last-Event-ID` with which a reconnect continues after the frames read so far."""
        return self._framer.last_event_id

    @property
    def reconnection_time(self) -> int | None:
        """The last valid `retry` value in milliseconds, updated as soon as its line is read; None if there was none."""
        return self._framer.reconnection_time


def iter_frames(
    chunks: Iterable[Buffer], *, limits: Limits | None = None, last_event_id: str = "", close_source: bool = True
) -> FrameIterator:
    """Yield the frames of a body that arrives in chunks, each as soon as it is complete.

    Args:
        chunks: chunks of the body, such as `response.iter_bytes()` of httpx.
        limits: how much input to accept; only `max_event_bytes` and `max_field_bytes` apply.
        last_event_id: the last id of the connection that this connection continues.
        close_source: whether to call `chunks.close()`, if it exists, exactly once: at the end, on an error, or when the
            loop is left early.

    Raises:
        LimitExceeded: after all frames before the fault have been delivered. An exception from the source is raised
            unchanged.

    >>> [frame.data for frame in iter_frames([b"data: a\\ndata: b\\n\\nda", b"ta: c\\n\\n"])]
    ['a\\nb', 'c']
    """
    source = Source.sync(chunks, close=close_source, other="aiter_frames()")
    reader = FrameReader(limits=limits, last_event_id=last_event_id)
    return FrameIterator(reader, source, _frames(reader, source))


def aiter_frames(
    chunks: AsyncIterable[Buffer], *, limits: Limits | None = None, last_event_id: str = "", close_source: bool = True
) -> AsyncFrameIterator:
    """Yield the frames of an asynchronous source, such as `response.aiter_bytes()` of httpx. See `iter_frames`.

    If the caller leaves the loop early, the source is closed only when the iterator is deleted. To close it at once,
    use `async with aiter_frames(...) as frames`.
    """
    source = Source.asynchronous(chunks, close=close_source, other="iter_frames()")
    reader = FrameReader(limits=limits, last_event_id=last_event_id)
    return AsyncFrameIterator(reader, source, _aframes(reader, source))


class _Reconnects:
    """Properties of both iterators that return the values that a client needs to reconnect."""

    __slots__ = ()
    _reader: FrameReader

    @property
    def last_event_id(self) -> str:
        return self._reader.last_event_id

    @property
    def reconnection_time(self) -> int | None:
        return self._reader.reconnection_time


class FrameIterator(Items[FrameReader, Frame], _Reconnects):
    """Iterator returned by `iter_frames`."""

    __slots__ = ()


class AsyncFrameIterator(AsyncItems[FrameReader, Frame], _Reconnects):
    """Iterator returned by `aiter_frames`."""

    __slots__ = ()


def _step(reader: FrameReader, chunk: Buffer) -> Generator[Frame]:
    """Yield the frames completed by one chunk, then raise the exception for that chunk, if any."""
    try:
        frames = reader.feed(chunk)
    except LimitExceeded as fault:
        yield from cast("list[Frame]", fault.events)
        raise
    yield from frames


def _frames(reader: FrameReader, source: Source) -> Generator[Frame]:
    try:
        for chunk in source:
            yield from _step(reader, chunk)
    except BaseException:
        # Do not let an error from closing the source replace the original exception.
        with suppress(Exception):
            source.close()
        raise
    source.close()


async def _aframes(reader: FrameReader, source: Source) -> AsyncGenerator[Frame]:
    try:
        async for chunk in source:
            for frame in _step(reader, chunk):
                yield frame
    except BaseException:
        with suppress(Exception):
            await source.aclose()
        raise
    await source.aclose()


# The interface that the framers of both backends implement.


class _Framer(Protocol):
    @property
    def last_event_id(self) -> str: ...
    @property
    def reconnection_time(self) -> int | None: ...
    def feed(self, data: Buffer, /) -> list[Frame]: ...


def _open(limits: dict[str, int | None], last_event_id: str) -> _Framer:
    module = extension() if _backend.backend == "native" else None
    if module is None:
        return _Pure(limits, last_event_id)
    return _Native(module.Framer(limits, last_event_id))


class _Native:
    """Adapts `streamweld._native.Framer`, which returns rows of (event, data, id, retry)."""

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
    __slots__ = ("_busy", "_count", "_framer")

    def __init__(self, limits: dict[str, int | None], last_event_id: str) -> None:
        self._framer = PureFramer(limits, last_event_id=last_event_id)
        self._count = 0
        self._busy = Lock()

    @property
    def last_event_id(self) -> str:
        return self._framer.last_event_id

    @property
    def reconnection_time(self) -> int | None:
        return self._framer.reconnection_time

    def feed(self, data: Buffer, /) -> list[Frame]:
        if not self._busy.acquire(blocking=False):
            raise ParserBusy("another call into this reader is running")
        try:
            return self._feed(data)
        finally:
            self._busy.release()

    def _feed(self, data: Buffer) -> list[Frame]:
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
