"""Read AI SDK ModelMessages."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final

from streamweld.history.approvals import DENIED, REQUEST_DETAILS, request_details
from streamweld.history.media_types import detected, is_concrete
from streamweld.history.model import (
    MISSING,
    ApprovalRequest,
    ApprovalResponse,
    Call,
    Media,
    Opaque,
    Reasoning,
    Result,
    Text,
    Turn,
)
from streamweld.history.provider_metadata import options_beside, read_metadata, text_signature
from streamweld.history.read.common import (
    as_list,
    as_mapping,
    as_optional_text,
    as_text,
    locate,
    media_from_url,
    media_kind,
    new_origin,
    unknown_role,
    with_detail,
    with_inner_members,
)

if TYPE_CHECKING:
    from streamweld.history.model import Origin, Part, Path
    from streamweld.history.provider_metadata import ProviderMetadata
    from streamweld.history.read.common import CommonFields, Json

__all__ = ["DIALECT", "read"]

DIALECT: Final = "ai-sdk-model"
_ROLES: Final = ("system", "user", "assistant", "tool")
_MESSAGE: Final = frozenset({"role", "content"})
_TEXT: Final = frozenset({"type", "text"})
_SIGNED_TEXT: Final = _TEXT | {"providerOptions"}
_REASONING: Final = frozenset({"type", "text", "providerOptions"})
_CALL: Final = frozenset({"type", "toolCallId", "toolName", "input", "args", "providerExecuted", "providerOptions"})
_RESULT: Final = frozenset({"type", "toolCallId", "toolName", "output", "result", "isError"})
_REQUEST: Final = frozenset({"type", "approvalId", "toolCallId", "reason", *REQUEST_DETAILS})
_RESPONSE: Final = frozenset({"type", "approvalId", "approved", "reason", "providerExecuted"})
_OUTPUT: Final = frozenset({"type", "value", "reason"})
_MEDIA: Final = frozenset({"type", "image", "data", "mediaType", "mimeType", "filename"})


def read(raw: Any, path: Path, issuer: str | None = None) -> list[Turn]:
    """Return the turn of one message.

    Raises:
        HistoryError: if the message is not an object, or has a role that the dialect does not have.
    """
    message = as_mapping(raw, path)
    role = message.get("role")
    if role not in _ROLES:
        raise unknown_role(role, _ROLES, DIALECT, path)
    origin = new_origin(DIALECT, path, message, _MESSAGE)
    content = message.get("content")
    if isinstance(content, str):
        return [Turn(role, (Text(*locate(origin, (*path, "content")), text=content),), origin)]
    blocks = as_list(content, (*path, "content"))
    positions = [(*path, "content", n) for n in range(len(blocks))]
    parts = [_part(as_mapping(b, at), origin, at, issuer) for at, b in zip(positions, blocks, strict=True)]
    return [Turn(role, tuple(parts), origin)]


def _part(raw: Json, origin: Origin, path: Path, issuer: str | None) -> Part:
    kind = raw.get("type")
    if kind == "text":
        signature, alone = text_signature(raw.get("providerOptions"))
        common = locate(origin, path, raw, _SIGNED_TEXT if alone else _TEXT)
        return Text(*common, text=as_text(raw.get("text"), path), signature=signature)
    if kind == "reasoning":
        entry = read_metadata(raw.get("providerOptions"))
        return Reasoning(
            *_with_options(locate(origin, path, raw, _REASONING), raw, entry),
            segments=(as_text(raw.get("text"), path),),
            kind="summary" if entry.item_id else "redacted" if entry.encrypted and not raw.get("text") else "thinking",
            item_id=entry.item_id,
            signature=entry.signature,
            encrypted=entry.encrypted,
            issuer=entry.issuer or issuer,
        )
    if kind == "tool-call":
        entry = read_metadata(raw.get("providerOptions"))
        value = raw.get("input", raw.get("args", MISSING))
        common = _with_options(locate(origin, path, raw, _CALL), raw, entry)
        call_id, name, ran = (
            as_text(raw.get("toolCallId"), path),
            as_text(raw.get("toolName"), path),
            bool(raw.get("providerExecuted")),
        )
        if ran:
            return Opaque(*common, kind="tool-call", dialect=DIALECT)
        if isinstance(value, str):  # input that could not be parsed is a string
            return Call(
                *common, call_id=call_id, name=name, arguments=value, item_id=entry.item_id, signature=entry.signature
            )
        return Call(*common, call_id=call_id, name=name, input=value, item_id=entry.item_id, signature=entry.signature)
    if kind == "tool-result" and origin.raw.get("role") == "tool":
        return _result(raw, origin, path)
    if kind == "tool-approval-request":
        return ApprovalRequest(
            *locate(origin, path, raw, _REQUEST),
            approval_id=as_text(raw.get("approvalId"), path),
            call_id=as_text(raw.get("toolCallId"), path),
            reason=as_optional_text(raw.get("reason"), path),
            details=request_details(raw),
        )
    if kind == "tool-approval-response" and origin.raw.get("role") == "tool":
        return ApprovalResponse(
            *locate(origin, path, raw, _RESPONSE),
            approval_id=as_text(raw.get("approvalId"), path),
            approved=bool(raw.get("approved")),
            reason=as_optional_text(raw.get("reason"), path),
            provider_executed=bool(raw.get("providerExecuted")),
        )
    if kind in ("image", "file"):
        medium = _medium(raw, origin, path)
        if medium is not None:
            return medium
    return Opaque(*locate(origin, path, raw), kind=str(kind), dialect=DIALECT)


def _with_options(common: CommonFields, raw: Json, read: ProviderMetadata) -> CommonFields:
    """Return the common fields with the provider options that were not read."""
    given = raw.get("providerOptions")
    more = None if given is None else options_beside(given, read)
    return (*common[:4], {**common[4], "providerOptions": more}) if more else common


def _medium(raw: Json, origin: Origin, path: Path) -> Media | None:
    media_type = as_optional_text(raw.get("mediaType") or raw.get("mimeType"), path)
    data = raw.get("image") if raw.get("type") == "image" else raw.get("data")
    if isinstance(data, dict):  # since AI SDK 7, `data` can be an object whose `type` is the kind of data
        entry = as_mapping(data, path)
        data = entry.get(entry["type"]) if entry.get("type") in ("url", "data", "text") else None
        if entry.get("type") == "text" and isinstance(data, str):
            data = b64encode(data.encode("utf-8", "surrogatepass")).decode()
            media_type = media_type or "text/plain"
    if not isinstance(data, str):
        return None
    kind = "image" if raw.get("type") == "image" else media_kind(media_type)
    common, detail = with_detail(locate(origin, path, raw, _MEDIA), "providerOptions")
    name = as_optional_text(raw.get("filename"), path)
    if ":" in data[:9]:  # a URL, because base64 data cannot contain a colon
        return media_from_url(common, data, media_type, kind=kind, filename=name, detail=detail)
    if not is_concrete(media_type):
        media_type = detected(data) or media_type
    return Media(*common, kind=kind, media_type=media_type, data=data, filename=name, detail=detail)


def _result(raw: Json, origin: Origin, path: Path) -> Result:
    common = locate(origin, path, raw, _RESULT)
    call_id, name = as_text(raw.get("toolCallId"), path), as_text(raw.get("toolName"), path) or None
    output = raw.get("output")
    if not isinstance(output, dict):
        value, failed = raw.get("result"), bool(raw.get("isError"))
        return Result(*common, call_id=call_id, name=name, value=value, is_error=failed)
    entry = as_mapping(output, path)
    common = with_inner_members(common, ("output", entry, _OUTPUT))
    way, value = as_text(entry.get("type"), path), entry.get("value")
    if way == "execution-denied":
        text = as_text(entry.get("reason"), path) or DENIED
        return Result(*common, call_id=call_id, name=name, parts=(Text(text=text),), is_error=True, denied=True)
    failed = way.startswith("error-")
    if way in ("text", "error-text"):
        return Result(*common, call_id=call_id, name=name, parts=(Text(text=as_text(value, path)),), is_error=failed)
    if way == "content":
        within = new_origin(DIALECT, path, None, _MESSAGE)
        pieces = [as_mapping(piece, path) for piece in as_list(value, path)]
        inner = tuple([_inner(piece, within, path) for piece in pieces])
        old = any(piece.get("type") == "media" for piece in pieces)  # AI SDK 5 only; later versions reject this type
        return Result(*common, call_id=call_id, name=name, parts=inner, touched=old)
    return Result(*common, call_id=call_id, name=name, value=value, is_error=failed)


def _inner(raw: Json, within: Origin, path: Path) -> Text | Media | Opaque:
    kind = raw.get("type")
    if kind == "text":
        return Text(*locate(within, path, raw, _TEXT), text=as_text(raw.get("text"), path))
    if kind in ("media", "image-data", "file-data"):
        media_type = as_optional_text(raw.get("mediaType"), path)
        data = as_text(raw.get("data"), path)
        name = as_optional_text(raw.get("filename"), path)
        common, detail = with_detail(locate(within, path, raw, _MEDIA), "providerOptions")
        found = media_kind(media_type)
        return Media(*common, kind=found, media_type=media_type, data=data, filename=name, detail=detail)
    if kind in ("image-url", "file-url"):
        common, detail = with_detail(locate(within, path, raw, _MEDIA | {"url"}), "providerOptions")
        found = "image" if kind == "image-url" else "file"
        return Media(*common, kind=found, url=as_text(raw.get("url"), path), detail=detail)
    medium = _medium(raw, within, path) if kind == "file" else None
    if medium is not None:
        return medium
    return Opaque(*locate(within, path, raw), kind=str(kind), dialect=DIALECT)
