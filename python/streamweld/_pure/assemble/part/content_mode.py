"""AM8: what a piece of content means where deltas may repeat the text so far. Off (`delta`) unless a caller asks.

`cumulative`: a piece that begins with the text so far is that text. `auto`: the same from the first piece on that has
more than all of a text of some length. Plain text has no grammar that could tell, so neither is the default. It knows
text only.
"""

from __future__ import annotations

from typing import Literal

__all__ = ["ContentMode"]

_AUTO_FROM = 4  # characters: "a" before "and" is real
_BLANK = " \t\n\r\x0c"


class ContentMode:
    """Reads the content of one choice. Linear: a comparison costs at most what the piece costs."""

    __slots__ = ("_doubted", "_length", "_pieces", "cumulative", "said")

    def __init__(self, mode: Literal["delta", "auto", "cumulative"]) -> None:
        self.cumulative = mode == "cumulative"
        self.said = False  # the caller was told that this stream repeats
        self._doubted = False  # the same of a piece that may have repeated
        self._pieces: list[str] = []
        self._length = 0

    def is_doubtful(self, text: str) -> bool:
        """AM13: whether the piece begins with all of a text that is too short to tell. True once."""
        if self._doubted or self.cumulative or not 0 < self._length < min(_AUTO_FROM, len(text)):
            return False
        so_far = "".join(self._pieces)
        self._doubted = bool(so_far.strip(_BLANK)) and text.startswith(so_far)
        return self._doubted

    def read(self, text: str) -> str:
        """What the piece adds."""
        enough = len(text) >= self._length if self.cumulative else len(text) > self._length >= _AUTO_FROM
        if enough and self._length:
            self._pieces = ["".join(self._pieces)]
            if text.startswith(self._pieces[0]):
                self.cumulative = True
                text = text[self._length :]
        if text:
            self._pieces.append(text)
            self._length += len(text)
        return text
