"""Writes Gemini contents. A response names its function; without an id it is paired by the order. It knows no other
dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld.history.matching import OpenCalls
from streamweld.history.model import (
    MISSING,
    Call,
    Media,
    Opaque,
    Reasoning,
    Result,
    Text,
    arguments_object,
    value_object,
)
from streamweld.history.writing import Pen, said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld.history.model import Part, Turn
    from streamweld.history.work import Work

__all__ = ["write"]


def write(turns: list[Turn], work: Work) -> dict[str, Any]:
    """The request members `{"systemInstruction": …, "contents": […]}`; without an instruction where there is none."""
    pen = Pen(work, turns)
    payload: dict[str, Any] = {}
    contents: list[Any] = []
    names = OpenCalls[str]()
    at = 0
    while at < len(turns):
        turn = turns[at]
        if turn.top:
            at += 1
            whole = pen.whole(turn.parts)
            told = {"parts": [_part(part, pen, names) for part in turn.parts]} if whole is None else whole
            payload["systemInstruction"] = told | pen.members(turn, turn.parts) if whole is None else told
            continue
        for part in turn.parts:
            if isinstance(part, Call):
                names.add(at, part.call_id, part.name, part.name)
        parts, at = pen.exchange(turns, at) if turn.role == "tool" else (turn.parts, at + 1)
        content = pen.whole(parts, turn.origin)
        if content is not None:
            for part in parts:
                if isinstance(part, Result):
                    names.take(part.call_id, part.name)
        else:
            written = [_part(part, pen, names) for part in parts]
            role = "model" if turn.role == "assistant" else "user"
            content = {"role": role, "parts": [*written, *_attached(parts, pen)]} | pen.members(turn, parts)
        contents.append(content)
    return payload | {"contents": contents}


def _attached(parts: Sequence[Part], pen: Pen) -> list[Any]:
    """What results hold beside their text, behind them in the same content."""
    results = [part for part in parts if isinstance(part, Result)]
    if not results:
        return []
    media = [inner for part in results if not pen.block(part) for inner in part.parts]
    return [_media(inner) for inner in media if isinstance(inner, Media)]


def _part(part: Part, pen: Pen, names: OpenCalls[str]) -> Any:
    named = names.take(part.call_id, part.name) if isinstance(part, Result) else None
    own = pen.block(part)
    if own is not None:
        return own
    beyond = pen.beyond(part)
    if isinstance(part, Text):
        return {"text": part.text, **beyond}
    if isinstance(part, Reasoning):
        signed = {"thoughtSignature": part.signature} if part.signature else {}
        return {"text": part.text, "thought": True, **signed, **beyond}
    if isinstance(part, Call):
        head = {"id": part.call_id} if part.call_id else {}
        function = {**head, "name": part.name, "args": arguments_object(part) or {}}
        signed = {"thoughtSignature": part.signature} if part.signature else {}
        return {"functionCall": function, **signed, **beyond}
    if isinstance(part, Result):
        head = {"id": part.call_id} if part.call_id else {}
        response = {**head, "name": named or part.name or "unknown", "response": _response(part)}
        return {"functionResponse": response, **beyond}
    if isinstance(part, Media):
        return _media(part) | beyond
    return part.raw


def _response(result: Result) -> Any:
    """An object, as it must be: "output" holds what is none, "error" what went wrong."""
    whole = value_object(result)
    if whole is not None and not result.is_error:
        return whole
    value: Any = result.value
    if value is MISSING:
        told = said(result)
        value = told if isinstance(told, str) else "".join([part.text for part in told if isinstance(part, Text)])
    return {"error" if result.is_error else "output": value}


def _media(part: Media | Opaque) -> dict[str, Any]:
    if isinstance(part, Opaque):
        raw: dict[str, Any] = part.raw
        return raw
    defaults = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "file": "application/pdf"}
    media_type = part.media_type or defaults[part.kind]
    if part.url:
        return {"fileData": {"fileUri": part.url, "mimeType": media_type}}
    return {"inlineData": {"mimeType": media_type, "data": part.data or ""}}
