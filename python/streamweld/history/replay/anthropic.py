"""Rebuild an Anthropic response as one message, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.events import ProviderItem, ReasoningDone, RefusalDone, TextDone, ToolCall, ToolResult, Unknown
from streamweld.history.replay.common import Message, Replay, arguments_of, extra_metadata, parsed

if TYPE_CHECKING:
    from streamweld.response import Item, Response

__all__ = ["DIALECT", "replay"]

DIALECT: Final = "anthropic"
# Result blocks that report an error in `is_error`; all other result blocks report it in their content.
_TELL_ERRORS: Final = frozenset({"mcp_tool_result", "tool_result"})


def replay(response: Response) -> Replay:
    """Return the message. The message cannot contain sources and files."""
    entry = Replay()
    blocks: list[Any] = []
    message = Message({"role": "assistant", "content": blocks})
    for n, item in enumerate(response.items):
        block = _block(item)
        if block is None:
            entry.beside.append(n)
            continue
        message.where["content", len(blocks)] = n
        blocks.append(block)
    entry.messages.append(message)
    return entry


def _block(item: Item) -> dict[str, Any] | None:
    match item:
        case TextDone():
            cited = {"citations": list(item.annotations)} if item.annotations else {}
            return {"type": "text", "text": item.text, **cited, **extra_metadata(item.provider_metadata)}
        case RefusalDone():
            return {"type": "text", "text": item.text}
        case ReasoningDone() if item.kind == "redacted":
            return {"type": "redacted_thinking", "data": item.encrypted_content or ""}
        case ReasoningDone():
            beyond = extra_metadata(item.provider_metadata)
            return {"type": "thinking", "thinking": item.text, "signature": item.signature or "", **beyond}
        case ToolCall():
            beyond = extra_metadata(item.provider_metadata, "type")
            kind = (item.provider_metadata or {}).get("type", "tool_use")
            given = arguments_of(item)
            return {
                "type": kind,
                "id": item.call_id,
                "name": item.name,
                "input": {} if given is None else given,
            } | beyond
        case ToolResult():
            kind = (item.provider_metadata or {}).get("type", "tool_result")
            failed = {"is_error": item.is_error} if kind in _TELL_ERRORS else {}
            beyond = extra_metadata(item.provider_metadata, "type")
            return {"type": kind, "tool_use_id": item.call_id, "content": item.output} | failed | beyond
        case ProviderItem() | Unknown():
            return parsed(item)
        case _:
            return None
