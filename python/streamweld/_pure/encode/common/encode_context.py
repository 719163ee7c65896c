"""The state that every encoder works with: the writer, ids, losses, the caller's options, and facts about the response.

This module also contains the checks of tool calls that all encoders share. No code here depends on a dialect. `source`
is not known before the first event arrives.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from streamweld._pure.encode.common.losses import Losses
from streamweld._pure.encode.common.passed_through import PassedThrough
from streamweld._pure.encode.common.same_json import is_value
from streamweld._pure.encode.common.writer import Frames
from streamweld.events import Finished, ToolCall

if TYPE_CHECKING:
    from streamweld._pure.encode.common.finish import Ending
    from streamweld._pure.encode.common.id_mint import IdMint
    from streamweld._pure.model.unmodelled import Unmodelled
    from streamweld.events import Event, ToolCallStarted

__all__ = [
    "EncodeContext",
    "Encoder",
    "OpensChoices",
    "WritesCallsInTurn",
    "WritesUnmodelled",
    "arguments_of",
    "could_be_run",
    "final_text",
    "is_empty_cut",
    "is_whole",
]

_MARKS_TRUNCATED_CALLS = frozenset({"ai-sdk-parts", "ai-sdk-ui"})  # targets that mark a truncated call as invalid
_RUNS_INVALID_CALLS = frozenset({"chat", "anthropic"})  # targets that have no sign for an invalid call
_BLANK = " \t\n\r"
_NO_ARGUMENTS = "{}"


@dataclass(slots=True)
class EncodeContext:
    """The state of one stream that is being encoded."""

    mint: IdMint
    created: int = 0  # creation time to write if the source sends none
    hold_arguments: bool = False  # do not write any part of a call before the `ToolCall` event
    include_usage: bool = True  # Chat Completions: write the usage, which that API sends only on request
    reasoning_events: Literal["openai", "openresponses"] = "openai"
    cut_ending: Literal["incomplete", "error"] = "incomplete"  # Responses: how a truncated response ends
    carry_reasoning: bool = False  # write signed and encrypted reasoning as a carrier that the client sends back
    frames: Frames = field(default_factory=Frames)
    losses: Losses = field(default_factory=Losses)
    passed: PassedThrough = field(default_factory=PassedThrough)
    # Ids of calls in earlier turns. A new call with one of these ids is written only once it is complete, and with
    # another id.
    known_call_ids: frozenset[str] = frozenset()
    source: str | None = None
    target: str | None = None
    # Members of the current call that `ToolCallStarted` lacks.
    custom: bool = False
    provider_executed: bool = False
    cut: bool = False  # the input was truncated, so the current events close parts that were still open
    # True if the stream must end with an error because the upstream contradicted what was already written.
    broken: bool = False
    taken: set[str] = field(default_factory=set[str])  # ids of the calls of this response
    # Choices with a truncated call that the client would have to run.
    unfinished: set[int] = field(default_factory=set[int])
    # Choices with an invalid call that a client could run, although `parse` does not allow it.
    invalid: set[int] = field(default_factory=set[int])

    @property
    def carries(self) -> bool:
        """True if signatures and encrypted content of the current events are written as carriers."""
        return self.carry_reasoning and not self.passed.own and not (self.source or "").startswith("ai-sdk-")

    def as_written(self, event: Event) -> Event:
        """Return the event to encode.

        A finish reason is replaced if it would make a client run a truncated call of the choice. Any other event is
        returned unchanged. A finish reason that the parser inferred is always replaced. A reason from the source is
        replaced if it means success, has not passed through, and the target does not mark the call itself as truncated.

        In a conversion to another dialect, a finish reason that means success is also replaced if the choice has an
        invalid call that a client could run, and the target cannot mark the call itself.
        """
        if isinstance(event, ToolCall) and event.state == "incomplete" and not event.provider_executed:
            self.unfinished.add(event.choice)
        elif isinstance(event, ToolCall) and self._must_not_run(event):
            self.invalid.add(event.choice)
        elif isinstance(event, Finished) and event.choice in self.invalid and event.choice not in self.unfinished:
            if event.reason in ("stop", "tool_calls"):
                return Finished("other", choice=event.choice, provider_metadata=event.provider_metadata)
        elif isinstance(event, Finished) and event.choice in self.unfinished:
            is_sent = event.choice in self.passed.finished or self.target in _MARKS_TRUNCATED_CALLS
            if event.raw_reason is None or (event.reason in ("stop", "tool_calls") and not is_sent):
                return Finished("length", choice=event.choice, provider_metadata=event.provider_metadata)
        return event

    def _must_not_run(self, call: ToolCall) -> bool:
        """Return True if a client of the target would run an invalid call after a successful finish reason."""
        if self.passed.own or self.target not in _RUNS_INVALID_CALLS or call.provider_executed or not call.name:
            return False
        return call.state == "invalid" and call.reason != "refused" and could_be_run(arguments_of(call), call.custom)

    def takes(self, call_id: str) -> bool:
        """Register the id of a call.

        Returns False if the id is already in use, in which case the call is written with a new id once it is complete.
        """
        is_new = call_id not in self.taken
        self.taken.add(call_id)
        return is_new and call_id not in self.known_call_ids

    def opens(self, call: ToolCallStarted) -> bool:
        """Register the id of a call. Return True if the call may be written before it is complete."""
        if call.call_id is None:
            return False
        return self.takes(call.call_id) and bool(call.call_id and call.name) and not self.hold_arguments


def is_whole(call: ToolCall) -> bool:
    """Return True if the call is complete and either has valid arguments or was rejected by the application."""
    return call.state in ("complete", "empty") or call.reason == "refused"


def is_empty_cut(call: ToolCall) -> bool:
    """Return True for a truncated call without arguments.

    If the target cannot mark a call as incomplete, a client might run such a call. Once the call is announced, only an
    unsuccessful ending of the response prevents the client from running it.
    """
    return call.state == "incomplete" and not call.provider_executed and not call.arguments.strip(_BLANK)


def arguments_of(call: ToolCall) -> str:
    """Return the arguments as text.

    For an invalid call, return everything that was sent. If several JSON values were sent, the first alone would look
    like valid arguments.
    """
    return call.arguments if call.state != "invalid" or call.raw_arguments is None else call.raw_arguments


def could_be_run(text: str, custom: bool) -> bool:
    """Return True if a client that looks only at the arguments would run a call. The AI SDK treats missing arguments as
    `{}`.
    """
    return custom or not text.strip() or is_value(text)


def final_text(written: str, call: ToolCall) -> str:
    """Return the complete arguments of a call. `written` is the part of the arguments that has already been written.

    For an invalid call, return everything that was sent as arguments. If a complete call has only blank arguments, `{}`
    is appended to `written`.
    """
    if not is_whole(call):
        return arguments_of(call)
    if call.custom or call.arguments.strip(_BLANK) or written.strip(_BLANK):
        return call.arguments
    return written + _NO_ARGUMENTS


class Encoder(Protocol):
    """Receives the events of a stream and writes them in one dialect.

    An encoder accepts events in any order, and receives none after `end`.
    """

    def __init__(self, context: EncodeContext) -> None: ...

    def event(self, event: Event, /) -> None:
        """Handle the next event. This method may record losses, but does not raise an exception."""
        ...

    def end(self, ending: Ending, /) -> None:
        """Write the ending, either complete or with an error."""
        ...


@runtime_checkable
class WritesUnmodelled(Protocol):
    """Encoder that can write content of its own dialect that no streamweld event represents."""

    def write_unmodelled(self, content: Unmodelled, /) -> None:
        """Write content that no streamweld event represents, in the place where it was sent."""
        ...


@runtime_checkable
class OpensChoices(Protocol):
    """Encoder for a dialect whose choices begin with a role."""

    def open(self, choice: int, /) -> None:
        """Write the first chunk of a choice, with its role, unless the choice is already open."""
        ...

    def role(self, choice: int, /) -> bytes:
        """Return the chunk that opens a choice whose first chunk from the source lacks the role."""
        ...


@runtime_checkable
class WritesCallsInTurn(Protocol):
    """Encoder for a dialect whose calls are written one after another, although sources may interleave them."""

    def has_waiting_calls(self) -> bool:
        """Return True if a received call has not been fully written because it must wait for another call."""
        ...
