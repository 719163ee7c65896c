"""Writes one response to a target with sequential blocks: its opening events, its parts and its ending.

The base class decides which events open a response and whether the response is complete. Subclasses write opening
events, endings and errors, and `Blocks` decides the order of the parts.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final

from streamweld._pure.encode.common.finish import (
    CUT,
    SUCCESS,
    fault_of,
    finish_is_lost,
    finish_word,
    own_word,
    sent_word,
)
from streamweld._pure.encode.common.sequential_blocks import Blocks
from streamweld._pure.encode.common.source_blocks import SourceBlocks
from streamweld._pure.encode.common.usage import neutral
from streamweld.events import Finished, ProviderItem, ResponseStarted, Unknown, UpstreamErrorEvent, Usage

if TYPE_CHECKING:
    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.encode.common.finish import Ending, Fault
    from streamweld._pure.encode.common.sequential_blocks import Block, StandalonePart, UnmodelledBlock
    from streamweld._pure.encode.common.usage import Counts
    from streamweld.events import Event, Source, ToolCall

__all__ = ["SequentialAnswer"]

_NO_CONTENT: Final = ResponseStarted()
_AI_SDK: Final = ("ai-sdk-parts", "ai-sdk-ui")
_STARTED: Final = frozenset({"text_started", "reasoning_started", "refusal_started", "tool_call_started"})
_PASSING: Final = _STARTED | {"text_delta", "reasoning_delta", "refusal_delta", "tool_call_delta"}


class SequentialAnswer:
    """Base class of the encoders with sequential blocks. Each encoder is also the `Writer` of its blocks."""

    target: str
    corrects: bool
    runs_calls: bool
    side_by_side: bool
    cites_in_text = False
    writes_unmodelled = False  # whether content that no streamweld event represents is written as sent

    def __init__(self, context: EncodeContext) -> None:
        self.context = context
        self.blocks = SourceBlocks(context, self) if context.passed.own else Blocks(context, self)
        self.opened = False
        self._over = False
        self._choice: int | None = None  # the choice that is written
        self._counted: Usage | None = None
        self._finished: Finished | None = None

    # The encoder

    def event(self, event: Event) -> None:
        """Handle the next event."""
        if self._over:
            return
        match event:
            case Usage():
                self._counted = event
            case ProviderItem() | Unknown() if self.writes_unmodelled and self.context.passed.own:
                pass
            case ProviderItem():
                self.context.losses.note(event.kind)
            case Unknown():
                self.context.losses.note("unknown")
            case UpstreamErrorEvent():
                pass  # the ending reports the error
            case ResponseStarted():
                self._open_with(event)
            case _:
                if not self._is_own_choice(getattr(event, "choice", 0)):
                    self.context.losses.note("choices")
                    return
                self._open_with(_NO_CONTENT)
                if isinstance(event, Finished):
                    self._finished = event
                    self.context.losses.metadata(event)
                else:
                    self._note(event)
                    self.blocks.event(event)

    def end(self, ending: Ending) -> None:
        """Write the ending. The response is complete only if the choice has a finish reason and no error occurred."""
        if self._over:
            return
        finished, fault = self._finished, ending.fault
        if fault is None and (finished is None or ending.completeness == "truncated"):
            fault = fault_of(CUT)
        if fault is not None or finished is None:
            self._fail(fault or fault_of(CUT))
            return
        if finished.finish_reason in SUCCESS and self.blocks.has_empty_cut_call():
            if self.context.passed.finished:
                self._fail(fault_of("AssemblyError"))  # clients already received the finish reason
                return
            finished = Finished("length", choice=finished.choice)
        reason = finished.finish_reason
        sent = (own_word if self.context.passed.own else sent_word)(self.target, finished)
        word = finish_word(self.target, reason) or sent
        if word is not None:
            self.blocks.finish()
            if self.context.broken:
                return  # waiting text contradicts text that was already written
            if reason == "tool_calls" and not self.blocks.client_calls:
                # The client has no calls to run, because every call has a result or lacks a name.
                reason = "other" if self.blocks.answered else "error"
                word = finish_word(self.target, reason)
        if word is None:
            self._fail(fault_of("finish"))
            return
        if sent is None and finish_is_lost(self.target, reason):
            self.context.losses.note("finish")
        self._over = True
        self.write_end(sent or word, finished, self._counts())

    def contradicted(self) -> None:
        """End the stream with an error, because the upstream contradicted what was already written."""
        if not self._over:
            self.context.broken = True
            self._fail(fault_of("contradicted"))

    # Methods of the target

    @abstractmethod
    def write_start(self, started: ResponseStarted) -> None:
        """Write the events that open the response."""

    @abstractmethod
    def write_end(self, word: str, finished: Finished, counts: Counts | None) -> None:
        """Write the ending of a complete response. `word` is the target's word for the finish reason."""

    @abstractmethod
    def write_fault(self, fault: Fault, counts: Counts | None) -> None:
        """Write the ending of an incomplete response."""

    # Internals

    def _is_own_choice(self, choice: int) -> bool:
        if self._choice is None:
            self._choice = choice
        return choice == self._choice

    def _note(self, event: Event) -> None:
        """Record the loss of metadata, such as log probabilities, in a start event or a delta.

        AI SDK sources repeat the metadata of start events and deltas in the closing event of the part.
        """
        is_written = self.writes_unmodelled and self.context.passed.own and event.type in _STARTED
        if event.type in _PASSING and self.context.source not in _AI_SDK and not is_written:
            self.context.losses.metadata(event)

    def _open_with(self, started: ResponseStarted) -> None:
        if not self.opened:
            self.opened = True
            self.write_start(started)

    def _fail(self, fault: Fault) -> None:
        self._over = True
        self.write_fault(fault, self._counts())

    def _counts(self) -> Counts | None:
        return None if self._counted is None else neutral(self._counted, self.context.source)

    # Methods of `Writer`

    @abstractmethod
    def open(self, block: Block) -> None: ...

    @abstractmethod
    def piece(self, block: Block, text: str) -> None: ...

    @abstractmethod
    def close(self, block: Block) -> None: ...

    @abstractmethod
    def over(self, block: Block) -> None: ...

    @abstractmethod
    def needs_empty_block(self, block: Block) -> bool: ...

    @abstractmethod
    def close_call(self, call: ToolCall, text: str) -> bool: ...

    @abstractmethod
    def whole_call(self, call: ToolCall) -> None: ...

    @abstractmethod
    def write_standalone(self, event: StandalonePart, call: ToolCall | None) -> None: ...

    def cite(self, page: Source, block: Block | None) -> None:
        """Write nothing. Only called if `cites_in_text` is true."""

    @abstractmethod
    def broken_off(self, block: Block) -> None: ...

    def unmodelled_block(self, block: Block, content: UnmodelledBlock) -> None:
        """Write nothing. Such blocks exist only if `writes_unmodelled` is true."""
