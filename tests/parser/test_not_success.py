"""Repair and conversion never turn a failure into a success: they add no call that `parse` does not dispatch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw

from tests.support.backends import using
from tests.support.cases import case
from tests.support.harness import policy_of, read
from tests.support.vector_files import DIALECTS, chunks_of, is_broken, label, streams

if TYPE_CHECKING:
    from streamweld.response import Response

TARGETS = ("same", *DIALECTS)
SUCCESS = ("stop", "tool_calls")


def runnable(response: Response) -> set[tuple[str, str]]:
    """Return the name and value of every call that a client may run. Other dialects put free-form text into the member
    `input`.
    """
    return {
        (call.name, json.dumps({"input": call.arguments} if call.custom else call.parsed, sort_keys=True))
        for choice in response.choices
        for call in choice.tool_calls
        if call.dispatchable
    }


@pytest.mark.parametrize("vector", streams(), ids=label)
def test_no_output_makes_a_success(backend: str, vector: dict[str, Any]) -> None:
    parsed = read(backend, chunks_of(vector), vector["options"], broken=is_broken(vector)).response
    allowed = runnable(parsed)
    for target in TARGETS:
        with case(target):
            hold(parsed, allowed, *read_as(backend, vector, target))


def hold(parsed: Response, allowed: set[tuple[str, str]], after: Response | None, lost: set[str]) -> None:
    """Check what a reader of one target gets; `allowed`: the calls that `parsed` lets run."""
    if after is None:
        return
    if "refused_call" not in lost:
        assert runnable(after) <= allowed
    # A target with one choice gets the choice that began first, which is not always the one with the lowest index.
    carried = parsed.choices if "choices" in lost else parsed.choices[:1]
    if carried and all(one.raw_finish_reason is not None and one.finish_reason not in SUCCESS for one in carried):
        assert after.finish_reason not in SUCCESS


def read_as(backend: str, vector: dict[str, Any], target: str) -> tuple[Response | None, set[str]]:
    """Return the response that a reader of the target gets, and the losses of the conversion.

    The response is None if the converter found no dialect, or if the reader gets an error.
    """
    options = policy_of({k: v for k, v in vector["options"].items() if k not in ("dialect", "seed", "content_type")})
    with using(backend):
        converter = sw.StreamConverter(source=vector["options"]["dialect"], target=target, seed="s", **options)  # type: ignore[arg-type]
        made = b"".join([converter.feed(chunk) for chunk in chunks_of(vector)])
        made += converter.close(broken=is_broken(vector))
        dialect = converter.dialect if target == "same" else target
        lost = {str(d.detail) for d in converter.diagnostics if d.code == "not_carried"}
    if dialect is None:
        return None, lost
    # Both readers belong to the same request, so they have the same tools.
    tools = {name: vector["options"][name] for name in ("tools",) if name in vector["options"]}
    after = read(backend, [made], {"dialect": dialect, "seed": "s", **tools})
    if after.error is not None or after.response.error is not None:
        return None, lost
    return after.response, lost
