"""Holds back tool calls until it is known whether the server runs them itself.

A Responses stream may contain a `function_call` together with its `function_call_output`. After a conversion to another
dialect, a client would run such a call again. Therefore, each call waits until its result arrives, or until a part of
another kind or the end of the response shows that the client has to run the call. Later events of calls and tool
results also wait, so that the order stays the same. The parser's limits also bound the amount of waiting content.

A call to a tool that the request defines does not wait, because the client runs its own tools. The caller can pass the
request's tools, and most servers repeat them in the opening event of the response.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from streamweld._pure.json.kinds import is_object
from streamweld.events import (
    File,
    Finished,
    ReasoningStarted,
    RefusalStarted,
    Source,
    TextStarted,
    ToolCall,
    ToolCallDelta,
    ToolCallReset,
    ToolCallRetracted,
    ToolCallStarted,
    ToolResult,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from streamweld.events import Event

__all__ = ["HeldCalls", "Opening", "holds"]

Opening: TypeAlias = tuple[bool, bool]  # whether a started call is custom, and whether the provider runs it
_NOT_OPENING: Final = (False, False)


def holds(source: str | None) -> bool:
    """Return True if servers of this dialect may run calls that are not marked as run by the provider."""
    return source == "responses"


class _Pieces(NamedTuple):
    """Consecutive deltas of a call, without metadata."""

    part: int
    choice: int
    texts: list[str]


class HeldCalls:
    """Stores the held events of one stream, and which calls the server ran."""

    __slots__ = ("_client_tools", "_events", "_executed", "_parts", "_undecided")

    def __init__(self, tools: Iterable[str] | None) -> None:
        """Create an empty store. `tools` contains the names of the request's tools, if the caller passed them."""
        self._client_tools = set(tools or ())  # names of the tools that the client runs, as far as they are known
        self._events: list[tuple[Event | _Pieces, Opening]] = []
        self._undecided: dict[int, str] = {}  # held calls without a result: part number -> call id
        # For each call id, a heap of negated part numbers, so that the latest part is found first. Parts that are no
        # longer in `_undecided` are skipped.
        self._parts: dict[str, list[int]] = {}
        self._executed: set[int] = set()  # part numbers of the calls that the server ran

    def add_client_tools(self, tools: object) -> None:
        """Add the functions and free-form tools from the list of the request's tools that a response repeats.

        A tool of the type `namespace` contains another list of tools. Tools of other types are not added, because the
        server may run them.
        """
        for tool in _objects(tools):
            for listed in _objects(tool.get("tools")) if tool.get("type") == "namespace" else (tool,):
                name = listed.get("name")
                if listed.get("type") in ("function", "custom") and isinstance(name, str):
                    self._client_tools.add(name)

    def take(self, event: Event, opening: Opening) -> Iterator[tuple[Event, Opening]]:
        """Return the events to write now, each with its `opening`. The given event is not included if it is held.

        `opening` contains two facts that a call's start event lacks: whether the call is custom, and whether the
        provider runs it.
        """
        if isinstance(event, ToolCallStarted) and not opening[1] and event.name not in self._client_tools:
            self._wait(event.part, event.call_id or "")
            self._events.append((event, opening))
            return
        if not self._undecided:
            yield self._as_executed(event, opening)
            return
        match event:
            case (
                ToolCallStarted() | ToolCallDelta() | ToolCallReset() | ToolCall() | ToolCallRetracted() | ToolResult()
            ):
                self._decide(event)
                self._keep(event, opening)
                if not self._undecided:
                    yield from self.release()
            case TextStarted() | ReasoningStarted() | RefusalStarted() | Source() | File() | Finished():
                yield from self.release()
                yield event, opening
            case _:
                yield event, opening

    def release(self) -> Iterator[tuple[Event, Opening]]:
        """Remove and return the held events. The client must run the calls that still have no result."""
        self._undecided.clear()
        self._parts.clear()
        events, self._events = self._events, []
        for event, opening in events:
            if isinstance(event, _Pieces):
                for text in event.texts:
                    yield ToolCallDelta(event.part, text, choice=event.choice), _NOT_OPENING
            else:
                yield self._as_executed(event, opening)

    def _decide(self, event: Event) -> None:
        """Record that the server ran a held call, that a held call was retracted, or that the id of a held call
        changed.
        """
        undecided = self._undecided
        match event:
            case ToolCall(part=part) if part in undecided:
                if event.provider_executed:
                    self._run(part)
                elif undecided[part] != event.call_id:
                    self._wait(part, event.call_id)
            case ToolCallRetracted():
                undecided.pop(event.part, None)
            case ToolResult():
                answered = self._latest(event.call_id)
                if answered is not None:
                    self._run(answered)
            case _:
                pass

    def _wait(self, part: int, call_id: str) -> None:
        """Add a held call, or replace the id of a held call."""
        heappush(self._parts.setdefault(call_id, []), -part)
        self._undecided[part] = call_id

    def _latest(self, call_id: str) -> int | None:
        """Return the part number of the latest held call with this id, or None.

        Later calls have higher part numbers.
        """
        parts = self._parts.get(call_id, [])
        while parts:
            part = -heappop(parts)
            if self._undecided.get(part) == call_id:
                return part
        return None

    def _run(self, part: int) -> None:
        del self._undecided[part]
        self._executed.add(part)

    def _keep(self, event: Event, opening: Opening) -> None:
        if not isinstance(event, ToolCallDelta) or event.provider_metadata is not None:
            self._events.append((event, opening))
            return
        last = self._events[-1][0]
        if isinstance(last, _Pieces) and last.part == event.part:
            last.texts.append(event.arguments)
        else:
            self._events.append((_Pieces(event.part, event.choice, [event.arguments]), opening))

    def _as_executed(self, event: Event, opening: Opening) -> tuple[Event, Opening]:
        """Return the event, with the call marked as run by the provider if the server ran the call."""
        if isinstance(event, ToolCallStarted) and event.part in self._executed:
            return event, (opening[0], True)
        if isinstance(event, ToolCall) and event.part in self._executed:
            fields: dict[str, Any] = {name: getattr(event, name) for name in event.__match_args__}
            fields["provider_executed"] = True
            return ToolCall(**fields), opening
        return event, opening


def _objects(value: object) -> list[dict[str, Any]]:
    """Return the objects in a list. The result is empty for a value of any other kind."""
    return [item for item in cast("list[object]", value) if is_object(item)] if isinstance(value, list) else []
