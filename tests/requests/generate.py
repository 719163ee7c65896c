"""Random requests that are valid in their API, with any of its options. Each option has a unique value.

The messages are those of `tests/support/generate/history.py`. `tokens`: values that must be in the converted request,
or in a report of the conversion.
"""

from __future__ import annotations

import random
from typing import Any, Final

from tests.support.generate.history import Maker, payload_of

__all__ = ["SOURCES", "request"]

SOURCES: Final = (
    "openai-chat",
    "mistral",
    "responses",
    "anthropic",
    "gemini",
    "bedrock-converse",
    "ai-sdk-model",
    "ai-sdk-ui",
)
TOOL_NAMES: Final = ("search", "get_time", "run")  # the tools that the histories call


_PARTS: Final[list[dict[str, Any]]] = [
    {"type": "integer", "minimum": 1, "maximum": 9},
    {"type": "string", "minLength": 1, "pattern": "^a"},
    {"type": "string", "format": "regex"},
    {
        "type": "array",
        "items": {"type": "object", "properties": {"x": {"type": "number", "multipleOf": 2}}},
        "minItems": 3,
    },
    {"oneOf": [{"type": "string"}, {"type": "null"}]},
    {"type": ["string", "null"], "maxLength": 5},
    {"enum": ["a", 1, None]},
    {"type": "object", "additionalProperties": {"type": "string"}},
    {"allOf": [{"type": "object", "properties": {"y": {"type": "boolean"}}}]},
    {"$ref": "#"},
    {},
]


