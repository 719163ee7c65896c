"""History conversion: the cost per message stays constant as histories grow, and is compared with other converters.

20,000 messages take at most 2.2 times as long as 10,000. `make bench-history` installs the rivals of
`rivals_history.py` in their own environment, because litellm requires an older openai than the dependency group
`bench`; without them, only streamweld runs.

    PYTHONPATH=python:. python -m benches.test_history --against DIR [SOURCE-TARGET ...]

compares this tree with another version: `DIR` contains its `streamweld` package (an unpacked wheel, or the `python/`
folder of another checkout). See `compare`.
"""

from __future__ import annotations

import copy
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from streamweld.history import check, convert

from benches.rivals_history import content_of, parts, rivals

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

TARGETS = ("openai-chat", "responses", "anthropic", "gemini", "bedrock-converse")
SOURCES = (*TARGETS, "ai-sdk-ui", "ai-sdk-model")
SIZES = (10, 200)  # `compare`: in a short history, the work that is done once for each conversion counts most


def history(messages: int) -> list[dict[str, Any]]:
    """Return exchanges of five messages: a user message, two calls, their results, and a response."""
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
    """Return the shortest CPU time of several rounds. As in `timeit`, garbage collection is disabled, because its share
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
    for _ in range(3):  # other load on the machine may skew a single measurement
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
    """A second conversion, with one more turn, takes at most 30 % of the time of the first."""
    given = history(200)
    before, more = convert(given, target=target), [*given, *history(205)[-5:]]
    anew = again = float("inf")
    for _ in range(5):  # alternate, so that a busy minute affects both
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
    wanted = content_of({"messages": given}, "openai-chat")
    if target == "gemini":
        wanted = [(one[0], "", *one[2:]) if one[0] in ("call", "result") else one for one in wanted]
    whole: dict[str, Callable[[], Any]] = {"convert": lambda: convert(given, target=target).payload}
    whole |= rivals(given, target)
    before = copy.deepcopy(given)
    wrong = {name for name, run in whole.items() if not _right(run(), wanted, target)}
    assert given == before, "somebody changed the messages: time it with a copy"
    assert "convert" not in wrong
    everything = {**whole, **parts(given, target)}
    best = dict.fromkeys(everything, float("inf"))
    for _ in range(5):  # alternate, so that a busy minute affects all of them
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


def _right(payload: Any, wanted: list[Any], target: str) -> bool:
    return content_of(payload, target) == wanted and not check(_as_history(payload, target), target=target)


def _as_history(payload: Any, target: str) -> dict[str, Any]:
    """Return the members of a request that contain its history."""
    names = {"responses": ("instructions", "input"), "gemini": ("systemInstruction", "contents")}
    return {name: payload[name] for name in names.get(target, ("system", "messages")) if name in payload}


# --- this version against another one


class Version:
    """One version of the package in its own process, which times the requested function."""

    def __init__(self, folder: Path) -> None:
        path = os.pathsep.join([str(folder), str(Path(__file__).parents[1])])
        command = [sys.executable, "-m", "benches.test_history", "--serve"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
        )

    def ask(self, *request: Any) -> float:
        """Send one request to `serve`, and return the measured time in seconds."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the process has no pipes")
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit("a version ended early; its error is above")
        return float(json.loads(answer))

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


def serve() -> None:
    """Process requests from standard input: keep a history, or time `convert` or `check` of a kept history."""
    kept: dict[tuple[str, int], Any] = {}
    for line in sys.stdin:
        word, source, size, *rest = json.loads(line)
        if word == "keep":
            kept[source, size] = rest[0]
            print(0.0, flush=True)
            continue
        target, rounds = rest
        given: Any = kept[source, size]
        if word == "check":
            run = lambda given=given, target=target: check(given, target=target)  # noqa: E731
        else:
            run = lambda given=given, source=source, target=target: convert(given, source=source, target=target)  # noqa: E731
        repeats = max(1, 200 // size)  # the clock is too coarse for one conversion of a short history
        print(seconds(lambda run=run, repeats=repeats: [run() for _ in range(repeats)], rounds) / repeats, flush=True)  # type: ignore[misc]


def compare(folder: Path, chosen: list[str], turns: int = 9, rounds: int = 6) -> float:
    """Print the time of this version divided by that of the version in `folder`, and return the median of all rows.

    It converts 10 and 200 messages from every source to every target, and runs `check` for every dialect. The versions
    alternate and get the same input. Each ratio compares the best processor times, which other load on the machine
    skews least.
    """
    versions = [Version(Path(__file__).parents[1] / "python"), Version(folder)]
    for size in SIZES:
        first = {"messages": history(size)}
        for source in SOURCES:
            given: Any = first if source == "openai-chat" else dict(convert(first, target=source).payload)  # type: ignore[arg-type]
            for version in versions:
                version.ask("keep", source, size, given)
    rows = [("convert", source, size, target) for size, source, target in product(SIZES, SOURCES, SOURCES)]
    rows += [("check", one, size, one) for size, one in product(SIZES, SOURCES)]
    rows = [row for row in rows if not chosen or f"{row[1]}-{row[3]}" in chosen or row[0] in chosen]
    best = {row: [float("inf"), float("inf")] for row in rows}
    for _, row, (at, version) in product(range(turns), rows, enumerate(versions)):
        best[row][at] = min(best[row][at], version.ask(*row, rounds))
    for version in versions:
        version.close()
    ratios = {row: ours / other for row, (ours, other) in best.items()}
    for row, ratio in ratios.items():
        word, source, size, target = row
        name = f"check {source}" if word == "check" else f"{source} -> {target}"
        print(f"{name:36} {size:4} messages {best[row][0] * 1e6:8.0f} us {ratio:6.2f} x")
    for word, size in product(("convert", "check"), SIZES):
        some = [ratio for row, ratio in ratios.items() if (row[0], row[2]) == (word, size)]
        if some:
            median = statistics.median(some)
            print(f"{word} {size} messages: median {median:.3f}, worst {max(some):.2f}, of {len(some)}")
    return statistics.median(ratios.values())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve()
    elif len(sys.argv) > 2 and sys.argv[1] == "--against":
        raise SystemExit(int(compare(Path(sys.argv[2]), sys.argv[3:]) > 1.0))
    else:
        raise SystemExit("usage: python -m benches.test_history --against DIR [check | SOURCE-TARGET ...]")
