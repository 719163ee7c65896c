"""Turns calls in text into tool call events. All other text is emitted unchanged.

`TextCallStage` processes the events of one stream; `_ChoiceText` holds back the events of one choice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Protocol

from streamweld._pure.assemble.part.canonical_json import is_whole
from streamweld._pure.model.output import Output
from streamweld._pure.text_calls.cursor import NOT_WHITE, WHITE
from streamweld._pure.text_calls.families import load_settings
from streamweld._pure.text_calls.scanner import Scanner
from streamweld._pure.text_calls.values import Tool, comparable
from streamweld.events import (
    Finished,
    ReasoningDelta,
    ReasoningDone,
    ReasoningStarted,
    RefusalDelta,
    RefusalDone,
    TextDelta,
    TextDone,
    TextStarted,
    ToolCall,
    ToolCallDelta,
    ToolCallStarted,
    UpstreamErrorEvent,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streamweld._pure.text_calls.scanner import Block
    from streamweld.events import Event

__all__ = ["StagedOutput", "TextCallStage"]

_NO_TEXT: Final = -1
_ENDS: Final = ("stop", "tool_calls")  # finish reasons which mean that the model has ended its turn


class Numbering(Protocol):
    """The part numbers and ids of the assembler, as far as the stage uses them."""

    ids_given: set[str]

    @property
    def parts(self) -> int: ...
    def number_part(self) -> int: ...
    def fresh_id(self, wanted: str, *, minted: bool) -> str: ...


class StagedOutput(Output):
    """An output that sends its events through the stage."""

    __slots__ = ("stage",)

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.stage: TextCallStage | None = None

    def emit(self, event: Event) -> None:
        if self.stage is None:
            self.pass_on(event)
        else:
            self.stage.take(event)

    def pass_on(self, event: Event) -> None:
        """Pass the event to the receiver."""
        super().emit(event)


class TextCallStage:
    """The text-call stage of one stream."""

    __slots__ = (
        "_choices",
        "_max_block",
        "_max_calls",
        "_max_parts",
        "_numbering",
        "_out",
        "_seed",
        "_tools",
        "calls",
        "settings",
    )

    def __init__(self, config: Mapping[str, Any], out: StagedOutput, numbering: Numbering) -> None:
        self.settings = load_settings(config["text_calls"])
        schemas: Mapping[str, str | None] | None = config["text_call_tools"]
        self._tools = None if schemas is None else {name: Tool(schema) for name, schema in schemas.items()}
        limits: Mapping[str, int | None] = config["limits"]
        self._max_block = limits["max_arguments_bytes"]
        self._max_calls = limits["max_tool_calls"]
        self._max_parts = limits["max_parts"]
        self._seed: str | None = config["seed"]
        self._out = out
        self._numbering = numbering
        self._choices: dict[int, _ChoiceText] = {}
        self.calls = 0  # number of tool calls in the stream, both structured and in text

    @property
    def has_pending(self) -> bool:
        """True if text is held back."""
        return any(choice.holds for choice in self._choices.values())

    def take(self, event: Event) -> None:
        """Process one event from the assembler."""
        if isinstance(event, TextDelta):
            self._choice(event.choice).delta(event)
        elif isinstance(event, TextStarted):
            self._choice(event.choice).started(event)
        elif isinstance(event, TextDone):
            self._choice(event.choice).done(event)
        elif isinstance(event, ReasoningStarted | ReasoningDelta | ReasoningDone):
            self._reasoning(event)
        elif isinstance(event, Finished):
            choice = self._choices.get(event.choice)
            self._out.pass_on(event if choice is None else choice.finished(event))
        else:
            if isinstance(event, ToolCall):
                self.calls += 1
                self._choice(event.choice).note(event)
            elif isinstance(event, RefusalDelta | RefusalDone):
                self._choice(event.choice).note_refusal(event.text)
            elif isinstance(event, UpstreamErrorEvent):
                self.end()
            self._out.pass_on(event)

    def end(self) -> None:
        """End the stream and emit everything that is held back."""
        for choice in self._choices.values():
            choice.cut()

    def shown(self, events: Iterable[Event]) -> list[Event]:
        """Return the events of a snapshot, with calls in place of the text of their blocks."""
        parts: list[Event] = []
        added: list[Event] = []
        rest: list[Event] = []
        for event in events:
            choice = self._choices.get(getattr(event, "choice", -1))
            if isinstance(event, Usage | Finished | UpstreamErrorEvent):
                rest.append(event if choice is None or not isinstance(event, Finished) else choice.concluded(event))
            elif choice is None:
                parts.append(event)
            else:
                shown = choice.shown(event)
                parts += [one for one in shown if _part_of(one) == _part_of(event)]
                added += [one for one in shown if _part_of(one) != _part_of(event)]
        added.sort(key=_part_of)
        return parts + added + rest

    def _reasoning(self, event: ReasoningStarted | ReasoningDelta | ReasoningDone) -> None:
        if not self.settings.reasoning:
            self._out.pass_on(event)
        elif isinstance(event, ReasoningDelta):
            self._choice(event.choice).delta(event)
        elif isinstance(event, ReasoningStarted):
            self._choice(event.choice).started(event)
        else:
            self._choice(event.choice).done(event)

    def _choice(self, index: int) -> _ChoiceText:
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = _ChoiceText(index, self)
        return choice

    # Called by `_ChoiceText`

    def scanner(self, choice: _ChoiceText) -> Scanner:
        return Scanner(self.settings, self._tools, self._max_block, self._max_calls, choice.refuse)

    def diagnose(self, code: str, part: int, block: Block, reason: str = "") -> None:
        self._out.diagnose(code, part, f"{block.family.name} {block.span} {reason}".rstrip())

    def pass_on(self, event: Event, address: tuple[int | None, int | None, str | None] | None = None) -> None:
        """Emit an event that was held back. `address`: the address at which the event's part was opened."""
        if address is not None:
            self._out.address = address
        self._out.pass_on(event)

    @property
    def address(self) -> tuple[int | None, int | None, str | None]:
        return self._out.address

    def has_room(self, calls: int) -> bool:
        """Return True if the limits allow this number of additional calls."""
        calls_left = self._max_calls is None or self.calls + calls <= self._max_calls
        return calls_left and (self._max_parts is None or self._numbering.parts + 2 * calls <= self._max_parts)

    def next_part(self) -> int:
        return self._numbering.number_part()

    def mint(self, part: int) -> str:
        """Return a unique id for a promoted call."""
        wanted = f"call_sw_{part}" if self._seed is None else f"call_{self._seed}_{part}"
        given = self._numbering.fresh_id(wanted, minted=True)
        self._numbering.ids_given.add(given)
        return given

    def call(self, choice: int, name: str, arguments: str, block: Block, written: str) -> ToolCall:
        """Emit one promoted call of a block. `written`: the text of the block."""
        part = self.next_part()
        self.calls += 1
        self.diagnose("text_call_promoted", part, block)
        out = self._out
        call_id = self.mint(part)
        out.opening, out.address = (False, False), (None, None, None)
        out.pass_on(ToolCallStarted(part, call_id, None, name, choice=choice))
        out.pass_on(ToolCallDelta(part, arguments, choice=choice))
        made = ToolCall(part, call_id, name, arguments, "complete", choice=choice, origin="text", raw_text=written)
        out.pass_on(made)
        return made


