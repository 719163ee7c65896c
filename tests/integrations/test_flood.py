"""No integration keeps more data than the core: fillers pass or end with a limit, and memory stays close to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.support.attacks import MIB, PIECE
from tests.support.load.fillers import FILLERS, NIGHTLY
from tests.support.load.flood import INTEGRATIONS, LIMIT, TOTAL
from tests.support.places import REPOSITORY

ROOT = REPOSITORY
SAMPLE = ("unknown_fields", "spaces", "keep_alives")


# Even without a repairer, an aiohttp client that decompresses a body grows by up to 4 MB.
AIOHTTP = 3 * MIB


def allowed(name: str, how: str) -> int:
    """Return the allowed memory growth."""
    most = LIMIT + MIB + PIECE
    if (name, how) == ("aiohttp", "packed"):
        most += AIOHTTP
    return most


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process can be reset on Linux alone")
@pytest.mark.parametrize("name", INTEGRATIONS)
def test_a_flood_of_filler_is_not_kept(name: str) -> None:
    fillers = tuple(FILLERS) if NIGHTLY else SAMPLE
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.load.flood", name, *fillers],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["filler"] for row in rows] == [filler for filler in fillers for _ in range(4)]
    grown = [f"{row} > {most}" for row in rows if row["growth"] > (most := allowed(name, row["how"]))]
    assert not grown, "\n".join(grown)
    # Filler that passes is complete or ends with the limit, and kept data are released at the limit.
    silent = [row for row in rows if "exceeds a limit" not in row["last"] and not row["raised"].startswith("limit_")]
    if name.endswith("converts"):  # filler is not part of another dialect
        return
    # Clients raise at named keep-alives, so that a repair drops each of them.
    flowed = [row for row in silent if row["out"] < TOTAL[row["how"]] - MIB and row["filler"] != "keep_alives"]
    assert not flowed, flowed
