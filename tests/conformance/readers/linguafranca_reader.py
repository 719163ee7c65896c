"""linguafranca: `collect_response_stream_json` over payloads that httpx-sse framed."""

from __future__ import annotations

import json
from typing import Any

import linguafranca
from httpx_sse_reader import events_of
from transport import failed, reader

READER = reader("martian-linguafranca", "linguafranca")
FORMATS = {
    "chat": linguafranca.FormatName.OPENAI_CHAT_COMPLETIONS,
    "responses": linguafranca.FormatName.OPEN_RESPONSES,
    "anthropic": linguafranca.FormatName.ANTHROPIC_MESSAGES,
}


def read(case: dict[str, Any], reads: list[bytes]) -> dict[str, Any] | None:
    form = FORMATS.get(case.get("dialect", ""))
    if form is None:
        return None
    try:
        payloads = [json.loads(event.data) for event in events_of(reads) if event.data.strip() != "[DONE]"]
        whole = linguafranca.collect_response_stream_json(payloads, format_name=form)
    except Exception as thrown:
        return {"error": failed(thrown), "calls": [], "text": ""}
    data: Any = whole.value
    return {"error": None, **GOT[case["dialect"]](data)}


def chat(data: dict[str, Any]) -> dict[str, Any]:
    message = (data.get("choices") or [{}])[0].get("message") or {}
    calls = [
        {"id": call["id"], "name": call["function"]["name"], "arguments": call["function"]["arguments"]}
        for call in message.get("tool_calls") or ()
    ]
    return {"calls": calls, "text": message.get("content") or ""}


def responses(data: dict[str, Any]) -> dict[str, Any]:
    output = data.get("output") or []
    calls = [
        {"id": item["call_id"], "name": item["name"], "arguments": item["arguments"]}
        for item in output
        if item["type"] == "function_call"
    ]
    parts = [part for item in output if item["type"] == "message" for part in item["content"]]
    error = str(data["error"]) if data.get("status") == "failed" else None
    return {"calls": calls, "text": "".join(part.get("text", "") for part in parts), "error": error}


def messages(data: dict[str, Any]) -> dict[str, Any]:
    blocks = data.get("content") or []
    calls = [
        {"id": block["id"], "name": block["name"], "arguments": block["input"]}
        for block in blocks
        if block["type"] == "tool_use"
    ]
    return {"calls": calls, "text": "".join(block["text"] for block in blocks if block["type"] == "text")}


GOT = {"chat": chat, "responses": responses, "anthropic": messages}
