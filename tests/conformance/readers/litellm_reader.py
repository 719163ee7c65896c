"""litellm: `completion(stream=True)` and `stream_chunk_builder`, over its OpenAI and Anthropic providers."""

from __future__ import annotations

import os
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # prevents a download at import

import litellm
import openai
from litellm.llms.custom_httpx.http_handler import HTTPHandler
from transport import ASKED, CLIENT, failed, reader, serve

READER = reader("litellm")
litellm.suppress_debug_info = True
HANDLER = HTTPHandler()
HANDLER.client = CLIENT
CLIENTS: dict[str, tuple[str, Any]] = {
    "chat": ("openai/m", openai.OpenAI(api_key="none", base_url="http://case", max_retries=0, http_client=CLIENT)),
    "anthropic": ("anthropic/claude-sonnet-4-5", HANDLER),
    "gemini": ("gemini/gemini-2.5-pro", HANDLER),
}


def read(case: dict[str, Any], reads: list[bytes]) -> dict[str, Any] | None:
    if case.get("dialect") not in CLIENTS:
        return None
    model, client = CLIENTS[case["dialect"]]
    serve(reads)
    error, held = None, None
    try:
        stream: Any = litellm.completion(
            model=model, messages=ASKED, stream=True, client=client, api_key="none", num_retries=0
        )
        held = litellm.stream_chunk_builder(list(stream), messages=ASKED)
    except Exception as thrown:
        error = failed(thrown)
    message: Any = held.choices[0].message if held is not None and held.choices else None
    return {
        "error": error,
        "calls": [
            {"id": call.id, "name": call.function.name, "arguments": call.function.arguments}
            for call in (message.tool_calls if message else None) or ()
        ],
        "text": (message.content if message else None) or "",
        "reasoning": (getattr(message, "reasoning_content", None) or "") if message else "",
    }
