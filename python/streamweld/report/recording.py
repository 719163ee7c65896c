"""Read a file to report: the plain body of a response, or a recording with the times of its pieces.

`streamweld.testing.recording` describes the format of a recording, and reads it.
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
    """A body, and when its pieces were received: `(byte offset, seconds)` for each, or nothing if that is not known."""

    name: str
    gateway: str
    body: bytes
    times: tuple[tuple[int, float], ...] = ()

    def seconds_at(self, offset: int) -> float | None:
        """When the byte was received; None if that is not known."""
        number = bisect_right(self.times, (offset, float("inf")))
        return self.times[number - 1][1] if number else None


def read(path: Path, name: str, gateway: str) -> Recorded:
    """Read a file.

    Args:
        path: the file.
        name: how the report calls it.
        gateway: the row of the table of gateways and codes that it counts for.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it begins as a recording and a line of it is not valid.
    """
    data = path.read_bytes()
    if not data.startswith(_MARK):
        return Recorded(name, gateway, data)
    pieces = [piece for piece in read_recording(path).pieces if piece.data]
    starts = accumulate((len(piece.data) for piece in pieces), initial=0)
    times = tuple(zip(starts, (piece.at for piece in pieces), strict=False))
    return Recorded(name, gateway, b"".join(piece.data for piece in pieces), times)
