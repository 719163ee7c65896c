"""Read the arguments of a tool call while they arrive. `StreamParser.partial` returns `PartialArguments`.

The view of a call is updated by the events of that call. Views work in the same way with both backends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from streamweld._json import partial_object
from streamweld._pure.json.partial import ArgumentsChange, OpenString, Path
from streamweld.errors import StreamError, UsageError
from streamweld.events import ToolCall, ToolCallDelta, ToolCallReset, ToolCallRetracted

if TYPE_CHECKING:
    from streamweld._backend import Parser
    from streamweld._literals import ToolCallState
    from streamweld.events import Diagnostic, Event
    from streamweld.response import Choice, Fold

__all__ = ["ArgumentsChange", "OpenString", "PartialArguments", "PartialState", "Path"]

PartialState: TypeAlias = "Literal['broken', 'retracted'] | ToolCallState"
"""`open`, `broken` (the text can no longer become JSON), `retracted`, or the final state of the call."""


class PartialArguments:
    """The arguments of one tool call while they arrive. Get a view from `StreamParser.partial` or
    `EventIterator.partial`.

    The time to process a delta depends only on the length of that delta. A value contains only what is certain so far:
    a number that may continue, a key without a value, or half of an escape is omitted until it is complete.

    >>> from streamweld import StreamParser
    >>> parser = StreamParser()
    >>> call = b'{"index":0,"id":"a","function":{"name":"f","arguments":"{\\\\"n\\\\":[1],\\\\"text\\\\":\\\\"pri"}}'
    >>> events = parser.feed(b'data: {"choices":[{"delta":{"tool_calls":[' + call + b"]}}]}\\n\\n")
    >>> view = parser.partial(events[1].part)
    >>> view.value, view.tail.path, view.tail.text
    ({'n': [1]}, ('text',), 'pri')
    """

    __slots__ = ("_fed", "_part", "_state", "_text")

    def __init__(self, part: int) -> None:
        self._part = part
        self._state: PartialState = "open"
        self._text = partial_object()
        self._fed: list[str] = []

    @property
    def part(self) -> int:
        """The part number of the call."""
        return self._part

    @property
    def state(self) -> PartialState:
        """`open` while the call is arriving, then the state of the `ToolCall`.

        `broken` if the text can no longer become an object, as with a `custom` call, whose arguments are plain text;
        `value` then contains the valid beginning. `retracted` after a `ToolCallRetracted`.
        """
        return "broken" if self._state == "open" and self._text.is_broken else self._state

    @property
    def value(self) -> dict[str, Any] | None:
        """The arguments so far, without an unfinished string; None until the object begins.

        Until a `reset`, each access returns the same object, which grows in place. Copy any part that you want to keep.
        """
        return self._text.root

    @property
    def tail(self) -> OpenString | None:
        """The unfinished string: its path and its fragments. None if the arguments do not end inside a string."""
        return self._text.tail

    def changes(self) -> list[ArgumentsChange]:
        """Return the changes since the last call to this method, in order. The first call returns all changes."""
        found, self._text.changes = self._text.changes, []
        return found

    def apply(self, event: Event) -> None:
        """Apply the next event of the stream. Events of other parts are ignored.

        The parser calls this method for its own views. Call this method yourself only on a view that you created, to
        replay stored events.
        """
        match event:
            case ToolCallDelta(part=self._part, arguments=arguments):
                self._feed(arguments)
            case ToolCallReset(part=self._part):
                self._reset()
            case ToolCallRetracted(part=self._part):
                self._reset()
                self._state = "retracted"
            case ToolCall(part=self._part):
                self._end(event)
            case _:
                pass

    def _feed(self, arguments: str) -> None:
        self._fed.append(arguments)
        self._text.feed(arguments)

    def _reset(self) -> None:
        self._fed.clear()
        self._text = partial_object()
        self._text.changes.append(ArgumentsChange("reset", ()))

    def _end(self, call: ToolCall) -> None:
        fed = "".join(self._fed)
        # After an overflow, the text after the first value was not parsed.
        if fed != call.arguments and not (self._text.is_broken and call.arguments and fed.startswith(call.arguments)):
            if fed:
                self._reset()
            self._feed(call.arguments)
        self._fed.clear()
        self._state = call.state
        if call.state == "empty":
            self._text.feed("{}")

    def __repr__(self) -> str:
        return f"PartialArguments(part={self._part}, state={self.state!r}, value={self.value!r})"


class Following:
    """Wraps a backend's parser and updates the views of its calls.

    This wrapper replaces the parser as soon as a view exists.
    """

    __slots__ = ("_ended", "_parser", "_views")

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self._views: dict[int, PartialArguments] = {}
        self._ended = {
            event.part: event for event in parser.snapshot()[0] if isinstance(event, ToolCall) and event.state != "open"
        }

    def view(self, part: int) -> PartialArguments:
        """Return the view of a call.

        Raises:
            UsageError: if the part is not a tool call, or if the call has not started yet.
        """
        view = self._views.get(part)
        if view is None:
            view = PartialArguments(part)
            ended = self._ended.get(part)
            if ended is not None:
                view.apply(ended)
            else:
                shown = self._parser.shown_arguments(part)
                if shown is None:
                    raise no_call(part)
                view.apply(ToolCallDelta(part, shown))
            self._views[part] = view
        return view

    def _follow(self, events: list[Event]) -> list[Event]:
        for event in events:
            if isinstance(event, _OF_CALLS):
                view = self._views.get(event.part)
                if view is not None:
                    view.apply(event)
                if isinstance(event, ToolCall):
                    self._ended[event.part] = event
        return events

    def feed(self, data: bytes | bytearray | memoryview, /) -> list[Event]:
        try:
            return self._follow(self._parser.feed(data))
        except StreamError as fault:
            self._follow(fault.events)
            raise

    def close(self, broken: bool = False) -> list[Event]:
        try:
            return self._follow(self._parser.close(broken))
        except StreamError as fault:
            self._follow(fault.events)
            raise

    def feed_silent(self, data: bytes | bytearray | memoryview, /) -> None:
        self._parser.feed_silent(data)

    def close_silent(self, broken: bool = False) -> None:
        self._parser.close_silent(broken)

    def snapshot(self) -> tuple[list[Event], str, int]:
        return self._parser.snapshot()

    def fold(self, choice: type[Choice], /) -> Fold | None:
        return self._parser.fold(choice)

    def shown_arguments(self, part: int, /) -> str | None:
        return self._parser.shown_arguments(part)

    @property
    def dialect(self) -> str | None:
        return self._parser.dialect

    @property
    def diagnostics(self) -> list[Diagnostic]:
        return self._parser.diagnostics


def arguments_so_far(parser: Parser | Following, part: int) -> str:
    """Return the argument text received so far for a call."""
    shown = parser.shown_arguments(part)
    if shown is not None:
        return shown
    for event in parser.snapshot()[0]:
        if isinstance(event, ToolCall) and event.part == part:
            return event.arguments
    raise no_call(part)


def no_call(part: int) -> UsageError:
    return UsageError(
        f"part {part} is not a tool call of this stream, or the call has not started; use the `part` of a "
        "ToolCallStarted event"
    )


_OF_CALLS: Final = (ToolCallDelta, ToolCallReset, ToolCallRetracted, ToolCall)
