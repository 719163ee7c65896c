"""What every encoder is given: where to write, ids, losses, options, and what of the source it may know; and what
several of them ask about tool calls.

Knows no dialect. `source` is the one fact about the reading side that an encoder may ask for (whose counts, whose
signatures these are); it is known when the first event comes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from streamweld._pure.encode.common.losses import Losses
from streamweld._pure.encode.common.passed_through import PassedThrough
from streamweld._pure.encode.common.writer import Frames
from streamweld.events import Finished, ToolCall

if TYPE_CHECKING:
    from streamweld._pure.encode.common.finish import Ending
    from streamweld._pure.encode.common.id_mint import IdMint
    from streamweld.events import Event, ToolCallStarted

__all__ = ["EncodeContext", "Encoder", "OpensChoices", "arguments_of", "is_whole", "text_behind"]

_BLANK = " \t\n\r"
_NO_ARGUMENTS = "{}"


@dataclass(slots=True)
class EncodeContext:
    """One stream to be written."""

    mint: IdMint
    created: int = 0  # when the answer was created, if the source does not state it
    hold_arguments: bool = False  # nothing of a call before its ToolCall
    include_usage: bool = True  # of Chat Completions, which sends it on request only
    reasoning_events: Literal["openai", "openresponses"] = "openai"
    cut_ending: Literal["incomplete", "error"] = "incomplete"  # of Responses, where a cut answer may end as unfinished
    carry_reasoning: bool = False  # signed and encrypted reasoning goes out as a carrier that the client returns
    frames: Frames = field(default_factory=Frames)
    losses: Losses = field(default_factory=Losses)
    passed: PassedThrough = field(default_factory=PassedThrough)
    # Ids of earlier turns: a call that reuses one is given another, which is known when it is whole.
    known_call_ids: frozenset[str] = frozenset()
    source: str | None = None
    # Of the call that a ToolCallStarted at hand opens: what the event does not say.
    custom: bool = False
    provider_executed: bool = False
    cut: bool = False  # the events at hand come from the end of a cut input: what they close was open
    broken: bool = False  # said by the encoder: what went out cannot be mended; its error ending is written
    taken: set[str] = field(default_factory=set[str])  # ids of calls of this answer
    unfinished: set[int] = field(default_factory=set[int])  # choices with a call of the client's that is not whole

    @property
    def carries(self) -> bool:
        """Signatures and encrypted content of the events at hand are carriers, which any client returns."""
        return self.carry_reasoning and not self.passed.own and not (self.source or "").startswith("ai-sdk-")

    def as_written(self, event: Event) -> Event:
        """The event as an encoder takes it: a reason that was not sent must not make a client run a cut call."""
        if isinstance(event, ToolCall) and event.state == "incomplete" and not event.provider_executed:
            self.unfinished.add(event.choice)
        elif isinstance(event, Finished) and event.raw_reason is None and event.choice in self.unfinished:
            return Finished("length", choice=event.choice, provider_metadata=event.provider_metadata)
        return event

    def takes(self, call_id: str) -> bool:
        """A call comes under that id. False where one had it before: it is told under another one when it is whole."""
        is_new = call_id not in self.taken
        self.taken.add(call_id)
        return is_new and call_id not in self.known_call_ids

    def opens(self, call: ToolCallStarted) -> bool:
        """Whether the call can be written before it is whole, as its reader is told of it."""
        if call.call_id is None:
            return False
        return self.takes(call.call_id) and bool(call.call_id and call.name) and not self.hold_arguments


def is_whole(call: ToolCall) -> bool:
    """Nothing more comes of it, and it is what was meant; a refused one too: what made it wrong is not in it."""
    return call.state in ("complete", "empty") or call.reason == "refused"


def arguments_of(call: ToolCall) -> str:
    """The arguments as text. Where more was sent than one value, all of it: the first alone would look like a call."""
    return call.arguments if call.state != "invalid" or call.raw_arguments is None else call.raw_arguments


def text_behind(told: str, call: ToolCall) -> str:
    """The arguments, where so much of them went out: as meant, or of an invalid call all that was sent.

    A whole call without any has an empty object.
    """
    if not is_whole(call):
        return arguments_of(call)
    if call.custom or call.arguments.strip(_BLANK) or told.strip(_BLANK):
        return call.arguments
    return told + _NO_ARGUMENTS


class Encoder(Protocol):
    """A sink of events that writes one dialect. After `end` nothing is called; events of any order do no harm."""

    def __init__(self, job: EncodeContext) -> None: ...

    def event(self, event: Event, /) -> None:
        """Write what the event brings. It may note losses; it raises nothing."""
        ...

    def end(self, ending: Ending, /) -> None:
        """Write the ending, whole or honest."""
        ...


@runtime_checkable
class OpensChoices(Protocol):
    """An encoder of a dialect whose choices begin with a role."""

    def role(self, choice: int, /) -> bytes:
        """The chunk that opens a choice whose first one lacks the role."""
        ...
