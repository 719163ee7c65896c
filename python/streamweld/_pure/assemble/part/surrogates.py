"""Joins the halves of a surrogate pair that two pieces of one text brought; a half that stays alone becomes U+FFFD.

One joiner per channel (a call's arguments, a choice's text, its reasoning, its refusal). It knows text only.
"""

from __future__ import annotations

from streamweld._pure.json.scanner import has_lone_surrogate, replace_lone_surrogates

__all__ = ["Joiner"]

_REPLACEMENT = "\ufffd"


class Joiner:
    """What one channel holds back between two pieces: at most one high half."""

    __slots__ = ("held", "lone")

    def __init__(self) -> None:
        self.held = ""
        self.lone = False  # the last piece, or the flush, had a half that stands alone

    def push(self, text: str) -> str:
        """The piece as it may be used: whole characters only."""
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
        """The channel ends: what is held has no other half."""
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
