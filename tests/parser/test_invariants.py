"""Invariants of every stream: event order, one ToolCall per call, deltas that add up, and only StreamErrors."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st
from streamweld.errors import ArgumentsError, StreamError, TruncatedStream, UpstreamError

from tests.support.corpus import recordings
from tests.support.generate.mixed import GREEK, mixed
from tests.support.generate.noise import LINES, random_case, random_pieces
from tests.support.harness import Outcome, read
from tests.support.vector_files import chunks_of, load

if TYPE_CHECKING:
    from streamweld.events import ToolCall

TEXTUAL = ("Text", "Reasoning", "Refusal")
TAKEN_BACK = {
    "stream_restarted",
    "orphan_think_close",
    "content_cumulative",
    "conflict",
}  # the close corrects text that was already emitted
PUT_TOGETHER = {"args_stitched", "args_paired"}  # fragments that were mistaken for calls and together form one call
COUNT = 1500


def broken_rule(outcome: Outcome) -> str | None:
    """Return the first rule of the event order that these events break."""
    opened: dict[int, str] = {}
    closed: dict[int, str] = {}
    text: dict[int, str] = {}
    finished: set[int] = set()
    last_new = -1
    for n, event in enumerate(outcome.events):
        name = type(event).__name__
        choice = getattr(event, "choice", None)
        part: int | None = getattr(event, "part", None)
        where = f"event {n}: {event!r}"
        if (
            name == "ResponseStarted"
            and n
            and any(type(e).__name__ not in {"Diagnostic", "Unknown"} for e in outcome.events[:n])
        ):
            return f"{where}: not the first"
        if name == "Diagnostic":
            continue
        if choice is not None and choice in finished:
            return f"{where}: after Finished of its choice"
        if name == "Finished":
            finished.add(event.choice)
        if name == "UpstreamErrorEvent" and n != len(outcome.events) - 1 and isinstance(outcome.error, UpstreamError):
            return f"{where}: not the last"
        if part is None or name in {"File", "Source", "ToolResult", "ToolResultDelta", "ProviderItem"}:
            continue
        kind = next((k for k in TEXTUAL if name.startswith(k)), "ToolCall")
        if name.endswith("Started"):
            if part in opened:
                return f"{where}: opened twice"
            if kind != "ToolCall" and part <= last_new:
                return f"{where}: parts are not in order of first sight"
            last_new = max(last_new, part)
            opened[part], text[part] = kind, ""
        elif part not in opened or opened[part] != kind:
            return f"{where}: never opened as {kind}"
        elif part in closed:
            return f"{where}: after its close {closed[part]}"
        elif name.endswith("Delta"):
            piece = event.arguments if kind == "ToolCall" else event.text
            if not piece:
                return f"{where}: empty delta"
            text[part] += piece
        elif name == "ToolCallReset":
            text[part] = ""
        elif name == "ToolCallRetracted":
            closed[part] = name
        elif name == "ToolCall":
            closed[part] = name
            if text[part] != event.arguments:
                return f"{where}: deltas since the last reset give {text[part]!r}"
        else:
            closed[part] = name
            raised = set() if outcome.error is None else {outcome.error.rule}
            if text[part] != event.text and not (outcome.codes | raised) & TAKEN_BACK:
                return f"{where}: deltas give {text[part]!r}"
    if outcome.response.completeness in {"complete", "assumed"} and set(opened) - set(closed):
        return f"parts {sorted(set(opened) - set(closed))} never closed"
    return wrong_response(outcome)


def wrong_response(outcome: Outcome) -> str | None:
    """Check that the Response is the fold of the events."""
    response = outcome.response
    calls: list[ToolCall] = [e for e in outcome.events if type(e).__name__ == "ToolCall"]
    shown = [c for choice in response.choices for c in choice.tool_calls if c.state != "open"]
    if sorted(shown, key=lambda c: c.part) != sorted(calls, key=lambda c: c.part):
        return f"response has calls {shown}, events {calls}"
    ids = [c.call_id for choice in response.choices for c in choice.tool_calls if c.state != "open"]
    if len(set(ids)) != len(ids):
        return f"an id occurs twice: {ids}"
    for choice in response.choices:
        if any(c.state not in {"complete", "empty"} or not c.name.strip() for c in choice.dispatchable_calls):
            return f"dispatchable: {choice.dispatchable_calls}"
        for key, kind in (("text", "TextDone"), ("reasoning", "ReasoningDone"), ("refusal", "RefusalDone")):
            done = "".join(e.text for e in outcome.events if type(e).__name__ == kind and e.choice == choice.index)
            restarted = "stream_restarted" in outcome.codes  # parts of the first attempt were closed and then discarded
            if outcome.error is None and done != getattr(choice, key) and not restarted:
                return f"{key} of choice {choice.index}: {getattr(choice, key)!r}, events give {done!r}"
    if response.completeness == "truncated" and any(
        c.finish_reason is None and c.dispatchable_calls for c in response.choices
    ):
        return "a cut choice has dispatchable calls"
    if cut_in_a_call(outcome) and not outcome.codes & PUT_TOGETHER and all(c.state == "complete" for c in calls):
        return "the input ended inside of a call, and every call is complete"
    for call in calls:
        if call.state != "complete" and not call.custom:
            continue
        try:
            parsed = call.parsed
        except ArgumentsError as error:
            if not call.custom:
                return f"{call!r} is complete but does not parse"
            if (error.rule, error.reason, error.state) != ("arguments_custom", "custom", call.state):
                return f"{call!r} says {error!r}"
        else:
            if call.custom or json.loads(call.arguments).keys() != parsed.keys():
                return f"{call!r} does not parse to its object"
    return None


def cut_in_a_call(outcome: Outcome) -> bool:
    """Return True if the input ended inside the arguments of a call, possibly after the finish reason."""
    if isinstance(outcome.error, TruncatedStream):
        return outcome.error.where == "mid_arguments"
    return any(d.code == "truncated" and d.detail == "mid_arguments" for d in outcome.diagnostics)


def encodes(outcome: Outcome) -> None:
    """Check that every result can be encoded as UTF-8."""
    json.dumps([event.to_dict() for event in outcome.events], ensure_ascii=False).encode("utf-8")
    json.dumps(outcome.response.to_dict(), ensure_ascii=False).encode("utf-8")
    repr(outcome.events)
    repr(outcome.response)


def test_vectors(backend: str) -> None:
    for vector in load("chat"):
        chunks = chunks_of(vector)
        outcome = read(backend, chunks, vector.get("options"))
        assert broken_rule(outcome) is None, vector["name"]
        encodes(outcome)


def test_recorded_streams(backend: str, full: bool) -> None:
    for recording in recordings():
        if full or backend == "native" or recording.size < 20_000:
            assert broken_rule(read(backend, [recording.body])) is None, recording.name


def test_generated_streams(backend: str, full: bool) -> None:
    count = COUNT * (20 if full else 1) if backend == "native" else COUNT // 5 * (5 if full else 1)
    for seed in range(count):
        body, options = random_case(seed)
        outcome = read(backend, random_pieces(random.Random(seed), body), options)
        found = broken_rule(outcome)
        assert found is None, f"seed {seed}: {found} {options} {body!r}"
        encodes(outcome)


def test_free_form_text_and_json_share_no_call(backend: str, full: bool) -> None:
    for seed in range(COUNT * (20 if full else 1) if backend == "native" else COUNT // 5):
        rng = random.Random(seed)
        body = b"".join(mixed(rng))
        outcome = read(backend, random_pieces(rng, body))
        found = broken_rule(outcome)
        assert found is None, f"seed {seed}: {found} {body!r}"
        for call in (call for choice in outcome.response.choices for call in choice.tool_calls):
            output_text = call.raw_arguments or call.arguments
            greek = [character in GREEK for character in output_text]
            assert all(greek) if call.custom else not any(greek), f"seed {seed}: {call!r} {body!r}"


def only_stream_errors(backend: str, body: bytes, options: dict[str, Any]) -> None:
    """Check that any bytes give a response or a StreamError with a rule, a position and the partial result."""
    outcome = read(backend, [body], options)
    if outcome.error is None:
        return
    error = outcome.error
    assert isinstance(error, StreamError)
    assert error.rule
    assert error.rule != "internal"
    assert error.byte_offset is not None
    assert 0 <= error.byte_offset <= len(body)
    assert error.event_ordinal is not None
    assert error.partial is not None
    assert len(error.raw) <= 256
    assert "\n" not in str(error)


@given(body=st.binary(max_size=300), base=st.sampled_from(["strict", "standard", "salvage"]))
def test_any_bytes(backend: str, body: bytes, base: str) -> None:
    only_stream_errors(backend, body, {"policy": base})


@given(
    lines=st.lists(
        st.sampled_from([*LINES, b"data: ", b'{"choices":[', b'{"delta":{"content":"x"}}', b"]}", b"\n\n", b'"'])
    ),
    base=st.sampled_from(["strict", "standard", "salvage"]),
)
def test_any_lines(backend: str, lines: list[bytes], base: str) -> None:
    only_stream_errors(backend, b"".join(lines), {"policy": base})


KEYS = [
    "choices",
    "delta",
    "index",
    "tool_calls",
    "function",
    "id",
    "name",
    "arguments",
    "content",
    "finish_reason",
    "usage",
    "error",
    "message",
    "reasoning_details",
    "reasoning",
    "x",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)


@given(payloads=st.lists(JSON, max_size=5), base=st.sampled_from(["standard", "salvage"]))
def test_any_json(backend: str, payloads: list[Any], base: str) -> None:
    body = b"".join(b"data: " + json.dumps(p).encode() + b"\n\n" for p in payloads)
    only_stream_errors(backend, body, {"policy": base})
    assert broken_rule(read(backend, [body], {"policy": base})) is None
