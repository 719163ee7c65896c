"""Read Gemini contents for the checker. Source: Gemini API reference, Content and Part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from streamweld.history.check.view import Block, Message, View, as_json, is_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld.history.check.report import Path, Report
    from streamweld.history.check.view import Json, Kind

__all__ = ["read"]

_OTHERS: Final = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")


def read(items: Sequence[Any], base: Path, payload: Json, report: Report) -> View:
    """Read Gemini contents, and report items that are not contents."""
    messages: list[Message] = []
    for n, raw in enumerate(items):
        fields = as_json(raw)
        if fields is None:
            report.add("shape", (*base, n), "an element of contents must be an object")
            continue
        path, wire = (*base, n), str(fields.get("role") or "user")
        parts = fields.get("parts")
        blocks: list[Block] = []
        if not is_list(parts):
            report.add("shape", path, "the `parts` of a content must be a list")
            parts = ()
        for k, part in enumerate(cast("Sequence[Any]", parts)):
            piece = as_json(part)
            if piece is None:
                report.add("shape", (*path, "parts", k), "a part must be an object")
            else:
                blocks.append(_block(piece, (*path, "parts", k)))
        role = "assistant" if wire == "model" else wire
        if blocks and all(block.kind == "result" for block in blocks):
            role = "tool"
        messages.append(Message(role, wire, path, fields, blocks))
    top = payload.get("systemInstruction", payload.get("system_instruction"))
    return View(messages, base, payload, top, ("systemInstruction",)).join()


def _member(raw: Json, camel: str, snake: str) -> Any:
    return raw.get(camel, raw.get(snake))


def _block(raw: Json, path: Path) -> Block:
    signature = _member(raw, "thoughtSignature", "thought_signature")
    block = Block("unknown", path, raw, next(iter(raw), ""), signature=signature or None)
    call = as_json(_member(raw, "functionCall", "function_call"))
    response = as_json(_member(raw, "functionResponse", "function_response"))
    fields = call or response
    if fields is not None:
        call_id, name = fields.get("id"), fields.get("name")
        block.kind = "call" if call is not None else "result"
        block.id = call_id if isinstance(call_id, str) and call_id else None
        block.name = name if isinstance(name, str) else None
        block.arguments = fields.get("args", {}) if call is not None else fields.get("response")
    elif isinstance(raw.get("text"), str):
        block.kind = "reasoning" if raw.get("thought") else "text"
        block.text = raw["text"]
        # A part may consist of only the signature of the preceding part.
        if not block.text and signature:
            block.kind = "other"
    else:
        media = as_json(_member(raw, "inlineData", "inline_data")) or as_json(_member(raw, "fileData", "file_data"))
        if media is not None:
            head = str(_member(media, "mimeType", "mime_type") or "").partition("/")[0]
            block.kind = cast("Kind", head) if head in ("image", "audio", "video") else "file"
        elif any(name in raw for name in _OTHERS):
            block.kind = "other"
    return block
