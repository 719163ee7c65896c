"""Stores the written text of a part, for comparison with the complete text.

The pieces are joined once, at the end of the part, so the cost is linear in the length of the part.
"""

from __future__ import annotations

__all__ = ["WrittenText"]


class WrittenText:
    """The written text of one part."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, text: str) -> None:
        if text:
            self._pieces.append(text)

    def text(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def remaining(self, whole: str) -> str | None:
        """Return what `whole` adds to the written text, or None if `whole` does not begin with the written text."""
        written = self.text()
        return whole[len(written) :] if whole.startswith(written) else None
