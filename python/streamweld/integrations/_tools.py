"""Read which tools a request permits the model to call, and the JSON schemas of their parameters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld.options import defined_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["declared_tools", "request_of"]

# The modes in which `allowedFunctionNames` narrows the tools: https://ai.google.dev/api/caching#FunctionCallingConfig
_GEMINI_NARROWING: Final = ("ANY", "VALIDATED")


def request_of(body: bytes | None) -> dict[str, Any]:
    """Return the parsed body of a request if it may have tools or stream options, otherwise an empty object."""
    if body is None or (b'"stream' not in body and b'tools"' not in body and b'functions"' not in body):
        return {}
    try:
        request: object = json.loads(body)
    except (ValueError, RecursionError):  # an ASGI application can have any kind of client
        return {}
    return cast("dict[str, Any]", request) if isinstance(request, dict) else {}


def declared_tools(request: Mapping[str, Any]) -> dict[str, Mapping[str, Any] | None]:
    """Return the functions that the model may call, as name -> schema: those that the request declares, unless its tool
    choice excludes them.

    A name that is declared twice is omitted, because it is unclear which schema applies.
    """
    found: dict[str, Mapping[str, Any] | None] = {}
    twice: set[str] = set()
    nested = _object(request.get("toolConfig")).get("tools")  # Bedrock
    for tools in (request.get("tools"), request.get("functions"), nested):
        for tool in _list(tools):
            for name, schema in defined_tools(_object(tool)):
                if name in found:
                    twice.add(name)
                found[name] = schema
    chosen = _chosen(request)
    return {name: schema for name, schema in found.items() if name not in twice and (chosen is None or name in chosen)}


def _chosen(request: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the names of the tools that the tool choice permits, or None if it permits all of them."""
    config = _object(_either(request, "toolConfig", "tool_config"))
    calling = _object(_either(config, "functionCallingConfig", "function_calling_config"))
    if calling:
        return _chosen_by_gemini(calling)
    choice = request.get("tool_choice")
    for other in (request.get("function_call"), config.get("toolChoice")):
        choice = other if choice is None else choice
    if isinstance(choice, str):
        return frozenset() if choice.lower() == "none" else None
    members = _object(choice)
    kind = members.get("type")
    if isinstance(kind, str) and kind.lower() == "none":
        return frozenset()
    # Chat Completions and Bedrock nest the name under the type; the other APIs do not.
    inner = _object(members.get(kind if isinstance(kind, str) else "tool")) or members
    if kind == "allowed_tools":
        return frozenset(name for tool in _list(inner.get("tools")) for name, _ in defined_tools(_object(tool)))
    name = inner.get("name")
    return frozenset({name}) if isinstance(name, str) else None


def _chosen_by_gemini(calling: Mapping[str, object]) -> frozenset[str] | None:
    mode = calling.get("mode")
    mode = mode.upper() if isinstance(mode, str) else ""
    if mode == "NONE":
        return frozenset()
    names = _list(_either(calling, "allowedFunctionNames", "allowed_function_names"))
    if not names or mode not in _GEMINI_NARROWING:
        return None
    return frozenset(name for name in names if isinstance(name, str))


def _either(members: Mapping[str, object], name: str, other: str) -> object:
    return members.get(name, members.get(other))


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []
