"""Read Gemini contents. Members may use either spelling that the API accepts: `functionCall` or `function_call`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.history.media_types import detail_of
from streamweld.history.model import (
    CONTENT_PARTS,
    Call,
    Media,
    Opaque,
    ReadParts,
    Reasoning,
    Result,
    Text,
    Turn,
    json_text,
    members_of,
)
from streamweld.history.read.common import (
    as_data,
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
from streamweld.history.read.gemini_contents import as_part, is_content

if TYPE_CHECKING:
    from streamweld.history.model import Origin, Part, Path
    from streamweld.history.read.common import Json

__all__ = ["DIALECT", "read", "read_system"]

DIALECT: Final = "gemini"
_ROLES: Final = ("user", "model", "function")
_CONTENT: Final = frozenset({"role", "parts"})
_TEXT: Final = frozenset({"text", "thoughtSignature", "thought_signature"})
_THOUGHT: Final = _TEXT | {"thought"}
_CALL: Final = frozenset({"functionCall", "function_call", "thoughtSignature", "thought_signature"})
_RESULT: Final = frozenset({"functionResponse", "function_response"})
_FUNCTION: Final = frozenset({"id", "name", "args"})
_ANSWER: Final = frozenset({"id", "name", "response", "parts"})
_BLOB: Final = frozenset({"mimeType", "mime_type", "data", "fileUri", "file_uri"})
_MEDIA: Final = frozenset({"inlineData", "inline_data", "fileData", "file_data"})
_RESOLUTION: Final = frozenset({"mediaResolution", "media_resolution"})


def _either(raw: Json, camel: str, snake: str) -> Any:
    value = raw.get(camel)
    return raw.get(snake) if value is None else value


def read_system(raw: Any) -> list[Turn]:
    """Return the turn for `systemInstruction`: a content object. google-genai also accepts texts and parts, alone or
    in a list.
    """
    path: Path = ("systemInstruction",)
    if isinstance(raw, str):
        origin = new_origin(DIALECT, path, raw, _CONTENT)
        origin.stale = True  # the API requires a content
        return [Turn("system", (Text(*locate(origin, path), text=raw),), origin, top=True)]
    given: list[tuple[Any, Path]]
    if isinstance(raw, list | tuple):
        given = [(as_part(part), (*path, n)) for n, part in enumerate(as_list(raw, path))]
    elif not is_content(as_mapping(raw, path)):
        given = [(as_part(raw), path)]
    else:
        given = [(part, (*path, "parts", n)) for n, part in enumerate(as_list(raw.get("parts"), path))]
    formed = isinstance(raw, list | tuple) or not is_content(raw)
    origin = new_origin(DIALECT, path, None if formed else raw, _CONTENT)
    origin.stale = formed
    parts = [_part(as_mapping(part, at), origin, at, None) for part, at in given]
    return [Turn("system", tuple(parts), origin, top=True)]


def read(raw: Any, path: Path, issuer: str | None = None) -> list[Turn]:
    """Return the turns of one content. google-genai accepts a string as the user's content.

    Raises:
        HistoryError: if the content is not an object or a string, or has a role that the dialect does not have.
    """
    if isinstance(raw, str):
        origin = new_origin(DIALECT, path, raw, _CONTENT)
        origin.stale = True  # the API requires an object
        return [Turn("user", (text_part(origin, path, raw),), origin)]
    content = as_mapping(raw, path)
    role = content.get("role") or "user"
    if role not in _ROLES:
        raise unknown_role(role, _ROLES, DIALECT, path)
    origin = new_origin(DIALECT, path, content, _CONTENT)
    raws = as_list(content.get("parts"), (*path, "parts"))
    positions = [(*path, "parts", n) for n in range(len(raws))]
    parts = [_part(as_mapping(p, at), origin, at, issuer) for at, p in zip(positions, raws, strict=True)]
    if role == "model":
        return [Turn("assistant", tuple(parts), origin)]
    return split_results(parts, origin)


def _part(raw: Json, origin: Origin, path: Path, issuer: str | None) -> Part:
    signature = _either(raw, "thoughtSignature", "thought_signature")
    if signature is not None:
        signature = as_data(signature, path) or None
    text = raw.get("text")
    if isinstance(text, str):
        if raw.get("thought"):
            common = locate(origin, path, raw, _THOUGHT)
            return Reasoning(
                *common,
                segments=(text,),
                kind="summary",
                signature=signature,
                issuer=issuer or "google",
                assumed=not issuer,
            )
        return Text(*locate(origin, path, raw, _TEXT), text=text, signature=signature)
    call = _either(raw, "functionCall", "function_call")
    if isinstance(call, dict):
        function = as_mapping(call, path)
        common = with_inner_members(locate(origin, path, raw, _CALL), ("functionCall", function, _FUNCTION))
        name, call_id = as_text(function.get("name"), path), as_text(function.get("id"), path)
        return Call(*common, call_id=call_id, name=name, input=function.get("args"), signature=signature)
    answer = _either(raw, "functionResponse", "function_response")
    if isinstance(answer, dict):
        return _result(as_mapping(answer, path), raw, origin, path)
    inline, file = _either(raw, "inlineData", "inline_data"), _either(raw, "fileData", "file_data")
    if isinstance(inline, dict):
        blob = as_mapping(inline, path)
        media_type = as_optional_text(_either(blob, "mimeType", "mime_type"), path)
        detail = _detail(raw)
        common = locate(origin, path, raw, _MEDIA | _RESOLUTION if detail else _MEDIA)
        common, data = with_inner_members(common, ("inlineData", blob, _BLOB)), as_data(blob.get("data"), path) or ""
        return Media(*common, kind=media_kind(media_type), media_type=media_type, data=data, detail=detail)
    if isinstance(file, dict):
        where = as_mapping(file, path)
        media_type = as_optional_text(_either(where, "mimeType", "mime_type"), path)
        detail = _detail(raw)
        common = locate(origin, path, raw, _MEDIA | _RESOLUTION if detail else _MEDIA)
        common = with_inner_members(common, ("fileData", where, _BLOB))
        url = as_text(_either(where, "fileUri", "file_uri"), path)
        return Media(*common, kind=media_kind(media_type), media_type=media_type, url=url, detail=detail)
    kind = next((key for key in raw if not key.startswith("thought")), "part")
    return Opaque(*locate(origin, path, raw), kind=kind, dialect=DIALECT)


def _detail(raw: Json) -> str | None:
    """Return the level of detail of a part, or None if the part has none, or has a number of tokens instead."""
    resolution = _either(raw, "mediaResolution", "media_resolution")
    fields = members_of(resolution)
    level = fields.get("level") if len(fields) == 1 else None
    return detail_of(level) if isinstance(level, str) else None


def _result(answer: Json, raw: Json, origin: Origin, path: Path) -> Result:
    common = with_inner_members(locate(origin, path, raw, _RESULT), ("functionResponse", answer, _ANSWER))
    call_id, name = as_text(answer.get("id"), path), as_text(answer.get("name"), path) or None
    value = answer.get("response")
    if answer.get("parts"):
        return Result(*common, call_id=call_id, name=name, **_with_media(answer, path))
    # "Use "output" key to specify function output and "error" key to specify error details" (FunctionResponse)
    if isinstance(value, dict) and len(value) == 1:  # pyright: ignore[reportUnknownArgumentType]
        (key, inner), *_ = as_mapping(value, path).items()
        if key in ("output", "error"):
            if isinstance(inner, str):
                return Result(*common, call_id=call_id, name=name, parts=(Text(text=inner),), is_error=key == "error")
            return Result(*common, call_id=call_id, name=name, value=inner, is_error=key == "error")
    bare = not isinstance(value, dict)  # Gemini requires an object, so the result must be rewritten
    return Result(*common, call_id=call_id, name=name, value={} if value is None else value, touched=bare)


def _with_media(answer: Json, path: Path) -> dict[str, Any]:
    """Return the fields of a result with media. Gemini 3 accepts media in the response of a function."""
    value: Any = answer.get("response")
    name: Any = next(iter(members_of(value))) if len(members_of(value)) == 1 else None
    failed = name == "error"
    if failed or name == "output":
        value = value[name]
    text = value if isinstance(value, str) else json_text(value, path) if value else ""
    within = new_origin(DIALECT, path, None, _CONTENT)
    parts: list[Any] = [Text(text=text)] if text else []
    for n, raw in enumerate(as_list(answer["parts"], path)):
        at = (*path, "functionResponse", "parts", n)
        part = _part(as_mapping(raw, at), within, at, None)
        if isinstance(part, Media) and part.data is None:
            # A file of Gemini's Files API. Clients of other providers would try to download the file and fail, because
            # the download requires the user's Gemini key.
            part = Opaque(*locate(within, at, raw), kind="fileData", dialect=DIALECT)
        parts.append(part)
    kept = [part for part in parts if isinstance(part, CONTENT_PARTS)]
    return {"parts": ReadParts(kept), "is_error": failed}
