"""Reads content that is a list of parts (Mistral and multimodal gateways), and image members, as plain pieces.

Parts of documented shapes are decoded. Any other part is kept as sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from streamweld._pure.dialect.chat.calls import is_typed_tool_use
from streamweld._pure.dialect.chat.metadata import IMAGE_FIELDS
from streamweld._pure.json.kinds import is_array, is_object
from streamweld._pure.json.members import as_object, leftovers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.dialect.anomalies import Anomalies
    from streamweld._pure.json.scanner import Path, Payload


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


@dataclass(slots=True, frozen=True)
class Unread:
    """A part of unknown type, as sent."""

    raw: str


Piece = Text | File | Unread


def read_content(payload: Payload, content: object, path: Path, notes: Anomalies) -> list[Piece]:
    """Return the pieces of content: a string, or a list of parts in order."""
    if isinstance(content, str):
        return [Text("text", content)] if content else []
    if not is_array(content):
        if content is not None:
            notes.shape(path)
        return []
    pieces: list[Piece] = []
    for position, part in enumerate(content):
        here = (*path, position)
        if is_object(part):
            pieces += _read_part(payload, part, here, notes)
        elif part is not None:
            notes.shape(here)
    return [piece for piece in pieces if not isinstance(piece, Text) or piece.text]


def image_files(payload: Payload, images: object, path: Path, notes: Anomalies) -> list[File]:
    """Return the files of an `images` member: a list of `{"image_url": {"url"}}`."""
    if not is_array(images):
        notes.shape(path)
        return []
    files: list[File] = []
    for position, image in enumerate(images):
        here = (*path, position)
        if is_object(image):
            found = _image(payload, image, here, notes)
            if found is not None:
                files.append(found)
                continue
        if image is not None:
            notes.shape(here)
    return files


def _read_part(payload: Payload, part: dict[str, Any], path: Path, notes: Anomalies) -> list[Piece]:
    """Decode a part by the member with its content, because gateways disagree about `type`."""
    if part.get("thinking") is not None:
        return [Text("reasoning", text) for text in _texts(part["thinking"])]
    if isinstance(part.get("refusal"), str):
        return [Text("refusal", part["refusal"])]
    if isinstance(part.get("text"), str):
        return [Text("text", part["text"])]
    if is_typed_tool_use(part):
        return []  # `calls` reads it
    return [_image(payload, part, path, notes) or Unread(payload.raw(*path) or "null")]


def _texts(thinking: object) -> list[str]:
    """Return the texts of Mistral's `thinking`: a text, or a list of text parts."""
    if isinstance(thinking, str):
        return [thinking]
    if not is_array(thinking):
        return []
    texts = [item.get("text") for item in thinking if is_object(item)]
    return [text for text in texts if isinstance(text, str)]


def _image(payload: Payload, image: Mapping[str, Any], path: Path, notes: Anomalies) -> File | None:
    holder = image.get("image_url")
    url = holder.get("url") if is_object(holder) else holder
    if not isinstance(url, str) or not url:
        return None
    url = notes.clean(url)
    metadata = as_object(leftovers(payload, path, image, IMAGE_FIELDS))
    if url.startswith("data:"):
        kind, comma, data = url[5:].partition(",")
        if comma and kind.endswith(";base64"):
            return File(kind[: -len(";base64")], data, None, metadata)
    return File(None, None, url, metadata)
