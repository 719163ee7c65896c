"""More histories for the classes of faults that agents have triggered, in forms that are not in `faults` and `special`.
Each is a row `(name, dialect, request)`; tokens (`tok…`) must not be dropped without a report. The judge checks them
with STREAMWELD_FULL=1. Histories for Bedrock contain bytes and are in `BEDROCK`.
"""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final

from tests.history.judge.agents import PDF, PNG
from tests.history.judge.special import GET, anthropic, chat, gemini, model, responses, ui

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BEDROCK", "VARIATIONS"]

Row = tuple[str, str, dict[str, Any]]
HALF: Final = "\ud83d"  # half of a UTF-16 pair
SIGNED: Final = {"thoughtSignature": "Q2lRtok="}


# --- 1. Gemini: ids that do not match


def _gemini() -> Iterator[Row]:
    def call(name: str, argument: str, **more: Any) -> dict[str, Any]:
        return {"functionCall": {"name": name, "args": {"a": argument}, **more}}

    def result(name: str, output: str, **more: Any) -> dict[str, Any]:
        return {"functionResponse": {"name": name, "response": {"output": output}, **more}}

    two = [{**call("get", "tokone"), **SIGNED}, call("get", "toktwo")]
    rows: dict[str, list[Any]] = {
        "empty-ids": [
            {"role": "model", "parts": [{**call("get", "tokarg", id=""), **SIGNED}]},
            {"role": "user", "parts": [result("get", "tokout", id="")]},
        ],
        "other-ids": [  # the CLI generated the ids of both sides separately
            {"role": "model", "parts": [{**call("get", "tokarg", id="get-17"), **SIGNED}]},
            {"role": "user", "parts": [result("get", "tokout", id="get-18")]},
        ],
        "one-of-two-answered": [
            {"role": "model", "parts": two},
            {"role": "user", "parts": [result("get", "tokout", id="get-1"), {"text": "toknext"}]},
        ],
        "role-function": [
            {"role": "model", "parts": two},
            {"role": "function", "parts": [result("get", "tokout"), result("get", "toklast")]},
        ],
        "snake-case": [
            {"role": "model", "parts": [{"function_call": call("get", "tokarg")["functionCall"], **SIGNED}]},
            {"role": "user", "parts": [{"function_response": result("get", "tokout", id="x")["functionResponse"]}]},
        ],
        "two-steps-of-one-name": [
            {"role": "model", "parts": [{**call("get", "tokone"), **SIGNED}]},
            {"role": "user", "parts": [result("get", "tokout", id="get-1")]},
            {"role": "model", "parts": [{**call("get", "toktwo"), **SIGNED}]},
            {"role": "user", "parts": [result("get", "toklast", id="get-1")]},
        ],
    }
    for name, contents in rows.items():
        yield f"gemini-cli/varied-{name}", "gemini", gemini(*contents)


# --- 2. AI SDK: several approvals


def _approvals() -> Iterator[Row]:
    def tool(key: str, state: str, approval: Any, **more: Any) -> dict[str, Any]:
        given = {"toolCallId": f"call_{key}", "input": {"to": f"tok{key}"}, "approval": {"id": f"ap_{key}", **approval}}
        return {"type": "tool-pay", "state": state, **given, **more}

    no = {"approved": False, "reason": "tokwhy"}
    then = {"id": "u2", "role": "user", "parts": [{"type": "text", "text": "toknext"}]}
    done = tool("b", "output-available", {"approved": True}, output={"ok": "tokout"})
    yield "use-chat/varied-approved-and-denied", "ai-sdk-ui", ui(done, tool("c", "output-denied", no), then=(then,))
    yield (
        "use-chat/varied-failed-after-approval",
        "ai-sdk-ui",
        ui(tool("b", "output-error", {"approved": True}, errorText="tokout"), then=(then,)),
    )
    calls = [
        {"type": "tool-call", "toolCallId": f"c{n}", "toolName": "pay", "input": {"to": f"tok{n}x"}} for n in (1, 2)
    ]
    asks = [{"type": "tool-approval-request", "approvalId": f"ap{n}", "toolCallId": f"c{n}"} for n in (1, 2)]
    answers: list[Any] = [
        {"type": "tool-approval-response", "approvalId": "ap1", "approved": True},
        {"type": "tool-approval-response", "approvalId": "ap2", "approved": False, "reason": "tokwhy"},
        {"type": "tool-result", "toolCallId": "c1", "toolName": "pay", "output": {"type": "text", "value": "tokout"}},
        {"type": "tool-result", "toolCallId": "c2", "toolName": "pay", "output": {"type": "execution-denied"}},
    ]
    messages = [{"role": "assistant", "content": [*calls, *asks]}, {"role": "tool", "content": answers}]
    after = {"role": "user", "content": "toknext"}
    yield "opencode/varied-two-approvals", "ai-sdk-model", model(*messages, after)


