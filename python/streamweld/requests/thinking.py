"""Convert reasoning options between APIs: effort, token budget, and visibility of the reasoning text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from streamweld.requests.tables import at, model_facts, nearest_level, object_of, put, spec, steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld.requests.context import RequestContext

__all__ = ["Thinking", "budget_of", "effort_member", "read", "translate"]

_PLACES: Final = {
    "openai-chat": ("reasoning_effort", "reasoning", "thinking", "enable_thinking", "thinking_budget"),
    "mistral": ("reasoning_effort", "prompt_mode"),
    "responses": ("reasoning.effort", "reasoning.summary", "reasoning.generate_summary"),
    "anthropic": ("thinking", "output_config.effort"),
    "gemini": ("generationConfig.thinkingConfig",),
    "bedrock-converse": (
        "additionalModelRequestFields.thinking",
        "additionalModelRequestFields.reasoning_config",
        "additionalModelRequestFields.reasoning_effort",
        "additionalModelRequestFields.reasoningConfig",
        "outputConfig.effort",
    ),
    "ai-sdk-model": ("reasoning",),
}
# The AI SDK's options of each provider, and the providers whose options a target prefers. Each provider reads only its
# own options: https://ai-sdk.dev/docs/foundations/prompts#provider-options
_OF_PROVIDERS: Final = {
    "anthropic": ("anthropic.thinking", "anthropic.effort"),
    "openai": ("openai.reasoningEffort", "openai.reasoningSummary"),
    "google": ("google.thinkingConfig",),
    "bedrock": ("bedrock.reasoningConfig",),
}
_PREFERRED: Final = {
    "gemini": ("google",),
    "bedrock-converse": ("bedrock",),
    "openai-chat": ("openai",),
    "responses": ("openai",),
    "mistral": ("openai",),
}
_SUMMARIES: Final = ("summary", "generate_summary", "reasoningSummary")


@dataclass(frozen=True, slots=True)
class Thinking:
    """The reasoning options of a request.

    `on`: whether the model should reason; None if the request does not specify it. `shown`: whether the request asks
    for the reasoning text.
    """

    path: tuple[str, ...]
    raw: Any
    on: bool | None = None
    effort: str | None = None
    budget: int | None = None
    shown: bool | None = None


def read(context: RequestContext) -> Thinking | None:
    """Return the reasoning options of the request, or None, and mark their members as used."""
    paths = _PLACES.get(context.source, ())
    if context.source == "ai-sdk-model":
        paths = (*paths, *_provider_paths(context))
    found = {path: value for path in paths if (value := at(context.request, path)) is not None}
    context.used.update(steps(path) for path in paths)
    if not found:
        return None
    first = next(iter(found))
    on: bool | None = None
    effort: str | None = None
    budget: int | None = None
    shown: bool | None = None
    for path, value in found.items():
        given = object_of(value)
        name = path.rpartition(".")[2]
        if isinstance(value, str) and name not in _SUMMARIES and name != "prompt_mode":
            effort = effort or _effort(value)
        elif name in _SUMMARIES:
            shown = True
        elif name == "prompt_mode" or name == "enable_thinking":
            on = value in ("reasoning", True)
        elif name == "thinking_budget" and isinstance(value, int):
            budget = value
        elif given:
            kind = given.get("type")
            on = on if kind is None else kind != "disabled"
            if given.get("enabled") is not None:
                on = given["enabled"] is True
            effort = effort or _effort(
                given.get("effort") or given.get("thinkingLevel") or given.get("maxReasoningEffort")
            )
            budget = _budget(given) if budget is None else budget
            shown = _shown(given) if shown is None else shown
    if on is None and (effort is not None or budget is not None):
        on = effort != "none" and budget != 0
    return Thinking(steps(first), dict(found), on, effort, budget, shown)


def _provider_paths(context: RequestContext) -> tuple[str, ...]:
    """Return the paths of one provider's options: the provider that the target prefers, or else the first that has any
    options.

    The options of other providers do not concern the target, and are recorded as losses.
    """
    order = dict.fromkeys((*_PREFERRED.get(context.target, ()), *_OF_PROVIDERS))
    groups = [tuple([f"providerOptions.{path}" for path in _OF_PROVIDERS[name]]) for name in order]
    return next((paths for paths in groups if any(at(context.request, path) is not None for path in paths)), ())


def _effort(word: object) -> str | None:
    """Return an effort in lower case, or None for values that are not an effort (`default`, `provider-default`)."""
    known = spec("thinking")["efforts"]
    return word.lower() if isinstance(word, str) and word.lower() in known else None


def _budget(given: Mapping[str, Any]) -> int | None:
    value = next(
        (given[name] for name in ("budget_tokens", "budgetTokens", "thinkingBudget", "max_tokens") if name in given),
        None,
    )
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _shown(given: Mapping[str, Any]) -> bool | None:
    if given.get("display") is not None:
        return bool(given["display"] != "omitted")
    if isinstance(given.get("includeThoughts"), bool):
        return bool(given["includeThoughts"])
    return given["exclude"] is False if isinstance(given.get("exclude"), bool) else None


def translate(found: Thinking | None, context: RequestContext, made: dict[str, Any]) -> None:
    """Write the reasoning options into `made`.

    Call this function after `max_tokens` has been set, because `max_tokens` limits the budget.
    """
    if found is None:
        return
    context.written |= dict.fromkeys(_PLACES.get(context.target, ()), found.path)
    gateway = context.facts.get("thinking")
    if gateway is not None:
        _to_gateway(found, context, gateway, made)
    else:
        _WRITERS.get(context.target, _to_no_thinking)(found, context, made)


def _strength(found: Thinking) -> str | None:
    """Return the effort, or None if the request has neither an effort nor a budget.

    If the request has only a budget, return the nearest effort.
    """
    if found.on is False:
        return "none"
    if found.effort is not None or found.budget is None:
        return found.effort
    budgets = spec("thinking")["budgets"]
    return next((word for word in ("low", "medium", "high") if found.budget <= budgets[word]), "high")


def _word(found: Thinking, context: RequestContext, words: Mapping[str, str]) -> str | None:
    """Return the target's name for the effort, or None if the target has no such name.

    An approximation is recorded as an edit; a budget that the target does not accept is recorded as a loss.
    """
    strength = _strength(found)
    if strength is None:
        return None
    if found.budget and found.effort is None:
        context.edit(
            "option_approximated",
            found.path,
            f"replaced the budget of {found.budget} tokens with effort {strength}",
            found.budget,
        )
    elif found.budget:
        context.lose(
            "budget_tokens", found.path, f"{context.target} accepts an effort, not a token budget", found.budget
        )
    word = words.get(strength)
    if word is None:
        context.lose("reasoning", found.path, f"{context.target} does not have this level of effort", strength)
    elif word != strength:
        context.edit("option_approximated", found.path, f"changed the effort from {strength} to {word}", strength)
    return word


def _default_on(found: Thinking, context: RequestContext) -> None:
    context.edit(
        "option_implied",
        found.path,
        "dropped, because without an effort or budget the target uses its default",
        dict(found.raw),
    )


def _hidden(found: Thinking, context: RequestContext, *, always_shown: bool = False) -> None:
    """Record a request for the reasoning text as a loss, because the target has no such option.

    `always_shown`: whether the target always sends the text. If the target always sends the text, a request to omit the
    text is also recorded as a loss.
    """
    if found.shown:
        context.lose(
            "summary", found.path, f"{context.target} has no option that requests the text of the reasoning", True
        )
    elif found.shown is False and found.on is not False and always_shown:
        context.lose(
            "display", found.path, f"{context.target} has no option that omits the text of the reasoning", False
        )


def _words(context: RequestContext) -> Mapping[str, str]:
    """Return the gateway's names for reasoning efforts, keyed by streamweld's names.

    Without a gateway, return the target's names.
    """
    own: Mapping[str, str] | None = context.facts.get("efforts")
    sent: Mapping[str, str] = spec("thinking")["sent"][context.target] if own is None else own
    return sent


def _to_chat(found: Thinking, context: RequestContext, made: dict[str, Any]) -> None:
    word = _word(found, context, _words(context))
    if word is not None:
        made["reasoning_effort"] = word
    elif _strength(found) is None:
        _default_on(found, context)
    _hidden(found, context)


def _to_responses(found: Thinking, context: RequestContext, made: dict[str, Any]) -> None:
    word = _word(found, context, _words(context))
    if word is not None:
        put(made, "reasoning.effort", word)
    if found.shown:
        put(made, "reasoning.summary", "auto")
    elif word is None and _strength(found) is None:
        _default_on(found, context)


def _to_ai_sdk(found: Thinking, context: RequestContext, made: dict[str, Any]) -> None:
    word = _word(found, context, spec("thinking")["sent"]["ai-sdk-model"])
    if word is not None:
        made["reasoning"] = word
    elif _strength(found) is None:
        _default_on(found, context)
    _hidden(found, context)


def _to_anthropic(found: Thinking, context: RequestContext, made: dict[str, Any]) -> None:
    facts = model_facts("anthropic", made.get("model"))
    config = _claude(found, context, facts, made.get("max_tokens"))
    if config is not None:
        if found.shown is not None and config["type"] != "disabled":
            config["display"] = "summarized" if found.shown else "omitted"
        made["thinking"] = config
    if found.on and config is not None and found.effort is not None and facts["effort"]:
        word = _word(found, context, spec("thinking")["sent"]["anthropic"])
        if word is not None:
            put(made, "output_config.effort", word)


def _claude(found: Thinking, context: RequestContext, facts: Mapping[str, Any], most: Any) -> dict[str, Any] | None:
    """Return the `thinking` member for a Claude model, or None if it must be omitted."""
    kinds = facts["thinking"]
    if found.on is False:
        if facts.get("always_thinks"):
            context.lose("thinking", found.path, "thinking cannot be disabled for this model", dict(found.raw))
            return None
        if facts["off"] is None:
            context.edit(
                "option_implied", found.path, "dropped, because thinking is disabled by default", dict(found.raw)
            )
            return None
        return dict(facts["off"])
    budget, smallest = _manual(found, kinds), spec("thinking")["smallest"]
    if budget is None:
        if found.budget is not None and found.effort is None:
            context.lose("budget_tokens", found.path, "the model sets its own thinking budget", found.budget)
        return {"type": "adaptive"}
    room = most - 1 if isinstance(most, int) else budget
    if "enabled" not in kinds or room < smallest:
        why = (
            "the model does not support thinking"
            if "enabled" not in kinds
            else f"thinking needs at least {smallest} tokens, and max_tokens leaves fewer"
        )
        context.lose("thinking", found.path, why, dict(found.raw))
        return None
    new = max(smallest, min(budget, room))
    if new != found.budget:
        note = (
            f"a budget of {found.budget} tokens"
            if found.budget is not None
            else f"the effort {found.effort or 'default'}"
        )
        context.edit(
            "option_approximated", found.path, f"replaced {note} with a budget of {new} tokens", dict(found.raw)
        )
    return {"type": "enabled", "budget_tokens": new}


def _manual(found: Thinking, kinds: Sequence[str]) -> int | None:
    """Return the token budget to request from a Claude model, or None if the model sets its own budget."""
    wants_budget = found.budget is not None and found.effort is None
    if "adaptive" in kinds and not (wants_budget and "enabled" in kinds):
        return None
    return found.budget if found.budget is not None else int(spec("thinking")["budgets"][found.effort or "medium"])


def budget_of(found: Thinking | None, target: str, model: object) -> int:
    """Return the tokens that thinking needs in addition to those of the response, or 0 if it has no fixed budget."""
    if found is None or found.on is False or target != "anthropic":
        return 0
    kinds = model_facts("anthropic", model)["thinking"]
    return (_manual(found, kinds) or 0) if "enabled" in kinds else 0


def _to_gemini(found: Thinking, context: RequestContext, made: dict[str, Any]) -> None:
    facts = model_facts("gemini", made.get("model"))
    kinds = facts["thinking"]
    config: dict[str, Any] = {}
    if not kinds:
        context.lose("reasoning", found.path, "the model does not support reasoning", dict(found.raw))
        return
    if "budget" in kinds:
        strength = _strength(found)
        if found.budget is not None or found.on is False:
            config["thinkingBudget"] = found.budget if found.on is not False else 0
        elif strength is not None:
            config["thinkingBudget"] = spec("thinking")["budgets"][strength]
            note = f"replaced the effort {strength} with a budget of {config['thinkingBudget']} tokens"
            context.edit("option_approximated", found.path, note, strength)
        elif found.on:
            config["thinkingBudget"] = -1
    else:
        sent = spec("thinking")["sent"]["gemini"]
        word = _word(found, context, {effort: nearest_level(level, facts) for effort, level in sent.items()})
        if word is not None:
            config["thinkingLevel"] = word
    if found.shown is not None:
        config["includeThoughts"] = found.shown
    if config:
        put(made, "generationConfig.thinkingConfig", config)
    else:
        _default_on(found, context)


def _to_bedrock(found: Thinking, context: RequestContext, made: dict[str, Any]) -> None:
    model = made.get("modelId")
    name = model.lower() if isinstance(model, str) else ""
    if "claude" in name or "anthropic" in name:
        facts = model_facts("anthropic", model)
        config = _claude(found, context, facts, at(made, "inferenceConfig.maxTokens"))
        if config is not None:
            put(made, "additionalModelRequestFields.thinking", config)
        if config is not None and found.on and found.effort is not None and facts["effort"]:
            word = _word(found, context, spec("thinking")["sent"]["bedrock-converse"])
            if word is not None:
                put(made, "outputConfig.effort", word)
        _hidden(found, context, always_shown=True)
        return
    if "openai" in name or "gpt" in name:
        word = _word(found, context, spec("thinking")["sent"]["openai-chat"])
        if word is not None:
            put(made, "additionalModelRequestFields.reasoning_effort", word)
            _hidden(found, context)
            return
    context.lose("reasoning", found.path, "streamweld does not know this model's reasoning options", dict(found.raw))


def _to_mistral(found: Thinking, context: RequestContext, made: dict[str, Any]) -> None:
    word = _word(found, context, spec("thinking")["sent"]["mistral"])
    if word is not None:
        made["reasoning_effort"] = word
    elif _strength(found) is None:
        _default_on(found, context)
    _hidden(found, context)


def _to_no_thinking(found: Thinking, context: RequestContext, _made: dict[str, Any]) -> None:
    context.lose("reasoning", found.path, f"{context.target} does not have this option", dict(found.raw))


def effort_member(how: Mapping[str, Any], model: object) -> str | None:
    """Return the gateway's member for an effort, or None if it has none for this model."""
    if "models" in how and not (isinstance(model, str) and re.search(how["models"], model)):
        return None
    found: str | None = how.get("effort")
    return found


