"""Read input items of the Responses API and OpenResponses, and output items that are sent back as input.

Each item is read as one message. Consecutive items of the assistant form one turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.history.model import Call, Media, Opaque, Reasoning, Result, Text, Turn
from streamweld.history.read.common import (
    as_list,
    as_mapping,
    as_optional_text,
    as_text,
    free_form_input,
    locate,
    media_from_url,
    new_origin,
    split_data_url,
    text_part,
    unknown_role,
    with_inner_members,
)

if TYPE_CHECKING:
    from streamweld.history.model import Origin, Part, Path
    from streamweld.history.read.common import Json

__all__ = ["DIALECT", "read", "read_instructions"]

DIALECT: Final = "responses"
_ROLES: Final = ("system", "developer", "user", "assistant")
_MESSAGE: Final = frozenset({"type", "role", "content"})
_TEXT: Final = frozenset({"type", "text"})
_REFUSAL: Final = frozenset({"type", "refusal"})
_IMAGE: Final = frozenset({"type", "image_url", "file_id", "detail"})
_FILE: Final = frozenset({"type", "file_data", "file_url", "file_id", "filename"})
_AUDIO: Final = frozenset({"data", "format"})
_CALL: Final = frozenset({"type", "id", "call_id", "name", "arguments"})
_CUSTOM: Final = frozenset({"type", "id", "call_id", "name", "input"})
_OUTPUT: Final = frozenset({"type", "id", "call_id", "output"})
_SUMMARY: Final = frozenset({"type", "id", "summary", "encrypted_content"})
_REASONING: Final = _SUMMARY | {"content"}


def read_instructions(raw: Any) -> list[Turn]:
    """Return the turn for `instructions`."""
    origin = new_origin(DIALECT, ("instructions",), raw, _MESSAGE)
    return [
        Turn(
            "system",
            (Text(*locate(origin, ("instructions",)), text=as_text(raw, ("instructions",))),),
            origin,
            top=True,
        )
    ]


def read(raw: Any, path: Path, issuer: str | None = None) -> list[Turn]:
    """Return the turn of one item.

    Raises:
        HistoryError: if the item is not an object, or is a message with a role that the dialect does not have.
    """
    if isinstance(raw, str) and not (path and isinstance(path[-1], int)):  # the whole `input` is a string
        origin = new_origin(DIALECT, path, raw, _MESSAGE)
        return [Turn("user", (Text(*locate(origin, path), text=raw),), origin)]
    item = as_mapping(raw, path)
    kind = item.get("type")
    if kind == "message" or (kind is None and "role" in item):
        return [_message(item, path)]
    if kind in ("function_call", "custom_tool_call"):
        return [Turn("assistant", (_call(item, path, custom=kind == "custom_tool_call"),))]
    if kind in ("function_call_output", "custom_tool_call_output"):
        return [Turn("tool", (_output(item, path),))]
    if kind == "reasoning":
        return [Turn("assistant", (_reasoning(item, path, issuer),))]
    origin = new_origin(DIALECT, path, item, frozenset(item))
    return [Turn("assistant", (Opaque(*locate(origin, path, item), kind=str(kind), dialect=DIALECT),))]


def _message(item: Json, path: Path) -> Turn:
    role = item.get("role")
    if role not in _ROLES:
        raise unknown_role(role, _ROLES, DIALECT, path)
    origin = new_origin(DIALECT, path, item, _MESSAGE)
    content = item.get("content")
    parts: list[Part]
    if isinstance(content, str):
        parts = [text_part(origin, (*path, "content"), content)]
    else:
        blocks = as_list(content, (*path, "content"))
        parts = [
            _block(as_mapping(raw, (*path, "content", n)), origin, (*path, "content", n))
            for n, raw in enumerate(blocks)
        ]
    return Turn(role, tuple(parts), origin)


def _block(raw: Json, origin: Origin, path: Path) -> Text | Media | Opaque:
    kind = raw.get("type")
    if kind in ("input_text", "output_text", "text") and isinstance(raw.get("text"), str):
        return Text(*locate(origin, path, raw, _TEXT), text=raw["text"])
    if kind == "refusal":
        return Text(*locate(origin, path, raw, _REFUSAL), text=as_text(raw.get("refusal"), path), refusal=True)
    if kind == "input_image":
        common = locate(origin, path, raw, _IMAGE)
        detail = as_optional_text(raw.get("detail"), path)
        if file_id := as_optional_text(raw.get("file_id"), path):
            return Media(*common, kind="image", file_id=file_id, detail=detail)
        return media_from_url(common, as_text(raw.get("image_url"), path), None, kind="image", detail=detail)
    if kind == "input_file":
        media_type, data, rest = split_data_url(as_text(raw.get("file_data"), path))
        return Media(
            *locate(origin, path, raw, _FILE),
            kind="file",
            media_type=media_type,
            data=data or rest or None,
            url=as_optional_text(raw.get("file_url"), path),
            file_id=as_optional_text(raw.get("file_id"), path),
            filename=as_optional_text(raw.get("filename"), path),
        )
    if kind == "input_video":
        return media_from_url(
            locate(origin, path, raw, frozenset({"type", "video_url"})),
            as_text(raw.get("video_url"), path),
            None,
            kind="video",
        )
    if kind == "input_audio" and isinstance(raw.get("input_audio"), dict):
        audio = as_mapping(raw["input_audio"], path)
        common = locate(origin, path, raw, frozenset({"type", "input_audio"}))
        common = with_inner_members(common, ("input_audio", audio, _AUDIO))
        return Media(
            *common, kind="audio", media_type=f"audio/{audio.get('format')}", data=as_text(audio.get("data"), path)
        )
    return Opaque(*locate(origin, path, raw), kind=str(kind), dialect=DIALECT)


def _call(item: Json, path: Path, *, custom: bool) -> Call:
    origin = new_origin(DIALECT, path, item, frozenset(item))
    common = locate(origin, path, item, _CUSTOM if custom else _CALL)
    call_id, name, item_id = (
        as_text(item.get("call_id"), path),
        as_text(item.get("name"), path),
        as_optional_text(item.get("id"), path),
    )
    value: Any
    if custom:
        value = {"input": free_form_input(item, path)}
        return Call(*common, call_id=call_id, name=name, input=value, item_id=item_id, custom=True)
    arguments = item.get("arguments")
    if isinstance(arguments, str):
        return Call(*common, call_id=call_id, name=name, arguments=arguments, item_id=item_id)
    value = {} if arguments is None else arguments
    return Call(*common, call_id=call_id, name=name, input=value, item_id=item_id)


def _output(item: Json, path: Path) -> Result:
    origin = new_origin(DIALECT, path, item, frozenset(item))
    common = locate(origin, path, item, _OUTPUT)
    output = item.get("output")
    inner: tuple[Text | Media | Opaque, ...] = ()
    call_id, item_id = as_text(item.get("call_id"), path), as_optional_text(item.get("id"), path)
    if isinstance(output, str):
        inner = (Text(text=output, path=(*path, "output")),)
    elif isinstance(output, list):
        within = new_origin(DIALECT, path, None, frozenset())
        blocks = as_list(output, path)
        inner = tuple([_block(as_mapping(raw, path), within, (*path, "output", n)) for n, raw in enumerate(blocks)])
    elif output is not None:
        return Result(*common, call_id=call_id, value=output, item_id=item_id)
    return Result(*common, call_id=call_id, parts=inner, item_id=item_id)


def _reasoning(item: Json, path: Path, issuer: str | None) -> Reasoning:
    origin = new_origin(DIALECT, path, item, frozenset(item))
    summary = [as_mapping(piece, path) for piece in as_list(item.get("summary"), path)]
    content = [as_mapping(piece, path) for piece in as_list(item.get("content"), path)]
    pieces = [(f"summary/{n}", piece, _TEXT) for n, piece in enumerate(summary)]
    both = bool(summary) and bool(content)  # if an item has a summary and content, the part contains only the summary
    pieces += [] if both else [(f"content/{n}", piece, _TEXT) for n, piece in enumerate(content)]
    return Reasoning(
        *with_inner_members(locate(origin, path, item, _SUMMARY if both else _REASONING), *pieces),
        segments=tuple([as_text(piece.get("text"), path) for piece in summary or content]),
        kind="summary" if summary or not content else "raw",
        item_id=as_optional_text(item.get("id"), path),
        encrypted=as_optional_text(item.get("encrypted_content"), path),
        issuer=issuer or "openai",
        assumed=not issuer,
    )
