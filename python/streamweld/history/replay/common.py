"""Helpers to rebuild a response: its messages, the item that each came from, and JSON values from its texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from streamweld._json import JsonFault, loads_arguments, loads_raw

if TYPE_CHECKING:
    from streamweld.events import ToolCall, Unknown

__all__ = ["Message", "Replay", "Where", "arguments_of", "extra_metadata", "parsed", "written"]

Where: TypeAlias = dict[tuple[str | int, ...], int]


@dataclass(slots=True)
class Message:
    """One message or item as the wire had it. `where`: place inside of it -> number of the item of the answer."""

    raw: dict[str, Any]
    where: Where = field(default_factory=dict[tuple[str | int, ...], int])


@dataclass(slots=True)
class Replay:
    """An answer in its own words. `beside`: numbers of the items that no message of the dialect has a place for."""

    messages: list[Message] = field(default_factory=list[Message])
    beside: list[int] = field(default_factory=list[int])


def written(call: ToolCall) -> str:
    """The arguments as they were written: those of a broken call too."""
    return call.raw_arguments if call.state == "invalid" and call.raw_arguments else call.arguments


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """The arguments as an object, `{}` where there are none; None where they are no object."""
    text = written(call)
    if not text.strip():
        return {}
    try:
        value: Any = loads_arguments(text)
    except JsonFault:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def extra_metadata(metadata: Mapping[str, Any] | None, *but: str) -> dict[str, Any]:
    """The members that the wire had beyond the event's own fields."""
    return {name: value for name, value in (metadata or {}).items() if name not in but}


def parsed(item: Unknown) -> dict[str, Any] | None:
    """An item that no event models, as it stood on the wire; None where it is no JSON object."""
    try:
        raw: Any = loads_raw(item.raw.decode("utf-8", "replace"))
    except (JsonFault, ValueError):
        return None
    return cast("dict[str, Any]", raw) if isinstance(raw, Mapping) else None
