"""Feed a sync or async source of bytes to an object that processes it chunk by chunk, with timeouts.

This module contains the two loops and `ChunkProcessor`, the interface that they call. This module does not depend on
parsers or converters, and does not examine the bytes.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from streamweld.errors import TruncatedStream, UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Generator
    from typing import NoReturn

    from streamweld._source import Source

__all__ = ["ChunkProcessor", "arun", "run", "timeouts_of"]

_T = TypeVar("_T")


class ChunkProcessor(Generic[_T]):
    """Processes the input chunk by chunk. A fault is raised only after all results before it have been delivered.

    Empty results are not delivered.
    """

    __slots__ = ("fault", "over")

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.over = False  # True if no more chunks should be read from the source

    def step(self, chunk: bytes | bytearray | memoryview) -> _T:
        """Return the result for the next chunk."""
        raise NotImplementedError

    def end(self, *, broken: bool = False) -> _T:
        """End the input and return the remaining results. `broken`: whether the transport failed."""
        raise NotImplementedError

    def failed(self, error: Exception) -> _T:
        """Handle an exception from the source and return the remaining results.

        The exception is raised unchanged afterwards.
        """
        left = self.end(broken=True)
        self.fault = error
        return left

    def stalled(self) -> _T:
        """Handle a timeout and return the remaining results.

        Sets a fault unless the terminal marker has already been read.
        """
        left = self.end(broken=True)
        self._mark_idle()
        return left

    def _mark_idle(self) -> None:
        """Report a truncation as `idle` if the source stopped sending data."""
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

    def throw(self) -> NoReturn:
        """Raise the fault. The local references are deleted, so that the traceback does not keep objects alive."""
        fault, self.fault = self.fault, None
        try:
            raise cast("Exception", fault)
        finally:
            del fault


def run(reader: ChunkProcessor[_T], source: Source) -> Generator[_T]:
    """Yield the results for each chunk until the source ends, then close the source once."""
    try:
        chunks = iter(source)
        ended = False
        while not (ended or reader.over):
            try:
                chunk = next(chunks)
            except StopIteration:
                ended = True
                given = reader.end()
            except Exception as error:  # noqa: BLE001 (any exception of a source is raised again, below)
                given = reader.failed(error)
            else:
                given = reader.step(chunk)
            if given:
                yield given
            if reader.fault is not None:
                reader.throw()
    except BaseException:
        # Do not let an error from closing the source replace the original exception.
        with suppress(Exception):
            source.close()
        raise
    source.close()


async def arun(reader: ChunkProcessor[_T], source: Source, timeouts: Timeouts | None) -> AsyncGenerator[_T]:
    """Feed the chunks of an asynchronous source, as `run` does for a synchronous one."""
    try:
        chunks = aiter(source)
        following = chunks.__anext__ if timeouts is None else partial(timeouts.following, chunks)
        ended = False
        while not (ended or reader.over):
            try:
                chunk = await following()
            except StopAsyncIteration:
                ended = True
                given = reader.end()
            except _Stalled:
                ended = True
                given = reader.stalled()
            except Exception as error:  # noqa: BLE001 (any exception of a source is raised again, below)
                given = reader.failed(error)
            else:
                given = reader.step(chunk)
            if given:
                if timeouts is not None:
                    timeouts.waited = 0.0
                yield given
            if reader.fault is not None:
                reader.throw()
    except BaseException:
        with suppress(Exception):
            await source.aclose()
        raise
    await source.aclose()


class _Stalled(Exception):
    """One of the two timeouts has expired."""


class Timeouts:
    """The two timeouts.

    Only the time spent waiting for the source counts. The time that the caller spends between two items does not count.
    """

    __slots__ = ("_event", "_idle", "waited")

    def __init__(self, idle: float | None, event: float | None) -> None:
        self._idle = inf if idle is None else idle
        self._event = inf if event is None else event
        self.waited = 0.0  # seconds since the last event

    async def following(self, chunks: AsyncIterator[Any]) -> Any:
        import asyncio

        try:
            now = asyncio.get_running_loop().time
        except RuntimeError:
            raise UsageError("timeouts need asyncio; with another event loop, use its own timeouts") from None
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


def timeouts_of(idle: float | None, event: float | None) -> Timeouts | None:
    """Return the timeouts, or None if no timeout is set.

    Raises:
        UsageError: if a timeout is not a positive number.
    """
    for name, seconds in (("idle_timeout", idle), ("event_timeout", event)):
        if seconds is not None and not (_is_number(seconds) and seconds > 0):
            raise UsageError(f"{name}={seconds!r}: it must be a positive number of seconds, or None")
    return None if idle is None and event is None else Timeouts(idle, event)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)
