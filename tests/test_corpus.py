"""Every recorded Chat Completions stream, in both backends, whole and in random pieces, against its expected result."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from streamweld.errors import TruncatedStream, UpstreamError

from tests.corpus import Recording, absent, recordings
from tests.generate_noise import random_pieces
from tests.harness import Outcome, difference, read

if TYPE_CHECKING:
    from streamweld.response import Choice, Response

pytestmark = pytest.mark.skipif(absent() is not None, reason=absent() or "")

REVIEWED = json.loads((Path(__file__).parent / "corpus_differences.json").read_text(encoding="utf-8"))["differences"]
streams = pytest.mark.parametrize("recording", recordings(), ids=lambda r: r.name)
_whole: dict[tuple[str, str], Outcome] = {}


def read_whole(backend: str, recording: Recording) -> Outcome:
    key = (backend, recording.name)
    if key not in _whole:
        _whole[key] = read(backend, [recording.body])
    return _whole[key]


def said_of(value: Any) -> Any:
    """A usage object without the members that say nothing: peers fill some in."""
    if isinstance(value, dict):
        members = {key: said_of(member) for key, member in value.items()}
        return {key: member for key, member in members.items() if member is not None and member != {}}
    return value


def within(part: Any, whole: Any) -> bool:
    """Every member of `part` is in `whole`: peers drop usage members that they do not know."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and within(member, whole[key]) for key, member in part.items())
    return bool(part == whole)


def calls_of(holder: Choice | Response, expected: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ours in the form of `expected`; a call whose id peers had to invent is compared without it."""
    rows = [{"id": c.call_id, "name": c.name, "arguments": c.arguments} for c in holder.tool_calls]
    for row, wanted in zip(rows, expected, strict=False):
        if "id" not in wanted:
            del row["id"]
        if "arguments" not in wanted and row["arguments"] == "":
            del row["arguments"]
    return rows


def differing(response: Response, expected: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """field -> (ours, expected) where they differ."""
    ours: dict[str, Any] = {
        "text": response.text,
        "tool_calls": calls_of(response, expected["tool_calls"]),
        "finish_reason": response.raw_finish_reason,
    }
    wanted: dict[str, Any] = {key: expected.get(key) for key in ours}
    for key in ("reasoning", "refusal"):
        if key in expected:
            ours[key], wanted[key] = getattr(response, key), expected[key]
    if said_of(expected.get("usage")):
        usage = response.usage
        raw = said_of(usage.raw if usage else None)
        wanted["usage"] = said_of(expected["usage"])
        ours["usage"] = wanted["usage"] if within(wanted["usage"], raw) else raw
        numbers = ("prompt_tokens", "completion_tokens", "total_tokens")
        wanted["numbers"] = [expected["usage"].get(key) for key in numbers]
        ours["numbers"] = [getattr(usage, k, None) for k in ("input_tokens", "output_tokens", "total_tokens")]
    if "choices" in expected:
        wanted["choices"] = expected["choices"]
        ours["choices"] = [
            {
                "index": choice.index,
                "text": choice.text,
                "finish_reason": choice.raw_finish_reason,
                "tool_calls": calls_of(choice, row["tool_calls"]),
            }
            for choice, row in zip(response.choices, expected["choices"], strict=False)
        ]
    return {key: (value, wanted[key]) for key, value in ours.items() if value != wanted[key]}


@streams
def test_expected_result(backend: str, recording: Recording) -> None:
    found = differing(read_whole(backend, recording).response, recording.expected)
    allowed = set(REVIEWED.get(recording.name, {}).get("fields", ()))
    assert set(found) == allowed, {key: value for key, value in found.items() if key not in allowed} or (
        f"reviewed fields that do not differ: {sorted(allowed - set(found))}"
    )


@streams
def test_what_is_raised(backend: str, recording: Recording) -> None:
    """A broken recording says so; a whole one raises nothing."""
    error = read_whole(backend, recording).error
    body = recording.body
    if "error event in stream" in recording.notes:
        assert type(error) is UpstreamError
    elif b"[DONE]" not in body and "finish_reason" not in {k for k, v in recording.expected.items() if v}:
        assert type(error) is TruncatedStream
    else:
        assert error is None, repr(error)
    if error is not None:
        assert error.partial is not None
        assert not error.partial.dispatchable_calls


@streams
def test_random_pieces(backend: str, recording: Recording) -> None:
    rng = random.Random(recording.name)
    pieces = random_pieces(rng, recording.body)
    other = read(backend, pieces)
    assert difference(read_whole(backend, recording).facts(), other.facts()) is None


@streams
def test_plain_recordings_need_no_repair(backend: str, recording: Recording) -> None:
    """A stream that was stored as it came, with nothing to note about it, shows no diagnostic of severity warning."""
    if not recording.wrapped and not recording.notes:
        loud = [d for d in read_whole(backend, recording).diagnostics if d.severity != "info"]
        assert loud == []


def test_reviewed_differences() -> None:
    by_name = {recording.name: recording for recording in recordings()}
    assert set(REVIEWED) <= set(by_name)
    agreed = [name for name in REVIEWED if by_name[name].confidence == "agreed"]
    assert len(agreed) <= 4
    for name, row in REVIEWED.items():
        assert set(row) == {"fields", "reason"}
        quoted = [part for part in row["reason"].split("`")[1::2] if part]
        assert quoted, f"{name}: the reason quotes no bytes"
        assert any(part.encode() in by_name[name].stream.read_bytes() for part in quoted), name
