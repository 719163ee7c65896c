"""Enforce constraints between options: required members, conflicts, and members that a stateless request needs.

The constraints also apply to requests in the target's own format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from streamweld.requests.tables import at, is_list, model_facts, object_of, options, put, reasons_by_default, spec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld.requests.context import RequestContext

__all__ = ["ENCRYPTED", "apply", "begins_with_thinking", "include", "require"]

ENCRYPTED: Final = "reasoning.encrypted_content"
_LOGPROBS: Final = "message.output_text.logprobs"
_SAMPLING: Final = ("temperature", "top_p", "top_k")
_FAMILIES: Final = {"openai-chat": "chat", "mistral": "chat"}


def apply(context: RequestContext, made: dict[str, Any]) -> None:
    """Repair `made`, the request for the target."""
    require(context, made)
    match context.target:
        case "anthropic":
            _anthropic(context, made)
        case "responses":
            _responses(context, made)
        case "openai-chat":
            if (
                made.get("stream") is True
                and _FAMILIES.get(context.source) != "chat"
                and "include_usage" not in _lacks(context)
            ):
                put(made, "stream_options.include_usage", True)
            if made.get("top_logprobs") and made.get("logprobs") is None:
                made["logprobs"] = True
        case "gemini":
            if at(made, "generationConfig.logprobs") and at(made, "generationConfig.responseLogprobs") is None:
                put(made, "generationConfig.responseLogprobs", True)
        case _:
            pass


def require(context: RequestContext, made: dict[str, Any]) -> None:
    """Add options that the target requires, with their default values."""
    for option in options():
        default = option.required.get(context.target)
        target_path = option.path_in(context.target, context.facts)
        if default is not None and target_path is not None and at(made, target_path) is None:
            context.edit("option_required", (target_path,), f"added {target_path} = {default}")
            put(made, target_path, default)


def _lacks(context: RequestContext) -> Sequence[str]:
    return cast("Sequence[str]", context.facts.get("lacks", ()))


# --- Anthropic


def _anthropic(context: RequestContext, made: dict[str, Any]) -> None:
    facts = model_facts("anthropic", made.get("model"))
    if facts.get("always_thinks"):
        _always_thinking(context, made)
    config = object_of(made.get("thinking"))
    if config.get("type") in ("enabled", "adaptive"):
        _thinking(context, made, facts)
    thinks = object_of(made.get("thinking")).get("type") in ("enabled", "adaptive")
    if not facts["sampling"]:
        for name in _SAMPLING:
            _drop(context, made, name, "the model does not accept sampling options", implied=1)
    elif thinks:
        _drop(context, made, "temperature", "while thinking is enabled, temperature must be 1", implied=1)
        _drop(context, made, "top_k", "while thinking is enabled, the model does not accept top_k")
        top_p = made.get("top_p")
        if isinstance(top_p, int | float) and top_p < 0.95:
            _drop(context, made, "top_p", "while thinking is enabled, top_p must be at least 0.95")
    if facts.get("one_of_two") and made.get("temperature") is not None and made.get("top_p") is not None:
        _drop(context, made, "top_p", "the model accepts temperature or top_p, but not both", implied=1)
    off = object_of(made.get("thinking")).get("type") == "disabled"
    effort = at(made, "output_config.effort")
    if facts.get("off_limits_effort") and off and effort in ("xhigh", "max"):
        context.edit(
            "option_conflict",
            ("output_config", "effort"),
            f"lowered the effort from {effort} to high, because thinking is disabled",
            effort,
        )
        put(made, "output_config.effort", "high")


def _always_thinking(context: RequestContext, made: dict[str, Any]) -> None:
    """Remove options that always-thinking models reject: disabled thinking, and forced tool calls."""
    config, choice = object_of(made.get("thinking")), object_of(made.get("tool_choice"))
    if config.get("type") == "disabled":
        context.lose(
            "thinking", _origin(context, "thinking"), "thinking cannot be disabled for this model", made.pop("thinking")
        )
    if choice.get("type") in ("any", "tool"):
        why = "thinking is always enabled for this model, and it excludes forced tool calls"
        context.lose("tool_choice", _origin(context, "tool_choice"), why, dict(choice), vital=True)
        made["tool_choice"] = {"type": "auto", **{k: v for k, v in choice.items() if k == "disable_parallel_tool_use"}}


def _drop(context: RequestContext, made: dict[str, Any], name: str, why: str, implied: Any = None) -> None:
    value = made.pop(name, None)
    if value is None:
        return
    path = _origin(context, name)
    if implied is not None and value == implied:
        context.edit("option_implied", path, f"dropped: {why}", value)
    else:
        context.lose(name, path, why, value)


def _origin(context: RequestContext, word: str) -> tuple[str, ...]:
    """Return the path of the option in the source request, or only its name if the request does not contain it."""
    for option in options():
        if option.word == word:
            for path in option.paths.get(context.source, ()):
                if at(context.request, path) is not None:
                    return tuple(path.split("."))
    return (word,)


def _thinking(context: RequestContext, made: dict[str, Any], facts: Any) -> None:
    config = made["thinking"]
    choice = object_of(made.get("tool_choice")).get("type")
    if choice in ("any", "tool"):
        context.lose("thinking", ("thinking",), "thinking cannot be combined with a forced tool call", dict(config))
        _without_thinking(made, facts)
        return
    if config["type"] == "adaptive" and facts["thinking"] and "adaptive" not in facts["thinking"]:
        budgets = spec("thinking")["budgets"]
        budget = budgets.get(at(made, "output_config.effort"), budgets["medium"])
        context.edit(
            "option_approximated",
            ("thinking",),
            "changed thinking from adaptive to a budget, because the model requires a budget",
            dict(config),
        )
        shown = {k: v for k, v in config.items() if k == "display"}
        config = made["thinking"] = {"type": "enabled", "budget_tokens": budget, **shown}
    if config["type"] == "enabled":
        if not facts["thinking"] or "enabled" in facts["thinking"]:
            _budget(context, made, facts)
        else:
            context.edit(
                "option_approximated",
                ("thinking",),
                "changed thinking from a budget to adaptive, because the model does not accept a budget",
                dict(config),
            )
            made["thinking"] = {"type": "adaptive", **{k: v for k, v in config.items() if k == "display"}}
    config = object_of(made.get("thinking"))
    if config.get("type") == "enabled" and not begins_with_thinking(made):
        if "adaptive" in facts["thinking"]:
            context.edit(
                "thinking_unsigned",
                ("thinking",),
                "changed thinking from a budget to adaptive, which accepts turns without a thinking block",
                dict(config),
            )
            made["thinking"] = {"type": "adaptive", **{k: v for k, v in config.items() if k == "display"}}
        else:
            context.lose("thinking", ("thinking",), spec("rules")["thinking_unsigned"]["text"], dict(config))
            _without_thinking(made, facts)


def _budget(context: RequestContext, made: dict[str, Any], facts: Any) -> None:
    config, most = made["thinking"], made.get("max_tokens")
    budget, smallest = config.get("budget_tokens"), spec("thinking")["smallest"]
    if not isinstance(budget, int) or not isinstance(most, int) or smallest <= budget < most:
        return
    if most <= smallest:
        why = f"thinking needs at least {smallest} tokens, and max_tokens leaves fewer"
        context.lose("thinking", ("thinking",), why, dict(config))
        _without_thinking(made, facts)
        return
    new = max(smallest, min(budget, most - 1))
    context.edit(
        "option_bounds", ("thinking", "budget_tokens"), f"changed the budget from {budget} to {new} tokens", budget
    )
    made["thinking"] = {**config, "budget_tokens": new}


def _without_thinking(made: dict[str, Any], facts: Any) -> None:
    if facts["off"] is None:
        del made["thinking"]
    else:
        made["thinking"] = dict(facts["off"])


def begins_with_thinking(request: Any) -> bool:
    """Return whether the last assistant message begins with thinking, or has no tool calls.

    If thinking has the type `enabled`, the API rejects an unfinished tool turn that does not begin with thinking.
    """
    messages = [object_of(message) for message in cast("Sequence[Any]", object_of(request).get("messages") or ())]
    last = next((n for n in range(len(messages) - 1, -1, -1) if messages[n].get("role") == "assistant"), None)
    if last is None:
        return True
    content = messages[last].get("content")
    blocks = [object_of(block).get("type") for block in cast("Sequence[Any]", content)] if is_list(content) else []
    return "tool_use" not in blocks or blocks[0] in ("thinking", "redacted_thinking")


# --- Responses


def _responses(context: RequestContext, made: dict[str, Any]) -> None:
    lacks = _lacks(context)
    if not context.same and made.get("store") is None and "store" not in lacks:
        context.edit("stateless", ("store",), "added store = false")
        made["store"] = False
    if made.get("store") is not False or "include" in lacks:
        return
    items = made.get("input")
    listed = cast("Sequence[Any]", items) if is_list(items) else ()
    reasons = at(made, "reasoning.effort") not in (None, "none") or at(made, "reasoning.summary") is not None
    by_default = reasons_by_default(made.get("model"))
    if reasons or by_default or any(object_of(item).get("type") == "reasoning" for item in listed):
        _include(context, made)


def _include(context: RequestContext, made: dict[str, Any]) -> None:
    include = made.get("include")
    if include is None or (is_list(include) and ENCRYPTED not in cast("Sequence[Any]", include)):
        context.edit("encrypted_reasoning", ("include",), f"added {ENCRYPTED} to include")
        made["include"] = [*cast("Sequence[Any]", include or ()), ENCRYPTED]


def include(context: RequestContext, made: dict[str, Any]) -> None:
    """Translate `include`, and the log probabilities that it may request. Call this before the plain options."""
    if context.same:
        context.used.add(("include",))
        return
    if context.source == "responses":
        included = context.request.get("include")
        context.used.add(("include",))
        for n, value in enumerate(cast("Sequence[Any]", included) if is_list(included) else ()):
            if value == _LOGPROBS and context.target == "openai-chat" and "logprobs" not in _lacks(context):
                made["logprobs"] = True
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
        context.done.add("logprobs")
