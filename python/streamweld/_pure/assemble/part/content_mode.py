"""Removes repeated text from the content deltas of gateways that resend all of the text so far (AM8). Off (`delta`) by
default.

`cumulative`: a piece that begins with the text so far replaces that text. `auto`: the same, but only from the first
piece that extends a text of at least `_AUTO_FROM` characters. Neither is the default, because plain text has no grammar
that could confirm a repetition.
"""

from __future__ import annotations

from typing import Literal

__all__ = ["ContentMode"]

_AUTO_FROM = 4  # minimum length in characters for `auto`, because an "a" before "and" may be real text
_BLANK = " \t\n\r\x0c"


class ContentMode:
    """Removes repetitions from the content of one choice.

    Takes linear time: a comparison costs at most the length of the piece.
    """

    __slots__ = ("_doubted", "_length", "_pieces", "cumulative", "reported")

    def __init__(self, mode: Literal["delta", "auto", "cumulative"]) -> None:
        self.cumulative = mode == "cumulative"
        self.reported = False  # the repetition was already reported
        self._doubted = False  # AM13 was already reported
        self._pieces: list[str] = []
        self._length = 0

    def is_doubtful(self, text: str) -> bool:
        """AM13: return True, once, if the piece begins with the text so far and that text is too short to decide."""
        if self._doubted or self.cumulative or not 0 < self._length < min(_AUTO_FROM, len(text)):
            return False
        so_far = "".join(self._pieces)
        self._doubted = bool(so_far.strip(_BLANK)) and text.startswith(so_far)
        return self._doubted

    def read(self, text: str) -> str:
        """Return the new text in the piece."""
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