# --- 3. Claude: blocks of server tools


def _claude() -> Iterator[Row]:
    def row(name: str, said: list[Any], then: Any = "toknext", **more: Any) -> Row:
        messages = [{"role": "assistant", "content": said}, {"role": "user", "content": then}]
        return f"claude-code/varied-{name}", "anthropic", anthropic(*messages, **more)

    say = {"type": "text", "text": "toksay"}
    mcp = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "get", "server_name": "s", "input": {"q": "tokarg"}}
    mcp_result = {
        "type": "mcp_tool_result",
        "tool_use_id": "mcptoolu_1",
        "is_error": False,
        "content": [{"type": "text", "text": "tokout"}],
    }
    bash = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "bash_code_execution",
        "input": {"command": "tokarg"},
    }
    ran = {"type": "bash_code_execution_result", "stdout": "tokout", "stderr": "", "return_code": 0, "content": []}
    bash_result = {"type": "bash_code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": ran}
    use = {"type": "tool_use", "id": "toolu_1", "name": "get", "input": {"a": "tokarg"}}
    reference = {"type": "tool_reference", "tool_name": "get_weather"}
    mixed: Any = [{"type": "text", "text": "tokout"}, reference]
    tools = [{"name": "get", "input_schema": {"type": "object"}}]
    yield row("mcp", [mcp, mcp_result, say])
    yield row("bash", [bash, bash_result, say])
    yield row(
        "reference-beside-text",
        [use],
        [{"type": "tool_result", "tool_use_id": "toolu_1", "content": mixed}],
        tools=tools,
    )
    unsigned = {"type": "thinking", "thinking": "tokthink", "signature": ""}
    yield row(
        "unsigned-thinking",
        [unsigned, use],
        [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "tokout"}],
        tools=tools,
        thinking={"type": "enabled", "budget_tokens": 1024},
    )
    compacted = [{"type": "compaction", "content": "toksummary"}, {"type": "text", "text": "toksay"}, use]
    yield row(
        "compaction-and-call",
        compacted,
        [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "tokout"}],
        tools=tools,
        context_management={"edits": [{"type": "clear_tool_uses_20250919"}]},
    )


# --- 4. reasoning_content on some turns, with parallel calls and with texts


def _reasoned() -> Iterator[Row]:
    def call(key: str, **more: Any) -> dict[str, Any]:
        function = {"name": "get", "arguments": f'{{"a": "tok{key}"}}'}
        return {
            "role": "assistant",
            "tool_calls": [{"id": f"c{key}", "type": "function", "function": function}],
            **more,
        }

    def done(key: str) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": f"c{key}", "content": f"tokout{key}"}

    rows: dict[str, list[Any]] = {
        "second-turn": [
            call("a"),
            done("a"),
            {"role": "assistant", "content": "toksay"},
            {"role": "user", "content": "toknext"},
            call("b", reasoning_content="tokthink"),
            done("b"),
        ],
        "blank": [call("a", reasoning_content=" "), done("a"), call("b", reasoning_content="tokthink"), done("b")],
        "reasoning-and-content": [call("a", reasoning="tokthink", content="toksay"), done("a"), call("b"), done("b")],
        "answers-alone": [
            {"role": "assistant", "content": "toksay", "reasoning_content": "tokthink"},
            {"role": "user", "content": "toknext"},
            call("a"),
            done("a"),
        ],
    }
    for name, messages in rows.items():
        yield f"cline/varied-{name}", "openai-chat", chat(*messages, tools=GET)


# --- 5 and 6. Responses: replays, hosted and custom items


