"""Convert a response that was received as AI SDK stream parts to a UIMessage or to ModelMessages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from streamweld.events import File, ReasoningDone, RefusalDone, Source, TextDone, ToolCall, ToolResult, Unknown
from streamweld.history.provider_metadata import read_metadata
from streamweld.history.replay.common import Message, Replay, arguments_of, parsed, written

if TYPE_CHECKING:
    from streamweld.response import Item, Response

__all__ = ["MODEL", "UI", "replay_model", "replay_ui"]

UI: Final = "ai-sdk-ui"
MODEL: Final = "ai-sdk-model"


def _of_providers(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the metadata that providers set on a part, keyed by provider, without the stream's own members."""
    return {name: value for name, value in (metadata or {}).items() if isinstance(value, Mapping)}


def _metadata(member: str, *metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    entry = {name: value for one in metadata for name, value in _of_providers(one).items()}
    return {member: entry} if entry else {}


def _reasoning_metadata(member: str, item: ReasoningDone) -> dict[str, Any]:
    """Return the provider metadata of reasoning.

    A signature or encrypted content that the stream sent only at the start of the part is included.
    """
    entry = _of_providers(item.provider_metadata)
    known = read_metadata(entry)
    issuer = known.issuer or next(iter(entry), None)
    if issuer is not None:
        own = dict(entry[issuer])
        if item.encrypted_content and known.encrypted is None:
            own["reasoningEncryptedContent"] = item.encrypted_content
        if item.signature and known.signature is None:
            own["signature"] = item.signature
        entry[issuer] = own
    return {member: entry} if entry else {}


def _input(call: ToolCall) -> Any:
    given = arguments_of(call)
    return written(call) if given is None else given


def replay_ui(response: Response) -> Replay:
    """Return a UIMessage, with a `step-start` part before any content that follows client tool results."""
    entry = Replay()
    parts: list[Any] = []
    message = Message({"id": response.id or "msg_1", "role": "assistant", "parts": parts})
    results = {item.call_id: item for item in response.items if isinstance(item, ToolResult)}
    ran = False  # a tool result came after the last part that was written
    for n, item in enumerate(response.items):
        if isinstance(item, ToolResult):
            ran = True
            continue
        part = _ui_part(item, results)
        if part is None:
            entry.beside.append(n)
            continue
        if ran and not (isinstance(item, ToolCall) and item.provider_executed):
            parts.append({"type": "step-start"})
        ran = False
        message.where["parts", len(parts)] = n
        parts.append(part)
    known = {item.call_id for item in response.items if isinstance(item, ToolCall)}
    entry.beside += [
        n for n, item in enumerate(response.items) if isinstance(item, ToolResult) and item.call_id not in known
    ]
    entry.messages.append(message)
    return entry


def _ui_part(item: Item, results: Mapping[str, ToolResult]) -> dict[str, Any] | None:
    match item:
        case TextDone():
            return {"type": "text", "text": item.text, **_metadata("providerMetadata", item.provider_metadata)}
        case RefusalDone():
            return {"type": "text", "text": item.text}
        case ReasoningDone():
            return {"type": "reasoning", "text": item.text, **_reasoning_metadata("providerMetadata", item)}
        case ToolCall():
            return _ui_tool(item, results.get(item.call_id))
        case File():
            url = item.url or f"data:{item.media_type or ''};base64,{item.data or ''}"
            beyond = _metadata("providerMetadata", item.provider_metadata)
            return {"type": "file", "mediaType": item.media_type or "application/octet-stream", "url": url, **beyond}
        case Source():
            return _ui_source(item)
        case Unknown():
            raw = parsed(item)
            return raw if raw is not None and str(raw.get("type", "")).startswith("data-") else None
        case _:
            return None


def _ui_source(item: Source) -> dict[str, Any] | None:
    if not item.url:
        return None
    metadata = item.provider_metadata or {}
    source_id = metadata.get("sourceId") or item.url
    titled = {"title": item.title} if item.title else {}
    return {
        "type": "source-url",
        "sourceId": source_id,
        "url": item.url,
        **titled,
        **_metadata("providerMetadata", metadata),
    }


def _ui_tool(call: ToolCall, result: ToolResult | None) -> dict[str, Any]:
    metadata = call.provider_metadata or {}
    kind = {"type": "dynamic-tool", "toolName": call.name} if metadata.get("dynamic") else {"type": f"tool-{call.name}"}
    ran = {"providerExecuted": True} if call.provider_executed else {}
    beyond = _metadata("callProviderMetadata", metadata)
    head = {**kind, "toolCallId": call.call_id, **ran, "input": _input(call), **beyond}
    if result is None and isinstance(metadata.get("errorText"), str):
        return {**head, "state": "output-error", "errorText": metadata["errorText"]}
    if result is None:
        return {**head, "state": "input-available"}
    if result.is_error:
        text = result.output if isinstance(result.output, str) else str(result.output)
        return {**head, "state": "output-error", "errorText": text}
    return {**head, "state": "output-available", "output": result.output}


def replay_model(response: Response) -> Replay:
    """Return the assistant's ModelMessages, and tool messages with the results of tools that the client ran."""
    entry = Replay()
    calls = {item.call_id: item for item in response.items if isinstance(item, ToolCall)}
    for n, item in enumerate(response.items):
        part = _model_part(item, calls)
        if part is None:
            entry.beside.append(n)
            continue
        call = calls.get(item.call_id) if isinstance(item, ToolResult) else None
        by_client = isinstance(item, ToolResult) and not (call is not None and call.provider_executed)
        role = "tool" if by_client else "assistant"
        if not entry.messages or entry.messages[-1].raw["role"] != role:
            entry.messages.append(Message({"role": role, "content": []}))
        message = entry.messages[-1]
        message.where["content", len(message.raw["content"])] = n
        message.raw["content"].append(part)
    return entry


def _model_part(item: Item, calls: Mapping[str, ToolCall]) -> dict[str, Any] | None:
    match item:
        case TextDone():
            return {"type": "text", "text": item.text, **_metadata("providerOptions", item.provider_metadata)}
        case RefusalDone():
            return {"type": "text", "text": item.text}
        case ReasoningDone():
            return {"type": "reasoning", "text": item.text, **_reasoning_metadata("providerOptions", item)}
        case ToolCall():
            ran = {"providerExecuted": True} if item.provider_executed else {}
            beyond = _metadata("providerOptions", item.provider_metadata)
            head = {"type": "tool-call", "toolCallId": item.call_id, "toolName": item.name}
            return {**head, "input": _input(item), **ran, **beyond}
        case ToolResult():
            call = calls.get(item.call_id)
            name = (item.provider_metadata or {}).get("toolName") or (call.name if call is not None else "unknown")
            way = "text" if isinstance(item.output, str) else "json"
            output = {"type": f"error-{way}" if item.is_error else way, "value": item.output}
            return {"type": "tool-result", "toolCallId": item.call_id, "toolName": name, "output": output}
        case File():
            data = item.data or item.url or ""
            return {"type": "file", "data": data, "mediaType": item.media_type or "application/octet-stream"}
        case _:
            return None
