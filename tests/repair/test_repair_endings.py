"""Streams that `parse` can read but for which repair makes the client's stream end in an error.

`repair_endings.json` lists them, by reason. The suite compares the list with all recorded streams and all vectors, in
both backends, and fails on any addition or omission.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw

from tests.support.backends import using
from tests.support.corpus import absent, all_recordings, sampled
from tests.support.harness import policy_of, read
from tests.support.vector_files import chunks_of, is_broken, label, streams

if TYPE_CHECKING:
    from collections.abc import Iterator

LIST: dict[str, Any] = json.loads(Path(__file__).with_name("repair_endings.json").read_text("utf-8"))["reasons"]
LISTED = {name for row in LIST.values() for name in row["streams"]}
SHARE = 11  # for pure, test one in this many recordings, unless all are run; listed ones always run
Source = tuple[str, bytes, dict[str, Any], bool]  # name, body, options, whether the transport failed


def recorded(*, full: bool) -> Iterator[Source]:
    rows = list(all_recordings())
    chosen = rows if full else {*sampled(rows, SHARE), *[r for r in rows if f"{r.folder}/{r.name}" in LISTED]}
    for recording in chosen:
        yield f"{recording.folder}/{recording.name}", recording.body, {"dialect": recording.dialect}, False


def written() -> Iterator[Source]:
    for vector in streams():
        yield f"vector:{label(vector)}", b"".join(chunks_of(vector)), vector["options"], is_broken(vector)


def is_readable(backend: str, body: bytes, options: dict[str, Any], *, broken: bool = False) -> bool:
    outcome = read(backend, [body], options, broken=broken)
    response = outcome.response
    return outcome.error is None and response.error is None and response.completeness != "truncated"


def is_ended_by_us(backend: str, source: Source) -> bool:
    """Return True if `parse` can read the stream, but a client of the repaired stream gets an error."""
    _, body, options, broken = source
    if not is_readable(backend, body, options, broken=broken):
        return False
    requested = policy_of({key: value for key, value in options.items() if key not in ("dialect", "content_type")})
    with using(backend):
        converter = sw.StreamConverter(source=options["dialect"], target="same", **requested)
        out = converter.feed(body) + converter.close(broken=broken)
    if converter.error is not None:
        return True
    return converter.repaired and not is_readable(backend, out, {"dialect": converter.dialect or "auto"})


def ended_by_us(backend: str, sources: Iterator[Source]) -> set[str]:
    return {source[0] for source in sources if is_ended_by_us(backend, source)}


@pytest.mark.skipif(absent() is not None, reason=absent() or "")
def test_recorded_streams(backend: str, full: bool) -> None:
    found = ended_by_us(backend, recorded(full=full or backend == "native"))
    assert found == {name for name in LISTED if not name.startswith("vector:")}


def test_vectors(backend: str) -> None:
    assert ended_by_us(backend, written()) == {name for name in LISTED if name.startswith("vector:")}


def test_every_listed_reason_says_why() -> None:
    assert all(row["why"] and row["streams"] for row in LIST.values())
    assert len(LISTED) == sum(len(row["streams"]) for row in LIST.values())
