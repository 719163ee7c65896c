"""Recorded streams in formats other than the six dialects: framed without an error, and never detected as a dialect.
Legacy Completions are the exception: they are parsed as Chat.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamweld import sse

from tests.support.corpus import Recording, absent, recordings
from tests.support.harness import read

pytestmark = pytest.mark.skipif(absent() is not None, reason=absent() or "")

VERDICTS: dict[str, Any] = json.loads((Path(__file__).parent / "corpus_other.json").read_text(encoding="utf-8"))[
    "verdicts"
]
WANTED = {name: verdict for verdict, row in VERDICTS.items() for name in row["streams"]}
others = pytest.mark.parametrize("recording", recordings("other"), ids=lambda r: r.name)


@others
def test_verdict(backend: str, recording: Recording) -> None:
    outcome = read(backend, [recording.body], {"dialect": "auto"})
    error = outcome.error
    found = error.rule if error is not None else f"{outcome.dialect} {outcome.response.completeness}"
    assert found == WANTED[recording.name]
    assert not outcome.response.tool_calls
    assert bool(outcome.response.text) == found.startswith("chat ")


@others
def test_framing(recording: Recording) -> None:
    for frame in sse.iter_frames([recording.body]):
        assert isinstance(frame.data, str)


def test_every_verdict_is_reviewed() -> None:
    assert set(WANTED) == {recording.name for recording in recordings("other")}
    assert all(row["why"] for row in VERDICTS.values())
