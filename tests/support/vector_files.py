"""Reads `vectors/` in the format that vectors/README.md describes, and rejects anything else."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tests.support.places import VECTORS

HERE = VECTORS
# Folders with complete streams have the names of their dialects; `auto` is for dialect detection.
DIALECTS = ("chat", "responses", "anthropic", "gemini", "ai-sdk-parts", "ai-sdk-ui")
STREAMS = (*DIALECTS, "auto")
KEYS = {
    "convert": {"name", "why", "source", "target", "options", "chunks", "end", "expect"},
    "repair": {"name", "why", "options", "chunks", "end", "expect"},
    "check": {"name", "why", "dialect", "chunks", "violations"},
    "usage": {"name", "why", "dialect", "chunks", "usage", "normalized"},
    "stream": {"name", "quirk", "why", "options", "chunks", "end", "expect", "events"},
    "sse": {
        "name",
        "why",
        "chunks",
        "last_event_id",
        "events",
        "events_after_chunk",
        "final",
        "unterminated",
        "not_compared",
    },
}
EXPECT = {
    "calls", "content", "reasoning", "refusal", "finish", "raw_finish", "choices", "usage", "provider_metadata",
    "completeness", "error", "response_error", "diagnostics", "may", "times",
}  # fmt: skip
CONVERTED = {"frames", "losses", "ordinals", "error"}
REPAIRED = {"same", "out", "repaired", "error", "diagnostics"}


def chunk_bytes(chunk: Any) -> bytes:
    """Return the bytes of one element of `chunks`."""
    if isinstance(chunk, str):
        return chunk.encode()
    if isinstance(chunk, list):
        return b"".join(chunk_bytes(part) for part in chunk)
    if "hex" in chunk:
        return bytes.fromhex(chunk["hex"])
    return bytes(chunk["text"].encode() * chunk["times"])


def chunks_of(vector: dict[str, Any]) -> list[bytes]:
    return [chunk_bytes(chunk) for chunk in vector["chunks"]]


def is_broken(vector: dict[str, Any]) -> bool:
    """Return True if the transport failed after the last chunk, False if the input ended cleanly."""
    end = vector.get("end")
    if end not in (None, "broken"):
        raise ValueError(f"{vector['name']}: end {end!r}")
    return end == "broken"


@cache
def load(layer: str) -> tuple[dict[str, Any], ...]:
    """Return all vectors of a layer, each with its file name as the member `file`."""
    out = []
    for path in sorted((HERE / layer).glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        names = [vector["name"] for vector in document["tests"]]
        if document["format"] != 1 or len(set(names)) != len(names):
            raise ValueError(f"{path}: format {document['format']}, or a name occurs twice")
        for vector in document["tests"]:
            known = KEYS["stream" if layer in STREAMS else layer]
            expected = {"convert": CONVERTED, "repair": REPAIRED}.get(layer, EXPECT)
            unknown = vector.keys() - known | (vector.get("expect", {}).keys() - expected)
            if unknown or not vector["why"]:
                raise ValueError(f"{path}: {vector['name']}: unknown keys {sorted(unknown)}, or no why")
            if layer in STREAMS:
                vector = {**vector, "options": {"dialect": layer, **vector.get("options", {})}}
            shared = {"resource": document["resource"]} if "resource" in document else {}
            out.append({**vector, **shared, "file": path.stem, "layer": layer})
    return tuple(out)


def streams() -> tuple[dict[str, Any], ...]:
    """Return the vectors of all dialects."""
    return tuple(vector for layer in STREAMS for vector in load(layer))


def label(vector: dict[str, Any]) -> str:
    layer = vector["layer"]
    head = f"{layer}-" if layer in STREAMS and layer != "chat" else ""
    return f"{head}{vector['file']}-{vector['name']}"
