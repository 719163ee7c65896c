"""No integration keeps more than the core: fillers flow or end with a limit; memory stays at that and 1 MiB."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks import MIB, PIECE
from tests.fillers import FILLERS, NIGHTLY
from tests.flood import INTEGRATIONS, LIMIT, TOTAL

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ("comments", "unknown_fields", "blank_lines", "spaces", "keep_alives")


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process can be reset on Linux alone")
@pytest.mark.parametrize("name", INTEGRATIONS)
def test_a_flood_of_filler_is_not_kept(name: str) -> None:
    fillers = tuple(FILLERS) if NIGHTLY else SAMPLE
    done = subprocess.run(
        [sys.executable, "-m", "tests.flood", name, *fillers],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["filler"] for row in rows] == [filler for filler in fillers for _ in range(4)]
    most = LIMIT + MIB + PIECE
    if name == "aiohttp":
        most += MIB  # its own: reads of 256 KiB, two of them inflated, are waiting at the most
    grown = [row for row in rows if row["growth"] > most]
    assert not grown, "\n".join([f"{row} > {most}" for row in grown])
    # What flows is whole or ends with the limit; what is kept is given up with it.
    silent = [row for row in rows if "exceeds a limit" not in row["last"] and not row["raised"].startswith("limit_")]
    flowed = [row for row in silent if row["out"] < TOTAL - MIB]
    assert not flowed, flowed
