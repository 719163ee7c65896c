"""Writes the tool calls of one choice as elements of `delta.tool_calls`, one call after another.

openai-python parses the arguments of a call as soon as an element of another call arrives. Therefore, a call waits
until the arguments of the previous call are complete, which means that they form one JSON object or that the previous
call has ended. Calls are written in the order in which they were announced. The parser's limits also bound the amount
of waiting text. The encoder decides which chunk an element goes into.
"""

from __future__ import annotations

from enum import Enum, auto
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from streamweld._pure.encode.common.encode_context import final_text, is_empty_cut, is_whole
from streamweld._pure.encode.common.part_details import WrittenText
from streamweld._pure.encode.common.same_json import same_value
from streamweld._pure.encode.common.writer import quoted
from streamweld._pure.json.automaton import Automaton

if TYPE_CHECKING:
    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld.events import ToolCall, ToolCallDelta, ToolCallStarted

__all__ = ["Calls"]

_BLANK: Final = " \t\r\n"


class _State(Enum):
    """How much of a call has been written.

    A call moves through the states in the order in which they are listed, and may skip some.
    """

    HELD = auto()  # nothing was written; the call can be written only once it is complete
    LATE = auto()  # nothing was written; the call can be written only once its arguments are complete
    WAITING = auto()  # nothing was written; the call waits for its turn
    BEGUN = auto()  # the id, the name, and `written_text` were written
    RESET = auto()  # like BEGUN, but the upstream reset the arguments; only the final event's arguments are valid
    CUT = auto()  # everything received was written; no other call is written before the finish reason
    ENDED = auto()  # everything except the text in `waits` was written, and the call has ended
    WHOLE = auto()  # nothing was written; the call is complete and waits for its turn


class _Call:
    """A call that has not been completely written."""

    __slots__ = ("_json", "_unchecked", "call_id", "custom", "index", "name", "state", "waits", "written_text")

    def __init__(self, state: _State, call_id: str, name: str, *, custom: bool, index: int | None = None) -> None:
        self.state = state
        self.call_id = call_id
        self.name = name
        self.custom = custom  # whether the text is free-form, which only clients of this dialect can read
        self.index = index  # the index that the source sent; once the call has begun, the index that was written
        self.written_text = WrittenText()
        self.waits: list[str] = []  # text that has not been written yet
        self._json: Automaton | None = None  # state of the JSON parser after the pieces that were checked
        self._unchecked: list[str] = []

    def receive(self, text: str, *, waits: bool) -> None:
        """Record a piece of text. If `waits` is true, the piece is written later; otherwise, it counts as written."""
        self._unchecked.append(text)
        if waits:
            self.waits.append(text)
        else:
            self.written_text.add(text)

    def take_waiting(self) -> str:
        """Return the text that waits, and record it as written."""
        text, self.waits = "".join(self.waits), []
        self.written_text.add(text)
        return text

    def gives_way(self) -> bool:
        """Return True if another call can be written now.

        Clients must have received all arguments of this call, unless its text is free-form. The end of free-form text
        cannot be detected, and clients do not parse such text.
        """
        return self.custom or (self.state is not _State.RESET and self.is_object())

    def is_object(self) -> bool:
        """Return True if the received text is one complete JSON object. Scans each piece of text only once."""
        if self._json is None:
            self._json = Automaton()
        unchecked, self._unchecked = self._unchecked, []
        for piece in unchecked:
            self._json.feed(piece)
        return self._json.verdict == "complete" and self._json.root == "object"


