"""What the framer takes and hands out. No rule of the format stands here."""

from __future__ import annotations

from dataclasses import dataclass


class Frame:
    """One dispatched event. `offset` is that of the first byte of its first data line in the stream, a BOM counted."""

    __slots__ = ("data", "event", "id", "offset", "retry")

    def __init__(self, event: str, data: bytes, id: str, retry: int | None, offset: int) -> None:  # noqa: A002
        self.event = event  # "message" if the block named none
        self.data = data
        self.id = id  # the last event id when it was dispatched
        self.retry = retry  # the last valid one of this block
        self.offset = offset

    def __repr__(self) -> str:
        return f"Frame({self.event!r}, {self.data!r}, {self.id!r}, {self.retry!r}, {self.offset})"


class Stray:
    """Lines outside of any field that look like a payload, joined by LF. `offset` is that of the first of them."""

    __slots__ = ("beside_data", "data", "offset")

    def __init__(self, data: bytes, offset: int, *, beside_data: bool = False) -> None:
        self.data = data
        self.offset = offset
        self.beside_data = beside_data  # its block had a data line, too

    def __repr__(self) -> str:
        return f"Stray({self.data!r}, {self.offset})"


@dataclass(slots=True)
class Pending:
    """What the end of the input left unfinished."""

    data: bytes | None  # the data lines, with as much of the last one as there is; None without any
    offset: int  # of the first data line; without one of the first stray line, else of the first unfinished line
    event: str
    id: str
    retry: int | None
    stray: bytes | None  # the stray lines, as `data`
    stray_offset: int
    partial: bool  # the last line, of whatever kind, had no line end
    mid_utf8: bool  # the input ends inside a UTF-8 sequence
    open: bool  # an event or a line of one was begun; a comment or an unknown line is none


class FramerLimit(Exception):
    """A cap was hit. `items` are those of the same feed() before it; `offset` is that of the event's first line."""

    def __init__(self, limit_name: str, limit: int, offset: int) -> None:
        super().__init__(limit_name, limit, offset)
        self.limit_name = limit_name
        self.limit = limit
        self.observed = limit + 1  # never more than that is kept
        self.offset = offset
        self.items: list[Frame | Stray] = []


def as_bytes(data: object) -> bytes:
    """bytes as they are, another contiguous buffer copied; everything else is a TypeError."""
    if isinstance(data, bytes):
        return data
    try:
        view = memoryview(data)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):  # a memoryview that was released is a ValueError
        raise TypeError(f"a stream is read from bytes, not from {type(data).__name__}") from None
    if not view.c_contiguous:
        raise TypeError("a stream is read from a contiguous buffer")
    return view.tobytes()


def ends_inside_character(tail: bytes) -> bool:
    """Whether the input ends inside a UTF-8 sequence; ED A0 is none: nothing that follows makes it one."""
    for start in range(len(tail)):
        try:
            tail[start:].decode()
        except UnicodeDecodeError as error:
            if error.start == 0 and error.end == len(tail) - start and error.reason == "unexpected end of data":
                return True
    return False
