"""Read Bedrock Converse messages for the checker. Source: AWS API reference, ContentBlock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.history.check.view import Block, Message, View, as_json, blocks_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld.history.check.report import Path, Report
    from streamweld.history.check.view import Json, Kind

__all__ = ["read"]

_MEDIA: Final[Mapping[str, Kind]] = {"image": "image", "document": "file", "video": "video", "audio": "audio"}
_OTHERS: Final = (
    "cachePoint",
    "guardContent",
    "citationsContent",
    "json",
    "searchResult",
    "toolAddition",
    "toolRemoval",
)


def read(items: Sequence[Any], base: Path, payload: Json, report: Report) -> View:
    """Read Bedrock Converse messages, and report items that are not messages."""
    messages: list[Message] = []

    def block(piece: Json, at: Path) -> Block:
        return _block(piece, at, report)

    for n, raw in enumerate(items):
        fields = as_json(raw)
        if fields is None or not isinstance(fields.get("role"), str):
            report.add("shape", (*base, n), "a message must be an object with a role")
            continue
        path, wire = (*base, n), str(fields["role"])
        content = fields.get("content")
        if isinstance(content, str):
            report.add("shape", (*path, "content"), "the content of a message must be a list of blocks")
        blocks, _ = blocks_of(content, (*path, "content"), report, block)
        messages.append(Message(wire, wire, path, fields, blocks))
    return View(messages, base, payload, payload.get("system"), ("system",)).join()


def _block(raw: Json, path: Path, report: Report) -> Block:
    if isinstance(raw.get("text"), str):
        return Block("text", path, raw, "text", raw["text"])
    use, answer, thought = (
        as_json(raw.get("toolUse")),
        as_json(raw.get("toolResult")),
        as_json(raw.get("reasoningContent")),
    )
    if use is not None:
        block = Block("call", path, raw, "toolUse", arguments=use.get("input"))
        name = use.get("name")
        block.name = name if isinstance(name, str) else None
        block.id = use["toolUseId"] if isinstance(use.get("toolUseId"), str) else None
        return block
    if answer is not None:
        block = Block("result", path, raw, "toolResult")
        block.id = answer["toolUseId"] if isinstance(answer.get("toolUseId"), str) else None

        def inner(piece: Json, at: Path) -> Block:
            return _block(piece, at, report)

        block.inner, _ = blocks_of(answer.get("content"), (*path, "toolResult", "content"), report, inner)
        return block
    if thought is not None:
        fields = as_json(thought.get("reasoningText"))
        if fields is None:
            return Block("reasoning", path, raw, "redactedContent", signature="redacted")
        return Block(
            "reasoning", path, raw, "reasoningText", str(fields.get("text")), signature=fields.get("signature") or None
        )
    for name, kind in _MEDIA.items():
        if name in raw:
            medium = as_json(raw[name])
            said = None if medium is None else medium.get("name")
            return Block(kind, path, raw, name, name=said if isinstance(said, str) else None)
    return Block("other" if any(name in raw for name in _OTHERS) else "unknown", path, raw, next(iter(raw), ""))
