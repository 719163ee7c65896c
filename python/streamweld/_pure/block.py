"""Cuts an event stream into blocks: the bytes up to and with a blank line, whether an event came of them or not.

Knows line ends (LF, CR, CRLF) and how an event gets its name, and nothing else of the format. What it gives does not
depend on how the bytes came: the LF of a CRLF that ends a block belongs to that block, also where it comes later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Place", "Splitter", "behind_opening", "named"]

_BOM = b"\xef\xbb\xbf"

# Of a piece: inside of a block, at its end, or the LF that belongs to the end of the block before.
Place: TypeAlias = Literal["inside", "end", "behind"]


class Splitter:
    """One stream."""

    __slots__ = ("_after_cr", "_ended", "_in_line")

    def __init__(self) -> None:
        self._in_line = False  # the last line has bytes and no end
        self._after_cr = False
        self._ended = False  # the last byte ended a block

    def split(self, data: bytes) -> Iterator[tuple[bytes, Place]]:
        """The bytes in pieces, none of which goes beyond the end of a block."""
        start = 0
        if self._after_cr and data.startswith(b"\n"):
            start = 1
            yield b"\n", "behind" if self._ended else "inside"
        if start == len(data):
            self._after_cr = self._after_cr and not start
            return
        self._after_cr = data.endswith(b"\r")
        at = start
        for line in data[start:].splitlines(keepends=True):  # of bytes it splits at LF, CR and CRLF alone
            at += len(line)
            ends = line[-1:] in (b"\n", b"\r")
            blank = not self._in_line and ends and len(line) <= 2 and not line.strip(b"\r\n")
            self._in_line = not ends
            if blank:
                yield data[start:at], "end"
                start = at
        self._ended = start == at
        if start < at:
            yield data[start:at], "inside"


def behind_opening(block: bytes, opening: bytes, *, is_first: bool) -> bytes:
    """The block behind others. A byte order mark is one at the very beginning of a stream alone, and stays there."""
    rest = block.removeprefix(_BOM) if is_first else block
    return block[: len(block) - len(rest)] + opening + rest


def named(block: bytes, name: str) -> bytes:
    """The block, which ends in a blank line and has others, with that name for its event and with no other."""
    *lines, blank = block.splitlines(keepends=True)
    end = lines[-1][len(lines[-1].rstrip(b"\r\n")) :]
    others = [line for line in lines if line.partition(b":")[0].rstrip(b"\r\n") != b"event"]
    return b"".join([*others, f"event: {name}".encode(), end, blank])
