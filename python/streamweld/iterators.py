"""Events from a source of bytes: `iter_events`, `iter_batches`, `aiter_events`, `aiter_batches`.

It knows `StreamParser` and the loop that takes from a source; it never looks into the bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from streamweld._items import AsyncItems, Items, Progress
from streamweld._source import Source
from streamweld._step import Step, arun, patience_of, run
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


class _Reader(Step[list[Event]]):
    """The step of a parser: its events."""

    __slots__ = ("parser",)

    def __init__(self, parser: StreamParser) -> None:
        super().__init__()
        self.parser = parser

    def step(self, chunk: bytes | bytearray | memoryview) -> list[Event]:
        """The events of the next piece."""
        try:
            return self.parser.feed(chunk)
        except StreamError as fault:
            self.fault = fault
            return fault.events

    def end(self, *, broken: bool = False) -> list[Event]:
        """The source has ended: the last events."""
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
    """What both kinds of iterators return of calls that are being sent."""

    __slots__ = ()
    _reader: StreamParser

    def partial(self, part: int) -> PartialArguments:
        """The arguments of a tool call, live: see `StreamParser.partial`."""
        return self._reader.partial(part)

    def arguments_so_far(self, part: int) -> str:
        """The argument text of a tool call so far: see `StreamParser.arguments_so_far`."""
        return self._reader.arguments_so_far(part)


class EventIterator(Items[StreamParser, _T], Progress[StreamParser], _Arguments):
    """What `iter_events` and `iter_batches` return. It knows the response so far, too."""

    __slots__ = ()


class AsyncEventIterator(AsyncItems[StreamParser, _T], Progress[StreamParser], _Arguments):
    """What `aiter_events` and `aiter_batches` return. It knows the response so far, too."""

    __slots__ = ()


def iter_events(
    chunks: Iterable[bytes | bytearray | memoryview], *, close_source: bool = True, **options: Unpack[StreamOptions]
) -> EventIterator[Event]:
    """The events of a stream that comes in pieces.

    Args:
        chunks: pieces of the body, such as `response.iter_bytes()` of httpx, `iter_content(None)` of requests; no lines
            without their ends, as `iter_lines()` has them.
        close_source: whether to call `chunks.close()`, if it has one, exactly once: at the end, on an error, and when
            the loop is left early.
        **options: the options of `StreamParser`: `dialect`, `policy`, `limits`, `tools`, `known_call_ids`,
            `content_type`, `seed`.

    Raises:
        StreamError: after the events before the fault were delivered. What the source raises comes through as it is,
            after the events of a cut stream.

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
    """As `iter_events`, but one list of events for each piece that brought any: cheaper where events are many."""
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
    """The events of a stream that comes in pieces, for `async for`.

    Args:
        chunks: pieces of the body: `response.aiter_bytes()` of httpx, `response.content.iter_any()` of aiohttp.
        idle_timeout: seconds to wait for the next piece, whatever is in it.
        event_timeout: seconds to wait for the next event; a gateway's keep-alive comments do not count. Both end the
            stream as `TruncatedStream(where="idle")`, unless its terminal marker had been read. They need asyncio.
        close_source: whether to call `chunks.aclose()` (or `close()`), if it has one, exactly once: at the end, on an
            error, on cancellation, and when the iterator is closed. A loop that is left early closes it when the
            iterator is dropped; `async with aiter_events(...) as events` does it at once.
        **options: the options of `StreamParser`: `dialect`, `policy`, `limits`, `tools`, `known_call_ids`,
            `content_type`, `seed`.

    Raises:
        StreamError: after the events before the fault were delivered. What the source raises comes through as it is,
            after the events of a cut stream; a cancellation at once.
    """
    source = Source.asynchronous(chunks, close=close_source, other="iter_events()")
    patience = patience_of(idle_timeout, event_timeout)
    parser = StreamParser(**options)
    return AsyncEventIterator(parser, source, _aflat(arun(_Reader(parser), source, patience)))


def aiter_batches(
    chunks: AsyncIterable[bytes | bytearray | memoryview],
    *,
    idle_timeout: float | None = None,
    event_timeout: float | None = None,
    close_source: bool = True,
    **options: Unpack[StreamOptions],
) -> AsyncEventIterator[list[Event]]:
    """As `aiter_events`, but one list of events for each piece that brought any: cheaper where events are many."""
    source = Source.asynchronous(chunks, close=close_source, other="iter_batches()")
    patience = patience_of(idle_timeout, event_timeout)
    parser = StreamParser(**options)
    return AsyncEventIterator(parser, source, arun(_Reader(parser), source, patience))
