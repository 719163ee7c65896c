"""Determine where in the first stream the second stream starts. The rules are in `docs/guides/resume.md`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from streamweld.errors import SpliceError
from streamweld.splice.blocks import (
    BlockScanner,
    after_mark,
    blocks_of,
    has_same_shape,
    have_equal_payloads,
    head_of,
    is_event,
    is_text,
    lines_of,
    may_be_cut_json,
    starts_inside_line,
)
from streamweld.splice.error_page import is_error_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamweld.options import Limits
    from streamweld.splice.blocks import Block, BlockReader

__all__ = [
    "Continuation",
    "FirstStream",
    "Overlap",
    "Start",
    "continuation",
    "later_continuation",
    "locate",
    "may_continue",
]

Start: TypeAlias = Literal["auto", "first_event", "next_event", "next_byte"] | int


_WORD: Final = re.compile(rb"\S+")
# In an event without data, the values of fields (names, ids and times) are single words.
_COMMENT_OR_WORD: Final = re.compile(rb":|[^:]*:\s*\S+\s*\Z")
_OTHER_THAN_LINE_END: Final = re.compile(rb"[^\r\n]")
_LINE_ENDS: Final = re.compile(rb"[\r\n]*")
_MARKS_AND_LINE_ENDS: Final = re.compile(rb"[\xef\xbb\xbf\r\n]*")
_LF: Final = 0x0A
_PING: Final = re.compile(rb"ping")
_PING_LINE: Final = b"event: ping"


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

    __slots__ = ("_events_end", "body", "events", "is_json", "marks", "tail", "unterminated", "view")

    def __init__(self, body: bytes, limits: Limits | None) -> None:
        view = memoryview(body)
        scanner = BlockScanner(limits)
        self._events_end = 0
        events: list[Block] = []
        while (block := scanner.next(view, is_end=True)) is not None:
            if block.key is not None:
                events.append(block)
                self._events_end = block.end
        self.view: Final = view
        self.body: Final = body
        self.tail: Final = view[scanner.start :]
        scanner.check_rest(view)
        self.unterminated: Final = scanner.last(view)
        """The tail as a block, if only its blank line is missing."""
        self.events: Final = events
        self.marks: Final = _marks(events)
        self.is_json: Final = all(event.is_json for event in events)

    def trailing(self) -> Iterator[memoryview]:
        """Return the blocks after the last event: comments and pings."""
        part = self.view[self._events_end : len(self.body) - len(self.tail)]
        return (part[block.start : block.end] for block in blocks_of(part))

    def raw(self, event: Block) -> memoryview:
        """Return the bytes of an event."""
        return self.view[event.start : event.end]

    @property
    def tail_after_line_ends(self) -> memoryview:
        """Return the tail without the line endings at its start."""
        return _lstripped(self.tail, _LINE_ENDS)

    def is_repeated(self, number: int, second: BlockReader, block: Block) -> bool:
        """Return True if a block of the second stream is the event with this number, apart from spacing, the order of
        members, and padding.
        """
        event = self.events[number]
        if block.is_json and event.is_json and block.is_long != event.is_long:  # only their spacing may differ
            with second.view() as data:
                return have_equal_payloads(self.raw(event), data[block.start : block.end])
        return block.key == event.key

    def has_at(self, start: int, text: memoryview) -> bool:
        """Return whether the body contains a text at a position."""
        return self.body.startswith(text, start)

    def agrees(self, second: memoryview) -> bool:
        """Return whether the body and the second stream are equal as far as the shorter one extends."""
        return self.has_at(0, second[: len(self.body)])

    @property
    def kept(self) -> list[memoryview | bytes]:
        """Return the body up to its last complete block. If the body ends with half of a CRLF, the LF is added."""
        if self.tail:
            return [self.view[: -len(self.tail)]]
        return [self.body, b"\n"] if self.body.endswith(b"\r") and b"\r\n" in self.body else [self.body]

    @property
    def is_only_comments_after(self) -> bool:
        """Return True if the tail is the beginning of a comment or a ping, which a server does not send again."""
        tail = _lstripped(self.tail, _MARKS_AND_LINE_ENDS)
        if not tail or tail[:1].tobytes() == b":" or _PING.search(tail) is not None:
            return True
        return _PING_LINE.startswith(tail)


def _lstripped(data: memoryview, skipped: re.Pattern[bytes]) -> memoryview:
    """Return the data without the bytes that the pattern matches at its start."""
    found = skipped.match(data)
    return data if found is None else data[found.end() :]


def _marks(events: list[Block]) -> Marks:
    # In a numbered stream, the final `[DONE]` has no number.
    numbers = [block.number for block in (events[:-1] if _is_unnumbered_end(events) else events)]
    if numbers and all(_ascends(one, other) for one, other in pairwise([-1, *numbers])):
        return Marks.NUMBERS
    ids = [block.id for block in events]
    return Marks.IDS if ids and None not in ids and len(set(ids)) == len(ids) else Marks.NONE


def _is_unnumbered_end(events: list[Block]) -> bool:
    return len(events) > 1 and events[-1].number is None and events[-1].is_done


def _ascends(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and one < other


def continuation(first: FirstStream, joined: memoryview, second: memoryview) -> Continuation:
    """Return whether the second stream starts exactly at the byte where the first stream ended.

    `second` contains the bytes of the second stream up to the end of a complete block, and `joined` the same bytes
    after the tail of the first stream.
    """
    if starts_inside_line(second) and not _replays(first, second):
        return _continues_line(first, joined) if first.tail else Continuation.INSIDE_LINE
    return Continuation.YES if _continues_event(first, joined, second) else Continuation.NO


def _replays(first: FirstStream, second: memoryview) -> bool:
    """Return True if the second stream is a replay, regardless of its first line."""
    return _OTHER_THAN_LINE_END.search(second) is not None and first.agrees(second)


def _continues_line(first: FirstStream, joined: memoryview) -> Continuation:
    """Return whether a second stream that starts in the middle of a line continues the truncated line of the first
    stream.
    """
    if not first.is_json:
        return Continuation.YES  # any text may be the data of an event
    head = head_of(joined)
    if head.is_json:
        return Continuation.YES
    lines = ((at, end) for at, end in lines_of(joined, after_mark(joined), head.end) if at < end)
    is_fields = all(_COMMENT_OR_WORD.match(joined, at, end) is not None for at, end in lines)
    if head.key is not None or not is_fields:
        return Continuation.TEXT
    return _continues_after(joined, head.end)


def later_continuation(block: memoryview) -> Continuation:
    """Return the decision after a further block of the second stream, if the earlier ones allowed none."""
    return _continues_after(block, 0)


def _continues_after(data: memoryview, start: int) -> Continuation:
    is_json = False
    for block in blocks_of(data, start):
        if is_text(data[block.start : block.end]):
            return Continuation.TEXT
        is_json = is_json or block.is_json
    return Continuation.YES if is_json else Continuation.LATER


def may_continue(first: FirstStream, joined: memoryview, second: memoryview) -> bool:
    """Return True if a second stream without a complete event may continue the truncated line of the first stream."""
    if is_error_text(second):
        return False
    is_cut_json = may_be_cut_json(joined)
    if is_cut_json is not None:
        return is_cut_json
    return _words(joined) <= _words(first.tail) or _lstripped(joined, _MARKS_AND_LINE_ENDS)[:1].tobytes() == b":"


def _words(text: memoryview) -> int:
    return sum(1 for _ in _WORD.finditer(text))


def _continues_event(first: FirstStream, joined: memoryview, second: memoryview) -> bool:
    """Return True if a second stream that starts with a complete line continues the truncated event of the first
    stream.
    """
    if _replays(first, second):
        return False
    if not first.tail:
        return (
            len(second) == 1 and second[0] == _LF and first.body.endswith(b"\r")
        )  # the second stream is only the LF of a CRLF
    if not is_event(joined):
        return False
    if not is_event(second):
        return True
    if not first.events:
        return not (len(second) >= len(first.tail) and first.body.endswith(second[: len(first.tail)]))
    # Both interpretations give valid events. Choose the event that has the same fields as earlier events. If the tail
    # of the first stream consists of complete lines, the second stream starts with the remaining lines of the event.
    usual = first.raw(first.events[-1])
    return not has_same_shape(second, usual) and has_same_shape(joined, usual)


def locate(first: FirstStream, second: BlockReader, block: Block) -> Overlap:
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
        return _from_the_start(first, second, block)
    if first.marks is Marks.NUMBERS and block.is_done:
        return Overlap(len(first.events) - (first.events[-1].key == block.key))
    if not first.is_repeated(0, second, block):
        known, found = {event.response_id for event in first.events}, block.response_id
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


def _from_the_start(first: FirstStream, second: BlockReader, block: Block) -> Overlap:
    """Return the overlap for a first stream without a complete event.

    In this case, the second stream must be a replay.
    """
    if block.number is not None and block.number > 1:
        raise SpliceError(rule="splice_gap", detail=f"the second stream starts at sequence_number {block.number}")
    if not first.is_only_comments_after and not second.contains(_lstripped(first.tail, _MARKS_AND_LINE_ENDS), block):
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
