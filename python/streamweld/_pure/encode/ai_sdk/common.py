"""Writes the content that both AI SDK protocols represent in the same way: text and reasoning blocks, complete and
incomplete calls, and sources and files.

Tool chunks, and the events that open and end a response, differ between the protocols and are written by the protocol's
own module.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final

from streamweld._pure.encode.ai_sdk.web_search import search_result
from streamweld._pure.encode.common.citations import SEARCH_RESULT, read_citation
from streamweld._pure.encode.common.encode_context import arguments_of
from streamweld._pure.encode.common.provider_metadata import comes_with_text_end, provider_metadata
from streamweld._pure.encode.common.sequential_answer import SequentialAnswer
from streamweld._pure.encode.common.writer import members, quoted
from streamweld._pure.json.kinds import integer, is_object
from streamweld.events import File, Source, TextDone, TextStarted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.encode.common.sequential_blocks import Block, StandalonePart
    from streamweld.events import Event, ToolCall, ToolResult

__all__ = ["OCTETS", "TRUE", "AiSdk"]

TRUE: Final = "true"
OCTETS: Final = "application/octet-stream"  # media type of a file of unknown type: both schemas require a media type
# Finish reasons that already show that a call may be truncated.
_CUTTING: Final = frozenset({"length", "content_filter"})


# Citation members that contain the name of a document, and media types by citation type. OpenAI and Anthropic do not
# send a media type, so the values are those that @ai-sdk/openai writes.
_NAMES_OF_DOCUMENT: Final = ("document_title", "filename", "file_id")
_MEDIA_TYPES: Final = {"page_location": "application/pdf", "file_path": OCTETS}


class AiSdk(SequentialAnswer):
    """Writes parts as blocks. A block of text or reasoning gets the source's block id or a generated id."""

    corrects = True  # `tool-call` and `tool-input-available` repeat the complete input and replace the streamed input
    runs_calls = True
    side_by_side = True  # every event contains the id of its block

    def __init__(self, context: EncodeContext) -> None:
        super().__init__(context)
        self._cut: list[ToolCall] = []  # calls that were started but are incomplete

    def frame(self, kind: str, **fields: str | None) -> None:
        """Write one part or chunk. The fields must already be JSON."""
        self.context.frames.data(members(type=quoted(kind), **fields))

    # Chunks that differ between the protocols

    @abstractmethod
    def call_start(self, call_id: str, name: str, executed: str | None) -> None:
        """Write the start of a call's input.

        `executed` is the JSON value of `providerExecuted`, or None to omit the member.
        """

    @abstractmethod
    def call_delta(self, call_id: str, text: str) -> None:
        """Write the next piece of a call's input."""

    @abstractmethod
    def call_end(self, call_id: str) -> None:
        """Write the end of a call's input. A call may be invalid even though its input has ended."""

    @abstractmethod
    def call_whole(self, call: ToolCall, text: str, metadata: str | None) -> None:
        """Write the call with all of its arguments, which are a JSON object."""

    @abstractmethod
    def call_refused(self, call: ToolCall, reason: str) -> None:
        """Write a call that clients must not run, because it is invalid or incomplete."""

    @abstractmethod
    def write_result(self, result: ToolResult, call: ToolCall) -> None:
        """Write the result of a tool."""

    @abstractmethod
    def write_url(self, url: str, title: str | None) -> None:
        """Write a web page that the response cites."""

    @abstractmethod
    def write_document(self, media_type: str, title: str, filename: str | None) -> None:
        """Write a source that is not a web page."""

    @abstractmethod
    def write_file(self, file: File) -> None:
        """Write a file of the response."""

    def _note(self, event: Event) -> None:
        if not (isinstance(event, TextStarted) and comes_with_text_end(self.context, event)):
            super()._note(event)

    # Blocks

    def open(self, block: Block) -> None:
        if block.kind == "call":
            self.call_start(block.call_id, block.name, TRUE if block.provider_executed else None)
            return
        if block.kind == "refusal":
            self.context.losses.note("refusal")
        reasoning = block.kind == "reasoning"
        block.mark = block.item or self.context.mint.new("rs" if reasoning else "txt")
        # If the block ended without text, its closing event has already arrived and contains the metadata.
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
        if self._hung(block) is not None:
            self.context.losses.note("metadata")  # no block is left that could contain it
        if isinstance(block.done, TextDone):
            for annotation in block.done.annotations:
                self._cite(annotation)

    def needs_empty_block(self, block: Block) -> bool:
        done = block.done
        if done is None or done.type == "refusal_done":
            return False
        if done.type == "text_done" and self.context.source == "responses":
            return False  # a phase only describes a text
        return provider_metadata(self.context, done) is not None

    def _hung(self, block: Block) -> str | None:
        """Return the metadata in a part's closing event.

        Return None if this metadata was already returned for the part.
        """
        done = block.done
        if done is None or block.metadata_written:
            return None
        block.metadata_written = True
        if done.type == "refusal_done":
            self.context.losses.metadata(done)
            return None
        return provider_metadata(self.context, done)

    # Calls

    def close_call(self, call: ToolCall, text: str) -> bool:
        if call.part in self.context.passed.ended and call.state in ("complete", "empty"):
            return True  # clients already have the call and would also run a second call
        if call.part not in self.context.passed.closed:
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
            self.context.losses.metadata(call)
            self.call_refused(call, call.reason or call.state)
        elif call.state in ("complete", "empty"):
            self.call_whole(call, text, provider_metadata(self.context, call))
            result = search_result(self.context.source, call)
            if result is not None:
                self.write_result(result, call)
        else:
            self.context.losses.metadata(call)
            self._cut.append(call)

    def _arguments(self, call: ToolCall) -> str:
        if call.custom:
            # The input must be an object, so free-form text is written as a member of an object.
            self.context.losses.note("custom_call")
            return members(input=quoted(call.arguments))
        return arguments_of(call) or ("{}" if call.state == "empty" else "")

    def refuse_cut(self, reason: str) -> None:
        """Write incomplete calls of a complete response as invalid. If a limit truncated the response, the finish
        reason already shows that the calls are incomplete.
        """
        if reason not in _CUTTING:
            for call in self._cut:
                self.call_refused(call, "incomplete")
        self._cut = []

    # Sources, files and results

    def write_standalone(self, event: StandalonePart, call: ToolCall | None) -> None:
        if isinstance(event, Source):
            self.context.losses.metadata(event)
            self._source(event)
        elif isinstance(event, File):
            self.context.losses.metadata(event)
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
        """Write a citation as a source if it refers to a page or a document.

        The citation's position in the text is lost, because a source has no member for it.
        """
        found: Mapping[str, Any] = annotation if is_object(annotation) else {}
        inner = found.get("url_citation")
        page: Mapping[str, Any] = inner if is_object(inner) else found
        url = _text(page, "url")
        kind = _text(found, "type") or ""
        result = _text(found, "source") if kind == SEARCH_RESULT else None
        document = next((name for key in _NAMES_OF_DOCUMENT if (name := _text(found, key)) is not None), None)
        number = integer(found.get("document_index"))
        media_type = _MEDIA_TYPES.get(kind, "text/plain")
        if url is not None:
            self.write_url(url, _text(page, "title"))
        elif result is not None and read_citation(found) is not None:
            self.write_url(result, _text(found, "title"))
        elif result is not None:
            self.write_document(media_type, _text(found, "title") or result, None)
        elif document is not None:
            self.write_document(media_type, document, _text(found, "filename"))
        elif number is not None:
            self.write_document(media_type, f"Document {number}", None)  # like @ai-sdk/anthropic
        else:
            self.context.losses.note("sources")


def _text(holder: Mapping[str, Any], key: str) -> str | None:
    value = holder.get(key)
    return value if isinstance(value, str) and value else None
