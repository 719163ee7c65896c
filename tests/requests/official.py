"""Validates complete requests with the vendors' own types, except the messages, which the judge of histories checks. It
does not share code or tables with `streamweld.requests`.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, Final

from tests.history.judge.typed import faults
from tests.history.judge.vendors import converse_shape

__all__ = ["GATEWAY_MEMBERS", "complaints"]

# Members that a gateway documents in addition to OpenAI's types:
# https://docs.z.ai/guides/capabilities/thinking-mode;
# https://github.com/volcengine/volcengine-go-sdk/blob/master/service/arkruntime/model/chat_completion.go;
# https://api-docs.deepseek.com/guides/thinking_mode; https://platform.moonshot.ai/docs/api/chat;
# https://openrouter.ai/docs/api-reference/parameters; https://docs.litellm.ai/docs/reasoning_content;
# https://console.groq.com/docs/service-tiers (values that OpenAI does not have)
GATEWAY_MEMBERS: Final = {
    "groq": {"service_tier"},
    "deepseek": {"thinking"},
    "kimi": {"thinking"},
    "zai": {"thinking", "user_id", "tool_stream", "do_sample", "request_id"},
    "gemini-openai": {"extra_body"},
    "volcengine": {"thinking"},
    "openrouter": {"reasoning", "top_k"},
    "litellm": {"thinking"},
}
# Members of a tool definition that a gateway documents in addition to OpenAI's:
# https://docs.litellm.ai/docs/completion/prompt_caching;
# https://openrouter.ai/docs/agent-sdk/typescript/api-reference/models/chatfunctiontoolfunction
GATEWAY_TOOL_MEMBERS: Final = {"litellm": {"cache_control"}, "openrouter": {"cache_control"}}
# Types of tools that a gateway documents in addition to OpenAI's: https://docs.z.ai/guides/tools/web-search;
# https://console.groq.com/docs/tool-use/built-in-tools; https://openrouter.ai/docs/guides/features/server-tools;
# https://platform.moonshot.ai/docs/guide/use-web-search
GATEWAY_TOOLS: Final = {
    "zai": ("web_search", "retrieval"),
    "groq": ("browser_search", "code_interpreter"),
    "openrouter": ("openrouter:web_search", "web_search", "web_search_preview"),
    "kimi": ("builtin_function",),
}
# All members in a gateway's own package or reference, except messages and stream options: (target, gateway) -> members.
# xAI: xai-sdk 1.21.0, proto/v6/chat_pb2.pyi, GetCompletionsRequest, and for Responses
# https://reference.langchain.com/javascript/interfaces/_langchain_xai.XAIResponsesCreateParamsStreaming.html; MiniMax:
# https://platform.minimax.io/docs/api-reference/text-chat, text-openai-api. groq 1.7.0 and cerebras_cloud_sdk 1.91.0:
# types/chat/completion_create_params.py, without the members that docstrings call unsupported. z.ai: zai-sdk 0.2.3,
# api_resource/chat/completions.py. Gemini: https://ai.google.dev/gemini-api/docs/openai, and the reports of unknown
# names that `_spec/requests.json` lists.
_STREAM: Final = {"stream", "stream_options"}
ONLY: Final = {
    ("openai-chat", "xai"): {
        *(
            "model",
            "user",
            "n",
            "max_tokens",
            "max_completion_tokens",
            "seed",
            "stop",
            "temperature",
            "top_p",
            "logprobs",
        ),
        *("top_logprobs", "tools", "tool_choice", "response_format", "frequency_penalty", "presence_penalty"),
        *("reasoning_effort", "parallel_tool_calls", "service_tier", "safety_identifier"),
        *_STREAM,
    },
    ("responses", "xai"): {
        *("include", "instructions", "logprobs", "max_output_tokens", "model", "parallel_tool_calls", "store", "tools"),
        *("previous_response_id", "reasoning", "temperature", "text", "tool_choice", "top_logprobs", "top_p", "user"),
        *_STREAM,
    },
    ("openai-chat", "groq"): {
        *("model", "frequency_penalty", "function_call", "functions", "max_completion_tokens", "max_tokens", "n"),
        *("parallel_tool_calls", "presence_penalty", "reasoning_effort", "response_format", "seed", "service_tier"),
        *("stop", "temperature", "tool_choice", "tools", "top_p", "user"),
        *_STREAM,
    },
    ("openai-chat", "cerebras"): {
        *("model", "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "n"),
        *("parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key", "reasoning_effort"),
        *("response_format", "seed", "service_tier", "stop", "temperature", "tool_choice", "tools", "top_logprobs"),
        *("top_p", "user"),
        *_STREAM,
    },
    ("openai-chat", "zai"): {
        *("model", "user_id", "stream", "temperature", "top_p", "max_tokens", "seed", "stop", "tools", "tool_choice"),
        *("response_format", "thinking", "reasoning_effort"),
    },
    ("openai-chat", "gemini-openai"): {
        *("model", "max_tokens", "max_completion_tokens", "n", "presence_penalty", "reasoning_effort", "stop"),
        *("response_format", "temperature", "top_p", "tools", "tool_choice", "parallel_tool_calls"),
        *_STREAM,
    },
    ("openai-chat", "minimax"): {
        *("model", "max_tokens", "max_completion_tokens", "temperature", "top_p", "tools", "tool_choice", "stop"),
        *("response_format",),
        *_STREAM,
    },
}
# ReasoningEffort in the same file; groq 1.7.0 and cerebras_cloud_sdk 1.91.0, types/chat/completion_create_params.py;
# https://ai.google.dev/gemini-api/docs/openai
_EFFORTS: Final = {
    "xai": {"none", "low", "medium", "high", "xhigh"},
    "groq": {"none", "default", "low", "medium", "high"},
    "cerebras": {"none", "low", "medium", "high"},
    "gemini-openai": {"none", "minimal", "low", "medium", "high"},
}
_MEMBERS: Final = {"responses": "input", "gemini": "contents"}
# Members of the hosted API (https://docs.mistral.ai/api) that are not in mistral-common, which is for local models.
_HOSTED: Final = {"stop", "n", "stream", "frequency_penalty", "presence_penalty", "metadata", "prediction"}
_HOSTED |= {"safe_prompt", "prompt_mode", "prompt_cache_key", "guardrails"}
# The API accepts these members for models before Claude Opus 4.7, but version 2 of the package no longer contains them:
# https://platform.claude.com/docs/en/about-claude/models/migration-guide
_SAMPLING: Final = {"temperature", "top_p", "top_k"}
_STRICT_CLAUDE: Final = {"anthropic", "vertex", "bedrock-mantle"}
_GEMINI_TOP: Final = {
    *("model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings"),
    *("cachedContent", "labels", "store", "serviceTier"),
}


def complaints(target: str, gateway: str, payload: Any) -> list[str]:
    """Return the errors that the official types report for the request, except its messages."""
    rest = {name: value for name, value in payload.items() if name not in ("system", "systemInstruction")}
    only = ONLY.get((target, gateway))
    if only is not None and (more := sorted(rest.keys() - only - {"messages", "input"})):
        return [f"{gateway} has no {name}" for name in more]
    if gateway in _EFFORTS:
        effort = rest.get("reasoning_effort") or (rest.get("reasoning") or {}).get("effort")
        if effort is not None and effort not in _EFFORTS[gateway]:
            return [f"{gateway} has no effort {effort}"]
    if gateway == "minimax" and not all(0 < rest.get(name, 1) <= 1 for name in ("temperature", "top_p")):
        return ["minimax: temperature and top_p are above 0 and at most 1"]
    rest[_MEMBERS.get(target, "messages")] = []
    match target:
        case "openai-chat" | "responses" | "anthropic":
            if target == "openai-chat":
                rest = {name: value for name, value in rest.items() if name not in GATEWAY_MEMBERS.get(gateway, ())}
                own = GATEWAY_TOOLS.get(gateway, ())
                if "tools" in rest:
                    more = GATEWAY_TOOL_MEMBERS.get(gateway, set())
                    rest["tools"] = [
                        {name: value for name, value in tool.items() if name not in more}
                        for tool in rest["tools"]
                        if tool["type"] not in own
                    ]
            if target == "anthropic" and not re.search(
                r"claude-(opus|sonnet|haiku|fable)-(4-[7-9]|[5-9])", str(rest.get("model"))
            ):
                rest = {name: value for name, value in rest.items() if name not in _SAMPLING}
            found = faults(_hint(target), {"model": "m", "stream": False, **rest})
            return found + (_anthropic_schemas(rest) if target == "anthropic" and gateway in _STRICT_CLAUDE else [])
        case "gemini":
            return _gemini(rest)
        case "bedrock-converse":
            return _bedrock(rest)
        case "mistral":
            return _mistral(rest)
        case _:
            return []


def _anthropic_schemas(rest: Any) -> list[str]:
    form = rest.get("output_config", {}).get("format")
    strict = [tool["input_schema"] for tool in rest.get("tools", ()) if tool.get("strict") and "input_schema" in tool]
    return _schemas([*strict, *([form["schema"]] if form else [])])


def _schemas(given: list[Any]) -> list[str]:
    """Return the schemas that Anthropic's SDK, which writes the subset that Claude accepts, would change."""
    from anthropic.lib._parse._transform import transform_schema

    return [
        f"{schema} is {fit}"
        for schema in given
        if (fit := transform_schema(_documented(schema))) != _documented(schema)
    ]


