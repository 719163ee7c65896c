"""Write Anthropic messages.

In the output, user and assistant messages alternate, and results come first in a user message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld.history.citations import for_anthropic
from streamweld.history.media_types import text_of
from streamweld.history.model import Call, Media, Opaque, Reasoning, Result, Text
from streamweld.history.write.common import Writer, result_content

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld.history.context import Context
    from streamweld.history.model import Part, Turn

__all__ = ["write"]


def write(turns: list[Turn], context: Context) -> dict[str, Any]:
    """Return the request members `{"system": …, "messages": […]}`; without `system` if there is none."""
    writer = Writer(context, turns)
    payload: dict[str, Any] = {}
    messages: list[Any] = []
    at = 0
    while at < len(turns):
        turn = turns[at]
        if turn.top:
            at += 1
            payload["system"] = _content(turn.parts, writer, whole=writer.reusable_message(turn.parts))
            writer.message_members(turn, turn.parts)
            continue
        parts, at = writer.results_and_user(turns, at) if turn.role == "tool" else (turn.parts, at + 1)
        message = None if writer.rewrites_all else writer.reusable_message(parts, turn.origin)
        if message is None:
            message = {"role": "user" if turn.role == "tool" else turn.role, "content": _content(parts, writer)}
            if members := turn.marks if writer.rewrites_all else writer.message_members(turn, parts):
                message |= members
        messages.append(message)
    return payload | {"messages": messages}


def _content(parts: Sequence[Part], writer: Writer, whole: Any = None) -> Any:
    if whole is not None:
        return whole
    if not writer.rewrites_all and any(part.extra for part in parts):
        parts = [for_anthropic(part) for part in parts]
    only = parts[0] if len(parts) == 1 else None
    if (
        isinstance(only, Text)
        and not (only.extra and writer.extra_members(only))
        and (only.raw is None or not writer.own(only))
    ):
        return only.text
    if not parts:
        return ""
    if writer.rewrites_all:
        return [_made(part, writer) for part in parts]
    return [_block(part, writer) for part in parts]


def _block(part: Part, writer: Writer) -> Any:
    if (own := writer.reusable_block(part)) is not None:
        return own
    beyond = writer.extra_members(part) if part.extra else None
    block = _made(part, writer)
    return {**block, **beyond} if beyond else block


def _made(part: Part, writer: Writer) -> Any:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Call):
        if part.signature and not writer.own(part):
            writer.context.lose(
                "signature", part.path, "the target has no member for the signature of a call", part.signature
            )
        value = writer.arguments_object(part)
        return {"type": "tool_use", "id": part.call_id, "name": part.name, "input": {} if value is None else value}
    if isinstance(part, Result):
        return _result(part, writer)
    if isinstance(part, Reasoning):
        if part.kind == "redacted" or (part.encrypted and not part.text):
            writer.lose_proof(part, "encrypted")
            return {"type": "redacted_thinking", "data": part.encrypted or ""}
        writer.lose_proof(part, "signature")
        return {"type": "thinking", "thinking": part.text, "signature": part.signature or ""}
    if isinstance(part, Media):
        return _media(part)
    return part.raw


def _result(part: Result, writer: Writer) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": part.call_id}
    given = result_content(part)
    if not isinstance(given, str):
        inner_parts = [for_anthropic(inner) if inner.extra else inner for inner in given]
        block["content"] = [inner.raw if isinstance(inner, Opaque) else _block(inner, writer) for inner in inner_parts]
    elif given:
        block["content"] = given
    if part.is_error:
        block["is_error"] = True
    return block


def _media(part: Media) -> dict[str, Any]:
    kind = "image" if part.kind == "image" else "document"
    source: dict[str, Any]
    if part.file_id:
        source = {"type": "file", "file_id": part.file_id}
    elif part.url:
        source = {"type": "url", "url": part.url}
    elif kind == "document" and (text := text_of(part)) is not None:
        source = {"type": "text", "media_type": "text/plain", "data": text}
    else:
        default = "image/png" if kind == "image" else "application/pdf"
        source = {"type": "base64", "media_type": part.media_type or default, "data": part.data or ""}
    block: dict[str, Any] = {"type": kind, "source": source}
    if part.filename and kind == "document":
        block["title"] = part.filename
    return block
