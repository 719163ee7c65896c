"""Write Gemini contents.

Every function response contains the name of its function. Gemini pairs function responses without an id with the calls
in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from streamweld.history.media_types import resolution_of, written_type
from streamweld.history.model import (
    MISSING,
    Call,
    Media,
    Opaque,
    ReadParts,
    Reasoning,
    Result,
    Text,
    members_of,
    value_object,
)
from streamweld.history.models import gemini_generation
from streamweld.history.open_calls import OpenCalls
from streamweld.history.write.common import Writer, result_content

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld.history.context import Context
    from streamweld.history.model import Part, Turn

__all__ = ["write"]

_NESTING: Final = 3  # the first generation whose function responses can contain media
_LEVELS: Final = 3  # the first generation with a level of detail for each part
_FILES: Final = frozenset({"application/pdf", "text/plain"})


def write(turns: list[Turn], context: Context) -> dict[str, Any]:
    """Return the request members `{"systemInstruction": …, "contents": […]}`; without `systemInstruction` if there is
    none."""
    writer = Writer(context, turns)
    payload: dict[str, Any] = {}
    contents: list[Any] = []
    names: OpenCalls[str] = OpenCalls()
    at = 0
    while at < len(turns):
        turn = turns[at]
        if turn.top:
            at += 1
            whole = writer.reusable_message(turn.parts)
            if whole is None:
                if turn.origin is not None and turn.origin.stale and turn.origin.dialect == writer.dialect:
                    writer.context.edit("message_form", turn.path, "wrote the text as an object with parts")
                whole = {
                    "parts": [_part(part, writer, None) for part in turn.parts],
                    **writer.message_members(turn, turn.parts),
                }
            payload["systemInstruction"] = whole
            continue
        for part in turn.parts:
            if isinstance(part, Call):
                names.add(at, part.call_id, part.name, part.name)
        parts, at = writer.results_and_user(turns, at) if turn.role == "tool" else (turn.parts, at + 1)
        content = None if writer.rewrites_all else writer.reusable_message(parts, turn.origin)
        if content is not None:
            for part in parts:
                if isinstance(part, Result):
                    names.take(part.call_id, part.name)
        else:
            if not writer.rewrites_all and any(_was_text(part) for part in parts if writer.own(part)):
                writer.context.edit("message_form", turn.path, "wrote the text as an object with a role and parts")
            role = "model" if turn.role == "assistant" else "user"
            content = {"role": role, "parts": _parts(parts, writer, names)}
            if members := turn.marks if writer.rewrites_all else writer.message_members(turn, parts):
                content |= members
        contents.append(content)
    return payload | {"contents": contents}


def _was_text(part: Part) -> bool:
    """Return whether the message of the part was only a text."""
    return part.origin is not None and isinstance(part.origin.raw, str)


def _parts(parts: Sequence[Part], writer: Writer, names: OpenCalls[str]) -> list[Any]:
    """Return the written parts, followed by the media that results contain."""
    written: list[Any] = []
    attached: list[Any] = []
    for part in parts:
        if not isinstance(part, Result):
            written.append(_part(part, writer, None))
            continue
        written.append(_part(part, writer, names.take(part.call_id, part.name)))
        if type(part.parts) is ReadParts and writer.own(part):
            continue
        if writer.rewrites_all or writer.reusable_block(part) is None:
            for inner in part.parts:
                writer.lose_extra_members(inner)
            nested = _nested(part, writer)
            for inner in part.parts:
                if isinstance(inner, Media) and inner not in nested:
                    what = "moved the media of a result to a part after it"
                    writer.context.edit("file_type", inner.path or part.path, what)
                    attached.append(_media(inner, writer))
    return written + attached if attached else written


def _nested(result: Result, writer: Writer) -> list[Media]:
    """Return the media of a result that the function response can contain. Only Gemini 3 and newer accept media there.

    https://ai.google.dev/gemini-api/docs/function-calling (multimodal function responses)
    """
    media = [part for part in result.parts if isinstance(part, Media)]
    if not media or writer.own(result):
        return media
    if (gemini_generation(writer.context.model) or 0) < _NESTING:
        return []
    return [part for part in media if part.data is not None and (part.kind == "image" or part.media_type in _FILES)]


def _part(part: Part, writer: Writer, named: str | None) -> Any:
    """Return one written part. `named`: for a result, the name of the called tool."""
    if not writer.rewrites_all and (own := writer.reusable_block(part)) is not None:
        return own
    if isinstance(part, Result) and writer.own(part):
        if type(part.parts) is ReadParts:  # the source result has media, and no pass changed its content
            return _renamed(part, named)
        if _is_bare(part):
            writer.context.edit("result_value", part.path, "wrapped a tool result in an object, as Gemini requires")
    beyond = writer.extra_members(part) if part.extra else None
    block = _made(part, writer, named)
    return {**block, **beyond} if beyond and not isinstance(part, Opaque) else block


def _renamed(part: Result, named: str | None) -> dict[str, Any]:
    """Return the source result with another id and name.

    If the result were rewritten, JSON next to media would become text.
    """
    raw = members_of(part.raw)
    member = "functionResponse" if "functionResponse" in raw else "function_response"
    fields = {"id": part.call_id} if part.call_id else {}
    return {**raw, member: {**raw[member], **fields, "name": named or part.name or "unknown"}}


def _is_bare(part: Result) -> bool:
    """Return whether the response of the source result is not an object."""
    raw = members_of(part.raw)
    given = members_of(raw.get("functionResponse") or raw.get("function_response"))
    return not isinstance(given.get("response"), Mapping)


def _made(part: Part, writer: Writer, named: str | None) -> Any:
    block: dict[str, Any]
    if isinstance(part, Text):
        return {"text": part.text, "thoughtSignature": part.signature} if part.signature else {"text": part.text}
    if isinstance(part, Call):
        function = {"name": part.name, "args": writer.arguments_object(part) or {}}
        block = {"functionCall": {"id": part.call_id, **function} if part.call_id else function}
        if part.signature:
            block["thoughtSignature"] = part.signature
        return block
    if isinstance(part, Result):
        response = {"name": named or part.name or "unknown", "response": _response(part)}
        if nested := _nested(part, writer):
            response["parts"] = [_media(inner, writer, nested=True) for inner in nested]
        return {"functionResponse": {"id": part.call_id, **response} if part.call_id else response}
    if isinstance(part, Reasoning):
        writer.lose_proof(part, "signature")
        block = {"text": part.text, "thought": True}
        if part.signature:
            block["thoughtSignature"] = part.signature
        return block
    if isinstance(part, Media):
        return _media(part, writer)
    return part.raw


def _response(result: Result) -> Any:
    """Return the response as an object. A value of another type is wrapped as "output", an error as "error"."""
    value: Any = result.value
    if not result.is_error and value_object(result) is not None:
        return value
    if value is MISSING:
        given = result_content(result)
        value = given if isinstance(given, str) else "".join([part.text for part in given if isinstance(part, Text)])
    return {"error" if result.is_error else "output": value}


def _media(part: Media, writer: Writer, *, nested: bool = False) -> dict[str, Any]:
    """Return the part for media. `nested`: whether it belongs to a function response, whose parts have no level of
    detail.
    """
    defaults = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "file": "application/pdf"}
    media_type = written_type(part, defaults[part.kind])
    made: dict[str, Any]
    if part.url:
        made = {"fileData": {"fileUri": part.url, "mimeType": media_type}}
    else:
        made = {"inlineData": {"mimeType": media_type, "data": part.data or ""}}
    level = None if part.detail is None else resolution_of(part.detail)
    if level is None:
        return made
    generation = gemini_generation(writer.context.model)
    older = generation is not None and generation < _LEVELS and not writer.own(part)
    if nested or older:
        writer.context.lose("detail", part.path, "the target has no level of detail for this image", part.detail)
        return made
    return {**made, "mediaResolution": {"level": level}}
