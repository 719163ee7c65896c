"""AM8: what a piece of content means where deltas may repeat the text so far. Off (`delta`) unless a caller asks.

`cumulative`: a piece that begins with the text so far is that text. `auto`: the same from the first piece on that has
more than all of a text of some length. Plain text has no grammar that could tell, so neither is the default. It knows
text only.
"""

from __future__ import annotations

from typing import Literal

__all__ = ["ContentMode"]

_AUTO_FROM = 4  # characters: "a" before "and" is real


class ContentMode:
    """Reads the content of one choice. Linear: a comparison costs at most what the piece costs."""

    __slots__ = ("_length", "_pieces", "cumulative", "said")

    def __init__(self, mode: Literal["delta", "auto", "cumulative"]) -> None:
        self.cumulative = mode == "cumulative"
        self.said = False  # the caller was told that this stream repeats
        self._pieces: list[str] = []
        self._length = 0

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
