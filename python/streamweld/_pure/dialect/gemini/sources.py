"""The sources of one candidate: its grounding chunks, each told once.

Chunks of a stream repeat the grounding metadata, or add to it. Knows the kinds of grounding chunks; the metadata as a
whole is kept elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.json.kinds import is_array, is_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.dialect.anomalies import Anomalies
    from streamweld._pure.json.scanner import Path, Payload

_KINDS = ("web", "retrievedContext", "maps", "image")


class SourceReader:
    """What the decoder remembers of the sources of one candidate."""

    __slots__ = ("_assembler", "_choice", "_told")

    def __init__(self, choice: int, assembler: Assembler) -> None:
        self._choice = choice
        self._assembler = assembler
        self._told: set[str] = set()  # grounding chunks as sent; the assembler counts what is told

    def read(self, payload: Payload, candidate: Mapping[str, Any], path: Path, notes: Anomalies) -> None:
        """The `groundingMetadata.groundingChunks` of a candidate."""
        grounding = candidate.get("groundingMetadata")
        chunks = grounding.get("groundingChunks") if is_object(grounding) else None
        if not is_array(chunks):
            return
        path = (*path, "groundingMetadata", "groundingChunks")
        for chunk, raw in zip(chunks, payload.elements(*path), strict=True):
            if not is_object(chunk) or raw in self._told:
                continue
            self._told.add(raw)
            kind = next((kind for kind in _KINDS if is_object(chunk.get(kind))), None)
            inner: Mapping[str, Any] = {} if kind is None else chunk[kind]
            url, title = _text(inner, "uri", notes), _text(inner, "title", notes)
            # A web page is its URL and its title; of all else the rest is what it is.
            document = None if kind == "web" and url else raw
            self._assembler.source(self._choice, url, title, document, None)


def _text(holder: Mapping[str, Any], key: str, notes: Anomalies) -> str | None:
    value = holder.get(key)
    return notes.clean(value) if isinstance(value, str) and value else None
