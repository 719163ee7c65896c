"""Convert a request if source and target are the same API: change only what the gateway does not accept.

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

# For each API: the path of the schema in a tool definition. Types in Gemini's `parameters` are in upper case.
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
    _tools(context, made, names)
    left = _has_tools(made)
    if had and not left:
        _choice_alone(context, made)
    options.translate(context, made, tools=left or not had)
    facts = context.facts
    if "formats" in facts:
        found = answer_format.read(context)
        if found is not None and found.kind not in facts["formats"]:
            made.pop("response_format", None)
            answer_format.translate(found, context, made)
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
    if "choices" in facts:
        _choice(context, made, names)
    return made


def _has_tools(made: dict[str, Any]) -> bool:
    return bool(made.get("tools") or object_of(made.get("toolConfig")).get("tools") or made.get("functions"))


def _choice_alone(context: RequestContext, made: dict[str, Any]) -> None:
    choice = tool_choice.read(context)
    if choice is not None:
        tool_choice.translate(choice, (), context, cast("Names", None), made)
        made.pop("tool_choice", None)


def _choice(context: RequestContext, made: dict[str, Any], names: Names) -> None:
    choice = tool_choice.read(context)
    if choice is not None and choice.mode not in context.facts["choices"]:
        for member in ("tool_choice", "function_call"):
            made.pop(member, None)
        tool_choice.translate(choice, tooling.read(context), context, names, made)


def _tools(context: RequestContext, made: dict[str, Any], names: Names) -> None:
    """Drop tools of kinds that the gateway does not accept, and rename tools whose names the target rejects."""
    found = tooling.read(context)
    dropped: set[tuple[str | int, ...]] = set()
    replaced: dict[tuple[str | int, ...], Any] = {}
    for tool in found:
        if not tooling.takes(tool, context):
            (fit,) = tooling.accepted([tool], context) or (None,)
            if fit is None:
                dropped.add(tool.path)
            else:
                alone: dict[str, Any] = {}
                tooling.write([fit], context, names, alone)
                replaced[tool.path] = alone["tools"][0]
        elif tool.kind in ("function", "custom") and not names.fits(tool.name):
            replaced[tool.path] = _renamed(tool.raw, tool.name, names.fit(tool.name, tool.path))
        if tool.kind == "function" and not tool.hosted and tool.path not in dropped:
            raw = replaced.get(tool.path, tool.raw)
            sound = _with_schema(raw, tool, context)
            if sound is not raw:
                replaced[tool.path] = sound
    if not dropped and not replaced:
        return
    if ("web_search_options",) in dropped:
        made.pop("web_search_options", None)
    for member, listed in (
        ("tools", made.get("tools")),
        ("toolConfig.tools", object_of(made.get("toolConfig")).get("tools")),
    ):
        if is_list(listed):
            path = tuple(member.split("."))
            kept = [
                replaced.get((*path, n), raw)
                for n, raw in enumerate(cast("Sequence[Any]", listed))
                if (*path, n) not in dropped
            ]
            if kept:
                put(made, member, kept)
            else:
                made.pop(path[0])


def _with_schema(raw: Any, tool: tooling.Tool, context: RequestContext) -> Any:
    """Return the tool definition, with `type: object` added to its schema if the type is missing.

    A null schema is omitted, because it means that the tool has no parameters.
    """
    *above, member = _SCHEMAS[context.target]
    holder = object_of(raw)
    for name in above:
        holder = object_of(holder.get(name))
    if member in holder and holder[member] is None and context.target == "openai-chat":
        context.edit("tool_schema", tool.path, "dropped a schema that is null")
        return _replaced(raw, above, {name: value for name, value in holder.items() if name != member})
    schema = schemas.of_object(holder.get(member))
    if holder.get(member) is None or schema is None or schema is holder[member]:
        return raw
    context.edit("tool_schema", tool.path, "added `type: object` to the schema")
    return _replaced(raw, above, {**holder, member: schema})


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
