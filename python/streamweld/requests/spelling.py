"""Detect which API a request is for, and rename members whose names in the SDKs differ from those in the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld.history.places import before
from streamweld.history.read.detect import api_of_members, has_mark, has_only_of_chat
from streamweld.history.read.detect import detect as detect_messages
from streamweld.requests.tables import is_list, listed, object_of

if TYPE_CHECKING:
    from streamweld.history.places import Moved
    from streamweld.requests.tables import Json

__all__ = ["detect", "normal"]

_CONTAINERS: Final = {"input": "responses", "contents": "gemini"}
# Maps the names of request members in Gemini's Python SDK to their names in the API.
_SNAKE: Final = {
    "system_instruction": "systemInstruction",
    "generation_config": "generationConfig",
    "tool_config": "toolConfig",
    "safety_settings": "safetySettings",
    "cached_content": "cachedContent",
    "service_tier": "serviceTier",
}
_OF_CONFIG: Final = (
    *("systemInstruction", "tools", "toolConfig", "safetySettings", "cachedContent", "labels", "store", "serviceTier"),
)


def detect(request: Json, target: str) -> str:
    """Return the API that the request is for.

    The API is detected from the member that contains the messages, then from the messages, then from other members. If
    all of these are inconclusive, the result is the target's own API if the request is also valid for it, otherwise
    Chat Completions.
    """
    for member, name in _CONTAINERS.items():
        if member in request:
            return name
    messages = request.get("messages")
    items = cast("Sequence[Any]", messages) if is_list(messages) else ()
    given = {detect_messages(items, request, family) for family in ("openai-chat", "anthropic", "ai-sdk-model")}
    if len(given) == 1:
        found = given.pop()
        return "mistral" if found == "openai-chat" and has_mark(request, "mistral") else found
    if (named := api_of_members(request)) is not None:
        return named
    plain = ("openai-chat", "mistral", "anthropic", "ai-sdk-model")
    return target if target in plain and not has_only_of_chat(request, target) else "openai-chat"


def normal(request: Json, source: str, target: str) -> tuple[Json, Moved]:
    """Return the request with SDK member names replaced by API names, or the request itself if there are none.

    Also return the new path of each member that was renamed or moved, with its path in the request.
    """
    moved: Moved = {}
    if source == target:
        return request, moved
    if source == "gemini":
        return _gemini(request, moved), moved
    if source == "ai-sdk-model":
        return _ai_sdk(request, moved), moved
    return request, moved


def _gemini(request: Json, moved: Moved) -> Json:
    """Replace the Python SDK's `config` with the members of the API, and snake case with camel case."""
    made: dict[str, Any] = {}
    for name, value in request.items():
        if name == "config" and isinstance(value, Mapping):
            generation: dict[str, Any] = {}
            for inner, member in cast("Json", value).items():
                camel = _camel(inner)
                top = camel in _OF_CONFIG
                (made if top else generation)[camel] = member
                moved[(camel,) if top else ("generationConfig", camel)] = (name, inner)
            generation |= object_of(made.get("generationConfig"))
            if generation:
                made["generationConfig"] = generation
        else:
            camel = _SNAKE.get(name, name)
            made[camel] = value
            if camel != name:
                moved[(camel,)] = (name,)
    for name in ("generationConfig", "toolConfig"):
        if name in made:
            made[name] = _camel_keys(made[name], (name,), moved, deep=name == "toolConfig")
    config = object_of(made.get("generationConfig"))
    if "thinkingConfig" in config:
        path = ("generationConfig", "thinkingConfig")
        thinking = _camel_keys(config["thinkingConfig"], path, moved, deep=False)
        made["generationConfig"] = {**config, "thinkingConfig": thinking}
    system = made.get("systemInstruction")
    if isinstance(system, str):
        made["systemInstruction"] = {"parts": [{"text": system}]}
    tier = made.get("serviceTier")
    if isinstance(tier, str):  # the API also accepts the name of its enum
        made["serviceTier"] = tier.lower().removeprefix("service_tier_")
    return request if made == request else made


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join([word.capitalize() for word in rest])


def _camel_keys(value: Any, path: tuple[str, ...], moved: Moved, *, deep: bool) -> Any:
    if not isinstance(value, Mapping):
        return value
    made: dict[str, Any] = {}
    for name, member in cast("Json", value).items():
        camel = _camel(name)
        if camel != name:
            moved[(*path, camel)] = (*before(path, moved), name)
        made[camel] = _camel_keys(member, (*path, camel), moved, deep=True) if deep else member
    return made


def _ai_sdk(request: Json, moved: Moved) -> Json:
    """Convert the `system` and `prompt` options of `generateText` to messages."""
    system, prompt = request.get("system"), request.get("prompt")
    given = request.get("messages")
    if not (isinstance(system, str) or isinstance(prompt, str)) or not (given is None or is_list(given)):
        return request
    made = {name: value for name, value in request.items() if name not in ("system", "prompt")}
    messages: list[Any] = list(listed(given))
    if isinstance(system, str):
        moved |= {("messages", str(n + 1)): ("messages", n) for n in range(len(messages))}
        messages.insert(0, {"role": "system", "content": system})
        moved["messages", "0"] = ("system",)
    if isinstance(prompt, str):
        moved["messages", str(len(messages))] = ("prompt",)
        messages.append({"role": "user", "content": prompt})
    return {**made, "messages": messages}
