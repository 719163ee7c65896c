"""Whether work is linear in its input, measured so that a busy machine does not matter."""

from __future__ import annotations

import gc
import time
from math import inf
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

DOUBLE = 2.3  # twice the input takes at most so many times as long; quadratic work takes four times
_NOISE = 0.002  # seconds that a clock cannot compare


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time without the collector, as timeit measures: how often that runs depends on the whole process."""
    gc.collect()
    gc.disable()
    try:
        started = time.process_time()
        work()
        return time.process_time() - started
    finally:
        gc.enable()


def growth(small: Callable[[], object], large: Callable[[], object], most: float, tries: int = 8) -> float:
    """How many times as long `large` takes, of several tries; the first that comes to at most `most` will do.

    Of each the fastest counts: another process can only make it slower.
    """
    fast = slow = inf
    for _ in range(tries):
        fast = min(fast, cpu_seconds(small))
        slow = min(slow, cpu_seconds(large))
        if slow <= most * max(fast, _NOISE):
            break
    return slow / max(fast, _NOISE)


def assert_linear_work(prepare: Callable[[int], Callable[[], object]], size: int) -> None:
    """Four times the size takes at most so long as twice `DOUBLE` allows."""
    found = growth(prepare(size), prepare(4 * size), DOUBLE**2)
    if found > DOUBLE**2:
        pytest.fail(f"four times as much took {found:.2f} times as long")


def seconds(feed: Callable[[bytes], object], pieces: list[bytes]) -> float:
    begin = time.process_time()
    for piece in pieces:
        feed(piece)
    return time.process_time() - begin


def assert_linear(
    new: Callable[[], Callable[[bytes], object]], make: Callable[[int], bytes], read: int, size: int = 30_000
) -> None:
    """The same for something that takes bytes, in reads of that size."""

    def prepare(bytes_: int) -> Callable[[], object]:
        data = make(bytes_)
        pieces = [data[i : i + read] for i in range(0, len(data), read)]
        return lambda: seconds(new(), pieces)

    assert_linear_work(prepare, size)
