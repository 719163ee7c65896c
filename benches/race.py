"""Runs contenders in turn, round after round, and compares their medians. This module does not depend on the
contenders.

It measures the CPU time of this process, to reduce the effect of a busy machine. Contenders alternate in a round, so
that a drift of the machine's speed affects all of them. Slow contenders run in fewer rounds.
"""

from __future__ import annotations

import gc
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# A contender that takes longer than this for one run skips most rounds.
SLOW_SECONDS = 0.2
SLOW_EVERY = 8


@dataclass(frozen=True)
class Lap:
    """One contender's times over its rounds, in seconds per run."""

    name: str
    times: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.times)


def race(contenders: dict[str, Callable[[], object]], rounds: int = 15, least: float = 0.005) -> dict[str, Lap]:
    """Time every contender in interleaved rounds.

    Args:
        contenders: name -> a function that does the complete work once.
        rounds: number of rounds.
        least: minimum duration of one measurement in seconds; short runs are repeated to reach it.
    """
    repeats: dict[str, int] = {}
    slow: set[str] = set()
    for name, run in contenders.items():
        run()
        start = time.process_time()
        run()
        once = max(time.process_time() - start, 1e-7)
        repeats[name] = max(1, round(least / once))
        if once > SLOW_SECONDS:
            slow.add(name)
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds):
        for name, run in contenders.items():
            if name in slow and number % SLOW_EVERY:
                continue
            gc.collect()
            count = repeats[name]
            start = time.process_time()
            for _ in range(count):
                run()
            times[name].append((time.process_time() - start) / count)
    return {name: Lap(name, values) for name, values in times.items()}
