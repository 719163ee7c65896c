"""What the two protocols of the AI SDK write alike: text and reasoning blocks, calls that are whole or are not, and
what their parts bring beside them.

Knows the chunks that both have. Knows no tool chunk, no opening and no ending: those are each protocol's own.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final

from streamweld._pure.encode.common.encode_context import arguments_of
from streamweld._pure.encode.common.provider_metadata import provider_metadata
from streamweld._pure.encode.common.sequential_answer import SequentialAnswer
from streamweld._pure.encode.common.writer import members, quoted
from streamweld._pure.json.kinds import is_object
from streamweld.events import File, Source, TextDone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.encode.common.sequential_blocks import Beside, Block
    from streamweld.events import ToolCall, ToolResult

__all__ = ["OCTETS", "TRUE", "AiSdk"]

TRUE: Final = "true"
OCTETS: Final = "application/octet-stream"  # of what nobody named; both schemas ask for a media type
# What these cut off is no mistake of anybody's.
_CUTTING: Final = frozenset({"length", "content_filter"})


class AiSdk(SequentialAnswer):
    """A writer of blocks with ids of ours; a call has the id that upstream gave it."""

    corrects = True  # `tool-call` and `tool-input-available` say the input again, and win
    runs_calls = True
    side_by_side = True  # every event names its block

    def __init__(self, job: EncodeContext) -> None:
        super().__init__(job)
        self._cut: list[ToolCall] = []  # what was begun and is not whole

    def frame(self, kind: str, **fields: str | None) -> None:
        """One part or chunk; the fields are JSON already."""
        self.job.frames.data(members(type=quoted(kind), **fields))

    # What a protocol adds

    @abstractmethod
    def call_start(self, call_id: str, name: str, executed: str | None) -> None:
        """The input of a call begins. `executed`: JSON, or None."""

    @abstractmethod
    def call_delta(self, call_id: str, text: str) -> None:
        """More of it."""

    @abstractmethod
    def call_end(self, call_id: str) -> None:
        """No more of it comes; that says nothing of the call."""

    @abstractmethod
    def call_whole(self, call: ToolCall, text: str, metadata: str | None) -> None:
        """The call, with all of its arguments: the text of a JSON object."""

    @abstractmethod
    def call_refused(self, call: ToolCall, reason: str) -> None:
        """A call whose arguments are no object."""

    @abstractmethod
    def write_result(self, result: ToolResult, call: ToolCall) -> None:
        """What a tool gave."""

    @abstractmethod
    def write_url(self, url: str, title: str | None) -> None:
        """A page that the answer cites."""

    @abstractmethod
    def write_document(self, media_type: str, title: str, filename: str | None) -> None:
        """Any other source."""

    @abstractmethod
    def write_file(self, file: File) -> None:
        """A file of the answer."""

    # Blocks

    def open(self, block: Block) -> None:
        if block.kind == "call":
            self.call_start(block.call_id, block.name, TRUE if block.provider_executed else None)
            return
        if block.kind == "refusal":
            self.job.losses.note("refusal")
        reasoning = block.kind == "reasoning"
        block.mark = block.item or self.job.mint.new("rs" if reasoning else "txt")
        # Nothing of it came before its end: what hangs on it need not wait for the end of the block.
        metadata = None if block.done is None or block.done.text else self._hung(block)
        self.frame("reasoning-start" if reasoning else "text-start", id=quoted(block.mark), providerMetadata=metadata)

    def piece(self, block: Block, text: str) -> None:
        if block.kind == "call":
            self.call_delta(block.call_id, text)
            return
        kind = "reasoning-delta" if block.kind == "reasoning" else "text-delta"
        self.frame(kind, id=quoted(block.mark), delta=quoted(text))

    def close(self, block: Block) -> None:
        kind = "reasoning-end" if block.kind == "reasoning" else "text-end"
        self.frame(kind, id=quoted(block.mark), providerMetadata=self._hung(block))

    def over(self, block: Block) -> None:
        self._hung(block)
        if isinstance(block.done, TextDone):
            for annotation in block.done.annotations:
                self._cite(annotation)

    def is_worth(self, block: Block) -> bool:
        done = block.done
        if done is None or done.type == "refusal_done":
            return False
        return provider_metadata(self.job, done) is not None

    def _hung(self, block: Block) -> str | None:
        """The metadata of a part that is over, once."""
        done = block.done
        if done is None or block.told:
            return None
        block.told = True
        if done.type == "refusal_done":
            self.job.losses.metadata(done)
            return None
        return provider_metadata(self.job, done)

    # Calls

    def close_call(self, call: ToolCall, text: str) -> bool:
        if call.part not in self.job.passed.closed:
            self.call_end(call.call_id)
        self._conclude(call, text)
        return True

    def whole_call(self, call: ToolCall) -> None:
        text = self._arguments(call)
        self.call_start(call.call_id, call.name, TRUE if call.provider_executed else None)
        if text and (call.custom or call.state != "empty"):
            self.call_delta(call.call_id, text)
        self.call_end(call.call_id)
        self._conclude(call, text)

    def _conclude(self, call: ToolCall, text: str) -> None:
        if call.state == "invalid":
            self.job.losses.metadata(call)
            self.call_refused(call, call.reason or call.state)
        elif call.state in ("complete", "empty"):
            self.call_whole(call, text, provider_metadata(self.job, call))
        else:
            self.job.losses.metadata(call)
            self._cut.append(call)

    def _arguments(self, call: ToolCall) -> str:
        if call.custom:
            # A free-form text has no place but inside of an object.
            self.job.losses.note("custom_call")
            return members(input=quoted(call.arguments))
        return arguments_of(call) or ("{}" if call.state == "empty" else "")

    def refuse_cut(self, reason: str) -> None:
        """The answer is whole, but these calls are not: for the reader they are invalid, unless a limit cut them."""
        if reason not in _CUTTING:
            for call in self._cut:
                self.call_refused(call, "incomplete")
        self._cut = []

    # Beside

    def beside(self, event: Beside, call: ToolCall | None) -> None:
        if isinstance(event, Source):
            self.job.losses.metadata(event)
            self._source(event)
        elif isinstance(event, File):
            self.job.losses.metadata(event)
            self.write_file(event)
        elif call is not None:
            self.write_result(event, call)

    def _source(self, source: Source) -> None:
        document: Mapping[str, Any] = source.document if is_object(source.document) else {}
        if source.url is not None:
            self.write_url(source.url, source.title)
        else:
            title = source.title or _text(document, "title") or ""
            self.write_document(_text(document, "mediaType") or OCTETS, title, _text(document, "filename"))

    def _cite(self, annotation: object) -> None:
        """A citation as a source, where it says which page; places in the text have no member."""
        found: Mapping[str, Any] = annotation if is_object(annotation) else {}
        inner = found.get("url_citation")
        page: Mapping[str, Any] = inner if is_object(inner) else found
        url = _text(page, "url")
        if url is None:
            self.job.losses.note("sources")
        else:
            self.write_url(url, _text(page, "title"))


def _text(holder: Mapping[str, Any], key: str) -> str | None:
    value = holder.get(key)
    return value if isinstance(value, str) and value else None
