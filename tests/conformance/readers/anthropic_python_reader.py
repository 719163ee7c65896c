"""anthropic-sdk-python: `messages.stream()`."""

from __future__ import annotations

from typing import Any

import anthropic
from transport import ASKED, SDK_CLIENT, failed, reader, serve

READER = reader("anthropic", "anthropic-python")
client = anthropic.Anthropic(api_key="none", base_url="http://case", max_retries=0, http_client=SDK_CLIENT)


def read(case: dict[str, Any], reads: list[bytes]) -> dict[str, Any] | None:
    if case.get("dialect") != "anthropic":
        return None
    serve(reads)
    error, held = None, None
    try:
        with client.messages.stream(model="m", max_tokens=10, messages=ASKED) as stream:
            for _ in stream:
                held = stream.current_message_snapshot
            held = stream.get_final_message()
    except Exception as thrown:
        error = failed(thrown)
    blocks: list[Any] = list(held.content) if held is not None else []
    return {
        "error": error,
        "calls": [
            {"id": block.id, "name": block.name, "arguments": block.input}
            for block in blocks
            if block.type == "tool_use" and error is None
        ],
        "text": "".join(block.text for block in blocks if block.type == "text"),
        "reasoning": "".join(block.thinking for block in blocks if block.type == "thinking"),
    }
