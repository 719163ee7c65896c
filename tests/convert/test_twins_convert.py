"""Both backends convert identically: bytes, losses and other diagnostics with their positions, error, response,
dialect.

Full counts (STREAMWELD_FULL=1): 18,000 generated streams (nightly: 51,000), spread over sources and targets. A
difference is shrunk and printed.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw

from tests.conftest import NIGHTLY
from tests.support.backends import using
from tests.support.corpus import Recording, absent, all_recordings, sampled
from tests.support.generate.noise import corrupt, random_pieces
from tests.support.harness import difference, policy_of
from tests.support.parallel import spread
from tests.support.twin_diff import SOURCES, kind_of, random_case, shrink
from tests.support.vector_files import chunks_of, label, load

if TYPE_CHECKING:
    from collections.abc import Iterable

TARGETS = ("chat", "responses", "anthropic", "gemini", "ai-sdk-parts", "ai-sdk-ui")
PAIRS = [(source, target) for source in ("chat", *SOURCES) for target in TARGETS if source != target]
RECORDINGS = sampled([recording for recording in all_recordings() if recording.dialect in TARGETS], 4)
BLOCK = 300
Row = tuple[tuple[int, str, str], str]  # number, source and target of a stream, and the difference


@pytest.fixture(autouse=True)
def both(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--no-native"):
        pytest.skip("--no-native: there is nothing to compare with")


def facts_of(backend: str, pieces: Iterable[bytes], target: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return all results of a conversion as comparable data, including an exception."""
    with using(backend):
        converter = sw.StreamConverter(target=target, **policy_of(options))
    out: list[bytes] = []
    refused = None
    try:
        out += [converter.feed(piece) for piece in pieces]
        out.append(converter.close())
    except sw.UsageError as exc:
        refused = str(exc)
    error = converter.error
    return {
        "bytes of each call": out,
        "diagnostics": converter.diagnostics,
        "dropped": converter.response.diagnostics_dropped,
        "error": None if error is None else error.to_dict(include_raw=True) | {"str": str(error)},
        "response": converter.response,
        "dialect": converter.dialect,
        "refused": refused,
        "later": b"" if refused else converter.close(),
    }


def twin_difference(body: bytes, target: str, options: dict[str, Any], way: int = 0) -> str | None:
    """Describe the difference between native and pure. `way`: 0 feeds all at once; other values, random pieces."""
    pieces = random_pieces(random.Random(way), body) if way else [body]
    native, pure = (facts_of(backend, pieces, target, options) for backend in ("native", "pure"))
    return difference(native, pure)


def convert_case(seed: int, source: str, target: str) -> tuple[bytes, dict[str, Any]]:
    """Return stream number `seed` from one dialect to another, sometimes truncated or corrupted: (body, options)."""
    body, given = random_case(seed, source)
    rng = random.Random(f"{seed} {source} {target}")
    options: dict[str, Any] = {"source": given.pop("dialect", source), "seed": "s", **given}
    if rng.random() < 0.1:
        options["source"] = "auto"
    if rng.random() < 0.2:
        options["hold_arguments"] = True
    if rng.random() < 0.1:
        options["include_usage"] = False
    if rng.random() < 0.2:
        options["reasoning_events"] = "openresponses"
    if rng.random() < 0.3:
        options["carry_reasoning"] = True
    if rng.random() < 0.06:
        policy: dict[str, Any] = options.get("policy", {})
        code = "rewritten" if target == "same" and seed % 2 else "not_carried"
        options["policy"] = policy | {"actions": policy.get("actions", {}) | {code: "raise"}}
    if rng.random() < 0.15:
        body = body[: rng.randrange(len(body) + 1)]
    if rng.random() < 0.1:
        body = corrupt(rng, body)
    return body, options


def scan(job: tuple[int, int, str, str]) -> list[Row]:
    """Return ((seed, source, target), difference) of `count` streams from `first`."""
    first, count, source, target = job
    rows: list[Row] = []
    for seed in range(first, first + count):
        body, options = convert_case(seed, source, target)
        found = twin_difference(body, target, options, seed % 3)
        if found:
            rows.append(((seed, source, target), found))
    return rows


def report(rows: list[Row], most: int = 5) -> str:
    """Return the differences grouped by kind, each with one shrunk reproducer."""
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        kinds.setdefault(f"{row[0][2]}: {kind_of(row[1])}", []).append(row)
    lines = [f"{len(rows)} streams differ, in {len(kinds)} ways"]
    for group in sorted(kinds.values(), key=len, reverse=True)[:most]:
        (seed, source, target), found = group[0]
        body, options = convert_case(seed, source, target)

        def same(
            body: bytes, options: dict[str, Any], target: str = target, way: int = seed % 3, kind: str = kind_of(found)
        ) -> bool:
            shown = twin_difference(body, target, options, way)
            return shown is not None and kind_of(shown) == kind

        small, fewer = shrink(body, options, same)
        shown = twin_difference(small, target, fewer, seed % 3)
        lines.append(f"\n{len(group)} x {source} -> {target}, first seed {seed}: {shown}")
        lines.append(f"  options {fewer}, way {seed % 3}\n  body {small!r}")
    return "\n".join(lines)


@pytest.mark.timeout(3600)
def test_generated_streams(full: bool) -> None:
    count = 1700 if NIGHTLY else 600 if full else 25
    jobs = [
        (first, min(BLOCK, count - first), source, target)
        for source, target in PAIRS
        for first in range(0, count, BLOCK)
    ]
    rows = [row for found in spread(scan, jobs, alone=not full) for row in found]
    assert not rows, report(rows)


@pytest.mark.parametrize("vector", load("convert"), ids=label)
def test_vectors(vector: dict[str, Any]) -> None:
    body = b"".join(chunks_of(vector))
    options = {"source": vector["source"], "seed": "vec", **vector.get("options", {})}
    for base in ("strict", "standard", "salvage"):
        for cut in (len(body), len(body) * 2 // 3):
            assert twin_difference(body[:cut], vector["target"], options | {"policy": base}) is None


@pytest.mark.skipif(absent() is not None, reason=absent() or "")
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: f"{r.folder}-{r.name}")
def test_recorded_streams(full: bool, recording: Recording) -> None:
    rng = random.Random(recording.name)
    body = recording.body
    targets = [target for target in TARGETS if target != recording.dialect]
    for target in targets if full else rng.sample(targets, 2):
        options = {"source": rng.choice(("auto", recording.dialect)), "seed": "s"}
        assert twin_difference(body, target, options) is None, target
        assert twin_difference(body, target, options, rng.randrange(1, 10**6)) is None, target
        for _ in range(2 if full else 1):
            cut = body[: rng.randrange(len(body) + 1)]
            assert twin_difference(cut, target, options, rng.randrange(1, 10**6)) is None, (target, len(cut))
