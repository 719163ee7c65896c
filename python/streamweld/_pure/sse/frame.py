"""Data types of the SSE framer: frames, stray lines, unfinished input, and limit errors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_JOINED: Final = re.compile(rb"data:[ \t]*[{\[]")


class Frame:
    """One dispatched event. `offset`: byte offset of the first data line of the event, counting a byte order mark."""

    __slots__ = ("data", "event", "id", "is_joined", "offset", "retry")

    def __init__(
        self,
        event: str,
        data: bytes,
        id: str,  # noqa: A002
        retry: int | None,
        offset: int,
        *,
        is_joined: bool = False,
    ) -> None:
        self.event = event  # "message" if the block has no event name
        self.data = data
        self.id = id  # last event id at dispatch
        self.retry = retry  # last valid retry time in this block, in milliseconds
        self.offset = offset
        self.is_joined = is_joined  # the data begins on the line of another field, because a line ending is missing

    def __repr__(self) -> str:
        return f"Frame({self.event!r}, {self.data!r}, {self.id!r}, {self.retry!r}, {self.offset})"


class Stray:
    """Lines outside any SSE field that look like a payload, joined with LF. `offset`: byte offset of the first line in
    the stream.
    """

    __slots__ = ("has_data_lines", "data", "offset")

    def __init__(self, data: bytes, offset: int, *, has_data_lines: bool = False) -> None:
        self.data = data
        self.offset = offset
        self.has_data_lines = has_data_lines  # the block also has a data line

    def __repr__(self) -> str:
        return f"Stray({self.data!r}, {self.offset})"


@dataclass(slots=True)
class Pending:
    """Unfinished input at the end of the stream."""

    data: bytes | None  # the data lines, including an incomplete last line, or None
    offset: int  # offset of the first data line, else of the first stray line, else of the first unfinished line
    event: str
    id: str
    retry: int | None
    stray: bytes | None  # the stray lines, including an incomplete last line, or None
    stray_offset: int
    is_joined: bool  # the data begins on the line of another field, because a line ending is missing
    open_line: int | None  # offset of the last line, if the line has no line ending
    partial: bool  # the last line, of any kind, has no line ending
    mid_utf8: bool  # the input ends inside a UTF-8 sequence
    open: bool  # an event or a line of an event has begun; comments and unknown lines do not count


class FramerLimit(Exception):
    """Raised if a limit is exceeded. `items`: the frames and stray lines that the same `feed()` call completed before
    the error.

    `offset`: byte offset of the first line of the event.
    """

    def __init__(self, limit_name: str, limit: int, offset: int) -> None:
        super().__init__(limit_name, limit, offset)
        self.limit_name = limit_name
        self.limit = limit
        self.observed = limit + 1  # no more bytes than this are stored
        self.offset = offset
        self.items: list[Frame | Stray] = []


def as_bytes(data: object) -> bytes:
    """Return bytes unchanged, and convert other contiguous buffers to bytes. Raise TypeError for any other value."""
    if isinstance(data, bytes):
        return data
    try:
        view = memoryview(data)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):  # a released memoryview raises ValueError
        raise TypeError(f"a stream is read from bytes, not from {type(data).__name__}") from None
    if not view.c_contiguous:
        raise TypeError("a stream is read from a contiguous buffer")
    return view.tobytes()


def split_joined(value: bytes) -> tuple[bytes, bytes | None]:
    """Split the value of an event, id, or retry line from a data line that follows without a line ending.

    In a correct stream, the value of these fields never contains the beginning of a data line with a document. If a
    value contains the beginning of such a line, a line ending is missing. Return the value and, if a data line follows,
    the data of that line.
    """
    found = _JOINED.search(value)
    if found is None:
        return value, None
    return value[: found.start()].rstrip(b" \t"), value[found.start() + len(b"data:") :].removeprefix(b" ")


def ends_inside_character(tail: bytes) -> bool:
    """Return True if the input ends inside a UTF-8 sequence.

    ED A0 is not such a sequence, because no further byte can make it valid.
    """
    for start in range(len(tail)):
        try:
            tail[start:].decode()
        except UnicodeDecodeError as error:
            if error.start == 0 and error.end == len(tail) - start and error.reason == "unexpected end of data":
                return True
    return False
