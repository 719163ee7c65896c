"""Every stage caps what it keeps: fillers flow or raise LimitExceeded, and memory stays at limit, 1 MiB and a read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks import MIB, PIECE
from tests.fillers import FILLERS, LIMIT, STAGES

ROOT = Path(__file__).resolve().parent.parent
# What a stage may raise about a filler: a cap, or that it found no stream that it knows.
RAISED = {"-", "unknown_dialect", "not_an_event_stream", "malformed_json", "upstream_error"}


@pytest.mark.parametrize("stage", STAGES)
def test_fillers(backend: str, stage: str) -> None:
    if stage == "check" and backend == "native":
        pytest.skip("there is one checker for both backends")
    done = subprocess.run(
        [sys.executable, "-m", "tests.fillers", backend, stage],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[0] for row in rows] == [name for name in FILLERS for _ in range(2)]
    limit = LIMIT["native"] if stage == "check" else LIMIT[backend]  # its caps are not the caller's
    most = limit + MIB + PIECE
    wrong = [
        row for row in rows if int(row[3]) > most or not (row[2] in RAISED or row[2].startswith(("limit_", "framing.")))
    ]
    assert not wrong, "\n".join([f"{' '.join(row)} > {most}" for row in wrong])
