"""Streams that `parse` can read, but whose conversion ends with an error.

`convert_endings.json` lists them, by reason. The suite compares the list with all recorded streams and all vectors, in
every target, and fails on any addition or omission. `tests/repair/test_repair_endings.py` does the same for repair.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw

from tests.repair.test_repair_endings import Source, is_readable, recorded, written
from tests.support.backends import using
from tests.support.corpus import absent
from tests.support.harness import policy_of
from tests.support.sample import one_of
from tests.support.vector_files import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Iterable

LIST: dict[str, Any] = json.loads(Path(__file__).with_name("convert_endings.json").read_text("utf-8"))["reasons"]
LISTED = {name for row in LIST.values() for name in row["streams"]}
SHARE = 8  # a usual run tests one stream in this many, and all listed ones


def errors(backend: str, source: Source) -> list[sw.StreamError]:
    """Return the errors in which the conversions of a readable stream end."""
    _, body, options, broken = source
    if not is_readable(backend, body, options, broken=broken):
        return []
    requested = policy_of({key: value for key, value in options.items() if key not in ("dialect", "content_type")})
    found: list[sw.StreamError] = []
    with using(backend):
        for target in DIALECTS:
            converter = sw.StreamConverter(source=options["dialect"], target=target, **requested)
            converter.feed(body)
            converter.close(broken=broken)
            if converter.error is not None:
                found.append(converter.error)
    return found


def ended_by_us(backend: str, sources: Iterable[Source], *, full: bool) -> set[str]:
    rows = list(sources)
    names = LISTED.union([name for name, *_ in rows] if full else one_of(SHARE, [name for name, *_ in rows]))
    return {source[0] for source in rows if source[0] in names and errors(backend, source)}


@pytest.mark.skipif(absent() is not None, reason=absent() or "")
def test_recorded_streams(backend: str, full: bool) -> None:
    found = ended_by_us(backend, recorded(full=full), full=full and backend == "native")
    assert found == {name for name in LISTED if not name.startswith("vector:")}


def test_vectors(backend: str, full: bool) -> None:
    found = ended_by_us(backend, written(), full=full)
    assert found == {name for name in LISTED if name.startswith("vector:")}


def test_every_listed_reason_says_why() -> None:
    assert all(row["why"] and row["streams"] for row in LIST.values())
    assert len(LISTED) == sum(len(row["streams"]) for row in LIST.values())
