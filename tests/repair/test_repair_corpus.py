"""Repair of every recorded stream and every vector: valid streams pass through unchanged, and repair is idempotent.

`repair_rewrites.json` lists the recorded streams that are rewritten, by reason; it was reviewed by hand.
"""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
import streamweld as sw
from streamweld._spec import CODES
from streamweld.errors import StreamError, UpstreamError

from tests.conftest import FULL
from tests.convert.test_convert_matrix import read
from tests.support import corpus
from tests.support.backends import using
from tests.support.harness import policy_of
from tests.support.sample import one_of
from tests.support.vector_files import chunks_of, label, streams

if TYPE_CHECKING:
    from tests.support.corpus import Recording

REWRITES: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("repair_rewrites.json").read_text("utf-8"))
REWRITTEN = {name: reason for reason, row in REWRITES["reasons"].items() for name in row["streams"]}
SAMPLE = 42
SHARE = 23  # test one in this many vectors, unless all are run
CUT_STREAMS = 12
CUT_SHARE = 7 if FULL else 97
CUT_SIZE = 2_500
# Diagnostics that remain after repair: `conflict`, because the text was written before it was detected and the dialect
# cannot retract it; `late_delta`, if a call was closed without arguments before its arguments arrived.
STAYS = {"conflict", "late_delta"}
# Rules about blocks. Official Messages clients have one open block, and address it by its position among all blocks.
BLOCKS = {f"anthropic.{rule}" for rule in ("block_open", "block_unstopped", "index", "delta_unknown", "stop_unknown")}

Repaired: TypeAlias = tuple[bytes, sw.StreamConverter]


def repair(body: bytes, dialect: Any, *places: int, **options: Any) -> Repaired:
    converter = sw.StreamConverter(target="same", source=dialect, **{"seed": "r", **policy_of(options)})
    cuts = [0, *places, len(body)]
    return b"".join([converter.feed(body[a:b]) for a, b in pairwise(cuts)]) + converter.close(), converter


