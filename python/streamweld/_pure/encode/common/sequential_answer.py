"""One answer for a target that writes block after block: its opening, its parts, its ending, each at its time.

Knows which events open an answer and what makes an ending whole. Knows no dialect and no frame: an encoder says how an
opening, an ending and a fault are written, and `Blocks` in which order the parts come.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final

from streamweld._pure.encode.common.finish import CUT, fault_of, finish_is_lost, finish_word, own_word, sent_word
from streamweld._pure.encode.common.sequential_blocks import Blocks
from streamweld._pure.encode.common.source_blocks import SourceBlocks
from streamweld._pure.encode.common.usage import neutral
from streamweld.events import Finished, ResponseStarted, Unknown, UpstreamErrorEvent, Usage

if TYPE_CHECKING:
    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.encode.common.finish import Ending, Fault
    from streamweld._pure.encode.common.sequential_blocks import Beside, Block
    from streamweld._pure.encode.common.usage import Counts
    from streamweld.events import Event, ToolCall

__all__ = ["SequentialAnswer"]

_NOTHING_SAID: Final = ResponseStarted()
_AI_SDK: Final = ("ai-sdk-parts", "ai-sdk-ui")
_PASSING: Final = frozenset(
    {
        *("text_started", "reasoning_started", "refusal_started", "tool_call_started"),
        *("text_delta", "reasoning_delta", "refusal_delta", "tool_call_delta"),
    }
)


class SequentialAnswer:
    """What the encoders of such targets share. Each is its own `Writer`."""

    target: str
    corrects: bool
    runs_calls: bool
    side_by_side: bool

    def __init__(self, job: EncodeContext) -> None:
        self.job = job
        self.blocks = SourceBlocks(job, self) if job.passed.own else Blocks(job, self)
        self.opened = False
        self._over = False
        self._choice: int | None = None  # the one that is written
        self._counted: Usage | None = None
        self._finished: Finished | None = None

    # The encoder

    def event(self, event: Event) -> None:
        """Write what the event brings."""
        if self._over:
            return
        match event:
            case Usage():
                self._counted = event
            case Unknown():
                self.job.losses.note("unknown")
            case UpstreamErrorEvent():
                pass  # the ending tells it
            case ResponseStarted():
                self._open_with(event)
            case _:
                if not self._is_ours(getattr(event, "choice", 0)):
                    self.job.losses.note("choices")
                    return
                self._open_with(_NOTHING_SAID)
                if isinstance(event, Finished):
                    self._finished = event
                    self.job.losses.metadata(event)
                else:
                    self._note(event)
                    self.blocks.event(event)

    def end(self, ending: Ending) -> None:
        """Write the ending: whole only where the choice said why it ended, and nothing is wrong."""
        if self._over:
            return
        finished, fault = self._finished, ending.fault
        if fault is None and (finished is None or ending.completeness == "truncated"):
            fault = fault_of(CUT)
        if fault is not None or finished is None:
            self._fail(fault or fault_of(CUT))
            return
        reason = finished.finish_reason
        sent = (own_word if self.job.passed.own else sent_word)(self.target, finished)
        word = finish_word(self.target, reason) or sent
        if word is not None:
            self.blocks.finish()
            if self.job.broken:
                return  # what waited until now took back what went out
            if reason == "tool_calls" and not self.blocks.client_calls:
                # Nothing is left to be run: every call is answered already, or has no name.
                reason = "other" if self.blocks.answered else "error"
                word = finish_word(self.target, reason)
        if word is None:
            self._fail(fault_of("finish"))
            return
        if sent is None and finish_is_lost(self.target, reason):
            self.job.losses.note("finish")
        self._over = True
        self.write_end(sent or word, finished, self._counts())

    def contradicted(self) -> None:
        """Upstream took back what went out."""
        if not self._over:
            self.job.broken = True
            self._fail(fault_of("contradicted"))

    # What an encoder adds

    @abstractmethod
    def write_start(self, started: ResponseStarted) -> None:
        """The opening of the answer."""

    @abstractmethod
    def write_end(self, word: str, finished: Finished, counts: Counts | None) -> None:
        """The ending of a whole answer."""

    @abstractmethod
    def write_fault(self, fault: Fault, counts: Counts | None) -> None:
        """The honest ending of one that is not whole."""

    # Inside

    def _is_ours(self, choice: int) -> bool:
        if self._choice is None:
            self._choice = choice
        return choice == self._choice

    def _note(self, event: Event) -> None:
        """What hangs on a start or a delta (log probabilities). The AI SDK's comes again with the close of its part."""
        if event.type in _PASSING and self.job.source not in _AI_SDK:
            self.job.losses.metadata(event)

    def _open_with(self, started: ResponseStarted) -> None:
        if not self.opened:
            self.opened = True
            self.write_start(started)

    def _fail(self, fault: Fault) -> None:
        self._over = True
        self.write_fault(fault, self._counts())

    def _counts(self) -> Counts | None:
        return None if self._counted is None else neutral(self._counted, self.job.source)

    # The writer

    @abstractmethod
    def open(self, block: Block) -> None: ...

    @abstractmethod
    def piece(self, block: Block, text: str) -> None: ...

    @abstractmethod
    def close(self, block: Block) -> None: ...

    @abstractmethod
    def over(self, block: Block) -> None: ...

    @abstractmethod
    def is_worth(self, block: Block) -> bool: ...

    @abstractmethod
    def close_call(self, call: ToolCall, text: str) -> bool: ...

    @abstractmethod
    def whole_call(self, call: ToolCall) -> None: ...

    @abstractmethod
    def beside(self, event: Beside, call: ToolCall | None) -> None: ...

    @abstractmethod
    def broken_off(self, block: Block) -> None: ...