class Calls:
    """Writes the calls of one choice, one after another."""

    __slots__ = (
        "_calls",
        "_context",
        "_current",
        "_indexes",
        "_late",
        "_next",
        "_turns",
        "_unanswered",
        "contradicted",
        "has_empty_cut_call",
        "has_nameless",
        "written",
    )

    def __init__(self, context: EncodeContext) -> None:
        self._context = context
        self._calls: dict[int, _Call] = {}  # calls by part number, until they are completely written
        self._current: int | None = None  # the call written last in `tool_calls`, until the call ends
        # Heap of the part numbers of the calls that have not begun. A lower part number means that the call's first
        # fragment arrived earlier. The number of a removed call stays in the heap until it is the smallest.
        self._turns: list[int] = []
        self._late: list[int] = []  # heap of calls that have begun and whose text waits for another call
        self._indexes: set[int] = set()
        self._next = 0  # one more than the highest index of a started call
        self.written = 0
        self._unanswered: set[str] = set()  # ids of the written calls for which the stream contains no result
        self.contradicted = False
        # True if a truncated call was written without arguments.
        self.has_empty_cut_call = False
        self.has_nameless = False  # a call was omitted because it has no name

    @property
    def has_unanswered(self) -> bool:
        """True if a written call has no result in the stream, so that the client must run the call."""
        return bool(self._unanswered)

    @property
    def has_unwritten(self) -> bool:
        """True if a call or text that was received is not written yet."""
        return self._turn() is not None or self._late_call() is not None

    @property
    def has_lost(self) -> bool:
        """True if a call waits only because earlier calls must be written first."""
        return any(call.state in (_State.WAITING, _State.WHOLE) for call in self._calls.values())

    def answered(self, call_id: str) -> None:
        """Record that the stream contains the result of a call."""
        self._unanswered.discard(call_id)

    def is_begun(self, part: int) -> bool:
        return part in self._calls and self._calls[part].state in (_State.BEGUN, _State.RESET)

    def started(self, event: ToolCallStarted) -> list[str]:
        """Return the first element of a call, if the call can be written before it is complete and no other call has to
        be written first.
        """
        context = self._context
        opens = context.opens(event)
        if context.provider_executed:
            return []
        state = _State.WAITING
        if not opens or (context.custom and not context.passed.own):
            state = _State.HELD
        elif event.choice in context.passed.finished and not context.custom:
            # After a finish reason that passed through, openai-python parses the arguments of a call at the next chunk.
            state = _State.LATE
        call = _Call(state, event.call_id or "", event.name, custom=context.custom, index=context.passed.index)
        self._calls[event.part] = call
        heappush(self._turns, event.part)
        elements = self._go_on()
        if call.state is _State.WAITING:
            call.index = None  # the call is written at another position than in the source
        return elements

    def retracted(self, part: int) -> list[str]:
        """Remove a call that was retracted, and return the calls that waited for it."""
        self._calls.pop(part, None)
        return self._go_on()

    def reset(self, part: int) -> None:
        call = self._calls.get(part)
        if call is None:
            return
        if call.state in (_State.LATE, _State.WAITING):
            call.state, call.waits = _State.HELD, []
        elif call.state is _State.BEGUN:
            call.state = _State.RESET

    def delta(self, event: ToolCallDelta) -> list[str]:
        call = self._calls.get(event.part)
        if call is None or not event.arguments:
            return []
        if call.state in (_State.LATE, _State.WAITING):
            call.receive(event.arguments, waits=True)
            if call.state is _State.WAITING or not call.is_object():
                return []
            call.state = _State.WAITING
            return self._go_on()
        if call.state is not _State.BEGUN:
            return []
        if self._current != event.part:
            if _is_empty_end(call, event.arguments):
                return []
            if not self._is_free():
                self._keep_late(event.part, call)
                call.receive(event.arguments, waits=True)
                return []
            self._current = event.part
        call.receive(event.arguments, waits=False)
        return [_piece(call, event.arguments), *self._go_on()]

    def whole(self, call: ToolCall) -> list[str]:
        """Return the rest of a call that has ended, and the calls that no longer have to wait.

        Sets `contradicted` if the final event contradicts what was already written.
        """
        self._context.takes(call.call_id)
        begun = self._calls.get(call.part)
        if begun is None or begun.state not in (_State.BEGUN, _State.RESET):
            return self._at_once(call)
        whole, losses = is_whole(call), self._context.losses
        self.has_empty_cut_call = self.has_empty_cut_call or is_empty_cut(call)
        same = (begun.call_id, begun.name) == (call.call_id, call.name)
        if whole and (not same or call.provider_executed or call.custom != begun.custom):
            self.contradicted = True
            return []
        if call.reason == "refused":
            losses.note("refused_call")
        written_text = begun.written_text.text()
        text = final_text(written_text, call)
        rest = begun.written_text.remaining(text)
        if rest is None and whole:
            # If the final arguments of a truncated or invalid call do not continue the streamed text, nothing is added.
            if call.custom or not same_value(written_text, text):
                self.contradicted = True
                return []
            losses.note("arguments_spelling")
        if call.state == "incomplete" and self._current == call.part:
            begun.state = _State.CUT
            return [_piece(begun, rest)] if rest else []
        return self._end(call.part, begun, rest or "")

    def finished(self) -> list[str]:
        """Return the calls that waited for a truncated call.

        If the stream ends with an error, these calls are not written.
        """
        if self._current is not None and self._calls[self._current].state is _State.CUT:
            del self._calls[self._current]
            self._current = None
        return self._go_on()

    def _end(self, part: int, call: _Call, rest: str) -> list[str]:
        """Return the rest of a call, or store the rest if another call must be completed first."""
        is_current = self._current == part
        if not is_current and _is_empty_end(call, rest):
            rest = ""
        if rest and not (is_current or self._is_free()):
            self._keep_late(part, call)
            call.state, call.waits = _State.ENDED, [rest]
            return []
        del self._calls[part]
        if is_current or rest:
            self._current = None
        return ([_piece(call, rest)] if rest else []) + self._go_on()

    def _at_once(self, call: ToolCall) -> list[str]:
        """Return a whole call that has not begun, or queue it until no other call has to be written first."""
        if not self._is_written(call):
            self._calls.pop(call.part, None)
            return self._go_on()
        own = self._context.passed.own
        arguments = f'{{"input":{quoted(call.arguments)}}}' if call.custom and not own else final_text("", call)
        if call.part not in self._calls:
            heappush(self._turns, call.part)
        whole = self._calls[call.part] = _Call(_State.WHOLE, call.call_id, call.name, custom=call.custom and own)
        whole.waits = [arguments]
        return self._go_on()

    def _is_written(self, call: ToolCall) -> bool:
        """Return True if a call that has not begun must be written. Report the losses in either case."""
        losses = self._context.losses
        if call.provider_executed:
            losses.note("server_tool")
        elif not call.name or not call.call_id:
            losses.note("nameless_call")
            self.has_nameless = True
        elif call.state == "incomplete" and not self._is_kept(call):
            losses.note("cut_call")
        else:
            if call.custom and not self._context.passed.own:
                losses.note("custom_call")
            if call.reason == "refused":
                losses.note("refused_call")
            return True
        return False

    def _is_kept(self, call: ToolCall) -> bool:
        """Return True if a truncated call is written because a source of the same dialect sent it.

        If the input itself was truncated, the call is omitted.
        """
        is_kept = self._context.passed.own and not self._context.cut
        self.has_empty_cut_call = self.has_empty_cut_call or (is_kept and is_empty_cut(call))
        return is_kept

    # The order of calls

    def _turn(self) -> int | None:
        """Return the first call that has not begun."""
        return self._first(self._turns)

    def _late_call(self) -> int | None:
        """Return the first of the calls that have begun and whose text waits."""
        return self._first(self._late)

    def _first(self, heap: list[int]) -> int | None:
        while heap and heap[0] not in self._calls:
            heappop(heap)
        return heap[0] if heap else None

    def _keep_late(self, part: int, call: _Call) -> None:
        """Record a call that has begun and whose text waits for another call."""
        if not call.waits:
            heappush(self._late, part)

    def _is_free(self) -> bool:
        """Return True if a call other than the current one can be written."""
        call = None if self._current is None else self._calls.get(self._current)
        return call is None or call.gives_way()

    def _go_on(self) -> list[str]:
        """Return the waiting text and calls in order, as long as the current call does not block them."""
        elements: list[str] = []
        while self.has_unwritten and self._is_free():
            part = self._late_call()
            if part is not None:
                heappop(self._late)
                elements.append(self._write_waiting(part, self._calls[part]))
                continue
            part = self._turn()
            if part is None or self._calls[part].state in (_State.HELD, _State.LATE):
                break
            heappop(self._turns)
            elements.append(self._begin(part, self._calls[part]))
        return elements

    def _write_waiting(self, part: int, call: _Call) -> str:
        """Return the element with the waiting text of a call that has begun."""
        self._current = part
        if call.state is _State.ENDED:
            self._current = None
            del self._calls[part]
        return _piece(call, call.take_waiting())

    def _begin(self, part: int, call: _Call) -> str:
        """Return the first element of a call, with the waiting text."""
        sent = call.index
        call.index = self._next if sent is None or sent < 0 or sent in self._indexes else sent
        self._indexes.add(call.index)
        self._next = max(self._next, call.index + 1)
        self.written += 1
        self._unanswered.add(call.call_id)
        self._current = part
        if call.state is _State.WHOLE:
            self._current = None
            del self._calls[part]
        call.state = _State.BEGUN
        return _head(call, call.take_waiting())


def _is_empty_end(call: _Call, text: str) -> bool:
    """Return True if `text` is blank and the arguments are already a complete object."""
    return not text.strip(_BLANK) and not call.custom and call.is_object()


def _head(call: _Call, arguments: str) -> str:
    kind, text = _names(call)
    inner = f'{{"name":{quoted(call.name)},"{text}":{quoted(arguments)}}}'
    return f'{{"index":{call.index},"id":{quoted(call.call_id)},"type":"{kind}","{kind}":{inner}}}'


def _piece(call: _Call, arguments: str) -> str:
    kind, text = _names(call)
    return f'{{"index":{call.index},"{kind}":{{"{text}":{quoted(arguments)}}}}}'


def _names(call: _Call) -> tuple[str, str]:
    return ("custom", "input") if call.custom else ("function", "arguments")
