"""Both backends give the same results in the dialects other than Chat: for generated streams, and for recorded ones,
fed at once, in pieces and truncated.

Full counts (STREAMWELD_FULL=1): 3,000 generated streams per dialect (nightly: 10,000). The command `python -m
tests.support.twin_diff --dialect D` does the same faster.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.conftest import NIGHTLY
from tests.support.corpus import Recording, absent, all_recordings, sampled
from tests.support.parallel import spread
from tests.support.twin_diff import SOURCES, report, scan_dialect, twin_difference

if TYPE_CHECKING:
    from typing import Any

BLOCK = 2500
RECORDINGS = sampled([recording for recording in all_recordings() if recording.dialect in SOURCES], 4)


@pytest.fixture(autouse=True)
def both(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--no-native"):
        pytest.skip("--no-native: there is nothing to compare with")


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("dialect", SOURCES)
def test_generated_streams(full: bool, dialect: str) -> None:
    count = 10_000 if NIGHTLY else 3_000 if full else 1_000
    jobs = [(first, min(BLOCK, count - first), dialect) for first in range(0, count, BLOCK)]
    rows = [row for found in spread(scan_dialect, jobs, alone=not full) for row in found]
    assert not rows, report(rows, 5, dialect)


@pytest.mark.skipif(absent() is not None, reason=absent() or "")
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: f"{r.folder}-{r.name}")
def test_recorded_streams(full: bool, recording: Recording) -> None:
    rng = random.Random(recording.name)
    body = recording.body
    policies: tuple[dict[str, Any], ...] = ({}, {"policy": {"base": "salvage"}}, {"policy": {"base": "strict"}})
    for options in policies:
        options = options | {"dialect": rng.choice(("auto", recording.dialect))}
        assert twin_difference(body, options) is None
        assert twin_difference(body, options, rng.randrange(1, 10**6, 2)) is None
        assert twin_difference(body, options, 7) is None
        for _ in range(5 if full else 2):
            cut = body[: rng.randrange(len(body) + 1)]
            assert twin_difference(cut, options, rng.randrange(10**6)) is None, len(cut)
