"""Joins the halves of a surrogate pair that arrive in two pieces of one text. An unpaired half becomes U+FFFD.

There is one joiner per channel: one for each call's arguments, and one each for a choice's text, reasoning and refusal.
"""

from __future__ import annotations

from streamweld._pure.json.scanner import has_lone_surrogate, replace_lone_surrogates

__all__ = ["Joiner"]

_REPLACEMENT = "\ufffd"


class Joiner:
    """Joiner of one channel. Holds back at most one high surrogate between two pieces."""

    __slots__ = ("held", "lone")

    def __init__(self) -> None:
        self.held = ""
        self.lone = False  # whether the last `push` or `flush` replaced a lone surrogate

    def push(self, text: str) -> str:
        """Return the complete characters; hold back a high surrogate at the end."""
        if not self.held and text.isascii():
            self.lone = False
            return text
        text = self.held + text
        self.held = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self.held = text[-1]
            text = text[:-1]
        return self._clean(text)

    def flush(self) -> str:
        """End the channel: return the replacement for a high surrogate that is still held back."""
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
