"""Read a file to report on: the plain body of a response, or a recording with the times of its chunks.

`streamweld.testing.recording` describes and reads the format of recordings.
"""

from __future__ import annotations

import gzip
import os
import zlib
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Final

from streamweld._messages import HEAD_BYTES, input_hint
from streamweld._spec import LIMITS
from streamweld.testing.recording import MARK, parse_recording

__all__ = ["Recorded", "read"]

_PIECES: Final = (b'{"at":', b'{"at" :')  # the beginning of every line of a recording except the first


@dataclass(frozen=True, slots=True)
class Recorded:
    """A body, and the times of its chunks: `(byte offset, seconds)` for each chunk, or empty if unknown."""

    name: str
    gateway: str
    body: bytes
    times: tuple[tuple[int, float], ...] = ()

    def seconds_at(self, offset: int) -> float | None:
        """Return the time at which the byte was received, or None if unknown."""
        number = bisect_right(self.times, (offset, float("inf")))
        return self.times[number - 1][1] if number else None


def read(path: str | os.PathLike[str], name: str | None = None, gateway: str | None = None) -> Recorded:
    """Read a file.

    Args:
        path: the file.
        name: the name of the file in the report; the default is the path as given.
        gateway: the gateway to which the table of gateways and codes assigns the file; the default is the name of the
            folder that contains the file.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if the file is not a stream, or if it is a recording with an invalid line.
    """
    name = os.fspath(path) if name is None else name
    path = Path(path)
    gateway = path.absolute().parent.name if gateway is None else gateway
    data = _plain(path) if path.suffix == ".gz" else path.read_bytes()
    if not data.startswith((MARK, *_PIECES)):
        hint = input_hint(data[:HEAD_BYTES])
        if hint:
            raise ValueError(hint)
        return Recorded(name, gateway, data)
    pieces = [piece for piece in parse_recording(data.decode("utf-8")).pieces if piece.data]
    starts = accumulate((len(piece.data) for piece in pieces), initial=0)
    times = tuple(zip(starts, (piece.at for piece in pieces), strict=False))
    return Recorded(name, gateway, b"".join(piece.data for piece in pieces), times)


def _plain(path: Path) -> bytes:
    most = path.stat().st_size * (LIMITS["max_inflate_ratio"] or 1)
    with gzip.open(path) as file:
        try:
            data = file.read(most + 1)
        except (EOFError, zlib.error) as error:
            raise ValueError(str(error)) from None
    if len(data) > most:
        raise ValueError("the decompressed file exceeds the limit max_inflate_ratio")
    return data
