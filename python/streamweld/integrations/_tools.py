"""Read the tools that a request declares, with the JSON schemas of their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["declared_tools"]

_SCHEMAS: Final = ("parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema")
_NESTED: Final = ("tools", "functions", "functionDeclarations", "function_declarations")


def declared_tools(request: Mapping[str, Any]) -> dict[str, Mapping[str, Any] | None]:
    """Return the functions in a request of any dialect, as name -> schema; empty if its tool choice is `none`.

    A name that is declared twice is left out, because it is ambiguous which schema applies.
    """
    found: dict[str, Mapping[str, Any] | None] = {}
    if _forbids(request):
        return found
    twice: set[str] = set()
    for tool in _listed(request):
        function = tool.get("function")
        told = cast("Mapping[str, Any]", function) if isinstance(function, dict) else tool
        name = told.get("name")
        if isinstance(name, str) and name:
            if name in found:
                twice.add(name)
            schema = next((told[key] for key in _SCHEMAS if isinstance(told.get(key), dict)), None)
            found[name] = cast("Mapping[str, Any] | None", schema)
    return {name: schema for name, schema in found.items() if name not in twice}


def _listed(request: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for member in _NESTED:
        tools = request.get(member)
        for tool in cast("list[object]", tools) if isinstance(tools, list) else ():
            if isinstance(tool, dict):
                entry = cast("dict[str, Any]", tool)
                yield entry
                yield from _listed({key: entry[key] for key in _NESTED[2:] if key in entry})


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
