"""Repair of clean streams, compared with parsing them and with finding their lines: ratios of medians in one run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from streamweld._native import Repairer
from streamweld.options import Limits, Policy, to_config

from benches.ours import final_values
from benches.race import race
from benches.rivals import floor_newlines
from benches.shapes.anthropic import anthropic_shapes
from benches.shapes.chat import all_shapes
from benches.shapes.responses import responses_shapes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_benchmark.fixture import BenchmarkFixture

ALL = [*all_shapes(), *responses_shapes(), *anthropic_shapes()]
# Repair rewrites streams that repeat a call's id and name in every fragment, so that shape is excluded.
SHAPES = {shape.name: shape for shape in ALL if shape.name != "parallel-tool-calls-deepseek"}
# Maximum time of repair as a multiple of `parse` on the same bytes.
MOST = 1.5
CONFIG = to_config(Policy(), Limits())
OPTIONS = {"prefix": "s", "hold_arguments": False, "include_usage": True, "reasoning_events": "openai"}


READS = {"whole": 0, "16 KiB": 16 * 1024, "1460 B": 1460, "an event": None}


def pieces(reads: list[bytes], dialect: str) -> Iterator[bytes]:
    """Yield the output, read by read."""
    repairer = Repairer(dialect, "same", CONFIG, OPTIONS)
    for read in reads:
        yield repairer.feed(read)
    yield repairer.close()


def repaired(reads: list[bytes], dialect: str) -> None:
    """Repair the stream, and release every piece at once, as if it were sent on."""
    repairer = Repairer(dialect, "same", CONFIG, OPTIONS)
    for read in reads:
        repairer.feed(read)
    repairer.close()


@pytest.mark.parametrize("size", READS)
@pytest.mark.parametrize("name", SHAPES)
def test_clean_streams(name: str, size: str, benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str]) -> None:
    shape = SHAPES[name]
    reads = shape.reads(READS[size])
    assert b"".join(pieces(reads, shape.dialect)) == shape.body
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
        print(f"\n{name}, {shape.deltas} deltas, reads of {size}: repair = {ratio:.2f} x parse")
        for lap in laps.values():
            print(f"  {lap.name:18} {lap.median / shape.deltas * 1e9:8.1f} ns an event")
    benchmark.extra_info["ratio"] = ratio
    assert ratio <= MOST
    benchmark.pedantic(runs["repair"], rounds=5, iterations=2)
