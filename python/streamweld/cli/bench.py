"""`streamweld bench`: measure the parsing throughput of both backends, relative to parsing just the JSON.

Each reader's result is checked before the reader is timed. The readers run alternately, and the medians of their rounds
are compared. `make bench` in the source tree runs the full benchmark, which includes other libraries.
"""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

import streamweld
from streamweld._backend import load
from streamweld._extension import extension
from streamweld.cli.console import console, emit, table
from streamweld.cli.sample import ARGUMENTS, NAME, sample
from streamweld.events import TextDone, ToolCall
from streamweld.options import to_config

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld._backend import Backend
    from streamweld.events import Event

__all__ = ["bench"]

_READ = 16_384


@dataclass(frozen=True, slots=True)
class Shape:
    """A stream, and the results that a reader must produce."""

    name: str
    body: bytes
    text: str
    calls: list[tuple[str, str]]

    @property
    def payloads(self) -> list[bytes]:
        lines = [line[6:] for line in self.body.split(b"\n") if line.startswith(b"data: ")]
        return [line for line in lines if line != b"[DONE]"]


@dataclass(frozen=True, slots=True)
class Result:
    """Median time in seconds of one reader on one stream."""

    shape: Shape
    reader: str
    seconds: float
    floor: float

    def to_dict(self) -> dict[str, Any]:
        chunks = len(self.shape.payloads)
        return {
            "shape": self.shape.name,
            "reader": self.reader,
            "chunks": chunks,
            "bytes": len(self.shape.body),
            "microseconds_per_chunk": round(self.seconds / chunks * 1e6, 4),
            "megabytes_per_second": round(len(self.shape.body) / self.seconds / 1e6, 1),
            "times_the_floor": round(self.seconds / self.floor, 3),
        }


def _text_shape(count: int = 2_000) -> Shape:
    chunk = {
        "id": "chatcmpl-BvKz3mPq7RsT9uVwXyZ1aBcDeFgHi",
        "object": "chat.completion.chunk",
        "created": 1763712000,
        "model": "gpt-4.1-mini-2025-04-14",
        "service_tier": "default",
        "system_fingerprint": "fp_5d58a6052a",
        "usage": None,
    }
    words = ["the", " of", " and", " stream", " was", " read", " right", ".\n"]
    pieces = [words[number * 5 % len(words)] for number in range(count)]
    out: list[bytes] = []
    for piece in [*pieces, None]:
        delta = {} if piece is None else {"content": piece}
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": "stop" if piece is None else None}
        out.append(b"data: " + json.dumps(chunk | {"choices": [choice]}, separators=(",", ":")).encode() + b"\n\n")
    return Shape("text", b"".join([*out, b"data: [DONE]\n\n"]), "".join(pieces), [])


def _call_shape() -> Shape:
    from streamweld.cli.sample import TEXT

    return Shape("tool call", sample(), TEXT, [(NAME, ARGUMENTS)])


def _events(backend: Backend, reads: list[bytes]) -> list[Event]:
    parser = load(backend)("auto", to_config())
    events: list[Event] = []
    for piece in reads:
        events += parser.feed(piece)
    return events + parser.close()


def _final(backend: Backend, reads: list[bytes]) -> list[Event]:
    parser = load(backend)("auto", to_config())
    for piece in reads:
        parser.feed_silent(piece)
    parser.close_silent()
    return parser.snapshot()[0]


def _floor(payloads: list[bytes]) -> tuple[str, Callable[[], object]]:
    try:
        from orjson import loads
    except ModuleNotFoundError:
        return "json.loads of each payload (floor)", lambda: [json.loads(payload) for payload in payloads]
    return "orjson.loads of each payload (floor)", lambda: [loads(payload) for payload in payloads]


def _check(shape: Shape, events: list[Event], reader: str) -> None:
    text = "".join([event.text for event in events if isinstance(event, TextDone)])
    calls = [(event.name, event.arguments) for event in events if isinstance(event, ToolCall) and event.dispatchable]
    if (text, calls) != (shape.text, shape.calls):
        raise click.ClickException(f"{reader} reads {shape.name!r} incorrectly, so nothing was timed")


def _measure(shape: Shape, backends: list[Backend], rounds: int) -> list[Result]:
    reads = [shape.body[at : at + _READ] for at in range(0, len(shape.body), _READ)]
    floor, run = _floor(shape.payloads)
    readers: dict[str, Callable[[], object]] = {floor: run}
    for backend in backends:
        for what, read in (("events", _events), ("response only", _final)):
            name = f"{backend}, {what}"
            _check(shape, read(backend, reads), name)
            readers[name] = partial(read, backend, reads)
    times: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(rounds):
        for name, reader in readers.items():
            start = perf_counter()
            reader()
            times[name].append(perf_counter() - start)
    least = median(times[floor])
    return [Result(shape, name, median(taken), least) for name, taken in times.items()]


def _machine() -> dict[str, Any]:
    return {
        "streamweld": streamweld.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "machine": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as facts:  # noqa: PTH123 (not a path of the user)
            names = [line.partition(":")[2].strip() for line in facts if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or "unknown"


@click.command(short_help="Measure how fast this machine parses, with both backends.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per reader and shape (JSON Lines).")
@click.option(
    "--rounds", type=click.IntRange(1), default=21, show_default=True, help="Number of rounds; the medians are shown."
)
def bench(as_json: bool, rounds: int) -> None:
    """Time both backends on two streams, in reads of 16 KiB, and compare them with `orjson.loads` on each payload.

    Before a reader is timed, its results are checked.
    """
    backends: list[Backend] = ["pure"] if extension() is None else ["native", "pure"]
    results = [result for shape in (_text_shape(), _call_shape()) for result in _measure(shape, backends, rounds)]
    if as_json:
        for result in results:
            emit(result.to_dict() | _machine())
        return
    out = console()
    machine = _machine()
    out.print(", ".join(f"{name} {value}" for name, value in machine.items()))
    numbers = ("µs a chunk", "MB/s", "of the floor")
    shown = table("shape", "reader", *numbers, right=numbers)
    for result in results:
        facts = result.to_dict()
        shown.add_row(
            result.shape.name,
            result.reader,
            f"{facts['microseconds_per_chunk']:.3f}",
            f"{facts['megabytes_per_second']:,.0f}",
            f"{facts['times_the_floor']:.2f}",
        )
    out.print(shown)
    if "native" not in backends:
        click.echo("the native backend is not installed", err=True)
        sys.exit(0)
