"""Events from a source of bytes: `iter_events`, `iter_batches`, `aiter_events`, `aiter_batches`.

Layer 6. It knows sources (how to take from them, how long to wait, to close them once) and `StreamParser`; it never
looks into the bytes. Sync and async share one step (`_Reader`); what stands twice is the loop that waits.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from streamweld._source import Source
from streamweld.errors import StreamError, TruncatedStream, UsageError
from streamweld.stream import StreamParser

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Iterable, Iterator
    from typing import NoReturn, Self, Unpack

    from streamweld.events import Diagnostic, Event
    from streamweld.response import Response
    from streamweld.stream import StreamOptions

__all__ = ["AsyncEventIterator", "EventIterator", "aiter_batches", "aiter_events", "iter_batches", "iter_events"]

_T = TypeVar("_T")


class _Reader:
    """The step that sync and async iterators share. A fault is kept until the events before it are delivered."""

    __slots__ = ("fault", "parser")

    def __init__(self, parser: StreamParser) -> None:
        self.parser = parser
        self.fault: Exception | None = None

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
        cut = self.fault
        if isinstance(cut, TruncatedStream):
            self.fault = TruncatedStream(
                where="idle",
                open_items=cut.open_items,
                byte_offset=cut.byte_offset,
                event_ordinal=cut.event_ordinal,
                policy=cut.policy,
                partial=cut.partial,
                events=cut.events,
            )
        return events

    def throw(self) -> NoReturn:
        """Raise the fault; nothing keeps it, or its frames, alive afterwards."""
        fault, self.fault = self.fault, None
        try:
            raise cast("Exception", fault)
        finally:
            del fault


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


def _batches(reader: _Reader, source: Source) -> Generator[list[Event]]:
    try:
        chunks = iter(source)
        ended = False
        while not ended:
            try:
                chunk = next(chunks)
            except StopIteration:
                ended = True
                events = reader.end()
            except Exception as error:  # noqa: BLE001 (whatever a source raises is raised again, below)
                events = reader.failed(error)
            else:
                events = reader.step(chunk)
            if events:
                yield events
            if reader.fault is not None:
                reader.throw()
    except BaseException:
        # What is on its way says more than a source that does not close.
        with suppress(Exception):
            source.close()
        raise
    source.close()


def _flat(batches: Generator[list[Event]]) -> Generator[Event]:
    try:
        for batch in batches:
            yield from batch
    finally:
        batches.close()


async def _abatches(reader: _Reader, source: Source, patience: _Patience | None) -> AsyncGenerator[list[Event]]:
    try:
        chunks = aiter(source)
        following = chunks.__anext__ if patience is None else partial(patience.following, chunks)
        ended = False
        while not ended:
            try:
                chunk = await following()
            except StopAsyncIteration:
                ended = True
                events = reader.end()
            except _Stalled:
                ended = True
                events = reader.stalled()
            except Exception as error:  # noqa: BLE001 (whatever a source raises is raised again, below)
                events = reader.failed(error)
            else:
                events = reader.step(chunk)
            if events:
                if patience is not None:
                    patience.waited = 0.0
                yield events
            if reader.fault is not None:
                reader.throw()
    except BaseException:
        with suppress(Exception):
            await source.aclose()
        raise
    await source.aclose()


async def _aflat(batches: AsyncGenerator[list[Event]]) -> AsyncGenerator[Event]:
    try:
        async for batch in batches:
            for event in batch:
                yield event
    finally:
        await batches.aclose()


class _Stalled(Exception):
    """A timeout of ours has run out."""


class _Patience:
    """The two timeouts. Only waiting for the source counts, not what the caller does between two items."""

    __slots__ = ("_event", "_idle", "waited")

    def __init__(self, idle: float | None, event: float | None) -> None:
        self._idle = inf if idle is None else idle
        self._event = inf if event is None else event
        self.waited = 0.0  # since the last event

    async def following(self, chunks: AsyncIterator[Any]) -> Any:
        import asyncio

        try:
            now = asyncio.get_running_loop().time
        except RuntimeError:
            raise UsageError("timeouts need asyncio; elsewhere use those of your event loop") from None
        start = now()
        timer = asyncio.timeout(min(self._idle, self._event - self.waited))
        try:
            async with timer:
                return await anext(chunks)
        except TimeoutError:
            if timer.expired():
                raise _Stalled from None
            raise
        finally:
            self.waited += now() - start


def _patience(idle: float | None, event: float | None) -> _Patience | None:
    for name, seconds in (("idle_timeout", idle), ("event_timeout", event)):
        if seconds is not None and not (_is_number(seconds) and seconds > 0):
            raise UsageError(f"{name}={seconds!r}: it must be a positive number of seconds, or None")
    return None if idle is None and event is None else _Patience(idle, event)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


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
    return EventIterator(parser, source, _flat(_batches(_Reader(parser), source)))


def iter_batches(
    chunks: Iterable[bytes | bytearray | memoryview], *, close_source: bool = True, **options: Unpack[StreamOptions]
) -> EventIterator[list[Event]]:
    """As `iter_events`, but one list of events for each piece that brought any: cheaper where events are many."""
    source = Source.sync(chunks, close=close_source, other="aiter_batches()")
    parser = StreamParser(**options)
    return EventIterator(parser, source, _batches(_Reader(parser), source))


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
    patience = _patience(idle_timeout, event_timeout)
    parser = StreamParser(**options)
    return AsyncEventIterator(parser, source, _aflat(_abatches(_Reader(parser), source, patience)))


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
    patience = _patience(idle_timeout, event_timeout)
    parser = StreamParser(**options)
    return AsyncEventIterator(parser, source, _abatches(_Reader(parser), source, patience))
