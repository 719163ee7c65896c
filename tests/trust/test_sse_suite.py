"""Decisions in cases for which the event stream format allows a choice, on the 224 cases in
../shared/data/sse_cases.json.

The cases themselves run in test_sse_vectors. This module checks that every case that is implementation-defined or ends
early has a decision in sse_decisions.json, that both backends follow it, and that the stream parser does not drop data
silently.
"""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.backends import make_frame_reader
from tests.support.harness import read
from tests.support.places import SHARED

if TYPE_CHECKING:
    from collections.abc import Callable

CASES = SHARED / "data" / "sse_cases.json"
RULES = json.loads(Path(__file__).with_name("sse_decisions.json").read_text(encoding="utf-8"))["decisions"]
DROPPED, IGNORED = RULES.values()
CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}'

pytestmark = pytest.mark.skipif(not CASES.is_file(), reason=f"no SSE cases at {CASES} (set STREAMWELD_SHARED)")


@cache
def open_cases() -> dict[str, dict[str, Any]]:
    """Return the cases that are implementation-defined, or that a lenient reader may interpret differently."""
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    return {case["name"]: case for case in cases if case.get("impl_defined") or case.get("lenient_eof_events")}


def test_every_open_case_has_a_decision() -> None:
    assert sorted([*DROPPED, *IGNORED]) == sorted(open_cases())


@pytest.mark.parametrize("name", DROPPED)
def test_an_unfinished_event_is_dropped_by_the_frame_reader(backend: str, name: str) -> None:
    case = open_cases()[name]
    reader = make_frame_reader(backend, last_event_id=case.get("initial_last_event_id", ""))
    frames = [frame for chunk in case["chunks"] for frame in reader.feed(base64.b64decode(chunk))]
    assert [frame.data for frame in frames] == [event["data"] for event in case["events"]]
    assert reader.last_event_id == case["final"]["last_event_id"]


@pytest.mark.parametrize("name", IGNORED)
def test_a_retry_that_is_too_large_is_ignored(backend: str, name: str) -> None:
    case = open_cases()[name]
    reader = make_frame_reader(backend)
    frames = [frame for chunk in case["chunks"] for frame in reader.feed(base64.b64decode(chunk))]
    assert [(frame.data, frame.retry) for frame in frames] == [(event["data"], None) for event in case["events"]]
    assert reader.reconnection_time is None


@pytest.mark.parametrize("end", [b"", b"\n", b"\r", b"\r\n"], ids=["nothing", "lf", "cr", "crlf"])
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "cut"])
def test_the_stream_parser_reads_or_reports_an_unfinished_event(backend: str, end: bytes, whole: bool) -> None:
    """A complete payload without its blank line is used; a truncated payload causes an error."""
    outcome = read(backend, [CHUNK if whole else CHUNK[:-1], end], {"dialect": "chat"})
    if whole:
        assert (outcome.error, outcome.response.text) == (None, "x")
    else:
        assert outcome.error is not None
        assert outcome.error.rule == "truncated"


def test_figures(backend: str, figure: Callable[[str, str], None]) -> None:
    figure(f"SSE cases left open, {backend}", f"{len(open_cases())} of {len(DROPPED) + len(IGNORED)} decided")
    assert len(open_cases()) == 13
