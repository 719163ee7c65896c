"""Record streams as they arrive, and read the recordings.

A recording is one file of JSON lines in UTF-8. The first line is an object that describes the response:

    {"streamweld_recording": 1, "method": "POST", "path": "/v1/chat/completions", "status": 200,
     "content_type": "text/event-stream", "started": "2026-01-02T03:04:05.678+00:00", "request_id": "req_1"}

`request_id` is the id that the gateway assigned, as in `StreamContext` and in the logs. The member is missing if the id
is unknown.

Each of the following lines is one piece of the body as it was read from the connection, after decompression. The line
has the seconds since the start, and the bytes: as text if they are valid UTF-8, otherwise in base64:

    {"at": 0.251, "text": "data: {}\\n\\n"}
    {"at": 0.252, "base64": "/w=="}

The last line reports how the body ended: `complete`, `failed` (the connection failed) or `left` (the reader stopped).

    {"at": 1.5, "end": "complete"}

The content type and the request id are the only headers that are recorded. Queries and request bodies are never
recorded, so a file does not contain credentials. The model's text is recorded unchanged.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from streamweld._messages import RECORDING_MARK
from streamweld._show import printable

if TYPE_CHECKING:
    from streamweld.testing.stream import Stream

__all__ = ["End", "Piece", "Recorder", "Recording", "read_recording", "write_recording"]

End: TypeAlias = Literal["complete", "failed", "left"]

MARK: Final = RECORDING_MARK
"""The first bytes of a recording's file."""
_FORMAT: Final = 1
_ENDS: Final = ("complete", "failed", "left")
_NUMBER = count(1)
_LOGGER = logging.getLogger("streamweld")


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes that were read together, and the time at which they were read, in seconds since the start of the
    response.
    """

    at: float
    data: bytes


@dataclass(frozen=True)
class Recording:
    """One recorded response."""

    pieces: tuple[Piece, ...]
    end: End = "complete"
    method: str = "POST"
    path: str = "/"
    status: int = 200
    content_type: str = "text/event-stream"
    request_id: str | None = None
    """Request id of the response, as in `StreamContext` and in the logs; None if it is unknown."""

    @property
    def body(self) -> bytes:
        """The complete body."""
        return b"".join(piece.data for piece in self.pieces)

    @classmethod
    def of(cls, stream: Stream, *, gap: float = 0.0) -> Recording:
        """Convert a built or broken stream to a recording, with `gap` seconds between its pieces."""
        pieces = tuple(Piece(number * gap, chunk) for number, chunk in enumerate(stream.chunks))
        return cls(pieces, content_type=stream.content_type)


class Recorder:
    """Writes one recording while a response is read.

    If the file cannot be written, the recording stops with a warning from the logger `streamweld`; the stream is not
    affected.

    Args:
        folder: the folder for the file; it is created if it does not exist.
        method: the method of the request.
        path: the path of the request, without the query.
        status: the status of the response.
        content_type: the content type of the response.
        request_id: the request id of the response; None if it is unknown.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        method: str,
        path: str,
        status: int,
        content_type: str,
        request_id: str | None = None,
    ) -> None:
        started = datetime.now(UTC)
        kind = re.sub(r"[^A-Za-z0-9]+", "-", path).strip("-")[-40:] or "stream"
        name = f"{started:%Y%m%dT%H%M%S}-{os.getpid()}-{next(_NUMBER):06}-{kind}.jsonl"
        self.file: Path = Path(folder) / name
        self._began = time.monotonic()
        self._out: IO[str] | None = None
        head = {"streamweld_recording": _FORMAT, "method": method, "path": path, "status": status}
        head |= {"content_type": content_type, "started": started.isoformat(timespec="milliseconds")}
        head |= _identified(request_id)
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            # Only the owner can read the file, because the model's text may be confidential.
            handle = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._out = os.fdopen(handle, "w", encoding="utf-8", buffering=1)
        except OSError as error:
            self._give_up(error)
        self._write(head)

    def piece(self, data: bytes | bytearray | memoryview) -> None:
        """Record bytes that were read."""
        if self._out is not None:
            self._write(_line(time.monotonic() - self._began, bytes(data)))

    def end(self, how: End) -> None:
        """Record how the body ended, and close the file. Further calls have no effect."""
        self._write({"at": round(time.monotonic() - self._began, 6), "end": how})
        if self._out is not None:
            out, self._out = self._out, None
            try:
                out.close()
            except OSError as error:
                self._give_up(error)

    def __del__(self) -> None:
        """End the recording as `left`, because the response was not read to its end."""
        if getattr(self, "_out", None) is not None:
            self.end("left")

    def _write(self, line: dict[str, Any]) -> None:
        if self._out is None:
            return
        try:
            self._out.write(json.dumps(line, ensure_ascii=False) + "\n")
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self._out = None
        _LOGGER.warning(
            "the recording %s cannot be written (%s); the rest of the stream is not recorded", self.file, error
        )


