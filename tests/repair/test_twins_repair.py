"""Both backends repair identically: bytes, diagnostics and losses with their positions, error, response, changes.

Full counts (STREAMWELD_FULL=1): 3,600 generated streams (nightly: 10,800), every recording. A difference is shrunk and
printed.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw

from tests.conftest import NIGHTLY
from tests.convert.test_twins_convert import TARGETS, convert_case
from tests.support.backends import using
from tests.support.corpus import Recording, absent, all_recordings, sampled
from tests.support.generate.noise import random_pieces
from tests.support.harness import difference, policy_of
from tests.support.parallel import spread
from tests.support.twin_diff import kind_of, shrink
from tests.support.vector_files import DIALECTS, chunks_of, label, load

if TYPE_CHECKING:
    from collections.abc import Iterable

RECORDINGS = sampled([recording for recording in all_recordings() if recording.dialect in TARGETS], 4)
VECTORS = [(vector["file"], vector) for vector in load("repair")]
VECTORS += [(dialect, vector) for dialect in DIALECTS for vector in load(dialect)]
BLOCK = 300
Row = tuple[tuple[int, str], str]  # number and dialect of a stream, and the difference


@pytest.fixture(autouse=True)
def both(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--no-native"):
        pytest.skip("--no-native: there is nothing to compare with")


def facts_of(backend: str, pieces: Iterable[bytes], options: dict[str, Any]) -> dict[str, Any]:
    """Return all results of a repair as comparable data."""
    with using(backend):
        converter = sw.StreamConverter(target="same", **{"seed": "s", **policy_of(options)})
        out = [(converter.feed(piece), converter.repaired, converter.is_over) for piece in pieces]
    end = converter.close()
    error = converter.error
    return {
        "bytes of each call": out,
        "end": end,
        "repaired": converter.repaired,
        "diagnostics": converter.diagnostics,
        "dropped": converter.response.diagnostics_dropped,
        "error": None if error is None else error.to_dict(include_raw=True) | {"str": str(error)},
        "response": converter.response,
        "dialect": converter.dialect,
        "later": converter.close(),
    }


def twin_difference(body: bytes, options: dict[str, Any], way: int = 0) -> str | None:
    """Describe the difference between native and pure. `way`: 0 feeds all at once; other values, random pieces."""
    pieces = random_pieces(random.Random(way), body) if way else [body]
    native, pure = (facts_of(backend, pieces, options) for backend in ("native", "pure"))
    return difference(native, pure)


def scan(job: tuple[int, int, str]) -> list[Row]:
    """Return ((seed, dialect), difference) of `count` streams from `first`."""
    first, count, dialect = job
    rows: list[Row] = []
    for seed in range(first, first + count):
        body, options = convert_case(seed, dialect, "same")
        found = twin_difference(body, options, seed % 3)
        if found:
            rows.append(((seed, dialect), found))
    return rows


def report(rows: list[Row], most: int = 5) -> str:
    """Return the differences grouped by kind, each with one shrunk reproducer."""
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        kinds.setdefault(f"{row[0][1]}: {kind_of(row[1])}", []).append(row)
    lines = [f"{len(rows)} streams differ, in {len(kinds)} ways"]
    for group in sorted(kinds.values(), key=len, reverse=True)[:most]:
        (seed, dialect), found = group[0]
        body, options = convert_case(seed, dialect, "same")

        def same(body: bytes, options: dict[str, Any], way: int = seed % 3, kind: str = kind_of(found)) -> bool:
            shown = twin_difference(body, options, way)
            return shown is not None and kind_of(shown) == kind

        small, fewer = shrink(body, options, same)
        shown = twin_difference(small, fewer, seed % 3)
        lines.append(f"\n{len(group)} x {dialect}, first seed {seed}: {shown}")
        lines.append(f"  options {fewer}, way {seed % 3}\n  body {small!r}")
    return "\n".join(lines)


@pytest.mark.timeout(3600)
def test_generated_streams(full: bool) -> None:
    count = 1800 if NIGHTLY else 600 if full else 60
    jobs = [(first, min(BLOCK, count - first), dialect) for dialect in TARGETS for first in range(0, count, BLOCK)]
    rows = [row for found in spread(scan, jobs, alone=not full) for row in found]
    assert not rows, report(rows)


@pytest.mark.parametrize(("dialect", "vector"), VECTORS, ids=[f"{d}-{label(v)}" for d, v in VECTORS])
def test_vectors(dialect: str, vector: dict[str, Any]) -> None:
    body = b"".join(chunks_of(vector))
    options = {"source": dialect, "seed": "vec"}
    for base in ("strict", "standard", "salvage"):
        for cut in (len(body), len(body) * 2 // 3):
            assert twin_difference(body[:cut], options | {"policy": base}) is None


@pytest.mark.skipif(absent() is not None, reason=absent() or "")
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: f"{r.folder}-{r.name}")
def test_recorded_streams(full: bool, recording: Recording) -> None:
    rng = random.Random(recording.name)
    body = recording.body
    options = {"source": rng.choice(("auto", recording.dialect)), "seed": "s"}
    assert twin_difference(body, options) is None
    assert twin_difference(body, options, rng.randrange(1, 10**6)) is None
    for _ in range(4 if full else 1):
        cut = body[: rng.randrange(len(body) + 1)]
        assert twin_difference(cut, options, rng.randrange(1, 10**6)) is None, len(cut)
