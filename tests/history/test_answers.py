"""Parsed responses used as history: unchanged for their own API, and with reported losses for other APIs."""

from __future__ import annotations

import json
from typing import Any

import pytest
import streamweld as sw
from streamweld import events
from streamweld.history import check, convert

from tests.support.backends import make_parser

USER = {"role": "user", "content": "hi"}
NEXT = {"role": "user", "content": "go on"}


def body(**members: Any) -> bytes:
    return json.dumps(members).encode()


def of_anthropic(*blocks: dict[str, Any]) -> sw.Response:
    usage = {"input_tokens": 1, "output_tokens": 1}
    payload_of = {"type": "message", "id": "msg_1", "role": "assistant", "model": "claude", "stop_reason": "end_turn"}
    return sw.parse(body(**payload_of, content=list(blocks), usage=usage), dialect="anthropic")


def of_responses(*items: dict[str, Any]) -> sw.Response:
    payload_of = {"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5", "created_at": 1}
    return sw.parse(body(**payload_of, output=list(items)), dialect="responses")


def of_gemini(*parts: dict[str, Any]) -> sw.Response:
    content = {"role": "model", "parts": list(parts)}
    payload_of = {"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}], "modelVersion": "gemini"}
    return sw.parse(body(**payload_of), dialect="gemini")


def of_chat(**message: Any) -> sw.Response:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    payload_of = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return sw.parse(body(**payload_of), dialect="chat")


THINKING = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "b3BhcXVl"}
SAID = {"type": "text", "text": "so"}
ASKED = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
HITS = [{"type": "web_search_result", "title": "t", "url": "https://x.example", "encrypted_content": "ZW5j"}]
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": HITS}
MCP = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "g", "input": {}, "server_name": "s"}
MCP_SAID = {
    "type": "mcp_tool_result",
    "tool_use_id": "mcptoolu_1",
    "content": [{"type": "text", "text": "x"}],
    "is_error": False,
}
CITED = {
    "type": "text",
    "text": "see",
    "citations": [{"type": "web_search_result_location", "encrypted_index": "EqMB", "url": "https://x.example"}],
}

ANTHROPIC = [
    pytest.param([THINKING, SAID], id="thinking"),
    pytest.param([REDACTED, SAID], id="redacted"),
    pytest.param([THINKING, SAID, ASKED], id="call"),
    pytest.param([SEARCH, FOUND, CITED], id="search"),
    pytest.param([MCP, MCP_SAID, SAID], id="mcp"),
    pytest.param([THINKING, ASKED, SEARCH], id="the server's tool behind the client's"),
    pytest.param([{"type": "compaction", "content": "earlier"}, SAID], id="compaction"),
    pytest.param([{"type": "mcp_tool_listing", "mcp_server_name": "s", "tools": []}, SAID], id="tool listing"),
    pytest.param([SAID, {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}, SAID], id="fallback"),
    pytest.param([{"type": "container_upload", "file_id": "f"}, SAID], id="container upload"),
    pytest.param([{"type": "of_tomorrow", "n": 1}, SAID], id="block of no model"),
]