class _Part:
    """One part of the choice."""

    __slots__ = ("address", "done", "end", "number", "opening", "shown", "solid", "start")

    def __init__(
        self,
        opening: TextStarted | ReasoningStarted,
        address: tuple[int | None, int | None, str | None],
        end: int,
    ) -> None:
        self.number = opening.part
        self.opening = opening
        self.address = address
        self.start = _NO_TEXT  # position in the choice's text at which the part begins, known from the first delta on
        self.end = end  # position in the choice's text up to which the part has been read
        self.shown = False  # the start event has been emitted
        self.solid: int | None = None  # position of the first character that is not whitespace
        self.done: TextDone | ReasoningDone | None = None


class _Piece:
    """The text of one held delta that has not been released yet."""

    __slots__ = ("event", "metadata", "part", "start", "text")

    def __init__(self, part: _Part, event: TextDelta | ReasoningDelta, start: int) -> None:
        self.part = part
        self.event: TextDelta | ReasoningDelta | None = event  # None once some of its text has been released
        self.metadata = event.provider_metadata
        self.text = event.text
        self.start = start


class _ChoiceText:
    """Holds back the events of one choice, and decides when to release or replace them."""

    __slots__ = (
        "_declines",
        "_empty",
        "_index",
        "_latest",
        "_part",
        "_parts",
        "_queue",
        "_rewritten",
        "_scanner",
        "_stage",
        "_structured",
        "promoted",
    )

    def __init__(self, index: int, stage: TextCallStage) -> None:
        self._index = index
        self._stage = stage
        self._scanner = stage.scanner(self)
        self._queue: deque[_Part | _Piece | TextDone | ReasoningDone] = deque()
        self._parts: dict[int, _Part] = {}
        self._part: _Part | None = None
        self._empty: _Part | None = None  # the part without text whose start event is held, if any
        self._latest = -1  # number of the part that received text last
        self._structured: set[tuple[str, str]] = set()
        self._rewritten: dict[int, list[Event]] = {}  # events that replace the closing event of a part, by part number
        self._declines = False
        self.promoted = False

    @property
    def holds(self) -> bool:
        return bool(self._queue)

    def refuse(self, block: Block, reason: str) -> None:
        self._stage.diagnose("text_call_refused", block.part, block, reason)

    def note(self, call: ToolCall) -> None:
        """Record a structured call."""
        text = call.arguments or "{}"
        if is_whole(text):
            self._structured.add((call.name, comparable(text)))

    def note_refusal(self, text: str) -> None:
        """Record that the response declines, before or after its calls."""
        self._declines = self._declines or bool(text)

    # Events

    def started(self, event: TextStarted | ReasoningStarted) -> None:
        part = _Part(event, self._stage.address, self._scanner.total)
        self._parts[event.part] = part
        if self._stage.settings.mode == "report":
            self._stage.pass_on(event)
            return
        self._note_empty(part)
        self._queue.append(part)

    def delta(self, event: TextDelta | ReasoningDelta) -> None:
        part = self._parts.get(event.part)
        if part is None:
            self._stage.pass_on(event)
            return
        scanner = self._scanner
        start = scanner.total
        self._turn_to(part)
        scanner.push(event.text)
        part.end = scanner.total
        if self._stage.settings.mode == "report":
            self._stage.pass_on(event)
            return
        if not self._queue and part.shown and scanner.safe == scanner.total:
            self._stage.pass_on(event)
            return
        if self._empty is part:
            self._empty = None
        else:
            self._note_empty(None)
        if part.solid is None and not part.shown:
            blank = len(event.text) - len(event.text.lstrip(WHITE))
            part.solid = start + blank if blank < len(event.text) else None
        self._queue.append(_Piece(part, event, start))
        self._release()

    def done(self, event: TextDone | ReasoningDone) -> None:
        part = self._parts.get(event.part)
        if part is None:
            self._stage.pass_on(event)
            return
        if self._part is part:
            self._scanner.end_part()
            self._part = None
        part.done = event
        if self._stage.settings.mode == "report":
            self._stage.pass_on(event)
            return
        if self._empty is part:
            self._empty = None
        position = self._position_after(part)
        if position is None:
            self._stage.pass_on(event)
            return
        self._queue.insert(position, event)
        self._release()

    def finished(self, event: Finished) -> Finished:
        """End the choice, and either promote or refuse its pending blocks. Return the event to emit."""
        self._end_part()
        scanner = self._scanner
        if scanner.pending and event.finish_reason not in _ENDS:
            scanner.refuse_pending("finish")
        elif scanner.pending and self._declines:
            scanner.refuse_pending("refusal")
        elif scanner.pending and not self._stage.has_room(sum(len(block.calls) for block in scanner.pending)):
            scanner.refuse_pending("limit")
        blocks, scanner.pending = scanner.pending, []
        if not blocks:
            self._release()
            return event
        if self._stage.settings.mode == "report":
            for block in blocks:
                self._stage.diagnose("text_call_seen", block.part, block)
            return event
        self._promote(blocks)
        return self.concluded(event)

    def cut(self) -> None:
        """Refuse the pending blocks of a choice that has no finish event, and emit everything that is held back."""
        self._end_part()
        self._scanner.refuse_pending("cut")
        self._release()

    def shown(self, event: Event) -> list[Event]:
        """Return the events that replace one event of a snapshot."""
        if isinstance(event, TextDone | ReasoningDone) and event.part in self._rewritten:
            return self._rewritten[event.part]
        if isinstance(event, TextStarted) and event.part in self._rewritten:
            parts = [made for made in self._rewritten[event.part] if isinstance(made, TextDone)]
            return [event] if any(made.part == event.part for made in parts) else []
        return [event]

    # Internals

    def _turn_to(self, part: _Part) -> None:
        """Switch to the part that the next text belongs to.

        If that is an earlier part, scanning of this choice ends, because the position within the line is unknown.
        """
        if self._part is part:
            return
        self._end_part()
        if part.number < self._latest:
            self._scanner.turn_off()
            self._let_go()
        self._part, self._latest = part, part.number
        self._scanner.begin_part(part.number, is_reasoning=isinstance(part.opening, ReasoningStarted))
        if part.start == _NO_TEXT:
            part.start = self._scanner.total

    def _note_empty(self, newest: _Part | None) -> None:
        """Emit the held start event of a part without text, because another part has started or received text."""
        empty, self._empty = self._empty, newest
        if empty is not None:
            self._show(empty)
            self._queue.remove(empty)

    def _position_after(self, part: _Part) -> int | None:
        """Return the position in the queue after the held content of a part, or None if none of its content is held."""
        queue = self._queue
        for following, one in enumerate(reversed(queue)):
            if one is part or (isinstance(one, _Piece) and one.part is part):
                return len(queue) - following
        return None

    def _let_go(self) -> None:
        """Emit everything that is held back, unchanged."""
        self._empty = None
        while self._queue:
            first = self._queue.popleft()
            if isinstance(first, _Part):
                self._show(first)
            elif isinstance(first, _Piece):
                self._emit_piece(first, len(first.text))
            else:
                self._stage.pass_on(first)

    def _end_part(self) -> None:
        if self._part is not None:
            self._scanner.end_part()
            self._part = None

    def concluded(self, event: Finished) -> Finished:
        """Return the choice's `Finished` event, with the reason `tool_calls` if a call was promoted."""
        if not self.promoted:
            return event
        return Finished("tool_calls", event.raw_reason, choice=event.choice, provider_metadata=event.provider_metadata)

    def _release(self) -> None:
        """Emit the text that can no longer belong to a block."""
        queue, safe = self._queue, self._safe()
        while queue:
            first = queue[0]
            if isinstance(first, _Part):
                is_over = first.done is not None and first.end <= safe
                if not is_over and (first.solid is None or first.solid >= safe):
                    return
                self._show(first)
                queue.popleft()
            elif isinstance(first, _Piece):
                if first.start + len(first.text) > safe:
                    if first.start < safe:
                        self._emit_piece(first, safe - first.start)
                    return
                queue.popleft()
                self._emit_piece(first, len(first.text))
            else:
                if self._parts[first.part].end > safe:
                    return
                queue.popleft()
                self._stage.pass_on(first)

    def _safe(self) -> int:
        """Return the position in the choice's text up to which text can be emitted.

        A delta that ends with the possible beginning of a marker is held as a whole, so that it is emitted unchanged if
        no marker follows. Only the delta in which a block begins is divided.
        """
        safe = self._scanner.safe
        if self._scanner.has_block:
            return safe
        # The text after the position is shorter than a marker, so only the last pieces are searched.
        pieces = (one for one in reversed(self._queue) if isinstance(one, _Piece))
        last = next((one for one in pieces if one.start < safe), None)
        return safe if last is None or last.start + len(last.text) <= safe else last.start

    def _show(self, part: _Part) -> None:
        if not part.shown:
            part.shown = True
            self._stage.pass_on(part.opening, part.address)

    def _emit_piece(self, piece: _Piece, length: int) -> None:
        """Emit the first characters of a piece, and remove them from it."""
        if not length and piece.text:
            return
        if piece.event is not None and length == len(piece.text):
            self._stage.pass_on(piece.event)
            return
        kind = TextDelta if isinstance(piece.part.opening, TextStarted) else ReasoningDelta
        text, piece.text = piece.text[:length], piece.text[length:]
        metadata, piece.metadata = piece.metadata, None
        piece.event = None
        piece.start += length
        self._stage.pass_on(kind(piece.part.number, text, choice=self._index, provider_metadata=metadata))

    # Promotion

    def _promote(self, blocks: list[Block]) -> None:
        """Emit everything that is held back, with calls in place of the text of their blocks."""
        held, self._queue = self._queue, deque()
        parts: list[_Part] = []
        pieces: dict[int, list[_Piece]] = {}
        for one in held:
            part = one if isinstance(one, _Part) else one.part if isinstance(one, _Piece) else self._parts[one.part]
            if part not in parts:
                parts.append(part)
            if isinstance(one, _Piece):
                pieces.setdefault(part.number, []).append(one)
        for part in parts:
            own = [block for block in blocks if block.part == part.number]
            self._promote_part(part, pieces.get(part.number, []), own)

    def _promote_part(self, part: _Part, pieces: list[_Piece], blocks: list[Block]) -> None:
        """Emit one part: its text up to the first block, then, for each block, its calls and the text after it."""
        done = part.done
        if done is None:
            return
        ends = [block.start - part.start for block in blocks] + [len(done.text)]
        # A part without a block follows a part with one, so the end-of-turn tokens at its start are stripped as well.
        begin = 0 if blocks or part.shown else self._after_ends(done.text, 0)
        made = [self._first(part, pieces, done, begin, ends[0])]
        for block, end in zip(blocks, ends[1:], strict=True):
            made += self._calls(block)
            made.append(self._later(part, pieces, done, self._after_ends(done.text, block.end - part.start), end))
        self._rewritten[part.number] = [event for event in made if event is not None]

    def _first(
        self, part: _Part, pieces: list[_Piece], done: TextDone | ReasoningDone, begin: int, end: int
    ) -> Event | None:
        """Emit the text of a part before its first block."""
        text = done.text[begin:end]
        is_empty = not text.strip(WHITE)
        # An item with an id cannot be dropped, because repair has already passed its start event through.
        carries = part.opening.item_id is not None or _carries(done)
        if is_empty and not carries and not part.shown:
            return None
        if is_empty and not part.shown:
            text = ""
        self._show(part)
        if not is_empty:
            self._emit_range(part, pieces, part.number, begin, end)
        closed = done if text == done.text else _remade(done, text=text)
        self._stage.pass_on(closed)
        return closed

    def _later(
        self, part: _Part, pieces: list[_Piece], done: TextDone | ReasoningDone, begin: int, end: int
    ) -> Event | None:
        """Emit the text that follows a block as a separate part."""
        text = done.text[begin:end]
        if not text.strip(WHITE):
            return None
        number = self._stage.next_part()
        opening = part.opening
        if isinstance(opening, TextStarted):
            self._stage.pass_on(TextStarted(number, None, choice=self._index), (None, None, None))
        else:
            self._stage.pass_on(ReasoningStarted(number, opening.kind, None, choice=self._index), (None, None, None))
        self._emit_range(part, pieces, number, begin, end)
        closed = _bare(done, number, text)
        self._stage.pass_on(closed)
        return closed

    def _emit_range(self, part: _Part, pieces: list[_Piece], number: int, begin: int, end: int) -> None:
        """Emit a range of a part's text, one delta for each piece."""
        first = max(bisect_right(pieces, part.start + begin, key=attrgetter("start")) - 1, 0)
        for position in range(first, len(pieces)):
            piece = pieces[position]
            start = piece.start - part.start
            if start >= end:
                break
            text = piece.text[max(begin - start, 0) : max(end - start, 0)]
            if not text:
                continue
            if piece.event is not None and text == piece.text and number == part.number:
                self._stage.pass_on(piece.event)
                continue
            kind = TextDelta if isinstance(part.opening, TextStarted) else ReasoningDelta
            metadata, piece.metadata = piece.metadata, None
            self._stage.pass_on(kind(number, text, choice=self._index, provider_metadata=metadata))

    def _after_ends(self, text: str, at: int) -> int:
        """Return the position after the whitespace and end-of-turn tokens that follow a block."""
        while True:
            found = NOT_WHITE.search(text, at)
            at = len(text) if found is None else found.start()
            token = self._stage.settings.trailing.find.match(text, at)
            if token is None:
                return at
            at = token.end()

    def _calls(self, block: Block) -> list[Event]:
        made: list[Event] = []
        written = block.text
        for name, arguments in block.calls:
            if (name, comparable(arguments)) in self._structured:
                self._stage.diagnose("text_call_duplicate", block.part, block)
                continue
            self.promoted = True
            made.append(self._stage.call(self._index, name, arguments, block, written))
        return made


def _part_of(event: Event) -> int:
    return getattr(event, "part", -1)


def _remade(event: TextDone | ReasoningDone, **changed: Any) -> TextDone | ReasoningDone:
    values = {name: getattr(event, name) for name in event.__match_args__}
    return type(event)(**(values | changed))


def _bare(event: TextDone | ReasoningDone, number: int, text: str) -> TextDone | ReasoningDone:
    """Return a copy of a closing event with another part number and text, without its other fields."""
    if isinstance(event, TextDone):
        return _remade(event, part=number, text=text, annotations=(), provider_metadata=None)
    bare = {"item_id": None, "signature": None, "encrypted_content": None, "provider_metadata": None}
    return _remade(event, part=number, text=text, **bare)


def _carries(event: TextDone | ReasoningDone) -> bool:
    """Return True if a closing event contains more than text."""
    if event.provider_metadata:
        return True
    if isinstance(event, TextDone):
        return bool(event.annotations)
    return bool(event.signature or event.encrypted_content)
