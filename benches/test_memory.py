"""Memory of an open stream, and of 10,000 in one asyncio loop; measured in separate processes (`memory.py`)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benches.memory import SHAPES

LIMIT = 4096


def measure(*args: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benches.memory", *args]
    done = subprocess.run(command, cwd=Path(__file__).parent.parent, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is read from /proc")


@needs_proc
@pytest.mark.parametrize("name", SHAPES)
def test_idle_stream(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A parser in the middle of a stream uses at most 4 KiB in addition to the text that it was fed."""
    found = measure("idle", name)
    with capsys.disabled():
        print(f"\n{name}, {found['parsers']} parsers: {found['bytes']:.0f} bytes each beside {found['text']} of text")
    assert found["bytes"] <= LIMIT


@needs_proc
@pytest.mark.parametrize("dialect", ["chat", "responses", "anthropic"])
def test_streams_in_one_loop(dialect: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Streams alternate after every event, and no data of one stream appear in another."""
    found = measure("loop", dialect)
    alone = found["without"]["bytes"]
    with capsys.disabled():
        print(f"\n{dialect}, {found['streams']} streams in one loop, all open; tasks alone: {alone:.0f} bytes a stream")
        for way in ("aiter_batches", "StreamParser"):
            print(f"  {way:14} {found[way]['bytes'] - alone:8.0f} bytes a stream more, {found[way]['wrong']} wrong")
        print(f"  {found['feeds']} feeds: p50 {found['p50_us']:.1f} us, p99 {found['p99_us']:.1f} us")
    assert found["aiter_batches"]["wrong"] == found["StreamParser"]["wrong"] == 0
