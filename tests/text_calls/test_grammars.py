"""Calls in the grammar of every family, well formed and broken: whole, by character, and split at every position."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import FULL, NIGHTLY
from tests.support.backends import BACKENDS
from tests.support.places import VECTORS
from tests.text_calls.support import calls_of, read

if TYPE_CHECKING:
    from collections.abc import Iterator

GRAMMARS: dict[str, Any] = json.loads((VECTORS / "text_calls" / "grammars.json").read_text())
ROWS: list[dict[str, Any]] = GRAMMARS["tests"]


STEP = {"native": 1 if NIGHTLY else 2 if FULL else 9, "pure": 1 if NIGHTLY else 9 if FULL else 99}


def cuts(text: str, reader: str) -> Iterator[list[str]]:
    """Yield the text split at one position; nightly, at every position."""
    for place in range(1, len(text), STEP[reader]):
        yield [text[:place], text[place:]]


def problems(reader: str, row: dict[str, Any], pieces: list[str]) -> list[str]:
    given = {key: row[key] for key in ("structured", "tools") if key in row}
    switches = {"text_call_markerless": False, **row.get("policy", {})}
    parser = read(
        reader, pieces, **{"tools": GRAMMARS["tools"], **given}, finish=row.get("finish_reason", "stop"), **switches
    )
    response, wanted = parser.response, row["expect"]
    found = {
        "text": response.text,
        "calls": [[name, arguments] for name, arguments in calls_of(parser)],
        "arguments": [call.arguments for call in response.tool_calls],
    }
    return [f"{row['name']}, {pieces}: {key} {found[key]!r}" for key in wanted if found[key] != wanted[key]]


@pytest.mark.parametrize("reader", BACKENDS)
def test_every_grammar(reader: str) -> None:
    wrong: list[str] = []
    for row in ROWS:
        text = row["text"]
        for pieces in ([text], list(text), *cuts(text, reader)):
            wrong += problems(reader, row, pieces)
    assert wrong == []
