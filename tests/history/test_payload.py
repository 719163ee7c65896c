"""Conversion of a request's other members, and of objects of the vendors' packages instead of plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from streamweld.history import check, convert

USER: Any = {"role": "user", "content": "hi"}
# Members of Chat Completions that have another name in other APIs, or do not exist there.
CHAT: Any = {
    "model": "m",
    "temperature": 0.5,
    "stream": True,
    "max_tokens": 9,
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "tool_choice": "auto",
    "stop": ["x"],
    "n": 2,
    "response_format": {"type": "json_object"},
    "stream_options": {"include_usage": True},
    "metadata": {"a": "b"},
}


@pytest.mark.parametrize(
    ("target", "kept"),
    [
        ("anthropic", {"model", "temperature", "stream", "max_tokens", "messages"}),
        ("responses", {"model", "temperature", "stream", "metadata", "input"}),
        ("gemini", {"model", "contents"}),
        ("ai-sdk-model", {"model", "temperature", "messages"}),
        ("ai-sdk-ui", {"messages"}),
    ],
)
def test_a_foreign_member_is_a_loss(target: Any, kept: set[str]) -> None:
    given = {**CHAT, "messages": [USER]}
    made = convert(given, source="openai-chat", target=target)
    assert set(made.payload) == kept
    lost = {loss.feature: loss.removed for loss in made.losses if loss.path.count("/") == 1}
    assert set(lost) == given.keys() - kept - {"messages"}
    assert lost["tool_choice"] == "auto"
    assert {f"/{name}" for name in lost} <= {loss.path for loss in made.losses}


def test_a_loss_may_equal_a_member_that_is_kept() -> None:
    given = {"model": "m", "stream": True, "logprobs": True, "temperature": 1, "n": 1, "messages": [USER]}
    made = convert(given, source="openai-chat", target="anthropic")
    assert made.payload == {"model": "m", "stream": True, "temperature": 1, "messages": [USER]}
    assert [loss.path for loss in made.losses] == ["/logprobs", "/n"]


def test_bedrock_names_its_model_otherwise() -> None:
    made = convert({"model": "m", "messages": [USER]}, source="openai-chat", target="bedrock-converse")
    assert made.payload == {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "hi"}]}]}
    back = convert(made.payload, source="bedrock-converse", target="openai-chat")
    assert back.payload["model"] == "m"
    assert made.losses == back.losses == ()


def test_the_same_api_keeps_what_nobody_knows() -> None:
    given = {**CHAT, "messages": [USER], "some_gateways_own": 1}
    assert convert(given, target="openai-chat").payload is given


def test_mistral_is_chat_with_other_members() -> None:
    given = {"model": "m", "messages": [USER], "logit_bias": {"1": 2}, "temperature": 1}
    made = convert(given, target="mistral")
    assert made.payload == {"model": "m", "messages": [USER], "temperature": 1}
    assert [(loss.feature, loss.path) for loss in made.losses] == [("logit_bias", "/logit_bias")]
    own = {"model": "m", "messages": [USER], "random_seed": 4, "safe_prompt": True}
    assert convert(own, target="mistral").payload is own


def test_members_are_lost_once_where_a_turn_is_added() -> None:
    shown = {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    first = {"messages": [USER, shown, {"role": "user", "content": "more"}, shown, USER, shown], "n": 2}
    before = convert(first, source="openai-chat", target="responses")
    more = {**first, "messages": [*first["messages"], USER]}
    again = convert(more, source="openai-chat", target="responses", previous=before)
    assert again == convert(more, source="openai-chat", target="responses")
    assert [loss.feature for loss in again.losses] == ["n"]
    assert again.payload["input"][1] is before.payload["input"][1]


# Objects of the vendors' packages


def chat_answer() -> Any:
    from openai.types.chat import ChatCompletionMessage

    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return ChatCompletionMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [call]})


def anthropic_answer() -> Any:
    from anthropic.types import Message

    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "EqQB"},
        {"type": "text", "text": "let me"},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
    ]
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {"id": "msg_1", "type": "message", "model": "claude-x", "stop_reason": "tool_use", "usage": usage}
    return Message.model_validate({**head, "role": "assistant", "content": blocks})


def test_a_chat_message_of_the_openai_package() -> None:
    result = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
    made = convert([USER, chat_answer(), result], target="openai-chat")
    function = {"name": "f", "arguments": "{}"}
    call = {"id": "c1", "type": "function", "function": function}
    assert made.payload["messages"][0] is USER
    assert made.payload["messages"][1] == {"role": "assistant", "content": None, "tool_calls": [call]}
    assert check([USER, chat_answer(), result], target="openai-chat") == []
    assert convert({"model": "m", "messages": [USER, chat_answer(), result]}, target="openai-chat").losses == ()


@pytest.mark.parametrize("whole", [True, False])
def test_a_message_and_its_blocks_of_the_anthropic_package(whole: bool) -> None:
    answer = anthropic_answer()
    shown = answer if whole else {"role": "assistant", "content": answer.content}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]}
    made = convert([USER, shown, result], target="anthropic")
    assert made.edits == ()
    assert made.payload["messages"][1] == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "EqQB"},
            {"type": "text", "text": "let me"},
            {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
        ],
    }
    assert check([USER, shown, result], target="anthropic") == []
    other = convert([USER, shown, result], target="openai-chat")
    assert other.payload["messages"][1]["tool_calls"][0]["function"]["name"] == "f"


def test_an_answer_of_the_responses_api_is_its_items() -> None:
    from openai.types.responses import Response

    item = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "f",
        "arguments": "{}",
        "status": "completed",
    }
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "parallel_tool_calls": True}
    answer = Response.model_validate({**head, "output": [item], "tool_choice": "auto", "tools": []})
    output = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
    made = convert([USER, answer, output], target="responses")
    assert made.payload["input"] == [USER, item, output]
    assert convert([USER, *answer.output, output], target="responses").payload["input"] == [USER, item, output]


def test_a_content_of_the_google_package() -> None:
    from google.genai.types import Content, Part

    shown = Content(role="model", parts=[Part(text="hello")])
    made = convert([{"role": "user", "parts": [{"text": "hi"}]}, shown], target="gemini")
    assert made.payload["contents"][1] == {"role": "model", "parts": [{"text": "hello"}]}


@dataclass
class Block:
    type: str
    text: str
    cache_control: Any = None


@dataclass
class Said:
    role: str
    content: list[Block] = field(default_factory=list)


def test_a_lone_object_and_dataclasses() -> None:
    made = convert(anthropic_answer(), source="anthropic", target="anthropic")
    assert made.edits == ()  # its call may still be waiting for its result
    assert made.payload["messages"][0]["content"][2]["id"] == "c1"
    payload_of = convert([USER, Said("assistant", [Block("text", "ok")]), USER], target="anthropic")
    assert payload_of.payload["messages"][1] == {"role": "assistant", "content": [{"type": "text", "text": "ok"}]}
