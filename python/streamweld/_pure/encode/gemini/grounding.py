"""Writes the cited pages of a Gemini candidate as its `groundingMetadata`.

Gemini counts positions in bytes of the candidate's whole text, and sends the pages with the finish reason. All
positions are therefore converted at the end, in one pass over the text:
https://ai.google.dev/api/generate-content#Segment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from streamweld._pure.encode.common.writer import members, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Grounding", "WrittenPart"]

# Maximum size of the texts of all segments in a response, in bytes. Segments can overlap, so without a limit the
# texts could be much longer than the response. Clients do not need the text of a segment, because they have the
# positions.
_MOST_SEGMENT_TEXT: Final = 1 << 20


@dataclass(slots=True)
class WrittenPart:
    """The place of a part in the candidate's text, in characters."""

    start: int
    length: int = 0
    is_split: bool = False  # text of another part follows a piece of this part


@dataclass(slots=True)
class _Candidate:
    """The text and the cited pages of one candidate."""

    texts: list[str] = field(default_factory=list[str])
    length: int = 0
    ended_length: int = 0  # length of the parts that have ended
    parts: dict[int, WrittenPart] = field(default_factory=dict[int, WrittenPart])  # open parts
    pages: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    # Cited ranges, each with the number of its page.
    supports: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])


class Grounding:
    """The cited pages of all candidates."""

    __slots__ = ("_candidates", "_room")

    def __init__(self) -> None:
        self._candidates: dict[int, _Candidate] = {}
        self._room = _MOST_SEGMENT_TEXT

    def add_text(self, choice: int, part: int, text: str) -> None:
        """Record text that was written for a part."""
        candidate = self._candidate(choice)
        written = candidate.parts.setdefault(part, WrittenPart(candidate.length))
        written.is_split = written.is_split or written.start + written.length != candidate.length
        written.length += len(text)
        candidate.texts.append(text)
        candidate.length += len(text)

    def end_part(self, choice: int, part: int) -> WrittenPart:
        """Return the place of a part that has ended."""
        candidate = self._candidate(choice)
        written = candidate.parts.pop(part, None) or WrittenPart(candidate.length)
        candidate.ended_length += written.length
        return written

    def ended_length(self, choice: int) -> int:
        """Return the number of characters in the candidate's parts that have ended."""
        return self._candidate(choice).ended_length

    def add_page(self, choice: int, url: str, title: str | None) -> int:
        """Add a cited page, and return its number. A page that was already cited is not added again."""
        pages = self._candidate(choice).pages
        return pages.setdefault((url, title or ""), len(pages))

    def add_support(self, choice: int, page: int, start: int, end: int) -> None:
        """Record that a range of the candidate's text cites a page. A range that is empty or begins before the text is
        ignored.
        """
        if 0 <= start < end:
            self._candidate(choice).supports.append((start, end, page))

    def member(self, choice: int) -> str:
        """Return the member of the candidate's last chunk, with a comma before it. The result is empty if the candidate
        cites no page.
        """
        candidate = self._candidate(choice)
        if not candidate.pages:
            return ""
        chunks = [
            members(web=members(uri=quoted(url), title=quoted(title) if title else None))
            for url, title in candidate.pages
        ]
        supports = self._supports(candidate)
        listed = f"[{','.join(supports)}]" if supports else None
        grounding = members(groundingChunks=f"[{','.join(chunks)}]", groundingSupports=listed)
        return f',"groundingMetadata":{grounding}'

    def _candidate(self, choice: int) -> _Candidate:
        return self._candidates.setdefault(choice, _Candidate())

    def _supports(self, candidate: _Candidate) -> list[str]:
        text = "".join(candidate.texts)
        supports = candidate.supports
        offsets = _byte_offsets(text, {place for start, end, _ in supports for place in (start, end)})
        return [
            members(
                segment=self._segment(text, (start, end), (offsets[start], offsets[end])),
                groundingChunkIndices=f"[{page}]",
            )
            for start, end, page in supports
        ]

    def _segment(self, text: str, characters: tuple[int, int], offsets: tuple[int, int]) -> str:
        size = offsets[1] - offsets[0]
        fits = size <= self._room
        if fits:
            self._room -= size
        return members(
            startIndex=str(offsets[0]),
            endIndex=str(offsets[1]),
            text=quoted(text[slice(*characters)]) if fits else None,
        )


def _byte_offsets(text: str, places: Iterable[int]) -> dict[int, int]:
    """Return the position of each place in the UTF-8 form of the text. The places are counted in characters."""
    offsets: dict[int, int] = {}
    before = offset = 0
    for place in sorted(places):
        offset += len(text[before:place].encode())
        offsets[place] = offset
        before = place
    return offsets
