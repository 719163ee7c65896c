"""The tools of a request and the choice among them, from one API's shape into another's. It knows no messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld._spec import load_proxy
from streamweld.integrations.proxy.members import list_of, object_of
from streamweld.integrations.proxy.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["choice", "converted"]

_WORDS: Final = load_proxy()["words"]["tool_choice"]
_ANY_OBJECT: Final[dict[str, Any]] = {"type": "object", "properties": {}}


def converted(tools: Any, source: str, target: str) -> list[dict[str, Any]]:
    """The definitions of functions; a tool that the provider runs has no counterpart.

    Raises:
        Refusal: for anything but functions, and free-form tools between the two APIs that have them.
    """
    given = list_of(tools)
    if given is None:
        raise Refusal(400, "invalid_tools", "tools must be a list")
    return [_tool(tool, at, source, target) for at, tool in enumerate(given)]


def _tool(tool: object, at: int, source: str, target: str) -> dict[str, Any]:
    raw = object_of(tool)
    if not raw:
        raise Refusal(400, "invalid_tools", f"tools[{at}] must be an object")
    kind = raw.get("type", "custom" if source == "anthropic" else "function")
    if source == "anthropic":
        if kind != "custom":
            raise Refusal(400, "unsupported_tool", f"tools[{at}] is run by the provider: the upstream has none such")
        return _function(raw, "input_schema", target)
    inner = (object_of(raw.get(kind)) if source == "chat" else {}) or raw
    if kind == "function":
        return _function(inner, "parameters", target)
    if kind == "custom" and target != "anthropic":
        own: dict[str, Any] = {name: inner[name] for name in ("name", "description", "format") if name in inner}
        return {"type": "custom", **own} if target == "responses" else {"type": "custom", "custom": own}
    raise Refusal(400, "unsupported_tool", f"tools[{at}]: the upstream's API has no tools of this type")


def _function(tool: Mapping[str, Any], schema: str, target: str) -> dict[str, Any]:
    own: dict[str, Any] = {"name": tool.get("name")}
    if tool.get("description") is not None:
        own["description"] = tool["description"]
    parameters = tool.get(schema)
    if target == "anthropic":
        own["input_schema"] = _ANY_OBJECT if parameters is None else parameters
    elif parameters is not None:
        own["parameters"] = parameters
    if tool.get("strict") is not None:
        own["strict"] = tool["strict"]
    if target == "anthropic":
        return own
    return {"type": "function", "function": own} if target == "chat" else {"type": "function", **own}


def choice(given: Any, source: str, target: str) -> Any:
    """Which tool is to be called, in the other API's shape.

    Raises:
        Refusal: for a choice that the other API cannot express.
    """
    if source == "anthropic":
        raw = object_of(given)
        if raw.get("type") == "tool":
            return _named(raw.get("name"), target)
        back = {word: ours for ours, word in _WORDS["anthropic"].items()}
        word = back.get(raw.get("type"))
    else:
        raw = object_of(given)
        inner = object_of(raw.get("function")) or raw
        if raw.get("type") == "function" and isinstance(inner.get("name"), str):
            return _named(inner["name"], target)
        word = given if isinstance(given, str) and given in _WORDS["openai"] else None
    if word is None:
        raise Refusal(400, "unsupported_tool_choice", "tool_choice: the upstream's API cannot express this choice")
    return {"type": _WORDS["anthropic"][word]} if target == "anthropic" else _WORDS["openai"][word]


def _named(name: Any, target: str) -> dict[str, Any]:
    if target == "anthropic":
        return {"type": "tool", "name": name}
    return {"type": "function", "function": {"name": name}} if target == "chat" else {"type": "function", "name": name}
