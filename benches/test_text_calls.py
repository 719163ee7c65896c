"""The cost of `text_calls`: `report` and `promote` compared with `off`, on text without a marker and on a leaked call.

The results are checked before they are measured. For text without a marker, the goal is that `promote` takes at most
1.03 times as long; this is printed, and only a much larger ratio fails the run. `-k instructions` counts instructions
instead of time, so that other processes do not change the result, and fails if `promote` needs more than 3 % more of
them. `ABOVE` lists the rows with a limit of their own.

Streams whose tools are equal share the schemas, so a row with tools is measured as in an application whose requests
bring the same tools. One row has other tools for each stream.
"""

from __future__ import annotations

import random
from functools import partial
from itertools import count
from statistics import median
from typing import TYPE_CHECKING

import pytest
from streamweld.options import Policy

from benches import rivals
from benches.ours import events_per_feed
from benches.race import race
from benches.recorded_like import DIALECTS, recorded_like
from benches.shapes.chat import READS, Shape, short_text_deltas, text_pieces, text_shape
from tests.support.load.instructions import VALGRIND, Counter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_benchmark.fixture import BenchmarkFixture

    from benches.rivals import Reader, Result

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
PROSE = "I look it up: `a < b` and [a link](x) are not calls.\n\n- one\n- two\n\n" * 30
MARKED = "| `a` | [b](c) |\n\n```html\n<td>if a < b and x[i] > 0</td>\n```\n\n- see [this](d)\n\n" * 30
TARGET, MOST = 1.03, 1.25

SHAPES = {
    "text without a marker": short_text_deltas(),
    "HTML, links and tables without a marker": text_shape(MARKED),
    "prose, code and lists, then a call": text_shape(PROSE + CALL),
}
PROMOTED = {
    "text without a marker": (SHAPES["text without a marker"].text, []),
    "HTML, links and tables without a marker": (MARKED, []),
    "prose, code and lists, then a call": (PROSE, [("get_weather", '{"city": "Paris"}')]),
}


def _one_tool() -> Mapping[str, object]:
    return {"get_weather": SCHEMA}


def _reader(text_calls: str) -> Reader:
    return events_per_feed("native", policy=Policy(text_calls=text_calls), tools=_one_tool)  # type: ignore[arg-type]


def _named(reader: Reader, reads: list[bytes]) -> tuple[str, list[tuple[str, str]]]:
    text, calls = reader(reads)
    return text, [(name, arguments) for _, name, arguments in calls]


def _contenders(name: str, shape: Shape, reads: list[bytes]) -> dict[str, Reader]:
    readers = {mode: _reader(mode) for mode in ("off", "report", "promote")}
    readers["httpx-sse + orjson"] = rivals.httpx_sse_orjson
    for mode, reader in readers.items():
        assert _named(reader, reads) == (PROMOTED[name] if mode == "promote" else (shape.text, [])), mode
    return readers


@pytest.mark.parametrize("read", ["one event", "16 KiB"])
@pytest.mark.parametrize("name", SHAPES)
def test_text_calls(name: str, read: str, benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str]) -> None:
    shape = SHAPES[name]
    reads = shape.reads(READS[read])
    readers = _contenders(name, shape, reads)
    laps = race({mode: partial(reader, reads) for mode, reader in readers.items()})
    off = laps["off"].median
    with capsys.disabled():
        print(f"\n{name}, reads of {read}, {shape.deltas} deltas; target of promote: {TARGET} x")
        for lap in laps.values():
            print(f"  {lap.name:22} {lap.median / shape.deltas * 1e6:9.3f} us an event  {lap.median / off:8.3f} x")
    for lap in laps.values():
        benchmark.extra_info[lap.name] = lap.median / off
    benchmark.pedantic(partial(readers["promote"], reads), rounds=5, iterations=2)
    if name == "text without a marker":
        assert laps["promote"].median / off <= MOST


