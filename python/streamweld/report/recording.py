"""Read a file to report: the plain body of a response, or a recording with the times of its chunks.

`streamweld.testing.recording` describes the format of recordings, and reads it.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from streamweld.testing.recording import read_recording

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Recorded", "read"]

_MARK: Final = b'{"streamweld_recording"'


@dataclass(frozen=True, slots=True)
class Recorded:
    """A body, and the times of its chunks: `(byte offset, seconds)` for each, or empty if unknown."""

    name: str
    gateway: str
    body: bytes
    times: tuple[tuple[int, float], ...] = ()

    def seconds_at(self, offset: int) -> float | None:
        """Return when the byte was received; None if unknown."""
        number = bisect_right(self.times, (offset, float("inf")))
        return self.times[number - 1][1] if number else None


def read(path: Path, name: str, gateway: str) -> Recorded:
    """Read a file.

    Args:
        path: the file.
        name: its name in the report.
        gateway: the column of the table of gateways and codes in which it is counted.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it begins as a recording and one of its lines is invalid.
    """
    data = path.read_bytes()
    if not data.startswith(_MARK):
        return Recorded(name, gateway, data)
    pieces = [piece for piece in read_recording(path).pieces if piece.data]
    starts = accumulate((len(piece.data) for piece in pieces), initial=0)
    times = tuple(zip(starts, (piece.at for piece in pieces), strict=False))
    return Recorded(name, gateway, b"".join(piece.data for piece in pieces), times)
