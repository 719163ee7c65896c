"""Joins the halves of a surrogate pair that arrive in two pieces of a text. A half without its counterpart becomes
U+FFFD.

Each call has a joiner for its arguments, each choice has one for each channel, and each part of an item has one for its
text.
"""

from __future__ import annotations

from streamweld._pure.json.scanner import has_lone_surrogate, replace_lone_surrogates

__all__ = ["Joiner"]

_REPLACEMENT = "\ufffd"


class Joiner:
    """Joins surrogate halves in the pieces of one text. Holds back at most one high surrogate, at the end of a
    piece.
    """

    __slots__ = ("divides", "held", "lone")

    def __init__(self) -> None:
        self.held = ""
        self.divides = False  # the last `push` began or ended within a surrogate pair
        self.lone = False  # the last `push` or `flush` replaced a lone surrogate

    def push(self, text: str) -> str:
        """Return the piece with lone surrogates replaced, preceded by the half that was held back. Hold back a high
        surrogate at the end of the piece.
        """
        if not self.held and text.isascii():
            self.lone = self.divides = False
            return text
        self.divides = self.held != ""
        text = self.held + text
        self.held = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self.held = text[-1]
            self.divides = True
            text = text[:-1]
        return self._clean(text)

    def flush(self) -> str:
        """End the text: return U+FFFD if a high surrogate is still held back, otherwise an empty string."""
        self.lone = self.held != ""
        self.held = ""
        return _REPLACEMENT if self.lone else ""

    def _clean(self, text: str) -> str:
        if not has_lone_surrogate(text):
            self.lone = False
            return text
        joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        self.lone = has_lone_surrogate(joined)
        return replace_lone_surrogates(joined)
