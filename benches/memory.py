"""Memory of open streams, measured as the growth of this process. It runs as a program, so that the heap is not shared.

    python -m benches.memory idle SHAPE    parsers in mid-stream: JSON with the bytes of each
    python -m benches.memory loop DIALECT  as many streams in one asyncio loop: bytes of each, times of feeds

The streams of `loop` differ in ids, texts and lengths, so that data mixed between streams is detected.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from streamweld import StreamParser, aiter_batches
from streamweld.events import TextDelta, ToolCall

from benches.shapes.anthropic import anthropic_text, anthropic_tool_use
from benches.shapes.chat import Shape, parallel_tool_calls, short_text_deltas
from benches.shapes.responses import responses_calls, responses_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from streamweld.events import Event

IDLE = 20_000
STREAMS = 10_000
# Number of events that a parser is fed before it is idle.
FED = 24

SHAPES: dict[str, Callable[[], Shape]] = {
    "short-text-deltas": lambda: short_text_deltas(FED),
    "parallel-tool-calls-openai": lambda: parallel_tool_calls("openai", calls=2, fragments=FED),
    "responses-text": lambda: responses_text(FED),
    "responses-tool-calls": lambda: responses_calls(interleaved=False, calls=2, fragments=FED),
    "anthropic-text": lambda: anthropic_text(FED),
    "anthropic-tool-use": lambda: anthropic_tool_use(calls=2, fragments=FED),
}


def resident() -> int:
    """Return the resident memory of this process in bytes, after freed memory was returned to the system."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def idle(name: str) -> dict[str, object]:
    """Measure the memory of one parser in mid-stream, in bytes, without the text that it was fed."""
    shape = SHAPES[name]()
    head = b"".join(shape.events[:FED])

    def begin() -> tuple[StreamParser, int]:
        parser = StreamParser(dialect=shape.dialect)  # type: ignore[arg-type]
        events = parser.feed(head)
        return parser, sum(len(getattr(event, "text", "") or getattr(event, "arguments", "")) for event in events)

    for _ in range(100):
        begin()
    kept: list[StreamParser | None] = [None] * IDLE
    held = begin()[1]
    before = resident()
    for at in range(IDLE):
        kept[at] = begin()[0]
    each = (resident() - before) / IDLE
    return {"shape": name, "parsers": len(kept), "bytes": each - held, "text": held}


def _stream(dialect: str, number: int) -> Shape:
    """Return a stream with unique ids, texts and length. Every second stream calls a tool."""
    size = 8 + number % 9
    if dialect == "responses":
        if number % 2:
            return responses_calls(interleaved=bool(number % 4 == 1), calls=2, fragments=size, seed=number)
        return responses_text(size, seed=number)
    if dialect == "anthropic":
        return anthropic_tool_use(calls=2, fragments=size, seed=number) if number % 2 else anthropic_text(size, number)
    return parallel_tool_calls("openai", 2, size, number) if number % 2 else short_text_deltas(size, number)


def _take(events: list[Event], text: list[str], calls: list[tuple[str, str, str]]) -> None:
    for event in events:
        if type(event) is TextDelta:
            text.append(event.text)
        elif type(event) is ToolCall:
            calls.append((event.call_id, event.name, event.arguments))


class _StopHalfway:
    """A barrier for all streams, so that all of them are open at once. The last one takes the measurement."""

    def __init__(self, streams: int) -> None:
        self._missing = streams
        self._open = asyncio.Event()
        self.resident = 0

    async def wait(self) -> None:
        self._missing -= 1
        if not self._missing:
            self.resident = resident()
            self._open.set()
        await self._open.wait()


async def _reads(shape: Shape, halfway: _StopHalfway) -> AsyncIterator[bytes]:
    """Yield one event per read, and let another stream run after each."""
    middle = len(shape.events) // 2
    for at, event in enumerate(shape.events):
        if at == middle:
            await halfway.wait()
        await asyncio.sleep(0)
        yield event


async def _batches(shape: Shape, halfway: _StopHalfway) -> bool:
    text: list[str] = []
    calls: list[tuple[str, str, str]] = []
    async for events in aiter_batches(_reads(shape, halfway), dialect=shape.dialect):  # type: ignore[arg-type]
        _take(events, text, calls)
    return ("".join(text), calls) == (shape.text, shape.calls)


async def _feeds(shape: Shape, halfway: _StopHalfway, times: list[int]) -> bool:
    text: list[str] = []
    calls: list[tuple[str, str, str]] = []
    parser = StreamParser(dialect=shape.dialect)  # type: ignore[arg-type]
    clock = time.perf_counter_ns
    async for read in _reads(shape, halfway):
        start = clock()
        events = parser.feed(read)
        times.append(clock() - start)
        _take(events, text, calls)
    _take(parser.close(), text, calls)
    return ("".join(text), calls) == (shape.text, shape.calls)


async def _without(shape: Shape, halfway: _StopHalfway) -> bool:
    """Run the same loop without streamweld, to measure the tasks and their sources."""
    async for _read in _reads(shape, halfway):
        pass
    return True


def loop(dialect: str) -> dict[str, object]:
    """Run all streams at once in one loop, with `aiter_batches` and with `StreamParser`."""
    shapes = [_stream(dialect, number) for number in range(STREAMS)]
    times: list[int] = []
    found: dict[str, object] = {"dialect": dialect, "streams": STREAMS}

    async def run(name: str, work: Callable[[Shape, _StopHalfway], object]) -> None:
        halfway = _StopHalfway(STREAMS)
        before = resident()
        right = await asyncio.gather(*(work(shape, halfway) for shape in shapes))  # type: ignore[call-overload]
        found[name] = {"bytes": (halfway.resident - before) / STREAMS, "wrong": right.count(False)}

    asyncio.run(run("without", _without))
    asyncio.run(run("aiter_batches", _batches))
    asyncio.run(run("StreamParser", lambda shape, halfway: _feeds(shape, halfway, times)))
    times.sort()
    found["feeds"] = len(times)
    found["p50_us"] = times[len(times) // 2] / 1e3
    found["p99_us"] = times[len(times) * 99 // 100] / 1e3
    return found


if __name__ == "__main__":
    print(json.dumps({"idle": idle, "loop": loop}[sys.argv[1]](sys.argv[2])))
