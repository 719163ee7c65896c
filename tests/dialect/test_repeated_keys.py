"""Duplicate keys in Responses payloads at several depths: which are reported, in what order, and the used value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from streamweld._backend import load
from streamweld.events import Diagnostic, TextDone
from streamweld.options import to_config

if TYPE_CHECKING:
    from streamweld._backend import Backend
    from streamweld.events import Event


def _read(backend: Backend, payload: str) -> list[Event]:
    parser = load(backend)("responses", to_config())
    return [*parser.feed(f"event: response.completed\ndata: {payload}\n\n".encode()), *parser.close()]


def test_what_is_inside_of_a_member_is_reported_before_it(backend: Backend) -> None:
    part = '{"type":"output_text","text":"a","text":"b"}'
    item = f'{{"type":"message","id":"m","id":"msg_1","content":[1,{part}],"content":[2,{part}]}}'
    response = f'{{"id":"r","id":"resp_1","output":[null,{item}],"status":"x","status":"completed"}}'
    events = _read(backend, f'{{"type":"response.completed","response":{response},"type":"response.completed"}}')
    repeated = [event.detail for event in events if isinstance(event, Diagnostic) and event.code == "duplicate_key"]
    assert repeated == ["id", "id", "text", "text", "content", "status", "type"]
    assert [event.text for event in events if isinstance(event, TextDone)] == ["b"]


def test_an_answer_of_many_items(backend: Backend) -> None:
    items = [
        {"type": "message", "id": f"msg_{number}", "content": [{"type": "output_text", "text": f"text {number}"}]}
        for number in range(200)
    ]
    response = {"id": "resp_1", "status": "completed", "output": items}
    events = _read(backend, json.dumps({"type": "response.completed", "response": response}))
    assert [event.text for event in events if isinstance(event, TextDone)] == [f"text {n}" for n in range(200)]
    assert not [event for event in events if isinstance(event, Diagnostic)]
