"""Conversion of streams: native and pure are compared with other converters, bytes in and bytes out. Each output is
checked.

`make bench-convert` installs the rivals of `rivals_convert.py` in their own environment, because litellm requires an
older openai than the extra `bench`; without them, only streamweld runs.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import streamweld

from benches.converted import verdict
from benches.ours import converted
from benches.race import race
from benches.rivals_convert import body_of, rivals
from benches.shapes.chat import parallel_tool_calls, short_text_deltas
from benches.shapes.responses import responses_shapes

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

READ = 16384
SHAPES = {
    shape.name: shape
    for shape in (
        short_text_deltas(),
        parallel_tool_calls("openai"),
        parallel_tool_calls("openai", interleaved=True),
        *responses_shapes(),
    )
}
TARGETS = {"chat": "responses", "responses": "anthropic"}
# The minimum speed of the native backend, as a multiple of each rival's speed.
LEAST = {"linguafranca": 25, "litellm": 100}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", SHAPES)
def test_beside_rivals(name: str, benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str]) -> None:
    shape = SHAPES[name]
    target, reads = TARGETS[shape.dialect], shape.reads(READ)
    runs: dict[str, Callable[[], bytes]] = {
        backend: partial(converted(backend, shape.dialect, target), reads) for backend in ("native", "pure")
    }
    runs |= rivals(shape.dialect, target, reads)
    found = {who: verdict(body_of(run()), shape, target) for who, run in runs.items()}
    assert streamweld.backend == "native"
    assert found["native"] == found["pure"] == "right"
    laps = race(runs)
    ours = laps["native"].median
    with capsys.disabled():
        print(f"\n{name} -> {target}, reads of 16 KiB, {shape.deltas} deltas")
        for lap in sorted(laps.values(), key=lambda lap: lap.median):
            cost = f"{lap.median / shape.deltas * 1e6:9.3f} us an event"
            print(f"  {lap.name:28} {cost}  {lap.median / ours:8.1f} x  {found[lap.name]}")
    for lap in laps.values():
        benchmark.extra_info[lap.name] = {"ratio": lap.median / ours, "verdict": found[lap.name]}
    benchmark.pedantic(runs["native"], rounds=5, iterations=2)
    short = {who: f"{laps[who].median / ours:.1f} of {goal}" for who, goal in LEAST.items() if who in laps}
    assert all(laps[who].median / ours >= LEAST[who] for who in short), short
