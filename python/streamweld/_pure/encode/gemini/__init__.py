"""Writes Gemini `streamGenerateContent` chunks: text as it arrives, calls once they are complete, and finish reasons,
cited pages and usage in the last chunk.

Gemini has no terminal marker, so a stream without a finish reason is treated as truncated. An incomplete response ends
with `{"error":…}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamweld._pure.encode.common.citations import read_citation
from streamweld._pure.encode.common.extra_members import members_text, writable
from streamweld._pure.encode.common.finish import CUT, fault_of, finish_word, own_word
from streamweld._pure.encode.common.part_details import WrittenText
from streamweld._pure.encode.common.provider_metadata import is_genuine
from streamweld._pure.encode.common.usage import neutral
from streamweld._pure.encode.common.writer import compact_json, members, quoted, spliced
from streamweld._pure.encode.gemini.grounding import Grounding
from streamweld._pure.model.unmodelled import CandidatePart, ChunkMembers
from streamweld.events import (
    File,
    Finished,
    ProviderItem,
    ReasoningDelta,
    ReasoningDone,
    ReasoningStarted,
    RefusalDelta,
    RefusalDone,
    RefusalStarted,
    ResponseStarted,
    Source,
    TextDelta,
    TextDone,
    TextStarted,
    ToolCall,
    ToolCallDelta,
    ToolCallStarted,
    ToolResult,
    Unknown,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.encode.common.finish import Ending, Fault
    from streamweld._pure.model.unmodelled import Unmodelled
    from streamweld.events import Event

__all__ = ["Gemini"]

_Delta: TypeAlias = TextDelta | ReasoningDelta | RefusalDelta
_Done: TypeAlias = TextDone | ReasoningDone | RefusalDone

_TARGET: Final = "gemini"
_PROVIDER: Final = "google"
# Protobuf names of the counts. Clients do not read counts with these names.
_PROTO_COUNTS: Final = frozenset(
    {
        "prompt_token_count",
        "candidates_token_count",
        "total_token_count",
        "cached_content_token_count",
        "thoughts_token_count",
    }
)
_MALFORMED: Final = "MALFORMED_FUNCTION_CALL"
# Finish reasons that would hide the fact that a call's arguments are not an object.
_HIDING: Final = frozenset({"stop", "tool_calls", "other"})
_NO_MEMBERS: Final[Mapping[str, str]] = {}
_ANY_TYPE: Final = "application/octet-stream"


class Gemini:
    """Writes one response, including all its candidates."""

    def __init__(self, context: EncodeContext) -> None:
        self._context = context
        self._tail: str | None = None  # members at the end of every chunk, created with the first chunk
        self._started: ResponseStarted | None = None
        self._candidates: set[int] = set()  # candidates that have content or a finish reason
        self._malformed: set[int] = set()  # candidates with an invalid call, which was not written
        self._nameless: set[int] = set()  # candidates with a call that was not written because it has no name
        self._written: set[int] = set()  # candidates with a written part
        self._finished: dict[int, str] = {}
        self._raw: dict[int, str | None] = {}  # finish reasons as the source sent them
        self._written_texts: dict[int, WrittenText] = {}  # text written so far for each open part
        self._grounding = Grounding()
        self._usage: Usage | None = None
        self._members = _NO_MEMBERS  # unknown members next to the candidates of the source's last chunk
        self._raw_payload: bytes | None = None  # the payload whose part was last written as it was sent
        self._take: Mapping[type[Any], Callable[[Any], None]] = {
            ResponseStarted: self._begin,
            TextStarted: self._open,
            TextDelta: self._delta,
            TextDone: self._text_done,
            ReasoningStarted: self._open,
            ReasoningDelta: self._delta,
            ReasoningDone: self._reasoning_done,
            RefusalStarted: self._open,
            RefusalDelta: self._delta,
            RefusalDone: self._write_remaining_text,
            ToolCallStarted: self._open,
            ToolCall: self._call,
            ToolResult: self._result,
            Source: self._source,
            File: self._file,
            Usage: self._count,
            Finished: self._finish,
            ProviderItem: self._provider_item,
            Unknown: self._unknown,
        }

    def event(self, event: Event) -> None:
        """Handle the next event."""
        handler = self._take.get(type(event))
        if isinstance(event, ToolCallDelta):
            self._context.losses.metadata(event)  # each call is written in one piece
        elif handler is not None:
            if not (isinstance(event, ToolCall | ReasoningDone) or self._is_kept(event)):
                self._context.losses.metadata(event)
            handler(event)

    def _is_kept(self, event: Event) -> bool:
        """Return True if the metadata of an event is written in the source's own dialect: as members of a chunk or of a
        part that was written as it was sent, or as the signature of a call.
        """
        if not self._context.passed.own:
            return False
        if isinstance(event, ToolCallStarted) and not self._context.provider_executed:
            return (event.provider_metadata or {}).keys() <= {"thoughtSignature"}
        return True

    def write_unmodelled(self, content: Unmodelled) -> None:
        """Write parts and members of the source's chunk as they were sent."""
        match content:
            case CandidatePart():
                self._raw_payload = self._context.passed.payload
                self._part(content.choice, spliced(content.part))
            case ChunkMembers():
                self._members_chunk(content)
            case _:
                pass  # other dialects

    def _members_chunk(self, content: ChunkMembers) -> None:
        """Write the unknown members of the source's chunk.

        Most chunks have the same members next to the candidates, so these members are written only if they change.
        """
        candidates = [f'{{{_listed(members)}"index":{index}}}' for index, members in content.candidates]
        extra: Mapping[str, str] = {} if content.members == self._members else content.members
        self._members = content.members
        if candidates or extra:
            self._chunk(",".join(candidates), extra=extra)

    def end(self, ending: Ending) -> None:
        """Write either the last chunk, which contains every finish reason, or an error. Nothing follows."""
        fault = ending.fault
        if fault is None and (ending.completeness == "truncated" or not self._finished):
            fault = fault_of(CUT)
        if fault is None and self._candidates - self._finished.keys():
            fault = fault_of(CUT)
        if fault is None and None in (self._word(index) for index in self._finished):
            fault = fault_of("finish")
        if fault is not None:
            self._fail(fault)
            return
        grounding = self._grounding.members()
        ends = [
            members(
                finishReason=quoted(self._word(index) or ""), index=str(index), groundingMetadata=grounding.get(index)
            )
            for index in sorted(self._finished.keys() - self._context.passed.finished)
        ]
        counts = None if self._context.passed.counted else self._counts()
        if ends or counts is not None:
            self._chunk(",".join(ends), counts)

    # Chunks

    def _begin(self, started: ResponseStarted) -> None:
        self._started = self._started or started

    def _chunk(self, candidates: str, usage: str | None = None, extra: Mapping[str, str] = _NO_MEMBERS) -> None:
        if self._tail is None:
            started = self._started or ResponseStarted()
            self._tail = ""
            if started.model:
                self._tail += f',"modelVersion":{quoted(started.model)}'
            if started.id:
                self._tail += f',"responseId":{quoted(started.id)}'
        counted = "" if usage is None else f',"usageMetadata":{usage}'
        listed = f'"candidates":[{candidates}]' if candidates or counted else ""
        rest = f"{listed}{members_text(writable(extra))}{counted}{self._tail}"
        self._context.frames.data(f"{{{rest.removeprefix(',')}}}")

    def _part(self, index: int, part: str) -> None:
        self._candidates.add(index)
        self._written.add(index)
        self._chunk(f'{{"content":{{"parts":[{part}],"role":"model"}},"index":{index}}}')

    def _fail(self, fault: Fault) -> None:
        sent = None if fault.sent is None else f'[{{"detail":{quoted(fault.sent)}}}]'
        error = members(code="500", message=quoted(fault.message), status='"INTERNAL"', details=sent)
        self._context.frames.data(f'{{"error":{error}}}')

    # Text

    def _open(self, event: TextStarted | ReasoningStarted | RefusalStarted | ToolCallStarted) -> None:
        self._candidates.add(event.choice)

    def _delta(self, event: _Delta) -> None:
        if event.text:
            self._written_texts.setdefault(event.part, WrittenText()).add(event.text)
            self._write_text(event, event.text)

    def _write_remaining_text(self, event: _Done) -> None:
        rest = self._written_texts.pop(event.part, WrittenText()).remaining(event.text)
        if rest is None:
            self._context.losses.note("text_corrected")
        elif rest:
            self._write_text(event, rest)

    def _write_text(self, event: _Delta | _Done, text: str) -> None:
        thought = isinstance(event, ReasoningDelta | ReasoningDone)
        if isinstance(event, RefusalDelta | RefusalDone):
            self._context.losses.note("refusal")
        elif not (thought or self._context.passed.own):
            self._grounding.add_text(event.choice, event.part, text)
        self._part(event.choice, members(text=quoted(text), thought="true" if thought else None))

    def _text_done(self, event: TextDone) -> None:
        self._write_remaining_text(event)
        signature = (event.provider_metadata or {}).get("thoughtSignature")
        if self._context.passed.own and isinstance(signature, str):
            self._part(event.choice, members(text='""', thoughtSignature=quoted(signature)))
        if not self._context.passed.own:
            self._cite(event)

    def _cite(self, event: TextDone) -> None:
        """Record the pages that a text cites. Chat counts positions from the beginning of the message, and other
        dialects count from the beginning of the part.
        """
        written = self._grounding.end_part(event.choice, event.part)
        is_message = self._context.source == "chat"
        for annotation in event.annotations:
            citation = read_citation(annotation, None if is_message else written.length)
            if citation is None:
                self._context.losses.note("sources")
                continue
            page = self._grounding.add_page(event.choice, citation.url, citation.title)
            start, end = citation.start, citation.end
            if start is None or end is None:
                continue
            if is_message:
                if end <= self._grounding.ended_length(event.choice):
                    self._grounding.add_support(event.choice, page, start, end)
            elif start >= 0 and end <= written.length and not written.is_split:
                self._grounding.add_support(event.choice, page, start + written.start, end + written.start)

    def _reasoning_done(self, event: ReasoningDone) -> None:
        self._write_remaining_text(event)
        signature = self._signature(event)
        if signature is not None:
            self._part(event.choice, members(text='""', thought="true", thoughtSignature=signature))
        elif event.signature:
            self._context.losses.note("reasoning_signature")
        if event.encrypted_content:
            self._context.losses.note("encrypted_reasoning")
        if event.kind == "redacted" and not event.text:
            self._context.losses.note("redacted_reasoning")

    # Calls

    def _call(self, call: ToolCall) -> None:
        losses = self._context.losses
        self._candidates.add(call.choice)
        if call.provider_executed:
            if self._context.passed.own:
                return  # its part was written as it was sent
            losses.note("server_tool")
        elif not call.name or not call.call_id:
            losses.note("nameless_call")
            self._nameless.add(call.choice)
        elif call.state == "incomplete":
            losses.note("cut_call")
        elif call.state not in ("complete", "empty"):
            losses.note("invalid_call")
            self._malformed.add(call.choice)
        else:
            if call.custom:
                losses.note("custom_call")
                arguments = f'{{"input":{quoted(call.arguments)}}}'
            else:
                arguments = spliced(call.arguments)
            wanted = members(id=quoted(call.call_id), name=quoted(call.name), args=arguments)
            self._part(call.choice, members(functionCall=wanted, thoughtSignature=self._signature(call)))
            return
        losses.metadata(call)

    def _signature(self, event: ToolCall | ReasoningDone) -> str | None:
        """Return the thought signature that clients must send back to Google, or None if Google did not create it.

        Records all other metadata as lost.
        """
        metadata: Mapping[str, Any] = event.provider_metadata or {}
        if self._context.passed.own or (self._context.carries and isinstance(event, ReasoningDone)):
            sent = event.signature if isinstance(event, ReasoningDone) else metadata.get("thoughtSignature")
            return quoted(sent) if isinstance(sent, str) and sent else None
        if not metadata:
            return None
        if not is_genuine(self._context, _PROVIDER, metadata):
            self._context.losses.metadata(event)
            return None
        own: Mapping[str, Any] = metadata[_PROVIDER]
        signature = own.get("thoughtSignature")
        if len(metadata) > 1 or own.keys() - {"thoughtSignature"}:
            self._context.losses.metadata(event)
        return quoted(signature) if isinstance(signature, str) else None

    def _result(self, _: ToolResult) -> None:
        if not self._context.passed.own:
            self._context.losses.note("server_tool")

    # Ending and usage

    def _source(self, source: Source) -> None:
        if self._context.passed.own:
            return  # its chunk was written as it was sent
        if source.url is None:
            self._context.losses.note("sources")
        else:
            self._grounding.add_page(source.choice, source.url, source.title)

    def _file(self, event: File) -> None:
        if self._context.passed.own:
            return  # its part was written as it was sent
        kind = None if event.media_type is None else quoted(event.media_type)
        if event.data is not None:
            held = members(mimeType=kind or quoted(_ANY_TYPE), data=quoted(event.data))
            self._part(event.choice, members(inlineData=held))
        elif event.url is not None:
            self._part(event.choice, members(fileData=members(mimeType=kind, fileUri=quoted(event.url))))
        else:
            self._context.losses.note("files")

    def _provider_item(self, item: ProviderItem) -> None:
        self._context.losses.note(item.kind)

    def _unknown(self, _: Unknown) -> None:
        is_raw = self._raw_payload is not None and self._raw_payload is self._context.passed.payload
        if not is_raw:
            self._context.losses.note("unknown")

    def _count(self, usage: Usage) -> None:
        self._usage = usage
        if usage.cache_write_tokens:
            self._context.losses.note("usage_detail")

    def _finish(self, event: Finished) -> None:
        self._candidates.add(event.choice)
        self._finished[event.choice] = event.finish_reason
        self._raw[event.choice] = own_word(_TARGET, event)

    def _word(self, index: int) -> str | None:
        reason = self._finished[index]
        if index in self._malformed and reason in _HIDING:
            return _MALFORMED
        if reason == "tool_calls" and index in self._nameless and index not in self._written:
            return None  # if none of the candidate's calls could be written, the candidate is not a success
        word = finish_word(_TARGET, reason)
        return (self._raw.get(index) or word) if self._context.passed.own else word

    def _counts(self) -> str | None:
        """Return the usage object. If the source has this dialect and clients read all names in its usage object, that
        object is copied. Otherwise, the object is built from the token counts, with thoughts excluded from
        `candidatesTokenCount`.
        """
        if self._usage is None:
            return None
        counts = neutral(self._usage, self._context.source)
        if counts.is_blank:
            return None
        sent = self._usage.raw if self._context.passed.own else None
        if sent is not None:
            if not any("_" in name for name in sent):
                return compact_json(sent)
            if not sent.keys() <= _PROTO_COUNTS:
                self._context.losses.note("usage_detail")
        answer = None if counts.output is None else max(0, counts.output - (counts.reasoning or 0))
        return members(
            promptTokenCount=_number(counts.input),
            candidatesTokenCount=_number(answer),
            totalTokenCount=_number(counts.total),
            cachedContentTokenCount=_number(counts.cached),
            thoughtsTokenCount=_number(counts.reasoning),
        )


def _listed(members: Mapping[str, str]) -> str:
    """Return members as JSON text, with a comma after each member."""
    return "".join([f"{quoted(name)}:{spliced(raw)}," for name, raw in writable(members).items()])


def _number(count: int | None) -> str | None:
    return None if count is None else str(count)
