"""Detect which API a request is for, and rename members whose names in the SDKs differ from those in the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from streamweld.history.places import before
from streamweld.history.read.detect import api_of_members, has_mark, has_only_of_chat
from streamweld.history.read.detect import detect as detect_messages
from streamweld.requests.tables import is_list, listed, object_of

if TYPE_CHECKING:
    from streamweld.history.places import Moved
    from streamweld.requests.tables import Json

__all__ = ["Normal", "detect", "normal"]

Place: TypeAlias = tuple[str, ...]
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


@dataclass(frozen=True, slots=True)
class Normal:
    """A request in which the names of SDK members are replaced by those of the API.

    `moved`: the new path of each member that was renamed or moved, with its path in the request. `repeated`: members
    that another member repeats under another name, with their paths in the request.
    """

    request: Json
    moved: Moved = field(default_factory=dict["tuple[str, ...]", "tuple[str | int, ...]"])
    repeated: Sequence[tuple[Place, Any]] = ()


def normal(request: Json, source: str, target: str) -> Normal:
    """Return the request with SDK member names replaced by API names, or the request itself if there are none."""
    if source == target:
        return Normal(request)
    moved: Moved = {}
    if source == "gemini":
        repeated: list[tuple[Place, Any]] = []
        return Normal(_gemini(request, moved, repeated), moved, repeated)
    return Normal(_ai_sdk(request, moved), moved) if source == "ai-sdk-model" else Normal(request)


def _gemini(request: Json, moved: Moved, repeated: list[tuple[Place, Any]]) -> Json:
    """Replace the Python SDK's `config` with the members of the API, and snake case with camel case.

    A request should have either form. If it has both, the members of the API take precedence over the SDK's, and names
    in camel case over those in snake case.
    """
    given: dict[Place, list[tuple[Place, Any]]] = {}  # path in the API -> the members that set it
    for name, value in request.items():
        camel = _SNAKE.get(name, name)
        if camel == "generationConfig" and isinstance(value, Mapping):
            for inner, member in cast("Json", value).items():
                given.setdefault((camel, _camel(inner)), []).append(((name, inner), member))
        elif name != "config" or not isinstance(value, Mapping):
            given.setdefault((camel,), []).append(((name,), value))
    config = request.get("config")
    for inner, member in object_of(config).items():
        camel = _camel(inner)
        place: Place = (camel,) if camel in _OF_CONFIG else ("generationConfig", camel)
        given.setdefault(place, []).append((("config", inner), member))
    made: dict[str, Any] = {}
    for path, found in given.items():
        found.sort(key=lambda one: (one[1] is None, len(one[0]) > len(path), one[0][-1] != path[-1]))
        (place, value), *rest = found
        if len(path) == 1:
            made[path[0]] = value
        else:
            made[path[0]] = {**object_of(made.get(path[0])), path[1]: value}
        if place != path:
            moved[path] = place
        repeated += [one for one in rest if one[1] is not None and one[1] != value]
    if "toolConfig" in made:
        made["toolConfig"] = _camel_keys(made["toolConfig"], ("toolConfig",), moved, deep=True)
    options = object_of(made.get("generationConfig"))
    if "thinkingConfig" in options:
        path = ("generationConfig", "thinkingConfig")
        thinking = _camel_keys(options["thinkingConfig"], path, moved, deep=False)
        made["generationConfig"] = {**options, "thinkingConfig": thinking}
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
