"""Read Bedrock Converse messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.history.media_types import document_type
from streamweld.history.model import CONTENT_PARTS, Call, Media, Opaque, Reasoning, Result, Text, Turn, json_text
from streamweld.history.read.common import (
    as_data,
    as_list,
    as_mapping,
    as_optional_text,
    as_text,
    locate,
    new_origin,
    split_results,
    unknown_role,
    with_inner_members,
)

if TYPE_CHECKING:
    from streamweld.history.model import Origin, Part, Path
    from streamweld.history.read.common import Json

__all__ = ["DIALECT", "read", "read_system"]

DIALECT: Final = "bedrock-converse"
_ROLES: Final = ("system", "user", "assistant")
_MESSAGE: Final = frozenset({"role", "content"})
_USE: Final = frozenset({"toolUseId", "name", "input"})
_RESULT: Final = frozenset({"toolUseId", "content", "status"})
_THOUGHT: Final = frozenset({"reasoningText", "redactedContent"})
_TEXT: Final = frozenset({"text", "signature"})
_MEDIUM: Final = frozenset({"format", "name", "source"})
_SOURCE: Final = frozenset({"bytes", "text"})
_KINDS: Final = (("image", "image"), ("document", "file"), ("video", "video"))


def read_system(raw: Any) -> list[Turn]:
    """Return the turn for the `system` member."""
    path: Path = ("system",)
    origin = new_origin(DIALECT, path, raw, _MESSAGE)
    blocks = as_list(raw, path)
    parts = [_block(as_mapping(b, (*path, n)), origin, (*path, n), None) for n, b in enumerate(blocks)]
    return [Turn("system", tuple(parts), origin, top=True)]


def read(raw: Any, path: Path, issuer: str | None = None) -> list[Turn]:
    """Return the turns of one message, with results separate from other content.

    Raises:
        HistoryError: if the message is not an object, or has a role that the dialect does not have.
    """
    message = as_mapping(raw, path)
    role = message.get("role")
    if role not in _ROLES:
        raise unknown_role(role, _ROLES, DIALECT, path)
    origin = new_origin(DIALECT, path, message, _MESSAGE)
    blocks = as_list(message.get("content"), (*path, "content"))
    positions = [(*path, "content", n) for n in range(len(blocks))]
    parts = [_block(as_mapping(b, at), origin, at, issuer) for at, b in zip(positions, blocks, strict=True)]
    if role != "user":
        return [Turn(role, tuple(parts), origin)]
    return split_results(parts, origin)


def _block(raw: Json, origin: Origin, path: Path, issuer: str | None) -> Part:
    kind = next(iter(raw), "empty")
    if isinstance(raw.get("text"), str):
        return Text(*locate(origin, path, raw, frozenset({"text"})), text=raw["text"])
    if "citationsContent" in raw and (cited := _cited(raw, origin, path)) is not None:
        return cited
    if "toolUse" in raw:
        use = as_mapping(raw["toolUse"], path)
        common = with_inner_members(locate(origin, path, raw, frozenset({"toolUse"})), ("toolUse", use, _USE))
        return Call(
            *common,
            call_id=as_text(use.get("toolUseId"), path),
            name=as_text(use.get("name"), path),
            input=use.get("input"),
        )
    if "toolResult" in raw:
        answer = as_mapping(raw["toolResult"], path)
        common = with_inner_members(
            locate(origin, path, raw, frozenset({"toolResult"})), ("toolResult", answer, _RESULT)
        )
        call_id, failed = as_text(answer.get("toolUseId"), path), answer.get("status") == "error"
        pieces = as_list(answer.get("content"), path)
        if len(pieces) == 1 and "json" in as_mapping(pieces[0], path):
            return Result(*common, call_id=call_id, value=pieces[0]["json"], is_error=failed)
        within = new_origin(DIALECT, path, None, _MESSAGE)
        inner = [
            _piece(as_mapping(piece, path), within, (*path, "toolResult", "content", n))
            for n, piece in enumerate(pieces)
        ]
        kept = tuple([part for part in inner if isinstance(part, CONTENT_PARTS)])
        return Result(*common, call_id=call_id, parts=kept, is_error=failed)
    if "reasoningContent" in raw:
        thought = as_mapping(raw["reasoningContent"], path)
        sent = thought.get("reasoningText")
        common = with_inner_members(
            locate(origin, path, raw, frozenset({"reasoningContent"})),
            ("reasoningContent", thought, _THOUGHT),
            ("reasoningContent/reasoningText", sent, _TEXT),
        )
        if isinstance(sent, dict):
            given = as_mapping(sent, path)
            signature = as_text(given.get("signature"), path) or None
            return Reasoning(
                *common,
                segments=(as_text(given.get("text"), path),),
                signature=signature,
                issuer=issuer or "bedrock",
                assumed=not issuer,
            )
        cipher = as_data(thought.get("redactedContent"), path)
        return Reasoning(
            *common, segments=(), kind="redacted", encrypted=cipher, issuer=issuer or "bedrock", assumed=not issuer
        )
    for member, media in _KINDS:
        if member in raw:
            medium = _medium(as_mapping(raw[member], path), raw, origin, path, media)
            if medium is not None:
                return medium
    return Opaque(*locate(origin, path, raw), kind=kind, dialect=DIALECT)


def _piece(raw: Json, within: Origin, path: Path) -> Part:
    """Read one content block of a tool result that has several blocks.

    JSON becomes text, because other dialects support only text.
    """
    if "json" in raw:
        return Text(*locate(within, path, raw, frozenset({"json"})), text=json_text(raw["json"], path))
    return _block(raw, within, path, None)


def _cited(raw: Json, origin: Origin, path: Path) -> Text | None:
    """Return the text of a block with citations. Its citations are an extra member of the part."""
    block = as_mapping(raw["citationsContent"], path)
    pieces = as_list(block.get("content"), path)
    texts = [text for piece in pieces if isinstance(text := as_mapping(piece, path).get("text"), str)]
    if len(texts) != len(pieces):
        return None
    common = with_inner_members(
        locate(origin, path, raw, frozenset({"citationsContent"})), ("citationsContent", block, frozenset({"content"}))
    )
    return Text(*common, text="".join(texts))


def _medium(given: Json, raw: Json, origin: Origin, path: Path, kind: Any) -> Media | None:
    held = given.get("source")
    if not isinstance(held, dict):
        return None
    source = as_mapping(held, path)
    text = source.get("text") if kind == "file" else None
    if "bytes" not in source and not isinstance(text, str):
        return None
    member = next(name for name, media in _KINDS if media == kind)
    form = given.get("format") or ("txt" if isinstance(text, str) else None)
    media_type = document_type(str(form)) if kind == "file" else f"{kind}/{form}"
    common = with_inner_members(
        locate(origin, path, raw, frozenset({member})),
        (member, given, _MEDIUM),
        (f"{member}/source", source, _SOURCE),
    )
    data = as_data(source["bytes"] if text is None else text.encode("utf-8", "surrogatepass"), path)
    name = as_optional_text(given.get("name"), path)
    return Media(*common, kind=kind, media_type=media_type, data=data, filename=name)
