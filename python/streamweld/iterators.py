"""Yield events from a source of bytes: `iter_events`, `iter_batches`, `aiter_events`, `aiter_batches`.

This module combines `StreamParser` with the loop that reads a source. This module does not examine the bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from streamweld._chunk_loop import ChunkProcessor, arun, run, timeouts_of
from streamweld._items import AsyncItems, Items, Progress
from streamweld._source import Source
from streamweld.errors import StreamError
from streamweld.events import Event
from streamweld.stream import StreamParser

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable
    from typing import Unpack

    from streamweld.partial import PartialArguments
    from streamweld.stream import StreamOptions

__all__ = ["AsyncEventIterator", "EventIterator", "aiter_batches", "aiter_events", "iter_batches", "iter_events"]

_T = TypeVar("_T")


class _Reader(ChunkProcessor[list[Event]]):
    """Adapts a parser to the chunk loop: each result is a list of events."""

    __slots__ = ("parser",)

    def __init__(self, parser: StreamParser) -> None:
        super().__init__()
        self.parser = parser

    def step(self, chunk: bytes | bytearray | memoryview) -> list[Event]:
        """Return the events that the next chunk completes."""
        try:
            return self.parser.feed(chunk)
        except StreamError as fault:
            self.fault = fault
            return fault.events

    def end(self, *, broken: bool = False) -> list[Event]:
        """End the input and return the last events."""
        try:
            return self.parser.close(broken=broken)
        except StreamError as fault:
            self.fault = fault
            return fault.events


def _flat(batches: Generator[list[Event]]) -> Generator[Event]:
    try:
        for batch in batches:
            yield from batch
    finally:
        batches.close()


async def _aflat(batches: AsyncGenerator[list[Event]]) -> AsyncGenerator[Event]:
    try:
        async for batch in batches:
            for event in batch:
                yield event
    finally:
        await batches.aclose()


class _Arguments:
    """Methods of all iterators for reading the arguments of calls that are still arriving."""

    __slots__ = ()
    _reader: StreamParser

    def partial(self, part: int) -> PartialArguments:
        """Return a live view of a tool call's arguments: see `StreamParser.partial`."""
        return self._reader.partial(part)

    def arguments_so_far(self, part: int) -> str:
        """Return the argument text of a tool call so far: see `StreamParser.arguments_so_far`."""
        return self._reader.arguments_so_far(part)


class EventIterator(Items[StreamParser, _T], Progress[StreamParser], _Arguments):
    """Iterator with the response so far, returned by `iter_events` and `iter_batches`."""

    __slots__ = ()


class AsyncEventIterator(AsyncItems[StreamParser, _T], Progress[StreamParser], _Arguments):
    """Iterator with the response so far, returned by `aiter_events` and `aiter_batches`."""

    __slots__ = ()


def iter_events(
    chunks: Iterable[bytes | bytearray | memoryview], *, close_source: bool = True, **options: Unpack[StreamOptions]
) -> EventIterator[Event]:
    """Yield the events of a stream that arrives in chunks.

    Args:
        chunks: chunks of the body, such as `response.iter_bytes()` of httpx or `iter_content(None)` of requests. Do not
            pass lines without line endings, such as those that `iter_lines()` yields.
        close_source: whether to call `chunks.close()`, if it exists, exactly once: at the end, on an error, or when the
            loop is left early.
        **options: the options of `StreamParser`: `dialect`, `policy`, `limits`, `tools`, `known_call_ids`,
            `content_type`, `seed`.

    Raises:
        StreamError: after all events before the fault have been delivered. An exception of the source is raised
            unchanged, after the events of the truncated stream.

    >>> pieces = [b'data: {"choices":[{"delta":{"con', b'tent":"Hi"},"finish_reason":"stop"}]}', b"\\n\\n"]
    >>> pieces.append(b"data: [DONE]\\n\\n")
    >>> [event.type for event in iter_events(pieces)]
    ['response_started', 'text_started', 'text_delta', 'text_done', 'finished']
    """
    source = Source.sync(chunks, close=close_source, other="aiter_events()")
    parser = StreamParser(**options)
    return EventIterator(parser, source, _flat(run(_Reader(parser), source)))


def iter_batches(
    chunks: Iterable[bytes | bytearray | memoryview], *, close_source: bool = True, **options: Unpack[StreamOptions]
) -> EventIterator[list[Event]]:
    """Yield the events of a stream as one list for each chunk that completes an event.

    This function is like `iter_events`, but has less overhead if there are many events.
    """
    source = Source.sync(chunks, close=close_source, other="aiter_batches()")
    parser = StreamParser(**options)
    return EventIterator(parser, source, run(_Reader(parser), source))


def aiter_events(
    chunks: AsyncIterable[bytes | bytearray | memoryview],
    *,
    idle_timeout: float | None = None,
    event_timeout: float | None = None,
    close_source: bool = True,
    **options: Unpack[StreamOptions],
) -> AsyncEventIterator[Event]:
    """Yield the events of a stream that arrives in chunks, for `async for`.

    Args:
        chunks: chunks of the body: `response.aiter_bytes()` of httpx, `response.content.iter_any()` of aiohttp.
        idle_timeout: how many seconds to wait for the next chunk, whatever it contains.
        event_timeout: how many seconds to wait for the next event; a gateway's keep-alive comments do not count. Both
            timeouts end the stream with `TruncatedStream(where="idle")`, unless its terminal marker has been read. The
            timeouts need asyncio.
        close_source: whether to call `chunks.aclose()` (or `close()`), if it exists, exactly once: at the end, on an
            error, on cancellation, or when the iterator is closed. If the caller leaves the loop early, the source is
            closed only when the iterator is deleted. To close it at once, use `async with aiter_events(...) as events`.
        **options: the options of `StreamParser`: `dialect`, `policy`, `limits`, `tools`, `known_call_ids`,
            `content_type`, `seed`.

    Raises:
        StreamError: after all events before the fault have been delivered. An exception of the source is raised
            unchanged, after the events of the truncated stream; a cancellation is raised at once.
    """
    source = Source.asynchronous(chunks, close=close_source, other="iter_events()")
    timeouts = timeouts_of(idle_timeout, event_timeout)
    parser = StreamParser(**options)
    return AsyncEventIterator(parser, source, _aflat(arun(_Reader(parser), source, timeouts)))


def aiter_batches(
    chunks: AsyncIterable[bytes | bytearray | memoryview],
    *,
    idle_timeout: float | None = None,
    event_timeout: float | None = None,
    close_source: bool = True,
    **options: Unpack[StreamOptions],
) -> AsyncEventIterator[list[Event]]:
    """Yield the events of a stream as one list for each chunk that completes an event.

    This function is like `aiter_events`, but has less overhead if there are many events.
    """
    source = Source.asynchronous(chunks, close=close_source, other="iter_batches()")
    timeouts = timeouts_of(idle_timeout, event_timeout)
    parser = StreamParser(**options)
    return AsyncEventIterator(parser, source, arun(_Reader(parser), source, timeouts))
