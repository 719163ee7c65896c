"""Read the tools that a request declares, with the JSON schemas of their parameters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld.options import defined_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["declared_tools", "request_of"]

_LISTS: Final = ("tools", "functions")


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
    """Return the functions that a request declares, as name -> schema. The result is empty if the tool choice is
    `none`.

    A name that is declared twice is omitted, because it is unclear which schema applies.
    """
    found: dict[str, Mapping[str, Any] | None] = {}
    if _forbids(request):
        return found
    twice: set[str] = set()
    for member in _LISTS:
        tools = request.get(member)
        for tool in cast("list[object]", tools) if isinstance(tools, list) else ():
            for name, schema in defined_tools(cast("dict[str, Any]", tool)) if isinstance(tool, dict) else ():
                if name in found:
                    twice.add(name)
                found[name] = schema
    return {name: schema for name, schema in found.items() if name not in twice}


def _forbids(request: Mapping[str, Any]) -> bool:
    choice = request.get("tool_choice", request.get("function_call"))
    config = request.get("toolConfig", request.get("tool_config"))
    if isinstance(choice, dict):
        choice = cast("dict[str, object]", choice).get("type")
    if isinstance(config, dict):
        members = cast("dict[str, object]", config)
        calling = members.get("functionCallingConfig", members.get("function_calling_config"))
        choice = cast("dict[str, object]", calling).get("mode") if isinstance(calling, dict) else choice
    return isinstance(choice, str) and choice.lower() == "none"
