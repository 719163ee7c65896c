"""Write Bedrock Converse messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from streamweld.history.citations import for_bedrock
from streamweld.history.media_types import short_form
from streamweld.history.model import (
    CACHE_POINT,
    Call,
    Media,
    Opaque,
    Reasoning,
    Result,
    Text,
    decoded,
    members_of,
    value_object,
)
from streamweld.history.write.common import Writer, result_content

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld.history.context import Context
    from streamweld.history.model import Part, Turn

__all__ = ["write"]


def write(turns: list[Turn], context: Context) -> dict[str, Any]:
    """Return the request members `{"system": […], "messages": […]}`; without `system` if there is none."""
    writer = Writer(context, turns)
    payload: dict[str, Any] = {}
    messages: list[Any] = []
    at = 0
    while at < len(turns):
        turn = turns[at]
        if turn.top:
            at += 1
            whole = writer.reusable_message(turn.parts)
            payload["system"] = _blocks(turn.parts, writer) if whole is None else whole
            writer.message_members(turn, turn.parts)
            continue
        parts, at = writer.results_and_user(turns, at) if turn.role == "tool" else (turn.parts, at + 1)
        message = None if writer.rewrites_all else writer.reusable_message(parts, turn.origin)
        if message is None:
            role = "user" if turn.role == "tool" else turn.role
            message = {"role": role, "content": _blocks(parts, writer)}
            if members := turn.marks if writer.rewrites_all else writer.message_members(turn, parts):
                message |= members
        messages.append(message)
    return payload | {"messages": messages}


def _blocks(parts: Sequence[Part], writer: Writer) -> list[Any]:
    """Return the blocks for the parts.

    If a part has a cache point, the cache point follows the part's block. The cache point of a result follows the last
    of the adjacent results, so that these results stay together.
    """
    if writer.rewrites_all:
        return [_made(part, writer) for part in parts]
    blocks: list[Any] = []
    point: Any = None  # the cache point of a result
    for part in parts:
        if point is not None and not isinstance(part, Result):
            blocks.append({"cachePoint": point})
            point = None
        blocks.append(_block(part, writer))
        if part.extra and CACHE_POINT in part.extra and not writer.own(part):
            if isinstance(part, Result):
                point = part.extra[CACHE_POINT]
            else:
                blocks.append({"cachePoint": part.extra[CACHE_POINT]})
    return [*blocks, {"cachePoint": point}] if point is not None else blocks


def _block(part: Part, writer: Writer) -> Any:
    if not writer.rewrites_all and (own := writer.reusable_block(part)) is not None:
        return own
    part, shared = for_bedrock(part) if part.extra else (part, {})
    beyond = writer.extra_members(part) if part.extra else None
    block = _made(part, writer)
    if shared and isinstance(part, Text):
        return {"citationsContent": {"content": [block], **shared}}
    if shared:
        block = {"document": {**block["document"], **shared}}
    inside = beyond and writer.own(part) and not isinstance(part, Opaque)  # a cache point is a separate block
    return {**block, **beyond} if beyond and inside else block


def _made(part: Part, writer: Writer) -> Any:
    if isinstance(part, Text):
        return {"text": part.text}
    if isinstance(part, Call):
        if part.signature and not writer.own(part):
            writer.context.lose(
                "signature", part.path, "the target has no member for the signature of a call", part.signature
            )
        return {"toolUse": {"toolUseId": part.call_id, "name": part.name, "input": writer.arguments_object(part) or {}}}
    if isinstance(part, Result):
        return {"toolResult": _result(part, writer)}
    if isinstance(part, Reasoning):
        if part.kind == "redacted":
            writer.lose_proof(part, "encrypted")
            return {"reasoningContent": {"redactedContent": _data(part.encrypted or "", part, writer)}}
        writer.lose_proof(part, "signature")
        signed = {"signature": part.signature} if part.signature else {}
        return {"reasoningContent": {"reasoningText": {"text": part.text, **signed}}}
    if isinstance(part, Media):
        return _media(part, writer)
    return part.raw


def _result(part: Result, writer: Writer) -> dict[str, Any]:
    block: dict[str, Any] = {"toolUseId": part.call_id}
    value = value_object(part)
    if value is not None:
        block["content"] = [{"json": value}]
    else:
        given = result_content(part)
        if isinstance(given, str):
            block["content"] = [{"text": given}] if given.strip() else []
        else:
            block["content"] = [inner.raw if isinstance(inner, Opaque) else _block(inner, writer) for inner in given]
    if part.is_error:
        block["status"] = "error"
    return block


def _data(text: str, part: Part, writer: Writer) -> bytes | str:
    """Return the data as bytes, which boto3 expects. Base64 text that was read from this dialect is kept as text."""
    if writer.own(part) and not _holds_bytes(part.raw):
        return text
    return decoded(text) or b""


def _holds_bytes(raw: Any) -> bool:
    held = members_of(next(iter(members_of(raw).values()), None))
    return isinstance(held.get("redactedContent", members_of(held.get("source")).get("bytes")), bytes | bytearray)


def _media(part: Media, writer: Writer) -> dict[str, Any]:
    form = short_form(part.media_type or "", part.kind) or {"image": "png", "video": "mp4"}.get(part.kind, "pdf")
    given: dict[str, Any] = {"format": form, "source": {"bytes": _data(part.data or "", part, writer)}}
    if part.kind in ("image", "video"):
        return {part.kind: given}
    fact = writer.context.facts("document_name")
    name = part.filename or "document"
    if fact.get("chars"):
        name = re.sub(f"[^{fact['chars']}]", "-", name)
    name = re.sub(r"\s+", " ", name).strip()[: fact.get("max")] or "document"
    if name != part.filename and (part.filename or writer.own(part)):
        writer.context.edit("document_name", part.path, f"changed the document name {part.filename!r} to {name!r}")
    text = members_of(members_of(members_of(part.raw).get("document")).get("source")).get("text")
    source = {"text": text} if writer.own(part) and isinstance(text, str) else given["source"]
    return {"document": {"format": given["format"], "name": name, "source": source}}
