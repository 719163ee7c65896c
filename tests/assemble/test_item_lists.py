"""Both backends give the same results for Responses items that list other parts than the streamed ones.

Full count (STREAMWELD_FULL=1): 500 streams (nightly: 10,000).
"""

from __future__ import annotations

import pytest

from tests.conftest import NIGHTLY
from tests.support.generate.item_lists import random_case
from tests.support.twin_diff import twin_difference


@pytest.fixture(autouse=True)
def both(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--no-native"):
        pytest.skip("--no-native: there is nothing to compare with")


@pytest.mark.timeout(1200)
def test_hostile_lists(full: bool) -> None:
    count = 10_000 if NIGHTLY else 500 if full else 100
    found = {seed: twin_difference(*random_case(seed), seed) for seed in range(count)}
    assert {seed: what for seed, what in found.items() if what} == {}
