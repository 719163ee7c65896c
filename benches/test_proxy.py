"""The cost of repair in a proxy: CPU time per event, compared with the same proxy when it passes the same bytes
through.

The proxy is a separate process, whose CPU time the kernel counts; upstream and clients run here. Both cases use the
same server, client and loop, but different paths: one is recognized as Chat Completions, the other is unknown.
"""

from __future__ import annotations

import asyncio
import os
import statistics
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import pytest

from benches.shapes.chat import parallel_tool_calls, short_text_deltas
from tests.proxy.test_proxy import command
from tests.support.servers.upstream import Talk, Upstream

if TYPE_CHECKING:
    from benches.shapes.chat import Shape

STREAMS = 64
ROUNDS = 5
EVERY_SECONDS = 0.004
TARGET = 1.15
PATHS = {"passed": "/v1/passed", "repaired": "/v1/chat/completions"}
_TICK = 1 / os.sysconf("SC_CLK_TCK")

SHAPES = {
    "text": lambda: short_text_deltas(300),
    "calls": lambda: parallel_tool_calls("openai", calls=2, fragments=150),
}


def cpu_seconds(pid: int) -> float:
    """Return the user and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK


async def streamed(url: str, path: str, expected: bytes) -> None:
    async def one(session: aiohttp.ClientSession) -> None:
        async with session.post(url + path, json={"model": "m", "stream": True, "messages": []}) as answer:
            assert await answer.read() == expected

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*[one(session) for _ in range(STREAMS)])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", SHAPES)
def test_cpu_an_event(kind: str) -> None:
    shape: Shape = SHAPES[kind]()
    body = b"".join(shape.events)

    async def script(talk: Talk) -> None:
        await talk.head()
        for piece in shape.events:
            await talk.send(piece)
            await asyncio.sleep(EVERY_SECONDS)
        await talk.end()

    upstream = Upstream(script)
    costs: dict[str, list[float]] = {name: [] for name in PATHS}
    with upstream.serving(), command("--upstream", upstream.url) as (process, url, _):
        for number in range(ROUNDS + 1):
            for name, path in PATHS.items():
                before = cpu_seconds(process.pid)
                asyncio.run(streamed(url, path, body))
                if number:  # the first round warms up
                    costs[name].append((cpu_seconds(process.pid) - before) / (STREAMS * len(shape.events)))
    medians = {name: statistics.median(reported) for name, reported in costs.items()}
    ratio = medians["repaired"] / medians["passed"]
    print(f"\n{kind}, {STREAMS} streams, {len(shape.events)} events each, one every {EVERY_SECONDS * 1000:.0f} ms")
    for name, median in medians.items():
        print(f"  {name:10} {median * 1e6:8.1f} us an event  {median / medians['passed']:6.2f} x")
    assert ratio <= TARGET
