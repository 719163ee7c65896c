"""Every recorded stream of the six dialects, with both backends, fed at once and in pieces, compared with its expected
result.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from streamweld.errors import ChunkDecodeError, TruncatedStream, UpstreamError

from tests.support.corpus import FOLDERS, Recording, absent, all_recordings, recordings
from tests.support.generate.noise import random_pieces
from tests.support.harness import Outcome, difference, read
from tests.support.recorded import differing

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.skipif(absent() is not None, reason=absent() or "")

_FILE = Path(__file__).parent / "corpus_differences.json"
REVIEWED: Mapping[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))["differences"]
# The number of streams that may differ although independent readers agree on them.
AGREED = {"chat": 4, "responses": 8, "anthropic": 8, "gemini": 8}
streams = pytest.mark.parametrize("recording", all_recordings(), ids=lambda r: f"{r.folder}-{r.name}")
_whole: dict[tuple[str, str], Outcome] = {}


def read_whole(backend: str, recording: Recording) -> Outcome:
    key = (backend, f"{recording.folder}/{recording.name}")
    if key not in _whole:
        _whole[key] = read(backend, [recording.body], {"dialect": "auto"})
    return _whole[key]


@streams
def test_expected_result(backend: str, recording: Recording) -> None:
    outcome = read_whole(backend, recording)
    found = differing(recording.dialect, outcome.response, recording.expected)
    allowed = set(REVIEWED[recording.folder].get(recording.name, {}).get("fields", ()))
    if "dialect" not in allowed:
        assert outcome.dialect == recording.dialect
    else:
        allowed.remove("dialect")
        assert outcome.dialect != recording.dialect
    assert set(found) == allowed, {key: value for key, value in found.items() if key not in allowed} or (
        f"reviewed fields that do not differ: {sorted(allowed - set(found))}"
    )


@streams
def test_what_is_raised(backend: str, recording: Recording) -> None:
    """A broken recording raises an error; a complete one does not."""
    error = read_whole(backend, recording).error
    notes = " ".join(recording.notes)
    if "error event in stream" in notes or "error chunk" in notes:
        assert type(error) is UpstreamError
    elif "dialect" in REVIEWED[recording.folder].get(recording.name, {}).get("fields", ()):
        assert type(error) is ChunkDecodeError
    elif is_cut(recording):
        assert type(error) is TruncatedStream
    else:
        assert error is None, repr(error)
    if error is not None:
        assert error.partial is not None
        if recording.folder in ("chat", "gemini"):
            assert not error.partial.dispatchable_calls


def is_cut(recording: Recording) -> bool:
    """Return True if a recording ends before its response does, according to the bytes and the results of other
    readers.
    """
    if recording.folder == "chat":
        finished = "finish_reason" in {key for key, value in recording.expected.items() if value}
        return b"[DONE]" not in recording.body and not finished
    return recording.folder == "gemini" and not (
        b'"finishReason"' in recording.body or b'"blockReason"' in recording.body
    )


@streams
def test_random_pieces(backend: str, recording: Recording) -> None:
    rng = random.Random(recording.name)
    pieces = random_pieces(rng, recording.body)
    other = read(backend, pieces, {"dialect": "auto"})
    assert difference(read_whole(backend, recording).facts(), other.facts()) is None


@streams
def test_plain_recordings_need_no_repair(backend: str, recording: Recording) -> None:
    """A stream that was stored unchanged and has no known anomaly causes no diagnostic of severity warning."""
    if not recording.wrapped and not recording.notes:
        loud = [d for d in read_whole(backend, recording).diagnostics if d.severity != "info"]
        assert loud == []


def test_reviewed_differences() -> None:
    assert set(REVIEWED) == set(FOLDERS)
    of_recorded: list[str] = []
    for folder, reviewed in REVIEWED.items():
        by_name = {recording.name: recording for recording in recordings(folder)}
        assert set(reviewed) <= set(by_name)
        agreed = [name for name in reviewed if by_name[name].confidence == "agreed"]
        assert len(agreed) <= AGREED.get(folder, 0)
        of_recorded += agreed if folder != "chat" else []
        for name, row in reviewed.items():
            assert set(row) == {"fields", "reason"}
            quoted = [part for part in row["reason"].split("`")[1::2] if part]
            assert quoted, f"{name}: the reason quotes no bytes"
            assert any(part.encode() in by_name[name].stream.read_bytes() for part in quoted), name
    assert len(of_recorded) <= 8