class Options:
    """Generates the options of one request."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"options {seed}")
        self.tokens: list[str] = []

    def chance(self, share: float = 0.5) -> bool:
        return self.random.random() < share

    def word(self) -> str:
        self.tokens.append(f"opt{len(self.tokens)}x{self.random.randrange(10**6)}")
        return self.tokens[-1]

    def count(self, low: int, high: int) -> int:
        found = self.random.randrange(low, high)
        self.tokens.append(str(found))
        return found

    def share(self, high: float = 1.0) -> float:
        found = round(self.random.uniform(0.01, high), 4)
        self.tokens.append(str(found))
        return found

    def schema(self) -> dict[str, Any]:
        """Return a schema that every API accepts, or one with keywords that strict modes reject."""
        properties: dict[str, Any] = {self.word(): {"type": "string", "description": self.word()}}
        if self.chance(0.6):
            closed: dict[str, Any] = {"required": list(properties), "additionalProperties": False}
            return {"type": "object", "properties": properties, **closed}
        for members in self.random.sample(_PARTS, 3):
            properties[self.word()] = {**members, "description": self.word()}
        return {"type": "object", "properties": properties, **self.some({"required": list(properties)[:1]})}

    def some(self, members: dict[str, Any]) -> dict[str, Any]:
        """Return some of the members. If a value is a function, it is called only if the member is selected."""
        taken = {name: value for name, value in members.items() if self.chance()}
        return {name: value() if callable(value) else value for name, value in taken.items()}


def request(seed: int, source: str, *, broken: bool = False) -> tuple[dict[str, Any], list[str]]:
    """Return a request for that API, and its tokens."""
    maker = Maker(seed, broken=broken)
    script = maker.script(1 + seed % 4)
    if not any(event.kind == "user" for event in script):
        script = Maker(seed, broken=False).script(1)
    messages = payload_of(script, "openai-chat" if source == "mistral" else source)
    members = {"responses": "input", "gemini": "contents"}
    base = dict(messages) if isinstance(messages, dict) else {members.get(source, "messages"): messages}
    made = Options(seed)
    return {**base, **_OPTIONS[source](made)}, made.tokens


def _tools(o: Options, shape: Any) -> list[Any]:
    return [shape(name, o.word(), o.schema(), o.random.choice([None, True, False])) for name in TOOL_NAMES]


def _strict(strict: bool | None) -> dict[str, Any]:
    return {} if strict is None else {"strict": strict}


def _chat(o: Options) -> dict[str, Any]:
    made: dict[str, Any] = {"model": "gpt-4.1"}
    made |= o.some(
        {
            o.random.choice(["max_tokens", "max_completion_tokens"]): lambda: o.count(2000, 9000),
            "temperature": o.share,
            "top_p": o.share,
            "stop": lambda: o.word() if o.chance() else [o.word(), o.word()],
            "n": lambda: o.random.choice([1, 3]),
            "seed": lambda: o.count(10**7, 10**8),
            "frequency_penalty": o.share,
            "presence_penalty": o.share,
            "logit_bias": lambda: {str(o.count(10**7, 10**8)): 5},
            "metadata": lambda: {o.word(): o.word()},
            "user": o.word,
            "store": o.chance,
            "prompt_cache_key": o.word,
            "service_tier": "flex",
            "verbosity": "low",
            "reasoning_effort": lambda: o.random.choice(["none", "minimal", "low", "medium", "high", "xhigh"]),
        }
    )
    if o.chance():
        made["stream"] = True
        made["stream_options"] = {"include_usage": True}
    if o.chance(0.7):
        made["tools"] = _tools(
            o,
            lambda n, d, p, s: {
                "type": "function",
                "function": {"name": n, "description": d, "parameters": p, **_strict(s)},
            },
        )
        if o.chance(0.3):
            grammar = {"type": "grammar", "grammar": {"syntax": "lark", "definition": o.word()}}
            custom = {"name": o.word(), "description": o.word(), "format": grammar}
            made["tools"].append({"type": "custom", "custom": custom})
        if o.chance(0.3):
            made["tools"].append(_elsewhere(o))
        made["tool_choice"] = o.random.choice(
            ["auto", "none", "required", {"type": "function", "function": {"name": "search"}}]
        )
        if o.chance(0.2):
            allowed = [{"type": "function", "function": {"name": "run"}}]
            made["tool_choice"] = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": allowed}}
        made |= o.some({"parallel_tool_calls": o.chance})
    if o.chance():
        before = len(o.tokens)
        inner = {"name": o.word(), "schema": o.schema(), "strict": True}
        made["response_format"] = o.random.choice(
            [{"type": "json_schema", "json_schema": inner}, {"type": "json_object"}, {"type": "text"}]
        )
        if made["response_format"]["type"] != "json_schema":
            del o.tokens[before:]
    if o.chance(0.2):
        made |= {"logprobs": True, "top_logprobs": 3}
    return made


def _elsewhere(o: Options) -> dict[str, Any]:
    """Return a definition that Chat Completions does not have, but that clients and gateways send to it."""
    kind = o.random.choice(
        [
            *("web_search", "web_search_preview", "file_search", "code_interpreter", "image_generation"),
            *("web_search_20250305", "bash_20250124", "browser_search", "openrouter:web_search", "retrieval"),
            *("mcp", "custom", "function", "builtin_function", "unheard_of"),
        ]
    )
    match kind:
        case "mcp":
            return {"type": kind, "server_label": o.word(), "server_url": f"https://{o.word()}.example"}
        case "custom" | "function":
            return {"type": kind, "name": o.word(), "description": o.word()}
        case "builtin_function":
            return {"type": kind, "function": {"name": "$web_search"}, "cache": o.word()}
        case "web_search_20250305" | "bash_20250124":
            return {"type": kind, "name": kind.rpartition("_")[0], "max_uses": o.count(1000, 2000)}
        case "web_search":
            return {"type": kind, "filters": {"allowed_domains": [o.word()]}}
        case _:
            return {"type": kind, "limit": o.word()}


def _mistral(o: Options) -> dict[str, Any]:
    made: dict[str, Any] = {"model": "mistral-large-latest"}
    made |= o.some(
        {
            "max_tokens": lambda: o.count(2000, 9000),
            "temperature": o.share,
            "top_p": o.share,
            "stop": lambda: [o.word()],
            "random_seed": lambda: o.count(10**7, 10**8),
            "n": 2,
            "safe_prompt": True,
            "reasoning_effort": lambda: o.random.choice(["none", "high"]),
        }
    )
    if o.chance(0.7):
        made["tools"] = _tools(
            o, lambda n, d, p, _: {"type": "function", "function": {"name": n, "description": d, "parameters": p}}
        )
        made["tool_choice"] = o.random.choice(["auto", "none", "any"])
        made |= o.some({"parallel_tool_calls": o.chance})
    return made


def _responses(o: Options) -> dict[str, Any]:
    made: dict[str, Any] = {"model": "gpt-5.6"}
    made |= o.some(
        {
            "max_output_tokens": lambda: o.count(2000, 9000),
            "temperature": o.share,
            "top_p": o.share,
            "metadata": lambda: {o.word(): o.word()},
            "safety_identifier": o.word,
            "store": o.chance,
            "prompt_cache_key": o.word,
            "truncation": "auto",
            "service_tier": "priority",
            "stream": True,
            "max_tool_calls": lambda: o.count(1000, 2000),
            "top_logprobs": 2,
        }
    )
    if o.chance():
        made["reasoning"] = {"effort": o.random.choice(["none", "low", "medium", "high", "max"]), "summary": "auto"}
    if o.chance(0.7):
        made["tools"] = _tools(
            o, lambda n, d, p, s: {"type": "function", "name": n, "description": d, "parameters": p, "strict": s}
        )
        if o.chance(0.4):
            location = {"type": "approximate", "city": o.word()}
            made["tools"].append(
                {"type": "web_search", "filters": {"allowed_domains": [o.word()]}, "user_location": location}
            )
        if o.chance(0.3):
            mcp = {"type": "mcp", "server_label": o.word(), "server_url": f"https://{o.word()}.example"}
            made["tools"].append({**mcp, "require_approval": o.random.choice(["never", "always"])})
        if o.chance(0.3):
            form = {"type": "grammar", "syntax": "regex", "definition": o.word()}
            made["tools"].append({"type": "custom", "name": o.word(), "format": form})
        if o.chance(0.2):
            made["tools"].append({"type": "file_search", "vector_store_ids": [o.word()]})
        made["tool_choice"] = o.random.choice(["auto", "none", "required", {"type": "function", "name": "run"}])
        made |= o.some({"parallel_tool_calls": o.chance})
    if o.chance():
        form = {"type": "json_schema", "name": o.word(), "schema": o.schema(), "strict": True}
        made["text"] = {"format": form, "verbosity": "low"}
    return made


def _anthropic(o: Options) -> dict[str, Any]:
    models = [
        "claude-opus-5-5",
        "claude-opus-4-7",
        "claude-sonnet-4-6",
        "claude-sonnet-4-5-20250929",
        "claude-3-5-haiku-20241022",
    ]
    made: dict[str, Any] = {"model": o.random.choice(models), "max_tokens": o.count(3000, 9000)}
    sampling = not made["model"].startswith(("claude-opus-5", "claude-opus-4-7"))
    made |= o.some(
        {
            "stop_sequences": lambda: [o.word()],
            "metadata": lambda: {"user_id": o.word()},
            "stream": True,
            "service_tier": "standard_only",
            **({"temperature": o.share} if sampling else {}),
        }
    )
    thinks = not made["model"].startswith("claude-3-5") and "temperature" not in made and o.chance()
    if thinks:
        adaptive = "sonnet-4-5" not in made["model"]
        made["thinking"] = (
            {"type": "adaptive"} if adaptive else {"type": "enabled", "budget_tokens": o.count(1024, 2000)}
        )
        if adaptive and o.chance():
            made["output_config"] = {"effort": o.random.choice(["low", "high", "max"])}
    elif sampling:
        made |= o.some({"top_k": lambda: o.count(1000, 2000)})
    if o.chance(0.7):
        made["tools"] = _tools(
            o,
            lambda n, d, p, s: {"name": n, "description": d, "input_schema": p, **({"strict": True} if s else {})},
        )
        if o.chance(0.3):
            search = {"type": "web_search_20250305", "name": "web_search", "max_uses": o.count(1000, 2000)}
            made["tools"].append({**search, "blocked_domains": [o.word()]})
        if o.chance(0.2):
            made["tools"].append({"type": "bash_20250124", "name": "bash"})
        choices: list[Any] = [{"type": "auto"}, {"type": "none"}, {"type": "auto", "disable_parallel_tool_use": True}]
        forced: list[Any] = [] if thinks else [{"type": "any"}, {"type": "tool", "name": "search"}]
        made["tool_choice"] = o.random.choice([*choices, *forced])
    if o.chance(0.3):
        form = {"type": "json_schema", "schema": o.schema()}
        made["output_config"] = {**made.get("output_config", {}), "format": form}
    return made


def _gemini(o: Options) -> dict[str, Any]:
    model = o.random.choice(["gemini-3-pro-preview", "gemini-2.5-flash"])
    thinking = {"thinkingLevel": "low"} if "3" in model else {"thinkingBudget": o.count(1000, 2000)}
    config = o.some(
        {
            "maxOutputTokens": lambda: o.count(2000, 9000),
            "temperature": o.share,
            "topP": o.share,
            "topK": lambda: o.count(1000, 2000),
            "stopSequences": lambda: [o.word(), o.word()],
            "candidateCount": 2,
            "seed": lambda: o.count(10**7, 10**8),
            "presencePenalty": o.share,
            "thinkingConfig": {**thinking, "includeThoughts": True},
        }
    )
    if "thinkingConfig" not in config and "thinkingBudget" in thinking:
        o.tokens.remove(str(thinking["thinkingBudget"]))
    if o.chance(0.3):
        config |= {"responseMimeType": "application/json", "responseJsonSchema": o.schema()}
    made: dict[str, Any] = {"model": model, **({"generationConfig": config} if config else {})}
    if o.chance(0.7):
        declared = _tools(o, lambda n, d, p, _: {"name": n, "description": d, "parametersJsonSchema": p})
        made["tools"] = [{"functionDeclarations": declared}]
        if o.chance(0.3):
            made["tools"].append({"googleSearch": {}})
        mode = o.random.choice(["AUTO", "ANY", "NONE", "VALIDATED"])
        names = {"allowedFunctionNames": ["search", "run"]} if mode in ("ANY", "VALIDATED") and o.chance() else {}
        made["toolConfig"] = {"functionCallingConfig": {"mode": mode, **names}}
    made |= o.some({"serviceTier": lambda: o.random.choice(["standard", "flex", "priority"])})
    if o.chance(0.2):
        threshold = "BLOCK_ONLY_HIGH"
        made["safetySettings"] = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": threshold}]
        o.tokens.append(threshold)
    return made


def _bedrock(o: Options) -> dict[str, Any]:
    config = o.some(
        {
            "maxTokens": lambda: o.count(2000, 9000),
            "temperature": o.share,
            "topP": o.share,
            "stopSequences": lambda: [o.word()],
        }
    )
    made: dict[str, Any] = {"modelId": "us.anthropic.claude-sonnet-4-5-20250929-v1:0"}
    if config:
        made["inferenceConfig"] = config
    tools: list[Any] = _tools(
        o, lambda n, d, p, _: {"toolSpec": {"name": n, "description": d, "inputSchema": {"json": p}}}
    )
    choice = o.random.choice([{"auto": {}}, {"any": {}}, {"tool": {"name": "run"}}])
    made["toolConfig"] = {"tools": tools, "toolChoice": choice}
    made |= o.some({"serviceTier": lambda: {"type": o.random.choice(["default", "flex", "priority", "reserved"])}})
    made |= o.some({"requestMetadata": lambda: {o.word(): o.word()}})
    if o.chance(0.3):
        made["guardrailConfig"] = {"guardrailIdentifier": o.word(), "guardrailVersion": "1"}
    return made


def _ai_sdk(o: Options) -> dict[str, Any]:
    made: dict[str, Any] = {"model": "some-model"}
    made |= o.some(
        {
            "maxOutputTokens": lambda: o.count(2000, 9000),
            "temperature": o.share,
            "topP": o.share,
            "topK": lambda: o.count(1000, 2000),
            "stopSequences": lambda: [o.word()],
            "seed": lambda: o.count(10**7, 10**8),
            "frequencyPenalty": o.share,
            "reasoning": lambda: o.random.choice(["none", "low", "high"]),
        }
    )
    if o.chance(0.7):
        made["tools"] = _tools(
            o, lambda n, d, p, _: {"type": "function", "name": n, "description": d, "inputSchema": p}
        )
        made["toolChoice"] = o.random.choice(
            [{"type": "auto"}, {"type": "none"}, {"type": "required"}, {"type": "tool", "toolName": "run"}]
        )
    if o.chance(0.3):
        made["responseFormat"] = {"type": "json", "name": o.word(), "schema": o.schema()}
    return made


def _ui(o: Options) -> dict[str, Any]:
    return {"id": o.word(), "trigger": "submit-message"}


_OPTIONS: Final[dict[str, Any]] = {
    "openai-chat": _chat,
    "mistral": _mistral,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock-converse": _bedrock,
    "ai-sdk-model": _ai_sdk,
    "ai-sdk-ui": _ui,
}
