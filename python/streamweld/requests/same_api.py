"""Convert a request whose source and target are the same API, by changing only what the gateway does not accept.

Members that streamweld does not recognize are kept, and unchanged objects are reused.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any, Final

from streamweld.requests import answer_format, options, schemas, thinking, tool_choice, tool_schemas
from streamweld.requests import tools as tooling
from streamweld.requests.tables import at, is_list, object_of, put, remove, spec, steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld.requests.context import RequestContext
    from streamweld.requests.names import Names

__all__ = ["translate"]

_DECLARATIONS: Final = ("functionDeclarations", "function_declarations")
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
    choice = tool_choice.read(context)
    if choice is not None and (
        alone or (choice.mode not in ("auto", "none") and not left and not _has_stored_tools(context, made))
    ):
        _without_choice(context, made)
        tool_choice.translate(choice, (), context, names, made)
    elif choice is not None:
        _choice(choice, context, made, kept, names)
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
        own = {facts["thinking"]["member"], thinking.effort_member(facts["thinking"], made.get("model"))}
        if note is not None and not {path.partition(".")[0] for path in note.raw} <= own:
            for path in note.raw:
                made.pop(path.partition(".")[0], None)
            thinking.translate(note, context, made)
    if "efforts" in facts:
        note = thinking.read(context)
        other = note is not None and note.effort is not None and facts["efforts"].get(note.effort) != note.effort
        if note is not None and (other or any(_is_rejected(path, context) for path in note.raw)):
            for path in note.raw:
                made.pop(path.partition(".")[0], None)
            thinking.translate(note, context, made)
    for name in [name for name in made if _is_rejected(name, context)]:
        why = f"the gateway {context.profile.name} does not have this member"
        context.lose(name, (name,), why, made.pop(name))
    return made


def _is_rejected(path: str, context: RequestContext) -> bool:
    """Return whether the gateway lists all its members, and not the one at this dotted path."""
    only = context.facts.get("only")
    return only is not None and str(path).partition(".")[0] not in only


def _has_tools(made: dict[str, Any]) -> bool:
    return bool(made.get("tools") or object_of(made.get("toolConfig")).get("tools") or made.get("functions"))


def _has_stored_tools(context: RequestContext, made: dict[str, Any]) -> bool:
    """Return whether the request refers to tools that are not in its list: a stored prompt, cached content, or MCP
    servers.
    """
    return any(made.get(name) is not None for name in spec("stored_tools").get(context.target, ()))


def _without_choice(context: RequestContext, made: dict[str, Any]) -> None:
    remove(made, tool_choice.place(context.target))
    made.pop("function_call", None)


def _choice(
    choice: tool_choice.Choice,
    context: RequestContext,
    made: dict[str, Any],
    kept: Sequence[tooling.Tool] | None,
    names: Names,
) -> None:
    """Translate a tool choice that has the form of another API, that the gateway does not accept, or that names a tool
    that the request does not have or that was converted.
    """
    old = choice.path == "function_call"
    foreign = not made.get("functions") if old else tool_choice.is_foreign(choice.raw, context.target)
    gone = kept is not None and (choice.names or _type(choice.raw) in _dropped_types(kept, context))
    tools = tooling.read(context) if kept is None and (choice.names or foreign) else kept
    listed = tools is not None and not any(tool.kind == "mcp" for tool in tools)  # a server lists its own tools
    missing = listed and not {*choice.names} <= {_name(tool) for tool in tools or ()}
    missing = missing or not names.renamed.keys().isdisjoint(choice.names)
    types = spec("choices").get(context.target, {}).get("types", ())
    broken = choice.mode == "other" and _type(choice.raw) in types and _type(choice.raw) != "mcp"
    if foreign or gone or missing or broken or choice.mode not in context.facts.get("choices", (choice.mode,)):
        _without_choice(context, made)
        known = tooling.read(context) if tools is None else tools
        written = tool_choice.translate(choice, known, context, names, made)
        if written is not None and foreign:
            what = f"wrote the tool choice in the form of {context.target}"
            context.edit("option_shape", steps(choice.path), what, choice.raw)


def _name(tool: tooling.Tool) -> Any:
    """Return the name of a tool, which Anthropic's server tools have, too."""
    return tool.name or object_of(tool.raw).get("name")


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
    seen: set[str] = set()
    for tool in found:
        if tooling.repeated(tool, seen, context):
            dropped.add(tool.path)
            continue
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
    for member in ("tools", "functions", "toolConfig.tools"):
        listed = at(made, member)
        if is_list(listed):
            path = steps(member)
            entries = _left(listed, path, dropped, replaced)
            if entries:
                put(made, member, entries)
            else:
                made.pop(path[0])
    return left


def _left(
    listed: Sequence[Any],
    path: tuple[str | int, ...],
    dropped: set[tuple[str | int, ...]],
    replaced: dict[tuple[str | int, ...], Any],
) -> list[Any]:
    """Return the remaining tools of a list, with their replacements. Gemini nests lists of functions in its tools."""
    entries: list[Any] = []
    for n, raw in enumerate(listed):
        at_tool = (*path, n)
        if at_tool in dropped:
            continue
        new = replaced.get(at_tool, raw)
        for member, value in object_of(raw).items():
            inner = (*at_tool, member)
            if inner in dropped or (member in _DECLARATIONS and is_list(value)):
                below = [] if inner in dropped else _left(value, inner, dropped, replaced)
                rest = {name: other for name, other in new.items() if name != member}
                same = len(below) == len(value) and all(map(is_, below, value))
                new = new if same else {**rest, member: below} if below else rest
        if new or not raw:
            entries.append(new)
    return entries


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
    if holder.get(member) is None or schema is None:
        return raw
    fit = tool_schemas.fitted(schema, tooling.schema_place(tool), context)
    completed = fit is schema and schema is not holder[member]
    if fit is holder[member]:
        return raw
    if completed:
        context.edit("tool_schema", tool.path, tooling.COMPLETED)
    return _replaced(raw, above, {**holder, member: fit})


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
