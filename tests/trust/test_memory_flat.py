"""Memory stays flat over many short streams: complete, failing and abandoned ones (row R11).

Each measurement runs in its own process: 500,000 streams in total with STREAMWELD_NIGHTLY=1, otherwise 5,000 per
backend. `python -m tests.trust.test_memory_flat BACKEND KIND COUNT` prints the growth of resident memory in KiB.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
NIGHTLY = os.environ.get("STREAMWELD_NIGHTLY") == "1"
MOST = 4 * 1024  # maximum growth in KiB
# How a stream ends -> how many such streams run, nightly and usually.
COUNTS = {"complete": (350_000, 3000), "failing": (75_000, 1000), "abandoned": (75_000, 1000)}
PURE_SHARE = 10  # the pure backend runs one in this many streams

CALL = (
    b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi %d"}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_%d","function":'
    b'{"name":"f","arguments":""}}]}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"n\\":%d}"}}]}}]}\n\n'
)
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
BROKEN = b'data: {"choices":[{"index":0,"delta":{"content":"x}}]}\n\n'


def resident() -> int:
    """Return resident memory in KiB."""
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0])


def stream(number: int, kind: str) -> None:
    """Read one stream, and its response if it has one. Convert and repair every fourth stream."""
    import streamweld as sw

    body = CALL % (number, number, number)
    if kind == "failing":
        body += BROKEN if number % 2 else b""  # malformed, or truncated
    elif kind == "complete":
        body += END
    parser = sw.StreamParser(dialect="chat")
    try:
        for at in range(0, len(body), 128):
            parser.feed(body[at : at + 128])
        if kind != "abandoned":
            parser.close()
    except sw.StreamError:
        if kind == "complete":
            raise
    if kind == "complete":
        (call,) = parser.response.dispatchable_calls
        assert call.parsed == {"n": number}
    if number % 4 == 0:
        converter = sw.StreamConverter(source="chat", target="anthropic" if number % 8 else "same")
        converter.feed(body)
        if kind != "abandoned":
            converter.close()


def grown(kind: str, count: int) -> int:
    """Return the memory growth in KiB over `count` streams, after a tenth as many as a warm-up."""
    for number in range(max(500, count // 10)):
        stream(number, kind)
    gc.collect()
    before = resident()
    for number in range(count):
        stream(number, kind)
    gc.collect()
    return resident() - before


@pytest.mark.timeout(3400)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
@pytest.mark.parametrize("kind", COUNTS)
def test_memory_stays_flat(backend: str, kind: str, figure: Callable[[str, str], None]) -> None:
    count = COUNTS[kind][0 if NIGHTLY else 1] // (PURE_SHARE if backend == "pure" else 1)
    done = subprocess.run(
        [sys.executable, "-m", "tests.trust.test_memory_flat", backend, kind, str(count)],
        cwd=ROOT,
        env={**os.environ, "STREAMWELD_BACKEND": backend},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    growth = int(done.stdout)
    assert growth <= MOST
    figure(f"{kind}, {backend}", f"{count} streams, {growth:+} KiB")


def main(backend: str, kind: str, count: str) -> None:
    import streamweld as sw

    if sw.backend != backend:
        raise SystemExit(f"asked for {backend}, got {sw.backend}")
    print(grown(kind, int(count)))


if __name__ == "__main__":
    main(*sys.argv[1:])
