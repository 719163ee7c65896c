"""`source="auto"`: detect the dialect of a history from the members of its messages and of its request.

Messages with only a role and text are valid in several dialects. If neither these messages nor the other members of the
request identify the dialect, the target's own dialect is chosen, so that messages are not rewritten unnecessarily.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld._spec import load_requests
from streamweld.history.model import members_of
from streamweld.response import Response

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["api_of_members", "detect", "has_mark", "has_only_of_chat"]

# Members and block types that only one dialect has.
_MEMBERS: Final = {
    "tool_calls": "openai-chat",
    "tool_call_id": "openai-chat",
    "function_call": "openai-chat",
    "refusal": "openai-chat",
    "reasoning_content": "openai-chat",
    "reasoning_details": "openai-chat",
    "thinking_blocks": "openai-chat",
    "reasoning_items": "openai-chat",
    "call_id": "responses",
    "encrypted_content": "responses",
    "summary": "responses",
}
_TYPES: Final = {
    **dict.fromkeys(
        (
            *("message", "function_call", "function_call_output", "reasoning", "item_reference", "compaction"),
            *("custom_tool_call", "custom_tool_call_output", "web_search_call", "file_search_call", "mcp_call"),
            *("mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "program", "program_output"),
        ),
        "responses",
    ),
}
_BLOCKS: Final = {
    **dict.fromkeys(("image_url", "input_audio", "refusal", "video_url"), "openai-chat"),
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file", "input_video"), "responses"),
    **dict.fromkeys(
        ("tool_use", "tool_result", "redacted_thinking", "document", "server_tool_use", "web_search_tool_result"),
        "anthropic",
    ),
    **dict.fromkeys(("tool-call", "tool-result", "tool-approval-request", "tool-approval-response"), "ai-sdk-model"),
    "reasoning": "ai-sdk-model",
}
_BEDROCK: Final = frozenset(
    {"text", "toolUse", "toolResult", "reasoningContent", "cachePoint", "image", "document", "video", "guardContent"}
)
_CONTAINERS: Final = {
    "input": "responses",
    "contents": "gemini",
    "systemInstruction": "gemini",
    "instructions": "responses",
}
# Dialects in which a message may have only a role and text, and the roles that each of them allows.
_PLAIN: Final = {
    "openai-chat": frozenset({"system", "developer", "user", "assistant", "tool"}),
    "responses": frozenset({"system", "developer", "user", "assistant"}),
    "anthropic": frozenset({"user", "assistant"}),
    "ai-sdk-model": frozenset({"system", "user", "assistant"}),
}


def detect(items: Sequence[Any], payload: Mapping[str, Any] | None, family: str) -> str:
    """Return the dialect, detected from the members of the payload or, if they are inconclusive, from the messages.

    `family`: the target's dialect.
    """
    for name, dialect in _CONTAINERS.items():
        if payload is not None and name in payload:
            return dialect
    roles: set[Any] = set()
    cached = False
    for item in items:
        if isinstance(item, Response) or not isinstance(item, Mapping):
            continue
        message = cast("Mapping[str, Any]", item)
        found = _of_message(message)
        if found is not None:
            return found
        roles.add(str(message.get("role")))
        cached = cached or _is_cached(message)
    if cached and roles <= _PLAIN["anthropic"]:  # other APIs accept these members too, but Anthropic is the most likely
        return "anthropic"
    if payload is not None and "system" in payload:
        blocks: Any = payload["system"]
        given = isinstance(blocks, list) and any("type" not in members_of(b) for b in cast("Iterable[Any]", blocks))
        return "bedrock-converse" if given else "anthropic"
    named = None if payload is None else api_of_members(payload)
    named = "openai-chat" if named == "mistral" else named
    if named in _PLAIN and roles <= _PLAIN[named]:
        return named
    plain = _PLAIN.get(family)
    fits = plain is not None and roles <= plain and not (payload is not None and has_only_of_chat(payload, family))
    return family if fits else "openai-chat"


def api_of_members(request: Mapping[str, Any]) -> str | None:
    """Return the API if the request has a member that only one API has, such as `stop_sequences`; otherwise None."""
    return next((str(name) for name in load_requests()["detect"] if has_mark(request, name)), None)


def has_only_of_chat(request: Mapping[str, Any], api: str) -> bool:
    """Return whether the request has members of Chat Completions that this API does not have."""
    return not _only_of_chat(api).isdisjoint(request)


@cache
def _only_of_chat(api: str) -> frozenset[str]:
    tables = load_requests()
    known = tables["known"]
    return frozenset(known["openai-chat"]).difference(known[api], tables["history"][api])


def has_mark(request: Mapping[str, Any], api: str) -> bool:
    """Return whether the request has a member that only this API has."""
    return any(_has(request, mark) for mark in load_requests()["detect"][api])


def _has(value: Any, path: str) -> bool:
    name, _, rest = path.partition(".")
    members = members_of(value)
    if name == "*":
        listed: Any = list(members.values()) if isinstance(value, Mapping) else value
        return isinstance(listed, list | tuple) and any(_has(item, rest) for item in listed)  # pyright: ignore[reportUnknownVariableType]
    if name.startswith("-"):
        return any(other != name[1:] for other in members)
    if rest:
        return _has(members.get(name), rest)
    name, _, form = name.partition(":")
    name, _, word = name.partition("=")
    found = members.get(name)
    if word:
        return isinstance(found, str) and found == word
    return found is not None and (form != "text" or isinstance(found, str)) and (form != "alone" or len(members) == 1)


def _of_message(message: Mapping[str, Any]) -> str | None:
    kind = message.get("type")
    if kind == "message" and "stop_reason" in message:
        return "anthropic"  # a dumped response; `type` alone would indicate a Responses item
    if isinstance(kind, str) and (kind in _TYPES or kind.endswith(("_call", "_call_output"))):
        return "responses"
    for name, dialect in _MEMBERS.items():
        if name in message and (name != "refusal" or message[name]):
            return dialect
    parts: Any = message.get("parts")
    if isinstance(parts, list):
        typed = any(isinstance(part, Mapping) and "type" in part for part in cast("Sequence[Any]", parts))
        return "ai-sdk-ui" if typed or "id" in message else "gemini"
    if "role" not in message:
        return "responses" if isinstance(kind, str) else None
    content = message.get("content")
    return _of_blocks(cast("Iterable[Any]", content)) if isinstance(content, list) else None


def _is_cached(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(
        "cache_control" in members_of(block) for block in cast("Iterable[Any]", content)
    )


def _of_blocks(blocks: Iterable[Any]) -> str | None:
    for block in blocks:
        if not isinstance(block, Mapping):
            continue
        raw = cast("Mapping[str, Any]", block)
        kind = raw.get("type")
        if not isinstance(kind, str):
            if raw.keys() & _BEDROCK:
                return "bedrock-converse"
            continue
        if kind in _BLOCKS:
            return _BLOCKS[kind]
        if kind == "thinking":
            return "openai-chat" if isinstance(raw.get("thinking"), list) else "anthropic"  # a list is Mistral's
        if kind == "image":
            return "anthropic" if "source" in raw else "ai-sdk-model"
        if kind == "file":
            return "openai-chat" if isinstance(raw.get("file"), Mapping) else "ai-sdk-model"
        if "providerOptions" in raw:
            return "ai-sdk-model"
    return None
