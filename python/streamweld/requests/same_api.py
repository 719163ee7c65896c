"""Convert a request whose source and target are the same API, by changing only what the gateway does not accept.

Members that streamweld does not recognize are kept, and unchanged objects are reused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from streamweld.requests import answer_format, options, schemas, thinking, tool_choice
from streamweld.requests import tools as tooling
from streamweld.requests.tables import is_list, object_of, put

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld.requests.context import RequestContext
    from streamweld.requests.names import Names

__all__ = ["translate"]

# For each API: the path of the schema in a tool definition. In Gemini's `parameters`, the names of types are in upper
# case.
_SCHEMAS: Final = {
    "openai-chat": ("function", "parameters"),
    "mistral": ("function", "parameters"),
    "responses": ("parameters",),
    "anthropic": ("input_schema",),
    "gemini": ("parametersJsonSchema",),
    "bedrock-converse": ("toolSpec", "inputSchema", "json"),
    "ai-sdk-model": ("inputSchema",),
}


def translate(context: RequestContext, made: dict[str, Any], names: Names) -> dict[str, Any]:
    """Return the request, omitting or replacing members that the gateway rejects."""
    had = _has_tools(made)
    kept = _tools(context, made, names)
    left = _has_tools(made)
    alone = not left and (had or context.target == "openai-chat")
    if alone:
        _choice_alone(context, made)
    else:
        _choice(context, made, kept, names)
    options.translate(context, made, tools=not alone)
    facts = context.facts
    if "formats" in facts:
        found = answer_format.read(context)
        if found is not None and found.kind not in facts["formats"]:
            made.pop("response_format", None)
            answer_format.translate(found, context, made)
    answer_format.refit(context, made)
    if "thinking" in facts:
        note = thinking.read(context)
        own = {facts["thinking"]["member"], facts["thinking"].get("effort", "")}
        if note is not None and not {path.partition(".")[0] for path in note.raw} <= own:
            for path in note.raw:
                made.pop(path.partition(".")[0], None)
            thinking.translate(note, context, made)
    if "efforts" in facts:
        note = thinking.read(context)
        if note is not None and note.effort is not None and facts["efforts"].get(note.effort) != note.effort:
            for path in note.raw:
                made.pop(path.partition(".")[0], None)
            thinking.translate(note, context, made)
    return made


def _has_tools(made: dict[str, Any]) -> bool:
    return bool(made.get("tools") or object_of(made.get("toolConfig")).get("tools") or made.get("functions"))


def _choice_alone(context: RequestContext, made: dict[str, Any]) -> None:
    choice = tool_choice.read(context)
    if choice is not None:
        tool_choice.translate(choice, (), context, cast("Names", None), made)
        for member in ("tool_choice", "function_call"):
            made.pop(member, None)


def _choice(context: RequestContext, made: dict[str, Any], kept: Sequence[tooling.Tool] | None, names: Names) -> None:
    """Translate a tool choice that the gateway does not accept, or that names a tool that was dropped or converted."""
    choice = tool_choice.read(context)
    if choice is None:
        return
    gone = kept is not None and (choice.names or _type(choice.raw) in _dropped_types(kept, context))
    if gone or choice.mode not in context.facts.get("choices", (choice.mode,)):
        for member in ("tool_choice", "function_call"):
            made.pop(member, None)
        tool_choice.translate(choice, tooling.read(context) if kept is None else kept, context, names, made)


def _dropped_types(kept: Sequence[tooling.Tool], context: RequestContext) -> set[str]:
    """Return the types of the dropped tools, except `function` and `custom`, which a tool choice refers to by name."""
    paths = {tool.path for tool in kept}
    return {_type(tool.raw) for tool in tooling.read(context) if tool.path not in paths} - {"function", "custom"}


def _type(raw: Any) -> str:
    return str(object_of(raw).get("type"))


def _tools(context: RequestContext, made: dict[str, Any], names: Names) -> Sequence[tooling.Tool] | None:
    """Drop tools of types that the gateway does not accept, and rename tools whose names the target rejects.

    Returns the remaining tools, or None if no tool was dropped or converted to another type.
    """
    found = tooling.read(context)
    kept: dict[tuple[str | int, ...], tooling.Tool] = {}
    dropped: set[tuple[str | int, ...]] = set()
    replaced: dict[tuple[str | int, ...], Any] = {}
    changed = False
    for tool in found:
        kept[tool.path] = tool
        if not tooling.takes(tool, context):
            (fit,) = tooling.accepted([tool], context) or (None,)
            changed = True
            if fit is None:
                dropped.add(kept.pop(tool.path).path)
            else:
                kept[tool.path] = fit
                alone: dict[str, Any] = {}
                tooling.write([fit], context, names, alone)
                replaced[tool.path] = alone["tools"][0]
        elif tool.kind in ("function", "custom") and not names.fits(tool.name):
            replaced[tool.path] = _renamed(tool.raw, tool.name, names.fit(tool.name, tool.path))
        if tool.kind == "function" and not tool.hosted and tool.path not in dropped:
            raw = replaced.get(tool.path, tool.raw)
            sound = _with_strict(_with_schema(raw, tool, context), tool, context)
            if sound is not raw:
                replaced[tool.path] = sound
    left = list(kept.values()) if changed else None
    if not dropped and not replaced:
        return left
    if ("web_search_options",) in dropped:
        made.pop("web_search_options", None)
    for member, listed in (
        ("tools", made.get("tools")),
        ("toolConfig.tools", object_of(made.get("toolConfig")).get("tools")),
    ):
        if is_list(listed):
            path = tuple(member.split("."))
            entries = [
                replaced.get((*path, n), raw)
                for n, raw in enumerate(cast("Sequence[Any]", listed))
                if (*path, n) not in dropped
            ]
            if entries:
                put(made, member, entries)
            else:
                made.pop(path[0])
    return left


def _with_schema(raw: Any, tool: tooling.Tool, context: RequestContext) -> Any:
    """Return the tool definition. Members that the target requires are added to its schema.

    A null schema is omitted, because it means that the tool has no parameters.
    """
    *above, member = _SCHEMAS[context.target]
    holder = object_of(raw)
    for name in above:
        holder = object_of(holder.get(name))
    if member in holder and holder[member] is None and context.target == "openai-chat":
        context.edit("tool_schema", tool.path, "dropped a schema that is null")
        return _replaced(raw, above, {name: value for name, value in holder.items() if name != member})
    schema = schemas.of_object(holder.get(member), context.target)
    if holder.get(member) is None or schema is None or schema is holder[member]:
        return raw
    context.edit("tool_schema", tool.path, tooling.COMPLETED)
    return _replaced(raw, above, {**holder, member: schema})


def _with_strict(raw: Any, tool: tooling.Tool, context: RequestContext) -> Any:
    """Return the tool definition with a schema that strict mode accepts, or without `strict`."""
    *above, member = _SCHEMAS[context.target]
    definition = object_of(raw)
    for name in above[:1]:
        definition = object_of(definition.get(name))
    holder = definition
    for name in above[1:]:
        holder = object_of(holder.get(name))
    schema = holder.get(member)
    if definition.get("strict") is not True or schema is None:
        return raw
    fit = tooling.fit_strict(schema, tool, context)
    if fit is None:
        rest = {name: value for name, value in definition.items() if name != "strict"}
        # The Responses API is strict by default.
        return _replaced(raw, above[:1], {**rest, "strict": False} if context.target == "responses" else rest)
    return raw if fit is schema else _replaced(raw, above, {**holder, member: fit})


def _replaced(raw: Any, above: Sequence[str], holder: dict[str, Any]) -> dict[str, Any]:
    """Return the tool definition with the object at this path replaced."""
    if not above:
        return holder
    return {**raw, above[0]: _replaced(object_of(raw.get(above[0])), above[1:], holder)}


def _renamed(raw: Any, old: str, new: str) -> Any:
    """Return the tool definition with its name replaced, also in nested `function`, `custom`, or `toolSpec` objects."""
    if not hasattr(raw, "items"):
        return raw
    return {
        name: new
        if name == "name" and value == old
        else _renamed(value, old, new)
        if name in ("function", "custom", "toolSpec")
        else value
        for name, value in raw.items()
    }
