"""Gemini chunks that differ only in text and token counts are decoded with a template, which other chunks must
invalidate.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamweld.events import ReasoningDelta, TextDelta, Usage

from tests.support.harness import Outcome, bytewise, difference, read

GEMINI: dict[str, Any] = {"dialect": "gemini"}


def chunk(part: object, count: object = 1, **more: object) -> str:
    content = {"parts": part if isinstance(part, list) else [part], "role": "model"}
    usage = {"promptTokenCount": 5, "candidatesTokenCount": count, "totalTokenCount": 9}
    members = {"candidates": [{"content": content, "index": 0}], "usageMetadata": usage, "modelVersion": "m", **more}
    return json.dumps(members)


def text(piece: str, count: object = 1, **more: object) -> str:
    return chunk({"text": piece}, count, **more)


def thought(piece: str) -> str:
    return chunk({"text": piece, "thought": True})


def told(backend: str, payloads: list[str]) -> Outcome:
    """Read the stream at once, and check that reading it byte by byte gives the same result."""
    body = "".join([f"data: {payload}\n\n" for payload in payloads]).encode()
    whole = read(backend, [body], GEMINI)
    assert difference(whole.facts(), read(backend, bytewise(body), GEMINI).facts()) is None
    return whole


def pieces(outcome: Outcome) -> list[tuple[str, str]]:
    deltas = [event for event in outcome.events if isinstance(event, TextDelta | ReasoningDelta)]
    return [(event.type.removesuffix("_delta"), event.text) for event in deltas]


def test_each_piece_of_a_text_that_goes_on(backend: str) -> None:
    words = ["a", "b ", "é", "🙂", '"q"', "line\n", "more than sixteen characters of text"]
    outcome = told(backend, [text(word, count) for count, word in enumerate(words)])
    assert pieces(outcome) == [("text", word) for word in words]
    usage = outcome.response.usage
    assert usage is not None
    assert usage.output_tokens == len(words) - 1
    assert usage.raw == {"promptTokenCount": 5, "candidatesTokenCount": len(words) - 1, "totalTokenCount": 9}


@pytest.mark.parametrize(
    ("payloads", "expected"),
    [
        # An empty part of another kind does not open a part; the next one does.
        (
            [thought("a"), thought("b"), text(""), text("c"), text("d")],
            [("reasoning", "a"), ("reasoning", "b"), ("text", "c"), ("text", "d")],
        ),
        ([text("a"), thought("b"), text("c")], [("text", "a"), ("reasoning", "b"), ("text", "c")]),
        # Several chunks in one payload, repeatedly.
        ([f"[{text('a')},{text('b')}]", f"[{text('c')},{text('b')}]"], [("text", piece) for piece in "abcb"]),
        ([chunk([{"text": "a"}, {"text": "b"}]), chunk([{"text": "c"}, {"text": "b"}])], [("text", p) for p in "abcb"]),
    ],
    ids=["empty", "turns", "list", "parts"],
)
def test_where_a_piece_goes(backend: str, payloads: list[str], expected: list[tuple[str, str]]) -> None:
    assert pieces(told(backend, payloads)) == expected


def test_a_member_that_changes_is_reported_again(backend: str) -> None:
    end = text("", x=1).replace('"index": 0', '"index": 0, "finishReason": "STOP"')
    outcome = told(backend, [text("a", x=1), text("b", x=1), text("c", x=2), text("d", x=1), text("e", x=1), end])
    assert pieces(outcome) == [("text", piece) for piece in "abcde"]
    assert outcome.response.choices[0].provider_metadata == {"x": 1}


@pytest.mark.parametrize(
    ("count", "code"), [(2**64, "numeric_overflow"), (10**30, "numeric_overflow")], ids=["wide", "wider"]
)
def test_token_counts_that_need_a_look(backend: str, count: int, code: str) -> None:
    outcome = told(backend, [text("a"), text("b"), text("c", count)])
    assert pieces(outcome) == [("text", piece) for piece in "abc"]
    assert [diagnostic.code for diagnostic in outcome.diagnostics if diagnostic.code == code] == [code]


def test_a_key_that_stands_twice(backend: str) -> None:
    twice = text("c").replace('"text": "c"', '"text": "x", "text": "c"')
    outcome = told(backend, [text("a"), text("b"), twice, text("d")])
    assert pieces(outcome) == [("text", piece) for piece in "abcd"]
    assert [d.detail for d in outcome.diagnostics if d.code == "duplicate_key"] == ["text"]


def test_token_counts_that_are_broken(backend: str) -> None:
    broken = text("c").replace('"promptTokenCount": 5', '"promptTokenCount": 05')
    outcome = told(backend, [text("a"), text("b"), broken, text("d")])
    assert pieces(outcome)[:2] == [("text", "a"), ("text", "b")]
    assert ("text", "c") not in pieces(outcome)


def test_the_last_counts_are_the_event(backend: str) -> None:
    outcome = told(backend, [text("a", 1), text("b", 2), text("c", 3)])
    assert [event.output_tokens for event in outcome.events if isinstance(event, Usage)] == [3]
