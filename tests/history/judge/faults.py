"""Ten histories for each class of fault that agents have triggered, in addition to those in `special`. Each is a row
`(name, dialect, request)`; tokens (`tok…`) must not be dropped without a report. The judge checks them with
STREAMWELD_FULL=1.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Final

from tests.history.judge.agents import PDF, PNG
from tests.history.judge.special import GET, anthropic, chat, gemini, responses

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FAULTS"]

Row = tuple[str, str, dict[str, Any]]
SIGNED: Final = {"thoughtSignature": "Q2lRtok="}


# --- Gemini: ids on one side only


def _gemini_ids() -> Iterator[Row]:
    """Yield histories with one or three calls, ids on the calls or on the results, and results in order, reversed, or
    one per message.
    """
    for side, count, order in product(("call", "response"), (1, 3), ("same", "apart")):
        calls, results = [], []
        for n in range(count):
            ids = [{"id": f"{side}-{n}"} if side == kind else {} for kind in ("call", "response")]
            function = {**ids[0], "name": "get" if n != 1 else "list", "args": {"a": f"tokarg{n}"}}
            calls.append({"functionCall": function, **(SIGNED if n == 0 else {})})
            response = {**ids[1], "name": function["name"], "response": {"output": f"tokout{n}"}}
            results.append({"functionResponse": response})
        request_sent: dict[str, Any] = {"role": "model", "parts": calls}
        answers = [{"role": "user", "parts": results}]
        if order == "apart":
            answers = [{"role": "user", "parts": [result]} for result in results]
        then: Any = [{"role": "model", "parts": [{"text": "tokend"}]}, {"role": "user", "parts": [{"text": "toknext"}]}]
        yield f"gemini-cli/ids-{side}-{count}-{order}", "gemini", gemini(request_sent, *answers, *then)
    two = [{"functionCall": {"name": "get", "args": {"a": f"tokarg{n}"}}, **(SIGNED if n == 0 else {})} for n in (0, 1)]
    answered = [
        {"functionResponse": {"id": f"get-{n}", "name": "get", "response": {"output": f"tokout{n}"}}} for n in (1, 0)
    ]
    request_sent = {"role": "model", "parts": two}
    yield "gemini-cli/ids-twins", "gemini", gemini(request_sent, {"role": "user", "parts": answered})
    late = [{"functionResponse": {"name": "list", "response": {"output": "tokout"}}}, {"text": "toknext"}]
    one: Any = {"role": "model", "parts": [{"functionCall": {"id": "l1", "name": "list", "args": {}}, **SIGNED}]}
    yield "gemini-cli/ids-beside-text", "gemini", gemini(one, {"role": "user", "parts": late})


# --- AI SDK: approvals


def _approvals() -> Iterator[Row]:
    for state, kind, then in product(("requested", "yes", "no"), ("tool-pay", "dynamic-tool"), (False, True)):
        if state == "requested" and then:
            continue  # the user responds before the next message
        approval: dict[str, Any] = {"id": "ap1"}
        if state != "requested":
            approval |= {"approved": state == "yes", "reason": "tokwhy"}
        done = {"output": {"ok": "tokout"}, "state": "output-available"} if then and state == "yes" else {}
        part = {
            "type": kind,
            "toolCallId": "call_p",
            "input": {"to": "tokarg"},
            "approval": approval,
            **({"toolName": "pay"} if kind == "dynamic-tool" else {}),
            "state": "approval-requested" if state == "requested" else "approval-responded",
            **({"state": "output-denied"} if then and state == "no" else {}),
            **done,
        }
        beside = {
            "type": "tool-look",
            "toolCallId": "call_l",
            "state": "output-available",
            "input": {"at": "tokplace"},
            "output": "tokseen",
        }
        shown: list[Any] = [{"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Please tokask."}]}]
        text = {"type": "text", "text": "toksay", "state": "done"}
        shown.append({"id": "a1", "role": "assistant", "parts": [{"type": "step-start"}, text, beside, part]})
        if then:
            shown.append({"id": "u2", "role": "user", "parts": [{"type": "text", "text": "toknext"}]})
        name = f"use-chat/approval-{state}-{kind}{'-then' if then else ''}"
        yield name, "ai-sdk-ui", {"id": "c1", "trigger": "submit-message", "messages": shown}


# --- Claude: thinking, server tools, results of many kinds


def _claude() -> Iterator[Row]:
    think = {"type": "thinking", "thinking": "tokthink", "signature": "EqQBsigtok=="}
    use = {"type": "tool_use", "id": "toolu_1", "name": "get", "input": {"a": "tokarg"}}
    other = {"type": "tool_use", "id": "toolu_2", "name": "get", "input": {"a": "tokother"}}
    tools = [{"name": "get", "input_schema": {"type": "object"}}]

    def result(content: Any, word: str = "toolu_1", **more: Any) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": word, **({} if content is None else {"content": content}), **more}

    def row(name: str, shown: list[Any], payload_of: list[Any] | str, *then: Any, **more: Any) -> Row:
        messages = [{"role": "assistant", "content": shown}, {"role": "user", "content": payload_of}, *then]
        return f"claude-code/{name}", "anthropic", anthropic(*messages, tools=tools, **more)

    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    document = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}}
    named = {**document, "title": "toktitle", "context": "tokcontext"}
    adaptive = {"type": "adaptive"}
    yield row("no-content", [think, use], [result(None)], thinking=adaptive)
    yield row("errors", [think, use, other], [result("tokout", is_error=True), result("toktwo", "toolu_2")])
    yield row("image-alone", [use], [result([image])])
    yield row("document-in-result", [use], [result([{"type": "text", "text": "tokout"}, document])])
    yield row("named-document", [{"type": "text", "text": "toksay"}], [named, {"type": "text", "text": "toknext"}])
    yield row("cached", [use], [{**result("tokout"), "cache_control": {"type": "ephemeral", "ttl": "1h"}}])
    yield row("thinking-without-loop", [think, {"type": "text", "text": "toksay"}], "toknext", thinking=adaptive)
    blank = {"type": "thinking", "thinking": "", "signature": "EqQBomittedtok=="}
    yield row("omitted-thinking", [blank, use], [result("tokout")], thinking={"type": "adaptive", "display": "omitted"})
    interleaved = [think, use, {**think, "thinking": "tokagain", "signature": "EqQBagaintok=="}, other]
    yield row("interleaved", interleaved, [result("tokout"), result("toktwo", "toolu_2")], thinking=adaptive)
    late = [{"role": "assistant", "content": [other]}, {"role": "user", "content": [result("toktwo", "toolu_2")]}]
    yield row("thinking-first-round-alone", [think, use], [result("tokout")], *late, thinking=adaptive)
    fetched = {
        "type": "web_fetch_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": {"type": "web_fetch_tool_result_error", "error_code": "url_not_accessible"},
    }
    request_sent = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_fetch",
        "input": {"url": "https://tokurl"},
    }
    yield row("fetch-failed", [request_sent, fetched, {"type": "text", "text": "toksay"}], "toknext")


# --- reasoning of Chat Completions: DeepSeek, Kimi, OpenRouter, MiniMax, LiteLLM, Google


def _reasoned() -> Iterator[Row]:
    def call(n: int, **more: Any) -> list[Any]:
        function = {"name": "get", "arguments": f'{{"a": "tokarg{n}"}}'}
        entry = {"id": f"call_{n}", "type": "function", "function": function, **more.pop("call", {})}
        payload_of = {"role": "assistant", "content": more.pop("content", None), "tool_calls": [entry], **more}
        return [payload_of, {"role": "tool", "tool_call_id": f"call_{n}", "content": f"tokout{n}"}]

    google = {"extra_content": {"google": {"thought_signature": "CqQBsigtokA="}}}
    encrypted = {"type": "reasoning.encrypted", "data": "CqQBsigtokBA", "id": "call_1", "format": "google-gemini-v1"}
    claude = {
        "type": "reasoning.text",
        "text": "tokthink",
        "signature": "EqQBsigtok==",
        "format": "anthropic-claude-v1",
    }
    block = {"type": "thinking", "thinking": "tokthink", "signature": "EqQBsigtok=="}
    redacted = {"type": "redacted_thinking", "data": "EmwKtok="}
    rows: dict[str, list[Any]] = {
        "from-third-round": [*call(0), *call(1), *call(2, reasoning_content="tokthink")],
        "first-round-alone": [*call(0, reasoning_content="tokthink"), *call(1), *call(2)],
        "both-members": call(0, reasoning_content="tokthink", reasoning="tokthink"),
        "empty-content": call(0, content="", reasoning_content="tokthink"),
        "google-second-round": [*call(0, call=google), *call(1)],
        "google-details": call(1, reasoning_details=[{**encrypted, "index": 0}]),
        "claude-details": call(0, reasoning="tokthink", reasoning_details=[{**claude, "index": 0}]),
        "claude-redacted": call(0, thinking_blocks=[block, redacted]),
        "answer-with-reasoning": [
            *call(0, reasoning_content="tokthink"),
            {"role": "assistant", "content": "tokend", "reasoning_content": "toklast"},
            {"role": "user", "content": "toknext"},
        ],
        "null-members": call(0, reasoning_content=None, refusal=None, audio=None, function_call=None, annotations=[]),
    }
    for name, messages in rows.items():
        yield f"cline/reasoned-{name}", "openai-chat", chat(*messages, tools=GET)


# --- Responses: replayed, hosted and custom items


def _items() -> Iterator[Row]:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "tokthink"}]}
    sealed = {**thought, "encrypted_content": "gAAAAAtok=="}
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get", "arguments": '{"a":"tokarg"}'}
    output: dict[str, Any] = {"type": "function_call_output", "call_id": "call_1", "output": "tokout"}
    text = {"type": "output_text", "text": "toksay", "annotations": [], "logprobs": []}
    message = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [text]}
    after = {"role": "user", "content": "toknext"}
    tools = [{"type": "function", "name": "get", "parameters": {"type": "object"}}]
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
    search = {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["tokquery"], "results": None}
    rows: dict[str, list[Any]] = {
        "sealed": [sealed, {**call, "status": "completed"}, output],
        "message-and-call": [sealed, message, call, output],
        "phase": [sealed, {**message, "phase": "commentary"}, call, output],
        "easy-message": [{"role": "assistant", "content": "toksay"}, after],
        "no-ids": [{k: v for k, v in message.items() if k not in ("id", "status")}, after],
        "output-parts": [call, {**output, "output": [{"type": "input_text", "text": "tokout"}, image]}],
        "output-id": [call, {**output, "id": "fco_1", "status": "completed"}],
        "file-search": [search, message, after],
        "image-generation": [
            {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PNG},
            after,
        ],
        "mcp": [
            {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
            {
                "type": "mcp_call",
                "id": "mcp_1",
                "server_label": "s",
                "name": "tokname",
                "arguments": '{"a":"tokarg"}',
                "output": "tokout",
                "error": None,
            },
            message,
            after,
        ],
        "tool-search": [
            {"type": "tool_search_call", "id": "ts_1", "call_id": "call_t", "arguments": {"q": "tokquery"}},
            {"type": "tool_search_output", "call_id": "call_t", "tools": []},
            after,
        ],
    }
    for name, items in rows.items():
        yield f"agents-sdk/items-{name}", "responses", responses(*items, tools=tools)


# --- values that cannot be encoded, named or expressed


def _odd() -> Iterator[Row]:
    call = {"id": "call_1", "type": "function", "function": {"name": "get", "arguments": '{"a": "tokarg"}'}}
    done = {"role": "tool", "tool_call_id": "call_1", "content": "tokout"}
    url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "high"}}
    file = {"type": "file", "file": {"filename": "tokname.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}}
    audio = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    text = {"type": "text", "text": "tokwith"}
    rows: dict[str, list[Any]] = {
        "half-character": [{"role": "assistant", "content": "toksay \ud83d"}, {"role": "user", "content": "toknext"}],
        "half-in-arguments": [
            {"role": "assistant", "content": None, "tool_calls": [{**call, "function": {**call["function"]}}]},  # type: ignore[dict-item]
            {**done, "content": "tokout \udc00"},
        ],
        "file-name": [{"role": "assistant", "content": "toksay"}, {"role": "user", "content": [text, file]}],
        "detail": [{"role": "assistant", "content": "toksay"}, {"role": "user", "content": [text, url]}],
        "audio": [{"role": "assistant", "content": "toksay"}, {"role": "user", "content": [text, audio]}],
        "name": [{"role": "assistant", "content": "toksay", "name": "tokname"}, {"role": "user", "content": "toknext"}],
        "dotted-tool": [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{**call, "function": {"name": "a.b/tokname", "arguments": "{}"}}],
            },
            done,
        ],
        "blank-id": [
            {"role": "assistant", "content": None, "tool_calls": [{**call, "id": ""}]},
            {**done, "tool_call_id": ""},
        ],
        "parts-of-result": [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {**done, "content": [{"type": "text", "text": "tokout"}, {"type": "text", "text": "toktwo"}]},
        ],
        "developer": [
            {"role": "developer", "content": "tokrule"},
            {"role": "assistant", "content": "toksay"},
            {"role": "user", "content": [text, {"type": "text", "text": "toknext"}]},
        ],
        "result-without-call": [
            {"role": "assistant", "content": "toksay"},
            {**done, "tool_call_id": "call_gone"},
            {"role": "user", "content": "toknext"},
        ],
    }
    for name, messages in rows.items():
        yield f"langgraph/odd-{name}", "openai-chat", chat(*messages, tools=GET)


# --- model messages of the AI SDK


def _model() -> Iterator[Row]:
    request_sent = {"role": "user", "content": [{"type": "text", "text": "Please tokask."}]}
    after = {"role": "user", "content": [{"type": "text", "text": "toknext"}]}
    call = {"type": "tool-call", "toolCallId": "call_p", "toolName": "pay", "input": {"to": "tokarg"}}

    def done(output: Any, **more: Any) -> dict[str, Any]:
        payload_of = {"type": "tool-result", "toolCallId": "call_p", "toolName": "pay", "output": output, **more}
        return {"role": "tool", "content": [payload_of]}

    def thought(**options: Any) -> dict[str, Any]:
        return {"type": "reasoning", "text": "tokthink", "providerOptions": options}

    signed = {"providerOptions": {"google": {"thoughtSignature": "Q2lRtok="}}}
    media = {"type": "content", "value": [{"type": "text", "text": "tokout"}]}
    rows: dict[str, list[Any]] = {
        "claude": [[thought(anthropic={"signature": "EqQBsigtok=="}), call], done({"type": "text", "value": "tokout"})],
        "claude-redacted": [
            [{**thought(anthropic={"redactedData": "EmwKtok="}), "text": ""}, call],
            done({"type": "json", "value": {"ok": "tokout"}}),
        ],
        "gemini-call": [[{**call, **signed}], done({"type": "text", "value": "tokout"})],
        "gemini-text": [[{"type": "text", "text": "toksay", **signed}], after],
        "openai-text": [
            [{"type": "text", "text": "toksay", "providerOptions": {"openai": {"itemId": "msg_1"}}}],
            after,
        ],
        "error-text": [[call], done({"type": "error-text", "value": "tokout"})],
        "error-json": [[call], done({"type": "error-json", "value": {"why": "tokout"}})],
        "content": [[call], done(media)],
        "denied": [[call], done({"type": "execution-denied", "reason": "tokwhy"}), after],
        "string": ["toksay", after],
        "cached": [
            [call],
            done({"type": "text", "value": "tokout"}, providerOptions={"anthropic": {"cacheControl": {}}}),
        ],
    }
    for name, (shown, *then) in rows.items():
        messages = [request_sent, {"role": "assistant", "content": shown}, *then]
        yield f"opencode/model-{name}", "ai-sdk-model", {"messages": messages}


FAULTS: Final[list[Row]] = [
    row for make in (_gemini_ids, _approvals, _claude, _reasoned, _items, _odd, _model) for row in make()
]
