"""What of a part went out, so that its whole text can be held against it.

Knows texts only. Pieces are joined once, when the part ends: a part costs its length, however many pieces it came in.
"""

from __future__ import annotations

__all__ = ["Told"]


class Told:
    """The text of one part as it was written."""

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

    def rest(self, whole: str) -> str | None:
        """What the whole text adds at the end; None where it contradicts what was written."""
        said = self.text()
        return whole[len(said) :] if whole.startswith(said) else None
