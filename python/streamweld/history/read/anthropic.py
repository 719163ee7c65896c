"""Read Anthropic messages. A user message is split into turns of results and turns of other content, in order."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final

from streamweld.history.model import CONTENT_PARTS, Call, Media, Opaque, Reasoning, Result, Text, Turn
from streamweld.history.read.common import (
    as_list,
    as_mapping,
    as_optional_text,
    as_text,
    locate,
    media_kind,
    new_origin,
    split_results,
    text_part,
    unknown_role,
    with_inner_members,
)

if TYPE_CHECKING:
    from streamweld.history.model import Origin, Part, Path
    from streamweld.history.read.common import Json

__all__ = ["DIALECT", "read", "read_system"]

DIALECT: Final = "anthropic"
_ROLES: Final = ("system", "user", "assistant")
_MESSAGE: Final = frozenset({"role", "content"})
_TEXT: Final = frozenset({"type", "text"})
_CALL: Final = frozenset({"type", "id", "name", "input"})
_RESULT: Final = frozenset({"type", "tool_use_id", "content", "is_error"})
_THINKING: Final = frozenset({"type", "thinking", "signature", "data"})
_MEDIA: Final = frozenset({"type", "source", "title"})
_SOURCE: Final = frozenset({"type", "media_type", "data", "url", "file_id"})
# For each type of `source` in a block: the member that contains the value, and the field of `Media` for that value.
_SOURCES: Final = {"base64": ("data", "data"), "url": ("url", "url"), "file": ("file_id", "file_id")}


def read_system(raw: Any) -> list[Turn]:
    """Return the turn for the `system` member."""
    origin = new_origin(DIALECT, ("system",), raw, _MESSAGE)
    return [Turn("system", tuple(_content(raw, origin, ("system",), None)), origin, top=True)]


def read(raw: Any, path: Path, issuer: str | None = None) -> list[Turn]:
    """Return the turns of one message.

    Raises:
        HistoryError: if the message is not an object, or has a role that the dialect does not have.
    """
    message = as_mapping(raw, path)
    role = message.get("role")
    if role not in _ROLES:
        raise unknown_role(role, _ROLES, DIALECT, path)
    origin = new_origin(DIALECT, path, message, _MESSAGE)
    parts = _content(message.get("content"), origin, (*path, "content"), issuer)
    if role != "user":
        return [Turn(role, tuple(parts), origin)]
    return split_results(parts, origin)


def _content(content: Any, origin: Origin, path: Path, issuer: str | None) -> list[Part]:
    if isinstance(content, str):
        return [text_part(origin, path, content)]
    blocks = as_list(content, path)
    return [_block(as_mapping(raw, (*path, n)), origin, (*path, n), issuer) for n, raw in enumerate(blocks)]


def _block(raw: Json, origin: Origin, path: Path, issuer: str | None) -> Part:
    kind = raw.get("type")
    if kind == "text":
        return Text(*locate(origin, path, raw, _TEXT), text=as_text(raw.get("text"), path))
    if kind == "tool_use":
        common = locate(origin, path, raw, _CALL)
        value = raw.get("input")
        # Clients also send the arguments as text, as in Chat (https://github.com/lijunzh/koda/issues/501).
        given: Any = {"arguments": value} if isinstance(value, str) else {"input": value}
        return Call(*common, call_id=as_text(raw.get("id"), path), name=as_text(raw.get("name"), path), **given)
    if kind == "tool_result":
        common = locate(origin, path, raw, _RESULT)
        within = new_origin(DIALECT, path, None, _MESSAGE)
        inner = _content(raw.get("content"), within, (*path, "content"), None)
        parts = tuple([part for part in inner if isinstance(part, CONTENT_PARTS)])
        return Result(
            *common, call_id=as_text(raw.get("tool_use_id"), path), parts=parts, is_error=bool(raw.get("is_error"))
        )
    if kind == "thinking":
        common = locate(origin, path, raw, _THINKING)
        signature = as_text(raw.get("signature"), path) or None
        return Reasoning(
            *common,
            segments=(as_text(raw.get("thinking"), path),),
            signature=signature,
            issuer=issuer or "anthropic",
            assumed=not issuer,
        )
    if kind == "redacted_thinking":
        common = locate(origin, path, raw, _THINKING)
        return Reasoning(
            *common,
            segments=(),
            kind="redacted",
            encrypted=as_text(raw.get("data"), path),
            issuer=issuer or "anthropic",
            assumed=not issuer,
        )
    if kind in ("image", "document") and isinstance(raw.get("source"), dict):
        medium = _medium(raw, as_mapping(raw["source"], path), origin, path)
        if medium is not None:
            return medium
    return Opaque(*locate(origin, path, raw), kind=str(kind), dialect=DIALECT)


def _medium(raw: Json, source: Json, origin: Origin, path: Path) -> Media | None:
    way, media_type = source.get("type"), as_optional_text(source.get("media_type"), path)
    if way == "text" and isinstance(source.get("data"), str):
        common = with_inner_members(locate(origin, path, raw, _MEDIA), ("source", source, _SOURCE))
        data = b64encode(source["data"].encode("utf-8", "surrogatepass")).decode()
        name = as_optional_text(raw.get("title"), path)
        return Media(*common, kind="file", media_type=media_type or "text/plain", data=data, filename=name)
    if not isinstance(way, str) or way not in _SOURCES:
        return None
    kind = "image" if raw.get("type") == "image" else media_kind(media_type)
    common = with_inner_members(locate(origin, path, raw, _MEDIA), ("source", source, _SOURCE))
    where: Any = {field: as_text(source.get(member), path) for member, field in (_SOURCES[way],)}
    return Media(*common, kind=kind, media_type=media_type, filename=as_optional_text(raw.get("title"), path), **where)
