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
_MAX_SEGMENT_TEXTS: Final = 1 << 20


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


@dataclass(frozen=True, slots=True)
class _Support:
    """A range of a candidate's text, in characters, and the number of the page that it cites."""

    choice: int
    page: int
    start: int
    end: int


class Grounding:
    """The cited pages of all candidates."""

    __slots__ = ("_candidates", "_supports")

    def __init__(self) -> None:
        self._candidates: dict[int, _Candidate] = {}
        self._supports: list[_Support] = []  # of all candidates, in the order in which the citations arrived

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
            self._supports.append(_Support(choice, page, start, end))

    def members(self) -> dict[int, str]:
        """Return the `groundingMetadata` of each candidate that cites a page."""
        supports = self._written_supports()
        return {
            choice: members(
                groundingChunks=_list(
                    [
                        members(web=members(uri=quoted(url), title=quoted(title) if title else None))
                        for url, title in candidate.pages
                    ]
                ),
                groundingSupports=_list(supports[choice]) if choice in supports else None,
            )
            for choice, candidate in self._candidates.items()
            if candidate.pages
        }

    def _candidate(self, choice: int) -> _Candidate:
        return self._candidates.setdefault(choice, _Candidate())

    def _written_supports(self) -> dict[int, list[str]]:
        """Return the supports of each candidate as JSON."""
        places: dict[int, set[int]] = {}
        for support in self._supports:
            places.setdefault(support.choice, set()).update((support.start, support.end))
        texts = {choice: "".join(self._candidate(choice).texts) for choice in places}
        offsets = {choice: _byte_offsets(texts[choice], found) for choice, found in places.items()}
        written: dict[int, list[str]] = {choice: [] for choice in places}
        room = _MAX_SEGMENT_TEXTS
        for support in self._supports:
            start, end = offsets[support.choice][support.start], offsets[support.choice][support.end]
            fits = end - start <= room
            room -= end - start if fits else 0
            text = quoted(texts[support.choice][support.start : support.end]) if fits else None
            segment = members(startIndex=str(start), endIndex=str(end), text=text)
            written[support.choice].append(members(segment=segment, groundingChunkIndices=f"[{support.page}]"))
        return written


def _list(elements: list[str]) -> str:
    return f"[{','.join(elements)}]"


def _byte_offsets(text: str, places: Iterable[int]) -> dict[int, int]:
    """Return the position of each place in the UTF-8 form of the text. The places are counted in characters."""
    offsets: dict[int, int] = {}
    before = offset = 0
    for place in sorted(places):
        offset += len(text[before:place].encode())
        offsets[place] = offset
        before = place
    return offsets
