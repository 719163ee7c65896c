"""Split a body that is one JSON array (Gemini without `alt=sse`) into its elements.

Each element is returned with its offset as soon as it is complete; reads may have any size. The first bytes of the body
are held until they show whether it is an array. If it is not an array, these bytes are returned to be parsed as an
event stream. Only brackets and strings are tracked, so the caller must check whether an element is valid JSON.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from streamweld._pure.sse.block_splitter import ARRAY_WINDOW, inside_of_array

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ArrayBody", "ElementTooLong"]

_BLANK: Final = b" \t\n\r"
_STRUCTURE: Final = re.compile(rb'["{}\[\]]')
_STRING_END: Final = re.compile(rb'["\\]')
_PLAIN_END: Final = re.compile(rb"[,\] \t\n\r]")


class ElementTooLong(Exception):
    """Raised if an element is longer than the limit. The element begins at `offset`."""

    def __init__(self, offset: int, limit: int) -> None:
        super().__init__(offset, limit)
        self.offset = offset
        self.limit = limit


class ArrayBody:
    """State of the splitter for one body.

    `is_one` is True for an array, False for another body, and None while undecided.
    """

    __slots__ = (
        "_at",
        "_depth",
        "_escaped",
        "_held",
        "_limit",
        "_opened",
        "_parts",
        "_plain",
        "_size",
        "_start",
        "_string",
        "closed",
        "is_one",
        "spilled",
    )

    def __init__(self, limit: int | None) -> None:
        self.is_one: bool | None = None
        self.closed = False  # True once the closing bracket of the array was read
        self.spilled: int | None = None  # offset of the first byte after the array that is not whitespace
        self._limit = limit
        self._held = b""  # the first bytes of the body, held while its kind is undecided
        self._at = 0  # number of bytes of the array that have been read
        # State of the unfinished element.
        self._opened = False
        self._start = 0
        self._parts: list[bytes] = []
        self._size = 0
        self._depth = 0
        self._string = False
        self._escaped = False
        self._plain = False  # the element is not an object, array, or string

    @property
    def pending(self) -> bytes:
        """The bytes of the unfinished element."""
        self._parts = [b"".join(self._parts)]
        return self._parts[0]

    @property
    def held(self) -> bytes:
        """The first bytes of the body, held back while its kind is undecided."""
        return self._held

    def decide(self, data: bytes) -> bytes | None:
        """Add the next bytes, and decide the kind of body if possible.

        Returns the bytes to parse next, without the opening bracket of an array. Returns None while undecided.
        """
        self._held += data
        window = self._held[:ARRAY_WINDOW]
        inside = inside_of_array(window)
        if inside is not None:
            self.is_one, self._at = inside > 0, inside
        elif len(window) == ARRAY_WINDOW:
            self.is_one = False
        if self.is_one is None:
            return None
        taken, self._held = self._held, b""
        return taken[self._at :]

    def ends_in(self, data: bytes) -> bool:
        """Return True if the body is an array and an element ends in these next bytes. Does not store the bytes."""
        known = self.decide(data) if self.is_one is None else data
        if known is None or not self.is_one:
            return False
        ends = False
        for _, _, over in self._pieces(known):
            ends = ends or over
        return ends

    def feed(self, data: bytes) -> Iterator[tuple[bytes, int]]:
        """Yield the elements that end in these bytes, with the offset of each. An unfinished element is stored."""
        for at, stop, over in self._pieces(data):
            self._parts.append(data[at:stop])
            self._size += stop - at
            if self._limit is not None and self._size > self._limit:
                raise ElementTooLong(self._start, self._limit)
            if over:
                element = self.pending
                self._parts, self._size = [], 0
                yield element, self._start

    def _pieces(self, data: bytes) -> Iterator[tuple[int, int, bool]]:
        """Yield the start and end of each piece of an element in these bytes, and whether the element ends there."""
        base, at, end = self._at, 0, len(data)
        self._at += end
        while at < end:
            if not self._opened:
                at = self._between(data, at, base)
                continue
            stop, over = self._inside(data, at)
            self._opened = not over
            yield at, stop, over
            at = stop

    def _between(self, data: bytes, at: int, base: int) -> int:
        """Return the position of the next element, or the end of the bytes."""
        while at < len(data) and (data[at] in _BLANK or (data[at : at + 1] == b"," and not self.closed)):
            at += 1
        if at == len(data):
            return at
        if self.closed:
            if self.spilled is None:
                self.spilled = base + at
            return len(data)
        if data[at : at + 1] == b"]":
            self.closed = True
            return at + 1
        self._opened, self._start = True, base + at
        self._depth, self._string, self._escaped = 0, False, False
        self._plain = data[at : at + 1] not in (b"{", b"[", b'"')
        return at

    def _inside(self, data: bytes, at: int) -> tuple[int, bool]:
        """Return the position up to which these bytes belong to the element, and whether the element ends there."""
        if self._plain:
            found = _PLAIN_END.search(data, at)
            return (len(data), False) if found is None else (found.start(), True)
        while at < len(data):
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            found = (_STRING_END if self._string else _STRUCTURE).search(data, at)
            if found is None:
                return len(data), False
            at = found.end()
            match found[0]:
                case b"\\":
                    self._escaped = True
                case b'"':
                    self._string = not self._string
                case b"{" | b"[":
                    self._depth += 1
                case _:
                    self._depth -= 1
            if self._depth <= 0 and not self._string and not self._escaped:
                return at, True
        return len(data), False
