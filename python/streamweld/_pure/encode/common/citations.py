"""Reads citations of web pages from annotations, which are flat in Responses and under `url_citation` in Chat.

An Anthropic citation applies to its whole text block. Other kinds of annotations cannot be represented in other
dialects.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from streamweld._pure.json.kinds import integer, is_object

__all__ = ["Citation", "read_citation"]

_KIND = "url_citation"
_OF_WHOLE_TEXT = "web_search_result_location"


@dataclass(frozen=True, slots=True)
class Citation:
    """One cited page. A field is None if the source did not send it."""

    url: str
    title: str | None
    start: int | None
    end: int | None

    def shifted(self, start: int) -> Citation:
        """Return the citation with its position in a longer text, in which the cited text begins at `start`."""
        if self.start is None or self.end is None:
            return self
        return replace(self, start=self.start + start, end=self.end + start)


def read_citation(annotation: Any, length: int | None = None) -> Citation | None:
    """Return the citation in an annotation, or None if the annotation does not cite a page.

    `length` is the number of characters in the text, or None if the target has a separate form for citations without a
    position.
    """
    if not is_object(annotation):
        return None
    if annotation.get("type") == _OF_WHOLE_TEXT:
        page, name = annotation.get("url"), annotation.get("title")
        if not isinstance(page, str) or not page:
            return None
        return Citation(page, name if isinstance(name, str) else None, None if length is None else 0, length)
    if annotation.get("type") != _KIND:
        return None
    inner: object = annotation.get(_KIND)
    holder: dict[str, Any] = inner if is_object(inner) else annotation
    url: object = holder.get("url")
    title: object = holder.get("title")
    if not isinstance(url, str) or not url:
        return None
    start, end = integer(holder.get("start_index")), integer(holder.get("end_index"))
    if start is None or end is None:
        start = end = length  # the citation follows the text
    return Citation(url, title if isinstance(title, str) else None, start, end)
