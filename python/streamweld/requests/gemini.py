"""Enforce the constraints of Gemini models: the values of the thinking options, and built-in tools with functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.requests import schemas
from streamweld.requests.tables import (
    at,
    listed,
    model_facts,
    nearest_budget,
    nearest_level,
    object_of,
    options,
    put,
    remove,
    spec,
    steps,
)

if TYPE_CHECKING:
    from streamweld.requests.context import RequestContext
    from streamweld.requests.tables import Json

__all__ = ["apply"]

_THINKING: Final = "generationConfig.thinkingConfig"
_LEVEL: Final = f"{_THINKING}.thinkingLevel"
_BUDGET: Final = f"{_THINKING}.thinkingBudget"
_FUNCTIONS: Final = "functionDeclarations"


def apply(context: RequestContext, made: dict[str, Any]) -> None:
    """Repair `made`, the request for Gemini."""
    facts = model_facts("gemini", made.get("model"))
    _thinking(context, made, facts)
    _tools(context, made, facts)
    _schemas(context, made)
    asks, number = at(made, "generationConfig.responseLogprobs"), at(made, "generationConfig.logprobs")
    if number and asks is None:
        put(made, "generationConfig.responseLogprobs", True)
    elif number and asks is not True:
        path = "generationConfig.logprobs"
        context.edit("option_alone", context.origin(path), "dropped, because responseLogprobs is not true", number)
        remove(made, path)


def _thinking(context: RequestContext, made: dict[str, Any], facts: Json) -> None:
    level, budget = at(made, _LEVEL), at(made, _BUDGET)
    if level is not None and budget is not None:
        kept, dropped, value = (_BUDGET, _LEVEL, level) if "budget" in facts["thinking"] else (_LEVEL, _BUDGET, budget)
        remove(made, dropped)
        why = f"{steps(kept)[-1]} sets the same option, and the API does not accept both"
        context.lose(steps(dropped)[-1], context.origin(dropped), why, value)
    level, budget = at(made, _LEVEL), at(made, _BUDGET)
    if isinstance(level, str) and level.lower() in spec("thinking")["efforts"]:
        new = nearest_level(level.lower(), facts)
        if new != level.lower():
            context.edit("option_approximated", context.origin(_LEVEL), f"changed the level {level} to {new}", level)
            put(made, _LEVEL, new)
    if isinstance(budget, int) and not isinstance(budget, bool):
        tokens = nearest_budget(budget, facts)
        if tokens != budget:
            what = f"changed the budget from {budget} to {tokens} tokens"
            context.edit("option_bounds", context.origin(_BUDGET), what, budget)
            put(made, _BUDGET, tokens)


def _schemas(context: RequestContext, made: dict[str, Any]) -> None:
    """Move schemas that are not of Gemini's type `Schema` to the member for JSON Schema."""
    entries = [object_of(entry) for entry in listed(made.get("tools"))]
    new: list[Json] = []
    for n, entry in enumerate(entries):
        functions = listed(entry.get(_FUNCTIONS))
        sound = [_with_json_schema(context, one, ("tools", n, _FUNCTIONS, m)) for m, one in enumerate(functions)]
        same = all(one is other for one, other in zip(sound, functions, strict=True))
        new.append(entry if same else {**entry, _FUNCTIONS: sound})
    if any(one is not entry for one, entry in zip(new, entries, strict=True)):
        made["tools"] = new
    if "generationConfig" in made:
        made["generationConfig"] = _with_json_schema(context, made["generationConfig"], ("generationConfig",))


def _with_json_schema(context: RequestContext, holder: Any, path: tuple[str | int, ...]) -> Any:
    """Return a function declaration or the generation options with schemas that Gemini accepts."""
    for name, other in spec("gemini_schema")["json_schema"].items():
        given = object_of(holder)
        if given.get(name) is None or given.get(other) is not None:
            continue
        why = schemas.foreign_to_gemini(given[name], context.profile.name)
        if why is not None:
            what = f"moved the schema to {other}, because {name} {why}"
            context.edit("schema_member", (*path, name), what)
            schema = schemas.from_gemini(given[name])
            holder = {(other if key == name else key): (schema if key == name else given[key]) for key in given}
    return holder


def _tools(context: RequestContext, made: dict[str, Any], facts: Json) -> None:
    """Repair built-in tools that are combined with functions.

    Models before Gemini 3 accept either functions or built-in tools in one request. For these models, the built-in
    tools are dropped: a model can answer without a search, whereas a client may depend on its functions. Later models
    need an option that enables the combination.
    """
    entries = [object_of(entry) for entry in listed(made.get("tools"))]
    built_in = [(n, name) for n, entry in enumerate(entries) for name in entry if name != _FUNCTIONS]
    if not built_in or not any(entry.get(_FUNCTIONS) for entry in entries):
        return
    if facts["mixed_tools"]:
        option = next(option for option in options() if option.word == "server_tool_calls")
        path = option.path_in(context.target, context.facts)
        if path is not None and at(made, path) is not True:
            context.edit("tools_mixed", steps(path), f"added {path} = true", at(made, path))
            put(made, path, True)
        return
    for n, name in built_in:
        why = "the model does not accept built-in tools together with functions"
        context.lose("tools", context.origin(f"tools.{n}.{name}"), why, entries[n][name], vital=True)
    left = [{name: value for name, value in entry.items() if name == _FUNCTIONS} for entry in entries]
    made["tools"] = [entry for entry in left if entry]
