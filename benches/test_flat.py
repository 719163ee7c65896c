"""The cost of a delta does not grow with the stream: of 1 M deltas, the last tenth takes at most 1.25 times the first.

The same applies to the conversion of 300,000 deltas. Their ending, in which both sides may repeat everything three
times, takes at most half as long as the deltas; with quadratic cost, it would take far longer.
"""

from __future__ import annotations

import json
import statistics
import time
from typing import TYPE_CHECKING, Any

import jiter
import pytest
from streamweld._backend import load, load_converter
from streamweld.events import ToolCallDelta
from streamweld.options import Limits, Policy, to_config
from streamweld.partial import PartialArguments

from benches.shapes.chat import Shape, parallel_tool_calls, short_text_deltas
from benches.shapes.responses import responses_calls, responses_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

COUNT = 1_000_000
CONVERTED = 300_000
SLICES = 100
# Maximum number of events after the last delta. Any of them may close and repeat the content.
ENDING = 4
ENDINGS = {"responses": b"data: [DONE]\n\n", "anthropic": b'data: {"type":"message_stop"}\n\n'}
LIMITS = Limits(max_arguments_bytes=None, max_total_arguments_bytes=None, max_text_bytes=None)


SHAPES: dict[str, Callable[[], Shape]] = {
    "text": lambda: short_text_deltas(COUNT),
    "arguments": lambda: parallel_tool_calls("openai", calls=1, fragments=COUNT),
}
CONVERSIONS: dict[str, tuple[str, Callable[[], Shape]]] = {
    "chat text": ("responses", lambda: short_text_deltas(CONVERTED)),
    "chat arguments": ("responses", lambda: parallel_tool_calls("openai", calls=1, fragments=CONVERTED)),
    "responses text": ("anthropic", lambda: responses_text(CONVERTED)),
    "responses arguments": ("anthropic", lambda: responses_calls(interleaved=False, calls=1, fragments=CONVERTED)),
}


def _by_slices(events: list[bytes], feed: Callable[[bytes], object]) -> list[float]:
    """Measure the CPU time of each hundredth of the events, fed in reads of 16 KiB."""
    size = len(events) // SLICES
    pieces = [b"".join(events[at : at + size]) for at in range(0, len(events), size)]
    reads = [[piece[at : at + 16384] for at in range(0, len(piece), 16384)] for piece in pieces]
    times: list[float] = []
    for group in reads:
        start = time.process_time()
        for read in group:
            feed(read)
        times.append(time.process_time() - start)
    return times


def _last_over_first(times: list[float]) -> float:
    return statistics.median(times[SLICES - 10 : SLICES]) / statistics.median(times[:10])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["text", "arguments"])
def test_flat(kind: str, benchmark: BenchmarkFixture) -> None:
    shape = SHAPES[kind]()
    parser = load("native")("chat", to_config(Policy(), LIMITS))
    ratio = _last_over_first(_by_slices(shape.events, parser.feed))
    assert shape.deltas >= COUNT * 0.9
    benchmark.extra_info["last tenth over first"] = ratio
    benchmark.pedantic(lambda: None, rounds=1)
    assert ratio <= 1.25


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", CONVERSIONS)
def test_converting_is_flat(kind: str, benchmark: BenchmarkFixture) -> None:
    target, make = CONVERSIONS[kind]
    shape = make()
    assert shape.deltas >= CONVERTED * 0.9
    for _ in range(3):  # other load on the machine may skew a single measurement
        ratio, ending = _converted(shape, target)
        if ratio <= 1.25 and ending <= 0.5:
            break
    benchmark.extra_info["last tenth over first"] = ratio
    benchmark.extra_info["ending over deltas"] = ending
    benchmark.pedantic(lambda: None, rounds=1)
    print(f"{kind} -> {target}: last tenth over first {ratio:.2f}, ending over deltas {ending:.3f}")
    assert ratio <= 1.25
    assert ending <= 0.5


