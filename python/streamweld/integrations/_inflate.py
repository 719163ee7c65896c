"""Compressed bodies in slices: what a small piece inflates to is never in memory at once (R:A16).

It knows gzip and deflate, and nothing of HTTP but the names that `content-encoding` gives them.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SLICE", "Inflater", "is_plain", "is_readable"]

SLICE: Final = 65_536
"""The most bytes that come out at once."""

_GZIP: Final = frozenset({"gzip", "x-gzip"})
_PLAIN: Final = frozenset({"", "identity"})


def is_plain(encoding: str) -> bool:
    """Whether a `content-encoding` changes nothing."""
    return encoding.strip().lower() in _PLAIN


def is_readable(encoding: str) -> bool:
    """Whether `Inflater` takes bodies of this `content-encoding`."""
    word = encoding.strip().lower()
    return word in _PLAIN or word in _GZIP or word == "deflate"


class Inflater:
    """The plain bytes of one body.

    Args:
        encoding: the value of `content-encoding`, of which `is_readable` says that it can be read.
    """

    __slots__ = ("_first", "_gzip", "_state")

    def __init__(self, encoding: str) -> None:
        word = encoding.strip().lower()
        self._gzip = word in _GZIP
        self._state = None if word in _PLAIN else self._new(raw=False)
        self._first = True

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The bytes that are in `data`, at most `SLICE` at once.

        Raises:
            zlib.error: for what is not of the encoding.
        """
        if self._state is None:
            yield data
            return
        while data:
            if self._state.eof:  # another member of the same gzip body; trailing bytes that are none are an error
                self._state = self._new(raw=False)
            try:
                out = self._state.decompress(data, SLICE)
            except zlib.error:
                if self._gzip or not self._first:
                    raise
                self._state = self._new(raw=True)  # RFC 9110 8.4.1.2: some send deflate without its wrapper
                out = self._state.decompress(data, SLICE)
            self._first = False
            data = self._state.unconsumed_tail or self._state.unused_data
            if out:
                yield out
            if not data and len(out) == SLICE:
                while more := self._state.decompress(b"", SLICE):
                    yield more

    def _new(self, *, raw: bool) -> zlib._Decompress:  # pyright: ignore[reportPrivateUsage] (it has no other name)
        return zlib.decompressobj(31 if self._gzip else -15 if raw else 15)
