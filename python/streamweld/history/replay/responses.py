"""Rebuild a response of the Responses API as its output items, which are valid input.

Parts that were read from one item become one item again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld._spec import DIALECTS
from streamweld.events import File, ProviderItem, ReasoningDone, RefusalDone, TextDone, ToolCall, ToolResult, Unknown
from streamweld.history.replay.common import Message, Replay, arguments_of, extra_metadata, parsed, written

if TYPE_CHECKING:
    from streamweld.response import Response

__all__ = ["DIALECT", "replay"]

DIALECT: Final = "responses"
_FACTS: Final = DIALECTS["responses"]
_OBJECTS: Final = frozenset(_FACTS["wrapped_calls"])  # calls whose item contains the arguments as members
_CLIENTS: Final = frozenset({"function_call", "custom_tool_call"})
_OWN_RESULTS: Final = {kind: members for kind, members in _FACTS["call_results"].items() if len(members) > 1}
_RESULT_MEMBERS: Final[dict[str, str]] = _FACTS["result_members"]
_OF_TEXT: Final = frozenset({"logprobs"})  # members of a text block; all other members belong to its message
_UNPAIRED: Final = frozenset({"tool_search_call"})  # an item of this type has a call_id that differs from its id


def replay(response: Response, *, items: bool) -> Replay:
    """Return the output items.

    `items`: whether client-executed calls to built-in tools keep their item type, because the results are also items of
    such a type (`apply_patch_call_output`).
    """
    entry = Replay()
    choice = response.choices[0] if response.choices else None
    item_ids = choice.item_ids if choice is not None else {}
    open_id: str | None = None  # id of the item that the next part may continue
    calls: dict[str, Message] = {}
    for n, item in enumerate(response.items):
        match item:
            case TextDone() | RefusalDone():
                item_id = item_ids.get(item.part)
                if item_id is None or item_id != open_id or entry.messages[-1].raw["type"] != "message":
                    entry.messages.append(_message(item_id, item))
                message = entry.messages[-1]
                message.where["content", len(message.raw["content"])] = n
                message.raw["content"].append(_text(item))
                open_id = item_id
            case ReasoningDone():
                if item.item_id is None or item.item_id != open_id or entry.messages[-1].raw["type"] != "reasoning":
                    entry.messages.append(
                        Message({"type": "reasoning", **_named(item.item_id), "summary": []}, {(): n})
                    )
                _think(entry.messages[-1].raw, item)
                open_id = item.item_id
            case ToolCall():
                open_id = None
                raw = _call(item, items=items)
                if raw is None:
                    entry.beside.append(n)
                else:
                    calls[item.call_id] = calls[item.item_id or item.call_id] = Message(raw, {(): n})
                    entry.messages.append(calls[item.call_id])
            case ToolResult() | File():
                if not _answered(item, calls):
                    raw = _output(item) if isinstance(item, ToolResult) else None
                    if raw is None:
                        entry.beside.append(n)
                    else:
                        open_id = None
                        entry.messages.append(Message(raw, {(): n}))
            case ProviderItem() | Unknown():
                open_id = None
                raw = parsed(item)
                if raw is None:
                    entry.beside.append(n)
                else:
                    entry.messages.append(Message(raw, {(): n}))
            case _:
                entry.beside.append(n)
    return entry


def _named(item_id: str | None) -> dict[str, Any]:
    return {"id": item_id} if item_id else {}


def _message(item_id: str | None, item: TextDone | RefusalDone) -> Message:
    head: dict[str, Any] = {"type": "message", **_named(item_id), "role": "assistant"}
    if item_id:
        head["status"] = "completed"
    beyond = {name: value for name, value in extra_metadata(item.provider_metadata).items() if name not in _OF_TEXT}
    return Message({**head, **beyond, "content": []})


def _text(item: TextDone | RefusalDone) -> dict[str, Any]:
    if isinstance(item, RefusalDone):
        return {"type": "refusal", "refusal": item.text}
    beyond = {name: value for name, value in extra_metadata(item.provider_metadata).items() if name in _OF_TEXT}
    return {"type": "output_text", "text": item.text, "annotations": list(item.annotations), **beyond}


def _think(raw: dict[str, Any], item: ReasoningDone) -> None:
    """Add a part to a reasoning item, as a summary or as text in its content."""
    if item.kind == "raw":
        if item.text:
            raw.setdefault("content", []).append({"type": "reasoning_text", "text": item.text})
    elif item.text:
        raw["summary"].append({"type": "summary_text", "text": item.text})
    if item.encrypted_content:
        raw["encrypted_content"] = item.encrypted_content
    raw.update(extra_metadata(item.provider_metadata))


def _call(item: ToolCall, *, items: bool) -> dict[str, Any] | None:
    metadata = item.provider_metadata or {}
    kind: str = metadata.get("type", "custom_tool_call" if item.custom else "function_call")
    beyond = extra_metadata(metadata, "type")
    head = {"type": kind, **_named(item.item_id)}
    if kind in _CLIENTS:
        member = "input" if kind == "custom_tool_call" else "arguments"
        return {**head, "call_id": item.call_id, "name": item.name, member: written(item), **beyond}
    if not (item.provider_executed or items):
        return None  # the result of this call will be an ordinary function result
    given = arguments_of(item)
    if kind in _OBJECTS:
        return {**head, "call_id": item.call_id, **(given or {}), **beyond}
    if kind == "program":
        return {**head, "call_id": item.call_id, "code": written(item), **beyond}
    if kind == "mcp_call":
        return {**head, "id": item.item_id or item.call_id, "name": item.name, "arguments": written(item), **beyond}
    if kind == "code_interpreter_call":
        return {**head, "id": item.item_id or item.call_id, "code": written(item), "outputs": None, **beyond}
    own: dict[str, Any] = {"id": item.item_id or item.call_id}
    if kind == "mcp_list_tools":
        return {**head, **own, "tools": [], **beyond}
    if kind in _UNPAIRED:
        paired = {"call_id": item.call_id} if item.call_id != own["id"] else {}
        return {**head, **own, **paired, "arguments": {} if given is None else given, **beyond}
    return {**head, **own, **beyond}


def _answered(item: ToolResult | File, calls: dict[str, Message]) -> bool:
    """If the call's item has a member for its result, store the result there. Return whether the result was stored.

    Such results are the output of an MCP call, the tool list of an MCP server, and a generated image.
    """
    metadata = item.provider_metadata or {}
    if isinstance(item, ToolResult):
        call = calls.get(item.call_id)
        members = None if "type" in metadata or call is None else _OWN_RESULTS.get(call.raw["type"])
        if call is None or members is None:
            return False
        output, error = members
        call.raw[error if item.is_error else output] = item.output
        return True
    call = calls.get(metadata.get("item_id", ""))
    if call is None:
        return False
    call.raw["result"] = item.data or item.url
    return True


def _output(item: ToolResult) -> dict[str, Any] | None:
    kind = (item.provider_metadata or {}).get("type")
    if kind is None:
        return None
    return {
        "type": kind,
        "call_id": item.call_id,
        _RESULT_MEMBERS.get(kind, "output"): item.output,
        **extra_metadata(item.provider_metadata, "type"),
    }
