"""Truncation at any byte is reported, does not lose earlier data, and never makes incomplete data look complete.

Nightly (STREAMWELD_NIGHTLY=1): every byte of every recorded stream up to 8 KiB, 500 positions of those up to 16 KiB,
with the native backend; a sample with the pure backend. Full counts (STREAMWELD_FULL=1): 80 positions of each stream,
with the native backend.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from streamweld.errors import NotAnEventStream, StreamError, TruncatedStream
from streamweld.events import TextDelta
from streamweld.testing.shapes import SHAPES

from tests.conftest import NIGHTLY
from tests.support.backends import make_parser
from tests.support.corpus import absent, recordings
from tests.support.generate.chat import conformant, shaped
from tests.support.harness import Outcome, read
from tests.support.parallel import spread

if TYPE_CHECKING:
    from streamweld.response import Choice, Response

    from tests.support.corpus import Recording

LONGEST = 16 * 1024
EVERY_BYTE = 8 * 1024  # parsing again up to each byte takes quadratic time
recorded = pytest.mark.skipif(absent() is not None, reason=absent() or "")


@dataclass
class Step:
    """State of the stream once the JSON of a frame is complete."""

    end: int
    closed: bool  # every choice seen so far has a finish reason
    done: bool


def steps_of(body: bytes) -> list[Step]:
    """Compute, with json.loads, the positions in the bytes at which every choice seen so far has its finish reason."""
    out: list[Step] = []
    seen: set[int] = set()
    finished: set[int] = set()
    at = 0
    for line in body.splitlines(keepends=True):
        text = line.rstrip(b"\r\n")
        if text.startswith(b"data:"):
            data = text[5:].strip()
            if data == b"[DONE]":
                out.append(Step(at + len(text.rstrip()), True, True))  # blanks after the marker have no meaning
            elif data.startswith(b"{"):
                for choice in json.loads(data).get("choices") or ():
                    seen.add(choice.get("index") or 0)
                    if (choice.get("finish_reason") or "").strip():
                        finished.add(choice.get("index") or 0)
                out.append(Step(at + len(text), bool(finished) and finished == seen, False))
        at += len(line)
    return out


def identities(response: Response) -> set[tuple[int, str, str, str]]:
    return {(c.index, k.call_id, k.name, k.arguments) for c in response.choices for k in c.tool_calls}


@dataclass
class Whole:
    """The result of the complete stream."""

    choices: dict[int, Choice]
    calls: set[tuple[int, str, str, str]]


def whole_of(response: Response) -> Whole:
    return Whole({choice.index: choice for choice in response.choices}, identities(response))


def is_inside_event(rest: bytes) -> bool:
    """Return True if the bytes after the last complete payload begin an event. Comments and blank lines do not."""
    return any(line and not line.startswith(b":") for line in rest.splitlines())


def wrong_with_cut(outcome: Outcome, whole: Whole, step: Step | None, rest: bytes, kept: str) -> str | None:
    """Describe the broken guarantee, or return None. `rest`: the input after the last complete payload."""
    response, error = outcome.response, outcome.error
    if step is not None and step.done:
        wanted = {"complete"}
    elif step is not None and step.closed and not is_inside_event(rest):
        wanted = {"assumed"}
    else:
        wanted = {"truncated"}
    if response.completeness not in wanted:
        return f"completeness {response.completeness}, not {wanted}"
    reported = type(error) is TruncatedStream or (step is None and type(error) is NotAnEventStream)
    if reported != (wanted == {"truncated"}):
        return f"raised {error!r}"
    if error is not None and error.partial != response:
        return "exc.partial is not the response"
    if error is None and (identities(response) != whole.calls or len(response.choices) != len(whole.choices)):
        return f"silent: {identities(response)} instead of {whole.calls}"
    for choice in response.choices:
        for key in ("text", "reasoning", "refusal"):
            output_text, all_of_it = getattr(choice, key), getattr(whole.choices[choice.index], key)
            if not all_of_it.startswith(output_text):
                return f"{key} of choice {choice.index} is no prefix"
            if error is None and output_text != all_of_it:
                return f"silent: {key} of choice {choice.index} was cut"
    if not "".join(choice.text for choice in response.choices if choice.index == 0).startswith(kept):
        return "text before the cut is lost"
    for choice in response.choices:
        for call in choice.tool_calls:
            if call.state not in {"complete", "empty", "incomplete", "invalid"}:
                return f"state {call.state}"
            if call.state in {"complete", "empty"} or call.dispatchable:
                if wanted == {"truncated"} and choice.finish_reason is None:
                    return f"a call of a cut choice is shown as {call.state}"
                if (choice.index, call.call_id, call.name, call.arguments) not in whole.calls:
                    return f"incomplete call shown as {call.state}: {call!r}"
    return None


def delivered(backend: str, body: bytes) -> list[tuple[int, str]]:
    """Return (bytes fed, text of choice 0 so far) after each line of the complete stream."""
    parser = make_parser(backend)
    at, text, out = 0, "", [(0, "")]
    try:
        for line in body.splitlines(keepends=True):
            at += len(line)
            for event in parser.feed(line):
                if isinstance(event, TextDelta) and event.choice == 0:
                    text += event.text
            out.append((at, text))
    except StreamError:
        pass
    return out


def try_cuts(backend: str, body: bytes, places: list[int]) -> str | None:
    """Describe the first broken guarantee, or return None."""
    whole = whole_of(read(backend, [body]).response)
    steps, texts = steps_of(body), delivered(backend, body)
    for place in places:
        before = [s for s in steps if s.end <= place]
        step = next((s for s in before if s.done), before[-1] if before else None)
        kept = [text for at, text in texts if at <= place][-1]
        rest = body[step.end : place] if step else b""
        found = wrong_with_cut(read(backend, [body[:place]]), whole, step, rest, kept)
        if found:
            return f"cut at byte {place} of {len(body)}: {found}"
    return None


Job = tuple[str, str, "int | None"]


def try_recording(job: Job) -> str | None:
    backend, name, count = job
    recording = next(r for r in recordings() if r.name == name)
    body = recording.body
    places = range(len(body))
    chosen = list(places) if count is None else sorted(random.Random(name).sample(places, min(count, len(body))))
    found = try_cuts(backend, body, chosen)
    return found and f"{backend} {name}: {found}"


def places_in(recording: Recording, backend: str, *, full: bool) -> int | None:
    """Return the number of cut positions; None means every byte."""
    if backend == "pure":
        return 60 if NIGHTLY else 15 if full else 3
    if not full:
        return 8
    if not NIGHTLY:
        return 80
    return None if recording.size <= EVERY_BYTE else 500


@recorded
@pytest.mark.timeout(2400)
def test_recorded_streams(backend: str, full: bool) -> None:
    chosen = [r for r in recordings() if r.size <= LONGEST and "error event in stream" not in r.notes]
    for recording in chosen:
        recording.body  # noqa: B018 (counted here, because the work may be done in another process)
    jobs = [(backend, r.name, places_in(r, backend, full=full)) for r in chosen]
    found = spread(try_recording, jobs, alone=not full)
    assert [row for row in found if row] == []


@pytest.mark.parametrize("number", range(6))
def test_conformant_streams_at_every_byte(backend: str, number: int) -> None:
    body = conformant(random.Random(number)).body
    step = 1 if backend == "native" else 7
    assert try_cuts(backend, body, list(range(0, len(body), step))) is None


@pytest.mark.parametrize("shape", SHAPES)
def test_no_cut_of_any_shape_dispatches_a_part_of_a_call(backend: str, shape: str, full: bool) -> None:
    """Whatever a gateway does to a call, no call of a stream that is truncated before its finish reason is
    dispatchable.
    """
    stream = shaped(random.Random(shape), shape)
    body = stream.body
    before_finish = body.index(b'"finish_reason":"tool_calls"')
    step = 1 if full and backend == "native" else 13
    for place in range(0, before_finish, step):
        outcome = read(backend, [body[:place]])
        assert type(outcome.error) is TruncatedStream
        assert outcome.response.completeness == "truncated"
        assert outcome.response.dispatchable_calls == ()
        assert stream.content.startswith(outcome.response.text)


def test_where_it_was_cut(backend: str) -> None:
    head = b'data: {"choices":[{"index":0,"delta":{'
    text = head + '"content":"é"}}]}\n\n'.encode()
    call = head + b'"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\\"x\\":"}}]}}]}\n\n'
    whole_call = call.replace(b'{\\"x\\":', b'{\\"x\\":1}')
    for body, where in (
        (b"", "empty"),
        (b": ping\n\n", "empty"),
        (b"event: ping\nid: 3\n\n", "empty"),
        (text, "mid_text"),
        (text + text[:20], "mid_event"),
        (text + text[: text.index("é".encode()) + 1], "mid_utf8"),
        (call, "mid_arguments"),
        (whole_call, "between_events"),
    ):
        error = read(backend, [body]).error
        assert type(error) is TruncatedStream
        assert (error.where, error.rule, error.byte_offset) == (where, "truncated", len(body)), body