def _identified(request_id: str | None) -> dict[str, str]:
    """Return the member of the first line that contains the request id; empty if the id is unknown.

    A header may contain surrogates, which cannot be written as UTF-8, so they are escaped.
    """
    return {} if request_id is None else {"request_id": printable(request_id)}


def _line(at: float, data: bytes) -> dict[str, Any]:
    try:
        return {"at": round(at, 6), "text": data.decode()}
    except UnicodeDecodeError:
        return {"at": round(at, 6), "base64": base64.b64encode(data).decode()}


def write_recording(recording: Recording, file: str | os.PathLike[str]) -> None:
    """Write a recording to a file."""
    head = {"streamweld_recording": _FORMAT, "method": recording.method, "path": recording.path}
    head |= {"status": recording.status, "content_type": recording.content_type}
    head |= _identified(recording.request_id)
    last = recording.pieces[-1].at if recording.pieces else 0.0
    lines = [head, *(_line(piece.at, piece.data) for piece in recording.pieces), {"at": last, "end": recording.end}]
    Path(file).write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")


def read_recording(file: str | os.PathLike[str]) -> Recording:
    """Read a recording. If the last line is missing, for example because the process was killed, the end is `left`.

    Raises:
        ValueError: if the file is not a recording; the message contains its name and the line number.
        OSError: if the file cannot be read.
    """
    data = Path(file).read_bytes()
    try:
        return parse_recording(data.decode("utf-8"))
    except ValueError as error:
        hint = "" if data.startswith(MARK) else "; if it is the body of a response, pass its bytes to BrokenGateway"
        raise ValueError(f"{os.fspath(file)}: {error}{hint}") from None


def parse_recording(text: str) -> Recording:
    """Parse the text of a recording, as `read_recording` does for a file.

    Raises:
        ValueError: if the text is not a recording; the message contains the line number.
    """
    # splitlines() would also split at U+2028, which JSON text may contain.
    lines = text.split("\n")
    head = _object(lines[0], 1)
    if head.get("streamweld_recording") != _FORMAT:
        raise ValueError("line 1: this is not a streamweld recording: the first line lacks `streamweld_recording`")
    pieces: list[Piece] = []
    end: End = "left"
    for number, written in enumerate(lines[1:], 2):
        if not written:
            continue
        line = _object(written, number)
        if line.get("end") in _ENDS:
            end = line["end"]
            break
        try:
            data = line["text"].encode() if "text" in line else base64.b64decode(line["base64"], validate=True)
            pieces.append(Piece(float(line["at"]), data))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ValueError(f"line {number}: a piece needs `at`, and `text` or `base64`") from None
    return Recording(
        tuple(pieces),
        end,
        str(head.get("method", "POST")),
        str(head.get("path", "/")),
        int(head.get("status", 200)),
        str(head.get("content_type", "")),
        None if head.get("request_id") is None else str(head["request_id"]),
    )


def _object(text: str, number: int) -> dict[str, Any]:
    try:
        line: object = json.loads(text)
    except ValueError:
        line = None
    if not isinstance(line, dict):
        raise ValueError(f"line {number}: this is not a JSON object")
    return cast("dict[str, Any]", line)
