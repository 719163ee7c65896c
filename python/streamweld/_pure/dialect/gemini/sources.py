"""Decodes the grounding chunks of one candidate, and emits each of them once as a source.

Later payloads of a stream repeat or extend the list of grounding chunks. The `candidate` module stores the complete
grounding metadata.
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
    """Decodes the sources of one candidate."""

    __slots__ = ("_assembler", "_choice", "_emitted")

    def __init__(self, choice: int, assembler: Assembler) -> None:
        self._choice = choice
        self._assembler = assembler
        self._emitted: set[str] = set()  # JSON of the emitted grounding chunks; the assembler limits their number

    def read(self, payload: Payload, candidate: Mapping[str, Any], path: Path, notes: Anomalies) -> None:
        """Emit the elements of a candidate's `groundingMetadata.groundingChunks` that have not been emitted yet."""
        grounding = candidate.get("groundingMetadata")
        chunks = grounding.get("groundingChunks") if is_object(grounding) else None
        if not is_array(chunks):
            return
        path = (*path, "groundingMetadata", "groundingChunks")
        for chunk, raw in zip(chunks, payload.elements(*path), strict=True):
            if not is_object(chunk) or raw in self._emitted:
                continue
            self._emitted.add(raw)
            kind = next((kind for kind in _KINDS if is_object(chunk.get(kind))), None)
            inner: Mapping[str, Any] = {} if kind is None else chunk[kind]
            url, title = _text(inner, "uri", notes), _text(inner, "title", notes)
            # A URL and a title fully describe a web page. For any other kind of source, the complete grounding chunk is
            # kept.
            document = None if kind == "web" and url else raw
            self._assembler.source(self._choice, url, title, document, None)


def _text(holder: Mapping[str, Any], key: str, notes: Anomalies) -> str | None:
    value = holder.get(key)
    return notes.clean(value) if isinstance(value, str) and value else None
