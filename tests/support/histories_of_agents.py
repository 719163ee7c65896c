"""Agent histories, one for each dialect: parallel calls, files, thinking, server tools, approvals.

The test data contain every kind of block of each dialect.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["HISTORIES"]

PIXEL: Final = "iVBORw0KGgo="
PDF: Final = "JVBERi0="
URL: Final = f"data:image/png;base64,{PIXEL}"


CHAT: Any = [
    {"role": "system", "content": "You are a research agent."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "Compare these two."},
            {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
        ],
    },
    {
        "role": "assistant",
        "content": "I search both.",
        "refusal": None,
        "annotations": [],
        "tool_calls": [
            {"id": "call_a", "type": "function", "function": {"name": "search", "arguments": '{"q":"x"}'}},
            {
                "id": "call_b",
                "type": "function",
                "function": {"name": "search", "arguments": '{"q": "y", "n": 12345678901234567890}'},
            },
        ],
    },
    {"role": "tool", "tool_call_id": "call_b", "content": "result y"},
    {"role": "tool", "tool_call_id": "call_a", "content": [{"type": "text", "text": "result x"}]},
    {"role": "assistant", "content": "They differ.", "name": "bot"},
    {"role": "user", "content": "thanks, run code", "name": "ann"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_c", "type": "custom", "custom": {"name": "python", "input": "print('hi')\n"}}],
    },
    {"role": "tool", "tool_call_id": "call_c", "content": "hi"},
]
DEEPSEEK: Any = [
    {"role": "user", "content": "q"},
    {
        "role": "assistant",
        "content": "",
        "reasoning_content": "think a",
        "tool_calls": [{"id": "call_00_x", "index": 0, "type": "function", "function": {"name": "f", "arguments": ""}}],
    },
    {"role": "tool", "tool_call_id": "call_00_x", "content": ""},
    {"role": "assistant", "content": "done", "reasoning_content": "think b"},
    {"role": "user", "content": "again"},
]
RESPONSES: Any = [
    {"role": "developer", "content": "be brief"},
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "hi"},
            {"type": "input_image", "image_url": "https://x.y/z.png", "detail": "auto"},
            {"type": "input_file", "file_id": "file-abc"},
        ],
    },
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "s1"}, {"type": "summary_text", "text": "s2"}],
        "encrypted_content": "gAAAA1",
    },
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "f",
        "arguments": '{"a":1}',
        "status": "completed",
    },
    {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "g", "arguments": "{}", "status": "completed"},
    {"type": "function_call_output", "call_id": "call_1", "output": "one"},
    {
        "type": "function_call_output",
        "call_id": "call_2",
        "output": [{"type": "input_text", "text": "two"}, {"type": "input_image", "image_url": URL}],
    },
    {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gAAAA2"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "weather"}},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "phase": "final_answer",
        "content": [
            {"type": "output_text", "text": "It is ", "annotations": [], "logprobs": []},
            {
                "type": "output_text",
                "text": "sunny",
                "annotations": [
                    {"type": "url_citation", "url": "https://a", "title": "t", "start_index": 0, "end_index": 3}
                ],
            },
        ],
    },
    {"role": "user", "content": "apply the patch"},
    {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_3", "name": "apply_patch", "input": "*** Begin Patch"},
    {"type": "custom_tool_call_output", "call_id": "call_3", "output": "ok"},
]
ANTHROPIC: Any = {
    "model": "claude-x",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "sys", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "q"},
                {
                    "type": "document",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
                    "title": "doc",
                    "citations": {"enabled": True},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hmm", "signature": "EqQBsig"},
                {"type": "redacted_thinking", "data": "EmwKred"},
                {"type": "text", "text": "let me look"},
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "srvtoolu_1",
                    "content": [
                        {"type": "web_search_result", "url": "https://u", "title": "t", "encrypted_content": "enc"}
                    ],
                },
                {
                    "type": "text",
                    "text": "found",
                    "citations": [
                        {
                            "type": "web_search_result_location",
                            "url": "https://u",
                            "title": "t",
                            "cited_text": "c",
                            "encrypted_index": "e",
                        }
                    ],
                },
                {"type": "tool_use", "id": "toolu_1", "name": "get", "input": {"a": 1}},
                {"type": "tool_use", "id": "toolu_2", "name": "get", "input": {"a": 2}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [
                        {"type": "text", "text": "r1"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                    ],
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_2",
                    "content": "bad",
                    "is_error": True,
                    "cache_control": {"type": "ephemeral"},
                },
                {"type": "text", "text": "go on"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "ok", "signature": "EqQBsig2"},
                {"type": "text", "text": "fin"},
            ],
        },
        {"role": "user", "content": "bye"},
    ],
    "tools": [{"name": "get", "input_schema": {"type": "object"}}],
}
GEMINI: Any = {
    "systemInstruction": {"parts": [{"text": "sys"}]},
    "contents": [
        {
            "role": "user",
            "parts": [
                {"text": "hi"},
                {"inlineData": {"mimeType": "audio/wav", "data": "UklG"}},
                {"fileData": {"mimeType": "video/mp4", "fileUri": "https://y"}},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": "thinking..", "thought": True},
                {"functionCall": {"name": "f", "args": {"x": 1}}, "thoughtSignature": "c2ln"},
                {"functionCall": {"name": "f", "args": {"x": 2}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "f", "response": {"output": "1"}}},
                {"functionResponse": {"name": "f", "response": {"output": "2"}}},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"executableCode": {"language": "PYTHON", "code": "1+1"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}},
                {"text": "it is 2", "thoughtSignature": "dGV4dA=="},
            ],
        },
        {"role": "user", "parts": [{"text": "thx"}]},
    ],
}
UI: Any = [
    {"id": "u0", "role": "system", "parts": [{"type": "text", "text": "sys"}]},
    {
        "id": "u1",
        "role": "user",
        "parts": [
            {"type": "text", "text": "hi"},
            {"type": "file", "mediaType": "image/png", "url": URL, "filename": "p.png"},
        ],
        "metadata": {"ts": 1},
    },
    {
        "id": "a1",
        "role": "assistant",
        "parts": [
            {"type": "step-start"},
            {
                "type": "reasoning",
                "text": "r",
                "state": "done",
                "providerMetadata": {"anthropic": {"signature": "sigX"}},
            },
            {"type": "text", "text": "ok", "state": "done"},
            {
                "type": "tool-weather",
                "toolCallId": "t1",
                "state": "output-available",
                "input": {"c": "B"},
                "output": {"t": 3},
            },
            {
                "type": "dynamic-tool",
                "toolName": "mcp",
                "toolCallId": "t2",
                "state": "output-error",
                "input": {"z": 1},
                "errorText": "boom",
            },
            {
                "type": "tool-pay",
                "toolCallId": "t3",
                "state": "approval-responded",
                "input": {"eur": 5},
                "approval": {"id": "ap1", "approved": True},
            },
            {
                "type": "tool-del",
                "toolCallId": "t4",
                "state": "output-denied",
                "input": {"f": "x"},
                "approval": {"id": "ap2", "approved": False, "reason": "no"},
            },
            {"type": "step-start"},
            {"type": "source-url", "sourceId": "s1", "url": "https://a", "title": "A"},
            {"type": "data-chart", "data": {"a": 1}},
            {"type": "text", "text": "done"},
        ],
    },
    {"id": "u2", "role": "user", "parts": [{"type": "text", "text": "next"}]},
    {
        "id": "a2",
        "role": "assistant",
        "parts": [
            {
                "type": "tool-ask",
                "toolCallId": "t5",
                "state": "approval-requested",
                "input": {"q": 1},
                "approval": {"id": "ap3"},
            },
            {"type": "tool-w", "toolCallId": "t6", "state": "input-streaming", "input": {"par": 1}},
        ],
    },
]
MODEL: Any = [
    {"role": "system", "content": "sys"},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "u"},
            {"type": "image", "image": "https://i/x.png"},
            {"type": "file", "data": PDF, "mediaType": "application/pdf", "filename": "f.pdf"},
        ],
    },
    {
        "role": "assistant",
        "content": [
            {
                "type": "reasoning",
                "text": "r",
                "providerOptions": {"openai": {"itemId": "rs_9", "reasoningEncryptedContent": "gAA"}},
            },
            {"type": "tool-call", "toolCallId": "c1", "toolName": "f", "input": {"a": 1}},
            {"type": "tool-approval-request", "approvalId": "ap", "toolCallId": "c1"},
            {
                "type": "tool-call",
                "toolCallId": "s1",
                "toolName": "web_search",
                "input": {"q": 1},
                "providerExecuted": True,
            },
            {
                "type": "tool-result",
                "toolCallId": "s1",
                "toolName": "web_search",
                "output": {"type": "json", "value": [1]},
            },
        ],
    },
    {
        "role": "tool",
        "content": [
            {"type": "tool-approval-response", "approvalId": "ap", "approved": True},
            {
                "type": "tool-result",
                "toolCallId": "c1",
                "toolName": "f",
                "output": {
                    "type": "content",
                    "value": [
                        {"type": "text", "text": "o"},
                        {"type": "media", "data": PIXEL, "mediaType": "image/png"},
                    ],
                },
            },
        ],
    },
    {"role": "user", "content": "next"},
]
BEDROCK: Any = {
    "system": [{"text": "sys"}, {"cachePoint": {"type": "default"}}],
    "messages": [
        {
            "role": "user",
            "content": [{"text": "u"}, {"document": {"format": "pdf", "name": "d", "source": {"bytes": PDF}}}],
        },
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "r", "signature": "s"}}},
                {"toolUse": {"toolUseId": "tooluse_1", "name": "f", "input": {"a": 1}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "toolResult": {
                        "toolUseId": "tooluse_1",
                        "content": [{"json": {"k": 1}}, {"text": "t"}],
                        "status": "error",
                    }
                },
                {"cachePoint": {"type": "default"}},
            ],
        },
        {"role": "assistant", "content": [{"text": "done "}]},
        {"role": "user", "content": [{"text": "more"}]},
    ],
}
# For each name: the dialect, and either the messages or the payload that contains them.
HISTORIES: Final[dict[str, tuple[str, Any]]] = {
    "chat": ("openai-chat", CHAT),
    "deepseek": ("openai-chat", DEEPSEEK),
    "responses": ("responses", RESPONSES),
    "anthropic": ("anthropic", ANTHROPIC),
    "gemini": ("gemini", GEMINI),
    "ai-sdk-ui": ("ai-sdk-ui", UI),
    "ai-sdk-model": ("ai-sdk-model", MODEL),
    "bedrock": ("bedrock-converse", BEDROCK),
}
