"""Run work that would block the event loop in a worker thread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld.convert import StreamConverter
    from streamweld.errors import LimitExceeded, StreamError

__all__ = ["LARGE", "ConverterTask", "in_thread"]

_T = TypeVar("_T")

LARGE: Final = 65_536
"""Minimum input size in bytes for a worker thread. Smaller inputs take less time than the start of a thread."""

_BLANK: Final = (b"\n\n", b"\r\n\r\n", b"\r\r")


async def in_thread(size: int, work: Callable[[], _T]) -> _T:
    """Return the result of `work`, which runs in a worker thread if its input is large.

    If the task is canceled while the thread runs, the task still waits for the thread, so that both never use the same
    objects at the same time.

    Args:
        size: the size of the input, in bytes.
        work: the function to call, which must not change any object that the event loop uses.
    """
    if size <= LARGE:
        return work()
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # retrieve the exception, so that asyncio does not log it
        raise


class ConverterTask:
    """A converter that is fed from an event loop.

    The input is fed in slices, so that other tasks can run in between. An event larger than a slice is decoded in one
    step, so the slice that completes the event is fed in a worker thread. The end of a long stream is also handled in a
    worker thread, because it may have to close many items.
    """

    __slots__ = ("_pending", "_total", "converter")

    def __init__(self, converter: StreamConverter) -> None:
        self.converter: StreamConverter = converter
        self._pending = 0  # maximum number of bytes that may have arrived since the last complete event
        self._total = 0  # number of bytes

    async def feed(self, part: bytes) -> bytes:
        """Feed one slice and return the converter's output."""
        self._total += len(part)
        size = self._pending + len(part)
        feed = self.converter.feed
        made = feed(part) if size <= LARGE else await in_thread(size, lambda: feed(part))
        complete = max(part.rfind(blank) for blank in _BLANK)
        self._pending = size if complete < 0 else len(part) - complete
        return made

    async def close(self, *, broken: bool = False) -> bytes:
        """End the input; `broken` is True if the transport failed."""
        return await self._ended(lambda: self.converter.close(broken=broken))

    async def exceed(self, limit: LimitExceeded) -> bytes:
        """End the input because it exceeded a limit of the transport."""
        return await self._ended(lambda: self.converter.exceed(limit.limit_name))

    async def ends_complete(self) -> bool:
        """Return True if the stream has its terminal marker and the converter has returned all of its output.

        If the marker was read, this method ends the input, because only then is all output known.
        """

        def work() -> bool:
            converter = self.converter
            is_complete = converter.error is None and converter.response.completeness == "complete"
            return is_complete and not converter.close()

        return await in_thread(self._total, work)

    async def _ended(self, end: Callable[[], bytes]) -> bytes:
        def work() -> tuple[bytes, StreamError | None]:
            return end(), self.converter.error  # reading `error` builds the partial response, so read it in the thread

        return (await in_thread(self._total, work))[0]
