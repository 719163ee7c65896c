"""Repair in flight of clean streams against reading them and finding their lines: ratios of medians in one run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from streamweld._native import Repairer
from streamweld.options import Limits, Policy, to_config

from benches.ours import final_values
from benches.race import race
from benches.rivals import floor_newlines
from benches.shapes import all_shapes
from benches.shapes_anthropic import anthropic_shapes
from benches.shapes_responses import responses_shapes

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

SHAPES = {shape.name: shape for shape in [*all_shapes(), *responses_shapes(), *anthropic_shapes()]}
OPTIONS = {"prefix": "s", "hold_arguments": False, "include_usage": True, "reasoning_events": "openai"}


def repaired(reads: list[bytes], dialect: str) -> bytes:
    """All that comes out."""
    repairer = Repairer(dialect, "same", to_config(Policy(), Limits()), OPTIONS)
    return b"".join([repairer.feed(read) for read in reads]) + repairer.close()


@pytest.mark.parametrize("name", SHAPES)
def test_clean_streams(name: str, benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str]) -> None:
    shape = SHAPES[name]
    reads = shape.reads(16 * 1024)
    assert repaired(reads, shape.dialect) == shape.body
    read = final_values("native", shape.dialect)
    assert read(reads) == (shape.text, shape.calls)
    runs = {
        "repair": partial(repaired, reads, shape.dialect),
        "parse": partial(read, reads),
        "floor: newlines": partial(floor_newlines, reads),
    }
    laps = race(runs)
    ratio = laps["repair"].median / laps["parse"].median
    with capsys.disabled():
        print(f"\n{name}, {shape.deltas} deltas: repair = {ratio:.2f} x parse")
        for lap in laps.values():
            print(f"  {lap.name:18} {lap.median / shape.deltas * 1e9:8.1f} ns an event")
    benchmark.extra_info["ratio"] = ratio
    benchmark.pedantic(runs["repair"], rounds=5, iterations=2)
