"""Every vector of the event stream format, with both backends, fed as given, in one read, and byte by byte."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import pytest

from tests.support.backends import make_frame_reader
from tests.support.harness import bytewise
from tests.support.vector_files import chunks_of, label, load


@pytest.mark.parametrize("way", ["given", "whole", "bytewise"])
@pytest.mark.parametrize("vector", load("sse"), ids=label)
def test_sse_vector(backend: str, vector: dict[str, Any], way: str) -> None:
    reader = make_frame_reader(backend, last_event_id=vector.get("last_event_id", ""))
    chunks = chunks_of(vector)
    if way != "given":
        chunks = [b"".join(chunks)] if way == "whole" else bytewise(b"".join(chunks))
    frames: list[list[Any]] = []
    counts = []
    for chunk in chunks:
        frames += [list(astuple(frame)) for frame in reader.feed(chunk)]
        counts.append(len(frames))
    skipped = vector.get("not_compared", ())
    places = [n for n, key in enumerate(("event", "data", "id", "retry")) if key not in skipped]
    assert [[row[n] for n in places] for row in frames] == [[row[n] for n in places] for row in vector["events"]]
    if way == "given":
        assert counts == vector["events_after_chunk"]
    assert reader.last_event_id == vector["final"]["last_event_id"]
    if "retry" not in skipped:
        assert reader.reconnection_time == vector["final"]["reconnection_time"]


def test_all_cases_are_there() -> None:
    assert len(load("sse")) == 224
