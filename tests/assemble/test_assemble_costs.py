"""The cost of the assembler alone: its limits, and time that is linear in the number of fragments, whatever they
contain.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from streamweld.errors import LimitExceeded
from streamweld.options import Limits

from tests.support.rig import KEY, OSLO, ROME, VALUE, Rig

if TYPE_CHECKING:
    from collections.abc import Callable


class TestLimits:
    def over(self, limit: str, value: int, act: Callable[[Rig], object]) -> None:
        rig = Rig(limits=Limits(**{limit: value}))
        with pytest.raises(LimitExceeded) as caught:
            act(rig)
        error = caught.value
        assert (error.rule, error.limit, error.observed) == (f"limit_{limit}", value, value + 1)

    def test_each(self) -> None:
        self.over("max_tool_calls", 2, lambda r: r(0, "a", "f")(1, "b", "f")(2, "c", "f"))
        self.over("max_arguments_bytes", 10, lambda r: r(0, "a", "f", '{"a":"12')(0, None, None, "345"))
        self.over("max_total_arguments_bytes", 20, lambda r: r(0, "a", "f", OSLO)(1, "b", "f", ROME))
        self.over("max_name_bytes", 5, lambda r: r(0, "a", "abc")(0, None, "def"))
        self.over("max_id_bytes", 3, lambda r: r(0, "abcd", "f"))
        self.over("max_text_bytes", 5, lambda r: r.text("abc").text("d\u00e9f"))
        self.over("max_choices", 1, lambda r: r.text("a").text("b", choice=1))

    def test_exactly_the_limit_is_fine(self) -> None:
        rig = Rig(limits=Limits(max_arguments_bytes=len(OSLO)))(0, "a", "f", KEY)(0, None, None, VALUE)
        rig(0, "a", "f", OSLO)(0, "a", "f", KEY)(0, "a", None, VALUE).done()
        assert rig.brief == [("a", "f", OSLO)]

    def test_the_piece_is_not_kept(self) -> None:
        rig = Rig(limits=Limits(max_arguments_bytes=10))(0, "a", "f", '{"a":"12')
        with pytest.raises(LimitExceeded):
            rig(0, None, None, "345")
        assert rig.calls[0].arguments == '{"a":"12'


def seconds(work: Callable[[], object]) -> float:
    """Return processor time, which depends little on other processes."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def replay_bytes(rig: Rig, n: int) -> None:
    rig(0, "a", "f", '{"a":"' + "x" * n + '"}')
    for piece in ["{", '"a":', '"', *["x"] * (n // 4)]:
        rig(0, None, None, piece)


def tentative(rig: Rig, n: int) -> None:
    rig(0, "x", "f", OSLO)
    for k in range(n // 8):
        rig(k + 1, "x", "f", "").text("t")


COSTS: dict[str, Callable[[Rig, int], object]] = {
    "one_byte": lambda r, n: [r(0, "a", "f", '{"a":"'), *[r(0, None, None, "x") for _ in range(n)]],
    "broken": lambda r, n: [r(0, "a", "f", "{]"), *[r(0, None, None, "{") for _ in range(n)]],
    "overflow": lambda r, n: [r(0, "a", "f", OSLO), *[r(0, None, None, "x") for _ in range(n)]],
    "restarts": lambda r, n: [r(0, "a", "f", '{"a":1'), *[r(0, None, None, ("{", '"b":1')[k % 2]) for k in range(n)]],
    "replays": replay_bytes,
    "whole_replays": lambda r, n: [
        r(0, "a", "f", '{"a":"' + "x" * n + '"}'),
        *[r(0, "a", "f", "{}") for _ in range(900)],
    ],
    "objects": lambda r, n: [r(0, "a", "f", {"a": "x"}), *[r(0, None, None, {"a": "y"}) for _ in range(n // 4)]],
    "many_calls": lambda r, n: [r(k, f"i{k}", "f", "") for k in range(n // 4)],
    "strays": lambda r, n: [
        *[r(k, f"i{k}", "f", '{"a":') for k in range(900)],
        *[r(None, None, None, "1") for k in range(n)],
    ],
    "tentative": tentative,
    "random_ids": lambda r, n: [r(0, "a", "f", '{"a":"'), *[r(0, f"r{k}", None, "x") for k in range(n)]],
    "metadata": lambda r, n: [r(0, "a", "f", KEY), *[r(0, metadata=f'{{"k{k}":1}}') for k in range(n // 4)]],
    "ghost_names": lambda r, n: [r(0, "a", "f", KEY), *[r(0, "a", "g", "") for k in range(n)]],
}


@pytest.mark.parametrize("name", COSTS)
def test_linear(name: str) -> None:
    """Four times as many fragments take about four times as long, because no text is scanned twice."""
    limits = Limits(max_tool_calls=None, max_tool_index=None)

    def run(n: int) -> float:
        return seconds(lambda: COSTS[name](Rig(limits=limits, silent=True), n))

    run(500)
    for _ in range(3):
        small, large = run(2_000), run(8_000)
        if large <= small * 4 * 2 + 0.05:
            return
    raise AssertionError((small, large))