def _items() -> Iterator[Row]:
    text = {"type": "output_text", "text": "toksay", "annotations": []}
    head = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant"}
    call = {"type": "function_call", "call_id": "call_1", "name": "get", "arguments": '{"a":"tokarg"}'}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "tokout"}
    after = {"role": "user", "content": [{"type": "input_text", "text": "toknext"}]}
    tools = [{"type": "function", "name": "get", "parameters": {"type": "object"}}]
    shell = {"type": "local_shell_call", "id": "lsh_1", "call_id": "call_s", "status": "completed"}
    command = {"type": "exec", "command": ["ls", "tokdir"], "env": {}}
    custom = {"type": "custom_tool_call", "call_id": "call_c", "name": "sql", "input": "select tokcolumn"}
    listed = [{"type": "input_text", "text": "tokout"}]
    shot = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PNG}"}
    click = {"type": "click", "button": "left", "x": 1, "y": 2}
    rows: dict[str, list[Any]] = {
        "two-texts": [{**head, "content": [text, {**text, "text": "tokmore"}]}, after],
        "no-annotations": [{**head, "content": [{"type": "output_text", "text": "toksay"}]}, after],
        "refusal": [{**head, "content": [{"type": "refusal", "refusal": "tokno"}]}, after],
        "no-status": [{"type": "message", "role": "assistant", "content": [text]}, call, output],
        "incomplete": [{**head, "status": "incomplete", "content": [text]}, after],
        "input-text-of-assistant": [
            {"type": "message", "role": "assistant", "content": [{"type": "input_text", "text": "toksay"}]},
            after,
        ],
        "call-without-ids": [call, output, after],
        "no-type": [{**head, "content": [text]}, {"role": "user", "content": "toknext"}],
        "shell-output-id": [
            {**shell, "action": command},
            {"type": "local_shell_call_output", "id": "call_s", "output": "tokout", "status": "completed"},
        ],
        "custom-listed-output": [custom, {"type": "custom_tool_call_output", "call_id": "call_c", "output": listed}],
        "custom-and-function": [
            custom,
            call,
            {"type": "custom_tool_call_output", "call_id": "call_c", "output": "tokdone"},
            output,
        ],
        "mcp-error": [
            {
                "type": "mcp_call",
                "id": "mcp_1",
                "server_label": "s",
                "name": "tokname",
                "arguments": "{}",
                "output": None,
                "error": {"type": "mcp_protocol_error", "code": 1, "message": "tokerror"},
            },
            after,
        ],
        "computer-twice": [
            *[
                item
                for n in (1, 2)
                for item in (
                    {
                        "type": "computer_call",
                        "id": f"cu_{n}",
                        "call_id": f"call_{n}",
                        "status": "completed",
                        "action": click,
                        "pending_safety_checks": [],
                    },
                    {"type": "computer_call_output", "call_id": f"call_{n}", "output": shot},
                )
            ],
            after,
        ],
        "patch-failed": [
            {
                "type": "apply_patch_call",
                "id": "apc_1",
                "call_id": "call_a",
                "status": "completed",
                "operation": {"type": "delete_file", "path": "tokfile"},
            },
            {"type": "apply_patch_call_output", "call_id": "call_a", "status": "failed", "output": "tokwhy"},
        ],
        "reasoning-without-id": [
            {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAAtok=="},
            call,
            output,
        ],
    }
    for name, items in rows.items():
        more = {"tools": [*tools, {"type": "custom", "name": "sql"}]}
        yield f"codex/varied-{name}", "responses", responses(*items, **more)
    yield (
        "agents-sdk/varied-previous-with-text",
        "responses",
        {"model": "gpt-5.6", "previous_response_id": "resp_1", "input": [{**output, "call_id": "call_9"}, after]},
    )
    yield (
        "agents-sdk/varied-conversation",
        "responses",
        {"model": "gpt-5.6", "conversation": "conv_1", "input": [{"role": "user", "content": "Please tokask."}]},
    )


# --- 7 to 9. results with several contents, names, halves of characters


def _odd() -> Iterator[Row]:
    def call(arguments: str, name: str = "get") -> dict[str, Any]:
        function = {"name": name, "arguments": arguments}
        return {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}

    done = {"role": "tool", "tool_call_id": "call_1", "content": "tokout"}
    say = {"role": "assistant", "content": "toksay"}
    text = {"type": "text", "text": "tokwith"}
    named = {"filename": "toka b(1).v2.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}
    rows: dict[str, list[Any]] = {
        "escaped-half-in-arguments": [call('{"a": "tokarg \\\\ud83d"}'), done],
        "half-in-member-name": [call('{"a\\ud83d": "tokarg"}'), done],
        "half-in-user-text": [say, {"role": "user", "content": f"{HALF}toknext"}],
        "half-in-reasoning": [{**say, "reasoning_content": f"tokthink {HALF}"}, {"role": "user", "content": "toknext"}],
        "half-in-file-name": [
            say,
            {"role": "user", "content": [text, {"type": "file", "file": {**named, "filename": f"tok{HALF}.pdf"}}]},
        ],
        "odd-file-name": [say, {"role": "user", "content": [text, {"type": "file", "file": named}]}],
        "two-files-of-one-name": [
            say,
            {"role": "user", "content": [text, {"type": "file", "file": named}, {"type": "file", "file": named}]},
        ],
        "whole-pair": [call('{"a": "tokarg \\ud83e\\uddca"}'), {**done, "content": "tokout \U0001f9ca"}],
    }
    for name, messages in rows.items():
        yield f"langgraph/varied-{name}", "openai-chat", chat(*messages, tools=GET)
    empty: dict[str, Any] = {"role": "user", "parts": []}
    answer = {"role": "model", "parts": [{"text": "toksay"}]}
    after = {"role": "user", "parts": [{"text": "toknext"}]}
    yield "gemini-cli/varied-empty-user", "gemini", gemini(answer, empty, after)
    yield "gemini-cli/varied-empty-last", "gemini", gemini(answer, after, {"role": "model", "parts": []}, after)
    blob = {"inlineData": {"mimeType": "image/png", "data": PNG, "displayName": "tokname.png"}}
    yield (
        "gemini-cli/varied-image-name",
        "gemini",
        gemini(answer, {"role": "user", "parts": [blob, {"text": "toknext"}]}),
    )
    signed = {"role": "model", "parts": [{"text": "tokone", **SIGNED}, {"text": "toktwo"}]}
    yield "gemini-cli/varied-signed-text", "gemini", gemini(signed, after)
    thinks = {"type": "thinking", "thinking": [{"type": "text", "text": "tokthink"}]}
    mistral = [
        {"role": "assistant", "content": [thinks, {"type": "text", "text": "toksay"}]},
        {"role": "user", "content": "toknext"},
    ]
    yield "langgraph/varied-mistral-thinking", "openai-chat", chat(*mistral)
    empty_ui = {"id": "a2", "role": "assistant", "parts": []}
    then: tuple[Any, ...] = (empty_ui, {"id": "u3", "role": "user", "parts": [{"type": "text", "text": "toknext"}]})
    yield "use-chat/varied-empty-parts", "ai-sdk-ui", ui({"type": "text", "text": "toksay"}, then=then)


VARIATIONS: Final[list[Row]] = [
    row for make in (_gemini, _approvals, _claude, _reasoned, _items, _odd) for row in make()
]


# --- Bedrock, as boto3 returns and sends it


def _converse(said: list[Any], payload_of: list[Any]) -> dict[str, Any]:
    return {
        "modelId": "anthropic.claude-sonnet-4-5",
        "messages": [
            {"role": "user", "content": [{"text": "Please tokask."}]},
            {"role": "assistant", "content": said},
            {"role": "user", "content": payload_of},
        ],
        "toolConfig": {"tools": [{"toolSpec": {"name": "get", "inputSchema": {"json": {"type": "object"}}}}]},
    }


_USE: Final = {"toolUse": {"toolUseId": "tooluse_1", "name": "get", "input": {"a": "tokarg"}}}
_IMAGE: Final = {"image": {"format": "png", "source": {"bytes": b64decode(PNG)}}}
_DOCUMENT: Final = {"document": {"format": "pdf", "name": "tokname", "source": {"bytes": b64decode(PDF)}}}


def _result(*content: Any, **more: Any) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": "tooluse_1", "content": list(content), **more}}


BEDROCK: Final[dict[str, dict[str, Any]]] = {
    "json-beside-text": _converse([_USE], [_result({"text": "tokout"}, {"json": {"b": "tokjson"}})]),
    "two-json": _converse([_USE], [_result({"json": {"b": "tokout"}}, {"json": {"b": "tokjson"}})]),
    "json-and-image": _converse([_USE], [_result({"json": {"b": "tokjson"}}, _IMAGE)]),
    "image-in-result": _converse([_USE], [_result({"text": "tokout"}, _IMAGE)]),
    "document-in-result": _converse([_USE], [_result({"text": "tokout"}, _DOCUMENT)]),
    "failed": _converse([_USE], [_result({"text": "tokout"}, status="error")]),
    "media": _converse([{"text": "toksay"}], [{"text": "toknext"}, _IMAGE, _DOCUMENT]),
    "redacted": _converse(
        [{"reasoningContent": {"redactedContent": b"tok\x00\xff"}}, _USE], [_result({"text": "tokout"})]
    ),
    "signed": _converse(
        [{"reasoningContent": {"reasoningText": {"text": "tokthink", "signature": "EqQBsigtok=="}}}, _USE],
        [_result({"text": "tokout"})],
    ),
}
