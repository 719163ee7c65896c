"""The data of a report about one stream: parts, calls, findings, repairs, times."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Final, cast

from streamweld.check import Checker
from streamweld.convert import StreamConverter
from streamweld.errors import StreamError, UnknownDialect
from streamweld.events import Diagnostic, ToolCall, ToolCallDelta, ToolCallReset
from streamweld.report.changes import changed_pairs, compact
from streamweld.report.finding import Finding, Lines
from streamweld.report.repairs import repair_reasons
from streamweld.stream import StreamParser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamweld.events import Event
    from streamweld.options import Base, Dialect
    from streamweld.report.recording import Recorded
    from streamweld.response import Response

__all__ = ["Assembly", "Block", "Facts", "Lane", "Repair", "Timing", "describe"]

# The lines of an event and the blank lines after it, or one line of JSON.
_BLOCK: Final = re.compile(rb"(?:[A-Za-z:][^\r\n]*(?:\r\n|\r|\n))*+[^\r\n]*+[\r\n]*+")
_REPAIRS: Final = 60  # maximum number of repairs kept
_PERCENTILES: Final[dict[str, float]] = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
_LABELS: Final = {"text": "text", "reasoning": "reasoning", "refusal": "refusal", "tool": "call"}


@dataclass(frozen=True, slots=True)
class Block:
    """The bytes of one event, including the blank lines after it."""

    start: int
    end: int
    kinds: str
    """The types of the events that the block produced, separated by commas; empty if there are none."""


@dataclass(slots=True)
class Lane:
    """One part of the response, and the numbers of the blocks from which it was read."""

    part: int
    kind: str
    label: str
    blocks: list[int] = field(default_factory=list[int])


@dataclass(slots=True)
class Assembly:
    """How the arguments of a call were assembled: the fragments and the block number of each."""

    part: int
    pieces: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    resets: int = 0
    call: ToolCall | None = None


@dataclass(frozen=True, slots=True)
class Repair:
    """A received event, and the event that `repair` sends in its place.

    The spaces in the JSON of both events are removed.

    One of the two is empty if `repair` removes or adds an event.
    """

    start: int
    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True)
class Timing:
    """Times in seconds: until the end, until the first content, and percentiles of the gaps between chunks."""

    total: float
    first: float | None
    gaps: dict[str, float]


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a report shows about a stream."""

    recorded: Recorded
    dialect: str | None
    response: Response
    error: StreamError | None
    blocks: list[Block]
    lanes: list[Lane]
    calls: list[Assembly]
    findings: list[Finding]
    repairs: list[Repair]
    repair_count: int  # number of events that differ in more than spaces
    is_rewritten: bool  # whether `repair` changes any byte
    reasons: list[str]  # the reasons why `repair` changes the stream
    timing: Timing | None

    @property
    def codes(self) -> list[str]:
        """The codes with severity warning or error, each listed once."""
        return list(dict.fromkeys(found.code for found in self.findings if found.severity != "info"))

    def block_at(self, offset: int) -> int:
        """Return the number of the block that contains the byte."""
        return max(0, bisect_right(self.blocks, offset, key=lambda block: block.start) - 1)


def describe(recorded: Recorded, *, policy: Base = "standard", dialect: Dialect = "auto") -> Facts:
    """Parse, check and repair a recorded body, and return the data of its report.

    Args:
        recorded: the body.
        policy: which faults are repaired and which raise.
        dialect: the wire format.
    """
    reader = _Reader(policy, dialect)
    spans = list(_blocks(recorded.body))
    for start, end in spans:
        reader.feed(start, end, recorded.body[start:end])
    reader.close(len(recorded.body))
    repaired = _repaired(recorded.body, spans, policy, reader.parser.dialect)
    response = reader.parser.response
    return Facts(
        recorded,
        reader.parser.dialect,
        response,
        reader.error,
        reader.blocks,
        [lane for lane in reader.lanes.values() if lane.blocks],
        [one for one in reader.calls.values() if one.call is not None or one.pieces],
        _findings(recorded.body, dialect, response, reader.error),
        *repaired,
        _timing(recorded, reader),
    )


