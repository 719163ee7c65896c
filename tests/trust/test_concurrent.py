"""Many open streams in one event loop: every result is exact, and idle parsers are small (row R12)."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

ROOT = Path(__file__).resolve().parents[2]
NIGHTLY = os.environ.get("STREAMWELD_NIGHTLY") == "1"
STREAMS = 10_000 if NIGHTLY else 1_000
MOST = {"native": 4 * 1024, "pure": 32 * 1024}  # maximum size of an idle parser in bytes
HEAD = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"a"}}]}\n\n'
TEXT = b'data: {"choices":[{"index":0,"delta":{"content":"%d,"}}]}\n\n'
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


async def body(number: int) -> AsyncIterator[bytes]:
    yield HEAD
    for _ in range(8):
        await asyncio.sleep(0)
        yield TEXT % number
    yield END


async def answers(count: int) -> list[str]:
    import streamweld as sw

    async def one(number: int) -> str:
        events = sw.aiter_events(body(number), dialect="chat")
        async for _ in events:
            pass
        return events.response.text

    return await asyncio.gather(*map(one, range(count)))


def idle(count: int) -> float:
    """Return the bytes of resident memory per open parser that has read its first event."""
    import streamweld as sw

    from tests.trust.test_memory_flat import resident

    kept = [sw.StreamParser(dialect="chat") for _ in range(count // 10)]
    for parser in kept:
        parser.feed(HEAD)
    gc.collect()
    before = resident()
    parsers = [sw.StreamParser(dialect="chat") for _ in range(count)]
    for parser in parsers:
        parser.feed(HEAD)
    gc.collect()
    return (resident() - before) * 1024 / count


@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
def test_many_open_streams(backend: str, figure: Callable[[str, str], None]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.trust.test_concurrent", backend, str(STREAMS)],
        cwd=ROOT,
        env={**os.environ, "STREAMWELD_BACKEND": backend},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    exact, size = done.stdout.split()
    assert int(exact) == STREAMS
    assert float(size) <= MOST[backend]
    figure(f"{backend}", f"{exact} streams exact, {float(size):.0f} bytes an idle parser")


def main(backend: str, count: str) -> None:
    import streamweld as sw

    if sw.backend != backend:
        raise SystemExit(f"asked for {backend}, got {sw.backend}")
    size = idle(int(count))
    found = asyncio.run(answers(int(count)))
    print(sum(text == "a" + f"{number}," * 8 for number, text in enumerate(found)), size)


if __name__ == "__main__":
    main(*sys.argv[1:])
