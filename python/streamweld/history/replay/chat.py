"""Rebuild a Chat Completions response as one message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.events import ReasoningDone, RefusalDone, TextDone, ToolCall
from streamweld.history.chat_reasoning import DETAILS, THINKING_BLOCKS, whole_entries
from streamweld.history.replay.common import Message, Replay, extra_metadata, written

if TYPE_CHECKING:
    from streamweld.response import Response

__all__ = ["DIALECT", "replay"]

DIALECT: Final = "openai-chat"


def replay(response: Response) -> Replay:
    """Return the message. The message cannot contain images, sources, or tool results from the same stream."""
    given = Replay()
    message = Message({"role": "assistant"})
    texts: list[str] = []
    refusals: list[str] = []
    thoughts: list[str] = []
    details: list[Any] = []
    blocks: list[Any] = []
    calls: list[Any] = []
    for n, item in enumerate(response.items):
        match item:
            case TextDone():
                message.where.setdefault(("content",), n)
                texts.append(item.text)
                if item.annotations:
                    given.beside.append(n)
            case RefusalDone():
                message.where.setdefault(("refusal",), n)
                refusals.append(item.text)
            case ReasoningDone():
                message.where.setdefault(("reasoning_content",), n)
                thoughts += [item.text] if item.text else []
                details += (item.provider_metadata or {}).get(DETAILS) or ()
                message.where.setdefault((DETAILS,), n)
                if item.kind in ("thinking", "redacted"):
                    message.where[THINKING_BLOCKS, len(blocks)] = n
                    blocks.append(_block(item))
            case ToolCall() if not item.provider_executed:
                message.where["tool_calls", len(calls)] = n
                calls.append(_call(item))
            case _:
                given.beside.append(n)
    message.raw["content"] = "".join(texts) if texts else None if calls or refusals else ""
    for name, value in (
        ("refusal", "".join(refusals)),
        ("reasoning_content", "\n\n".join(thoughts)),
        (DETAILS, [entry for _, entry in whole_entries(details)]),
        (THINKING_BLOCKS, blocks),
        ("tool_calls", calls),
    ):
        if value:
            message.raw[name] = value
    given.messages.append(message)
    return given


def _block(item: ReasoningDone) -> dict[str, Any]:
    if item.kind == "redacted":
        return {"type": "redacted_thinking", "data": item.encrypted_content or ""}
    return {"type": "thinking", "thinking": item.text, "signature": item.signature or ""}


def _call(item: ToolCall) -> dict[str, Any]:
    beyond = extra_metadata(item.provider_metadata, "type")
    if item.custom:
        return {"id": item.call_id, "type": "custom", "custom": {"name": item.name, "input": item.arguments}, **beyond}
    function = {"name": item.name, "arguments": written(item)}
    return {"id": item.call_id, "type": "function", "function": function, **beyond}
