"""Removes repeated text if each content delta contains all of the text so far (AM8). The default mode, `delta`, does
not remove anything.

`cumulative`: a piece that begins with the text so far replaces that text. `auto`: the same, but only once a piece has
extended a text of at least `AUTO_FROM` characters. Neither `cumulative` nor `auto` is the default, because real text
may happen to repeat itself.
"""

from __future__ import annotations

from typing import Literal

__all__ = ["AUTO_FROM", "ContentMode"]

AUTO_FROM = 4  # minimum length in characters of a text that `auto` treats as repeated; "a" before "and" may be chance
_BLANK = " \t\n\r\x0c"


class ContentMode:
    """Removes repeated text from the content of one choice.

    Each comparison takes time proportional to the length of the piece.
    """

    __slots__ = ("_doubted", "_length", "_pieces", "cumulative", "reported")

    def __init__(self, mode: Literal["delta", "auto", "cumulative"]) -> None:
        self.cumulative = mode == "cumulative"
        self.reported = False  # a removed repetition has already been reported
        self._doubted = False  # `is_doubtful` has already returned True
        self._pieces: list[str] = []
        self._length = 0

    def is_doubtful(self, text: str) -> bool:
        """AM13: return True if the piece begins with the text so far, but that text is too short to be treated as
        repeated. Return True at most once.
        """
        if self._doubted or self.cumulative or not 0 < self._length < min(AUTO_FROM, len(text)):
            return False
        so_far = "".join(self._pieces)
        self._doubted = bool(so_far.strip(_BLANK)) and text.startswith(so_far)
        return self._doubted

    def read(self, text: str) -> str:
        """Return the piece without the earlier text that the piece repeats."""
        enough = len(text) >= self._length if self.cumulative else len(text) > self._length >= AUTO_FROM
        if enough and self._length:
            self._pieces = ["".join(self._pieces)]
            if text.startswith(self._pieces[0]):
                self.cumulative = True
                text = text[self._length :]
        if text:
            self._pieces.append(text)
            self._length += len(text)
        return text
