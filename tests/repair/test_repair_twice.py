"""Repair is idempotent: a repaired stream that is repaired again remains the same, byte for byte."""

from __future__ import annotations

import pytest
import streamweld as sw

from tests.support.backends import using
from tests.support.corpus import Recording, absent, all_recordings, sampled

RECORDINGS = sampled([recording for recording in all_recordings() if recording.dialect == "responses"], 4)


@pytest.mark.skipif(absent() is not None, reason=absent() or "")
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: f"{r.folder}-{r.name}")
def test_recorded_responses(backend: str, recording: Recording) -> None:
    with using(backend):
        once = sw.convert(recording.body, source="responses", target="same", seed="s")
        assert once
        assert sw.convert(once, source="responses", target="same", seed="s") == once
