"""The one door through which this backend's decoders read JSON payloads.

It gives Python values, the raw text of chosen members on demand, and what must be said about the payload: integers outside
64 bits, keys that stand twice, escaped surrogates. It knows no dialect and no policy; the automaton gives the verdict.
"""

from __future__ import annotations

from typing import Any

Path = tuple[str | int, ...]


class JsonFault(ValueError):
    """The text is not one JSON value. `pos` is the automaton's, in bytes; `reason` is "incomplete", "syntax", "too_deep" or
    "number_too_big"."""

    def __init__(self, reason: str, pos: int) -> None:
        raise NotImplementedError

    reason: str
    pos: int


class Payload:
    """One parsed payload."""

    text: str  # what was parsed
    value: Any  # dict, list, str, int, float, bool or None; lone surrogates stay as they are in str
    overflow: bool  # an integer outside [-2^63, 2^64-1] somewhere
    duplicates: tuple[Path, ...]  # where a key stands twice: the path of the object, then the key; the last value won

    def raw(self, *path: str | int) -> str | None:
        """The text of the member at `path`, as sent; None if there is none. Of a repeated key the last."""
        raise NotImplementedError

    def members(self, *path: str | int) -> dict[str, str]:
        """key -> raw text of every member of the object at `path` ({} if there is no object), in wire order."""
        raise NotImplementedError

    def elements(self, *path: str | int) -> list[str]:
        """The raw text of every element of the array at `path` ([] if there is no array)."""
        raise NotImplementedError


def parse(data: bytes | str, max_depth: int | None = None) -> Payload:
    """Parse one whole payload (bytes are UTF-8, broken sequences replaced) or raise JsonFault."""
    raise NotImplementedError


def has_lone_surrogate(text: str) -> bool:
    raise NotImplementedError


def replace_lone_surrogates(text: str) -> str:
    """Pairs are joined, every surrogate that stands alone becomes U+FFFD."""
    raise NotImplementedError