def _converted(shape: Shape, target: str) -> tuple[float, float]:
    """Return the time ratios of the last to the first tenth of the deltas, and of the ending to all of them."""
    options = {"prefix": "bench", "include_usage": True, "reasoning_events": "openai", "cut_ending": "incomplete"}
    converter = load_converter("native")(shape.dialect, target, to_config(Policy(), LIMITS, seed="bench"), options)
    times = _by_slices(shape.events[:-ENDING], converter.feed)
    start = time.process_time()
    written = [converter.feed(event) for event in shape.events[-ENDING:]]
    written.append(converter.close())
    ending = time.process_time() - start
    assert converter.error is None
    assert b"".join(written).endswith(ENDINGS[target])
    return _last_over_first(times), ending / sum(times)


# Arguments that are read while they arrive, compared with jiter's partial mode on the text so far. Every result is
# checked before it is printed.

ARGUMENTS = (9_000, 36_000, 72_000)
LINE = "    return { 'a': [1, 2, 3] }  # a line of code\n"
RECORD = {"id": 17, "name": "Oslo", "tags": ["a", "b"], "at": [59.9, 10.7], "open": True}


def one_string(size: int) -> dict[str, Any]:
    return {"path": "a.py", "text": LINE * (size // len(LINE))}


def records(size: int) -> dict[str, Any]:
    return {"rows": [RECORD] * (size // 90)}


def pieces_of(text: str, size: int = 12) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def per_delta(read: Callable[[str], object], pieces: list[str]) -> float:
    """Return the median time in microseconds of the last 200 deltas. All earlier deltas are read, too."""
    took = []
    for piece in pieces:
        begin = time.perf_counter_ns()
        read(piece)
        took.append(time.perf_counter_ns() - begin)
    return statistics.median(took[-200:]) / 1000


class View:
    """Queries the live view for its changes after each delta."""

    def __init__(self) -> None:
        self.view = PartialArguments(0)

    def __call__(self, piece: str) -> object:
        self.view.apply(ToolCallDelta(0, piece))
        return self.view.changes()

    @property
    def value(self) -> object:
        return self.view.value


class OnDemand:
    """Calls `ToolCallDelta.partial` after each delta."""

    def __init__(self) -> None:
        self.text = ""
        self.value: object = None

    def arguments_so_far(self, _part: int) -> str:
        return self.text

    def __call__(self, piece: str) -> object:
        self.text += piece
        self.value = ToolCallDelta(0, piece).partial(self)
        return self.value


class Jiter:
    """Parses the text so far again after each delta."""

    def __init__(self) -> None:
        self.text = b""
        self.value: object = None

    def __call__(self, piece: str) -> object:
        self.text += piece.encode()
        self.value = jiter.from_json(self.text, partial_mode="trailing-strings")
        return self.value


@pytest.mark.parametrize("shape", [one_string, records])
def test_a_delta_of_long_arguments(shape: Callable[[int], dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    """The cost of the view does not grow with the text, unlike that of parsing the text again."""
    rows = []
    for size in ARGUMENTS:
        whole = shape(size)
        pieces = pieces_of(json.dumps(whole))
        found = {}
        for reader in (View(), Jiter()):
            found[type(reader).__name__] = per_delta(reader, pieces)
            assert reader.value == whole
        last = OnDemand()
        last.text = "".join(pieces[:-200])
        found["OnDemand"] = per_delta(last, pieces[-200:])
        assert last.value == whole
        rows.append((size, found))
    with capsys.disabled():
        print(f"\n{shape.__name__}: µs a delta of 12 characters; jiter {jiter.__version__}")
        for size, found in rows:
            print(f"  {size:>7,} B  " + "  ".join(f"{name} {took:8.1f}" for name, took in found.items()))
    view = [found["View"] for _, found in rows]
    assert view[-1] < 2 * view[0]
    assert view[-1] * 4 < rows[-1][1]["Jiter"]
