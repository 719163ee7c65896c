"""The scorecard: all rows exist, commands refer to existing files, and it is assembled only if every step is green."""

from __future__ import annotations

import datetime as dt
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def scorecard(monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("scorecard", ROOT / ".ci" / "scorecard.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "scorecard", module)
    spec.loader.exec_module(module)
    return module


def head() -> str:
    done = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not in a git checkout")
    return done.stdout.strip()


STEP = """
[[step]]
row = "R1"
name = "a"
title = "t"
gate = "g"
minutes = 0.05
long = "echo figure 7"
figure = "figure (.*)"
"""


@pytest.fixture
def card(scorecard: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A scorecard with one step and its own files."""
    head()
    (tmp_path / "steps.toml").write_text(STEP)
    monkeypatch.setattr(scorecard, "load_steps", lambda load=scorecard.load_steps: load(tmp_path / "steps.toml"))
    for name, place in (
        ("RECORDS", "records.jsonl"),
        ("LOGS", "logs"),
        ("SUMMARY", "summary.json"),
        ("PAGE", "page.md"),
    ):
        monkeypatch.setattr(scorecard, name, tmp_path / place)
    return scorecard


def test_every_row_has_a_step(scorecard: Any) -> None:
    steps = scorecard.load_steps()
    assert list(dict.fromkeys(step.row for step in steps)) == [f"R{number}" for number in range(1, 23)]
    for step in steps:
        for command in filter(None, (step.long, step.short)):
            expanded = scorecard.expand(command)
            assert "{" not in expanded
            for place in re.findall(r"(?<!\S)(?:tests|\.ci)/\S+", expanded):
                assert (ROOT / place).exists(), place


def test_a_measured_step_is_green(card: Any) -> None:
    assert card.run([], short=False, fresh=False) == 0
    assert card.assemble(release=False) == 0
    (row,) = json.loads(card.SUMMARY.read_text())["rows"]
    assert (row["state"], row["figure"], row["commit"]) == ("passed", "7", head())
    assert "| R1 | t | g | passed | 7 |" in card.PAGE.read_text()


def test_a_step_that_passed_is_not_run_again(card: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert card.run([], short=False, fresh=False) == card.run([], short=False, fresh=False) == 0
    assert len(card.RECORDS.read_text().splitlines()) == 1
    assert "for these sources" in capsys.readouterr().out
    assert card.run([], short=False, fresh=True) == 0
    assert len(card.RECORDS.read_text().splitlines()) == 2


def test_the_committed_summary_counts_as_records(card: Any) -> None:
    card.run([], short=False, fresh=False)
    card.assemble(release=False)
    card.RECORDS.unlink()
    assert card.assemble(release=False) == 0


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({"state": "failed"}, "failed"),
        ({"state": "timed out"}, "timed out"),
        ({"command": "another"}, "stale"),
        ({"commit": "0" * 40}, "stale"),
        ({"date": (dt.datetime.now(dt.UTC) - dt.timedelta(days=15)).isoformat()}, "stale"),
    ],
)
def test_what_is_not_green_fails(card: Any, change: dict[str, str], state: str) -> None:
    card.run([], short=False, fresh=False)
    record = json.loads(card.RECORDS.read_text()) | change
    card.RECORDS.write_text(json.dumps(record) + "\n")
    assert card.assemble(release=False) == 1
    assert json.loads(card.SUMMARY.read_text())["rows"][0]["state"] == state


def test_a_missing_record_fails(card: Any) -> None:
    assert card.assemble(release=False) == 1
    assert json.loads(card.SUMMARY.read_text())["rows"][0]["state"] == "missing"


def test_a_release_needs_records_of_its_sources(card: Any) -> None:
    card.run([], short=False, fresh=False)
    record = json.loads(card.RECORDS.read_text()) | {"product": "other"}
    card.RECORDS.write_text(json.dumps(record) + "\n")
    assert (card.assemble(release=False), card.assemble(release=True)) == (0, 1)


@pytest.mark.parametrize(
    ("command", "state"), [("exit 3", "failed"), ("echo nothing", "failed"), ("sleep 60 & wait", "timed out")]
)
def test_a_step_that_fails_or_overruns(card: Any, tmp_path: Path, command: str, state: str) -> None:
    """A step that does not print its figure fails. A step that exceeds its time is stopped together with its child
    processes.
    """
    (tmp_path / "steps.toml").write_text(STEP.replace("echo figure 7", command))
    assert card.run([], short=False, fresh=False) == 1
    assert json.loads(card.RECORDS.read_text())["state"] == state
