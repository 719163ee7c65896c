"""The loop that feeds a source of bytes to something that takes them piece by piece, sync and async, with timeouts.

It knows sources (how to take from them, how long to wait, to close them once) and a `Step`, which is what the
two loops share; it knows no parser, no converter, and never looks into the bytes.
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

__all__ = ["Step", "arun", "patience_of", "run"]

_T = TypeVar("_T")


class Step(Generic[_T]):
    """What is done with each piece. A fault is kept until what came before it is delivered.

    What is empty is not delivered.
    """

    __slots__ = ("fault", "over")

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.over = False  # nothing more is wanted of the source

    def step(self, chunk: bytes | bytearray | memoryview) -> _T:
        """What the next piece gives."""
        raise NotImplementedError

    def end(self, *, broken: bool = False) -> _T:
        """The source has ended: what is left. `broken`: more should have come."""
        raise NotImplementedError

    def failed(self, error: Exception) -> _T:
        """The source raised: what is left. The caller gets the source's exception, as it is."""
        left = self.end(broken=True)
        self.fault = error
        return left

    def stalled(self) -> _T:
        """The source timed out: what is left. A fault, unless the terminal marker had been read."""
        left = self.end(broken=True)
        self._tell_idle()
        return left

    def _tell_idle(self) -> None:
        """A cut that was found because the source fell silent is reported as that."""
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
        """Raise the fault; nothing keeps it, or its frames, alive afterwards."""
        fault, self.fault = self.fault, None
        try:
            raise cast("Exception", fault)
        finally:
            del fault


def run(reader: Step[_T], source: Source) -> Generator[_T]:
    """Whatever the step gives, until the source ends. Closes the source, once."""
    try:
        chunks = iter(source)
        ended = False
        while not (ended or reader.over):
            try:
                chunk = next(chunks)
            except StopIteration:
                ended = True
                given = reader.end()
            except Exception as error:  # noqa: BLE001 (whatever a source raises is raised again, below)
                given = reader.failed(error)
            else:
                given = reader.step(chunk)
            if given:
                yield given
            if reader.fault is not None:
                reader.throw()
    except BaseException:
        # What is on its way says more than a source that does not close.
        with suppress(Exception):
            source.close()
        raise
    source.close()


async def arun(reader: Step[_T], source: Source, patience: Patience | None) -> AsyncGenerator[_T]:
    """The same for an asynchronous source."""
    try:
        chunks = aiter(source)
        following = chunks.__anext__ if patience is None else partial(patience.following, chunks)
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
            except Exception as error:  # noqa: BLE001 (whatever a source raises is raised again, below)
                given = reader.failed(error)
            else:
                given = reader.step(chunk)
            if given:
                if patience is not None:
                    patience.waited = 0.0
                yield given
            if reader.fault is not None:
                reader.throw()
    except BaseException:
        with suppress(Exception):
            await source.aclose()
        raise
    await source.aclose()


class _Stalled(Exception):
    """A timeout of ours has run out."""


class Patience:
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


def patience_of(idle: float | None, event: float | None) -> Patience | None:
    """The two timeouts, where there is one.

    Raises:
        UsageError: for what is no time.
    """
    for name, seconds in (("idle_timeout", idle), ("event_timeout", event)):
        if seconds is not None and not (_is_number(seconds) and seconds > 0):
            raise UsageError(f"{name}={seconds!r}: it must be a positive number of seconds, or None")
    return None if idle is None and event is None else Patience(idle, event)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)
