"""Enforce constraints between options: required members, conflicts, and members that a stateless request needs.

The constraints also apply to requests in the target's own format.
"""

from __future__ import annotations

import re
from math import inf
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld.requests import claude, gemini, schemas, thinking
from streamweld.requests.claude import is_cited, prefills
from streamweld.requests.tables import (
    at,
    is_list,
    listed,
    nearest_effort,
    object_of,
    openai_efforts,
    openai_rejects_sampling,
    options,
    put,
    reasons_by_default,
    remove,
    spec,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld.requests.context import RequestContext
    from streamweld.requests.tables import Json
    from streamweld.requests.thinking import Thinking

__all__ = ["ENCRYPTED", "apply", "include", "require"]

ENCRYPTED: Final = "reasoning.encrypted_content"
_LEADING: Final = ("system", "developer")
_CONTINUE: Final = "Continue."
_LOGPROBS: Final = "message.output_text.logprobs"
_REQUIRES: Final = {"top_logprobs": "logprobs", "stream_options": "stream"}  # option -> the option it requires
_FAMILIES: Final = {"openai-chat": "chat", "mistral": "chat"}


def apply(context: RequestContext, made: dict[str, Any]) -> None:
    """Repair `made`, the request for the target."""
    require(context, made, thinking.read(context) if context.same else None)
    _json_word(context, made)
    match context.target:
        case "anthropic":
            claude.apply(context, made)
            _no_choice(context, made)
            _format(context, made)
        case "bedrock-converse":
            claude.apply(context, made)
            _descriptions(context, made)
            _tools_of_calls(context, made)
        case "responses":
            _effort(context, made, "reasoning.effort")
            _sampling(context, made, "reasoning.effort")
            _responses(context, made)
        case "openai-chat":
            _effort(context, made, "reasoning_effort")
            _sampling(context, made, "reasoning_effort")
            if (
                made.get("stream") is True
                and _FAMILIES.get(context.source) != "chat"
                and "include_usage" not in _lacks(context)
            ):
                put(made, "stream_options.include_usage", True)
            _alone(context, made)
        case "gemini":
            gemini.apply(context, made)
        case _:
            pass


def require(context: RequestContext, made: dict[str, Any], note: Thinking | None) -> None:
    """Add options that the target requires, with their default values.

    The thinking budget is a part of `max_tokens`, so it is added to the default of that option.
    """
    for option in options():
        default = option.required.get(context.target)
        target_path = option.path_in(context.target, context.facts)
        if default is not None and target_path is not None and at(made, target_path) is None:
            if option.word == "max_tokens":
                default = min(default + thinking.budget_of(note, context.target, made.get("model")), _most(made))
            context.edit("option_required", (target_path,), f"added {target_path} = {default}")
            put(made, target_path, default)


def _most(made: dict[str, Any]) -> float:
    """Return the maximum output of the model in tokens, or infinity if no default can exceed the maximum."""
    model, limits = made.get("model"), spec("thinking")["limits"]
    found = [most for pattern, most in limits.items() if isinstance(model, str) and re.search(pattern, model)]
    return min(found, default=inf)


def _lacks(context: RequestContext) -> Sequence[str]:
    return cast("Sequence[str]", context.facts.get("lacks", ()))


def _effort(context: RequestContext, made: dict[str, Any], path: str) -> None:
    """Replace a reasoning effort that the model does not accept, or remove it if the model does not reason."""
    efforts, effort = openai_efforts(made.get("model"), context.facts), at(made, path)
    if efforts is None or effort in (None, *efforts) or effort not in spec("thinking")["efforts"]:
        return
    origin = context.origin(path)
    if efforts:
        new = nearest_effort(effort, efforts)
        context.edit("option_approximated", origin, f"changed the effort from {effort} to {new}", effort)
        put(made, path, new)
        return
    remove(made, path)
    if effort == "none":
        context.edit("option_implied", origin, "dropped, because the model does not reason", effort)
    else:
        context.lose("reasoning", origin, "the model does not reason", effort)


def _sampling(context: RequestContext, made: dict[str, Any], effort: str) -> None:
    """Remove the sampling options if the model rejects them, because it reasons. `effort`: the path of the effort."""
    if not openai_rejects_sampling(made.get("model"), at(made, effort), context.facts):
        return
    why = "the model reasons, and does not accept sampling options"
    for name, default in spec("openai_sampling")["options"][context.target].items():
        if made.get(name) is None:
            continue
        value = made.pop(name)
        if value == default:
            context.edit("option_implied", context.origin(name), f"dropped: {why}", value)
        else:
            context.lose(name, context.origin(name), why, value)
    included = listed(made.get("include"))
    if _LOGPROBS in included:
        context.lose("include", context.origin("include"), why, _LOGPROBS)
        made["include"] = [value for value in included if value != _LOGPROBS]
        if not made["include"]:
            del made["include"]


def _json_word(context: RequestContext, made: dict[str, Any]) -> None:
    """Add a system message that asks for JSON, if the API requires the word JSON in the messages.

    The message is inserted directly after the system prompt, so that the order of the conversation does not change.
    """
    if context.profile.name not in spec("json_word")["gateways"].get(context.target, ()):
        return
    name, path = ("input", "text.format") if context.target == "responses" else ("messages", "response_format")
    given = made.get(name)
    if object_of(at(made, path)).get("type") != "json_object":
        return
    items: Sequence[Any] = [{"role": "user", "content": given}] if isinstance(given, str) else listed(given)
    messages = [object_of(item) for item in items]
    if any("json" in text.lower() for message in messages for text in _texts(message)):
        return
    first = next((n for n, message in enumerate(messages) if message.get("role") not in _LEADING), len(messages))
    kind = {"type": "message"} if context.target == "responses" else {}
    asks = {**kind, "role": "system", "content": spec("json_word")["text"]}
    made[name] = [*items[:first], asks, *items[first:]]
    context.edit("format_word", (name,), "added a system message that asks for JSON")


def _texts(message: Json) -> list[str]:
    content = message.get("content")
    texts = [object_of(part).get("text") for part in listed(content)] if is_list(content) else [content]
    return [text for text in texts if isinstance(text, str)]


# --- Anthropic


def _no_choice(context: RequestContext, made: dict[str, Any]) -> None:
    """Remove the option for parallel calls from the tool choice `none`, which does not accept that option."""
    choice = object_of(made.get("tool_choice"))
    if choice.get("type") == "none" and "disable_parallel_tool_use" in choice:
        remove(made, "tool_choice.disable_parallel_tool_use")
        path = ("tool_choice", "disable_parallel_tool_use")
        what = "dropped, because the tool choice none allows no calls"
        context.edit("option_alone", path, what, choice["disable_parallel_tool_use"])


def _format(context: RequestContext, made: dict[str, Any]) -> None:
    """Remove citations, and end a prefilled response, because the API rejects both together with a response format.

    https://platform.claude.com/docs/en/build-with-claude/structured-outputs#feature-compatibility
    """
    if at(made, "output_config.format") is None:
        return
    given = listed(made.get("messages"))
    messages = [_uncited(message, ("messages", n), context) for n, message in enumerate(given)]
    last = object_of(messages[-1] if messages else None)
    if prefills(last):
        path = ("messages", len(given) - 1) if context.same else ("messages",)
        what = "added a user message at the end, because a response with a format cannot be prefilled"
        context.edit("option_conflict", path, what)
        messages.append({"role": "user", "content": _CONTINUE})
    if len(messages) != len(given) or any(new is not old for new, old in zip(messages, given, strict=True)):
        made["messages"] = messages


def _uncited(holder: Any, path: tuple[str | int, ...], context: RequestContext) -> Any:
    """Return a message or a block without the enabled citations of its documents and search results."""
    fields = object_of(holder)
    made: dict[str, Any] = {}
    if is_cited(fields):
        where = (*path, "citations") if context.same else ("messages",)
        context.lose(
            "citations", where, "the API rejects citations together with a response format", fields["citations"]
        )
        made = {name: value for name, value in fields.items() if name != "citations"}
    content = listed(fields.get("content"))
    blocks = [_uncited(block, (*path, "content", n), context) for n, block in enumerate(content)]
    if any(new is not old for new, old in zip(blocks, content, strict=True)):
        made = {**(made or fields), "content": blocks}
    return made or holder


# --- Chat Completions


def _alone(context: RequestContext, made: dict[str, Any]) -> None:
    """Remove empty lists of tools, and options that require another option that is missing."""
    for name in ("tools", "functions"):
        if is_list(made.get(name)) and not made[name]:
            context.edit("tools_empty", (name,), f"dropped an empty list in {name}", made.pop(name))
    if made.get("top_logprobs") and made.get("logprobs") is None:
        made["logprobs"] = True
    for name, other in _REQUIRES.items():
        if made.get(name) is not None and made.get(other) is not True:
            context.edit("option_alone", context.origin(name), f"dropped, because {other} is not true", made.pop(name))


# --- Bedrock


def _descriptions(context: RequestContext, made: dict[str, Any]) -> None:
    """Remove the empty descriptions of tools."""
    tools = listed(at(made, "toolConfig.tools"))
    sound: list[Any] = []
    for n, tool in enumerate(tools):
        inner = object_of(object_of(tool).get("toolSpec"))
        if inner.get("description") != "":
            sound.append(tool)
            continue
        context.edit("tool_description", ("toolConfig", "tools", n), "dropped an empty description", "")
        rest = {name: value for name, value in inner.items() if name != "description"}
        sound.append({**tool, "toolSpec": rest})
    if any(one is not tool for one, tool in zip(sound, tools, strict=True)):
        put(made, "toolConfig.tools", sound)


def _tools_of_calls(context: RequestContext, made: dict[str, Any]) -> None:
    """Define the tools that the messages call, if the request defines no tools. Converse rejects calls without tools.

    Writing the calls as text instead would change the messages, so that a later request with tools could not reuse the
    cache.
    """
    if at(made, "toolConfig.tools"):
        return
    messages = [object_of(message) for message in listed(made.get("messages"))]
    blocks = [object_of(block) for message in messages for block in listed(message.get("content"))]
    calls = [object_of(block["toolUse"]) for block in blocks if "toolUse" in block]
    names = dict.fromkeys(call["name"] for call in calls if isinstance(call.get("name"), str))
    if not names:
        return
    context.edit("tools_missing", ("toolConfig", "tools"), f"defined the tools that the messages call: {len(names)}")
    schema = {"json": dict(schemas.EMPTY)}
    put(made, "toolConfig.tools", [{"toolSpec": {"name": name, "inputSchema": schema}} for name in names])


# --- Responses


def _responses(context: RequestContext, made: dict[str, Any]) -> None:
    lacks = _lacks(context)
    if made.get("conversation") is not None and made.get("previous_response_id") is not None:
        why = "conversation refers to the earlier turns, too, and the API does not accept both"
        path = context.origin("previous_response_id")
        context.lose("previous_response_id", path, why, made.pop("previous_response_id"), vital=True)
    if not context.same and made.get("store") is None and "store" not in lacks:
        context.edit("stateless", ("store",), "added store = false")
        made["store"] = False
    if made.get("store") is not False or "include" in lacks:
        return
    items = made.get("input")
    reasons = at(made, "reasoning.effort") not in (None, "none") or at(made, "reasoning.summary") is not None
    by_default = reasons_by_default(made.get("model"))
    if reasons or by_default or any(object_of(item).get("type") == "reasoning" for item in listed(items)):
        _include(context, made)


def _include(context: RequestContext, made: dict[str, Any]) -> None:
    include = made.get("include")
    if include is None or (is_list(include) and ENCRYPTED not in cast("Sequence[Any]", include)):
        context.edit("encrypted_reasoning", ("include",), f"added {ENCRYPTED} to include")
        made["include"] = [*cast("Sequence[Any]", include or ()), ENCRYPTED]


def include(context: RequestContext, made: dict[str, Any]) -> None:
    """Translate `include`, and the log probabilities that it may request.

    Call this function before the plain options are translated.
    """
    if context.same:
        context.used.add(("include",))
        return
    if context.source == "responses":
        included = context.request.get("include")
        context.used.add(("include",))
        for n, value in enumerate(cast("Sequence[Any]", included) if is_list(included) else ()):
            if value == _LOGPROBS and context.target == "openai-chat" and "logprobs" not in _lacks(context):
                made["logprobs"] = True
                context.written["logprobs"] = ("include", n)
            elif value == ENCRYPTED:
                context.edit(
                    "option_implied",
                    ("include", n),
                    "dropped, because the target always returns the reasoning data that later requests need",
                    value,
                )
            else:
                context.lose("include", ("include", n), f"{context.target} has no option that requests it", value)
    elif context.target == "responses" and context.request.get("logprobs") is True and context.source == "openai-chat":
        made["include"] = [_LOGPROBS]
        context.written["include"] = ("logprobs",)
        context.done.add("logprobs")
