"""Histories: what a message costs does not grow with their number; litellm's converter beside it, where it is.

20,000 messages cost at most 2.2 times what 10,000 do. litellm is no part of the extra `bench`: its time is printed
where it is installed.
"""

from __future__ import annotations

import copy
import gc
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from streamweld.history import check, convert

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

TARGETS = ("openai-chat", "responses", "anthropic", "gemini", "bedrock-converse")


def history(messages: int) -> list[dict[str, Any]]:
    """Exchanges of five messages: a question, two calls, their results, an answer."""
    out: list[dict[str, Any]] = []
    for n in range(messages // 5):
        function = {"name": "search", "arguments": f'{{"query":"number {n}","limits":[1,2,3]}}'}
        calls = [{"id": f"call_{n}_{which}", "type": "function", "function": function} for which in range(2)]
        out.append({"role": "user", "content": f"question {n} " + "x" * 200})
        out.append({"role": "assistant", "content": None, "tool_calls": calls})
        out += [{"role": "tool", "tool_call_id": call["id"], "content": "result " * 40} for call in calls]
        out.append({"role": "assistant", "content": "answer " * 30})
    return out


def seconds(work: Callable[[], object], rounds: int) -> float:
    """The best of some rounds, in processor time; as `timeit` does, without the collector of cycles, whose share grows
    with everything that is alive."""
    best = float("inf")
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            begin = time.process_time()
            work()
            best = min(best, time.process_time() - begin)
    finally:
        gc.enable()
    return best


@pytest.mark.timeout(300)
@pytest.mark.parametrize("target", TARGETS)
def test_linear(target: str, benchmark: BenchmarkFixture) -> None:
    short, long = history(10_000), history(20_000)
    for _ in range(3):  # a busy machine may spoil a try
        times = [seconds(lambda given=given: convert(given, target=target), 3) for given in (short, long)]  # type: ignore[misc]
        if times[1] <= 2.2 * times[0]:
            break
    benchmark.extra_info["t(2n) over t(n)"] = times[1] / times[0]
    benchmark.extra_info["microseconds a message"] = times[1] / 20_000 * 1e6
    print(f"{target}: t(2n)/t(n) {times[1] / times[0]:.2f}, {times[1] / 20_000 * 1e6:.1f} us a message")
    benchmark.pedantic(lambda: None, rounds=1)
    assert times[1] <= 2.2 * times[0]


@pytest.mark.parametrize("target", TARGETS)
def test_one_turn_more(target: str, benchmark: BenchmarkFixture) -> None:
    """Converting again with one turn more costs at most 0.3 of the first time."""
    given = history(200)
    before, more = convert(given, target=target), [*given, *history(205)[-5:]]
    anew = seconds(lambda: convert(more, target=target), 20)
    again = seconds(lambda: convert(more, target=target, previous=before), 20)
    benchmark.extra_info["one turn more over all anew"] = again / anew
    benchmark.pedantic(lambda: convert(more, target=target, previous=before), rounds=20)
    print(f"{target}: one turn more {again / anew:.2f} of all anew")
    assert again <= 0.3 * anew


def test_200_messages(benchmark: BenchmarkFixture) -> None:
    """The messages of one request into Anthropic's; litellm's converter is printed beside.

    It is the faster one: 0.9 ms where `convert` takes 4.6 (November 2026, one shared core).
    """
    given = history(200)
    ours = seconds(lambda: convert(given, target="anthropic"), 50)
    benchmark.pedantic(lambda: convert(given, target="anthropic"), rounds=20)
    print(
        f"convert: {ours * 1e3:.2f} ms; check: {seconds(lambda: check(given, target='openai-chat'), 20) * 1e3:.2f} ms"
    )
    if find_spec("litellm") is None:
        return
    from litellm.litellm_core_utils.prompt_templates.factory import anthropic_messages_pt

    def theirs() -> object:  # it changes what it is given
        return anthropic_messages_pt(copy.deepcopy(given), model="claude-sonnet-4-5", llm_provider="anthropic")

    copied = seconds(lambda: copy.deepcopy(given), 50)
    rival = seconds(theirs, 50) - copied
    print(f"litellm: {rival * 1e3:.2f} ms without the copy it needs")
