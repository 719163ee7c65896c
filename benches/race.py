"""Runs contenders in turn, round after round, and compares their medians. Knows no contender.

CPU time of this process, so that a busy machine disturbs less; contenders alternate in a round, so that a drift of the
machine's speed meets all of them. A slow contender takes part in fewer rounds.
"""

from __future__ import annotations

import gc
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# A contender that needs longer than this for one run sits out most rounds.
SLOW_SECONDS = 0.2
SLOW_EVERY = 8


@dataclass(frozen=True)
class Lap:
    """One contender's times over the rounds it ran, in seconds a run."""

    name: str
    times: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.times)


def race(contenders: dict[str, Callable[[], object]], rounds: int = 15, least: float = 0.005) -> dict[str, Lap]:
    """Times every contender in interleaved rounds.

    Args:
        contenders: name -> a call that does the whole work once.
        rounds: how many rounds.
        least: seconds that one measurement shall last at the least; short runs are repeated up to that.
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