LENGTH = 8000  # characters of a text, in about 2,000 deltas
SENTENCE = "The parser keeps every byte that it cannot read yet, and reports it. It's a simple rule: no input is lost. "
UNITS = {
    "prose": SENTENCE,
    "paragraphs": SENTENCE * 4 + "\n\n",
    "five scripts": "Straße, façade. Привет, мир! \u4f60\u597d\u4e16\u754c\u3002 مرحبا بالعالم. नमस्ते दुनिया। ",
    "Markdown": "## Result\n\n- **one**: see [this](https://example.org)\n- `two`\n\n| a | b |\n|---|---|\n\n",
    "fenced code": "```python\nfor row in table[1:]:\n    if row.size < limit:\n        total += row[0] * 2\n```\n\n",
    "HTML": '<tr><td class="name">Ann</td><td>5 &lt; 6</td></tr>\n',
}
ADDITIONAL = 3.0  # percent of the instructions
OTHER_TOOLS = "recorded-like, chat, other tools for each stream"
# Deltas of markup often end like the beginning of a marker. The schemas of tools that no recent stream had are written
# once.
ABOVE = {"Markdown": 9.0, "fenced code": 12.5, "HTML": 12.5, OTHER_TOOLS: 13.0}
COUNTS = 3  # hash tables have random seeds, so the count varies
TEXTS = {"common words": "".join(text_pieces(random.Random(1), LENGTH // 5))}
TEXTS |= {name: unit * (LENGTH // len(unit)) for name, unit in UNITS.items()}


PARAMETERS = {f"option_{at}": {"type": "string", "description": "A path in the repository. " * 5} for at in range(8)}
LARGE = {"type": "object", "properties": PARAMETERS, "required": ["option_0"]}
NUMBERS = count()


def _ten_tools() -> Mapping[str, object]:
    return {f"tool_{at}": LARGE for at in range(10)}


def _other_tools() -> Mapping[str, object]:
    return {f"get_weather_{next(NUMBERS)}": SCHEMA}


def _rows() -> dict[str, tuple[list[Shape], Callable[[], Mapping[str, object]]]]:
    """Return the streams of each row, and a function that returns the tools of a stream."""
    rows = {name: ([text_shape(text)], _one_tool) for name, text in TEXTS.items()}
    rows |= {f"recorded-like, {dialect}": (recorded_like(dialect), _one_tool) for dialect in DIALECTS}
    chat = recorded_like("chat")
    return rows | {"recorded-like, chat, ten tools": (chat, _ten_tools), OTHER_TOOLS: (chat, _other_tools)}


def _read_all(
    text_calls: str, dialect: str, streams: list[list[bytes]], tools: Callable[[], Mapping[str, object]]
) -> list[Result]:
    policy = Policy(text_calls=text_calls)  # type: ignore[arg-type]
    reader = events_per_feed("native", dialect, policy=policy, tools=tools)
    return [reader(reads) for reads in streams]


@pytest.mark.timeout(1800)  # Valgrind runs the code 50 times slower
@pytest.mark.skipif(VALGRIND is None, reason="valgrind is not installed")
def test_instructions(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["| | one event per read | 16 KiB |", "| --- | --: | --: |"]
    above: list[tuple[str, str, float]] = []
    with Counter() as counter:
        for name, (streams, tools) in _rows().items():
            dialect = streams[0].dialect
            cells = []
            for size in ("one event", "16 KiB"):
                reads = [shape.reads(READS[size]) for shape in streams]
                read = {mode: partial(_read_all, mode, dialect, reads, tools) for mode in ("off", "promote")}
                results = read["off"]()
                assert read["promote"]() == results
                assert [text for text, _ in results] == [shape.text for shape in streams]
                counts = [[counter.count(run, after=run) for _ in range(COUNTS)] for run in read.values()]
                off, promote = map(median, counts)
                additional = 100 * (promote / off - 1)
                cells.append(f"{additional:+.1f} %")
                if additional > ABOVE.get(name, ADDITIONAL):
                    above.append((name, size, additional))
            lines.append(f"| {name} | {' | '.join(cells)} |")
    with capsys.disabled():
        print("\nadditional instructions of promote, compared with off", *lines, sep="\n")
    assert above == []
