"""Search for streams that streamweld reads wrongly: random parts, random chains of operators, known expected results.

    python -m tests.testing.hunt --count 100000 --state build/hunt.json

A seed always gives the same stream. The state file keeps the next seed, the counts and one minimal stream for each kind
of disagreement, so that a run continues where the last one stopped. A stream with an ambiguous operator may have
another result if a diagnostic reports it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from streamweld.errors import StreamError
from streamweld.testing.builders import build, random_parts
from streamweld.testing.compare import differences
from streamweld.testing.mutate import OPERATORS, random_chain
from streamweld.testing.stream import Call, Dialect, Text

from tests.support.backends import make_parser
from tests.support.harness import policy_of

if TYPE_CHECKING:
    from streamweld.testing.stream import Part, Stream

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)


@dataclass(frozen=True)
class Recipe:
    """The parts and operators from which a stream is built. Operators that do not apply are skipped."""

    dialect: Dialect
    parts: tuple[Part, ...]
    operators: tuple[str, ...]
    seed: int

    def stream(self) -> Stream:
        made = build(self.dialect, self.parts, seed=self.seed if self.seed % 4 else None)
        for name in sorted(self.operators, key=_rank):
            made = OPERATORS[name](made, self.seed) or made
        return made


def _rank(name: str) -> int:
    from streamweld.testing.mutate import ASPECTS

    return ASPECTS.index(OPERATORS[name].aspect)


def recipe(seed: int) -> Recipe:
    """Return recipe number `seed`. The dialects alternate; half of the recipes are for Chat Completions, because most
    operators are for it.
    """
    dialect: Dialect = "chat" if seed % 2 else DIALECTS[1 + seed // 2 % 5]
    return Recipe(dialect, tuple(random_parts(dialect, seed)), random_chain(dialect, seed), seed)


def wrong(stream: Stream, backend: str) -> list[str]:
    """Return how a backend misreads the stream, including a crash."""
    parser = make_parser(backend, **policy_of({"dialect": stream.dialect} | dict(stream.options)))
    error: StreamError | None = None
    try:
        for piece in stream.chunks:
            parser.feed(piece)
        parser.close()
    except StreamError as raised:
        error = raised
    except Exception as crash:  # noqa: BLE001 (any crash is reported as a disagreement)
        return [f"crash: {type(crash).__name__}: {crash}"]
    found = differences(stream.expected, parser.response, error)
    certain = all(OPERATORS[name].certain for name in stream.operators)
    reported = any(d.severity != "info" or d.code.startswith("ambiguous_") for d in parser.diagnostics)
    return [] if found and not certain and reported else found


def kind(found: list[str]) -> str:
    return found[0].split(":")[0] if found else ""


def minimal(start: Recipe, backend: str) -> Recipe:
    """Return a smaller recipe that is misread in the same way: fewer operators, fewer parts, shorter texts and
    arguments."""
    how = kind(wrong(start.stream(), backend))

    def still(candidate: Recipe) -> bool:
        return bool(candidate.parts) and kind(wrong(candidate.stream(), backend)) == how

    best = replace(start, operators=start.stream().operators)
    again = True
    while again:
        again = False
        for candidate in _smaller(best):
            if still(candidate):
                best, again = replace(candidate, operators=candidate.stream().operators), True
                break
    return best


def _smaller(given: Recipe) -> list[Recipe]:
    out = [replace(given, operators=tuple(o for o in given.operators if o != name)) for name in given.operators]
    for at, part in enumerate(given.parts):
        out.append(replace(given, parts=given.parts[:at] + given.parts[at + 1 :]))
        simple: list[Part] = []
        if isinstance(part, Call):
            simple += [replace(part, name="f")] if part.name != "f" else []
            simple += [replace(part, arguments=f'{{"q":{at}}}')] if len(part.arguments) > 7 else []
        elif len(part.text) > 2:
            simple.append(replace(part, text="ok"))
            if not isinstance(part, Text):
                simple.append(replace(part, text=part.text[: len(part.text) // 2]))
        out += [replace(given, parts=(*given.parts[:at], each, *given.parts[at + 1 :])) for each in simple]
    if given.seed % 4:
        out.append(replace(given, seed=0))
    return out


@dataclass
class State:
    """The progress of a search: for each class of findings, its count and a minimal stream of its first finding."""

    backend: str
    next: int = 0
    streams: int = 0
    disagreements: int = 0
    classes: dict[str, dict[str, Any]] | None = None

    def found(self) -> dict[str, dict[str, Any]]:
        if self.classes is None:
            self.classes = {}
        return self.classes


def hunt(state: State, count: int, *, seconds: float = float("inf")) -> None:
    """Read the next `count` streams, or as many as possible in the given time."""
    known: dict[tuple[Any, ...], str] = {}
    until = time.monotonic() + seconds
    for seed in range(state.next, state.next + count):
        if time.monotonic() > until:
            break
        made = recipe(seed)
        stream = made.stream()
        found = wrong(stream, state.backend)
        state.next, state.streams = seed + 1, state.streams + 1
        if not found:
            continue
        state.disagreements += 1
        key = (made.dialect, tuple(sorted(stream.operators)), kind(found))
        if key not in known:
            small = minimal(made, state.backend)
            known[key] = f"{small.dialect} {'+'.join(sorted(small.operators)) or 'conformant'} {kind(found)}"
            if known[key] not in state.found():
                shown = small.stream()
                state.found()[known[key]] = {
                    "count": 0,
                    "seed": seed,
                    "parts": [f"{type(p).__name__}{tuple(asdict(p).values())}" for p in small.parts],
                    "found": wrong(shown, state.backend)[0],
                    "body": shown.body.decode("utf-8", "replace"),
                }
        state.found()[known[key]]["count"] += 1


def report(state: State) -> str:
    lines = [f"{state.backend}: {state.streams} streams, {state.disagreements} misread, {len(state.found())} classes"]
    for name, row in sorted(state.found().items(), key=lambda item: -item[1]["count"]):
        lines += ["", f"{row['count']} x {name} (seed {row['seed']})", f"  {row['parts']}", f"  {row['found']}"]
        lines += ["  | " + line for line in row["body"].split("\n") if line]
    return "\n".join(lines)


def by_operator(state: State) -> Counter[str]:
    out: Counter[str] = Counter()
    for name, row in state.found().items():
        out[name.split(" ")[1]] += row["count"]
    return out


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.testing.hunt", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="how many more streams")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long at most")
    parser.add_argument("--backend", choices=("native", "pure"), default="native")
    parser.add_argument("--state", type=Path, help="continue from this file, and keep the state in it")
    chosen = parser.parse_args(arguments)
    state = State(chosen.backend)
    if chosen.state is not None and chosen.state.exists():
        state = State(**json.loads(chosen.state.read_text("utf-8")))
        if state.backend != chosen.backend:
            parser.error(f"{chosen.state} is of the backend {state.backend}")
    started = time.monotonic()
    left = chosen.count
    while left > 0 and time.monotonic() - started < chosen.seconds:
        before = state.streams
        hunt(state, min(left, 10_000), seconds=chosen.seconds - (time.monotonic() - started))
        left -= state.streams - before
        if chosen.state is not None:
            chosen.state.parent.mkdir(parents=True, exist_ok=True)
            chosen.state.write_text(json.dumps(asdict(state), indent=1, ensure_ascii=False), "utf-8")
    print(report(state))
    print(f"\n{time.monotonic() - started:.1f} s", file=sys.stderr)
    return 1 if state.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
