"""Reads content that is a list of parts (Mistral and multimodal gateways), and image members, into plain pieces.

Knows the part shapes that are documented; a part that is not stays reachable as sent. Knows no events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from streamweld._pure.dialect.chat_kinds import is_array, is_object
from streamweld._pure.dialect.chat_metadata import IMAGE_FIELDS, as_object, leftovers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.dialect.chat_metadata import Raw
    from streamweld._pure.dialect.chat_notes import Notes
    from streamweld._pure.json_door import Path, Payload


@dataclass(slots=True, frozen=True)
class Text:
    kind: Literal["text", "reasoning", "refusal"]
    text: str


@dataclass(slots=True, frozen=True)
class File:
    media_type: str | None
    data: str | None
    url: str | None
    metadata: str | None


Piece = Text | File


def read_content(payload: Payload, content: object, path: Path, extra: Raw, notes: Notes) -> list[Piece]:
    """The pieces of a content list (or of a single part object), in order; parts nobody knows go to `extra`."""
    parts: list[Any]
    paths: list[Path]
    if is_object(content):
        parts, paths = [content], [path]
    elif is_array(content):
        parts, paths = content, [(*path, position) for position in range(len(content))]
    else:
        notes.shape(path)
        return []
    pieces: list[Piece] = []
    unknown: list[str] = []
    for part, here in zip(parts, paths, strict=True):
        if isinstance(part, str):
            if part:
                pieces.append(Text("text", part))
        elif is_object(part):
            if not _read_part(payload, part, here, pieces, notes):
                unknown.append(payload.raw(*here) or "null")
        elif part is not None:
            notes.shape(here)
    if unknown:
        extra["content"] = f"[{','.join(unknown)}]"
    return pieces


def image_files(payload: Payload, images: object, path: Path, notes: Notes) -> list[File]:
    """The files of an `images` member: a list of `{"image_url": {"url"}}`."""
    if not is_array(images):
        notes.shape(path)
        return []
    files: list[File] = []
    for position, image in enumerate(images):
        here = (*path, position)
        if is_object(image):
            found = _image(payload, image, here)
            if found is not None:
                files.append(found)
                continue
        if image is not None:
            notes.shape(here)
    return files


def _read_part(payload: Payload, part: dict[str, Any], path: Path, pieces: list[Piece], notes: Notes) -> bool:
    match part.get("type"):
        case "text" | "output_text" | None if isinstance(part.get("text"), str):
            if part["text"]:
                pieces.append(Text("text", part["text"]))
        case "thinking":
            text = _thinking(part.get("thinking"), (*path, "thinking"), notes)
            if text:
                pieces.append(Text("reasoning", text))
        case "refusal" if isinstance(part.get("refusal"), str):
            if part["refusal"]:
                pieces.append(Text("refusal", part["refusal"]))
        case "image_url":
            found = _image(payload, part, path)
            if found is None:
                return False
            pieces.append(found)
        case _:
            return False
    return True


def _thinking(value: object, path: Path, notes: Notes) -> str:
    """Mistral's thinking: a text, or a list of text parts."""
    if isinstance(value, str):
        return value
    if not is_array(value):
        if value is not None:
            notes.shape(path)
        return ""
    texts: list[str] = []
    for position, item in enumerate(value):
        text = item.get("text") if is_object(item) else item
        if isinstance(text, str):
            texts.append(text)
        elif text is not None:
            notes.shape((*path, position))
    return "".join(texts)


def _image(payload: Payload, image: Mapping[str, Any], path: Path) -> File | None:
    holder = image.get("image_url")
    url = holder.get("url") if is_object(holder) else holder
    if not isinstance(url, str) or not url:
        return None
    metadata = as_object(leftovers(payload, path, image, IMAGE_FIELDS))
    if url[:5].lower() == "data:":
        kind, comma, data = url[5:].partition(",")
        if comma and kind.endswith(";base64"):
            return File(kind[: -len(";base64")] or None, data, None, metadata)
    return File(None, None, url, metadata)
