"""Reads citations of web pages from annotations, which are flat in Responses and under `url_citation` in Chat.

An Anthropic citation applies to its whole text block. Its search results cite a page if their source is an address.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from streamweld._pure.json.kinds import integer, is_object

__all__ = ["SEARCH_RESULT", "Citation", "FileCitation", "read_citation", "read_file"]

SEARCH_RESULT = "search_result_location"  # Anthropic's type for a result that the request contained
_WEB_SEARCH_RESULT = "web_search_result_location"
_KIND = "url_citation"
_OF_DOCUMENT = ("char_location", "page_location", "content_block_location")
_ADDRESSES = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Citation:
    """One cited page. A field is None if the source did not send it."""

    url: str
    title: str | None
    start: int | None
    end: int | None
    content: str = ""  # text of the page, which OpenRouter sends

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
    kind = annotation.get("type")
    if kind in (_WEB_SEARCH_RESULT, SEARCH_RESULT):
        page, name = annotation.get("url" if kind == _WEB_SEARCH_RESULT else "source"), annotation.get("title")
        if not isinstance(page, str) or not page or (kind == SEARCH_RESULT and not page.startswith(_ADDRESSES)):
            return None
        return Citation(page, name if isinstance(name, str) else None, None if length is None else 0, length)
    if kind != _KIND:
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
    content: object = holder.get("content")
    text = content if isinstance(content, str) else ""
    return Citation(url, title if isinstance(title, str) else None, start, end, text)


@dataclass(frozen=True, slots=True)
class FileCitation:
    """One cited file. Anthropic sends only the position in the file, and not the position in the text."""

    file_id: str
    name: str


def read_file(annotation: Any) -> FileCitation | None:
    """Return the file that an Anthropic citation refers to, or None if the citation has no file id."""
    if not is_object(annotation) or annotation.get("type") not in _OF_DOCUMENT:
        return None
    file_id, title = annotation.get("file_id"), annotation.get("document_title")
    if not isinstance(file_id, str) or not file_id:
        return None
    return FileCitation(file_id, title if isinstance(title, str) else "")
