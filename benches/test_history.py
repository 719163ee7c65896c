"""History conversion: the cost per message stays constant as histories grow, and is compared with other converters.

20,000 messages take at most 2.2 times as long as 10,000. `make bench-history` installs the rivals of
`rivals_history.py` in their own environment, because litellm requires an older openai than the dependency group
`bench`; without them, only streamweld runs.
"""

from __future__ import annotations

import copy
import gc
import time
from typing import TYPE_CHECKING, Any

import pytest
from streamweld.history import check, convert

from benches.rivals_history import parts, rivals, told

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

TARGETS = ("openai-chat", "responses", "anthropic", "gemini", "bedrock-converse")


def history(messages: int) -> list[dict[str, Any]]:
    """Return exchanges of five messages: a question, two calls, their results, an answer."""
    out: list[dict[str, Any]] = []
    for n in range(messages // 5):
        queries = [f'{{"query":"number {n}.{which}","limits":[1,2,3]}}' for which in range(2)]
        functions = [{"name": "search", "arguments": query} for query in queries]
        calls = [{"id": f"call_{n}_{at}", "type": "function", "function": f} for at, f in enumerate(functions)]
        out.append({"role": "user", "content": f"question {n} " + "x" * 200})
        out.append({"role": "assistant", "content": None, "tool_calls": calls})
        out += [{"role": "tool", "tool_call_id": call["id"], "content": "result " * 40} for call in calls]
        out.append({"role": "assistant", "content": "answer" + " answer" * 29})
    return out


def seconds(work: Callable[[], object], rounds: int) -> float:
    """Return the best of some rounds, in processor time; as in `timeit`, garbage collection is off, because its share
    grows with the number of live objects."""
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
    """Converting again with one more turn takes at most 0.3 of the first time."""
    given = history(200)
    before, more = convert(given, target=target), [*given, *history(205)[-5:]]
    anew = again = float("inf")
    for _ in range(5):  # alternating, so that a busy minute affects both
        anew = min(anew, seconds(lambda: convert(more, target=target), 20))
        again = min(again, seconds(lambda: convert(more, target=target, previous=before), 20))
    benchmark.extra_info["one turn more over all anew"] = again / anew
    benchmark.pedantic(lambda: convert(more, target=target, previous=before), rounds=20)
    print(f"{target}: one turn more {again / anew:.2f} of all anew")
    assert again <= 0.3 * anew


@pytest.mark.parametrize("target", TARGETS)
def test_beside_rivals(target: str, benchmark: BenchmarkFixture) -> None:
    """Check that streamweld converts the messages of one request correctly and at least as fast as litellm.

    A rival's result is compared with the content of the messages, and checked against the target's rules; if either
    differs, it is marked `wrong`.
    """
    given = history(200)
    truth = told({"messages": given}, "openai-chat")
    if target == "gemini":
        truth = [(one[0], "", *one[2:]) if one[0] in ("call", "result") else one for one in truth]
    whole: dict[str, Callable[[], Any]] = {"convert": lambda: convert(given, target=target).payload}
    whole |= rivals(given, target)
    before = copy.deepcopy(given)
    wrong = {name for name, run in whole.items() if not _right(run(), truth, target)}
    assert given == before, "somebody changed the messages: time it with a copy"
    assert "convert" not in wrong
    everything = {**whole, **parts(given, target)}
    best = dict.fromkeys(everything, float("inf"))
    for _ in range(5):  # alternating, so that a busy minute affects all of them
        for name, run in everything.items():
            best[name] = min(best[name], seconds(run, 20))
    ours = best["convert"]
    print(f"\n200 messages, openai-chat -> {target}")
    for name, took in best.items():
        print(f"  {name:42} {took * 1e3:8.2f} ms {took / ours:8.2f} x{'  wrong' if name in wrong else ''}")
        benchmark.extra_info[name] = {"ratio": took / ours, "correct": name not in wrong}
    benchmark.pedantic(whole["convert"], rounds=20)
    if "litellm" in best:
        assert ours <= best["litellm"]


def _right(payload: Any, truth: list[Any], target: str) -> bool:
    return told(payload, target) == truth and not check(_told_of(payload, target), target=target)


def _told_of(payload: Any, target: str) -> dict[str, Any]:
    """Return the members of a request that contain its history."""
    names = {"responses": ("instructions", "input"), "gemini": ("systemInstruction", "contents")}
    return {name: payload[name] for name in names.get(target, ("system", "messages")) if name in payload}