def _to_gateway(found: Thinking, context: RequestContext, how: Mapping[str, Any], made: dict[str, Any]) -> None:
    """Write the reasoning options in the form that the gateway expects: an object with a type, or OpenRouter's
    `reasoning`.
    """
    _hidden(found, context, always_shown=not how.get("object"))
    if how.get("object"):
        if found.on is False:
            config: dict[str, Any] = {"enabled": False}
        elif found.effort is not None:
            config = {"effort": found.effort}
            if found.budget:
                context.lose("budget_tokens", found.path, "the gateway accepts an effort or a budget", found.budget)
        else:
            config = {"enabled": True} if found.budget is None else {"max_tokens": found.budget}
        if found.shown is False and found.on is not False:
            config["exclude"] = True
        made[how["member"]] = config
        return
    made[how["member"]] = dict(how["off"] if found.on is False else how["on"])
    if found.on is False:
        return
    member = effort_member(how, made.get("model"))
    if member is None:
        why = f"the gateway {context.profile.name} accepts neither an effort nor a budget"
        for name, value in (("reasoning_effort", found.effort), ("budget_tokens", found.budget)):
            if value is not None:
                context.lose(name, found.path, why, value)
        return
    word = _word(found, context, how["words"])
    if word is not None:
        made[member] = word


_WRITERS: Final = {
    "openai-chat": _to_chat,
    "mistral": _to_mistral,
    "responses": _to_responses,
    "ai-sdk-model": _to_ai_sdk,
    "anthropic": _to_anthropic,
    "gemini": _to_gemini,
    "bedrock-converse": _to_bedrock,
}