def _blocks(body: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(body):
        found = cast("re.Match[bytes]", _BLOCK.match(body, at))
        yield at, found.end()
        at = found.end()


class _Reader:
    """Feeds the parser block by block, so that each event can be traced to its bytes."""

    def __init__(self, policy: Base, dialect: Dialect) -> None:
        self.parser = StreamParser(policy=policy, dialect=dialect)
        self.error: StreamError | None = None
        self.blocks: list[Block] = []
        self.lanes: dict[int, Lane] = {}
        self.calls: dict[int, Assembly] = {}
        self.first: int | None = None  # offset of the first content

    def feed(self, start: int, end: int, data: bytes) -> None:
        events: list[Event] = []
        if self.error is None:
            try:
                events = self.parser.feed(data)
            except StreamError as error:
                self.error = error
                events = error.events
        self._take(start, end, events)

    def close(self, size: int) -> None:
        if self.error is not None:
            return
        try:
            events = self.parser.close()
        except StreamError as error:
            self.error = error
            events = error.events
        if events:
            self._take(size, size, events)

    def _take(self, start: int, end: int, events: list[Event]) -> None:
        number = len(self.blocks)
        self.blocks.append(Block(start, end, ", ".join(dict.fromkeys(event.type for event in events))))
        for event in events:
            part: int | None = getattr(event, "part", None)
            if part is None or isinstance(event, Diagnostic):
                continue
            if self.first is None:
                self.first = start
            lane = self._lane(part, event)
            if not lane.blocks or lane.blocks[-1] != number:
                lane.blocks.append(number)
            self._assemble(part, number, event)

    def _lane(self, part: int, event: Event) -> Lane:
        lane = self.lanes.get(part)
        if lane is None:
            kind = _LABELS.get(event.type.split("_")[0], event.type)
            kind = "result" if event.type in ("tool_result", "tool_result_delta") else kind
            lane = self.lanes[part] = Lane(part, kind, kind)
        name = getattr(event, "name", None)
        if name:
            lane.label = f"{lane.kind} {name}"
        return lane

    def _assemble(self, part: int, number: int, event: Event) -> None:
        match event:
            case ToolCallDelta(arguments=arguments):
                self.calls.setdefault(part, Assembly(part)).pieces.append((number, arguments))
            case ToolCallReset():
                call = self.calls.setdefault(part, Assembly(part))
                call.pieces.clear()
                call.resets += 1
            case ToolCall():
                self.calls.setdefault(part, Assembly(part)).call = event
            case _:
                pass


def _findings(body: bytes, dialect: Dialect, response: Response, error: StreamError | None) -> list[Finding]:
    lines = Lines()
    lines.feed(body)
    found = [Finding.of_diagnostic(one, lines) for one in response.diagnostics]
    checker = Checker(dialect)
    try:
        found += [Finding.of_violation(one, lines) for one in (*checker.feed(body), *checker.close())]
    except UnknownDialect:
        pass  # not handled here, because the parser reports the same error
    found.sort(key=lambda one: (one.byte_offset or 0, one.event_ordinal or 0))
    if error is not None and all(error.rule != one.code for one in found):
        found.append(Finding.of_error(error, lines))
    return found


def _repaired(
    body: bytes, spans: list[tuple[int, int]], policy: Base, dialect: str | None
) -> tuple[list[Repair], int, bool, list[str]]:
    """Return the events that `repair` changes (at most `_REPAIRS`), their total number, whether any byte changes, and
    the reasons."""
    if dialect is None:
        return [], 0, False, []
    source = cast("Dialect", dialect)
    converter = StreamConverter(source=source, target="same", policy=policy, seed="report", cut_ending="error")
    out = converter.feed(body) + converter.close()
    if out == body:
        return [], 0, False, repair_reasons(converter)
    before = _contents(body, spans)
    after = _contents(out, list(_blocks(out)))
    kept: list[Repair] = []
    count = 0
    for at, old, new in changed_pairs([event for _, event in before], [event for _, event in after]):
        count += 1
        if len(kept) < _REPAIRS:
            start = before[at][0] if at < len(before) else len(body)
            kept.append(Repair(start, b"" if old is None else before[old][1], b"" if new is None else after[new][1]))
    return kept, count, True, repair_reasons(converter)


def _contents(body: bytes, spans: list[tuple[int, int]]) -> list[tuple[int, bytes]]:
    """Return the offset and the content of each event, without blocks that contain only blank lines."""
    made = [(start, compact(body[start:end])) for start, end in spans]
    return [(start, content) for start, content in made if content]


def _timing(recorded: Recorded, reader: _Reader) -> Timing | None:
    if not recorded.times:
        return None
    moments = [at for _, at in recorded.times]
    gaps = sorted(later - earlier for earlier, later in pairwise(moments))
    first = None if reader.first is None else recorded.seconds_at(reader.first)
    shown = {name: _percentile(gaps, part) for name, part in _PERCENTILES.items()} if gaps else {}
    return Timing(moments[-1], first, shown)


def _percentile(values: list[float], part: float) -> float:
    """Return the nearest-rank percentile: the smallest value that is at least as large as this fraction of the
    values."""
    return values[max(0, ceil(part * len(values)) - 1)]
