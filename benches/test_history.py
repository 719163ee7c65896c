"""History conversion: the cost per message stays constant as histories grow, and is compared with other converters.

20,000 messages take at most 2.2 times as long as 10,000. `make bench-history` installs the rivals of
`rivals_history.py` in their own environment, because litellm requires an older openai than the dependency group
`bench`; without them, only streamweld runs.

    PYTHONPATH=python:. python -m benches.test_history --against DIR [WORK | KIND | SOURCE-TARGET ...]

compares this tree with another version: `DIR` contains its `streamweld` package (`site-packages` with an installed
wheel, or the `python/` folder of another checkout). The words select rows, such as `check`, `agents`, or
`gemini-responses`. See `compare`.
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
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from streamweld.errors import StreamweldError
from streamweld.history import check, convert

from benches.rivals_history import content_of, parts, rivals
from tests.history.judge.agents import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_benchmark.fixture import BenchmarkFixture

TARGETS = ("openai-chat", "responses", "anthropic", "gemini", "bedrock-converse")
SOURCES = (*TARGETS, "ai-sdk-ui", "ai-sdk-model")
KINDS = ("10 messages", "200 messages", "agents")  # `compare`: a short history shows the fixed work of a conversion


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
    """One version of the package in its own process, which converts and times the requested histories."""

    def __init__(self, folder: Path) -> None:
        path = os.pathsep.join([str(folder), str(Path(__file__).parents[1])])
        command = [sys.executable, "-m", "benches.test_history", "--serve"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
        )

    def ask(self, word: str, *details: Any) -> Any:
        """Send one request to `serve`, and return its response."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the process has no pipes")
        self._process.stdin.write(json.dumps([word, *details]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit("a version ended early; its error is above")
        return json.loads(answer)

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


def _run(work: str, given: Any, source: Any, target: Any) -> Any:
    if work == "check":
        return check(given, target=target)
    if work == "requests":
        from streamweld import requests  # version 0.1.0 does not have it

        return requests.convert(given, source=source, target=target).payload
    return convert(given, source=source, target=target).payload


def serve() -> None:
    """Process requests from standard input.

    `keep`: store histories. `results`: return the result of each history as text, or None if there is none. `time`:
    return the seconds for the histories with these numbers.
    """
    kept: dict[tuple[str, str], list[Any]] = {}
    for line in sys.stdin:
        word, kind, source, *rest = json.loads(line)
        answer: Any = None
        if word == "keep":
            kept[kind, source] = rest[0]
        elif word == "results":
            answer = [_result(rest[0], given, source, rest[1]) for given in kept[kind, source]]
        else:
            work, target, numbers, rounds = rest
            some = [kept[kind, source][n] for n in numbers]
            repeats = 20 if kind == "10 messages" else 1  # the clock is too coarse for one short history
            answer = seconds(partial(_all, work, some * repeats, source, target), rounds) / repeats
        print(json.dumps(answer), flush=True)


def _all(work: str, histories: list[Any], source: str, target: str) -> None:
    for given in histories:
        _run(work, given, source, target)


def _result(work: str, given: Any, source: str, target: str) -> str | None:
    try:
        found = _run(work, given, source, target)
        if work == "check":
            return json.dumps([(one.rule, one.path) for one in found])
        return json.dumps(found, default=bytes.hex, sort_keys=True)
    except (StreamweldError, ImportError):
        return None


def _histories() -> Iterator[tuple[str, str, list[Any]]]:
    """Yield (kind, source, histories): one short and one long history, and those of current agents."""
    for size in (10, 200):
        first = {"messages": history(size)}
        for source in SOURCES:
            given: Any = first if source == "openai-chat" else dict(convert(first, target=source).payload)  # type: ignore[arg-type]
            yield f"{size} messages", source, [given]
    for source in SOURCES:
        found: list[Any] = [_messages_of(one.request) for one in load() if one.source == source]
        if source == "bedrock-converse":  # no agent uses it; those of Claude Code, without media, which are bytes
            claude = [_messages_of(one.request) for one in load() if one.source == "anthropic"]
            made = [dict(convert(given, source="anthropic", target=source).payload) for given in claude]
            found = [given for given in made if "b'" not in repr(given)]
        yield "agents", source, found


def _messages_of(request: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a request that belong to its history."""
    names = ("model", "system", "instructions", "systemInstruction", "messages", "input", "contents")
    return {name: request[name] for name in names if name in request}


def compare(folder: Path, chosen: list[str], turns: int = 9, rounds: int = 6) -> float:
    """Print the time of this version divided by that of the version in `folder`, and return the median of all rows.

    Results come first: each result of this version must pass `check`, and histories that the other version cannot
    convert are not timed. Histories whose results differ (kind `changed`) are timed apart, because one of the versions
    does work that the other one leaves out. Then the versions alternate and get the same input. Each ratio compares the
    best processor times, which other load on the machine skews least.
    """
    versions = [Version(Path(__file__).parents[1] / "python"), Version(folder)]
    for kind, source, histories in _histories():
        for version in versions:
            version.ask("keep", kind, source, histories)
    rows = [("convert", kind, source, target) for kind, source, target in product(KINDS, SOURCES, SOURCES)]
    rows += [("check", kind, one, one) for kind, one in product(KINDS, SOURCES)]
    rows += [("requests", "agents", source, target) for source, target in product(SOURCES, SOURCES)]
    rows = [row for row in rows if not chosen or f"{row[2]}-{row[3]}" in chosen or row[0] in chosen or row[1] in chosen]
    numbers: dict[tuple[str, str, str, str], list[int]] = {}
    for work, kind, source, target in rows:
        ours, others = (version.ask("results", kind, source, work, target) for version in versions)
        for n, (one, other) in enumerate(zip(ours, others, strict=True)):
            if one is None or other is None:
                continue
            if work != "check" and target != "bedrock-converse":  # its media were bytes
                wrong = [found for found in check(json.loads(one), target=target) if found.severity == "error"]
                assert not wrong, (work, kind, source, target, n, wrong)
            numbers.setdefault((work, kind if one == other else "changed", source, target), []).append(n)
    best = {row: [float("inf"), float("inf")] for row in numbers}
    for _, row, (at, version) in product(range(turns), numbers, enumerate(versions)):
        work, kind, source, target = row
        kept = "agents" if kind == "changed" else kind
        best[row][at] = min(best[row][at], version.ask("time", kept, source, work, target, numbers[row], rounds))
    for version in versions:
        version.close()
    ratios = {row: ours / other for row, (ours, other) in best.items()}
    for row, ratio in ratios.items():
        work, kind, source, target = row
        name = f"{work} {source}" if work == "check" else f"{work} {source} -> {target}"
        each = best[row][0] / len(numbers[row])
        print(f"{name:45} {kind:12} {each * 1e6:8.0f} us {ratio:6.2f} x")
    for work, kind in product(("convert", "check", "requests"), (*KINDS, "changed")):
        some = {row: ratio for row, ratio in ratios.items() if row[:2] == (work, kind)}
        if some:
            count, all_of_them = len(some), sum(len(numbers[row]) for row in some)
            print(
                f"{work}, {kind}: median {statistics.median(some.values()):.3f}, worst {max(some.values()):.2f}, "
                f"of {count} rows with {all_of_them} histories"
            )
    return statistics.median(ratios.values())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve()
    elif len(sys.argv) > 2 and sys.argv[1] == "--against":
        raise SystemExit(int(compare(Path(sys.argv[2]), sys.argv[3:]) > 1.0))
    else:
        raise SystemExit("usage: python -m benches.test_history --against DIR [WORK | KIND | SOURCE-TARGET ...]")
