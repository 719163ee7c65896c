"""Determine where in the first stream the second stream starts. The rules are in `docs/guides/resume.md`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from streamweld._pure.json.automaton import examine
from streamweld.errors import SpliceError
from streamweld.splice.blocks import (
    BlockReader,
    blocks_of,
    data_of,
    has_same_shape,
    is_event,
    is_text,
    lines_of,
    raw_blocks,
    response_id_of,
    starts_inside_line,
)
from streamweld.splice.error_page import is_error_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamweld.options import Limits
    from streamweld.splice.blocks import Block

__all__ = ["Continuation", "FirstStream", "Overlap", "Start", "continuation", "locate", "may_continue"]

Start: TypeAlias = Literal["auto", "first_event", "next_event", "next_byte"] | int


_WORD: Final = re.compile(rb"\S+")


class Marks(Enum):
    """The marks that identify the position of each event in the first stream."""

    NUMBERS = "sequence_number"
    IDS = "id"
    NONE = "none"


class Continuation(Enum):
    """Whether the second stream starts exactly at the byte where the first stream ended."""

    YES = "yes"
    NO = "no"
    LATER = "later"
    """The bytes so far may continue a comment or a line of an event without data. The decision needs a later event."""
    INSIDE_LINE = "inside_line"
    """The second stream starts in the middle of a line, but the first does not end there."""
    TEXT = "text"
    """The bytes do not continue the line in which the first stream was cut, and are not an event stream."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """Where the second stream starts.

    The value is the index of an event in the first stream, or the number of its events if the second stream continues
    right after it.
    """

    event: int
    keeps_tail: bool = False
    """True if the first stream ended before the blank line of its last event, and the second stream continues there."""


class FirstStream:
    """The first stream: its events, the bytes after the last complete event, and the marks that identify events."""

    __slots__ = ("_events_end", "body", "events", "marks", "tail", "unterminated")

    def __init__(self, body: bytes, limits: Limits | None) -> None:
        reader = BlockReader(limits)
        self._events_end = 0
        events: list[Block] = []
        for block in blocks_of(reader, body):
            if block.key is not None:
                events.append(block)
                self._events_end = block.offset + len(block.raw)
        self.body: Final = body
        self.tail: Final = reader.tail
        self.unterminated: Final = reader.take_unterminated()
        """The tail as a block, if only its blank line is missing."""
        self.events: Final = events
        self.marks: Final = _marks(events)

    def trailing(self) -> Iterator[bytes]:
        """Return the blocks after the last event: comments and pings."""
        return raw_blocks(self.body[self._events_end : len(self.body) - len(self.tail)])

    @property
    def kept(self) -> bytes:
        """Return the body up to its last complete block. If the body ends with half of a CRLF, the LF is added."""
        if self.tail:
            return self.body[: -len(self.tail)]
        return self.body + b"\n" if self.body.endswith(b"\r") and b"\r\n" in self.body else self.body

    @property
    def is_only_comments_after(self) -> bool:
        """Return True if the tail is the beginning of a comment or a ping, which a server does not send again."""
        tail = self.tail.lstrip(b"\xef\xbb\xbf\r\n")
        return not tail or tail.startswith(b":") or b"ping" in tail or b"event: ping".startswith(tail)


def _marks(events: list[Block]) -> Marks:
    # In a numbered stream, the final `[DONE]` has no number.
    numbers = [block.number for block in (events[:-1] if _is_unnumbered_end(events) else events)]
    if numbers and all(_ascends(one, other) for one, other in pairwise([-1, *numbers])):
        return Marks.NUMBERS
    ids = [block.id for block in events]
    return Marks.IDS if ids and None not in ids and len(set(ids)) == len(ids) else Marks.NONE


def _is_unnumbered_end(events: list[Block]) -> bool:
    return len(events) > 1 and events[-1].number is None and events[-1].key == ("message", "[DONE]")


def _ascends(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and one < other


def continuation(first: FirstStream, second: bytes) -> Continuation:
    """Return whether the second stream starts exactly at the byte where the first stream ended.

    `second` contains the bytes of the second stream up to the end of a complete block.
    """
    if starts_inside_line(second) and not _replays(first, second):
        return _continues_line(first, second) if first.tail else Continuation.INSIDE_LINE
    return Continuation.YES if _continues_event(first, second) else Continuation.NO


def _replays(first: FirstStream, second: bytes) -> bool:
    """Return True if the second stream is a replay, regardless of its first line."""
    return bool(second.strip(b"\r\n")) and first.body.startswith(second[: len(first.body)])


def _continues_line(first: FirstStream, second: bytes) -> Continuation:
    """Return whether a second stream that starts in the middle of a line continues the truncated line of the first
    stream.
    """
    if not all(event.is_json for event in first.events):
        return Continuation.YES  # any text may be the data of an event
    blocks = blocks_of(BlockReader(), first.tail + second)
    head = next(blocks)
    if head.is_json:
        return Continuation.YES
    # In an event without data, the values of fields (names, ids and times) are single words.
    lines = (line for line in lines_of(head.raw.removeprefix(b"\xef\xbb\xbf")) if line)
    is_fields = all(line.startswith(b":") or len(line.partition(b":")[2].split(maxsplit=2)) == 1 for line in lines)
    if head.key is not None or not is_fields:
        return Continuation.TEXT
    is_json = False
    for block in blocks:
        if is_text(block.raw):
            return Continuation.TEXT
        is_json = is_json or block.is_json
    return Continuation.YES if is_json else Continuation.LATER


def may_continue(first: FirstStream, second: bytes) -> bool:
    """Return True if a second stream without a complete event may continue the truncated line of the first stream."""
    joined = first.tail + second
    if is_error_text(second):
        return False
    data = data_of(joined)
    if data:
        return examine(data).verdict == "prefix"
    return _words(joined) <= _words(first.tail) or joined.lstrip(b"\xef\xbb\xbf\r\n").startswith(b":")


def _words(text: bytes) -> int:
    return sum(1 for _ in _WORD.finditer(text))


def _continues_event(first: FirstStream, second: bytes) -> bool:
    """Return True if a second stream that starts with a complete line continues the truncated event of the first
    stream.
    """
    if _replays(first, second):
        return False
    if not first.tail:
        return second == b"\n" and first.body.endswith(b"\r")  # the second stream is only the LF of a CRLF
    joined = first.tail + second
    if not is_event(joined):
        return False
    if not is_event(second):
        return True
    if not first.events:
        return not second.startswith(first.tail)
    # Both interpretations give valid events. Choose the event that has the same fields as earlier events. If the tail
    # of the first stream consists of complete lines, the second stream starts with the remaining lines of the event.
    usual = first.events[-1].raw
    return not has_same_shape(second, usual) and has_same_shape(joined, usual)


def locate(first: FirstStream, block: Block) -> Overlap:
    """Find the position of the second stream's first event in the first stream.

    Raises:
        SpliceError: if the second stream belongs to another response, if events between the two are missing, or if its
            position cannot be proven.
    """
    if first.marks is Marks.NUMBERS and block.number is not None:
        return _by_number(first, block.number)
    if first.marks is Marks.IDS and block.id is not None:
        return _by_id(first, block.id)
    if not first.events:
        return _from_the_start(first, block)
    if first.marks is Marks.NUMBERS and block.key == ("message", "[DONE]"):
        return Overlap(len(first.events) - (first.events[-1].key == block.key))
    if block.key != first.events[0].key:
        known, found = {response_id_of(event) for event in first.events}, response_id_of(block)
        if found is not None and len(known) == 1 and None not in known and found not in known:
            raise SpliceError(rule="splice_other_stream", detail="it has the id of another response")
        raise SpliceError(
            rule="splice_ambiguous",
            detail="its first event has no number and no id, and is not the first event of the first stream",
        )
    if _repeats_its_start(first.events):
        raise SpliceError(rule="splice_ambiguous", detail="the first stream repeats its own first events")
    return Overlap(0)


def _by_number(first: FirstStream, number: int) -> Overlap:
    last: int = -1
    for position, event in enumerate(first.events):
        if event.number is None:
            break
        if event.number == number:
            return Overlap(position)
        last = event.number
    if number < last:
        detail = f"it starts with sequence_number {number}, which the first stream skips"
        raise SpliceError(rule="splice_other_stream", detail=detail)
    unterminated = first.unterminated
    if unterminated is not None and unterminated.number == last + 1 == number - 1:
        return Overlap(len(first.events), keeps_tail=True)
    return _after(first, last, number, "sequence_number")


def _by_id(first: FirstStream, event_id: str) -> Overlap:
    ids = [event.id or "" for event in first.events]
    if event_id in ids:
        return Overlap(ids.index(event_id))
    # A server that received `Last-Event-ID` continues after that event. Only consecutive ids prove that no event is
    # missing.
    if all(text.isdecimal() for text in [*ids, event_id]) and len(ids) > 1:
        counts = [int(text) for text in ids]
        if all(other == one + 1 for one, other in pairwise(counts)):
            return _after(first, counts[-1], int(event_id), "id")
    return Overlap(len(first.events))


def _after(first: FirstStream, last: int, found: int, name: str) -> Overlap:
    if found != last + 1:
        rule = "splice_gap" if found > last else "splice_other_stream"
        detail = f"the first stream ends at {name} {last}, the second starts at {found}"
        raise SpliceError(rule=rule, detail=detail)
    return Overlap(len(first.events))


def _from_the_start(first: FirstStream, block: Block) -> Overlap:
    """Return the overlap for a first stream without a complete event.

    In this case, the second stream must be a replay.
    """
    if block.number is not None and block.number > 1:
        raise SpliceError(rule="splice_gap", detail=f"the second stream starts at sequence_number {block.number}")
    if not first.is_only_comments_after and first.tail.lstrip(b"\xef\xbb\xbf\r\n") not in block.raw:
        raise SpliceError(rule="splice_other_stream", detail="it does not start as the first stream does")
    return Overlap(0)


def _repeats_its_start(events: list[Block]) -> bool:
    """Return True if the last events of the first stream equal its first events, so that a replay looks like a
    continuation.
    """
    keys = [event.key for event in events]
    border = [0] * len(keys)
    for location in range(1, len(keys)):
        length = border[location - 1]
        while length and keys[location] != keys[length]:
            length = border[length - 1]
        border[location] = length + (keys[location] == keys[length])
    return border[-1] > 0
