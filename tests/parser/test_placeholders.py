"""Arguments that may be a placeholder: after repair or conversion, a client gets the same arguments as `parse`.

The vectors `*/placeholders.json` contain the results of `parse`. Here, the same streams, and variants from the catalog,
pass through repair and through every conversion, and the output is parsed by a strict parser, which does not repair
anything.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw

from tests.support.backends import using
from tests.support.harness import bytewise, read
from tests.support.vector_files import DIALECTS, chunks_of, label, load

if TYPE_CHECKING:
    from streamweld.response import Response

QUIRKS = {"A2", "A9", "A11", "A13", "E19", "M7", "M9"}
VECTORS = [
    vector
    for layer in DIALECTS
    for vector in load(layer)
    if (vector["file"] == "placeholders" and not vector["expect"].get("error")) or vector.get("quirk") in QUIRKS
]
TARGETS = ("same", *DIALECTS)
PLACEHOLDERS = {"null", '""', '"{}"'}


def calls_of(response: Response) -> list[tuple[str, str, Any, bool]]:
    """Return the id, name and value of every complete call, and whether it may be run.

    They are sorted by id, because a target with sequential blocks writes a call without arguments when it closes, after
    the other calls.
    """
    return sorted(
        [
            (call.call_id, call.name, json.loads(call.arguments or "{}"), call.dispatchable)
            for call in response.tool_calls
            if call.state in ("complete", "empty")
        ],
        key=lambda row: row[0],
    )


def converted(vector: dict[str, Any], target: str, pieces: list[bytes]) -> tuple[bytes, sw.StreamConverter]:
    converter = sw.StreamConverter(source=vector["layer"], target=target, seed="p")  # type: ignore[arg-type]
    return b"".join([converter.feed(piece) for piece in pieces]) + converter.close(), converter


def test_all_of_them_are_here() -> None:
    assert {vector["quirk"] for vector in VECTORS if "quirk" in vector} == QUIRKS
    assert len(VECTORS) >= 50


@pytest.mark.parametrize("vector", VECTORS, ids=label)
def test_nothing_is_shown_that_is_taken_back(backend: str, vector: dict[str, Any]) -> None:
    for pieces in (chunks_of(vector), bytewise(b"".join(chunks_of(vector)))):
        events = read(backend, pieces, vector["options"]).events
        assert [event for event in events if event.type == "tool_call_reset"] == []
        shown = [event.arguments for event in events if event.type == "tool_call_delta"]
        assert [text for text in shown if text.strip() in PLACEHOLDERS] == []


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("vector", VECTORS, ids=label)
def test_a_client_reads_what_parse_reads(backend: str, vector: dict[str, Any], target: str) -> None:
    parsed = read(backend, chunks_of(vector), vector["options"]).response
    with using(backend):
        made, converter = converted(vector, target, chunks_of(vector))
        assert converted(vector, target, bytewise(b"".join(chunks_of(vector))))[0] == made
    if converter.error is not None:
        raise converter.error
    invalid = any(call.state == "invalid" for call in parsed.tool_calls)
    policy = "standard" if invalid else "strict"
    after = read(backend, [made], {"dialect": vector["layer"] if target == "same" else target, "policy": policy})
    if after.error is not None:
        raise after.error
    assert calls_of(after.response) == calls_of(parsed)
    assert after.response.text == parsed.text
    assert after.response.completeness == "complete"
