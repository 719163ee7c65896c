"""Bytes to server-sent-event frames, as WHATWG HTML section 9.2.6 says, plus the stray lines that broken gateways send.

Sans-I/O. It knows no JSON and no dialect; text stays bytes except the short fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Frame:
    """One dispatched event. `offset` is that of the first byte of its first data line in the stream (a BOM counted)."""

    event: str
    data: bytes
    id: str
    retry: int | None
    offset: int


class Stray:
    """Lines outside of any field that look like a payload, joined by LF. `offset` is that of the first of them."""

    data: bytes
    offset: int


class Pending:
    """What the end of input left unfinished."""

    data: bytes | None  # the data lines so far, the unfinished one included; None without any
    offset: int  # of the first data line (of the first stray line, of the unfinished line if there is no data)
    event: str
    id: str
    retry: int | None
    stray: bytes | None  # the stray lines so far, the unfinished one included
    stray_offset: int
    partial: bool  # the last line had no line end
    mid_utf8: bool  # the input ends inside a UTF-8 sequence


class FramerLimit(Exception):
    """A cap was hit. `items` are those of the same feed() before it; nothing can be fed any more."""

    limit_name: str
    limit: int
    observed: int
    offset: int
    items: list[Frame | Stray]


class Framer:
    last_event_id: str
    reconnection_time: int | None
    total: int  # bytes fed

    def __init__(self, limits: Mapping[str, int | None], *, keep_stray: bool = False, last_event_id: str = "") -> None:
        raise NotImplementedError

    def feed(self, data: bytes | bytearray | memoryview) -> list[Frame | Stray]:
        raise NotImplementedError

    def finish(self) -> Pending | None:
        """End of input: what is unfinished, or None."""
        raise NotImplementedError


def as_bytes(data: object) -> bytes:
    """bytes as they are, other contiguous buffers copied; anything else is TypeError."""
    raise NotImplementedError
