"""Checks that work is linear in its input, measured in a way that tolerates a busy machine."""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from functools import cache
from math import inf
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

DOUBLE = 2.3  # highest allowed time ratio when the input doubles; quadratic work reaches four
_NOISE = 0.002  # seconds below which times cannot be compared
_SURE = 3  # minimum number of runs
_TOO_SHORT = (
    3.6  # quotient of two runs of linear work, one of them four times as long, below which the short one is slow
)


# Options of glibc's `mallopt`, and values above which freed memory is returned to the system.
_KEPT = {-1: 1 << 30, -3: 32 << 20}  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD (its maximum)


@cache
def keep_freed_memory() -> None:
    """Let the C library keep freed memory for the next run.

    Otherwise, the system takes back the large blocks of a long run, but not those of a short run. The long run then
    gets each page again, which takes up to a third of its time, although it does no more work for each byte.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for option, value in _KEPT.items():
            mallopt(option, value)


def cpu_seconds(work: Callable[[], object]) -> float:
    """Measure the CPU time of this thread with the garbage collector off, as timeit does. When the collector runs
    depends on the whole process.
    """
    gc.collect()
    gc.disable()
    try:
        started = time.thread_time()
        work()
        return time.thread_time() - started
    finally:
        gc.enable()


def growth(small: Callable[[], object], large: Callable[[], object], most: float, tries: int = 8) -> float:
    """Return the ratio between the times of `large` and `small`, using the fastest run of each.

    Another process can only slow down a run, so more runs bring the result closer to the true ratio. `small` runs
    `_SURE` times first, because a slow first run would hide quadratic work. Measuring stops when the result is at most
    `most`, after `tries` runs, or after `_SURE` runs if the result is more than twice `most`.
    """
    keep_freed_memory()
    fast = min([cpu_seconds(small) for _ in range(_SURE)])
    slow = found = inf
    for done in range(1, tries + 1):
        slow = min(slow, cpu_seconds(large))
        found = slow / max(fast, _NOISE)
        if found <= most or (done >= _SURE and found > 2 * most):
            break
        fast = min(fast, cpu_seconds(small))
    return found


def quadrupling(small: Callable[[], object], large: Callable[[], object]) -> float:
    """Return the ratio between the times of `large`, which is four times as much work, and `small`, from one run of
    each.

    If `large` appears to be too short, `small` was slowed down, and runs again.
    """
    fast, slow = cpu_seconds(small), cpu_seconds(large)
    if slow < _TOO_SHORT * fast:
        fast = min(fast, cpu_seconds(small))
    return slow / max(fast, _NOISE)


def assert_linear_work(prepare: Callable[[int], Callable[[], object]], size: int) -> None:
    """Assert that four times the size takes at most `DOUBLE` squared as long, either from this size or from four times
    this size.

    If memory outgrows a processor cache, one of the two steps is slower; quadratic work slows both steps, the second
    one more.
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
    """Assert that a function which takes bytes needs linear time, like `assert_linear_work`; the bytes arrive in reads
    of the given size.
    """

    def prepare(bytes_: int) -> Callable[[], object]:
        data = make(bytes_)
        pieces = [data[i : i + read] for i in range(0, len(data), read)]
        return lambda: seconds(new(), pieces)

    assert_linear_work(prepare, size)
