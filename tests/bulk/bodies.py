"""Bodies for the bulk suites: generated streams of every dialect, complete, truncated, failed and unreadable.

`truth` is the expected row; it is written by hand, not computed by streamweld.
"""

from __future__ import annotations

import json
from typing import Any

__all__ = ["BAD", "anthropic", "bodies", "chat", "cut_chat", "failed_chat", "gemini", "responses", "truth"]

BAD = b"<html><body>502 Bad Gateway</body></html>"


def _sse(*payloads: Any, named: bool = False) -> bytes:
    out = []
    for payload in payloads:
        name = f"event: {payload['type']}\n" if named else ""
        out.append(f"{name}data: {json.dumps(payload)}\n\n".encode())
    return b"".join(out)


def _chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_763_712_000,
        "model": "m-1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **more,
    }


def chat(number: int = 1) -> bytes:
    """Return a stream with a text in two pieces, a call in three pieces, and token counts."""
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": {"name": "add", "arguments": ""}}
    return (
        _sse(
            _chunk({"role": "assistant", "content": "Hé"}),
            _chunk({"content": "llo"}),
            _chunk({"tool_calls": [call]}),
            _chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]}),
            _chunk({"tool_calls": [{"index": 0, "function": {"arguments": f"{number}}}"}}]}),
            _chunk({}, "tool_calls"),
            {**_chunk({}), "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}},
        )
        + b"data: [DONE]\n\n"
    )


def cut_chat() -> bytes:
    """Return the same stream, truncated inside the arguments."""
    return chat()[: chat().index(b"1}") - 20]


def failed_chat() -> bytes:
    """Return a stream with a text followed by an error of the gateway."""
    error = {"error": {"message": "overloaded", "type": "server_error", "code": "503"}}
    return _sse(_chunk({"role": "assistant", "content": "Par"}), error)


def anthropic() -> bytes:
    """Return a Messages stream with a text and a call."""
    return _sse(
        {
            "type": "message_start",
            "message": {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "m-2",
                "content": [],
                "stop_reason": None,
                "usage": {"input_tokens": 4, "output_tokens": 1},
            },
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}},
        },
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"z":'}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ' "UTC"}'}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
        named=True,
    )


def gemini() -> bytes:
    """Return a Gemini stream with a text in two pieces."""

    def part(text: str, **more: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "index": 0, **more}]}

    usage = {"usageMetadata": {"promptTokenCount": 2, "candidatesTokenCount": 3, "totalTokenCount": 5}}
    return _sse(part("Guten"), part(" Tag", finishReason="STOP") | usage)


def responses() -> bytes:
    """Return a Responses stream with one call."""
    item = {"id": "fc_1", "type": "function_call", "status": "in_progress", "call_id": "call_r", "name": "look"}
    done = item | {"status": "completed", "arguments": '{"q":"x"}'}
    answer = {"id": "resp_1", "object": "response", "created_at": 1_763_712_001, "model": "m-3"}
    return _sse(
        {"type": "response.created", "response": answer | {"status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item | {"arguments": ""}},
        {
            "type": "response.function_call_arguments.delta",
            "item_id": "fc_1",
            "output_index": 0,
            "delta": '{"q":"x"}',
        },
        {
            "type": "response.function_call_arguments.done",
            "item_id": "fc_1",
            "output_index": 0,
            "arguments": '{"q":"x"}',
        },
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": answer | {"status": "completed", "output": [done]}},
        named=True,
    )


def truth(number: int) -> dict[str, Any]:
    """Return the expected values for row `number` of `bodies`: dialect, completeness, finish reason, text, calls, and
    the rule of the error.
    """
    kind = number % 10
    if number % 1000 == 999:
        return {"dialect": None, "text": "", "calls": [], "finish": None, "rule": "not_an_event_stream"}
    if kind == 3:
        return {
            "dialect": "anthropic",
            "text": "Hi",
            "calls": [("toolu_1", "now", '{"z": "UTC"}', "complete")],
            "finish": "tool_calls",
            "rule": None,
        }
    if kind == 5:
        return {"dialect": "gemini", "text": "Guten Tag", "calls": [], "finish": "stop", "rule": None}
    if kind == 7:
        return {
            "dialect": "responses",
            "text": "",
            "calls": [("call_r", "look", '{"q":"x"}', "complete")],
            "finish": "tool_calls",
            "rule": None,
        }
    call = (f"call_{number}", "add", f'{{"a":{number}}}', "complete")
    return {"dialect": "chat", "text": "Héllo", "calls": [call], "finish": "tool_calls", "rule": None}


def bodies(count: int, start: int = 0) -> list[bytes]:
    """Return rows in mixed dialects. One row in a thousand cannot be read."""
    made = []
    for number in range(start, start + count):
        if number % 1000 == 999:
            made.append(BAD)
        else:
            kinds = {3: anthropic, 5: gemini, 7: responses}
            kind = kinds.get(number % 10)
            made.append(chat(number) if kind is None else kind())
    return made


def facts(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of `parse` in the form of `truth`."""
    return {
        "dialect": row["dialect"],
        "text": row["text"],
        "calls": [(call["call_id"], call["name"], call["arguments"], call["state"]) for call in row["tool_calls"]],
        "finish": row["finish_reason"],
        "rule": None if row["error"] is None else row["error"]["rule"],
    }
