"""Events from a source of bytes: `iter_events`, `iter_batches`, `aiter_events`, `aiter_batches`.

Layer 6. It knows `StreamParser` and the loop that takes from a source; it never looks into the bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from streamweld._source import Source
from streamweld._step import Step, arun, patience_of, run
from streamweld.errors import StreamError
from streamweld.events import Event
from streamweld.stream import StreamParser

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Iterable, Iterator
    from typing import Self, Unpack

    from streamweld.events import Diagnostic
    from streamweld.response import Response
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

    def end(self) -> list[Event]:
        """The source has ended: the last events."""
        try:
            return self.parser.close()
        except StreamError as fault:
            self.fault = fault
            return fault.events

    def failed(self, error: Exception) -> list[Event]:
        """The source raised: the last events. What the caller gets to see is the source's exception, as it is."""
        events = self.end()
        self.fault = error
        return events

    def stalled(self) -> list[Event]:
        """The source timed out: the last events. A fault, unless all that was open had been closed."""
        events = self.end()
        self.say_idle()
        return events


class _Iteration:
    """What the sync and the async iterators have beside their items."""

    __slots__ = ("_parser", "_source")

    def __init__(self, parser: StreamParser, source: Source) -> None:
        self._parser = parser
        self._source = source

    @property
    def response(self) -> Response:
        """Everything so far, as a new immutable value."""
        return self._parser.response

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every repair and anomaly so far, in order."""
        return self._parser.diagnostics

    @property
    def dialect(self) -> str | None:
        """The wire format; None until the first payload has shown it."""
        return self._parser.dialect


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


class EventIterator(_Iteration, Generic[_T]):
    """What `iter_events` and `iter_batches` return. It knows the response so far, too."""

    __slots__ = ("_items",)

    def __init__(self, parser: StreamParser, source: Source, items: Generator[_T]) -> None:
        super().__init__(parser, source)
        self._items = items

    def __iter__(self) -> Iterator[_T]:
        # The generator itself: a loop that is left drops it, which closes the source at once.
        return self._items

    def __next__(self) -> _T:
        return next(self._items)

    def close(self) -> None:
        """Stop; closes the source, if that was not done before."""
        self._items.close()
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncEventIterator(_Iteration, Generic[_T]):
    """What `aiter_events` and `aiter_batches` return. It knows the response so far, too."""

    __slots__ = ("_items",)

    def __init__(self, parser: StreamParser, source: Source, items: AsyncGenerator[_T]) -> None:
        super().__init__(parser, source)
        self._items = items

    def __aiter__(self) -> AsyncIterator[_T]:
        return self._items

    async def __anext__(self) -> _T:
        return await anext(self._items)

    async def aclose(self) -> None:
        """Stop; closes the source, if that was not done before."""
        await self._items.aclose()
        await self._source.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def iter_events(
    chunks: Iterable[bytes | bytearray | memoryview], *, close_source: bool = True, **options: Unpack[StreamOptions]
) -> EventIterator[Event]:
    """The events of a stream that comes in pieces.

    Args:
        chunks: pieces of the body, such as `response.iter_bytes()` of httpx.
        close_source: whether to call `chunks.close()`, if it has one, exactly once: at the end, on an error, and when
            the loop is left early.
        **options: those of `StreamParser`.

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
            stream as `TruncatedStream(where="idle")`, unless all that was open had been closed. They need asyncio.
        close_source: whether to call `chunks.aclose()` (or `close()`), if it has one, exactly once: at the end, on an
            error, on cancellation, and when the iterator is closed. A loop that is left early closes it when the
            iterator is dropped; `async with aiter_events(...) as events` does it at once.
        **options: those of `StreamParser`.

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
