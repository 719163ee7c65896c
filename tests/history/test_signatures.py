"""Every signature and every encrypted reasoning that a conversion drops is in its losses or edits: for each source
dialect, gateway profile, and provider.
"""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import pytest
import streamweld
from streamweld._spec import load_history
from streamweld.history import convert

SIGNATURE = "U0lHTkFUVVJFLXZhbHVlLTAx"
CALL_SIGNATURE = "Q0FMTFNJRy12YWx1ZQ=="
ENCRYPTED = "RU5DLXZhbHVlLTAx"
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ANSWER = {"role": "tool", "tool_call_id": "call_1", "content": "1"}
QUESTION = {"role": "user", "content": "q"}
HISTORIES: dict[str, tuple[str, list[Any]]] = {
    "anthropic": (
        "anthropic",
        [
            QUESTION,
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": SIGNATURE},
                    {"type": "redacted_thinking", "data": ENCRYPTED},
                    {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"}]},
        ],
    ),
    "responses": (
        "responses",
        [
            QUESTION,
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "hm"}],
                "encrypted_content": ENCRYPTED,
            },
            {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}", "id": "fc_1"},
            {"type": "function_call_output", "call_id": "call_1", "output": "1"},
        ],
    ),
    "gemini": (
        "gemini",
        [
            {"role": "user", "parts": [{"text": "q"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True},
                    {"text": "a", "thoughtSignature": SIGNATURE},
                    {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": CALL_SIGNATURE},
                ],
            },
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"r": 1}}}]},
        ],
    ),
    "reasoning_details": (
        "openai-chat",
        [
            QUESTION,
            {
                "role": "assistant",
                "content": "a",
                "reasoning_details": [
                    {
                        "type": "reasoning.text",
                        "text": "hm",
                        "signature": SIGNATURE,
                        "format": "anthropic-claude-v1",
                        "index": 0,
                    },
                    {
                        "type": "reasoning.encrypted",
                        "data": ENCRYPTED,
                        "format": "openai-responses-v1",
                        "index": 1,
                        "id": "rs_1",
                    },
                ],
                "tool_calls": [CALL],
            },
            ANSWER,
        ],
    ),
    "thinking_blocks": (
        "openai-chat",
        [
            QUESTION,
            {
                "role": "assistant",
                "content": "a",
                "reasoning_content": "hm",
                "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": SIGNATURE}],
                "tool_calls": [CALL],
            },
            ANSWER,
        ],
    ),
    "extra_content": (
        "openai-chat",
        [
            QUESTION,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [CALL | {"extra_content": {"google": {"thought_signature": CALL_SIGNATURE}}}],
            },
            ANSWER,
        ],
    ),
    "ai-sdk-model": (
        "ai-sdk-model",
        [
            QUESTION,
            {
                "role": "assistant",
                "content": [
                    {"type": "reasoning", "text": "hm", "providerOptions": {"anthropic": {"signature": SIGNATURE}}},
                    {
                        "type": "tool-call",
                        "toolCallId": "call_1",
                        "toolName": "f",
                        "input": {},
                        "providerOptions": {"google": {"thoughtSignature": CALL_SIGNATURE}},
                    },
                ],
            },
            {
                "role": "tool",
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": "call_1",
                        "toolName": "f",
                        "output": {"type": "text", "value": "1"},
                    }
                ],
            },
        ],
    ),
}
PROFILES = [
    (f"{profile['name']}@{profile['date']}", target)
    for profile in load_history("gateways")["profiles"]
    for target in profile["targets"]
]


@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize("provider", [None, "anthropic", "openai", "google"])
def test_no_signature_is_dropped_in_silence(name: str, provider: str | None) -> None:
    source, messages = HISTORIES[name]
    for gateway, target in PROFILES:
        made = convert(messages, source=source, target=target, gateway=gateway, provider=provider)  # type: ignore[arg-type]
        reported = str([one.to_dict() for one in (*made.losses, *made.edits)])
        for value in (SIGNATURE, CALL_SIGNATURE, ENCRYPTED):
            if value in str(messages):
                written = value in str(made.payload) or str(b64decode(value)) in str(made.payload)
                assert written or value in reported, (gateway, target, value)


def test_blocks_of_a_chat_stream_are_replayed_in_order() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": SIGNATURE},
        {"type": "redacted_thinking", "data": ENCRYPTED},
        {"type": "thinking", "thinking": "so", "signature": CALL_SIGNATURE},
    ]
    deltas: list[Any] = [{"thinking_blocks": [block]} for block in blocks]
    payloads = [{"choices": [{"index": 0, "delta": delta}]} for delta in [*deltas, {"content": "a"}]]
    stream = "".join([f"data: {json.dumps(one)}\n\n" for one in payloads]) + "data: [DONE]\n\n"
    made = convert([QUESTION, streamweld.parse(stream.encode())], target="anthropic")
    assert made.payload["messages"][1]["content"] == [*blocks, {"type": "text", "text": "a"}]
    assert made.losses == ()


@pytest.mark.parametrize("target", ["anthropic", "gemini", "bedrock-converse", "ai-sdk-model", "ai-sdk-ui"])
@pytest.mark.parametrize("text", ['{"a":1,"a":2}', '{"a":{"b":1,"\\u0062":2}}', '{"l":[{"a":1,"a":1}]}'])
def test_a_repeated_key_is_a_loss_where_arguments_are_an_object(target: Any, text: str) -> None:
    messages = [
        QUESTION,
        {"role": "assistant", "content": None, "tool_calls": [CALL | {"function": {"name": "f", "arguments": text}}]},
        ANSWER,
    ]
    losses = convert(messages, source="openai-chat", target=target).losses
    assert [(loss.feature, loss.path, loss.removed) for loss in losses] == [("arguments", "/1/tool_calls/0", text)]
    assert convert(messages, source="openai-chat", target="responses").losses == ()
