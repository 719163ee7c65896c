"""Says, byte by byte, whether a text is still a prefix of one JSON value (RFC 8259), is one whole value, or is broken.

It is the only verdict on JSON in this backend: parsers build values, this says what is valid and where it stops being so.
It knows no tool calls, no chunks and no encodings beyond "UTF-8 bytes", and builds no value.
"""

from __future__ import annotations

from typing import Literal

Verdict = Literal["prefix", "complete", "broken"]
Root = Literal["object", "array", "string", "number", "literal"]
Reason = Literal["syntax", "too_deep", "number_too_big"]


class Automaton:
    """Feed it pieces of any size; the state after the last byte does not depend on how the bytes were cut."""

    __slots__ = ()

    verdict: Verdict  # of what was fed so far; a root number is "prefix" until the end, see `final`
    reason: Reason | None  # why it is broken
    pos: int  # bytes fed; when broken, the offset of the first byte that cannot belong to the value
    root: Root | None  # kind of the outermost value; None while only white space was seen
    depth: int
    in_string: bool
    big_integer: bool  # an integer outside [-2^63, 2^64-1] was seen
    lone_surrogate: bool  # an escaped surrogate without its pair was seen

    def __init__(self, max_depth: int | None = None) -> None:
        raise NotImplementedError

    def feed(self, data: bytes | str) -> Verdict:
        """Take more bytes (a str stands for its UTF-8) and return `verdict`. After "broken" nothing changes."""
        raise NotImplementedError

    def copy(self) -> Automaton:
        raise NotImplementedError

    def after(self, data: bytes | str) -> Automaton:
        """A copy that was fed `data`: what an append would make of the text."""
        raise NotImplementedError

    @property
    def final(self) -> Verdict:
        """The verdict if the text ends here: a root number is "complete" (or "broken": too big), an unfinished value "prefix"."""
        raise NotImplementedError


def verdict(data: bytes | str, max_depth: int | None = None) -> Automaton:
    """An automaton that was fed one whole text; ask it for `.final`."""
    raise NotImplementedError
