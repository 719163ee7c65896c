"""The counter of instructions, which decides in `test_doubling`, tells quadratic work from linear work."""

from __future__ import annotations

from functools import partial

import pytest

from tests.limits.test_linear_time import COUNTED
from tests.support.load.instructions import VALGRIND, Counter
from tests.support.load.linear import DOUBLE

SIZE = 20_000


def linear(size: int) -> int:
    return sum(number & 7 for number in range(size))


def partly_quadratic(size: int) -> int:
    """Copy everything at every hundredth step, as a buffer that is joined too often does."""
    kept = b""
    for number in range(size):
        if number % 100 == 0:
            kept = b"%b%0100d" % (kept, number)
    return len(kept)


@pytest.mark.skipif(VALGRIND is None, reason="valgrind is not installed")
def test_the_count_tells_quadratic_work_from_linear_work() -> None:
    growth = {}
    with Counter() as counter:
        for work in (linear, partly_quadratic):
            small, large = [counter.count(partial(work, size), after=partial(work, 1)) for size in (SIZE, 2 * SIZE)]
            growth[work.__name__] = large / small
    assert growth["linear"] <= COUNTED < DOUBLE < growth["partly_quadratic"], growth


def once(loaded: list[int] = []) -> int:  # noqa: B006  (kept between calls, like a table that is loaded once)
    if not loaded:
        loaded.append(linear(SIZE))
    return loaded[0]


@pytest.mark.skipif(VALGRIND is None, reason="valgrind is not installed")
def test_what_is_loaded_once_is_not_counted() -> None:
    with Counter() as counter:
        cold, warm = counter.count(once), counter.count(once, after=once)
    assert warm < cold / 50
