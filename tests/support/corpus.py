"""The recorded streams: their location, their metadata, and which of them a test run has read.

They are third-party data outside the repository ($STREAMWELD_CORPUS, default ../shared/corpus). If the corpus is
missing, its suites are skipped with a message, and the count in the summary is 0.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.places import CORPUS

ROOT = CORPUS
RAN: set[str] = set()  # names of the streams that this process has read
# Folder of the corpus -> dialect; `other` contains streams of formats outside the six dialects.
FOLDERS = {
    "chat": "chat",
    "responses": "responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "aisdk-parts": "ai-sdk-parts",
    "aisdk-ui": "ai-sdk-ui",
}


@dataclass(frozen=True)
class Recording:
    """One stream of the corpus with its manifest row."""

    name: str
    folder: str
    wrapped: bool
    notes: tuple[str, ...]
    confidence: str
    size: int
    stream: Path
    expectation: Path

    @property
    def dialect(self) -> str:
        return FOLDERS[self.folder]

    @property
    def body(self) -> bytes:
        RAN.add(f"{self.folder}/{self.name}")
        return self.stream.read_bytes()

    @property
    def expected(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.expectation.read_text(encoding="utf-8"))
        return loaded


@cache
def recordings(folder: str = "chat") -> tuple[Recording, ...]:
    """Return the streams of one folder."""
    manifest = ROOT / "manifest.jsonl"
    if not manifest.is_file():
        return ()
    rows = [json.loads(line) for line in manifest.read_text(encoding="utf-8").splitlines()]
    return tuple(
        Recording(
            name=Path(row["file"]).name,
            folder=folder,
            wrapped=row["wrapped"],
            notes=tuple(row.get("notes") or ()),
            confidence=row.get("expected_confidence") or "",
            size=row["bytes"],
            stream=ROOT / row["file"],
            expectation=ROOT / row.get("expected", ""),
        )
        for row in rows
        if row["dialect"] == folder
    )


def sampled(found: list[Recording], share: int) -> list[Recording]:
    """Return every `share`-th recording, for a slow suite; all of them with STREAMWELD_FULL=1."""
    return found if os.environ.get("STREAMWELD_FULL") == "1" else found[::share]


def all_recordings() -> tuple[Recording, ...]:
    """Return the streams of all six dialects."""
    return tuple(recording for folder in FOLDERS for recording in recordings(folder))


def absent() -> str | None:
    """Return the reason to skip, or None if the corpus is available."""
    return None if recordings() else f"no recorded streams at {ROOT} (set STREAMWELD_CORPUS)"
