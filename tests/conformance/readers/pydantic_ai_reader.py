"""pydantic-ai: the streamed responses of its models, without an agent."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
from pydantic_ai.messages import ModelRequest, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from transport import SDK_ASYNC_CLIENT, failed, reader, serve

READER = reader("pydantic-ai-slim", "pydantic-ai")
OPENAI = OpenAIProvider(
    openai_client=openai.AsyncOpenAI(
        api_key="none", base_url="http://case", max_retries=0, http_client=SDK_ASYNC_CLIENT
    )
)
ANTHROPIC = AnthropicProvider(
    anthropic_client=anthropic.AsyncAnthropic(
        api_key="none", base_url="http://case", max_retries=0, http_client=SDK_ASYNC_CLIENT
    )
)
MODELS: dict[str, Any] = {
    "chat": OpenAIChatModel("gpt-4.1", provider=OPENAI),
    "responses": OpenAIResponsesModel("gpt-4.1", provider=OPENAI),
    "anthropic": AnthropicModel("claude-sonnet-4-5", provider=ANTHROPIC),
}
ASKED: Any = [ModelRequest.user_text_prompt("hi")]


async def read(case: dict[str, Any], reads: list[bytes]) -> dict[str, Any] | None:
    model = MODELS.get(case.get("dialect", ""))
    if model is None:
        return None
    serve(reads)
    error, held = None, None
    try:
        async with model.request_stream(ASKED, None, ModelRequestParameters()) as stream:
            async for _ in stream:
                pass
            held = stream.get()
    except Exception as thrown:
        error = failed(thrown)
    parts: list[Any] = list(held.parts) if held is not None else []
    return {
        "error": error,
        "calls": [
            {"id": part.tool_call_id, "name": part.tool_name, "arguments": part.args}
            for part in parts
            if isinstance(part, ToolCallPart) and error is None
        ],
        "text": "".join(part.content for part in parts if isinstance(part, TextPart)),
        "reasoning": "".join(part.content for part in parts if isinstance(part, ThinkingPart)),
    }
