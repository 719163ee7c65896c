"""Detection of the dialect, payloads that are held until then, and bodies that are not event streams, with both
backends.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamweld.errors import LimitExceeded, TruncatedStream, UnknownDialect, UpstreamError

from tests.support.harness import Outcome, bytewise, cut_at, difference, read

AUTO: dict[str, Any] = {"dialect": "auto"}
CHAT = {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]}
GEMINI = {"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP", "index": 0}]}


def line(value: object) -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


def stream(*payloads: object) -> bytes:
    return b"".join(line(payload) for payload in payloads)


def every_way(backend: str, body: bytes, options: dict[str, Any] = AUTO) -> Outcome:
    """Read the stream at once, and check that reading it byte by byte, or split in two at any place, gives the same
    result.
    """
    whole = read(backend, [body], options)
    assert difference(whole.facts(), read(backend, bytewise(body), options).facts()) is None
    for place in range(1, len(body), max(1, len(body) // 60)):
        assert difference(whole.facts(), read(backend, cut_at(body, place), options).facts()) is None, place
    return whole


@pytest.mark.parametrize(
    ("dialect", "payload"),
    [
        ("chat", CHAT),
        ("chat", {"error": {"message": "no"}}),
        ("responses", {"type": "response.created", "response": {"id": "r"}}),
        ("responses", {"object": "response", "status": "completed", "output": []}),
        ("responses", {"type": "error", "message": "no", "sequence_number": 3}),
        ("anthropic", {"type": "message_start", "message": {"id": "m"}}),
        ("anthropic", {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}),
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error", "message": "no"}}),
        ("gemini", GEMINI),
        ("gemini", {"promptFeedback": {"blockReason": "SAFETY"}}),
        ("gemini", {"response": GEMINI}),
        ("ai-sdk-ui", {"type": "start", "messageId": "m"}),
        ("ai-sdk-ui", {"type": "start-step"}),
        ("ai-sdk-ui", {"type": "error", "errorText": "no"}),
        ("ai-sdk-parts", {"type": "stream-start", "warnings": []}),
        ("ai-sdk-parts", {"type": "text-start", "id": "0"}),
        ("ai-sdk-parts", {"type": "start-step", "request": {}, "warnings": []}),
    ],
)
def test_one_payload_tells(backend: str, dialect: str, payload: Any) -> None:
    assert read(backend, [line(payload)], AUTO).dialect == dialect


@pytest.mark.parametrize("first", [{"type": "ping"}, {}, {"type": "vendor.metrics", "x": 1}, [1]])
def test_what_tells_nothing_waits(backend: str, first: Any) -> None:
    outcome = every_way(backend, stream(first, first, CHAT, b"[DONE]"))
    assert (outcome.dialect, outcome.response.text, outcome.error) == ("chat", "hi", None)
    unknown = [e for e in outcome.events if type(e).__name__ == "Unknown"]
    assert len(unknown) == 2  # the held payloads are decoded later, not lost


def test_a_bare_start_waits_for_what_follows(backend: str) -> None:
    text = ({"type": "text-start", "id": "0"}, {"type": "text-delta", "id": "0", "delta": "hi"})
    outcome = every_way(backend, stream({"type": "start"}, *text, {"type": "finish"}, b"[DONE]"))
    assert (outcome.dialect, outcome.response.text) == ("ai-sdk-ui", "hi")
    outcome = every_way(backend, stream({"type": "start"}, {"type": "start-step", "request": {}}))
    assert outcome.dialect == "ai-sdk-parts"


def test_places_of_what_waited_are_its_own(backend: str) -> None:
    body = stream({"type": "ping", "n": 1 << 70}, CHAT, b"[DONE]")
    found = [d for d in every_way(backend, body).diagnostics if d.code == "numeric_overflow"]
    assert [(d.byte_offset, d.event_ordinal) for d in found] == [(0, 0)]


def test_nothing_ever_tells(backend: str) -> None:
    outcome = every_way(backend, stream({"type": "ping"}, {"words": 1}))
    assert isinstance(outcome.error, UnknownDialect)
    assert outcome.error.seen == ("type", "words")
    assert (outcome.error.byte_offset, outcome.error.event_ordinal) == (0, 0)


def test_waiting_has_an_end(backend: str) -> None:
    outcome = every_way(backend, stream(*[{"type": "ping"}] * 16, {"type": "late"}, CHAT))
    assert isinstance(outcome.error, UnknownDialect)
    assert outcome.error.event_ordinal == 16
    assert read(backend, [stream(*[{"type": "ping"}] * 16, CHAT, b"[DONE]")], AUTO).error is None
    big = read(backend, [stream({"words": "x" * 70_000})], AUTO)
    assert isinstance(big.error, UnknownDialect)


def test_an_event_name_alone_tells_nothing(backend: str) -> None:
    outcome = read(backend, [b"event: message_start\n" + line({"x": 1})], AUTO)
    assert isinstance(outcome.error, UnknownDialect)


def test_json_lines(backend: str) -> None:
    parts = [{"type": "stream-start", "warnings": []}, {"type": "text-start", "id": "0"},
             {"type": "text-delta", "id": "0", "delta": "hi"}, {"type": "text-end", "id": "0"},
             {"type": "finish", "finishReason": "stop", "usage": {}}]  # fmt: skip
    body = b"".join(json.dumps(part).encode() + b"\n" for part in parts)
    for text in (body, body.rstrip(b"\n")):
        outcome = every_way(backend, text)
        assert (outcome.dialect, outcome.response.text) == ("ai-sdk-parts", "hi")
        assert [d.code for d in outcome.diagnostics] == ["json_lines_body"]
    mixed = json.dumps(CHAT).encode() + b"\n" + line(CHAT) + json.dumps(CHAT).encode() + b"\n\n" + line(b"[DONE]")
    codes = [d.code for d in every_way(backend, mixed).diagnostics]
    assert codes[:2] == ["json_lines_body", "stray_payload"]


@pytest.mark.parametrize("form", ["[{0}]", "[{0},{0}]", "\ufeff \n[\n{0}\r\n,\n{0}\n]\n", "[{0} , {0}]  "])
def test_a_json_array(backend: str, form: str) -> None:
    text = {"candidates": [{"content": {"parts": [{"text": 'a"]}\\'}]}, "index": 0, "finishReason": "STOP"}]}
    outcome = every_way(backend, form.replace("{0}", json.dumps(text)).encode())
    count = form.count("{0}")
    assert (outcome.dialect, outcome.response.text) == ("gemini", 'a"]}\\' * count)
    assert outcome.error is None
    assert [d.code for d in outcome.diagnostics].count("array_body") == 1
    assert outcome.diagnostics[0].byte_offset == len(form.partition("{0}")[0].encode())


def test_a_json_array_that_is_cut(backend: str) -> None:
    body = f"[{json.dumps(GEMINI | {'candidates': [{'content': {'parts': [{'text': 'hi'}]}, 'index': 0}]})}".encode()
    for tail in (b"", b",", b",{", b',{"x":"\xc3'):
        outcome = every_way(backend, body + tail)
        assert isinstance(outcome.error, TruncatedStream)
        assert outcome.error.where == ("mid_utf8" if tail.endswith(b"\xc3") else "mid_event")
        assert outcome.response.text == "hi"


def test_an_array_keeps_the_caps(backend: str) -> None:
    from streamweld.options import Limits

    body = b"[" + json.dumps(GEMINI).encode() + b',{"x":"' + b"y" * 500 + b'"}]'
    outcome = every_way(backend, body, {**AUTO, "limits": Limits(max_event_bytes=300)})
    assert isinstance(outcome.error, LimitExceeded)
    assert (outcome.error.limit_name, outcome.error.observed) == ("max_event_bytes", 301)
    assert outcome.response.text == "hi"


def test_brackets_that_begin_no_array(backend: str) -> None:
    assert every_way(backend, b"[DONE]\n\n").response.completeness == "complete"
    assert every_way(backend, b"\n\n" + stream(CHAT, b"[DONE]")).response.text == "hi"


def test_an_error_in_an_array(backend: str) -> None:
    outcome = every_way(backend, b'[{"error":{"code":429,"message":"slow down","status":"X"}}]')
    assert isinstance(outcome.error, UpstreamError)
    assert outcome.error.message == "slow down"


def test_a_wrong_dialect_is_told(backend: str) -> None:
    for given in ("responses", "anthropic", "gemini", "ai-sdk-ui", "ai-sdk-parts"):
        outcome = every_way(backend, stream({"type": "ping"}, CHAT, b"[DONE]"), {"dialect": given})
        assert isinstance(outcome.error, UnknownDialect)
        assert (outcome.error.rule, outcome.error.detail) == ("other_dialect", "chat")
        assert outcome.error.seen == ("choices", "type")
        assert (outcome.error.byte_offset, outcome.error.event_ordinal) == (24, 1)
        assert (outcome.response.dialect, outcome.response.completeness) == (given, "truncated")
        outcome = every_way(backend, stream(CHAT, b"[DONE]"), {"dialect": given, "policy": "salvage"})
        assert outcome.error is None
        assert [d.detail for d in outcome.diagnostics if d.code == "other_dialect"] == ["chat"]


@pytest.mark.parametrize("given", ["auto", "gemini"])
def test_lines_that_look_like_whole_answers(backend: str, given: str) -> None:
    """The text after the first line decides whether a body is one response or JSON lines."""
    one = json.dumps(GEMINI).encode()
    options = {"dialect": given}
    for tail, text, codes in (
        (b"", "hi", ["body_not_streamed"]),
        (b"\n\n", "hi", ["body_not_streamed"]),
        (b"\n" + one, "hihi", ["json_lines_body", "no_terminal_marker"]),
        (b"\n: note\n\n" + one + b"\n", "hihi", ["json_lines_body", "no_terminal_marker"]),
        (b"\n\n" + line(GEMINI), "hihi", ["json_lines_body", "no_terminal_marker"]),
        (b"\n" + one[:-9], "hi", ["json_lines_body"]),
    ):
        outcome = every_way(backend, one + tail, options)
        assert (outcome.response.text, [d.code for d in outcome.diagnostics]) == (text, codes), tail
        shown = {d.code: (d.byte_offset, d.event_ordinal) for d in outcome.diagnostics}
        assert shown[codes[0]] == (0, 0)
