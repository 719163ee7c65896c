"""Helpers to rebuild a response: message types that record the source items, and parsers of JSON text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from streamweld._json import JsonFault, loads_arguments, loads_raw

if TYPE_CHECKING:
    from streamweld.events import ProviderItem, ToolCall, Unknown

__all__ = ["Message", "Replay", "Where", "arguments_of", "extra_metadata", "parsed", "written"]

Where: TypeAlias = dict[tuple[str | int, ...], int]


@dataclass(slots=True)
class Message:
    """One message or item in its wire form. `where`: path inside the message -> index of the response item."""

    raw: dict[str, Any]
    where: Where = field(default_factory=dict[tuple[str | int, ...], int])


@dataclass(slots=True)
class Replay:
    """A response as messages of its own dialect. `beside`: the indexes of items that are not in any message."""

    messages: list[Message] = field(default_factory=list[Message])
    beside: list[int] = field(default_factory=list[int])


def written(call: ToolCall) -> str:
    """Return the arguments as text, exactly as received if the call is invalid."""
    return call.raw_arguments if call.state == "invalid" and call.raw_arguments else call.arguments


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """Return the arguments as an object, `{}` if they are empty, or None if they are not a JSON object."""
    text = written(call)
    if not text.strip():
        return {}
    try:
        value: Any = loads_arguments(text)
    except JsonFault:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def extra_metadata(metadata: Mapping[str, Any] | None, *but: str) -> dict[str, Any]:
    """Return the members in the metadata that came from the stream, except those listed in `but`."""
    return {name: value for name, value in (metadata or {}).items() if name not in but}


def parsed(item: ProviderItem | Unknown) -> dict[str, Any] | None:
    """Return an item that is sent back unchanged as a JSON object, or None if it is not a JSON object."""
    if item.type == "provider_item":
        return dict(item.value)
    try:
        raw: Any = loads_raw(item.raw.decode("utf-8", "replace"))
    except (JsonFault, ValueError):
        return None
    return cast("dict[str, Any]", raw) if isinstance(raw, Mapping) else None
