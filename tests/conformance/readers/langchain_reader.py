"""LangChain: the streams of `ChatOpenAI` and `ChatAnthropic`, and the sum of their chunks."""

from __future__ import annotations

from typing import Any

import anthropic
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from transport import SDK_CLIENT, failed, reader, serve

READER = reader("langchain-core", "LangChain")
MODELS: dict[str, Any] = {
    "chat": ChatOpenAI(model="m", api_key="none", base_url="http://case", max_retries=0, http_client=SDK_CLIENT),
    "responses": ChatOpenAI(
        model="m", api_key="none", base_url="http://case", max_retries=0, http_client=SDK_CLIENT, use_responses_api=True
    ),
    "anthropic": ChatAnthropic(model="m", api_key="none", base_url="http://case", max_retries=0),
}
MODELS["anthropic"].__dict__["_client"] = anthropic.Anthropic(
    api_key="none", base_url="http://case", max_retries=0, http_client=SDK_CLIENT
)


def read(case: dict[str, Any], reads: list[bytes]) -> dict[str, Any] | None:
    model = MODELS.get(case.get("dialect", ""))
    if model is None:
        return None
    serve(reads)
    error, held = None, None
    try:
        for chunk in model.stream("hi"):
            held = chunk if held is None else held + chunk
    except Exception as thrown:
        error = failed(thrown)
    if error is None and held is not None and held.invalid_tool_calls:
        error = "invalid_tool_calls"
    calls = [] if held is None or error else held.tool_calls
    return {
        "error": error,
        "calls": [{"id": call["id"], "name": call["name"], "arguments": call["args"]} for call in calls],
        "text": "" if held is None else held.text,
    }
