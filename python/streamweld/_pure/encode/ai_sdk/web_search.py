"""Writes the result of a web search that OpenAI ran, in the form of @ai-sdk/openai.

A Responses item contains both the call and its result. Without a result, AI SDK clients would treat the call as
unfinished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld._pure.json.kinds import is_object
from streamweld.events import ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld.events import ToolCall

__all__ = ["search_result"]

_ITEM: Final = "web_search_call"
# Actions, each with its name in the AI SDK and its members.
_ACTIONS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "search": ("search", ("query", "queries")),
    "open_page": ("openPage", ("url",)),
    "find_in_page": ("findInPage", ("url", "pattern")),
}


def search_result(source: str | None, call: ToolCall) -> ToolResult | None:
    """Return the result that a call contains, or None if the call is not a web search of OpenAI with a status."""
    metadata = call.provider_metadata
    if source != "responses" or metadata is None or metadata.get("type") != _ITEM:
        return None
    status = metadata.get("status")
    if not isinstance(status, str):
        return None
    is_error = status != "completed"
    output = {"status": status} if is_error else _output(metadata.get("action"))
    return ToolResult(call.part, call.call_id, output, is_error, choice=call.choice)


def _output(action: object) -> dict[str, Any]:
    kind: object = action.get("type") if is_object(action) else None
    if not is_object(action) or not isinstance(kind, str) or kind not in _ACTIONS:
        return {}
    name, fields = _ACTIONS[kind]
    output: dict[str, Any] = {"action": {"type": name, **_present(action, fields)}}
    return output | _present(action, ("sources",)) if kind == "search" else output


def _present(action: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: action[name] for name in names if action.get(name) is not None}
