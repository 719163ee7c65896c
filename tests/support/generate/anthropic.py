"""Random Messages streams as the API sends them, used as input for mutation. This module does not import streamweld."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from streamweld.testing.pieces import NAMES, random_arguments, random_id, random_text, row_of

from tests.support.generate.frames import Frame, Source

if TYPE_CHECKING:
    from random import Random

REASONS = (
    "end_turn",
    "tool_use",
    "max_tokens",
    "stop_sequence",
    "refusal",
    "pause_turn",
    "model_context_window_exceeded",
    "x",
)


def frames(rng: Random) -> list[Frame]:
    """Return one message from its start to its stop."""
    message = _message(rng) | {"content": [], "stop_reason": None}
    if rng.random() < 0.06:
        message["content"] = [_whole_block(rng) for _ in range(rng.randint(1, 3))]
    out: list[Frame] = [("message_start", {"type": "message_start", "message": message})]
    if rng.random() < 0.4:
        out.append(("ping", {"type": "ping"}))
    index = 0
    blocks: list[dict[str, Any]] = []
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        for start, deltas in _block(rng):
            blocks.append(start)
            named: list[tuple[str, dict[str, Any]]] = [("content_block_start", {"content_block": start})]
            named += [("content_block_delta", {"delta": delta}) for delta in deltas]
            named.append(("content_block_stop", {}))
            out += [(name, {"type": name, "index": index, **rest}) for name, rest in named]
            index += 1
    calls = any(block["type"] == "tool_use" for block in blocks)
    reason = rng.choice(REASONS) if rng.random() < 0.2 else "tool_use" if calls else "end_turn"
    delta: dict[str, Any] = {"stop_reason": reason, "stop_sequence": None}
    if rng.random() < 0.1:
        delta["container"] = {"id": "c_1"}
    usage = {"output_tokens": rng.randint(0, 99)}
    if rng.random() < 0.3:
        usage |= {"input_tokens": 7, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 1}
    out.append(("message_delta", {"type": "message_delta", "delta": delta, "usage": usage}))
    if rng.random() < 0.04:
        out.append((None, message | {"content": blocks, "stop_reason": reason, "usage": usage}))
    out.append(("message_stop", {"type": "message_stop"}))
    return out


def whole(rng: Random) -> Any:
    """Return the message as one document."""
    content = [_whole_block(rng) for _ in range(rng.randint(0, 3))]
    return _message(rng) | {"content": content, "stop_reason": rng.choice(REASONS), "stop_sequence": None}


def _message(rng: Random) -> dict[str, Any]:
    return {
        "id": "msg_" + random_id(rng),
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "usage": {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": rng.choice((0, 5))},
    }


def _whole_block(rng: Random) -> dict[str, Any]:
    start, deltas = rng.choice(_block(rng))
    block = dict(start)
    for delta in deltas:
        for key in ("text", "thinking", "signature"):
            if key in delta:
                block[key] = block.get(key, "") + delta[key]
    pieces = "".join(delta.get("partial_json", "") for delta in deltas)
    return block | {"input": json.loads(pieces)} if pieces else block


def _block(rng: Random) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Return one block, or two that belong together, each with its start and its deltas."""
    roll = rng.random()
    if roll < 0.35:
        return [_text(rng)]
    if roll < 0.5:
        text = random_text(rng)
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in row_of(rng, text)]
        deltas.append({"type": "signature_delta", "signature": random_id(rng)})
        return [({"type": "thinking", "thinking": "", "signature": ""}, deltas[: rng.choice((None, -1))])]
    if roll < 0.55:
        return [({"type": "redacted_thinking", "data": random_id(rng)}, [])]
    if roll < 0.8:
        return [_call(rng, "tool_use", "toolu_" + random_id(rng))]
    if roll < 0.92:
        kind = rng.choice(("server_tool_use", "mcp_tool_use"))
        identity = "srvtoolu_" + random_id(rng)
        result: dict[str, Any] = {"tool_use_id": identity, "content": [{"type": "web_search_result", "url": "u"}]}
        if kind == "mcp_tool_use":
            result |= {"type": "mcp_tool_result", "is_error": rng.random() < 0.3}
        else:
            result["type"] = rng.choice(("web_search_tool_result", "code_execution_tool_result"))
            if rng.random() < 0.3:
                result["content"] = {"type": "web_search_tool_result_error", "error_code": "x"}
        return [_call(rng, kind, identity), (result, [])]
    if roll < 0.96:
        return [
            (
                {"type": "compaction", "content": None, "\u00e9": 1},
                [{"type": "compaction_delta", "content": random_text(rng)} for _ in range(rng.randint(0, 2))],
            )
        ]
    kind = rng.choice(("container_upload", "fallback", "mcp_tool_listing", "tool_result", "x"))
    return [({"type": kind, "file_id": "f"}, [])]


