"""`requests.check`: an invalid request for every rule, and its corrected form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamweld import requests
from streamweld.errors import HistoryError, UsageError
from streamweld.history import HistoryPolicy

SPEC = Path(requests.__file__).resolve().parent.parent / "_spec" / "requests.json"
ASKED: Any = {"messages": [{"role": "user", "content": "hi"}]}
GET: Any = {"type": "function", "function": {"name": "get", "parameters": {"type": "object", "properties": {}}}}
CLAUDE_GET: Any = {"name": "get", "input_schema": {"type": "object"}}
LOOP: Any = {
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "get", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}]},
    ],
    "tools": [CLAUDE_GET],
}
THINKS: Any = {"type": "enabled", "budget_tokens": 2000}
BEDROCK_CLAUDE: Any = {"modelId": "us.anthropic.claude-sonnet-4-5-20250929-v1:0"}
BEDROCK_HI: Any = {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}
BEDROCK_TOOLS: Any = [{"toolSpec": {"name": "get", "inputSchema": {"json": {"type": "object"}}}}]
BEDROCK_LOOP: Any = {
    "messages": [
        *BEDROCK_HI["messages"],
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "get", "input": {}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "ok"}]}}]},
    ],
    "toolConfig": {"tools": BEDROCK_TOOLS},
}


def strict(required: list[str], more: bool = False) -> Any:
    properties = {"a": {"type": "string"}, "b": {"type": ["string", "null"]}}
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": more}
    return {"type": "function", "function": {"name": "get", "parameters": schema, "strict": True}}


def gemini(model: str, thinking: Any = None, **more: Any) -> dict[str, Any]:
    extra = {} if thinking is None else {"generationConfig": {"thinkingConfig": thinking}}
    return {"model": model, "contents": [{"role": "user", "parts": [{"text": "hi"}]}], **extra, **more}


def marked(number: int) -> Any:
    return [{"type": "text", "text": str(n), "cache_control": {"type": "ephemeral"}} for n in range(number)]


def claude_format(*, cited: bool = False, prefill: bool = False) -> dict[str, Any]:
    source = {"type": "text", "media_type": "text/plain", "data": "x"}
    document = {"type": "document", "source": source, "citations": {"enabled": cited}}
    asked = [{"role": "user", "content": [document, {"type": "text", "text": "hi"}]}]
    begun = [{"role": "assistant", "content": "{"}] if prefill else []
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "messages": [*asked, *begun],
        "output_config": {"format": {"type": "json_schema", "schema": CLOSED}},
    }


CLOSED: Any = {"type": "object", "properties": {}, "additionalProperties": False}


def claude_strict(more: bool = False, **members: Any) -> Any:
    """Return a strict tool with one property of these members."""
    inner = {"type": "string", **members}
    schema = {
        "type": "object",
        "properties": {"a": inner},
        "additionalProperties": more,
        "$defs": {"A": {"type": "null"}},
    }
    return {"name": "get", "strict": True, "input_schema": schema}


def bedrock_strict(members: Any) -> dict[str, Any]:
    tool = claude_strict(**members)
    spec = {"name": "get", "strict": True, "inputSchema": {"json": tool["input_schema"]}}
    return bedrock(toolConfig={"tools": [{"toolSpec": spec}]})


def converse_format(schema: Any) -> Any:
    form = {"type": "json_schema", "structure": {"jsonSchema": {"name": "x", "schema": json.dumps(schema)}}}
    return {"textFormat": form}


def chat_format(schema: Any) -> Any:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}


MIXED: Any = [{"functionDeclarations": [{"name": "get"}]}, {"googleSearch": {}}]
SERVER: Any = {"includeServerSideToolInvocations": True}


def declared(schema: Any) -> dict[str, Any]:
    return gemini("m", tools=[{"functionDeclarations": [{"name": "get", "parameters": schema}]}])


def bedrock(thinking: Any = None, **more: Any) -> dict[str, Any]:
    extra = {} if thinking is None else {"additionalModelRequestFields": {"thinking": thinking}}
    return {**BEDROCK_CLAUDE, **BEDROCK_HI, **extra, **more}


def tool_with(target: str, members: Any) -> dict[str, Any]:
    """Return request members with one tool whose schema has these members."""
    schema = {"type": "object", "properties": {}, **members}
    match target:
        case "openai-chat":
            return {"tools": [{"type": "function", "function": {"name": "get", "parameters": schema}}]}
        case "gemini":
            return gemini("m", tools=[{"functionDeclarations": [{"name": "get", "parametersJsonSchema": schema}]}])
        case "anthropic":
            return {"max_tokens": 9, "tools": [{"name": "get", "input_schema": schema}]}
        case _:
            return {"input": "hi", "tools": [{"type": "function", "name": "get", "parameters": schema}]}


GET_MARKED = {"name": "get", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}
SYSTEM_FOR_AN_HOUR = {"type": "text", "text": "s", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
# Rule, target, gateway, invalid members, and the same members corrected.
WRONG: list[tuple[str, str, str | None, Any, Any]] = [
    ("option_unknown", "openai-chat", None, {"top_k": 5}, {}),
    ("option_unknown", "anthropic", None, {"max_tokens": 9, "metadata": {"k": "v"}}, {"max_tokens": 9, "metadata": {}}),
    ("option_shape", "openai-chat", None, {"temperature": "hot"}, {"temperature": 1}),
    ("option_shape", "openai-chat", None, {"tools": {"get": GET}}, {"tools": [GET]}),
    ("option_bounds", "openai-chat", None, {"temperature": 3}, {"temperature": 2}),
    ("option_bounds", "openai-chat", None, {"stop": list("abcde")}, {"stop": list("abcd")}),
    (
        "option_bounds",
        "anthropic",
        None,
        {"max_tokens": 2000, "thinking": THINKS},
        {"max_tokens": 2001, "thinking": THINKS},
    ),
    ("option_form", "openai-chat", None, {"safety_identifier": "u" * 129}, {"safety_identifier": "u" * 128}),
    ("option_form", "openai-chat", None, {"user": "u" * 129}, {"user": "u" * 128}),
    ("option_form", "responses", None, {"input": "hi", "prompt_cache_key": "k" * 65}, {"input": "hi"}),
    ("option_form", "openai-chat", "zai", {"user_id": "short"}, {"user_id": "longer"}),
    (
        "option_form",
        "anthropic",
        "deepseek",
        {"max_tokens": 9, "metadata": {"user_id": "{}"}},
        {"max_tokens": 9, "metadata": {"user_id": "u_1-a"}},
    ),
    ("option_required", "anthropic", None, {}, {"max_tokens": 9}),
    (
        "option_required",
        "anthropic",
        None,
        {"max_tokens": 9, "tools": [CLAUDE_GET], "tool_choice": {"disable_parallel_tool_use": True}},
        {"max_tokens": 9, "tools": [CLAUDE_GET], "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
    ),
    ("option_unsupported", "openai-chat", "deepseek", {"seed": 7}, {}),
    ("option_unsupported", "openai-chat", None, {"model": "o3", "top_p": 0.5}, {"model": "o3", "top_p": 1}),
    (
        "option_unsupported",
        "openai-chat",
        "azure-openai",
        {"model": "gpt-5-mini", "logit_bias": {"1": 2}},
        {"model": "gpt-4.1", "logit_bias": {"1": 2}},
    ),
    (
        "option_unsupported",
        "responses",
        None,
        {"input": "hi", "model": "gpt-5.1", "temperature": 0.5, "reasoning": {"effort": "low"}},
        {"input": "hi", "model": "gpt-5.1", "temperature": 0.5, "reasoning": {"effort": "none"}},
    ),
    (
        "option_unsupported",
        "openai-chat",
        "kimi",
        {"tools": [GET], "tool_choice": "required"},
        {"tools": [GET], "tool_choice": "auto"},
    ),
    (
        "option_unsupported",
        "anthropic",
        None,
        {"model": "claude-opus-4-7", "max_tokens": 9, "temperature": 1},
        {"model": "claude-opus-4-6", "max_tokens": 9, "temperature": 1},
    ),
    (
        "option_unsupported",
        "anthropic",
        None,
        {"model": "claude-opus-4-7", "max_tokens": 9000, "thinking": THINKS},
        {"model": "claude-opus-4-7", "max_tokens": 9000, "thinking": {"type": "adaptive"}},
    ),
    (
        "option_conflict",
        "anthropic",
        None,
        {"max_tokens": 9000, "thinking": THINKS, "tools": [CLAUDE_GET], "tool_choice": {"type": "any"}},
        {"max_tokens": 9000, "thinking": THINKS, "tools": [CLAUDE_GET], "tool_choice": {"type": "auto"}},
    ),
    (
        "option_conflict",
        "anthropic",
        None,
        {"max_tokens": 9000, "thinking": {"type": "adaptive"}, "temperature": 0.5},
        {"max_tokens": 9000, "thinking": {"type": "adaptive"}, "temperature": 1},
    ),
    (
        "option_conflict",
        "anthropic",
        None,
        {"model": "claude-sonnet-4-5", "max_tokens": 9, "temperature": 0.5, "top_p": 0.5},
        {"model": "claude-sonnet-4-5", "max_tokens": 9, "top_p": 0.5},
    ),
    (
        "thinking_unsigned",
        "anthropic",
        None,
        {"max_tokens": 9000, **LOOP, "thinking": THINKS},
        {"max_tokens": 9000, **LOOP},
    ),
    (
        "thinking_unsigned",
        "anthropic",
        None,
        {
            "max_tokens": 9000,
            "messages": [*ASKED["messages"], {"role": "assistant", "content": "{"}],
            "thinking": THINKS,
        },
        {"max_tokens": 9000, "messages": [*ASKED["messages"], {"role": "assistant", "content": "{"}]},
    ),
    (
        "option_conflict",
        "bedrock-converse",
        None,
        bedrock(THINKS, toolConfig={"tools": BEDROCK_TOOLS, "toolChoice": {"any": {}}}),
        bedrock(THINKS, toolConfig={"tools": BEDROCK_TOOLS, "toolChoice": {"auto": {}}}),
    ),
    (
        "option_conflict",
        "bedrock-converse",
        None,
        bedrock(inferenceConfig={"temperature": 0.3, "topP": 0.5}),
        bedrock(inferenceConfig={"topP": 0.5}),
    ),
    (
        "option_conflict",
        "bedrock-converse",
        None,
        bedrock(THINKS, inferenceConfig={"topP": 0.5}),
        bedrock(THINKS, inferenceConfig={"topP": 0.95}),
    ),
    (
        "option_bounds",
        "bedrock-converse",
        None,
        bedrock(THINKS, inferenceConfig={"maxTokens": 2000}),
        bedrock(THINKS, inferenceConfig={"maxTokens": 2001}),
    ),
    (
        "option_unsupported",
        "bedrock-converse",
        None,
        bedrock(modelId="anthropic.claude-opus-4-7", inferenceConfig={"temperature": 0.3}),
        bedrock(modelId="amazon.nova-pro-v1:0", inferenceConfig={"temperature": 0.3}),
    ),
    ("thinking_unsigned", "bedrock-converse", None, bedrock(THINKS, **BEDROCK_LOOP), bedrock(**BEDROCK_LOOP)),
    ("tools_missing", "bedrock-converse", None, {"messages": BEDROCK_LOOP["messages"]}, BEDROCK_LOOP),
    (
        "option_unsupported",
        "openai-chat",
        None,
        {"model": "gpt-4o", "reasoning_effort": "none"},
        {"model": "gpt-5.1", "reasoning_effort": "none"},
    ),
    (
        "option_unsupported",
        "responses",
        None,
        {"model": "gpt-5.1", "input": "hi", "reasoning": {"effort": "minimal"}},
        {"model": "gpt-5", "input": "hi", "reasoning": {"effort": "minimal"}},
    ),
    ("tools_mixed", "gemini", None, gemini("gemini-2.5-pro", tools=MIXED), gemini("gemini-2.5-pro", tools=MIXED[:1])),
    ("tools_mixed", "gemini", "vertex", gemini("gemini-2.5-pro", tools=MIXED), gemini("gemini-3-pro", tools=MIXED)),
    (
        "tools_mixed",
        "gemini",
        None,
        gemini("gemini-3-pro", tools=MIXED),
        gemini("gemini-3-pro", tools=MIXED, toolConfig=SERVER),
    ),
    (
        "option_bounds",
        "gemini",
        None,
        gemini("gemini-2.5-pro", {"thinkingBudget": 0}),
        gemini("gemini-2.5-flash-lite", {"thinkingBudget": 0}),
    ),
    (
        "option_bounds",
        "gemini",
        None,
        gemini("gemini-2.5-flash-lite", {"thinkingBudget": 100}),
        gemini("gemini-2.5-flash", {"thinkingBudget": 100}),
    ),
    (
        "option_unsupported",
        "gemini",
        None,
        gemini("gemini-3-pro-preview", {"thinkingLevel": "MEDIUM"}),
        gemini("gemini-3-flash-preview", {"thinkingLevel": "MEDIUM"}),
    ),
    (
        "option_conflict",
        "gemini",
        None,
        gemini("gemini-3-pro", {"thinkingLevel": "low", "thinkingBudget": 9}),
        gemini("gemini-3-pro", {"thinkingLevel": "low"}),
    ),
    (
        "encrypted_reasoning",
        "responses",
        None,
        {"input": [{"role": "user", "content": "hi"}], "store": False, "reasoning": {"effort": "low"}},
        {
            "input": [{"role": "user", "content": "hi"}],
            "store": False,
            "reasoning": {"effort": "low"},
            "include": ["reasoning.encrypted_content"],
        },
    ),
    (
        "tool_schema",
        "anthropic",
        None,
        {"max_tokens": 9, "tools": [{"name": "get", "input_schema": {"type": "string"}}]},
        {"max_tokens": 9, "tools": [CLAUDE_GET]},
    ),
    (
        "tool_schema",
        "openai-chat",
        None,
        {"tools": [{"type": "function", "function": {"name": "get", "parameters": {"type": "object"}}}]},
        {"tools": [GET]},
    ),
    (
        "tool_schema",
        "responses",
        None,
        {"input": "hi", "tools": [{"type": "function", "name": "get", "parameters": {"type": "object"}}]},
        {"input": "hi", "tools": [{"type": "function", "name": "get", "parameters": GET["function"]["parameters"]}]},
    ),
    ("tool_strict", "openai-chat", None, {"tools": [strict(["a"])]}, {"tools": [strict(["a", "b"])]}),
    (
        "tool_strict",
        "responses",
        None,
        {"input": "hi", "tools": [{"type": "function", **strict(["a"])["function"]}]},
        {"input": "hi", "tools": [{"type": "function", **strict(["b", "a"])["function"]}]},
    ),
    *[
        ("tool_strict", "anthropic", None, {"max_tokens": 9, "tools": [wrong]}, {"max_tokens": 9, "tools": [right]})
        for wrong, right in (
            (claude_strict(minimum=1), claude_strict()),
            (claude_strict(more=True), claude_strict()),
            (claude_strict(minItems=2, type="array"), claude_strict(minItems=1, type="array")),
            (claude_strict(pattern=r"\bx"), claude_strict(pattern=r"\d{3,5}")),
            (claude_strict(**{"$ref": "#"}), claude_strict(**{"$ref": "#/$defs/A"})),
            (claude_strict(**{"$ref": "#/$defs/B"}), claude_strict(**{"$ref": "#/$defs/A"})),
        )
    ],
    ("tool_strict", "bedrock-converse", None, bedrock_strict({"maxLength": 1}), bedrock_strict({"format": "uri"})),
    *[
        (
            "format_schema",
            "anthropic",
            None,
            {"max_tokens": 9, "output_config": {"format": {"type": "json_schema", "schema": wrong}}},
            {"max_tokens": 9, "output_config": {"format": {"type": "json_schema", "schema": CLOSED}}},
        )
        for wrong in ({"type": "object"}, {**CLOSED, "oneOf": [{"type": "object"}]}, {"properties": {}}, {})
    ],
    (
        "format_schema",
        "bedrock-converse",
        None,
        bedrock(outputConfig=converse_format({"type": "object"})),
        bedrock(outputConfig=converse_format(CLOSED)),
    ),
    (
        "format_schema",
        "openai-chat",
        None,
        {"response_format": chat_format(strict([])["function"]["parameters"])},
        {"response_format": chat_format(strict(["a", "b"])["function"]["parameters"])},
    ),
    ("tool_strict", "openai-chat", "azure-openai", {"tools": [strict([], False)]}, {"tools": [strict(["a", "b"])]}),
    (
        "tool_name",
        "openai-chat",
        None,
        {"tools": [{"type": "function", "function": {"name": "a b"}}]},
        {"tools": [GET]},
    ),
    ("tool_unsupported", "openai-chat", None, {"tools": [{"type": "web_search"}]}, {"tools": [GET]}),
    (
        "tool_unsupported",
        "openai-chat",
        "openrouter",
        {"tools": [{"type": "file_search"}]},
        {"tools": [{"type": "openrouter:web_search"}]},
    ),
    (
        "option_unsupported",
        "anthropic",
        None,
        {"max_tokens": 9, "service_tier": "flex"},
        {"max_tokens": 9, "service_tier": "standard_only"},
    ),
    ("tool_repeated", "openai-chat", None, {"tools": [GET, GET]}, {"tools": [GET]}),
    (
        "tool_unsupported",
        "openai-chat",
        "deepseek",
        {"tools": [{"type": "custom", "custom": {"name": "py"}}]},
        {"tools": [GET]},
    ),
    (
        "tool_choice_unknown",
        "openai-chat",
        None,
        {"tools": [GET], "tool_choice": {"type": "function", "function": {"name": "put"}}},
        {"tools": [GET], "tool_choice": {"type": "function", "function": {"name": "get"}}},
    ),
    (
        "tool_choice_unknown",
        "gemini",
        None,
        {
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "tools": [{"functionDeclarations": [{"name": "get"}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["put"]}},
        },
        {
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "tools": [{"functionDeclarations": [{"name": "get"}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["get"]}},
        },
    ),
    ("cache_marks", "anthropic", None, {"max_tokens": 9, "system": marked(5)}, {"max_tokens": 9, "system": marked(4)}),
    (
        "cache_marks",
        "anthropic",
        None,
        {"max_tokens": 9, "cache_control": {"type": "ephemeral"}, "messages": [{"role": "user", "content": marked(4)}]},
        {"max_tokens": 9, "cache_control": {"type": "ephemeral"}, "messages": [{"role": "user", "content": marked(3)}]},
    ),
    (
        "cache_marks",
        "bedrock-converse",
        None,
        bedrock(system=[{"text": "s"}, *[{"cachePoint": {"type": "default"}}] * 5]),
        bedrock(system=[{"text": "s"}, *[{"cachePoint": {"type": "default"}}] * 4]),
    ),
    ("tools_empty", "openai-chat", None, {"tools": []}, {"tools": [GET]}),
    ("tools_empty", "openai-chat", None, {"functions": []}, {}),
    ("option_alone", "openai-chat", None, {"parallel_tool_calls": True}, {"parallel_tool_calls": True, "tools": [GET]}),
    (
        "option_alone",
        "openai-chat",
        None,
        {"stream_options": {"include_usage": True}},
        {"stream_options": {"include_usage": True}, "stream": True},
    ),
    ("option_alone", "openai-chat", None, {"top_logprobs": 2}, {"top_logprobs": 2, "logprobs": True}),
    ("option_conflict", "openai-chat", None, {"max_tokens": 1, "max_completion_tokens": 1}, {"max_tokens": 1}),
    ("option_conflict", "anthropic", None, claude_format(cited=True), claude_format()),
    ("option_conflict", "anthropic", None, claude_format(prefill=True), claude_format()),
    (
        "option_conflict",
        "responses",
        None,
        {"input": "hi", "previous_response_id": "resp_1", "conversation": "conv_1"},
        {"input": "hi", "conversation": "conv_1"},
    ),
    ("option_shape", "openai-chat", None, {"metadata": {"n": 1}}, {"metadata": {"n": "1"}}),
    ("option_form", "openai-chat", None, {"metadata": {"k": "v" * 513}}, {"metadata": {"k": "v" * 512}}),
    ("option_form", "responses", None, {"input": "hi", "metadata": {"k" * 65: ""}}, {"input": "hi", "metadata": {}}),
    ("option_form", "bedrock-converse", None, bedrock(requestMetadata={"k": "é"}), bedrock(requestMetadata={"k": "e"})),
    (
        "format_word",
        "openai-chat",
        None,
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_object"}, "messages": [{"role": "user", "content": "as JSON"}]},
    ),
    (
        "format_word",
        "responses",
        None,
        {"input": "hi", "instructions": "in JSON", "text": {"format": {"type": "json_object"}}},
        {
            "input": [{"role": "user", "content": [{"type": "input_text", "text": "Json, please"}]}],
            "text": {"format": {"type": "json_object"}},
        },
    ),
    (
        "format_word",
        "openai-chat",
        "deepseek",
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "text"}},
    ),
    (
        "option_form",
        "anthropic",
        None,
        {"max_tokens": 9, "stop_sequences": ["x", " "]},
        {"max_tokens": 9, "stop_sequences": ["x "]},
    ),
    (
        "option_alone",
        "anthropic",
        None,
        {
            "max_tokens": 9,
            "tools": [CLAUDE_GET],
            "tool_choice": {"type": "none", "disable_parallel_tool_use": True},
        },
        {
            "max_tokens": 9,
            "tools": [CLAUDE_GET],
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        },
    ),
    (
        "option_conflict",
        "anthropic",
        None,
        {
            "model": "claude-opus-5",
            "max_tokens": 9,
            "thinking": {"type": "disabled"},
            "output_config": {"effort": "max"},
        },
        {
            "model": "claude-opus-5",
            "max_tokens": 9,
            "thinking": {"type": "disabled"},
            "output_config": {"effort": "high"},
        },
    ),
    (
        "option_alone",
        "gemini",
        None,
        gemini("m", generationConfig={"logprobs": 3, "responseLogprobs": False}),
        gemini("m", generationConfig={"logprobs": 3, "responseLogprobs": True}),
    ),
    ("tool_choice_alone", "openai-chat", None, {"tool_choice": "auto"}, {"tool_choice": "auto", "tools": [GET]}),
    (
        "tool_description",
        "bedrock-converse",
        None,
        bedrock(toolConfig={"tools": [{"toolSpec": {**BEDROCK_TOOLS[0]["toolSpec"], "description": ""}}]}),
        bedrock(toolConfig={"tools": BEDROCK_TOOLS}),
    ),
    (
        "schema_member",
        "gemini",
        None,
        declared({"type": "OBJECT", "properties": {"a": {"type": "STRING", "const": "x"}}}),
        declared({"type": "OBJECT", "properties": {"const": {"type": "STRING", "min_length": "1"}}}),
    ),
    (
        "schema_member",
        "gemini",
        "vertex",
        declared({"type": "OBJECT", "properties": {"a": {"type": ["STRING", "NULL"]}}}),
        declared({"type": "OBJECT", "additionalProperties": {"type": "STRING"}}),
    ),
    (
        "schema_member",
        "gemini",
        None,
        gemini("m", generationConfig={"responseSchema": {"anyOf": [{"items": {"$ref": "#"}}]}}),
        gemini("m", generationConfig={"responseJsonSchema": {"$ref": "#"}}),
    ),
    *[
        ("schema_keyword", target, gateway, tool_with(target, wrong), tool_with(target, right))
        for target, gateway, wrong, right in [
            ("anthropic", None, {"anyOf": [{"required": ["a"]}]}, {"not": {"required": ["a"]}}),
            ("anthropic", "vertex", {"properties": {"a b": {}}}, {"properties": {"a": {"properties": {"a b": {}}}}}),
            ("responses", None, {"not": {"required": ["a"]}}, {"properties": {"a": {"not": {"type": "null"}}}}),
            ("openai-chat", None, {"properties": {"a": {"type": "array"}}}, {"properties": {"a": {"items": {}}}}),
            (
                "openai-chat",
                "xai",
                {"properties": {"a": {"items": [{}]}}},
                {"properties": {"a": {"prefixItems": [{}]}}},
            ),
            (
                "openai-chat",
                "kimi",
                {"properties": {"a": {"type": "object", "anyOf": [{}]}}},
                {"properties": {"anyOf": {}}},
            ),
            ("gemini", None, {"properties": {"a": {"required": True}}}, {"properties": {"required": {"const": True}}}),
        ]
    ],
    (
        "cache_lifetime",
        "anthropic",
        None,
        {"max_tokens": 9, "tools": [GET_MARKED], "system": [SYSTEM_FOR_AN_HOUR]},
        {"max_tokens": 9, "system": [SYSTEM_FOR_AN_HOUR], "cache_control": {"type": "ephemeral"}},
    ),
    (
        "cache_lifetime",
        "anthropic",
        None,
        {"max_tokens": 9, "tools": [GET_MARKED], "cache_control": {"type": "ephemeral", "ttl": "1h"}},
        {"max_tokens": 9, "tools": [GET_MARKED], "cache_control": {"type": "ephemeral", "ttl": "5m"}},
    ),
    (
        "cache_lifetime",
        "anthropic",
        None,
        {
            "max_tokens": 9,
            "cache_control": {"type": "ephemeral"},
            "messages": [{"role": "user", "content": [SYSTEM_FOR_AN_HOUR]}],
        },
        {
            "max_tokens": 9,
            "cache_control": {"type": "ephemeral", "ttl": "1h"},
            "messages": [{"role": "user", "content": [SYSTEM_FOR_AN_HOUR]}],
        },
    ),
    (
        "schema_member",
        "gemini",
        None,
        declared({"type": "OBJECT", "properties": {"a": {"type": "INTEGER", "enum": [1]}}}),
        declared({"type": "OBJECT", "properties": {"enum": {"type": "STRING", "enum": ["1"]}}}),
    ),
    (
        "schema_member",
        "gemini",
        None,
        declared({"type": "OBJECT", "properties": {"a": {"type": "ARRAY"}}}),
        declared({"type": "OBJECT", "properties": {"a": {"type": "ARRAY", "items": {}}}}),
    ),
    ("tool_choice_alone", "openai-chat", None, {"tool_choice": "required"}, {"tool_choice": "none"}),
]


@pytest.mark.parametrize(("rule", "target", "gateway", "wrong", "right"), WRONG)
def test_a_rule(rule: str, target: Any, gateway: str | None, wrong: Any, right: Any) -> None:
    base = {} if target in ("responses", "gemini") else ASKED
    found = [one.rule for one in requests.check({**base, **wrong}, target=target, gateway=gateway)]
    assert rule in found
    assert rule not in [one.rule for one in requests.check({**base, **right}, target=target, gateway=gateway)]


def test_every_rule_of_a_violation_has_its_case() -> None:
    rules = json.loads(SPEC.read_text("utf-8"))["rules"]
    only_edits = {"option_implied", "option_approximated", "stateless", "legacy_functions"}
    assert {row[0] for row in WRONG} == set(rules) - only_edits


def test_a_choice_of_a_tool_whose_name_does_not_fit() -> None:
    """Only the name is wrong: the request defines the tool."""
    tool = {"type": "function", "function": {"name": "get.weather", "parameters": {"type": "object", "properties": {}}}}
    choice = {"type": "function", "function": {"name": "get.weather"}}
    found = requests.check({**ASKED, "tools": [tool], "tool_choice": choice}, target="openai-chat")
    assert [one.rule for one in found] == ["tool_name"]


def test_violations_of_messages_come_first() -> None:
    found = requests.check({"messages": [{"role": "assistant", "content": "x "}], "temperature": 3}, target="anthropic")
    assert [one.rule for one in found] == ["first_role", "trailing_space", "option_required", "option_bounds"]


def test_a_wrong_gateway_or_no_request() -> None:
    with pytest.raises(UsageError):
        requests.check(ASKED, target="anthropic", gateway="nobody")
    with pytest.raises(UsageError):
        requests.check([ASKED], target="anthropic")  # type: ignore[arg-type]


def test_vital_options_can_be_refused() -> None:
    policy = requests.RequestPolicy(vital="raise")
    for member, path in (
        ({"stop": "x"}, "/stop"),
        ({"n": 3}, "/n"),
        ({"response_format": {"type": "json_object"}}, "/response_format"),
    ):
        target: Any = "responses" if "response_format" not in member else "anthropic"
        with pytest.raises(HistoryError) as caught:
            requests.convert({"model": "m", **ASKED, **member}, source="chat", target=target, policy=policy)
        assert (caught.value.rule, caught.value.path) == ("unsupported_option", path)
        assert str(caught.value).startswith(f"{path}: unsupported_option: ")
        assert caught.value.detail.partition(": ")[2]
    done = requests.convert({"model": "m", **ASKED, "seed": 7}, source="chat", target="responses", policy=policy)
    assert [loss.feature for loss in done.losses] == ["seed"]
    with pytest.raises(UsageError):
        requests.RequestPolicy(vital="maybe")  # type: ignore[arg-type]


def test_a_reference_to_earlier_turns_at_a_gateway_without_them() -> None:
    """The loss has the same reason as for another API, and is vital, although the messages are not translated."""
    request = {"model": "m", "input": "hi", "previous_response_id": "resp_1"}
    gateways: list[tuple[Any, Any]] = [
        ("responses", "openrouter"),
        ("responses", {"name": "mine", "like": "openai-responses", "constraints": {"stored_responses": False}}),
        ("anthropic", None),
    ]
    reasons = set()
    for target, gateway in gateways:
        done = requests.convert(request, source="responses", target=target, gateway=gateway)
        assert "previous_response_id" not in done.payload
        (loss,) = [loss for loss in done.losses if loss.feature == "previous_response_id"]
        reasons.add(loss.why)
        policy = requests.RequestPolicy(vital="raise")
        with pytest.raises(HistoryError, match="previous_response_id: the earlier turns"):
            requests.convert(request, source="responses", target=target, gateway=gateway, policy=policy)
    assert len(reasons) == 1


def test_a_policy_of_histories_will_do() -> None:
    broken = [
        *ASKED["messages"],
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", **GET, "function": {"name": "get", "arguments": "{}"}}],
        },
    ]
    done = requests.convert(
        {"model": "m", "max_tokens": 9, "messages": broken},
        source="chat",
        target="anthropic",
        policy=HistoryPolicy(orphan_call="drop"),
    )
    assert len(done.payload["messages"]) == 1
