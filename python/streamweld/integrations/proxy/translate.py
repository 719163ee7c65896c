"""A request of one API as a request of another: the history by `streamweld.history`, the rest by a table.

What cannot be said there and changes the answer is refused; what cannot be said and is a matter of degree (a seed, a
penalty) is left out, and named in `Translated.dropped`. It knows no HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld._spec import load_proxy
from streamweld.errors import HistoryError, UsageError
from streamweld.history.conversion import convert, tool_names
from streamweld.integrations.proxy import tools as tooling
from streamweld.integrations.proxy.members import list_of, object_of
from streamweld.integrations.proxy.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld.integrations.proxy.config import ProxyConfig, Speaks

__all__ = ["Translated", "translated"]

_SPEC: Final = load_proxy()
_MEMBERS: Final = _SPEC["members"]
# What the history converter and the lines below take care of.
_APART: Final = {
    "chat": frozenset({"messages", "model", "stream", "stream_options", "tools", "tool_choice"}),
    "responses": frozenset({"input", "instructions", "model", "stream", "stream_options", "tools", "tool_choice"}),
    "anthropic": frozenset({"messages", "system", "model", "stream", "tools", "tool_choice"}),
}


@dataclass(frozen=True, slots=True)
class Translated:
    """A converted request, and what its answer has to be read and written with."""

    payload: dict[str, Any]
    tools: dict[str, Any]
    known_call_ids: frozenset[str]
    include_usage: bool
    dropped: tuple[str, ...]


def translated(request: Mapping[str, Any], source: Speaks, config: ProxyConfig) -> Translated:
    """The request for the upstream of `config`.

    Raises:
        Refusal: for what the other API cannot be asked, for a history that it cannot be given, and for members of
            shapes that no request has.
    """
    try:
        return _translated(request, source, config)
    except (TypeError, ValueError, AttributeError, KeyError, RecursionError) as error:
        raise Refusal(400, "invalid_request", f"the request cannot be read: {type(error).__name__}") from None


def _translated(request: Mapping[str, Any], source: Speaks, config: ProxyConfig) -> Translated:
    target = cast("Speaks", config.to)
    stream = request.get("stream") is True
    _refuse(request, source, target)
    made: dict[str, Any] = {"model": request.get("model"), **_history(request, source, target, config)}
    if request.get("tools") is not None and (tools := tooling.converted(request["tools"], source, target)):
        made["tools"] = tools
    if request.get("tool_choice") is not None:
        made["tool_choice"] = tooling.choice(request["tool_choice"], source, target)
    dropped = _members(request, made, source, target, config.gateway)
    made |= _SPEC["always"].get(target, {})
    if stream:
        made["stream"] = True
        if target == "chat":
            made["stream_options"] = {"include_usage": True}
    asked = object_of(request.get("stream_options")).get("include_usage") is True
    return Translated(
        made,
        tool_names(request.get("tools")),
        _call_ids(made, target),
        include_usage=source != "chat" or asked or not stream,
        dropped=dropped,
    )


def _refuse(request: Mapping[str, Any], source: str, target: str) -> None:
    if not isinstance(request.get("model"), str):
        raise Refusal(400, "invalid_model", "model must be a string")
    for name, harmless in _SPEC["refused"][source].items():
        value = request.get(name)
        items = list_of(value)
        if value is not None and (value if items is None else tuple(items)) not in harmless:
            raise Refusal(400, "unsupported_member", f"{name}: the upstream's API ({target}) has nothing like it")


def _history(request: Mapping[str, Any], source: Speaks, target: Speaks, config: ProxyConfig) -> dict[str, Any]:
    own = ("messages", "system") if source == "anthropic" else ("input", "instructions", "messages")
    given = {name: request[name] for name in own if request.get(name) is not None}
    try:
        done = convert(
            given,
            source=source,
            target=target,
            gateway=config.gateway,
            tools=list_of(request.get("tools")),
            store=False if target == "responses" else None,
        )
    except (HistoryError, UsageError) as error:
        raise Refusal(400, "invalid_history", str(error)) from None
    return dict(done.payload)


def _members(
    request: Mapping[str, Any], made: dict[str, Any], source: str, target: str, gateway: str | None
) -> tuple[str, ...]:
    read: set[str] = set()
    dropped: list[str] = []
    for word, places in _MEMBERS.items():
        found = [(path, value) for path in places.get(source, ()) if (value := _at(request, path)) is not None]
        read |= {path.partition(".")[0] for path in places.get(source, ())}
        value = _said(word, found[0][1], source, target) if found else _SPEC["required"].get(target, {}).get(word)
        if found and value is not None and target not in places and word in _SPEC["vital"]:
            raise Refusal(
                400, "unsupported_member", f"{found[0][0]}: the upstream's API ({target}) has nothing like it"
            )
        if found and (value is None or target not in places):
            dropped.append(word)
        elif word == "parallel" and "tools" not in made:
            continue
        elif value is not None:
            low_high = _SPEC["bounds"].get(target, {}).get(word)
            if low_high is not None and isinstance(value, int | float):
                value = min(max(value, low_high[0]), low_high[1])
            family = (gateway or "").partition("@")[0]
            _put(made, _SPEC["gateways"].get(family, {}).get(word) or places[target][0], value)
    known = read | _APART[source] | _SPEC["refused"][source].keys()
    unknown = [name for name, value in request.items() if name not in known and value is not None]
    return (*dropped, *(["other"] if unknown else []))


def _said(word: str, value: Any, source: str, target: str) -> Any:
    """A value in the other API's form; None where it has none."""
    openai = target != "anthropic"
    match word:
        case "stop":
            return [value] if isinstance(value, str) else value
        case "effort":
            words = _SPEC["words"]["effort"].get(target)
            return value if words is None else words.get(value)
        case "parallel":
            return value if (source == "anthropic") != openai else not value
        case "format":
            return _format(value, target)
        case "user":
            return value if isinstance(value, str) else None
        case _:
            return value


def _format(value: Any, target: str) -> dict[str, Any] | None:
    raw = object_of(value)
    kind = raw.get("type")
    if kind == "text":
        return None
    if kind != "json_schema":
        if target == "anthropic" or kind is None:
            raise Refusal(400, "unsupported_format", f"the upstream's API ({target}) takes no such answer format")
        return {"type": kind}
    inner = object_of(raw.get("json_schema")) or raw
    if target == "anthropic":
        return {"type": "json_schema", "schema": inner.get("schema")}
    own = {name: inner[name] for name in ("description", "schema", "strict") if inner.get(name) is not None}
    own = {"name": inner.get("name") or "answer", **own}
    return {"type": "json_schema", "json_schema": own} if target == "chat" else {"type": "json_schema", **own}


def _at(request: Mapping[str, Any], path: str) -> Any:
    value: Any = request
    for name in path.split("."):
        value = object_of(value).get(name)
    return value


def _put(made: dict[str, Any], path: str, value: Any) -> None:
    *above, last = path.split(".")
    for name in above:
        made = made.setdefault(name, {"type": "auto"} if name == "tool_choice" else {})
    made[last] = value


def _call_ids(payload: Mapping[str, Any], target: str) -> frozenset[str]:
    """The ids of the calls of earlier turns: the answer must not use one of them again."""
    found: set[Any] = set()
    for item in cast("list[dict[str, Any]]", payload.get("input" if target == "responses" else "messages") or ()):
        found.add(item.get("call_id"))
        calls = item.get("tool_calls") if target == "chat" else item.get("content")
        found |= {object_of(call).get("id") for call in list_of(calls) or ()}
    return frozenset(word for word in found if isinstance(word, str))
