"""Random calls in the 36 shapes that gateways produce, compared with the expected result; conformant streams are
unchanged.

Full counts (STREAMWELD_FULL=1): 2,500 streams per shape, native; 150, pure.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from streamweld.testing.shapes import SHAPES

from tests.support.generate.chat import Stream, conformant, shaped
from tests.support.harness import Outcome, cut_at, read
from tests.support.parallel import spread

if TYPE_CHECKING:
    from streamweld.response import Response

# Two shapes are undecidable: a random id and the full name in every delta, and every chunk sent twice.
EXACT = {"rand_id_name_every_nonempty": 0.92, "every_chunk_twice": 0.99}


def mistake(stream: Stream, response: Response) -> str | None:
    """Describe how `response` differs from the meaning of the stream."""
    calls = response.tool_calls
    shown = [(c.call_id, c.name, c.arguments, c.state) for c in calls]
    if [(c.name, c.arguments) for c in calls] != [(c.name, c.arguments) for c in stream.calls]:
        return f"{shown} instead of {stream.calls}"
    for call, truth in zip(calls, stream.calls, strict=True):
        if truth.id is not None and call.call_id != truth.id:
            return f"id {call.call_id} instead of {truth.id}"
        if call.state != ("complete" if truth.arguments else "empty") or not call.dispatchable:
            return f"state {call.state}: {shown}"
    if len({c.call_id for c in calls}) != len(calls):
        return f"an id occurs twice: {shown}"
    for key, value in (("text", stream.content), ("reasoning", stream.reasoning), ("refusal", stream.refusal)):
        if getattr(response, key) != value:
            return f"{key} {getattr(response, key)!r} instead of {value!r}"
    if response.finish_reason != stream.finish or response.completeness != "complete":
        return f"finish {response.finish_reason}, {response.completeness}"
    return None


def deliver(rng: random.Random, backend: str, stream: Stream) -> Outcome:
    body = stream.body
    return read(backend, cut_at(body, *sorted(rng.sample(range(1, len(body)), rng.randint(0, 3)))))


def misses(job: tuple[str, str, int, int]) -> list[tuple[str, bool]]:
    """Return (the mistake, whether a diagnostic of severity warning reported it) for every stream that is not exact."""
    backend, shape, first, count = job
    out = []
    for seed in range(first, first + count):
        rng = random.Random(f"{shape} {seed}")
        stream = shaped(rng, shape)
        outcome = deliver(rng, backend, stream)
        found = repr(outcome.error) if outcome.error else mistake(stream, outcome.response)
        if found:
            loud = any(d.severity != "info" for d in outcome.diagnostics)
            out.append((f"{shape} seed {seed}: {found}\n{stream.body.decode()}", loud))
    return out


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("shape", SHAPES)
def test_shape(backend: str, shape: str, full: bool) -> None:
    count = (2500 if full else 250) if backend == "native" else (150 if full else 60)
    half = count // 2
    jobs = [(backend, shape, 0, half), (backend, shape, half, count - half)]
    found = [row for rows in spread(misses, jobs, alone=count < 1000) for row in rows]
    least = EXACT.get(shape, 1.0)
    assert count - len(found) >= least * count, found[0][0]
    assert [text for text, loud in found if not loud] == []


def test_there_are_36_shapes() -> None:
    assert len(SHAPES) == 36
    assert set(EXACT) <= set(SHAPES)


@pytest.mark.timeout(600)
def test_conformant_streams_are_untouched(backend: str, full: bool) -> None:
    """The results of conformant streams are byte-exact, without diagnostics or resets, and the deltas are the fragments
    as sent.
    """
    for seed in range((15_000 if full else 800) if backend == "native" else (1000 if full else 150)):
        rng = random.Random(seed)
        stream = conformant(rng)
        outcome = deliver(rng, backend, stream)
        assert outcome.error is None
        assert mistake(stream, outcome.response) is None, stream.body
        assert outcome.diagnostics == [], stream.body
        kinds = {type(e).__name__ for e in outcome.events}
        assert not kinds & {"ToolCallReset", "ToolCallRetracted", "Diagnostic", "Unknown"}


def test_the_36_shapes_in_strict_raise_or_are_exact(backend: str) -> None:
    """The strict policy never returns a wrong result without a report."""
    for shape in SHAPES:
        for seed in range(30 if backend == "native" else 8):
            rng = random.Random(f"{shape} {seed}")
            stream = shaped(rng, shape)
            outcome = read(backend, [stream.body], {"policy": "strict"})
            if outcome.error is None and shape not in EXACT:
                assert mistake(stream, outcome.response) is None, stream.body
