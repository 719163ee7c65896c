"""Chunking never matters: every split of every stream gives the same events, diagnostics, exception and response.

Nightly (STREAMWELD_NIGHTLY=1): every single split of every vector and recorded stream up to 16 KiB, with the native
backend (for recordings, the response at every eighth split); a sample with the pure backend; two splits of the short
vectors at 3,000 places each. Full counts (STREAMWELD_FULL=1): 60 splits of each stream and 300 of each vector.
Otherwise a fixed sample.
"""

from __future__ import annotations

import random
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import NIGHTLY
from tests.support.corpus import Recording, absent, all_recordings
from tests.support.harness import bytewise, cut_at, difference, read
from tests.support.parallel import spread
from tests.support.vector_files import chunks_of, label, streams

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST = 16 * 1024
SHORT = 300
AUTO: dict[str, Any] = {"dialect": "auto"}
recorded = pytest.mark.skipif(absent() is not None, reason=absent() or "")
Job = tuple[str, str, "int | None"]  # backend, name of a recording, number of splits (None: all)


def first_difference(
    backend: str, body: bytes, options: dict[str, Any], cuts: Iterable[tuple[int, ...]], every: int = 1
) -> str | None:
    """Describe the first difference. The response, which takes as long to build as the events, is compared at one split
    of `every`."""
    uncut = read(backend, [body], options)
    all_of_it, but_response = uncut.facts(), uncut.told()
    for n, places in enumerate(cuts):
        cut = read(backend, cut_at(body, *places), options)
        found = difference(but_response, cut.told()) if n % every else difference(all_of_it, cut.facts())
        if found:
            return f"cut at {places}: {found}"
    return None


def sample_of(rng: random.Random, size: int, count: int | None) -> list[tuple[int, ...]]:
    places = range(1, size)
    chosen = places if count is None else sorted(rng.sample(places, min(count, len(places))))
    return [(place,) for place in chosen]


def try_recording(job: Job) -> str | None:
    backend, name, count = job
    body = by_name()[name].body
    every = 8 if count is None else 1
    found = first_difference(backend, body, AUTO, sample_of(random.Random(name), len(body), count), every)
    return found and f"{backend} {name}: {found}"


def by_name() -> dict[str, Recording]:
    return {f"{r.folder}/{r.name}": r for r in all_recordings() if r.size <= LONGEST}


@recorded
@pytest.mark.timeout(2400)
def test_every_single_cut(backend: str, full: bool) -> None:
    count = (None if NIGHTLY else 60 if full else 6) if backend == "native" else (40 if NIGHTLY else 8 if full else 2)
    jobs = [(backend, name, count) for name in by_name()]
    for _, name, _ in jobs:
        by_name()[name].body  # noqa: B018 (counted here, because the work may be done in another process)
    assert [found for found in spread(try_recording, jobs, alone=not full) if found] == []


@recorded
def test_byte_by_byte(backend: str, full: bool) -> None:
    longest = LONGEST if NIGHTLY or (full and backend == "native") else 4096 if full else 1500
    for name, recording in by_name().items():
        if recording.size <= longest:
            body = recording.body
            whole = read(backend, [body], AUTO).facts()
            assert difference(whole, read(backend, bytewise(body), AUTO).facts()) is None, name


def short_vectors() -> list[dict[str, Any]]:
    return [v for v in streams() if 0 < len(b"".join(chunks_of(v))) <= SHORT]


@pytest.mark.parametrize("vector", short_vectors(), ids=label)
def test_pairs_of_cuts(backend: str, full: bool, vector: dict[str, Any]) -> None:
    body = b"".join(chunks_of(vector))
    pairs = list(combinations(range(1, len(body)), 2))
    count = (3000 if NIGHTLY else 600 if full else 60) if backend == "native" else (60 if full else 15)
    chosen = random.Random(vector["name"]).sample(pairs, min(count, len(pairs)))
    assert first_difference(backend, body, vector.get("options", {}), chosen) is None


@pytest.mark.parametrize("vector", streams(), ids=label)
def test_single_cuts_of_vectors(backend: str, full: bool, vector: dict[str, Any]) -> None:
    body = b"".join(chunks_of(vector))
    if backend == "native":
        count = None if NIGHTLY and len(body) <= LONGEST else 300 if full else 12
    else:
        count = 40 if NIGHTLY else 15 if full else 4
    cuts = sample_of(random.Random(vector["name"]), len(body), count)
    assert first_difference(backend, body, vector.get("options", {}), cuts) is None


PADDING = b":" + b"x" * 5000 + b"\n\n"


def takes_a_comment(vector: dict[str, Any]) -> bool:
    """Return whether a comment may be added before the body.

    Limits count it, and it turns plain text into a stream. Joined lines are found only in the first bytes of a body.
    """
    body = b"".join(chunks_of(vector))
    expected = vector.get("expect", {}).get("error")
    rule = expected.get("rule") if isinstance(expected, dict) else expected
    in_head = rule == "not_an_event_stream" or (rule == "line_ends_missing" and expected.get("detail") == "")
    plain = body.startswith(b"\xef\xbb\xbf") or body.lstrip()[:1] in (b"{", b"[")
    return "limits" not in vector.get("options", {}) and not plain and not in_head


@pytest.mark.parametrize("vector", [vector for vector in streams() if takes_a_comment(vector)], ids=label)
def test_long_reads_give_the_events_of_short_ones(backend: str, vector: dict[str, Any]) -> None:
    """The native backend parses long reads without the interpreter, and builds the events afterwards."""
    body = b"".join(chunks_of(vector))
    options = vector.get("options", {})
    assert placeless(backend, PADDING + body, options) == placeless(backend, body, options)


def placeless(backend: str, body: bytes, options: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of one read without their places, and the exception."""
    outcome = read(backend, [body], options)
    events = [event.to_dict() for event in outcome.events]
    for event in events:
        event.pop("byte_offset", None)
    return [*events, {"error": type(outcome.error), "rule": getattr(outcome.error, "rule", None)}]


def test_empty_reads_change_nothing(backend: str) -> None:
    for vector in streams():
        body = b"".join(chunks_of(vector))
        options = vector.get("options", {})
        pieces = [b"", *[p for byte in bytewise(body[:200]) for p in (byte, b"")], body[200:], b""]
        assert difference(read(backend, [body], options).facts(), read(backend, pieces, options).facts()) is None


def test_every_buffer_kind(backend: str) -> None:
    for vector in streams()[:40]:
        body = b"".join(chunks_of(vector))
        options = vector.get("options", {})
        whole = read(backend, [body], options).facts()
        for kind in (bytearray, memoryview):
            assert difference(whole, read(backend, [kind(body)], options).facts()) is None
