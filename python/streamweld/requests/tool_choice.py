"""Convert the tool choice (`tool_choice`, `toolChoice`, `functionCallingConfig`) between APIs."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# (the input is JSON from the caller, so the types inside its containers are unknown)

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from streamweld.requests.tables import at, is_list, object_of, put, spec, steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld.requests.context import RequestContext
    from streamweld.requests.names import Names
    from streamweld.requests.tools import Tool

__all__ = ["Choice", "forced", "is_foreign", "place", "read", "translate"]

Mode: TypeAlias = Literal["auto", "none", "required", "named", "allowed", "other"]
_PLACES = {
    "openai-chat": "tool_choice",
    "mistral": "tool_choice",
    "responses": "tool_choice",
    "anthropic": "tool_choice",
    "gemini": "toolConfig.functionCallingConfig",
    "bedrock-converse": "toolConfig.toolChoice",
    "ai-sdk-model": "toolChoice",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """A tool choice.

    `names`: the one tool (mode `named`), or the allowed tools (mode `allowed`). `must`: whether one of the allowed
    tools must be called.
    """

    mode: Mode
    path: str
    raw: Any
    names: tuple[str, ...] = ()
    must: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


def place(api: str) -> str:
    """Return the path of the tool choice in requests of this API, or an empty text if it has none."""
    return _PLACES.get(api, "")


def is_foreign(value: Any, api: str) -> bool:
    """Return whether the tool choice has a form that this API does not have, but another API has.

    An object of an unknown type may be newer than the tables, so it is not foreign.
    """
    forms = spec("choices")
    own = forms.get(api)
    if own is None:
        return not object_of(value)
    if isinstance(value, str):
        return not own["words"] or (value not in own["words"] and value in spec("words")["tool_choice_read"])
    given = object_of(value)
    kind = given.get("type")
    if not isinstance(kind, str):
        return not given
    if kind in ("function", "custom", "allowed_tools") and kind in own["types"]:  # Chat Completions nests the names
        return (kind in given) is (api == "responses")
    return kind not in own["types"] and any(kind in form["types"] for form in forms.values())


def forced(choice: Choice | None) -> bool:
    """Return whether the choice requires the model to call a tool."""
    return choice is not None and (choice.mode in ("required", "named") or choice.must)


def read(context: RequestContext) -> Choice | None:
    """Return the tool choice of the request, or None, and mark its member as used."""
    path = _PLACES.get(context.source)
    if path is None:
        return None
    value = at(context.request, path)
    if context.source in ("openai-chat", "mistral") and value is None and "function_call" in context.request:
        path, value = "function_call", context.request["function_call"]
    if value is None:
        return None
    context.used.add(steps(path))
    given = object_of(value)
    if path != "function_call" and context.source != "gemini" and is_foreign(value, context.source):
        return _of_any(path, value, given)
    match context.source:
        case "anthropic":
            context.used.add((*steps(path), "disable_parallel_tool_use"))
            mode = _mode(given.get("type"))
            return _named(path, value, given.get("name")) if given.get("type") == "tool" else Choice(mode, path, value)
        case "gemini":
            if given.get("mode") == "VALIDATED" and not context.same:
                what = "replaced the mode VALIDATED with auto, which does not enforce the schemas of the functions"
                context.edit("option_approximated", (*steps(path), "mode"), what, "VALIDATED")
            return _of_gemini(path, value, given)
        case "bedrock-converse":
            if "tool" in given:
                return _named(path, value, object_of(given["tool"]).get("name"))
            return Choice(_mode(next(iter(given), None)), path, value)
        case "ai-sdk-model":
            if given.get("type") == "tool":
                return _named(path, value, given.get("toolName"))
            return Choice(_mode(given.get("type", value)), path, value)
        case _:
            return _of_openai(path, value, given)


def _of_any(path: str, value: Any, given: Mapping[str, Any]) -> Choice:
    """Read a tool choice that has the form of another API."""
    if given.get("type") == "tool":
        return _named(path, value, given.get("name", given.get("toolName")))
    mode = _mode(given.get("type"))
    return _of_openai(path, value, given) if mode == "other" else Choice(mode, path, value)


def _mode(word: object) -> Mode:
    found: Mode = spec("words")["tool_choice_read"].get(word, "other") if isinstance(word, str) else "other"
    return found


def _named(path: str, raw: Any, name: object) -> Choice:
    return Choice("named", path, raw, (name,)) if isinstance(name, str) else Choice("other", path, raw)


def _of_gemini(path: str, value: Any, given: Mapping[str, Any]) -> Choice:
    names = given.get("allowedFunctionNames")
    mode = _mode(given.get("mode", "AUTO"))
    if not is_list(names) or not names:
        return Choice(mode, path, value)
    listed = tuple(name for name in cast("Sequence[Any]", names) if isinstance(name, str))
    if mode == "required" and len(listed) == 1:
        return Choice("named", path, value, listed)
    return Choice("allowed", path, value, listed, must=mode == "required")


def _of_openai(path: str, value: Any, given: Mapping[str, Any]) -> Choice:
    if isinstance(value, str):
        return Choice(_mode(value), path, value)
    kind = given.get("type")
    inner = object_of(given.get(kind)) if isinstance(kind, str) else {}
    if kind in ("function", "custom") or (kind is None and "name" in given):
        return _named(path, value, inner.get("name", given.get("name")))
    if kind == "allowed_tools":
        allowed = inner or given
        listed = allowed.get("tools")
        names = [_name_of(tool) for tool in cast("Sequence[Any]", listed if is_list(listed) else (None,))]
        if all(isinstance(name, str) for name in names):
            must = allowed.get("mode") == "required"
            return Choice("allowed", path, value, tuple(cast("list[str]", names)), must=must)
    return Choice("other", path, value)


def _name_of(tool: Any) -> Any:
    given = object_of(tool)
    return (
        given.get("name") or object_of(given.get("function")).get("name") or object_of(given.get("custom")).get("name")
    )


def translate(
    choice: Choice | None, tools: Sequence[Tool], context: RequestContext, names: Names, made: dict[str, Any]
) -> Choice | None:
    """Write the tool choice into `made`, the request for the target.

    Returns the written choice, or None if no choice was written.
    """
    if choice is None:
        return None
    path = steps(choice.path)
    known = {tool.name: tool for tool in tools if tool.kind in ("function", "custom")}
    if not tools or context.target == "ai-sdk-ui":
        if choice.mode in ("auto", "none"):
            context.edit("option_implied", path, "dropped, because the request has no tools", choice.raw)
        else:
            context.lose(
                "tool_choice", path, "the request has no tools that the target accepts", choice.raw, vital=True
            )
        return None
    if choice.mode == "other" or any(name not in known for name in choice.names):
        why = (
            "the request has no tool of this name that the target accepts"
            if choice.names
            else f"{context.target} does not support this tool choice"
        )
        context.lose("tool_choice", path, why, choice.raw, vital=True)
        return None
    if choice.mode == "allowed" and context.target not in ("openai-chat", "responses", "gemini"):
        why = f"{context.target} cannot restrict the choice to some of the tools"
        context.lose("tool_choice", path, why, choice.raw, vital=True)
        choice = Choice("required" if choice.must else "auto", choice.path, choice.raw)
    if choice.mode not in context.facts.get("choices", (choice.mode,)):
        why = f"the gateway {context.profile.name} does not support this tool choice"
        context.lose("tool_choice", path, why, choice.raw, vital=True)
        return None
    value = _written(choice, known, context, names)
    if value is None:
        context.lose("tool_choice", path, f"{context.target} does not support this tool choice", choice.raw, vital=True)
        return None
    put(made, _PLACES[context.target], value)
    context.written[_PLACES[context.target]] = path
    return choice


def _written(choice: Choice, known: Mapping[str, Tool], context: RequestContext, names: Names) -> Any:
    fitting = [names.fit(name, steps(choice.path)) for name in choice.names]
    word = spec("words")["tool_choice"][context.target].get(choice.mode)
    name = fitting[0] if fitting else ""
    match context.target:
        case "anthropic":
            return {"type": "tool", "name": name} if choice.mode == "named" else word and {"type": word}
        case "gemini":
            if choice.mode == "named":
                return {"mode": "ANY", "allowedFunctionNames": [name]}
            if choice.mode == "allowed":
                return {"mode": "ANY" if choice.must else "VALIDATED", "allowedFunctionNames": fitting}
            return {"mode": word}
        case "bedrock-converse":
            return {"tool": {"name": name}} if choice.mode == "named" else word and {word: {}}
        case "ai-sdk-model":
            return {"type": "tool", "toolName": name} if choice.mode == "named" else {"type": word}
        case "responses":
            listed: list[Any] = [
                {"type": known[n].kind, "name": fit} for n, fit in zip(choice.names, fitting, strict=True)
            ]
        case _:
            listed = [
                {"type": known[n].kind, known[n].kind: {"name": fit}}
                for n, fit in zip(choice.names, fitting, strict=True)
            ]
    if choice.mode == "named":
        return listed[0]
    if choice.mode == "allowed":
        allowed = {"mode": "required" if choice.must else "auto", "tools": listed}
        if context.target == "responses":
            return {"type": "allowed_tools", **allowed}
        return {"type": "allowed_tools", "allowed_tools": allowed}
    return word
