"""Decodes the sources and files of a UI message stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.dialect.ai_sdk.part import data_url
from streamweld._pure.json.members import as_object

if TYPE_CHECKING:
    from streamweld._pure.assemble import Assembler
    from streamweld._pure.dialect.ai_sdk.part import TypedPart

_DOCUMENT = ("sourceId", "mediaType", "title", "filename")


class ShownReader:
    """Decodes the sources and files of one stream."""

    __slots__ = ("_assembler",)

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler

    def source_url(self, chunk: TypedPart) -> None:
        url = chunk.descriptive_string("url")
        if url is None:
            self._assembler.unknown(chunk.event, chunk.raw)
        else:
            self._assembler.source(0, url, chunk.descriptive_string("title"), None, chunk.metadata())

    def source_document(self, chunk: TypedPart) -> None:
        members = chunk.payload.members()
        document = as_object({key: members[key] for key in _DOCUMENT if key in members})
        self._assembler.source(0, None, chunk.descriptive_string("title"), document, chunk.metadata())

    def file(self, chunk: TypedPart) -> None:
        """Handle a `file` or `reasoning-file` chunk. If the URL is a data URL, it contains the file itself."""
        media_type, url = chunk.descriptive_string("mediaType"), chunk.descriptive_string("url")
        if url is None:
            self._assembler.unknown(chunk.event, chunk.raw)
            return
        metadata = chunk.metadata(("type", None if chunk.kind == "file" else '"reasoning-file"'))
        inline = data_url(url)
        if inline is None:
            self._assembler.file(0, media_type, None, url, metadata)
        else:
            self._assembler.file(0, media_type or inline[0], inline[1], None, metadata)
