"""Decodes the sources, files, and errors of an AI SDK stream.

Accepts the member names of all three provider specifications and of `streamText`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.ai_sdk.part import data_url
from streamweld._pure.dialect.upstream_error import ErrorFields, is_problem, read_error, reports_failure
from streamweld._pure.json.kinds import is_object
from streamweld._pure.json.members import as_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.dialect.ai_sdk.part import TypedPart
    from streamweld._pure.json.scanner import Path, Payload

_DOCUMENT = ("id", "mediaType", "title", "filename")
_FILE_TEXTS = ("base64", "base64Data")  # members of a `GeneratedFile` that contain its data


def read_source(part: TypedPart, assembler: Assembler) -> None:
    """Handle `source`, which describes a web page with a URL, or a document."""
    title, url = part.descriptive_string("title"), part.descriptive_string("url")
    document = None
    if part.value.get("sourceType") == "document":
        members = part.payload.members()
        document = as_object({key: members[key] for key in _DOCUMENT if key in members})
    elif url is None:
        assembler.unknown(part.event, part.raw)
        return
    identity = None if document is not None else part.json("id")
    assembler.source(0, url, title, document, part.metadata(("id", identity)))


def read_file(part: TypedPart, assembler: Assembler) -> None:
    """Handle `file` and `reasoning-file`, which contain base64 data or a URL.

    `streamText` wraps the content of either part in a `file` member.
    """
    media_type, data, url = part.descriptive_string("mediaType"), None, None
    path: Path = ("data",)
    sent: object = part.value.get("data")
    wrapped = part.value.get("file")
    if is_object(wrapped):
        path, sent = ("file",), wrapped
        media_type = media_type or _text(part, wrapped.get("mediaType"))
    if is_object(sent):
        # Specification V4 wraps the file in an object whose `type` is `url` or `data`, which is also the name of the
        # member with the content. A `GeneratedFile` contains its data in `base64` or `base64Data` instead.
        url = _text(part, sent.get("url"))
        found = [sent.get(key) for key in ("data", *_FILE_TEXTS)]
        data = next((text for text in found if isinstance(text, str) and text), None)
    elif isinstance(sent, str):
        data = sent
    data = None if data is None else part.notes.clean(data)
    if data is not None and url is None and data.startswith(("http://", "https://", "data:")):
        data, url = None, data
    inline = None if url is None else data_url(url)
    if inline is not None:
        media_type, data, url = media_type or inline[0], inline[1], None
    if data is None and url is None:
        if sent is not None:
            part.notes.shape(path)
        assembler.unknown(part.event, part.raw)
        return
    kind = None if part.kind == "file" else '"reasoning-file"'
    assembler.file(0, media_type, data, url, part.metadata(("type", kind)))


def error_of(payload: Payload, value: Mapping[str, Any]) -> ErrorFields:
    """Read the error of an `error` part.

    A JavaScript error has `name` instead of a type and `statusCode` instead of a code.
    """
    error = value.get("error")
    if error is None:
        return read_error(payload, (), value)
    fields = read_error(payload, ("error",), error)
    if not is_object(error):
        return fields
    name, status = error.get("name"), error.get("statusCode")
    return ErrorFields(
        fields.code or (str(status) if isinstance(status, int) and not isinstance(status, bool) else None),
        fields.kind or (name if isinstance(name, str) and name else None),
        fields.message,
    )


def reports_error(value: Mapping[str, Any]) -> bool:
    """Return whether an object reports an error.

    An object reports an error if it has an `error` member, a message with a code, or no type and another known error
    shape.
    """
    if value.get("error") is not None or (value.get("message") is not None and value.get("code") is not None):
        return True
    return is_problem(value) or (not isinstance(value.get("type"), str) and reports_failure(value))


def _text(part: TypedPart, sent: object) -> str | None:
    return part.notes.clean(sent) if isinstance(sent, str) and sent.strip() else None
