"""Vectors of text calls: fed at once, by character, and split at every position, with both backends."""

from __future__ import annotations

from typing import Any

import pytest
from streamweld._spec import load_text_calls

from tests.conftest import FULL
from tests.support.backends import BACKENDS
from tests.support.places import REPOSITORY
from tests.text_calls.support import FAMILIES, PROMOTE, calls_of, read

VECTORS = {vector["name"]: vector for vector in PROMOTE["tests"]}
BOTH = pytest.mark.parametrize("reader", BACKENDS)


def outcome(reader: str, vector: dict[str, Any], pieces: list[str]) -> dict[str, Any]:
    given = {key: vector[key] for key in ("structured", "reasoning") if key in vector}
    parser = read(
        reader,
        pieces,
        tools=vector.get("tools", PROMOTE["tools"]),
        finish=vector.get("finish_reason", "stop"),
        **given,
        **vector.get("policy", {}),
    )
    response = parser.response
    found = [[shown.code, shown.detail] for shown in parser.diagnostics if shown.code.startswith("text_call")]
    return {
        "text": response.text,
        "calls": [[name, arguments] for name, arguments in calls_of(parser)],
        "finish": response.finish_reason,
        "raw": response.raw_finish_reason,
        "arguments": [call.arguments for call in response.tool_calls],
        "diagnostics": found,
    }


def compare(vector: dict[str, Any], found: dict[str, Any], how: str) -> None:
    expected = vector["expect"]
    assert found | expected == found, how


@BOTH
@pytest.mark.parametrize("name", VECTORS)
def test_text_to_calls(reader: str, name: str) -> None:
    vector = VECTORS[name]
    text = "".join(vector["pieces"])
    compare(vector, outcome(reader, vector, vector["pieces"]), "as given")
    compare(vector, outcome(reader, vector, list(text)), "by character")
    step = 1 if FULL else 7
    for place in range(1, len(text), step):
        compare(vector, outcome(reader, vector, [text[:place], text[place:]]), f"cut at {place}")


@BOTH
@pytest.mark.parametrize("family", FAMILIES["families"])
def test_every_family(reader: str, family: str) -> None:
    """The call of each family, alone, after prose, and split at every position."""
    text = FAMILIES["families"][family]
    wanted = [tuple(call) for call in FAMILIES["calls"]]
    for pieces in ([text], list(text), ["On it.\n\n", text], *([text[:k], text[k:]] for k in range(1, len(text), 5))):
        parser = read(reader, pieces)
        assert calls_of(parser) == wanted, pieces
        [shown] = [one for one in parser.diagnostics if one.code == "text_call_promoted"]
        assert shown.detail.split()[0] == family
        call = parser.response.tool_calls[0]
        assert (call.origin, call.state, call.dispatchable) == ("text", "complete", True)
        assert text.startswith(call.raw_text or "-")


@BOTH
@pytest.mark.parametrize("family", FAMILIES["switched"])
def test_families_that_need_a_switch(reader: str, family: str) -> None:
    text = FAMILIES["switched"][family]
    assert calls_of(read(reader, [text])) == []
    wanted = [tuple(call) for call in FAMILIES["calls"]]
    parser = read(reader, list(text), text_call_markerless=True, text_call_families=[family])
    assert calls_of(parser) == wanted


def test_the_docs_list_every_family() -> None:
    page = (REPOSITORY / "docs" / "guides" / "text-calls.md").read_text(encoding="utf-8")
    table = load_text_calls()["families"]
    assert {name for name in table if f"`{name}`" not in page} == set()
    assert set(table) == set(FAMILIES["families"]) | set(FAMILIES["switched"])