def _text(rng: Random) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    start: dict[str, Any] = {"type": "text", "text": random_text(rng) if rng.random() < 0.1 else ""}
    deltas: list[dict[str, Any]] = []
    for piece in row_of(rng, random_text(rng) + random_text(rng)):
        deltas.append({"type": "text_delta", "text": piece})
        if rng.random() < 0.05:
            deltas.append({"type": "citations_delta", "citation": {"type": "char_location", "cited_text": piece}})
    if rng.random() < 0.1:
        start["citations"] = rng.choice(([], None, [{"type": "page_location", "cited_text": "x"}]))
    return start, deltas


def _call(rng: Random, kind: str, identity: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    start: dict[str, Any] = {"type": kind, "id": identity, "name": rng.choice(NAMES), "input": {}}
    if kind == "mcp_tool_use":
        start["server_name"] = "s"
    text = random_arguments(rng)
    pieces = row_of(rng, text)
    if rng.random() < 0.1:
        start["input"] = json.loads(text)
        pieces = rng.choice(([], ["{}"], pieces))
    elif rng.random() < 0.3:
        pieces.insert(0, "")
    return start, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


SOURCE = Source(
    dialect="anthropic",
    frames=frames,
    whole=whole,
    rich=(
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        {"type": "content_block_stop"},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "more"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a":1}'}},
        {
            "type": "content_block_start",
            "content_block": {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "x", "citations": [1]}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "compaction", "content": "c"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "compaction_delta", "content": "d", "e": None}},
        {"type": "message_start", "message": {"id": "msg_2", "content": [{"type": "text", "text": "held"}]}},
        {"type": "message_start", "message": {"id": "msg_3", "model": "m", "content": []}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "usage": {"output_tokens": 3}}, "usage": None},
        {"type": "message", "id": "msg_1", "content": [{"type": "text", "text": "all"}], "stop_reason": "end_turn"},
        {"type": "message", "content": [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}]},
        {"type": "ping"},
        {"type": "message_stop"},
        {"message": "no", "code": 5},
        {"detail": "gone"},
        {"error": "no"},
        [{"type": "message_stop"}],
        [{"error": {"message": "m"}}],
        "\ud83d",
        7,
    ),
    members=(
        "type",
        "index",
        "message",
        "content_block",
        "delta",
        "usage",
        "error",
        "id",
        "role",
        "model",
        "content",
        "stop_reason",
        "text",
        "thinking",
        "signature",
        "data",
        "citations",
        "citation",
        "name",
        "input",
        "tool_use_id",
        "is_error",
        "partial_json",
        "input_tokens",
        "output_tokens",
        "x_unknown",
        "caller",
        "code",
    ),
    values=(
        *(
            [
                "text",
                "thinking",
                "redacted_thinking",
                "tool_use",
                "server_tool_use",
                "mcp_tool_use",
                "web_search_tool_result",
                "mcp_tool_result",
                "compaction",
                "text_delta",
                "thinking_delta",
                "signature_delta",
                "citations_delta",
                "input_json_delta",
                "compaction_delta",
                "message_start",
                "message_delta",
                "content_block_start",
                "content_block_delta",
                "content_block_stop",
                "message",
                "ping",
                "error",
                "toolu_1",
                "f",
            ]
        ),
        *(0, 1, 2, 3, '{"a":', "1}", {"a": {}}, " "),
        {"type": "text", "text": "t"},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
        {"type": "text_delta", "text": "t"},
    ),
    events=(
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
        "message",
        "keepalive",
        "x",
    ),
)
