"""Writes Anthropic messages: two sides, results first in what the user says. It knows no other dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld.history.model import Call, Media, Opaque, Reasoning, Result, Text, arguments_object
from streamweld.history.write.common import Pen, said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld.history.context import Work
    from streamweld.history.model import Part, Turn

__all__ = ["write"]


def write(turns: list[Turn], work: Work) -> dict[str, Any]:
    """The request members `{"system": …, "messages": […]}`; without system where there is none."""
    pen = Pen(work, turns)
    payload: dict[str, Any] = {}
    messages: list[Any] = []
    at = 0
    while at < len(turns):
        turn = turns[at]
        if turn.top:
            at += 1
            payload["system"] = _content(turn.parts, pen, whole=pen.whole(turn.parts))
            pen.members(turn, turn.parts)
            continue
        parts, at = pen.exchange(turns, at) if turn.role == "tool" else (turn.parts, at + 1)
        message = None if pen.foreign else pen.whole(parts, turn.origin)
        if message is None:
            message = {"role": "user" if turn.role == "tool" else turn.role, "content": _content(parts, pen)}
            if members := turn.marks if pen.foreign else pen.members(turn, parts):
                message |= members
        messages.append(message)
    return payload | {"messages": messages}


def _content(parts: Sequence[Part], pen: Pen, whole: Any = None) -> Any:
    if whole is not None:
        return whole
    only = parts[0] if len(parts) == 1 else None
    if isinstance(only, Text) and not (only.extra and pen.beyond(only)) and (only.raw is None or not pen.own(only)):
        return only.text
    if not parts:
        return ""
    return [_block(part, pen) for part in parts]


def _block(part: Part, pen: Pen) -> Any:
    if not pen.foreign and (own := pen.block(part)) is not None:
        return own
    beyond = pen.beyond(part) if part.extra else None
    block = _made(part, pen)
    return {**block, **beyond} if beyond else block


def _made(part: Part, pen: Pen) -> Any:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Call):
        if part.signature and not pen.own(part):
            pen.work.lose("signature", part.path, "the target has no place for the signature of a call", part.signature)
        value = arguments_object(part)
        return {"type": "tool_use", "id": part.call_id, "name": part.name, "input": {} if value is None else value}
    if isinstance(part, Result):
        return _result(part, pen)
    if isinstance(part, Reasoning):
        if part.kind == "redacted" or (part.encrypted and not part.text):
            return {"type": "redacted_thinking", "data": part.encrypted or ""}
        return {"type": "thinking", "thinking": part.text, "signature": part.signature or ""}
    if isinstance(part, Media):
        return _media(part)
    return part.raw


def _result(part: Result, pen: Pen) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": part.call_id}
    told = said(part)
    if not isinstance(told, str):
        block["content"] = [inner.raw if isinstance(inner, Opaque) else _block(inner, pen) for inner in told]
    elif told:
        block["content"] = told
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
    else:
        default = "image/png" if kind == "image" else "application/pdf"
        source = {"type": "base64", "media_type": part.media_type or default, "data": part.data or ""}
    block: dict[str, Any] = {"type": kind, "source": source}
    if part.filename and kind == "document":
        block["title"] = part.filename
    return block
