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
_SURE = 3  # runs


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of this thread without the collector, as timeit measures: how often that runs depends on the process."""
    gc.collect()
    gc.disable()
    try:
        started = time.thread_time()
        work()
        return time.thread_time() - started
    finally:
        gc.enable()


def growth(small: Callable[[], object], large: Callable[[], object], most: float, tries: int = 8) -> float:
    """Return how many times as long `large` takes as `small`, comparing the fastest run of each.

    Another process can only slow a run down, so more runs bring the result closer to the true one. `small` runs
    `_SURE` times first: a slow first run would hide quadratic work. Measuring stops when the result is at most `most`,
    after `tries` runs, or after `_SURE` runs if the result is more than twice `most`.
    """
    fast = min([cpu_seconds(small) for _ in range(_SURE)])
    slow = found = inf
    for done in range(1, tries + 1):
        slow = min(slow, cpu_seconds(large))
        found = slow / max(fast, _NOISE)
        if found <= most or (done >= _SURE and found > 2 * most):
            break
        fast = min(fast, cpu_seconds(small))
    return found


def assert_linear_work(prepare: Callable[[int], Callable[[], object]], size: int) -> None:
    """Four times the size takes at most so long as twice `DOUBLE` allows, at this size or at four times this size.

    Memory that outgrows a cache of the processor makes one of the two steps dearer; quadratic work makes both dearer,
    and the second one more.
    """
    first = growth(prepare(size), prepare(4 * size), DOUBLE**2)
    if first <= DOUBLE**2:
        return
    second = growth(prepare(4 * size), prepare(16 * size), DOUBLE**2)
    if second > DOUBLE**2:
        pytest.fail(f"four times as much took {first:.2f} times as long, and four times that {second:.2f} times")


def seconds(feed: Callable[[bytes], object], pieces: list[bytes]) -> float:
    begin = time.thread_time()
    for piece in pieces:
        feed(piece)
    return time.thread_time() - begin


def assert_linear(
    new: Callable[[], Callable[[bytes], object]], make: Callable[[int], bytes], read: int, size: int = 30_000
) -> None:
    """The same for something that takes bytes, in reads of that size."""

    def prepare(bytes_: int) -> Callable[[], object]:
        data = make(bytes_)
        pieces = [data[i : i + read] for i in range(0, len(data), read)]
        return lambda: seconds(new(), pieces)

    assert_linear_work(prepare, size)
