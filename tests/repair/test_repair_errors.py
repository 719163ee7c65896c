"""Errors of gateways after a repair: in every dialect, they have the form that clients raise, both alone and in the
middle of a stream.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import streamweld as sw
from streamweld.errors import UpstreamError

from tests.support.backends import using

# The shape, and the message that a client must show.
SHAPES: list[tuple[dict[str, Any], str]] = [
    ({"base_resp": {"status_code": 1004, "status_msg": "login fail"}}, "login fail"),
    ({"code": 500, "msg": "busy"}, "busy"),
    ({"detail": "Overloaded"}, "Overloaded"),
    ({"statusCode": 429, "message": "slow"}, "slow"),
    ({"success": False, "errors": ["no route"]}, '{"success":false,"errors":["no route"]}'),
    ({"error_type": "overloaded", "error_message": "busy"}, "busy"),
    ({"__type": "ThrottlingException", "message": "slow"}, "slow"),
    ({"fault": {"faultstring": "quota", "detail": {"errorcode": "q"}}}, "quota"),
    ({"exception": "boom"}, '{"exception":"boom"}'),
    ({"errcode": 40001, "errmsg": "bad key"}, "bad key"),
    ({"ret": -1, "msg": "bad"}, "bad"),
    ({"retcode": 5, "msg": "bad"}, "bad"),
    ({"errno": 3, "msg": "bad"}, "bad"),
]
BEGINNINGS: dict[str, list[dict[str, Any]]] = {
    "chat": [
        {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 7,
            "model": "m",
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi"}, "finish_reason": None}],
        }
    ],
    "responses": [
        {
            "type": "response.created",
            "sequence_number": 0,
            "response": {
                "id": "r",
                "object": "response",
                "created_at": 1,
                "model": "m",
                "status": "in_progress",
                "output": [],
            },
        }
    ],
    "anthropic": [
        {
            "type": "message_start",
            "message": {
                "id": "m",
                "type": "message",
                "role": "assistant",
                "model": "c",
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {"input_tokens": 3, "output_tokens": 1},
            },
        }
    ],
    "gemini": [{"candidates": [{"content": {"parts": [{"text": "Hi"}], "role": "model"}, "index": 0}]}],
    "ai-sdk-parts": [{"type": "stream-start", "warnings": []}],
    "ai-sdk-ui": [{"type": "start"}],
}


def frame(dialect: str, payload: dict[str, Any]) -> bytes:
    named = dialect in ("responses", "anthropic") and "type" in payload
    name = f"event: {payload['type']}\n" if named else ""
    return f"{name}data: {json.dumps(payload)}\n\n".encode()


def raised(dialect: str, body: bytes) -> list[tuple[str | None, Any]]:
    """Return the errors that a client of the dialect raises: the name of the event, and the message."""
    found: list[tuple[str | None, Any]] = []
    for block in body.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines())
        if lines.get("data", "[DONE]") == "[DONE]":
            continue
        payload = json.loads(lines["data"])
        if dialect == "ai-sdk-ui":
            message = payload.get("errorText")
        else:
            message = (payload.get("error") or {}).get("message")
        if message is not None:
            found.append((lines.get("event"), message))
    return found


@pytest.mark.parametrize("is_alone", [True, False], ids=["alone", "mid-stream"])
@pytest.mark.parametrize("dialect", list(BEGINNINGS))
def test_clients_raise_an_error_of_another_shape(backend: str, dialect: Any, is_alone: bool) -> None:
    start = b"" if is_alone else b"".join(frame(dialect, one) for one in BEGINNINGS[dialect])
    name = "error" if dialect in ("responses", "anthropic") else None
    for shape, message in SHAPES:
        with using(backend):
            converter = sw.StreamConverter(source=dialect, target="same")
            out = converter.feed(start + frame(dialect, shape)) + converter.close()
            again = sw.StreamConverter(source=dialect, target="same")
            assert again.feed(out) + again.close() == out
        assert out.startswith(start)
        assert raised(dialect, out[len(start) :]) == [(name, message)], shape
        assert isinstance(converter.error, UpstreamError)
        assert converter.error.message == message
        assert converter.repaired
        assert not again.repaired


def test_an_error_that_a_policy_records_is_written_at_the_end(backend: str) -> None:
    chunk = BEGINNINGS["chat"][0]
    with using(backend):
        converter = sw.StreamConverter(source="chat", target="same", policy="salvage")
        body = frame("chat", chunk) + frame("chat", {"detail": "Overloaded"}) + frame("chat", chunk)
        out = converter.feed(body) + converter.close()
    assert raised("chat", out) == [(None, "Overloaded")]
    assert out.startswith(frame("chat", chunk))


@pytest.mark.parametrize("body", [b"[{} \n\ndata: ", b"[{}, overloaded\t", b"[{}\n\n,\nbusy,", b"[{}\n\nslow]"])
def test_a_bare_word_at_the_end_of_an_array_is_an_error(backend: str, body: bytes) -> None:
    """The byte after a word shows that the word is complete. A read may end between the word and this byte."""
    message = body[3:].strip(b", \t\n]").decode()
    for cut in range(len(body) + 1):
        with using(backend):
            converter = sw.StreamConverter(source="chat", target="same", seed="s")
        converter.feed(body[:cut])
        converter.feed(body[cut:])
        converter.close()
        assert isinstance(converter.error, UpstreamError), (cut, converter.error)
        assert converter.error.message == message
