"""Several calls at index 0, without ids or with one shared id: they are parsed as separate calls, or the ambiguity is
reported.
"""

from __future__ import annotations

import json
from random import Random

import pytest
import streamweld as sw

from tests.support.backends import using
from tests.support.generate.shared_index import SharedIndex, shared_index

STREAMS = 5000
# Diagnostics for a call that repeats an earlier one and may be a replay.
NAMED = {"ambiguous_identical_call", "args_replay_dropped"}


def calls_read(stream: SharedIndex) -> tuple[tuple[tuple[str, str], ...], set[str]]:
    response = sw.parse(stream.body, dialect="chat")
    calls = tuple(
        (call.name, json.dumps(call.parsed, sort_keys=True)) for call in response.tool_calls if call.dispatchable
    )
    return calls, {diagnostic.code for diagnostic in response.diagnostics}


@pytest.mark.parametrize("identity", [None, "a"], ids=["no-ids", "one-id"])
def test_calls_at_index_0(backend: str, identity: str | None) -> None:
    decided = right = 0
    wrong: list[bytes] = []
    with using(backend):
        for seed in range(STREAMS):
            stream = shared_index(Random(seed), identity)
            calls, codes = calls_read(stream)
            if stream.repeats:
                # An exact copy of an earlier call may be a replay. It is dropped with a diagnostic, or kept.
                assert calls == stream.calls or (codes & NAMED and set(calls) == set(stream.calls)), (
                    stream.body.decode()
                )
                continue
            decided += 1
            right += calls == stream.calls
            if calls != stream.calls:
                wrong.append(stream.body)
    assert decided > STREAMS // 2
    assert right >= 0.995 * decided, (right, decided, wrong[0].decode())
