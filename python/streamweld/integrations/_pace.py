"""Work on an event loop in short stretches, so that other tasks are served meanwhile."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["FEED", "Pace"]

FEED: Final = 4096
"""How many bytes a converter is given at once: a fraction of a millisecond, in either backend."""

_BUDGET: Final = 0.005  # seconds


class Pace:
    """Suspends a task that has worked for a few milliseconds. Without asyncio it does nothing."""

    __slots__ = ("_since",)

    def __init__(self) -> None:
        self._since = time.perf_counter()

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Time that is spent waiting is not work."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._since += time.perf_counter() - began

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
