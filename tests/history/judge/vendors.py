"""Checks a converted history as a vendor's server would: official types first, then the rules of its documentation.

Each fault begins with a code in capitals; `RULES` lists the sources of the rules.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.history.judge.typed import faults as typed_faults
from tests.support.places import SHARED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["RULES", "converse_shape", "judge"]

RULES: Final[dict[str, str]] = json.loads(Path(__file__).with_name("rules.json").read_text("utf-8"))["rules"]
SCHEMAS: Final = SHARED / "data" / "openresponses"
Json = dict[str, Any]


def judge(target: str, gateway: str, payload: Any) -> list[str]:
    """Return the faults of a payload, except those that need Node."""
    return sorted(set(_JUDGES[target](payload, gateway)))


# --- official types


@cache
def _hint(target: str) -> Any:
    if target == "openai-chat":
        from openai.types.chat import ChatCompletionMessageParam as Hint
    elif target == "responses":
        from openai.types.responses import ResponseInputItemParam as Hint
    else:
        from anthropic.types.beta import BetaMessageParam as Hint
    return Hint


# Members that a gateway documents in addition to the types of OpenAI's package.
BEYOND: Final = {
    "deepseek": {"reasoning_content", "prefix"},
    "kimi": {"reasoning_content", "partial", "video_url"},
    "zai": {"reasoning_content"},
    "volcengine": {"reasoning_content"},
    "minimax": {"reasoning_details"},
    "openrouter": {"reasoning", "reasoning_details", "cache_control", "video_url"},
    # https://docs.litellm.ai/docs/reasoning_content, https://docs.litellm.ai/docs/completion/prompt_caching,
    # https://docs.litellm.ai/blog/gemini_3
    # https://github.com/BerriAI/litellm/pull/24690
    "litellm": {
        *(
            "reasoning_content",
            "reasoning_items",
            "thinking_blocks",
            "provider_specific_fields",
            "cache_control",
            "name",
        )
    },
    # https://ai.google.dev/gemini-api/docs/thought-signatures
    "gemini-openai": {"extra_content", "name"},
}


def _types(target: str, messages: Any, allow: set[str]) -> Iterator[str]:
    for n, message in enumerate(messages):
        for fault in typed_faults(_hint(target), message, f"/{n}", frozenset(allow)):
            yield f"TYPE {fault}"


# --- Chat Completions


def _chat(payload: Json, gateway: str) -> Iterator[str]:
    messages = payload["messages"]
    allow = set(BEYOND.get(gateway, ()))
    types = messages
    if gateway in ("kimi", "openrouter", "litellm"):  # parts that do not exist in OpenAI's API
        types = [_without_media(message) for message in messages]
    yield from _types("openai-chat", types, allow)
    # Kimi requires its own ids unchanged: https://github.com/BerriAI/litellm/pull/34523
    longest = 40 if gateway in ("openai-chat", "azure-openai", "github-copilot") else None
    yield from _chat_pairs(messages, longest, unique=gateway != "kimi")
    for n, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role == "assistant" and not any((content, *map(message.get, ("tool_calls", "refusal", "function_call")))):
            yield f"EMPTY /{n}"
        if gateway in ("deepseek", "kimi"):
            if role not in ("system", "user", "assistant", "tool"):
                yield f"ROLE /{n}: {role}"
            if (
                role == "assistant"
                and message.get("tool_calls")
                and not isinstance(message.get("reasoning_content"), str)
            ):
                yield f"REASON /{n}: no reasoning_content"
        if gateway == "litellm":
            yield from _thinking_blocks(n, message)
        if gateway == "gemini-openai":
            yield from _google(n, message)
        if gateway == "deepseek" and isinstance(content, list) and any(part.get("type") != "text" for part in content):
            yield f"KIND /{n}: {[part.get('type') for part in content]}"


def _without_media(message: Json) -> Json:
    """Return the message without videos, and without images in a result, which LiteLLM accepts
    (https://github.com/BerriAI/litellm/blob/main/litellm/types/llms/openai.py, ToolMessageContentPart).
    """
    content = message.get("content")
    if not isinstance(content, list):
        return message
    gone = ("video_url", "image_url") if message.get("role") == "tool" else ("video_url",)
    return {**message, "content": [part for part in content if part.get("type") not in gone]}


def _thinking_blocks(n: int, message: Json) -> Iterator[str]:
    """Check blocks that LiteLLM sends to Anthropic as they are: an unsigned one is rejected."""
    from anthropic.types.beta import BetaRedactedThinkingBlockParam, BetaThinkingBlockParam

    for at, block in enumerate(message.get("thinking_blocks") or ()):
        hint: Any = BetaRedactedThinkingBlockParam if "data" in block else BetaThinkingBlockParam
        for fault in typed_faults(hint, block, f"/{n}/thinking_blocks/{at}", frozenset({"cache_control"})):
            yield f"TYPE {fault}"
        if not (block.get("signature") or block.get("data")):
            yield f"REASON /{n}/thinking_blocks/{at}: not signed"


def _google(n: int, message: Json) -> Iterator[str]:
    """Check what Google's endpoint requires: reasoning without a member, and a signature on the first call of a step
    (https://github.com/securo-finance/securo/issues/884).
    """
    if "reasoning_content" in message or "reasoning" in message:
        yield f"REASON /{n}: reasoning"
    holders = [message, *(message.get("tool_calls") or ())]
    signed = [(one.get("extra_content") or {}).get("google", {}).get("thought_signature") for one in holders]
    if len(signed) > 1 and not signed[1]:
        yield f"SIGN /{n}"
    for one in holders:
        if "extra_content" in one and one["extra_content"].keys() != {"google"}:
            yield f"TYPE /{n}: extra_content of another vendor"


def _chat_pairs(messages: list[Json], longest: int | None, *, unique: bool = True) -> Iterator[str]:
    seen: Counter[str] = Counter()
    waiting: list[str] = []
    for n, message in enumerate(messages):
        if message.get("role") == "tool":
            call_id = message.get("tool_call_id")
            if call_id in waiting:
                waiting.remove(call_id)
            else:
                yield f"PAIR /{n}: a result without a call"
            continue
        if waiting:
            yield f"PAIR /{n}: calls without results"
            waiting = []
        for call in message.get("tool_calls") or ():
            call_id = call.get("id")
            waiting.append(call_id)
            seen[call_id] += 1
            if not call_id or (longest is not None and len(call_id) > longest):
                yield f"ID /{n}: {call_id!r:.50}"
            name = call.get("function", call.get("custom", {})).get("name")
            if not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
                yield f"NAME /{n}: {name!r}"
    if waiting:
        yield "PAIR at the end: calls without results"
    yield from (f"ID twice: {call_id!r:.50}" for call_id, count in seen.items() if count > 1 and unique)


# --- Mistral


@cache
def _mistral_validator(version: str) -> Any:
    from mistral_common.protocol.instruct.validator import ValidationMode, get_validator
    from mistral_common.tokens.tokenizers.base import TokenizerVersion

    return get_validator(TokenizerVersion(version), ValidationMode.serving)


def _mistral(payload: Json, _gateway: str) -> Iterator[str]:
    from mistral_common.exceptions import MistralCommonException
    from mistral_common.protocol.instruct.request import ChatCompletionRequest
    from pydantic import ValidationError

    messages = _hosted(payload["messages"])
    try:
        _mistral_validator("v11").validate_request(ChatCompletionRequest(model="m", messages=messages))
    except (MistralCommonException, ValidationError, ValueError, AssertionError) as error:
        yield f"MISTRAL {str(error).splitlines()[0][:60]} {_where(error)}"
    yield from _chat_pairs(messages, None)


def _hosted(messages: list[Json]) -> list[Json]:
    """Translate features of the hosted API to the package's types: thinking in chunks, and documents."""
    made: list[Json] = json.loads(json.dumps(messages))
    for message in made:
        content = message.get("content")
        if not isinstance(content, list):
            continue
        for block in content:
            if block.get("type") == "thinking" and isinstance(block.get("thinking"), list):
                block["thinking"] = "".join(chunk.get("text", "") for chunk in block["thinking"])
        kept = [block for block in content if block.get("type") not in ("document_url", "file")]
        message["content"] = kept or [{"type": "text", "text": "-"}]
    return made


def _where(error: Any) -> str:
    try:
        places = {"/".join(map(str, one["loc"])) + ": " + one["msg"] for one in error.errors()}
    except (AttributeError, TypeError):
        return ""
    return "; ".join(sorted(places)[:2])[:200]


# --- Responses


@cache
def _schema() -> Any:
    import jsonschema_rs

    document = json.loads((SCHEMAS / "openapi-2026-04-24.json").read_text("utf-8"))
    return jsonschema_rs.Draft202012Validator(
        {"$ref": "#/components/schemas/CreateResponseBody", "components": document["components"]}
    )


_OPEN = ("openresponses-2026-04-24", "openrouter", "vercel-ai-gateway")
_PREFIXES: Final = {"message": "msg_", "reasoning": "rs_", "function_call": "fc_"}


def _responses(payload: Json, gateway: str) -> Iterator[str]:
    items = payload["input"]
    if isinstance(items, str):  # one user message
        items = [{"type": "message", "role": "user", "content": items}]
    name = gateway.partition("@")[0]
    if name in _OPEN:
        for n, item in enumerate(items):
            if not _schema().is_valid({"input": [item]}):
                yield f"SCHEMA /{n}: {item.get('type')} {item.get('role', '')}"
    else:
        yield from _types(
            "responses", [_as_replayed(item, name) for item in items], {"phase", "namespace", "created_by"}
        )
    stored = bool(payload.get("previous_response_id") or payload.get("conversation"))
    yield from _response_pairs(items, stored=stored)
    yield from _response_items(payload, items, name)
    if gateway == "vercel-ai-gateway@2026-01-29":
        yield from (
            f"ITEM /{n}: {item['type']}" for n, item in enumerate(items) if item.get("type", "message") != "message"
        )
    if name == "vercel-ai-gateway" and not any(item.get("role") == "user" for item in items):
        yield "USER"


def _as_replayed(item: Json, gateway: str) -> Json:
    """Add members that OpenAI's package requires but its server does not: those of an assistant message with blocks,
    and the detail of an image.
    """
    if gateway == "vllm-responses":
        return item
    made = json.loads(json.dumps(item))
    content = made.get("content")
    for block in content if isinstance(content, list) else ():
        if block.get("type") == "input_image":
            block.setdefault("detail", "auto")
        if block.get("type") == "output_text" and gateway != "azure-openai":
            block.setdefault("annotations", [])
    output = made.get("output")
    for block in output if isinstance(output, list) else ():
        if isinstance(block, dict) and block.get("type") == "input_image":
            block.setdefault("detail", "auto")
    if made.get("type") == "reasoning" and made.get("encrypted_content"):
        made.setdefault("id", "rs_x")  # Codex sends no id (codex-rs, ResponseItem::Reasoning)
    if made.get("type") == "custom_tool_call":
        made.pop("status", None)  # Codex sends a status (codex-rs, ResponseItem::CustomToolCall)
    if made.get("type", "message") == "message" and made.get("role") == "assistant" and isinstance(content, list):
        made = {"id": "msg_x", "status": "completed", **made}
    return made


def _response_pairs(items: list[Json], *, stored: bool) -> Iterator[str]:
    """Check pairs of calls and results. `stored`: the calls may be in turns that the server stores (API reference,
    `previous_response_id`).
    """
    called: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for n, item in enumerate(items):
        kind = item.get("type", "message")
        if kind.endswith("_call") and "call_id" in item:
            called[item["call_id"]] += 1
            if not 1 <= len(item["call_id"]) <= 64:
                yield f"ID /{n}: {item['call_id']!r:.80}"
            if kind == "function_call" and not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", str(item.get("name"))):
                yield f"NAME /{n}: {item.get('name')!r}"
        elif kind.endswith(("_call_output", "tool_search_output")):
            call_id = item.get("call_id", item.get("id"))
            answered[call_id] += 1
            if not called[call_id] and not stored:
                yield f"PAIR /{n}: an output without a call before it"
    yield from (f"PAIR a call without an output: {one!r:.50}" for one in called if not answered[one])
    yield from (f"PAIR two outputs: {one!r:.50}" for one, count in answered.items() if count > 1)
    yield from (f"ID twice: {one!r:.50}" for one, count in called.items() if count > 1)


def _response_items(payload: Json, items: list[Json], gateway: str) -> Iterator[str]:
    ids = Counter(
        item["id"] for item in items if isinstance(item.get("id"), str) and item.get("type") != "item_reference"
    )
    yield from (f"ITEM two of id {one!r:.50}" for one, count in ids.items() if count > 1)
    for n, item in enumerate(items):
        kind = item.get("type", "message")
        if gateway in ("openai-responses", "azure-openai") and isinstance(item.get("id"), str):
            prefix = _PREFIXES.get(kind)
            if prefix is not None and not item["id"].startswith(prefix):
                yield f"ITEM /{n}: id {item['id']!r:.40}"
        if kind == "local_shell_call_output" and not item.get("id"):
            yield f"ITEM /{n}: local_shell_call_output without id"
        if kind == "reasoning" and gateway in ("openai-responses", "azure-openai", "github-copilot"):
            after = items[n + 1] if n + 1 < len(items) else {}
            if (
                after.get("role", "assistant") != "assistant"
                or not after
                or str(after.get("type", "")).endswith("_output")
            ):
                yield f"REASON /{n}: nothing of the assistant follows"
            if payload.get("store") is False and not item.get("encrypted_content"):
                yield f"STORE /{n}: reasoning without encrypted_content"


# --- Anthropic


def _anthropic(payload: Json, gateway: str) -> Iterator[str]:
    messages = payload["messages"]
    yield from _types("anthropic", messages, set())
    if not messages:
        yield "EMPTY no messages"
        return
    if messages[0].get("role") != "user":
        yield "ORDER the first message is not the user's"
    seen: Counter[str] = Counter()
    for n, message in enumerate(messages):
        blocks = _blocks(message)
        last = n == len(messages) - 1
        if not blocks and not (last and message["role"] == "assistant"):
            yield f"EMPTY /{n}"
        for block in blocks:
            if block.get("type") == "text" and not block["text"].strip():
                yield f"EMPTY /{n}: blank text"
            if block.get("type") == "thinking" and not block.get("signature") and gateway == "anthropic":
                yield f"REASON /{n}: thinking without signature"
        uses = [block for block in blocks if block.get("type") == "tool_use"]
        for use in uses:
            seen[use["id"]] += 1
            if gateway == "anthropic" and not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", use["id"]):
                yield f"ID /{n}: {use['id']!r:.60}"
            if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", use["name"]):
                yield f"NAME /{n}: {use['name']!r}"
        results = _results(messages[n + 1]) if not last else []
        if uses and Counter(use["id"] for use in uses) != Counter(results):
            yield f"PAIR /{n}: calls {[u['id'] for u in uses]!r:.60}, results {results!r:.60}"
        if message["role"] == "user":
            before = _blocks(messages[n - 1]) if n else []
            if _results(message) and not any(block.get("type") == "tool_use" for block in before):
                yield f"PAIR /{n}: results without calls"
            kinds = [block.get("type") == "tool_result" for block in blocks]
            if kinds != sorted(kinds, reverse=True):
                yield f"ORDER /{n}: results do not come first"
        if last and message["role"] == "assistant":
            if gateway == "anthropic" and _refuses_prefill(payload.get("model")):
                yield f"PREFILL /{n}: {payload.get('model')}"
            elif blocks and blocks[-1].get("type") == "text" and blocks[-1]["text"] != blocks[-1]["text"].rstrip():
                yield f"PREFILL /{n}: white space at the end"
    if gateway == "anthropic":
        yield from (f"ID twice: {one!r:.50}" for one, count in seen.items() if count > 1)
    yield from _server_pairs(messages)


def _blocks(message: Json) -> list[Json]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def _results(message: Json) -> list[str]:
    if message["role"] != "user":
        return []
    return [block["tool_use_id"] for block in _blocks(message) if block.get("type") == "tool_result"]


def _refuses_prefill(model: Any) -> bool:
    found = re.search(r"claude-[a-z]+-(\d{1,2})(?:-(\d{1,2}))?(?!\d)", model) if isinstance(model, str) else None
    return found is not None and (int(found[1]), int(found[2] or 0)) >= (4, 6)


def _server_pairs(messages: list[Json]) -> Iterator[str]:
    open_: set[str] = set()
    for n, message in enumerate(messages):
        for block in _blocks(message):
            kind = block.get("type", "")
            if kind in ("server_tool_use", "mcp_tool_use"):
                open_.add(block["id"])
            elif kind.endswith("_tool_result") and block.get("tool_use_id") not in open_:
                yield f"SERVER /{n}: {kind}"


# --- Gemini


def _gemini(payload: Json, _gateway: str) -> Iterator[str]:
    import pydantic
    from google.genai.types import Content

    contents = payload["contents"]
    for n, content in enumerate(contents):
        try:
            Content.model_validate(content)
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            yield f"TYPE /{n}/{'/'.join(map(str, first['loc']))}: {first['msg']}"
        if not content.get("parts"):
            yield f"EMPTY /{n}"
    yield from _gemini_pairs(contents)
    yield from _gemini_signatures(contents, payload.get("model"))


def _calls(content: Json, member: str) -> list[Json]:
    return [part[member] for part in content.get("parts") or () if member in part]


def _gemini_pairs(contents: list[Json]) -> Iterator[str]:
    for n, content in enumerate(contents):
        requested = _calls(content, "functionCall")
        before = contents[n - 1] if n else None
        after = contents[n + 1] if n + 1 < len(contents) else {}
        payload_of = _calls(content, "functionResponse")
        if requested:
            if before is None or before.get("role") == "model":
                yield f"ORDER /{n}: calls after {before and before.get('role')}"
            answers = _calls(after, "functionResponse")
            if [one["name"] for one in requested] != [one["name"] for one in answers]:
                yield f"PAIR /{n}: {[one['name'] for one in requested]} answered by {[one['name'] for one in answers]}"
            elif any(
                a.get("id") and b.get("id") and a["id"] != b["id"] for a, b in zip(requested, answers, strict=True)
            ):
                yield f"PAIR /{n}: ids of calls and responses differ"
            for one in requested:
                if not re.fullmatch(r"[a-zA-Z_][A-Za-z0-9_.:-]{0,63}", one["name"]):
                    yield f"NAME /{n}: {one['name']!r}"
        if payload_of and not (before and _calls(before, "functionCall")):
            yield f"PAIR /{n}: responses without calls"


def _gemini_signatures(contents: list[Json], model: Any) -> Iterator[str]:
    if isinstance(model, str) and not re.search(r"gemini-(3|[4-9])", model) and "gemini" in model:
        return
    start = 0
    for n, content in enumerate(contents):
        if content.get("role") == "user" and any("text" in part for part in content.get("parts") or ()):
            start = n
    for n, content in enumerate(contents[start:], start):
        parts = [part for part in content.get("parts") or () if "functionCall" in part]
        if parts and not parts[0].get("thoughtSignature"):
            yield f"SIGN /{n}"


# --- Bedrock


@cache
def converse_shape() -> Any:
    """Return the input of Converse in botocore's service model."""
    from botocore.loaders import Loader
    from botocore.model import ServiceModel

    return (
        ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"))
        .operation_model("Converse")
        .input_shape
    )


def _bedrock(payload: Json, _gateway: str) -> Iterator[str]:
    from botocore.validate import ParamValidator

    given = {name: payload[name] for name in ("messages", "system") if name in payload}
    report = ParamValidator().validate({"modelId": "m", **given}, converse_shape())
    if report.has_errors():
        yield f"TYPE {report.generate_report().splitlines()[0][:160]}"
    messages = payload["messages"]
    if not messages or messages[0].get("role") != "user":
        yield "ORDER the first message is not the user's"
    seen: Counter[str] = Counter()
    for n, message in enumerate(messages):
        blocks = message["content"]
        if not blocks:
            yield f"EMPTY /{n}"
        reasons = any("reasoningContent" in block for block in blocks)
        if n and messages[n - 1]["role"] == message["role"]:
            yield f"ORDER /{n}: {message['role']} twice"
        for place, value in _blobs(blocks):
            if not isinstance(value, bytes):
                yield f"MEDIA /{n}{place}: {type(value).__name__}"
        for block in blocks:
            if "text" in block and not block["text"].strip() and not reasons:
                yield f"EMPTY /{n}: blank text"
            if "toolUse" in block and not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", block["toolUse"]["name"]):
                yield f"NAME /{n}: {block['toolUse']['name']!r}"
            if "document" in block and not any("text" in other for other in blocks):
                yield f"KIND /{n}: a document without text"
        uses = [block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block]
        after = messages[n + 1]["content"] if n + 1 < len(messages) else []
        results = [block["toolResult"]["toolUseId"] for block in after if "toolResult" in block]
        seen.update(uses)
        if uses and Counter(uses) != Counter(results):
            yield f"PAIR /{n}: calls {uses!r:.60}, results {results!r:.60}"
        if any("toolResult" in block for block in blocks):
            before = messages[n - 1]["content"] if n else []
            if not any("toolUse" in block for block in before):
                yield f"PAIR /{n}: results without calls"
    yield from (f"ID twice: {one!r:.50}" for one, count in seen.items() if count > 1)


def _blobs(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "bytes" or name == "redactedContent":
                yield f"{path}/{name}", inner
            elif name not in ("input", "json"):
                yield from _blobs(inner, f"{path}/{name}")
    elif isinstance(value, list):
        for n, inner in enumerate(value):
            yield from _blobs(inner, f"{path}/{n}")


def _nothing(_payload: Json, _gateway: str) -> Iterator[str]:
    yield from ()


_JUDGES: Final[dict[str, Callable[[Json, str], Iterator[str]]]] = {
    "openai-chat": _chat,
    "mistral": _mistral,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock-converse": _bedrock,
    "ai-sdk-ui": _nothing,
    "ai-sdk-model": _nothing,
}
