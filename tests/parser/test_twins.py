"""Both backends give the same events, diagnostics, offsets, exceptions with their text, and responses.

Full counts (STREAMWELD_FULL=1): 30,000 generated streams (nightly: 100,000), most of them corrupted, and some of them
junk. A difference is shrunk and printed; `python -m tests.support.twin_diff` does the same faster.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import NIGHTLY
from tests.support.generate.noise import LINES, random_case, random_pieces
from tests.support.harness import difference, read
from tests.support.parallel import spread
from tests.support.twin_diff import report, scan, twin_difference
from tests.support.vector_files import chunks_of, label, load

BLOCK = 2500


@pytest.fixture(autouse=True)
def both(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--no-native"):
        pytest.skip("--no-native: there is nothing to compare with")


@pytest.mark.timeout(2400)
def test_generated_streams(full: bool) -> None:
    count = 100_000 if NIGHTLY else 30_000 if full else 2_000
    jobs = [(first, min(BLOCK, count - first)) for first in range(0, count, BLOCK)]
    rows = [row for found in spread(scan, jobs, alone=not full) for row in found]
    assert not rows, report(rows, 5)


@pytest.mark.parametrize("vector", load("chat"), ids=label)
def test_vectors(vector: dict[str, Any]) -> None:
    body = b"".join(chunks_of(vector))
    for base in ("strict", "standard", "salvage"):
        policy = vector.get("options", {}).get("policy", {})
        switches = policy if isinstance(policy, dict) else {}
        options = vector.get("options", {}) | {"policy": switches | {"base": base}}
        assert twin_difference(body, options) is None
        assert twin_difference(body[: len(body) * 2 // 3], options) is None


def test_in_pieces(full: bool) -> None:
    """With the same pieces, each call of feed returns the same events in both backends."""
    for seed in range(5000 if full else 300):
        body, options = random_case(seed)
        rng = random.Random(seed)
        pieces = random_pieces(rng, body)
        native, pure = (read(name, pieces, options).facts() for name in ("native", "pure"))
        assert difference(native, pure) is None, f"seed {seed}"


@given(st.binary(max_size=200))
def test_any_bytes(body: bytes) -> None:
    assert twin_difference(body, {}) is None


@given(st.lists(st.sampled_from([*LINES, b"data: ", b'{"choices":[{"delta":{"content":"', b'"}}]}', b"\n\n", b'"'])))
def test_any_lines(lines: list[bytes]) -> None:
    assert twin_difference(b"".join(lines), {"policy": {"base": "salvage"}}) is None
