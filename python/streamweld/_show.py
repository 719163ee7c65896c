"""Make text from a stream safe to print: one line, without control characters, bidi overrides or ANSI codes."""

from __future__ import annotations

import unicodedata

__all__ = ["printable"]

# Unicode categories of characters that may move or hide text: control, format (bidi and zero-width), surrogate, line
# separator and paragraph separator.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def printable(text: str, limit: int | None = None) -> str:
    """Return `text` with unsafe characters escaped (`\\n`, `\\x1b`), truncated to `limit` characters with a `…`."""
    cut = limit is not None and len(text) > limit
    head = text[:limit] if cut else text
    if not head.isprintable():
        head = "".join([_escape(char) if unicodedata.category(char) in _UNSAFE else char for char in head])
    return head + "…" if cut else head


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
