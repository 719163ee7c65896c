"""Objects of the vendors' packages in a request: responses used as messages, blocks, models of options, dataclasses."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import anthropic
import anthropic.types
import openai
import openai.types.chat
import openai.types.responses
import pytest
from google.genai import types as google
from streamweld import requests
from streamweld._sdk_objects import plain
from streamweld.errors import HistoryError, UsageError
from streamweld.history import check, convert
from streamweld.history.payload import plain_items

ASKED: Any = {"role": "user", "content": "hi"}
CALLED: Any = {"id": "call_1", "type": "function", "function": {"name": "get", "arguments": "{}"}}
CHAT_ANSWER: Any = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": None, "tool_calls": [CALLED]},
        }
    ],
}
CLAUDE_ANSWER: Any = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "EqQBsig"},
        {"type": "text", "text": "I look.", "citations": None},
        {"type": "tool_use", "id": "toolu_1", "name": "get", "input": {"a": 1}},
    ],
}
RESPONSE: Any = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "completed",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "get",
            "arguments": "{}",
            "status": "completed",
        },
    ],
}
GEMINI_ANSWER: Any = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [{"functionCall": {"name": "get", "args": {"a": 1}}, "thoughtSignature": "c2ln"}],
            }
        }
    ]
}


def test_a_message_of_chat() -> None:
    answer = openai.types.chat.ChatCompletion.model_validate(CHAT_ANSWER)
    result = {"role": "tool", "tool_call_id": "call_1", "content": "ok"}
    for message in (answer, answer.choices[0].message):
        done = requests.convert(
            {"model": "m", "max_tokens": 9, "messages": [ASKED, message, result]}, source="chat", target="anthropic"
        )
        called = done.payload["messages"][1]["content"]
        assert called == [{"type": "tool_use", "id": "call_1", "name": "get", "input": {}}]


def test_a_message_and_its_blocks_of_anthropic() -> None:
    answer = anthropic.types.Message.model_validate(CLAUDE_ANSWER)
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}]}
    for message in (answer, {"role": "assistant", "content": answer.content}):
        given = {"model": "claude-x", "max_tokens": 9, "messages": [ASKED, message, result]}
        done = requests.convert(given, source="anthropic", target="anthropic")
        thinking, text, call = done.payload["messages"][1]["content"]
        assert thinking == CLAUDE_ANSWER["content"][0]
        assert text["text"] == "I look."
        assert call == CLAUDE_ANSWER["content"][2]
        assert done.payload["messages"][1].keys() == {"role", "content"}


def test_a_response() -> None:
    answer = openai.types.responses.Response.model_validate(RESPONSE)
    result = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
    requested = {"role": "user", "content": "hi"}
    for items in ([requested, answer, result], [requested, *answer.output, result]):
        done = requests.convert({"model": "m", "input": items}, source="responses", target="responses")
        assert done.payload["input"][1:3] == RESPONSE["output"]


def test_an_answer_of_gemini() -> None:
    answer = google.GenerateContentResponse.model_validate(GEMINI_ANSWER)
    result = google.Content(
        role="user", parts=[google.Part(function_response=google.FunctionResponse(name="get", response={"ok": 1}))]
    )
    requested = google.Content(role="user", parts=[google.Part(text="hi")])
    config = google.GenerateContentConfig(
        temperature=0.5,
        tools=[google.Tool(function_declarations=[google.FunctionDeclaration(name="get")])],
        thinking_config=google.ThinkingConfig(include_thoughts=True),
    )
    given = {"model": "gemini-3-pro-preview", "contents": [requested, answer, result], "config": config}
    done = requests.convert(given, source="gemini", target="openai-chat")
    assert done.payload["temperature"] == 0.5
    assert done.payload["tools"] == [{"type": "function", "function": {"name": "get"}}]
    call = done.payload["messages"][1]["tool_calls"][0]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("get", {"a": 1})
    assert done.payload["messages"][2]["role"] == "tool"


def test_a_dataclass() -> None:
    @dataclass
    class Asked:
        role: str
        content: str
        name: str | None = None

    done = requests.convert(
        {"model": "m", "max_tokens": 9, "messages": [Asked("user", "hi")]}, source="chat", target="anthropic"
    )
    (message,) = done.payload["messages"]
    assert message["role"] == "user"
    assert "hi" in json.dumps(message["content"])


def test_plain_data_stays_the_same_object() -> None:
    given = {"messages": [ASKED, {"role": "assistant", "content": [{"type": "text", "text": "x"}]}], "n": 1}
    assert plain(given) is given
    assert plain_items(given["messages"]) == (given["messages"], {})
    assert plain_items(given["messages"])[0] is given["messages"]


def test_paths_point_into_the_list_of_the_caller() -> None:
    """A response stands for several items, but the paths of edits, losses and violations are those of the caller."""
    response = openai.types.responses.Response.model_validate(RESPONSE)
    result = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
    file = {"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}
    given = {"model": "m", "input": [ASKED, response, result, file, response]}
    for done in (
        requests.convert(given, source="responses", target="openai-chat", gateway="deepseek"),
        convert(given, source="responses", target="openai-chat", gateway="deepseek"),
    ):
        assert {loss.path for loss in done.losses} == {"/input/1/output/0", "/input/4/output/0"}
        assert [(edit.rule, edit.path) for edit in done.edits] == [
            ("call_unanswered", "/input/4/output/1"),
            ("tool_id", "/input/4/output/1"),
            ("content_kind", "/input/3/content/0"),
        ]
    found = check([ASKED, response, {**result, "call_id": "call_2"}], target="responses")
    assert [(one.rule, one.path) for one in found] == [("call_unanswered", "/1/output/1"), ("result_unmatched", "/2")]
    with pytest.raises(HistoryError) as error:
        convert([ASKED, response, {"role": "elf", "content": "x"}], source="responses", target="openai-chat")
    assert error.value.path == "/2/role"
    asked = google.Content(role="user", parts=[google.Part(text="hi")])
    answer = google.GenerateContentResponse.model_validate(GEMINI_ANSWER)
    done = convert({"contents": [asked, answer]}, source="gemini", target="openai-chat")
    assert [loss.path for loss in done.losses] == ["/contents/1/candidates/0/content/parts/0"]


def test_bytes_of_gemini_are_base64() -> None:
    part = google.Part(inline_data=google.Blob(mime_type="image/png", data=b"\x89PNG"))
    assert plain(part)["inlineData"] == {"mimeType": "image/png", "data": "iVBORw=="}


def test_what_is_no_request() -> None:
    for wrong in ([ASKED], "hi", 7, None):
        with pytest.raises(UsageError):
            requests.convert(wrong, target="anthropic")
    with pytest.raises(UsageError):
        requests.convert({"model": "m"}, target="anthropic")


@pytest.mark.parametrize("absent", [openai.NOT_GIVEN, openai.omit, anthropic.NOT_GIVEN, anthropic.omit])
def test_an_argument_that_is_not_given_is_absent(absent: Any) -> None:
    given = {"messages": [ASKED], "tools": absent, "temperature": absent, "metadata": {"k": absent}}
    done = requests.convert(given, source="openai-chat", target="anthropic")
    assert (done.payload, done.losses) == ({"messages": [ASKED], "max_tokens": 8192}, ())
    assert convert({"messages": [ASKED], "tools": absent}, target="gemini").losses == ()
    same = requests.convert({"messages": [ASKED], "tools": absent}, source="openai-chat", target="openai-chat")
    assert same.payload == {"messages": [ASKED]}


def test_the_id_of_reasoning_details_is_reported() -> None:
    detail = {"type": "reasoning.text", "text": "t", "id": "rid", "format": "anthropic-claude-v1", "signature": "c2ln"}
    given = [ASKED, {"role": "assistant", "content": "a", "reasoning_details": [detail]}, ASKED]
    for target in ("anthropic", "bedrock-converse"):
        done = convert(given, source="openai-chat", target=target, provider="anthropic")
        assert "rid" in [loss.removed for loss in done.losses] + [str(edit.removed) for edit in done.edits], target
    assert not convert(given, source="openai-chat", target="openai-chat", gateway="openrouter").losses
