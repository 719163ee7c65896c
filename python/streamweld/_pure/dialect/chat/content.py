"""Splits the content of a delta or message into typed pieces. Content is a string, a part, or a list of parts (Mistral
and multimodal gateways) or strings. This module also decodes `images` members and structured reasoning.

Parts with a documented shape are decoded. Any other part is kept unchanged.
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
    """The JSON of a part with an unknown type."""

    raw: str


@dataclass(slots=True, frozen=True)
class Signature:
    """The signature of the preceding reasoning. A client must send the signature back in a later turn."""

    text: str


Piece = Text | File | Signature | Unread

_REASONING_TYPES = ("reasoning", "reasoning_text", "summary_text", "thinking")  # not a set: a type may be unhashable
_REASONING_MEMBERS = ("thinking", "reasoning", "summary", "content", "text")  # in order of precedence


def read_content(payload: Payload, content: object, path: Path, notes: Anomalies) -> list[Piece]:
    """Split content into pieces. The content is a string, a single part, or a list of parts and strings. Empty texts
    are omitted.
    """
    if isinstance(content, str):
        return [Text("text", content)] if content else []
    pieces: list[Piece] = []
    if is_object(content):
        pieces = _read_part(payload, content, path, notes)
    elif is_array(content):
        for position, part in enumerate(content):
            here = (*path, position)
            if is_object(part):
                pieces += _read_part(payload, part, here, notes)
            elif isinstance(part, str):
                pieces.append(Text("text", part))
            elif part is not None:
                notes.shape(here)
    elif content is not None:
        notes.shape(path)
    return [piece for piece in pieces if not isinstance(piece, Text) or piece.text]


def read_reasoning(value: object) -> tuple[str, str] | None:
    """Return the text and the last signature of reasoning that is an object or a list of objects.

    Return None if the reasoning has neither text nor a signature.
    """
    texts: list[str] = []
    signature = ""
    for entry in value if is_array(value) else [value]:
        if is_object(entry):
            texts += _reasoning_texts(entry) or []
            signature = _signature(entry) or signature
    return ("".join(texts), signature) if texts or signature else None


def image_files(payload: Payload, images: object, path: Path, notes: Anomalies) -> list[File]:
    """Return the files in an `images` member, which is a list of `{"image_url": {"url"}}`."""
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
    """Decode a part by the member that contains its content, because gateways disagree about `type`."""
    if part.get("thinking") is not None or part.get("type") in _REASONING_TYPES:
        return _reasoning_part(payload, part, path, notes)
    if isinstance(part.get("refusal"), str):
        return [Text("refusal", part["refusal"])]
    if isinstance(part.get("text"), str):
        return [Text("text", part["text"])]
    if is_typed_tool_use(part):
        return []  # decoded in `calls`
    return [_image(payload, part, path, notes) or Unread(payload.raw(*path) or "null")]


def _reasoning_part(payload: Payload, part: Mapping[str, Any], path: Path, notes: Anomalies) -> list[Piece]:
    texts = _reasoning_texts(part)
    signature = _signature(part)
    if texts is None and not signature:
        return [Unread(payload.raw(*path) or "null")]
    pieces: list[Piece] = [Text("reasoning", text) for text in texts or ()]
    return [*pieces, Signature(notes.clean(signature))] if signature else pieces


def _reasoning_texts(part: Mapping[str, Any]) -> list[str] | None:
    """Return the texts of the first reasoning member that contains text, or None if the part has no reasoning
    member.
    """
    texts: list[str] | None = None
    for member in _REASONING_MEMBERS:
        if part.get(member) is not None:
            texts = [text for text in _texts(part[member]) if text]
            if texts:
                break
    return texts


def _signature(part: Mapping[str, Any]) -> str:
    """Return the last signature in a part or its list elements, or an empty string."""
    found = ""
    lists = (part.get(member) for member in _REASONING_MEMBERS)
    for holder in (part, *(entry for entries in lists if is_array(entries) for entry in entries)):
        signature = holder.get("signature") if is_object(holder) else None
        found = signature if isinstance(signature, str) and signature else found
    return found


def _texts(value: object) -> list[str]:
    """Return the texts in a reasoning value, which is a string or a list of text parts (Mistral, Databricks)."""
    if isinstance(value, str):
        return [value]
    if not is_array(value):
        return []
    texts = [item.get("text") for item in value if is_object(item)]
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
