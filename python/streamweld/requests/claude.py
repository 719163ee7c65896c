"""Enforce the constraints of Claude models between thinking, sampling options and the tool choice.

The constraints apply in Anthropic's API and in Bedrock's Converse API. For each API, `claude` in `_spec/requests.json`
lists the members that the constraints concern.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.requests.tables import at, claude_facts, listed, object_of, put, remove, spec, thawed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld.requests.context import RequestContext
    from streamweld.requests.tables import Json

__all__ = ["apply"]

_SAMPLING: Final = ("temperature", "top_p", "top_k")


def apply(context: RequestContext, made: dict[str, Any]) -> None:
    """Repair `made`, the request for the target, if its model is a Claude model."""
    facts = claude_facts(context.target, made)
    if facts is not None:
        _Claude(context, made, facts).repair()


class _Claude:
    """One request for a Claude model. `paths` maps each option to its dotted path in the target's API."""

    def __init__(self, context: RequestContext, made: dict[str, Any], facts: Json) -> None:
        self.context = context
        self.made = made
        self.facts = facts
        self.api: Json = spec("claude")[context.target]
        self.paths: dict[str, str] = dict(self.api["paths"])
        other = self.api.get("older_thinking")
        if other is not None and at(made, other) is not None:
            self.paths["thinking"] = other

    def read(self, name: str) -> Any:
        return at(self.made, self.paths[name])

    def write(self, name: str, value: Any) -> None:
        put(self.made, self.paths[name], value)

    def origin(self, name: str) -> Sequence[str | int]:
        return self.context.origin(self.paths[name])

    @property
    def thinking(self) -> Json:
        return object_of(self.read("thinking"))

    @property
    def thinks(self) -> bool:
        return self.thinking.get("type") in ("enabled", "adaptive")

    @property
    def forced(self) -> bool:
        """Whether the model must call a tool."""
        choice = object_of(self.read("tool_choice"))
        return choice.get("type") in ("any", "tool") or not choice.keys().isdisjoint(("any", "tool"))

    def repair(self) -> None:
        facts = self.facts
        if facts.get("always_thinks"):
            self._always_thinking()
        if self.thinks:
            self._thinking()
        if not facts["sampling"]:
            for name in _SAMPLING:
                self._drop(name, "the model does not accept sampling options", implied=1)
        elif self.thinks:
            self._drop("temperature", "while thinking is enabled, temperature must be 1", implied=1)
            self._drop("top_k", "while thinking is enabled, the model does not accept top_k")
            top_p = self.read("top_p")
            if isinstance(top_p, int | float) and top_p < 0.95:
                self._drop("top_p", "while thinking is enabled, top_p must be at least 0.95")
        if facts.get("one_of_two") and self.read("temperature") is not None and self.read("top_p") is not None:
            self._drop("top_p", "the model accepts temperature or top_p, but not both", implied=1)
        effort = self.read("effort")
        if facts.get("off_limits_effort") and self.thinking.get("type") == "disabled" and effort in ("xhigh", "max"):
            what = f"lowered the effort from {effort} to high, because thinking is disabled"
            self.context.edit("option_conflict", self.origin("effort"), what, effort)
            self.write("effort", "high")

    def _always_thinking(self) -> None:
        """Remove options that models reject if they always think: disabled thinking, and forced tool calls."""
        if self.thinking.get("type") == "disabled":
            self._lose_thinking("thinking cannot be disabled for this model")
            remove(self.made, self.paths["thinking"])
        if self.forced:
            choice = object_of(self.read("tool_choice"))
            why = "thinking is always enabled for this model, and it excludes forced tool calls"
            self.context.lose("tool_choice", self.origin("tool_choice"), why, dict(choice), vital=True)
            kept = {name: value for name, value in choice.items() if name == "disable_parallel_tool_use"}
            self.write("tool_choice", {**thawed(self.api["auto"]), **kept})

    def _lose_thinking(self, why: str) -> None:
        self.context.lose("thinking", self.origin("thinking"), why, dict(self.thinking))

    def _drop(self, name: str, why: str, implied: Any = None) -> None:
        value = self.read(name)
        if value is None:
            return
        remove(self.made, self.paths[name])
        path = self.origin(name)
        if implied is not None and value == implied:
            self.context.edit("option_implied", path, f"dropped: {why}", value)
        else:
            self.context.lose(name, path, why, value)

    def _thinking(self) -> None:
        kinds = self.facts["thinking"]
        if self.forced:
            self._lose_thinking("thinking cannot be combined with a forced tool call")
            self._without_thinking()
            return
        if self.thinking["type"] == "adaptive" and kinds and "adaptive" not in kinds:
            budgets = spec("thinking")["budgets"]
            budget = budgets.get(self.read("effort"), budgets["medium"])
            what = "changed thinking from adaptive to a budget, because the model requires a budget"
            self._approximate("option_approximated", {"type": "enabled", "budget_tokens": budget}, what)
        if self.thinking["type"] == "enabled":
            if not kinds or "enabled" in kinds:
                self._budget()
            else:
                what = "changed thinking from a budget to adaptive, because the model does not accept a budget"
                self._approximate("option_approximated", {"type": "adaptive"}, what)
        if self.thinking.get("type") == "enabled" and not self._begins_with_thinking():
            if "adaptive" in kinds and not self._prefilled():
                what = "changed thinking from a budget to adaptive, which accepts turns without a thinking block"
                self._approximate("thinking_unsigned", {"type": "adaptive"}, what)
            else:
                self._lose_thinking(spec("rules")["thinking_unsigned"]["text"])
                self._without_thinking()

    def _approximate(self, rule: str, config: Json, what: str) -> None:
        """Replace the type and budget of thinking. The option that displays the thinking text is kept."""
        before = dict(self.thinking)
        self.context.edit(rule, self.origin("thinking"), what, before)
        self.write("thinking", {**config, **{name: value for name, value in before.items() if name == "display"}})

    def _budget(self) -> None:
        config, most = self.thinking, self.read("max_tokens")
        budget, smallest = config.get("budget_tokens"), spec("thinking")["smallest"]
        if not isinstance(budget, int) or not isinstance(most, int) or smallest <= budget < most:
            return
        if most <= smallest:
            self._lose_thinking(f"thinking needs at least {smallest} tokens, and max_tokens leaves fewer")
            self._without_thinking()
            return
        new = max(smallest, min(budget, most - 1))
        path = self.context.origin(self.paths["thinking"] + ".budget_tokens")
        self.context.edit("option_bounds", path, f"changed the budget from {budget} to {new} tokens", budget)
        self.write("thinking", {**config, "budget_tokens": new})

    def _without_thinking(self) -> None:
        if self.facts["off"] is None:
            remove(self.made, self.paths["thinking"])
        else:
            self.write("thinking", dict(self.facts["off"]))

    def _prefilled(self) -> bool:
        """Return whether the last message is the beginning of a response that the model continues."""
        messages = listed(self.made.get("messages"))
        return bool(messages) and object_of(messages[-1]).get("role") == "assistant"

    def _begins_with_thinking(self) -> bool:
        """Return whether the last assistant message begins with thinking, or does not have to.

        If thinking has the type `enabled`, an unfinished tool turn or a prefilled response must begin with thinking;
        otherwise, the API rejects the request.
        """
        messages = [object_of(message) for message in listed(self.made.get("messages"))]
        last = next((message for message in reversed(messages) if message.get("role") == "assistant"), None)
        blocks = [self._kinds(block) for block in listed(None if last is None else last.get("content"))]
        if not self._prefilled() and not any(self.api["call"] in kinds for kinds in blocks):
            return True
        return bool(blocks) and not blocks[0].isdisjoint(self.api["thinking_blocks"])

    def _kinds(self, block: Any) -> set[str]:
        """Return the type of a content block. In Converse, the name of a member is the type."""
        given = object_of(block)
        return {str(given["type"])} if "type" in given else set(given)
