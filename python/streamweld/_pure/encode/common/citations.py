"""Citations of web pages, out of the annotations of any source: the one sort that several dialects can write.

Knows the two spellings of OpenAI (flat in Responses, under `url_citation` in Chat Completions); knows no frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamweld._pure.json.kinds import integer, is_object

__all__ = ["Citation", "read_citation"]

_KIND = "url_citation"


@dataclass(frozen=True, slots=True)
class Citation:
    """One cited page; None where the source did not say."""

    url: str
    title: str | None
    start: int | None
    end: int | None


def read_citation(annotation: Any) -> Citation | None:
    """An annotation, if it cites a page."""
    if not is_object(annotation) or annotation.get("type") != _KIND:
        return None
    inner: object = annotation.get(_KIND)
    holder: dict[str, Any] = inner if is_object(inner) else annotation
    url: object = holder.get("url")
    title: object = holder.get("title")
    if not isinstance(url, str) or not url:
        return None
    return Citation(
        url,
        title if isinstance(title, str) else None,
        integer(holder.get("start_index")),
        integer(holder.get("end_index")),
    )
