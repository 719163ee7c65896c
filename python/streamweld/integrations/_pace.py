"""Work on an event loop in short stretches, so that other tasks are served meanwhile."""

from __future__ import annotations

import asyncio
import time
from typing import Final

__all__ = ["FEED", "Pace"]

FEED: Final = 4096
"""How many bytes a converter is given at once: a fraction of a millisecond, in either backend."""

_BUDGET: Final = 0.005  # seconds


class Pace:
    """Suspends a task that has worked for a few milliseconds. Without asyncio it does nothing."""

    __slots__ = ("_since",)

    def __init__(self) -> None:
        self._since = time.perf_counter()

    def waited(self, since: float) -> None:
        """Time that was spent waiting is not work.

        Args:
            since: when the wait began, as `time.perf_counter` has it.
        """
        self._since += time.perf_counter() - since

    @property
    def is_due(self) -> bool:
        """Whether the task has worked long enough."""
        return time.perf_counter() - self._since >= _BUDGET

    async def pause(self) -> None:
        """Let other tasks run, if it is due."""
        if not self.is_due:
            return
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # another library's loop, such as trio's
            return
        await asyncio.sleep(0)
        self._since = time.perf_counter()
