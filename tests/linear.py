"""Whether work is linear in its input, measured so that a busy machine does not matter."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


def seconds(feed: Callable[[bytes], object], pieces: list[bytes]) -> float:
    begin = time.process_time()
    for piece in pieces:
        feed(piece)
    return time.process_time() - begin


def assert_linear(
    new: Callable[[], Callable[[bytes], object]], make: Callable[[int], bytes], read: int, size: int = 30_000
) -> None:
    """Four times the bytes take at most eight times as long, of several tries; a quadratic one takes sixteen times."""
    times = []
    for _ in range(4):
        times = []
        for bytes_ in (size, 4 * size):
            data = make(bytes_)
            pieces = [data[i : i + read] for i in range(0, len(data), read)]
            times.append(min(seconds(new(), pieces) for _ in range(3)))
        if times[1] <= 8 * times[0] + 0.002:
            return
    pytest.fail(f"{size} and {4 * size} bytes took {times}")