def sample() -> list[Recording]:
    picked: list[Recording] = []
    for folder in corpus.FOLDERS:
        rows = corpus.recordings(folder)
        step = 1 if FULL else max(1, len(rows) * len(corpus.FOLDERS) // SAMPLE)
        picked += rows[::step]
    return picked


def said(response: sw.Response) -> list[Any]:
    """Return the final result for a reader. A call without a name is ignored, empty arguments may be written as {}, and
    an overflow remains in the arguments.
    """
    return [
        (
            choice.index,
            choice.text,
            choice.reasoning,
            choice.refusal,
            sorted((c.call_id, c.name, written(c) or "{}") for c in choice.tool_calls if c.name),
        )
        for choice in response.choices
    ]


def written(call: sw.ToolCall) -> str | None:
    return call.raw_arguments if call.reason == "overflow" else call.arguments


def reason_written(choice: sw.Choice, dialect: str) -> str | None:
    """Return the finish reason that repair writes.

    A reason must not make a client run an incomplete call, so it is written as a truncation. A Responses stream
    that is rewritten ends with `response.incomplete` and the reason `invalid_tool_call` if a call is invalid.
    """
    if dialect == "responses" and any(call.state == "invalid" for call in choice.tool_calls):
        return "other"
    is_cut = any(call.state == "incomplete" for call in choice.tool_calls)
    return "length" if choice.finish_reason in ("stop", "tool_calls") and is_cut else choice.finish_reason


def has_lost_all(response: sw.Response) -> bool:
    """Return True if there are calls, but none of them has a name, so that none can be run."""
    calls = response.tool_calls
    return bool(calls) and not any(c.name for c in calls)


COUNTS = ("input_tokens", "output_tokens")


def counted(response: sw.Response, unreported: tuple[str, ...] = ()) -> Any:
    """Return the usage counts. `unreported`: the counts that are 0 if they were not sent."""
    usage = response.usage
    if usage is None:
        return None
    counts = {name: getattr(usage, name) for name in COUNTS}
    return tuple(0 if count is None and name in unreported else count for name, count in counts.items())


def uncounted(body: bytes) -> tuple[str, ...]:
    """Return the counts that the first message_start of a stream lacks: all counts if there is no message_start."""
    for frame in sw.sse.iter_frames([body]):
        try:
            payload = json.loads(frame.data)
        except ValueError:
            continue
        if isinstance(payload, dict) and payload.get("type") == "message_start":
            message = payload.get("message")
            usage = message.get("usage") if isinstance(message, dict) else None
            sent = usage if isinstance(usage, dict) else {}
            return tuple(name for name in COUNTS if not isinstance(sent.get(name), int))
    return COUNTS


def hold(body: bytes, dialect: Any, made: Repaired) -> None:
    """Check the invariants that hold for every stream, whatever its faults are."""
    out, converter = made
    codes = {d.code for d in converter.diagnostics}
    spoken = converter.dialect
    if spoken is None:
        return
    if converter.repaired and converter.error is None:
        assert "rewritten" in codes or any(CODES[code].mends for code in codes)
    again, second = repair(out, spoken)
    assert again == out
    still = {d.code for d in second.diagnostics if CODES[d.code].mends}
    # No strict client reads a stream in which a call follows a broken one, so the rewriting is not stable.
    is_mixed = any(d.code == "rewritten" and d.detail == "calls_mixed" for d in second.diagnostics)
    stays = still & STAYS or (is_mixed and any(call.state != "complete" for call in converter.response.tool_calls))
    assert not second.repaired or stays or converter.error is not None
    if converter.error is not None:
        before, after = read(body, dialect), read(out, spoken)
        assert before.is_success or not after.is_success
        assert not isinstance(converter.error, UpstreamError) or isinstance(second.error, UpstreamError)
        return
    if spoken == "anthropic":
        assert not BLOCKS & {v.rule for v in sw.check(out, dialect=spoken)}
    first = converter.response
    if has_lost_all(first) and second.error is not None:
        # As in a conversion, a finish reason that no longer applies is not written, and the response ends with an
        # error.
        assert (first.finish_reason, type(second.error)) == ("tool_calls", UpstreamError)
        return
    assert second.error is None
    if "stream_restarted" in codes or out == body:  # the first attempt was already passed through
        return
    assert said(second.response) == said(first)
    if not has_lost_all(first):  # Responses and Gemini have no finish word for calls, so the presence of calls decides
        reasons = [c.finish_reason for c in second.response.choices]
        assert reasons in ([c.finish_reason for c in first.choices], [reason_written(c, spoken) for c in first.choices])
    # If message_start is missing or has no counts, it is written with counts of 0, because clients need counts.
    sent = [
        counted(first),
        *([counted(first, uncounted(body))] if spoken == "anthropic" and converter.repaired else ()),
    ]
    assert counted(second.response) in sent or not first.usage


@pytest.mark.skipif(corpus.absent() is not None, reason=str(corpus.absent()))
@pytest.mark.parametrize("recording", [pytest.param(r, id=f"{r.folder}-{r.name}") for r in sample()])
def test_recorded_streams(backend: str, recording: Recording) -> None:
    body, name = recording.body, f"{recording.folder}/{recording.name}"
    dialect: Any = recording.dialect
    with using(backend):
        made = repair(body, dialect)
        out, converter = made
        if converter.error is None:
            assert (out == body) == (name not in REWRITTEN), REWRITTEN.get(name)
            assert converter.repaired == (out != body)
        hold(body, dialect, made)
        chance = random.Random(name)
        for count in (1, 7, 60):
            places = sorted(chance.sample(range(len(body)), min(len(body), count)))
            assert repair(body, dialect, *places)[0] == out
        if converter.error is None and out != body:
            known = {v.rule for v in sw.check(body, dialect=dialect)} | set(REWRITES["violations"].get(name, ()))
            new = [v for v in sw.check(out, dialect=dialect) if v.severity != "info" and v.rule not in known]
            assert new == []


def test_the_list_of_rewritten_streams_names_what_there_is() -> None:
    if corpus.absent() is not None:
        pytest.skip(str(corpus.absent()))
    assert set(REWRITTEN) <= {f"{r.folder}/{r.name}" for r in corpus.all_recordings()}
    assert all(row["why"] for row in REWRITES["reasons"].values())


def test_where_names_alone_are_missing_nothing_else_is_changed(backend: str) -> None:
    if corpus.absent() is not None:
        pytest.skip(str(corpus.absent()))
    nameless = {name for name, reason in REWRITTEN.items() if reason == "event_name"}
    for recording in [r for r in corpus.recordings("anthropic") if f"{r.folder}/{r.name}" in nameless]:
        with using(backend):
            out, converter = repair(recording.body, "anthropic")
        named = [line for line in out.splitlines(keepends=True) if not line.startswith(b"event:")]
        assert b"".join(named) == recording.body, recording.name
        assert [d.detail for d in converter.diagnostics if d.code in ("rewritten", "not_carried")] == ["event_name"]


@pytest.mark.parametrize(
    "vector", [pytest.param(v, id=label(v)) for v in (streams() if FULL else one_of(SHARE, streams(), label))]
)
def test_vectors(backend: str, vector: dict[str, Any]) -> None:
    options = dict(vector["options"])
    dialect = options.pop("dialect")
    body = b"".join(chunks_of(vector))
    with using(backend):
        made = repair(body, dialect, **options)
        mended = {d.code for d in made[1].diagnostics if CODES[d.code].mends}
        if mended and made[1].error is None:
            assert made[1].repaired
        if not made[1].repaired and made[1].error is None:
            assert made[0] == body
        if options.keys() <= {"content_type", "seed", "known_call_ids"}:
            hold(body, dialect, made)


def short() -> list[Recording]:
    picked: list[Recording] = []
    for folder in corpus.FOLDERS:
        rows = [r for r in corpus.recordings(folder) if 800 < r.size < CUT_SIZE]
        picked += rows[:: max(1, len(rows) * len(corpus.FOLDERS) // CUT_STREAMS)][: CUT_STREAMS // 6]
    return picked


@pytest.mark.skipif(corpus.absent() is not None, reason=str(corpus.absent()))
@pytest.mark.parametrize("recording", [pytest.param(r, id=f"{r.folder}-{r.name}") for r in short()])
def test_a_cut_is_never_a_success(backend: str, recording: Recording) -> None:
    body, dialect = recording.body, recording.dialect
    with using(backend):
        for place in range(1, len(body), CUT_SHARE):
            before = read(body[:place], dialect)
            out, converter = repair(body[:place], dialect)
            after = read(out, dialect)
            assert before.is_success or not after.is_success, place
            assert isinstance(converter.error, StreamError) or not after.error, place
            assert out.startswith(body[: place - len(body[:place].rsplit(b"\n\n", 1)[-1])]) or converter.repaired, place
