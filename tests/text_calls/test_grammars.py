"""Calls in the grammar of every family, well formed and broken: at once, by character, and split everywhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import FULL, NIGHTLY
from tests.support.backends import BACKENDS
from tests.support.places import VECTORS
from tests.text_calls.support import Cutter, calls_of, read


def rows_of(name: str) -> list[dict[str, Any]]:
    """Return the tests of a file of vectors, each with its tools."""
    vectors = json.loads((VECTORS / "text_calls" / f"{name}.json").read_text())
    return [{"tools": vectors["tools"], **row} for row in vectors["tests"]]


FILES = {
    name: rows_of(name)
    for name in ("grammars", "variants", "matrix", "attacks", "notations", "turns", "quotations", "endings")
}
ROWS = [row for rows in FILES.values() for row in rows]
# Nightly, every position with both backends; in CI, every position with the native backend.
STEP = {"native": 1 if FULL else 13, "pure": 1 if NIGHTLY else 7 if FULL else 199}
SHARDS = 24  # each shard stays within the time limit of a test, even on a loaded machine


def problems(reader: str, row: dict[str, Any], pieces: list[str]) -> list[str]:
    given = {key: row[key] for key in ("structured", "tools") if key in row}
    switches = {"text_call_markerless": False, **row.get("policy", {})}
    parser = read(reader, pieces, **given, finish=row.get("finish_reason", "stop"), **switches)
    response, wanted = parser.response, row["expect"]
    found = {
        "text": response.text,
        "calls": [[name, arguments] for name, arguments in calls_of(parser)],
        "arguments": [call.arguments for call in response.tool_calls],
    }
    return [f"{row['name']}, {pieces}: {key} {found[key]!r}" for key in wanted if found[key] != wanted[key]]


@pytest.mark.parametrize("reader", BACKENDS)
@pytest.mark.parametrize("name", FILES)
def test_every_grammar(reader: str, name: str) -> None:
    wrong: list[str] = []
    for row in FILES[name]:
        for pieces in ([row["text"]], list(row["text"])):
            wrong += problems(reader, row, pieces)
    assert wrong == []


@pytest.mark.parametrize("reader", BACKENDS)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_single_cuts_of_every_grammar(reader: str, shard: int) -> None:
    """Every text is split at every position into two deltas."""
    wrong: list[str] = []
    step = STEP[reader]
    for number, row in list(enumerate(ROWS))[shard::SHARDS]:
        text, wanted = row["text"], row["expect"]
        cutter = Cutter(
            reader,
            row["tools"],
            structured=row.get("structured", ()),
            finish=row.get("finish_reason", "stop"),
            **row.get("policy", {}),
        )
        expected = (wanted["text"], [(name, arguments) for name, arguments in wanted["calls"]])
        for place in range(1 + number % step, len(text), step):
            found = cutter.read(text, place)
            if found != expected:
                wrong.append(f"{row['name']}, cut at {place}: {found}")
    assert wrong == []
