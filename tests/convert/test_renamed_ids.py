"""Tool call ids that a converter renamed (`tool_ids="target"`) get their old form in the next request."""

from __future__ import annotations

import json
from typing import Any

import pytest
import streamweld as sw
from hypothesis import given
from hypothesis import strategies as st
from streamweld import history
from streamweld._pure.encode.common.tool_ids import escaped, source_tool_id

from tests.support.backends import using

KIMI_ID = "functions.add:0"


def answer(call_id: str) -> bytes:
    call = {"index": 0, "id": call_id, "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
    chunks = [{"delta": {"role": "assistant", "tool_calls": [call]}}, {"delta": {}, "finish_reason": "tool_calls"}]
    events = [json.dumps({"choices": [{"index": 0, **chunk}]}) for chunk in chunks]
    return "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]).encode()


def next_request(call_id: str) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "add"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": "add", "input": {"a": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": "2"}]},
    ]


def test_a_gateway_gets_its_own_id_back(backend: str) -> None:
    with using(backend):
        converter = sw.StreamConverter(source="chat", target="anthropic", tool_ids="target")
        made = converter.feed(answer(KIMI_ID)) + converter.close()
    (call,) = sw.parse(made, dialect="anthropic").tool_calls
    assert call.call_id == "swid_functions_2eadd_3a0"
    assert converter.tool_ids == {call.call_id: KIMI_ID}
    converted = history.convert(next_request(call.call_id), source="anthropic", target="openai-chat")
    ids = [call["id"] for call in converted.payload["messages"][1]["tool_calls"]]
    assert ids == [KIMI_ID] == [converted.payload["messages"][2]["tool_call_id"]]
    assert [edit.rule for edit in converted.edits] == ["tool_id"]


def test_an_api_that_rejects_the_old_id_gets_the_new_one() -> None:
    new = escaped(KIMI_ID)
    converted = history.convert(next_request(new), source="anthropic", target="anthropic")
    assert converted.payload["messages"][1]["content"][0]["id"] == new


@given(st.text())
def test_every_id_can_be_read_again(call_id: str) -> None:
    assert source_tool_id(escaped(call_id)) == call_id


@pytest.mark.parametrize("call_id", ["call_1", "swid_", "swid_a_", "swid_a_2", "swid_a_ZZ", "swid__ff", "swid_a_61"])
def test_other_ids_stay(call_id: str) -> None:
    """These ids cannot be the result of `escaped` for a non-empty id."""
    assert source_tool_id(call_id) in (call_id, "")
