"""llm-rosetta: stream events of its converters over payloads that httpx-sse framed, assembled by call id."""

from __future__ import annotations

import json
from typing import Any

from httpx_sse_reader import events_of
from llm_rosetta import AnthropicConverter, GoogleGenAIConverter, OpenAIChatConverter, OpenAIResponsesConverter
from transport import failed, reader

READER = reader("llm-rosetta")
CONVERTERS: dict[str, Any] = {
    "chat": OpenAIChatConverter,
    "responses": OpenAIResponsesConverter,
    "anthropic": AnthropicConverter,
    "gemini": GoogleGenAIConverter,
}


def read(case: dict[str, Any], reads: list[bytes]) -> dict[str, Any] | None:
    make = CONVERTERS.get(case.get("dialect", ""))
    if make is None:
        return None
    converter = make()
    context = converter.create_stream_context()
    error, text, reasoning = None, "", ""
    calls: dict[str, dict[str, Any]] = {}
    try:
        for event in events_of(reads):
            if event.data.strip() == "[DONE]":
                continue
            for found in converter.stream_response_from_provider(json.loads(event.data), context):
                kind = found["type"]
                if kind == "text_delta":
                    text += found["text"]
                elif kind == "reasoning_delta":
                    reasoning += found.get("reasoning") or ""
                elif kind == "tool_call_start":
                    name = found["tool_name"]
                    calls[found["tool_call_id"]] = {"id": found["tool_call_id"], "name": name, "arguments": ""}
                elif kind == "tool_call_delta":
                    calls[found["tool_call_id"]]["arguments"] += found["arguments_delta"]
    except Exception as thrown:
        error = failed(thrown)
    return {"error": error, "calls": [] if error else list(calls.values()), "text": text, "reasoning": reasoning}