@pytest.mark.parametrize("blocks", ANTHROPIC)
def test_anthropic_takes_back_what_it_said(blocks: list[dict[str, Any]]) -> None:
    requested = [block["id"] for block in blocks if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": call_id, "content": "ok"} for call_id in requested]
    after = {"role": "user", "content": results} if results else NEXT
    made = convert([USER, of_anthropic(*blocks), after], target="anthropic")
    assert made.payload == {"messages": [USER, {"role": "assistant", "content": blocks}, after]}
    assert made.edits == made.losses == ()
    assert check(made.payload, target="anthropic") == []
    assert convert(made.payload, target="anthropic").payload is made.payload


def message(item_id: str, *texts: str, **members: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "id": item_id, "role": "assistant", "status": "completed", **members, "content": content}


def thought(item_id: str, *summaries: str, **members: Any) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": text} for text in summaries]
    return {"type": "reasoning", "id": item_id, "summary": summary, **members}


RESPONSES = [
    pytest.param([thought("rs_1", "a", "b", "c", encrypted_content="gAAA"), message("msg_1", "x")], id="summaries"),
    pytest.param([thought("rs_1"), thought("rs_2", "b"), message("msg_1", "x")], id="two thoughts"),
    pytest.param([message("msg_1", "x", "y"), message("msg_2", "z")], id="messages"),
    pytest.param(
        [
            thought("rs_1", "a"),
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "search", "query": "x"},
            },
            message("msg_1", "x"),
        ],
        id="web search",
    ),
    pytest.param(
        [
            {
                "type": "code_interpreter_call",
                "id": "ci_1",
                "code": "1+1",
                "container_id": "cntr",
                "outputs": [{"type": "logs", "logs": "2"}],
                "status": "completed",
            },
            message("msg_1", "x"),
        ],
        id="code",
    ),
    pytest.param(
        [
            {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
            {
                "type": "mcp_call",
                "id": "mcp_1",
                "name": "g",
                "arguments": '{"a":1}',
                "server_label": "s",
                "output": "done",
                "status": "completed",
            },
            message("msg_1", "x"),
        ],
        id="mcp",
    ),
    pytest.param(
        [
            {"type": "file_search_call", "id": "fs_1", "queries": ["q"], "results": None, "status": "completed"},
            message("msg_1", "x"),
        ],
        id="file search",
    ),
    pytest.param(
        [
            {
                "type": "image_generation_call",
                "id": "ig_1",
                "status": "completed",
                "output_format": "png",
                "result": "iVBO",
            },
            message("msg_1", "x"),
        ],
        id="image",
    ),
    pytest.param(
        [
            {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": [{"name": "g"}]},
            {"type": "mcp_list_tools", "id": "mcpl_2", "server_label": "t", "tools": [], "error": "no"},
            message("msg_1", "x"),
        ],
        id="mcp tools",
    ),
    pytest.param(
        [
            {"type": "program", "id": "p_1", "call_id": "call_p", "code": "print(1)", "fingerprint": "F"},
            {"type": "program_output", "id": "po_1", "call_id": "call_p", "result": "1", "status": "completed"},
            message("msg_1", "x"),
        ],
        id="program",
    ),
    pytest.param([{"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}, message("msg_1", "x")], id="raw"),
    pytest.param(
        [
            {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": []},
            {"type": "mcp_approval_request", "id": "mcpr_1", "name": "n", "arguments": "{}", "server_label": "s"},
        ],
        id="provider items",
    ),
]


def without_null(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if value is not None}


@pytest.mark.parametrize("items", RESPONSES)
def test_responses_take_back_what_they_said(items: list[dict[str, Any]]) -> None:
    made = convert([USER, of_responses(*items), NEXT], target="responses")
    assert made.payload == {"input": [USER, *map(without_null, items), NEXT]}
    assert made.edits == made.losses == ()
    assert check(made.payload, target="responses") == []
    assert convert(made.payload, target="responses").payload is made.payload


@pytest.mark.parametrize("target", ["responses", "anthropic"])
def test_a_changed_payload_leaves_the_response_unchanged(target: str) -> None:
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}
    response = (of_responses if target == "responses" else of_anthropic)(item)
    made = convert([USER, response, NEXT], target=target)
    sent = made.payload["input"][1] if target == "responses" else made.payload["messages"][1]["content"][0]
    assert sent == item
    sent["encrypted_content"] = "other"
    kept = response.items[0]
    assert isinstance(kept, events.ProviderItem)
    assert kept.value == item


def test_calls_of_every_kind_wait_for_their_own_results() -> None:
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "f",
        "arguments": "{}",
        "status": "completed",
    }
    free = {
        "type": "custom_tool_call",
        "id": "ctc_1",
        "call_id": "c2",
        "name": "sh",
        "input": "ls",
        "status": "completed",
    }
    operation = {"type": "create_file", "path": "a", "diff": "+x"}
    patch = {
        "type": "apply_patch_call",
        "id": "apc_1",
        "call_id": "c3",
        "operation": operation,
        "status": "completed",
    }
    results = [
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "ok"},
        {"type": "apply_patch_call_output", "call_id": "c3", "output": "ok", "status": "completed"},
    ]
    given = [USER, of_responses(call, free, patch), *results]
    made = convert(given, target="responses")
    assert made.payload == {"input": [USER, call, free, patch, *results]}
    assert made.edits == made.losses == ()
    payload_of = [{"role": "tool", "tool_call_id": call_id, "content": "ok"} for call_id in ("c1", "c2", "c3")]
    other = convert([USER, of_responses(call, free, patch), *payload_of], source="openai-chat", target="anthropic")
    assert [block["name"] for block in other.payload["messages"][1]["content"]] == ["f", "sh", "apply_patch"]
    assert other.edits == ()


def test_every_summary_reaches_azure() -> None:
    items = [thought("rs_1", "a", "b", "c", encrypted_content="gAAA"), message("msg_1", "x")]
    made = convert([USER, of_responses(*items), NEXT], target="responses", gateway="azure-openai", provider="azure")
    assert made.payload["input"][1:3] == items
    assert made.edits == ()


CODE = {"executableCode": {"language": "PYTHON", "code": "1+1"}, "thoughtSignature": "c2ln"}
RAN = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}
GEMINI = [
    pytest.param([{"text": "hm", "thought": True}, {"text": "so", "thoughtSignature": "c2ln"}], id="thought"),
    pytest.param([CODE, RAN, {"text": "two"}], id="code"),
    pytest.param([{"inlineData": {"mimeType": "image/png", "data": "iVBO"}}, {"text": "look"}], id="picture"),
]


@pytest.mark.parametrize("parts", GEMINI)
def test_gemini_takes_back_what_it_said(parts: list[dict[str, Any]]) -> None:
    user, after = {"role": "user", "parts": [{"text": "hi"}]}, {"role": "user", "parts": [{"text": "go on"}]}
    made = convert([user, of_gemini(*parts), after], target="gemini")
    assert made.payload == {"contents": [user, {"role": "model", "parts": parts}, after]}
    assert made.edits == made.losses == ()
    assert check(made.payload, target="gemini") == []
    assert convert(made.payload, target="gemini").payload is made.payload


def test_chat_takes_back_what_rode_along() -> None:
    function = {"name": "f", "arguments": "{}"}
    google = {"google": {"thought_signature": "c2ln"}}
    call = {"id": "call_1", "type": "function", "function": function, "extra_content": google}
    details = [{"type": "reasoning.encrypted", "data": "ZW5j"}]
    response = of_chat(content=None, reasoning_content="hm", reasoning_details=details, tool_calls=[call])
    result = {"role": "tool", "tool_call_id": "call_1", "content": "ok"}
    made = convert([USER, response, result], target="openai-chat", gateway="openrouter")
    shown = made.payload["messages"][1]
    # OpenRouter lists the signature of a call by the call's id, not in `extra_content`.
    assert shown["tool_calls"] == [{"id": "call_1", "type": "function", "function": function}]
    signature = {"type": "reasoning.encrypted", "data": "c2ln", "id": "call_1", "format": "google-gemini-v1"}
    plain = {"type": "reasoning.text", "text": "hm", "format": "unknown", "index": 1}
    assert shown["reasoning_details"] == [{**details[0], "index": 0}, plain, {**signature, "index": 2}]
    assert convert(made.payload, target="openai-chat", gateway="openrouter").payload is made.payload


OTHERS = ("openai-chat", "responses", "anthropic", "gemini", "bedrock-converse", "ai-sdk-model", "ai-sdk-ui")


@pytest.mark.parametrize("target", OTHERS)
@pytest.mark.parametrize(
    ("response", "own", "kinds"),
    [
        pytest.param(
            of_anthropic(SEARCH, FOUND, SAID), "anthropic", ["server_tool_use", "web_search_tool_result"], id="a"
        ),
        pytest.param(of_gemini(CODE, RAN, {"text": "so"}), "gemini", ["executableCode", "codeExecutionResult"], id="g"),
        pytest.param(
            of_responses({"type": "web_search_call", "id": "ws_1", "status": "completed"}, message("msg_1", "so")),
            "responses",
            ["web_search_call"],
            id="r",
        ),
    ],
)
def test_others_are_told_nothing_that_was_not_asked(
    response: sw.Response, own: str, kinds: list[str], target: str
) -> None:
    made = convert([USER, response, NEXT], source="openai-chat", target=target)
    held = json.dumps(made.payload)
    assert check(made.payload, target=target) == []
    assert not {edit.rule for edit in made.edits} & {"call_unanswered", "result_unasked"}
    if target != own:
        lost = [loss.feature for loss in made.losses]
        assert [feature for feature in lost if feature in kinds] == kinds
        assert not any(kind in held for kind in kinds)


def test_an_answer_that_nobody_parsed_is_read_by_its_events() -> None:
    response = sw.Response([events.ResponseStarted(id="r", model="m"), events.TextDone(part=0, text="x")], "complete")
    assert response.dialect is None
    assert convert([USER, response], target="openai-chat").payload["messages"][1]["content"] == "x"


def test_arguments_that_were_cut_are_wrapped_as_they_were_written() -> None:
    requested = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    started = {"id": "m", "type": "message", "role": "assistant", "content": []}
    cut = [
        {"type": "message_start", "message": started},
        {"type": "content_block_start", "index": 0, "content_block": requested},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"a": '}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    stream = b"".join([b"data: " + json.dumps(event).encode() + b"\n\n" for event in cut])
    made = convert([USER, sw.parse(stream, dialect="anthropic")], target="anthropic")
    assert made.payload["messages"][1]["content"][0]["input"] == {"_raw": '{"a": '}
    assert made.edits[0].rule == "arguments_broken"


@pytest.mark.parametrize("last", [{"text": " there"}, {"text": ""}])
def test_the_signature_of_a_streamed_text_of_gemini_goes_back(last: dict[str, Any], backend: str) -> None:
    """Gemini sends the signature with the last part, which may be empty, and requires it on the text."""
    signed = {**last, "thoughtSignature": "c2ln"}
    parts = [[{"text": "Hello"}], [signed]]
    chunks = [{"candidates": [{"index": 0, "content": {"role": "model", "parts": part}}]} for part in parts]
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"  # type: ignore[index]
    with make_parser(backend, "gemini") as parser:
        for chunk in chunks:
            parser.feed(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    user, after = {"role": "user", "parts": [{"text": "hi"}]}, {"role": "user", "parts": [{"text": "go on"}]}
    made = convert([user, parser.response, after], target="gemini")
    text = "Hello" + last["text"]
    assert made.payload["contents"][1] == {"role": "model", "parts": [{"text": text, "thoughtSignature": "c2ln"}]}
    assert (made.edits, made.losses) == ((), ())
    lost = convert([user, parser.response, after], source="gemini", target="anthropic")
    assert [(loss.feature, loss.removed) for loss in lost.losses] == [("signature", "c2ln")]