def _documented(schema: Any) -> Any:
    """Return the schema without what the SDK does not write, but the API accepts.

    These are simple patterns, defaults, several types, and members beside a reference or an enum:
    https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations
    """
    if isinstance(schema, list):
        return [_documented(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    maps = ("properties", "$defs")
    made = {
        name: {key: _documented(one) for key, one in value.items()} if name in maps else _documented(value)
        for name, value in schema.items()
        if name not in ("pattern", "default", "$schema")
    }
    if isinstance(made.get("type"), list):
        made["type"] = made["type"][0]
    if "enum" in made or "const" in made:
        made.pop("type", None)
    if "$ref" in made:
        made = {name: value for name, value in made.items() if name in ("$ref", "$defs")}
    if made.get("type") == "object":
        made.setdefault("properties", {})
    return made


@cache
def _hint(target: str) -> Any:
    if target == "openai-chat":
        from openai.types.chat.completion_create_params import CompletionCreateParams as Hint
    elif target == "responses":
        from openai.types.responses.response_create_params import ResponseCreateParams as Hint
    else:
        from anthropic.types.beta.message_create_params import MessageCreateParams as Hint
    return Hint


def _gemini(rest: Any) -> list[str]:
    import pydantic
    from google.genai import types

    found = [f"has {name}" for name in rest if name not in _GEMINI_TOP]
    tier = rest.get("serviceTier")
    found += [f"serviceTier {tier}"] if tier is not None and tier not in set(types.ServiceTier) else []
    parts = [(types.GenerationConfig, rest.get("generationConfig")), (types.ToolConfig, rest.get("toolConfig"))]
    parts += [(types.Tool, tool) for tool in rest.get("tools") or ()]
    parts += [(types.SafetySetting, one) for one in rest.get("safetySettings") or ()]
    for model, value in parts:
        if value is not None:
            try:
                model.model_validate(value)
            except pydantic.ValidationError as error:
                found += [f"{model.__name__} {one['loc']}: {one['msg']}" for one in error.errors()]
    return found


def _bedrock(rest: Any) -> list[str]:
    from botocore.validate import ParamValidator

    report = ParamValidator().validate({"modelId": "m", **rest}, converse_shape())
    if report.has_errors():
        return report.generate_report().splitlines()
    specs = [tool["toolSpec"] for tool in rest.get("toolConfig", {}).get("tools", ()) if "toolSpec" in tool]
    given = [spec["inputSchema"]["json"] for spec in specs if spec.get("strict")]
    form = rest.get("outputConfig", {}).get("textFormat")
    return _schemas([*given, *([json.loads(form["structure"]["jsonSchema"]["schema"])] if form else [])])


def _mistral(rest: Any) -> list[str]:
    import pydantic
    from mistral_common.protocol.instruct.request import ChatCompletionRequest

    own = {name: value for name, value in rest.items() if name not in _HOSTED}
    requested = [{"role": "user", "content": "hi"}]
    try:
        ChatCompletionRequest.model_validate({**json.loads(json.dumps(own)), "messages": requested})
    except pydantic.ValidationError as error:
        return [f"{one['loc']}: {one['msg']}" for one in error.errors()]
    return []
