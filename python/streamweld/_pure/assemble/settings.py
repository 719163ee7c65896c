"""The assembler's settings, read once from the parser's config: switches, limits, tools and ids.

The names are those of the config and of the options of `Policy`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

__all__ = ["Limits", "Settings", "Switches", "Tools"]


class Switches:
    """The switches that select how ambiguous streams are read."""

    __slots__ = (
        "content_mode",
        "dup_id_empty_header",
        "dup_id_parallel_headers",
        "empty_call_without_reason",
        "identical_idless_same_index",
        "missing_terminal",
        "on_overflow",
        "orphan_index",
        "same_index_new_id_same_name_empty",
        "unstable_id",
    )

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.same_index_new_id_same_name_empty: Literal["new", "merge"] = raw["same_index_new_id_same_name_empty"]
        self.orphan_index: Literal["fifo", "latest"] = raw["orphan_index"]
        self.dup_id_parallel_headers: Literal["auto", "join", "split"] = raw.get("dup_id_parallel_headers", "auto")
        self.dup_id_empty_header: Literal["drop", "keep"] = raw["dup_id_empty_header"]
        self.empty_call_without_reason: Literal["cut", "run"] = raw["empty_call_without_reason"]
        self.identical_idless_same_index: Literal["drop", "keep"] = raw["identical_idless_same_index"]
        self.missing_terminal: Literal["truncate", "assume"] = raw["missing_terminal"]
        self.on_overflow: Literal["flag", "split"] = raw["on_overflow"]
        self.content_mode: Literal["delta", "auto", "cumulative"] = raw["content_mode"]
        self.unstable_id: Literal["first", "last"] = raw["unstable_id"]


class Limits:
    """The limits that the assembler enforces. None turns a limit off."""

    __slots__ = (
        "max_arguments_bytes",
        "max_choices",
        "max_id_bytes",
        "max_name_bytes",
        "max_parts",
        "max_text_bytes",
        "max_tool_calls",
        "max_tool_index",
        "max_total_arguments_bytes",
    )

    def __init__(self, raw: Mapping[str, int | None]) -> None:
        self.max_choices = raw["max_choices"]
        self.max_tool_calls = raw["max_tool_calls"]
        self.max_tool_index = raw["max_tool_index"]
        self.max_arguments_bytes = raw["max_arguments_bytes"]
        self.max_total_arguments_bytes = raw["max_total_arguments_bytes"]
        self.max_name_bytes = raw["max_name_bytes"]
        self.max_parts = raw["max_parts"]
        self.max_id_bytes = raw["max_id_bytes"]
        self.max_text_bytes = raw["max_text_bytes"]


class Tools:
    """The request's tools, if the caller supplied them: for each name, the required parameters, and all parameters if
    the schema allows no others.
    """

    __slots__ = ("_properties", "_required", "known")

    def __init__(self, required: Mapping[str, list[str] | None] | None, properties: Mapping[str, list[str]]) -> None:
        self.known = required is not None
        self._required = {name: frozenset(names or ()) for name, names in (required or {}).items()}
        self._properties = {name: frozenset(names) for name, names in properties.items()}

    def has(self, name: str) -> bool:
        return name in self._required

    def begins(self, text: str) -> bool:
        """Return True if the name of any tool begins with this text."""
        return any(name.startswith(text) for name in self._required)

    def needs_arguments(self, name: str) -> bool:
        """Return True if the tool has required parameters, so that a call without arguments is not complete."""
        return bool(self._required.get(name))

    def allows(self, name: str, parameters: AbstractSet[str]) -> bool:
        """Return True if nothing in the tool list contradicts a call of the tool with these parameters."""
        if not self.known:
            return True
        required, properties = self._required.get(name), self._properties.get(name)
        return required is not None and required <= parameters and (properties is None or parameters <= properties)


class Settings:
    """All settings of one assembler."""

    __slots__ = ("close_at_finish", "known_call_ids", "limits", "seed", "switches", "tools")

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.switches = Switches(config["switches"])
        self.limits = Limits(config["limits"])
        self.tools = Tools(config["tools"], config["tool_properties"])
        self.known_call_ids: frozenset[str] = frozenset(config["known_call_ids"])
        self.seed: str | None = config["seed"]
        self.close_at_finish: bool = config["close_calls_at"] == "finish"
