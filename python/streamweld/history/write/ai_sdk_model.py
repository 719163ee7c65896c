"""Writes AI SDK ModelMessages. It knows no other dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from streamweld.history.model import MISSING, Call, Media, Opaque, Reasoning, Result, Text, arguments_object
from streamweld.history.open_calls import OpenCalls
from streamweld.history.provider_metadata import custody, metadata
from streamweld.history.write.common import Pen, said

if TYPE_CHECKING:
    from streamweld.history.context import Work
    from streamweld.history.model import Part, Turn

__all__ = ["write"]


def write(turns: list[Turn], work: Work) -> dict[str, Any]:
    """The request members `{"messages": […]}`."""
    pen = Pen(work, turns)
    names = OpenCalls[str]()
    messages: list[Any] = []
    for n, turn in enumerate(turns):
        for part in turn.parts:
            if isinstance(part, Call):
                names.add(n, part.call_id, part.name, part.name)
        whole = pen.whole(turn.parts, turn.origin)
        if whole is not None:
            for part in turn.parts:
                if isinstance(part, Result):
                    names.take(part.call_id, part.name)
            messages.append(whole)
            continue
        message = {"role": turn.role, "content": _content(turn, pen, names)}
        if members := pen.members(turn, turn.parts):
            message |= members
        messages.append(message)
    return {"messages": messages}


def _content(turn: Turn, pen: Pen, names: OpenCalls[str]) -> Any:
    if turn.role == "system":
        for part in turn.parts:
            pen.beyond(part)
        return "\n\n".join([part.text for part in turn.parts if isinstance(part, Text)])
    only = turn.parts[0] if len(turn.parts) == 1 else None
    if isinstance(only, Text) and not pen.beyond(only) and (only.raw is None or not pen.own(only)):
        return only.text
    out: list[Any] = []
    for part in turn.parts:
        named = names.take(part.call_id, part.name) if isinstance(part, Result) else None
        own = pen.block(part)
        if own is not None:
            out.append(own)
        elif isinstance(part, Reasoning) and not pen.own(part):
            out += [_reasoning(part, text) for text in part.segments or ("",)]
            pen.beyond(part)
        else:
            out.append(_block(part, named, pen))
    return out


def _options(part: Reasoning | Call, encrypted: str | None, issuer: str | None) -> dict[str, Any]:
    """Custody as provider options: those that were read, if they still say it."""
    raw: Any = part.raw
    if part.origin is not None and part.origin.dialect == "ai-sdk-model" and isinstance(raw, Mapping):
        told = cast("Mapping[str, Any]", raw).get("providerOptions")
        was = custody(told)
        if (was.item_id, was.signature, was.encrypted) == (part.item_id, part.signature, encrypted):
            return {"providerOptions": told} if told is not None else {}
    made = metadata(issuer, part.item_id, part.signature, encrypted)
    return {"providerOptions": made} if made else {}


def _reasoning(part: Reasoning, text: str) -> dict[str, Any]:
    return {"type": "reasoning", "text": text, **_options(part, part.encrypted, part.issuer)}


def _block(part: Part, named: str | None, pen: Pen) -> Any:
    beyond = pen.beyond(part)
    if isinstance(part, Text):
        return {"type": "text", "text": part.text, **beyond}
    if isinstance(part, Reasoning):
        return _reasoning(part, part.text) | beyond
    if isinstance(part, Call):
        value: Any = arguments_object(part)
        value = part.arguments if value is None else value
        issuer = "google" if part.signature else "openai" if part.item_id else None
        head = {"type": "tool-call", "toolCallId": part.call_id, "toolName": part.name, "input": value}
        return {**head, **_options(part, None, issuer), **beyond}
    if isinstance(part, Result):
        head = {"type": "tool-result", "toolCallId": part.call_id, "toolName": named or part.name or "unknown"}
        return {**head, "output": _output(part, pen), **beyond}
    if isinstance(part, Media):
        return _file(part) | beyond
    return part.raw


def _output(part: Result, pen: Pen) -> dict[str, Any]:
    failed = "error-" if part.is_error else ""
    if part.value is not MISSING and not isinstance(part.value, str):
        return {"type": failed + "json", "value": part.value}
    told = said(part)
    if isinstance(told, str):
        return {"type": failed + "text", "value": told}
    if part.is_error:
        pen.failed(part)
    return {"type": "content", "value": [_inner(inner, pen) for inner in told]}


def _inner(part: Text | Media | Opaque, pen: Pen) -> Any:
    own = pen.block(part)
    if own is not None or isinstance(part, Opaque):
        return part.raw
    if isinstance(part, Text):
        return {"type": "text", "text": part.text, **pen.beyond(part)}
    pen.beyond(part)
    if part.url:
        return {"type": "image-url" if part.kind == "image" else "file-url", "url": part.url}
    return {
        "type": "image-data" if part.kind == "image" else "file-data",
        "data": part.data or "",
        "mediaType": _type(part),
    }


def _type(part: Media) -> str:
    return part.media_type or {"image": "image/*", "audio": "audio/wav", "video": "video/mp4"}.get(
        part.kind, "application/pdf"
    )


def _file(part: Media) -> dict[str, Any]:
    data = part.url or part.data or part.file_id or ""
    name = {"filename": part.filename} if part.filename else {}
    return {"type": "file", "data": data, "mediaType": _type(part), **name}
