"""Histories that only one kind of agent creates: approvals, hosted and custom items, carriers of signatures,
compaction.

Each is a row `(name, dialect, request)`; tokens (`tok…`) must not be dropped without a report.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["SPECIAL"]


def ui(*parts: Any, then: tuple[Any, ...] = ()) -> dict[str, Any]:
    messages = [
        {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Please tokask."}]},
        {"id": "a1", "role": "assistant", "parts": [{"type": "step-start"}, *parts]},
        *then,
    ]
    return {"id": "c1", "trigger": "submit-message", "messages": messages}


def pay(state: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool-pay", "toolCallId": "call_p", "state": state, "input": {"to": "tokarg"}, **more}


BYE: Final = {"id": "u2", "role": "user", "parts": [{"type": "text", "text": "And toknext?"}]}
APPROVALS: Final = [
    ("requested", ui(pay("approval-requested", approval={"id": "ap1"}))),
    ("approved", ui(pay("approval-responded", approval={"id": "ap1", "approved": True}))),
    (
        "approved-with-reason",
        ui(pay("approval-responded", approval={"id": "ap1", "approved": True, "reason": "tokwhy"})),
    ),
    ("denied", ui(pay("approval-responded", approval={"id": "ap1", "approved": False, "reason": "tokwhy"}))),
    (
        "output-denied",
        ui(pay("output-denied", approval={"id": "ap1", "approved": False, "reason": "tokwhy"}), then=(BYE,)),
    ),
    (
        "approved-and-run",
        ui(pay("output-available", approval={"id": "ap1", "approved": True}, output={"ok": "tokout"}), then=(BYE,)),
    ),
    (
        "dynamic",
        ui(
            {
                "type": "dynamic-tool",
                "toolName": "mcp_pay",
                "toolCallId": "call_d",
                "state": "approval-responded",
                "input": {"to": "tokarg"},
                "approval": {"id": "ap2", "approved": True},
            }
        ),
    ),
]


def model(*messages: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "Please tokask."}, *messages]}


MODEL_CALL: Final = {"type": "tool-call", "toolCallId": "call_p", "toolName": "pay", "input": {"to": "tokarg"}}
MODEL_ASKED: Final = {
    "role": "assistant",
    "content": [MODEL_CALL, {"type": "tool-approval-request", "approvalId": "ap1", "toolCallId": "call_p"}],
}


def model_answer(approved: bool, **more: Any) -> dict[str, Any]:
    response = {"type": "tool-approval-response", "approvalId": "ap1", "approved": approved, **more}
    return {"role": "tool", "content": [response]}


def responses(*items: Any, **more: Any) -> dict[str, Any]:
    request_sent = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Please tokask."}]}
    return {"model": "gpt-5.6-codex", "input": [request_sent, *items], "store": False, **more}


LOCAL_SHELL: Final = {
    "type": "local_shell_call",
    "id": "lsh_1",
    "call_id": "call_s",
    "status": "completed",
    "action": {"type": "exec", "command": ["ls", "tokdir"], "env": {}},
}
SHELL: Final = {
    "type": "shell_call",
    "id": "sh_1",
    "call_id": "call_s",
    "status": "completed",
    "action": {"commands": ["ls tokdir"], "timeout_ms": 1000, "max_output_length": None},
}
CODEX: Final = [
    (
        "codex/apply-patch-custom",
        responses(
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAAtok1=="},
            {
                "type": "custom_tool_call",
                "id": "ctc_1",
                "status": "completed",
                "call_id": "call_c",
                "name": "apply_patch",
                "input": "*** Begin Patch\n*** Add File: tokfile\n*** End Patch",
            },
            {"type": "custom_tool_call_output", "call_id": "call_c", "output": "tokdone"},
            tools=[
                {
                    "type": "custom",
                    "name": "apply_patch",
                    "description": "Patch.",
                    "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "x"'},
                }
            ],
        ),
    ),
    (
        "codex/local-shell",
        responses(
            LOCAL_SHELL,
            {"type": "local_shell_call_output", "id": "call_s", "output": "tokdone"},
            tools=[{"type": "local_shell"}],
        ),
    ),
    (
        "codex/local-shell-call-id",  # as in OpenAI's guide: the output has no id of its own
        responses(
            LOCAL_SHELL,
            {"type": "local_shell_call_output", "id": "lsho_1", "call_id": "call_s", "output": "tokdone"},
            tools=[{"type": "local_shell"}],
        ),
    ),
    (
        "codex/shell-silent",
        responses(
            SHELL,
            {"type": "shell_call_output", "call_id": "call_s", "output": []},
            tools=[{"type": "shell"}],
        ),
    ),
    (
        "codex/shell",
        responses(
            SHELL,
            {
                "type": "shell_call_output",
                "call_id": "call_s",
                "output": [{"stdout": "tokdone", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            },
            tools=[{"type": "shell"}],
        ),
    ),
    (
        "codex/apply-patch-hosted",
        responses(
            {
                "type": "apply_patch_call",
                "id": "apc_1",
                "call_id": "call_a",
                "status": "completed",
                "operation": {"type": "create_file", "path": "tokfile", "diff": "+tokline"},
            },
            {"type": "apply_patch_call_output", "call_id": "call_a", "status": "completed", "output": "tokdone"},
            tools=[{"type": "apply_patch"}],
        ),
    ),
    (
        "codex/web-search",
        responses(
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "search", "query": "tokquery"},
            },
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [
                    {
                        "type": "output_text",
                        "text": "tokfound",
                        "annotations": [
                            {
                                "type": "url_citation",
                                "url": "https://a.example",
                                "title": "A",
                                "start_index": 0,
                                "end_index": 3,
                            }
                        ],
                    }
                ],
            },
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "toknext"}]},
            tools=[{"type": "web_search"}],
        ),
    ),
    (
        "codex/compaction",
        responses(
            {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAAcmp=="},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "toknext"}]},
        ),
    ),
    (
        "agents-sdk/computer",
        responses(
            {
                "type": "computer_call",
                "id": "cu_1",
                "call_id": "call_u",
                "status": "completed",
                "action": {"type": "click", "button": "left", "x": 1, "y": 2},
                "pending_safety_checks": [],
            },
            {
                "type": "computer_call_output",
                "call_id": "call_u",
                "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0KGgo="},
            },
            tools=[
                {"type": "computer_use_preview", "display_width": 800, "display_height": 600, "environment": "browser"}
            ],
        ),
    ),
    (
        "agents-sdk/mcp-approval",
        responses(
            {
                "type": "mcp_approval_request",
                "id": "mcpr_1",
                "name": "tokname",
                "arguments": '{"a":"tokarg"}',
                "server_label": "s",
            },
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        ),
    ),
    (
        "agents-sdk/previous-response",
        {
            "model": "gpt-5.6",
            "previous_response_id": "resp_1",
            "input": [{"type": "function_call_output", "call_id": "call_1", "output": "tokdone"}],
        },
    ),
    (
        "agents-sdk/code-interpreter",
        responses(
            {
                "type": "code_interpreter_call",
                "id": "ci_1",
                "status": "completed",
                "container_id": "cntr_1",
                "code": "print('tokcode')",
                "outputs": [{"type": "logs", "logs": "tokdone"}],
            },
            {"type": "message", "role": "user", "content": "toknext"},
        ),
    ),
]


def anthropic(*messages: Any, **more: Any) -> dict[str, Any]:
    request_sent = {"role": "user", "content": "Please tokask."}
    return {"model": "claude-opus-4-6", "max_tokens": 4096, "messages": [request_sent, *messages], **more}


CLAUDE: Final = [
    (
        "claude-code/server-tool",
        anthropic(
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "tokthink", "signature": "EqQBsigtok=="},
                    {
                        "type": "server_tool_use",
                        "id": "srvtoolu_1",
                        "name": "web_search",
                        "input": {"query": "tokquery"},
                    },
                    {
                        "type": "web_search_tool_result",
                        "tool_use_id": "srvtoolu_1",
                        "content": [
                            {
                                "type": "web_search_result",
                                "url": "https://a.example",
                                "title": "toktitle",
                                "encrypted_content": "enc",
                                "page_age": None,
                            }
                        ],
                    },
                    {"type": "text", "text": "tokfound"},
                ],
            },
            {"role": "user", "content": "toknext"},
            thinking={"type": "adaptive"},
            tools=[{"type": "web_search_20250305", "name": "web_search"}],
        ),
    ),
    (
        "claude-code/programmatic",
        anthropic(
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "toksay"},
                    {
                        "type": "server_tool_use",
                        "id": "srvtoolu_c",
                        "name": "code_execution",
                        "input": {"code": "tokcode"},
                    },
                    {
                        "type": "tool_use",
                        "id": "toolu_p",
                        "name": "query",
                        "input": {"q": "tokarg"},
                        "caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_c"},
                    },
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_p", "content": "tokout"}]},
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "code_execution_tool_result",
                        "tool_use_id": "srvtoolu_c",
                        "content": {
                            "type": "code_execution_result",
                            "stdout": "tokdone",
                            "stderr": "",
                            "return_code": 0,
                            "content": [],
                        },
                    },
                    {"type": "text", "text": "tokend"},
                ],
            },
            {"role": "user", "content": "toknext"},
            tools=[
                {"name": "query", "input_schema": {"type": "object"}, "allowed_callers": ["code_execution_20250825"]},
                {"type": "code_execution_20250825", "name": "code_execution"},
            ],
        ),
    ),
    (
        "claude-code/tool-search",
        anthropic(
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "server_tool_use",
                        "id": "srvtoolu_t",
                        "name": "tool_search_tool_regex",
                        "input": {"query": "tokquery"},
                    },
                    {
                        "type": "tool_search_tool_result",
                        "tool_use_id": "srvtoolu_t",
                        "content": {
                            "type": "tool_search_tool_search_result",
                            "tool_references": [{"type": "tool_reference", "tool_name": "get_weather"}],
                        },
                    },
                    {"type": "tool_use", "id": "toolu_w", "name": "get_weather", "input": {"city": "tokarg"}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_w", "content": "tokout"}]},
            tools=[
                {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
                {"name": "get_weather", "input_schema": {"type": "object"}, "defer_loading": True},
            ],
        ),
    ),
    (
        "claude-code/tool-reference-result",
        anthropic(
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "toolu_s", "name": "find_tools", "input": {"q": "tokarg"}}],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_s",
                        "content": [{"type": "tool_reference", "tool_name": "get_weather"}],
                    }
                ],
            },
            tools=[
                {"name": "find_tools", "input_schema": {"type": "object"}},
                {"name": "get_weather", "input_schema": {"type": "object"}, "defer_loading": True},
            ],
        ),
    ),
    (
        "claude-code/compaction",
        anthropic(
            {
                "role": "assistant",
                "content": [{"type": "compaction", "content": "toksummary"}, {"type": "text", "text": "toksay"}],
            },
            {"role": "user", "content": "toknext"},
            context_management={"edits": [{"type": "compact_20260112"}]},
        ),
    ),
    (
        "claude-code/memory",
        anthropic(
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "tool_use",
                        "id": "toolu_m",
                        "name": "memory",
                        "input": {"command": "view", "path": "/memories/tokfile"},
                    }
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_m", "content": "tokout"}]},
            tools=[{"type": "memory_20250818", "name": "memory"}],
        ),
    ),
    (
        "claude-code/prefill",
        anthropic({"role": "assistant", "content": "tokstart"}),
    ),
    (
        "claude-code/redacted-thinking",
        anthropic(
            {
                "role": "assistant",
                "content": [
                    {"type": "redacted_thinking", "data": "EmwKtok="},
                    {"type": "tool_use", "id": "toolu_r", "name": "get", "input": {"a": "tokarg"}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_r", "content": "tokout"}]},
            thinking={"type": "adaptive"},
            tools=[{"name": "get", "input_schema": {"type": "object"}}],
        ),
    ),
    (
        "claude-code/search-result",
        anthropic(
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "toolu_q", "name": "rag", "input": {"q": "tokarg"}}],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_q",
                        "content": [
                            {
                                "type": "search_result",
                                "source": "https://a.example",
                                "title": "toktitle",
                                "content": [{"type": "text", "text": "tokout"}],
                                "citations": {"enabled": True},
                            }
                        ],
                    }
                ],
            },
            tools=[{"name": "rag", "input_schema": {"type": "object"}}],
        ),
    ),
]


def chat(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "Please tokask."}, *messages], **more}


def chat_call(**more: Any) -> dict[str, Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": "get", "arguments": '{"a": "tokarg"}'}}
    inner = more.pop("call", {})
    return {"role": "assistant", "content": "toksay", "tool_calls": [{**call, **inner}], **more}


CHAT_DONE: Final = {"role": "tool", "tool_call_id": "call_1", "content": "tokout"}
GET: Final = [
    {
        "type": "function",
        "function": {"name": "get", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }
]
CHAT: Final = [
    (
        "langgraph/litellm-thinking-blocks",
        chat(
            chat_call(
                reasoning_content="tokthink",
                thinking_blocks=[{"type": "thinking", "thinking": "tokthink", "signature": "EqQBsigtok=="}],
            ),
            CHAT_DONE,
            tools=GET,
        ),
    ),
    (
        "cline/minimax-reasoning-details",
        chat(
            chat_call(
                reasoning_details=[
                    {
                        "type": "reasoning.text",
                        "id": "reasoning-text-1",
                        "format": "MiniMax-response-v1",
                        "index": 0,
                        "text": "tokthink",
                    }
                ]
            ),
            CHAT_DONE,
            tools=GET,
        ),
    ),
    (
        "cline/openrouter-encrypted",
        chat(
            chat_call(
                reasoning="tokthink",
                reasoning_details=[
                    {"type": "reasoning.summary", "summary": "tokthink", "format": "openai-responses-v1", "index": 0},
                    {
                        "type": "reasoning.encrypted",
                        "data": "gAAAAAtok==",
                        "id": "rs_1",
                        "format": "openai-responses-v1",
                        "index": 0,
                    },
                ],
            ),
            CHAT_DONE,
            tools=GET,
        ),
    ),
    (
        "langgraph/google-extra-content",
        chat(
            chat_call(call={"extra_content": {"google": {"thought_signature": "CqQBsigtokA="}}}),
            CHAT_DONE,
            tools=GET,
        ),
    ),
    (
        "langgraph/legacy-functions",
        chat(
            {"role": "assistant", "content": None, "function_call": {"name": "get", "arguments": '{"a": "tokarg"}'}},
            {"role": "function", "name": "get", "content": "tokout"},
            functions=[{"name": "get", "parameters": {"type": "object", "properties": {}}}],
            function_call="auto",
        ),
    ),
    (
        "langgraph/custom-tool",
        chat(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "call_1", "type": "custom", "custom": {"name": "py", "input": "print('tokarg')"}}
                ],
            },
            CHAT_DONE,
            tools=[{"type": "custom", "custom": {"name": "py"}}],
        ),
    ),
    (
        "pydantic-ai/refusal",
        chat({"role": "assistant", "content": None, "refusal": "tokno"}, {"role": "user", "content": "toknext"}),
    ),
    (
        "langgraph/system-amid",
        chat(
            {"role": "assistant", "content": "toksay"},
            {"role": "system", "content": "tokrule"},
            {"role": "user", "content": "toknext"},
        ),
    ),
    (
        "pydantic-ai/cut-arguments",
        chat(chat_call(call={"function": {"name": "get", "arguments": '{"a": "tokar'}}), CHAT_DONE, tools=GET),
    ),
    (
        "langgraph/one-id-twice",
        chat(chat_call(), CHAT_DONE, {"role": "user", "content": "tokagain"}, chat_call(), CHAT_DONE, tools=GET),
    ),
    (
        "langgraph/long-id",
        chat(chat_call(call={"id": "call_" + "x" * 90}), {**CHAT_DONE, "tool_call_id": "call_" + "x" * 90}, tools=GET),
    ),
]


def gemini(*contents: Any, **more: Any) -> dict[str, Any]:
    return {
        "model": "gemini-3-pro-preview",
        "contents": [{"role": "user", "parts": [{"text": "Please tokask."}]}, *contents],
        **more,
    }


GEMINI: Final = [
    (
        "gemini-cli/ids-on-calls",
        gemini(
            {
                "role": "model",
                "parts": [
                    {
                        "functionCall": {"id": "c1", "name": "get", "args": {"a": "tokarg"}},
                        "thoughtSignature": "Q2lRtok=",
                    },
                    {"functionCall": {"id": "c2", "name": "get", "args": {"a": "tokother"}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "get", "response": {"output": "tokout"}}},
                    {"functionResponse": {"name": "get", "response": {"output": "toksecond"}}},
                ],
            },
        ),
    ),
    (
        "gemini-cli/code-execution",
        gemini(
            {
                "role": "model",
                "parts": [
                    {"executableCode": {"language": "PYTHON", "code": "tokcode"}},
                    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "tokdone"}},
                    {"text": "tokend", "thoughtSignature": "Q2lRtok="},
                ],
            },
            {"role": "user", "parts": [{"text": "toknext"}]},
        ),
    ),
    (
        "gemini-cli/empty-parts",
        gemini({"role": "model", "parts": []}, {"role": "user", "parts": [{"text": "toknext"}]}),
    ),
    (
        "gemini-cli/response-parts",
        gemini(
            {
                "role": "model",
                "parts": [{"functionCall": {"name": "shot", "args": {"a": "tokarg"}}, "thoughtSignature": "Q2lRtok="}],
            },
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "id": "shot-1",
                            "name": "shot",
                            "response": {"output": "tokout"},
                            "parts": [{"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}],
                        }
                    }
                ],
            },
        ),
    ),
]
OPENCODE: Final = [
    ("opencode/approved", model(MODEL_ASKED, model_answer(True))),
    ("opencode/denied", model(MODEL_ASKED, model_answer(False, reason="tokwhy"))),
    (
        "opencode/denied-result",
        model(
            MODEL_ASKED,
            {
                "role": "tool",
                "content": [
                    {"type": "tool-approval-response", "approvalId": "ap1", "approved": False},
                    {
                        "type": "tool-result",
                        "toolCallId": "call_p",
                        "toolName": "pay",
                        "output": {"type": "execution-denied", "reason": "tokwhy"},
                    },
                ],
            },
        ),
    ),
    (
        "opencode/openai-item",
        model(
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "reasoning",
                        "text": "tokthink",
                        "providerOptions": {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "gAAAAAtok=="}},
                    },
                    MODEL_CALL,
                ],
            },
            {
                "role": "tool",
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": "call_p",
                        "toolName": "pay",
                        "output": {"type": "json", "value": {"ok": "tokout"}},
                    }
                ],
            },
        ),
    ),
]
SPECIAL: Final[list[tuple[str, str, dict[str, Any]]]] = [
    *[(f"use-chat/{name}", "ai-sdk-ui", request) for name, request in APPROVALS],
    *[(name, "responses", request) for name, request in CODEX],
    *[(name, "anthropic", request) for name, request in CLAUDE],
    *[(name, "openai-chat", request) for name, request in CHAT],
    *[(name, "gemini", request) for name, request in GEMINI],
    *[(name, "ai-sdk-model", request) for name, request in OPENCODE],
]
