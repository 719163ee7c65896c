"""`streamweld inspect --json` on the complete corpus: one line per stream, no crash, and only reviewed findings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.corpus import absent, recordings

pytestmark = pytest.mark.skipif(absent() is not None, reason=absent() or "")
HERE = Path(__file__).parent
REVIEWED = json.loads((HERE / "corpus_findings.json").read_text(encoding="utf-8"))["streams"]


def test_findings_of_recorded_streams(backend: str) -> None:
    files = [str(recording.stream) for recording in recordings()]
    done = subprocess.run(
        [sys.executable, "-m", "streamweld", "inspect", "--json", *files],
        env=os.environ | {"STREAMWELD_BACKEND": backend},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, b"")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["file"] for row in rows] == files
    # The reviewed codes are those of the parser; the names of violated rules contain a dot.
    codes = {Path(row["file"]).name: [code for code in row["findings"] if "." not in code] for row in rows}
    found = {name: found for name, found in codes.items() if found}
    assert found == {name: row["findings"] for name, row in REVIEWED.items()}
    for row, recording in zip(rows, recordings(), strict=True):
        assert (row["dialect"], row["bytes"], row["text"]) == ("chat", recording.size, recording.expected["text"])


def test_every_finding_is_explained_by_the_recording() -> None:
    by_name = {recording.name: recording for recording in recordings()}
    for name, row in REVIEWED.items():
        assert row["why"].strip()
        assert by_name[name].notes or by_name[name].wrapped, f"{name}: an unwrapped stream without notes must be clean"
