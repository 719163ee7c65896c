"""Rebuild a Gemini response as one content, part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.events import File, ReasoningDone, RefusalDone, TextDone, ToolCall, ToolResult, Unknown
from streamweld.history.replay.common import Message, Replay, arguments_of, extra_metadata, parsed

if TYPE_CHECKING:
    from streamweld.response import Item, Response

__all__ = ["DIALECT", "replay"]

DIALECT: Final = "gemini"
_CODE: Final = "code_execution"
_INNER: Final = ("toolType", "name")  # members of the object inside a part; all other members belong to the part itself


def replay(response: Response) -> Replay:
    """Return the content, and a separate user content with the results of client functions. Grounding is left out."""
    entry = Replay()
    calls = {item.call_id: item for item in response.items if isinstance(item, ToolCall)}
    for n, item in enumerate(response.items):
        part = _part(item, calls)
        if part is None:
            entry.beside.append(n)
            continue
        role = "user" if "functionResponse" in part else "model"
        if not entry.messages or entry.messages[-1].raw["role"] != role:
            entry.messages.append(Message({"role": role, "parts": []}))
        message = entry.messages[-1]
        message.where["parts", len(message.raw["parts"])] = n
        message.raw["parts"].append(part)
    return entry


def _part(item: Item, calls: dict[str, ToolCall]) -> dict[str, Any] | None:
    match item:
        case TextDone():
            return {"text": item.text, **extra_metadata(item.provider_metadata)}
        case RefusalDone():
            return {"text": item.text}
        case ReasoningDone():
            signed = {"thoughtSignature": item.signature} if item.signature else {}
            return {"text": item.text, "thought": True, **signed, **extra_metadata(item.provider_metadata)}
        case File():
            media_type = {"mimeType": item.media_type} if item.media_type else {}
            beyond = extra_metadata(item.provider_metadata)
            if item.data:
                return {"inlineData": {**media_type, "data": item.data}, **beyond}
            return {"fileData": {**media_type, "fileUri": item.url or ""}, **beyond}
        case ToolCall():
            return _call(item)
        case ToolResult():
            return _result(item, calls.get(item.call_id))
        case Unknown():
            return parsed(item)
        case _:
            return None


def _call(item: ToolCall) -> dict[str, Any]:
    beyond = extra_metadata(item.provider_metadata, *_INNER)
    given = arguments_of(item) or {}
    if not item.provider_executed:
        return {"functionCall": {"id": item.call_id, "name": item.name, "args": given}, **beyond}
    if item.name == _CODE:
        return {"executableCode": given, **beyond}
    return {"toolCall": {"id": item.call_id, "toolType": item.name, "args": given}, **beyond}


def _result(item: ToolResult, call: ToolCall | None) -> dict[str, Any]:
    beyond = extra_metadata(item.provider_metadata, *_INNER)
    metadata = item.provider_metadata or {}
    if call is not None and call.provider_executed and call.name == _CODE:
        return {"codeExecutionResult": item.output, **beyond}
    if "toolType" in metadata or (call is not None and call.provider_executed):
        kind = metadata.get("toolType") or (call.name if call is not None else "")
        answer = {} if item.output is None else {"response": item.output}
        return {"toolResponse": {"id": item.call_id, "toolType": kind, **answer}, **beyond}
    name = metadata.get("name") or (call.name if call is not None else "unknown")
    return {"functionResponse": {"id": item.call_id, "name": name, "response": item.output}, **beyond}
