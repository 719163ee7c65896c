"""Read a file to report: the plain body of a response, or a recording with the times of its pieces.

A recording is a file of JSON lines. The first line has the member `streamweld_recording`. Each other line has `at`, the
seconds since the start of the response, and the bytes of a piece, as `text` or in `base64`.
"""

from __future__ import annotations

import base64
import json
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

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
    body = bytearray()
    times: list[tuple[int, float]] = []
    for number, line in enumerate(data.splitlines()[1:], 2):
        try:
            told: dict[str, Any] = json.loads(line)
            piece = _bytes(told)
            at = float(told["at"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"line {number} of the recording is not valid: {error}") from error
        if piece:
            times.append((len(body), at))
            body += piece
    return Recorded(name, gateway, bytes(body), tuple(times))


def _bytes(told: dict[str, Any]) -> bytes:
    if "base64" in told:
        return base64.b64decode(told["base64"], validate=True)
    return str(told.get("text", "")).encode("utf-8", "surrogatepass")
