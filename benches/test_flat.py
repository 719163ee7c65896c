"""The cost of a delta does not grow with the stream: of 1 M deltas the last tenth costs at most 1.25 of the first."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

import pytest
from streamweld._backend import load
from streamweld.options import Limits, Policy, to_config

from benches.shapes import Shape, parallel_tool_calls, short_text_deltas

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

COUNT = 1_000_000
SLICES = 100


SHAPES: dict[str, Callable[[], Shape]] = {
    "text": lambda: short_text_deltas(COUNT),
    "arguments": lambda: parallel_tool_calls("openai", calls=1, fragments=COUNT),
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["text", "arguments"])
def test_flat(kind: str, benchmark: BenchmarkFixture) -> None:
    shape = SHAPES[kind]()
    limits = Limits(max_arguments_bytes=None, max_total_arguments_bytes=None, max_text_bytes=None)
    parser = load("native")("chat", to_config(Policy(), limits))
    size = len(shape.events) // SLICES
    pieces = [b"".join(shape.events[at : at + size]) for at in range(0, len(shape.events), size)]
    reads = [[piece[at : at + 16384] for at in range(0, len(piece), 16384)] for piece in pieces]
    times: list[float] = []
    for group in reads:
        start = time.process_time()
        for read in group:
            parser.feed(read)
        times.append(time.process_time() - start)
    assert shape.deltas >= COUNT * 0.9
    first, last = statistics.median(times[:10]), statistics.median(times[SLICES - 10 : SLICES])
    benchmark.extra_info["last tenth over first"] = last / first
    benchmark.pedantic(lambda: None, rounds=1)
    assert last / first <= 1.25
