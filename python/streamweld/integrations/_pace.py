"""Split work on an event loop into short periods, so that other tasks can run in between."""

from __future__ import annotations

import asyncio
import time
from typing import Final

__all__ = ["FEED", "Pace"]

FEED: Final = 4096
"""The number of bytes that a converter is fed at once. Either backend processes this many bytes in a fraction of a
millisecond.
"""

_BUDGET: Final = 0.005  # seconds


class Pace:
    """Suspends a task that has run for a few milliseconds. Does nothing without asyncio."""

    __slots__ = ("_since",)

    def __init__(self) -> None:
        self._since = time.perf_counter()

    def waited(self, since: float) -> None:
        """Do not count the time since `since` as working time, because the task was waiting.

        Args:
            since: when the wait began, as returned by `time.perf_counter`.
        """
        self._since += time.perf_counter() - since

    @property
    def is_due(self) -> bool:
        """Return True if the task has run long enough to be suspended."""
        return time.perf_counter() - self._since >= _BUDGET

    async def pause(self) -> None:
        """Let other tasks run if a pause is due."""
        if not self.is_due:
            return
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # the event loop of another library, such as trio
            return
        await asyncio.sleep(0)
        self._since = time.perf_counter()
