"""Repair is idempotent: a repaired stream that is repaired again remains the same, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import streamweld as sw

from tests.repair.test_repair_vectors import expected, repair
from tests.support.backends import using
from tests.support.corpus import Recording, absent, all_recordings, sampled
from tests.support.vector_files import chunks_of

SHARED_IDS = json.loads((Path(__file__).parent / "repair_shared_ids.json").read_text())["tests"]
RECORDINGS = sampled([recording for recording in all_recordings() if recording.dialect == "responses"], 4)


@pytest.mark.skipif(absent() is not None, reason=absent() or "")
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: f"{r.folder}-{r.name}")
def test_recorded_responses(backend: str, recording: Recording) -> None:
    with using(backend):
        once = sw.convert(recording.body, source="responses", target="same", seed="s")
        assert once
        assert sw.convert(once, source="responses", target="same", seed="s") == once


@pytest.mark.parametrize("vector", SHARED_IDS, ids=lambda vector: vector["name"])
def test_items_with_one_id(backend: str, vector: dict[str, Any]) -> None:
    vector = {**vector, "file": "responses"}
    with using(backend):
        once, repaired, error, codes = repair(vector, [b"".join(chunks_of(vector))])
        again = repair(vector, [once])[0]
    assert once.decode().split("\n\n") == expected(vector).decode().split("\n\n")
    wanted = vector["expect"]
    assert (repaired, error, codes) == (wanted["repaired"], wanted["error"], wanted["diagnostics"])
    assert again.decode().split("\n\n") == once.decode().split("\n\n")
