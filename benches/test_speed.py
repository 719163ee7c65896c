"""streamweld, compared with hand-written loops, the official helper, the pure backend and floors: ratios of medians in
one run.

Every reader's result is compared with the expected one before the reader is timed. A reader with a wrong result is
timed and marked `wrong`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from benches import rivals, rivals_anthropic, rivals_responses
from benches.ours import events_per_feed, final_values
from benches.race import race
from benches.rivals import floor_newlines, floor_orjson
from benches.shapes.anthropic import anthropic_shapes
from benches.shapes.chat import READS, Shape, all_shapes
from benches.shapes.responses import responses_shapes

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from benches.rivals import Reader

SHAPES = {shape.name: shape for shape in [*all_shapes(), *responses_shapes(), *anthropic_shapes()]}
RIVALS: dict[str, dict[str, Reader]] = {
    "chat": {
        "httpx-sse + orjson": rivals.httpx_sse_orjson,
        "split + msgspec": rivals.split_msgspec,
        "openai .stream()": rivals.openai_stream_helper,
    },
    "responses": {
        "httpx-sse + orjson": rivals_responses.httpx_sse_orjson,
        "split + msgspec": rivals_responses.split_msgspec,
        "openai .stream()": rivals_responses.openai_stream_helper,
    },
    "anthropic": {
        "httpx-sse + orjson": rivals_anthropic.httpx_sse_orjson,
        "split + msgspec": rivals_anthropic.split_msgspec,
        "anthropic .stream()": rivals_anthropic.anthropic_stream_helper,
    },
}
# The minimum speed of the native backend, as a multiple of each rival's speed, for a list of events per feed in 16 KiB
# reads.
TARGETS = {
    "short-text-deltas": {"httpx-sse + orjson": 20, "split + msgspec": 8, "openai .stream()": 800},
    "parallel-tool-calls-openai": {"httpx-sse + orjson": 8, "split + msgspec": 4, "openai .stream()": 400},
    "parallel-tool-calls-deepseek": {"httpx-sse + orjson": 8, "split + msgspec": 4, "openai .stream()": 400},
    "responses-text": {"httpx-sse + orjson": 10, "openai .stream()": 100},
    "responses-tool-calls": {"httpx-sse + orjson": 10, "openai .stream()": 100},
    "responses-interleaved-calls": {"httpx-sse + orjson": 10, "openai .stream()": 100},
    "anthropic-text": {"httpx-sse + orjson": 12, "anthropic .stream()": 150},
    "anthropic-tool-use": {"httpx-sse + orjson": 12, "anthropic .stream()": 150},
}


def _right(reader: Reader, shape: Shape, reads: list[bytes]) -> bool:
    return reader(reads) == (shape.text, shape.calls)


def _contenders(shape: Shape, reads: list[bytes]) -> tuple[dict[str, partial[object]], set[str]]:
    readers: dict[str, Reader] = {
        "native": events_per_feed("native", shape.dialect),
        "native, no events": final_values("native", shape.dialect),
        "pure": events_per_feed("pure", shape.dialect),
        **RIVALS[shape.dialect],
    }
    wrong = {name for name, reader in readers.items() if not _right(reader, shape, reads)}
    assert not wrong & {"native", "native, no events", "pure"}
    runs: dict[str, partial[object]] = {name: partial(reader, reads) for name, reader in readers.items()}
    runs["floor: orjson.loads"] = partial(floor_orjson, reads)
    runs["floor: newlines"] = partial(floor_newlines, reads)
    return runs, wrong


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("name", SHAPES)
def test_against_rivals(name: str, read: str, benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str]) -> None:
    shape = SHAPES[name]
    reads = shape.reads(READS[read])
    runs, wrong = _contenders(shape, reads)
    laps = race(runs)
    ours = laps["native"].median
    with capsys.disabled():
        print(f"\n{name}, reads of {read}, {shape.deltas} deltas")
        for lap in sorted(laps.values(), key=lambda lap: lap.median):
            note = "  wrong" if lap.name in wrong else ""
            print(
                f"  {lap.name:22} {lap.median / shape.deltas * 1e6:9.3f} us an event  {lap.median / ours:8.1f} x{note}"
            )
    for lap in laps.values():
        benchmark.extra_info[lap.name] = {"ratio": lap.median / ours, "correct": lap.name not in wrong}
    benchmark.pedantic(runs["native"], rounds=5, iterations=2)
    if read == "16 KiB":
        short = {rival: f"{laps[rival].median / ours:.1f} of {goal}" for rival, goal in TARGETS[name].items()}
        assert all(laps[rival].median / ours >= goal for rival, goal in TARGETS[name].items()), short


def test_final_values_only(benchmark: BenchmarkFixture) -> None:
    """`parse(body)` of short text deltas, without events, is 50 times as fast as the httpx-sse + orjson loop."""
    shape = SHAPES["short-text-deltas"]
    reads = shape.reads(0)
    silent, rival = final_values("native"), rivals.httpx_sse_orjson
    assert _right(silent, shape, reads)
    assert _right(rival, shape, reads)
    laps = race({"native": partial(silent, reads), "rival": partial(rival, reads)})
    ratio = laps["rival"].median / laps["native"].median
    benchmark.extra_info["ratio"] = ratio
    benchmark.pedantic(silent, args=(reads,), rounds=5, iterations=2)
    assert ratio >= 50, f"{ratio:.1f} of 50"
