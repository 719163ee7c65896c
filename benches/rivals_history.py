"""Other converters of request histories, each called through the function that does the same job, and a check of their
output.

The job is to convert Chat Completions messages, including system messages, to the history members of the target's
request: with a separate system prompt if the target requires it, tool calls and results in its format, merged turns,
and checked ids.

litellm: the method that builds the body in its completion() (`transform_request`; for Gemini `transform_request_body`,
for Responses the bridge's method): it separates the system messages, and checks names and tools. Its inner step
(`anthropic_messages_pt`) takes messages that are already separated, so it does only a part of the job, and is reported
as such. completion() first makes a deep copy (`anthropic/chat/handler.py`), which is reported separately, because a
caller of the method does not need it.

linguafranca: `convert_request_json`, its only entry point for dicts; OpenAI and Anthropic only.

This module does not depend on streamweld.
"""

from __future__ import annotations

import copy
import json
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MODEL = "claude-sonnet-4-5"


def rivals(given: list[dict[str, Any]], target: str) -> dict[str, Callable[[], Any]]:
    """Return the installed converters by name. Each returns the target's request, and gets the input itself, not a
    copy.
    """
    found: dict[str, Callable[[], Any]] = {}
    if find_spec("litellm") is not None:
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # without this, its import accesses the network
        found |= _litellm(given, target)
    if find_spec("linguafranca") is not None:
        found |= _linguafranca(given, target)
    return found


def parts(given: list[dict[str, Any]], target: str) -> dict[str, Callable[[], Any]]:
    """Return the inner steps of litellm's conversion, which are reported separately."""
    if target != "anthropic" or find_spec("litellm") is None:
        return {}
    from litellm.litellm_core_utils.prompt_templates.factory import anthropic_messages_pt

    return {
        "litellm: anthropic_messages_pt alone": lambda: anthropic_messages_pt(given, MODEL, "anthropic"),
        "litellm: the copy that completion() makes": lambda: copy.deepcopy(given),
    }


def _litellm(given: list[dict[str, Any]], target: str) -> dict[str, Callable[[], Any]]:
    messages: Any = given
    if target == "anthropic":
        from litellm.llms.anthropic.chat.transformation import AnthropicConfig

        anthropic = AnthropicConfig()
        return {"litellm": lambda: anthropic.transform_request(MODEL, messages, {}, {}, {})}
    if target == "bedrock-converse":
        from litellm.llms.bedrock.chat.converse_transformation import AmazonConverseConfig

        bedrock, model = AmazonConverseConfig(), "anthropic.claude-sonnet-4-5-20250929-v1:0"
        return {"litellm": lambda: bedrock.transform_request(model, messages, {"tools": TOOLS}, {}, {})}
    if target == "gemini":
        from litellm.llms.vertex_ai.gemini.transformation import transform_request_body

        return {"litellm": lambda: transform_request_body(messages, "gemini-3-pro-preview", {}, "gemini", {}, None)}
    if target == "responses":
        from litellm.completion_extras.litellm_responses_transformation.transformation import (
            LiteLLMResponsesTransformationHandler,
        )

        bridge = LiteLLMResponsesTransformationHandler()
        return {"litellm": lambda: {"input": bridge.convert_chat_completion_messages_to_responses_api(messages)[0]}}
    return {}


def _linguafranca(given: list[dict[str, Any]], target: str) -> dict[str, Callable[[], Any]]:
    import linguafranca as lf

    formats = {"anthropic": lf.FormatName.ANTHROPIC_MESSAGES, "responses": lf.FormatName.OPEN_RESPONSES}
    if target not in formats:
        return {}
    payload = {"model": MODEL, "max_tokens": 1000, "messages": given}
    source, wanted = lf.FormatName.OPENAI_CHAT_COMPLETIONS, formats[target]
    return {
        "linguafranca": lambda: lf.convert_request_json(payload, source_format=source, target_format=wanted).value,
    }


TOOLS = [{"toolSpec": {"name": "search", "inputSchema": {"json": {"type": "object"}}}}]


def content_of(payload: Any, target: str) -> list[Any]:
    """Return the content of a request in order: texts with their role, and calls and results with their ids (without
    ids for Gemini).
    """
    found: list[Any] = []
    for message in payload[{"responses": "input", "gemini": "contents"}.get(target, "messages")]:
        kind, role = message.get("type"), message.get("role")
        if kind == "function_call":
            found.append(("call", message["call_id"], message["name"], json.loads(message["arguments"])))
            continue
        if kind == "function_call_output":
            found.append(("result", message["call_id"], _text(message["output"])))
            continue
        side = "assistant" if role in ("assistant", "model") else role
        content = message.get("parts") if target == "gemini" else message.get("content")
        blocks = [{"text": content}] if isinstance(content, str) else content or []
        found += [_block(block, side, message) for block in blocks]
        for call in message.get("tool_calls") or ():
            function = call["function"]
            found.append(("call", call["id"], function["name"], json.loads(function["arguments"])))
    return found


def _block(block: dict[str, Any], side: str, message: dict[str, Any]) -> Any:
    if side == "tool":
        return ("result", message["tool_call_id"], block["text"])
    if block.get("type") == "tool_use":
        return ("call", block["id"], block["name"], block["input"])
    if block.get("type") == "tool_result":
        return ("result", block["tool_use_id"], _text(block["content"]))
    if use := block.get("toolUse"):
        return ("call", use["toolUseId"], use["name"], use["input"])
    if result := block.get("toolResult"):
        return ("result", result["toolUseId"], _text(result["content"]))
    if use := block.get("functionCall") or block.get("function_call"):
        return ("call", "", use["name"], use["args"])
    if result := block.get("functionResponse") or block.get("function_response"):
        return ("result", "", _text([{"text": value} for value in result["response"].values()]))
    return (side, block["text"])


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join([block["text"] for block in content])
