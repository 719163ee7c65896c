"""Writes Chat Completions chunks: choices with their indexes, deltas as they arrive, and finish reasons and usage at
the end.

Written deltas cannot be retracted. If the final event of a call contradicts arguments that were already written, the
stream ends with an error. If a final text contradicts text that was already written, a loss is recorded. An incomplete
response ends with `data: {"error":…}` and without `[DONE]`. `calls` decides when a call is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamweld._pure.dialect.chat.readers import has_counts
from streamweld._pure.encode.chat.calls import Calls
from streamweld._pure.encode.chat.choice_members import OwnMembers
from streamweld._pure.encode.chat.chunk import ChunkHead
from streamweld._pure.encode.chat.own_reasoning import OwnReasoning, written_delta
from streamweld._pure.encode.common.citations import Citation, read_citation
from streamweld._pure.encode.common.extra_members import members_text
from streamweld._pure.encode.common.finish import CUT, SUCCESS, fault_of, finish_is_lost, finish_word, own_word
from streamweld._pure.encode.common.logprobs import read_logprobs
from streamweld._pure.encode.common.part_details import WrittenText
from streamweld._pure.encode.common.usage import neutral
from streamweld._pure.encode.common.writer import compact_json, members, quoted
from streamweld._pure.model.unmodelled import ChoiceEnd, ChoiceMembers, ChunkFacts, ReasoningFacts
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
    ToolCallReset,
    ToolCallRetracted,
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

__all__ = ["Chat"]

_Started: TypeAlias = TextStarted | ReasoningStarted | RefusalStarted
_Delta: TypeAlias = TextDelta | ReasoningDelta | RefusalDelta
_Done: TypeAlias = TextDone | ReasoningDone | RefusalDone

_TARGET: Final = "chat"
_MEMBER: Final[Mapping[type[Any], str]] = {
    TextDelta: "content",
    TextDone: "content",
    RefusalDelta: "refusal",
    RefusalDone: "refusal",
}


class Chat:
    """Writes one response, including all its choices."""

    def __init__(self, context: EncodeContext) -> None:
        self._context = context
        self._head = ChunkHead(context)
        self._members = OwnMembers()
        self._choices: dict[int, Calls] = {}
        # Choices whose calls changed since the last check. These calls may still have to be written, in whole or in
        # part. The choices are the keys of the dict.
        self._changed_calls: dict[int, None] = {}
        self._finished: dict[int, str] = {}
        self._sent: dict[int, str | None] = {}  # finish reasons as sent, if the source has this dialect
        self._written_texts: dict[int, WrittenText] = {}  # text written so far for each open part
        self._answered: set[int] = set()  # choices with written text or a written call
        self._carriers: dict[int, int] = {}  # number of reasoning carriers per choice
        self._citations: dict[int, list[str]] = {}
        self._pages: dict[int, list[Source]] = {}  # pages cited without a position, by choice
        self._length: dict[int, int] = {}  # length of the closed text parts per choice, in characters
        self._has_logprobs: set[int] = set()  # open parts whose log probabilities were written
        self._images: dict[int, int] = {}  # number of images per choice
        self._native: dict[int, str] = {}  # the source's own finish reasons, if the written words are less specific
        self._reasoning: dict[int, OwnReasoning] = {}
        self._usage: Usage | None = None
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
            ToolCallStarted: self._call_started,
            ToolCallDelta: self._call_delta,
            ToolCall: self._call,
            ToolCallReset: self._call_reset,
            ToolCallRetracted: self._call_retracted,
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
        if handler is not None:
            if not self._has_place_for_metadata(event):
                self._context.losses.metadata(event)
            handler(event)

    def end(self, ending: Ending) -> None:
        """Write either the finish chunks, the usage and `[DONE]`, or an error. Nothing follows."""
        fault = ending.fault
        if fault is None and (ending.completeness == "truncated" or not self._finished):
            fault = fault_of(CUT)
        if fault is None and self._finished.keys() < self._choices.keys():
            fault = fault_of(CUT)
        if fault is None and None in (self._word(index) for index in self._finished):
            fault = fault_of("finish")
        if fault is not None:
            if any(calls.has_lost for calls in self._choices.values()):
                self._context.losses.note("cut_call")
            self._fail(fault)
            return
        unwritten = [index for index in sorted(self._finished) if index not in self._context.passed.finished]
        # openai-python reads token counts from the last chunk only. A new finish chunk needs them again after it.
        usage = None if self._context.passed.counted and not unwritten else self._usage_object()
        self._head.begin_finish()
        for index in unwritten:
            # All citations are written in one chunk. If a second list follows, openai-python raises an exception, and
            # openai-node drops the first list.
            cited = self._cited(index)
            if cited and index not in self._context.passed.choices:
                self._chunk(index, f'{{"annotations":[{",".join(cited)}]}}')
            # If the source sent the token counts in a chunk with a choice, so does this encoder, because clients that
            # read `choices[0]` of every chunk would fail otherwise.
            is_with_usage = index == unwritten[-1] and usage is not None and self._head.usage_has_choice
            if is_with_usage:
                self._head.begin_usage(alone=False)
            self._members.begin_finish(index)
            finished = self._chosen(index, "{}", quoted(self._word(index) or ""), self._native.get(index))
            counted = f',"usage":{usage}' if is_with_usage else ""
            self._context.frames.data(f"{self._head.text()}{finished}]{counted}}}")
        if usage is not None and not (unwritten and self._head.usage_has_choice):
            self._head.begin_usage(alone=True)
            choice = self._chosen(min(self._finished), "{}") if self._head.usage_has_choice else ""
            self._context.frames.data(f'{self._head.text()}{choice}],"usage":{usage}}}')
        self._context.frames.done()

    def open(self, choice: int) -> None:
        """Write the first chunk of a choice, with its role, unless the choice is already open."""
        self._choice(choice)

    def write_unmodelled(self, content: Unmodelled) -> None:
        """Record content of the source's own chunks that no event represents.

        Reasoning entries without text are written immediately.
        """
        if isinstance(content, ChunkFacts):
            self._head.record(content)
        elif isinstance(content, ReasoningFacts):
            reasoning = self._reasoning.setdefault(content.choice, OwnReasoning())
            delta = reasoning.record(content)
            if reasoning.is_lossy:
                self._context.losses.note("metadata")
            if delta is not None:
                self._choice(content.choice)
                self._chunk(content.choice, delta)
        elif isinstance(content, ChoiceMembers):
            is_over = content.choice in self._context.passed.finished
            self._members.record(content, is_over=is_over)
        elif (
            isinstance(content, ChoiceEnd) and not self._context.cut
        ):  # nothing is written after the end of the response
            self._write_members(content)

    def _write_members(self, end: ChoiceEnd) -> None:
        """Write the members of the source's chunk that were not written with the chunk's events.

        If a finish reason of the choice has already passed through, a second one is not written, so the members that
        arrived with the second one are written here.
        """
        choice = end.choice
        is_again = end.finishes and choice in self._context.passed.finished
        if self._members.has_unwritten(choice) or (is_again and self._head.has_unwritten):
            self._choice(choice)
        if self._members.has_unwritten(choice) or (is_again and self._head.has_unwritten):
            self._chunk(choice, "{}")
        if self._members.is_lossy(choice):
            self._context.losses.note("metadata")

    def role(self, choice: int) -> bytes:
        """Return the chunk that opens a choice whose first chunk from the source lacks the role."""
        opened = _chosen(choice, '{"role":"assistant"}', "null", "")
        return f"data: {self._head.text()}{opened}]}}\n\n".encode()

    # Chunks

    def _begin(self, started: ResponseStarted) -> None:
        self._head.begin(started)

    def _chunk(self, index: int, delta: str) -> None:
        self._context.frames.data(f"{self._head.text()}{self._chosen(index, delta)}]}}")

    def _chosen(self, index: int, delta: str, finish: str = "null", native: str | None = None) -> str:
        """Return a chunk's choice as JSON, with those unknown members of the source's choice that were not written
        yet.
        """
        delta, members = self._members.take(index, delta)
        if native is not None and "native_finish_reason" not in members:
            members = {"native_finish_reason": quoted(native)} | members
        return _chosen(index, delta, finish, members_text(members))

    def _text_chunk(self, index: int, delta: str, tokens: str) -> None:
        """Write a chunk with log probabilities."""
        chances = f'"logprobs":{{"content":[{tokens}],"refusal":null}}'
        delta, members = self._members.take(index, delta)
        more = members_text(members)
        self._context.frames.data(
            f'{self._head.text()}{{"index":{index},"delta":{delta},{chances},"finish_reason":null{more}}}]}}'
        )

    def _choice(self, index: int) -> Calls:
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = Calls(self._context)
            if index not in self._context.passed.choices:
                self._chunk(index, '{"role":"assistant","content":""}')
        return choice

    def _fail(self, fault: Fault) -> None:
        sent = None if fault.sent is None else quoted(fault.sent)
        error = members(message=quoted(fault.message), type=quoted(fault.type), code=quoted(fault.code), detail=sent)
        self._context.frames.data(f'{{"error":{error}}}')

    def _break(self) -> None:
        self._context.broken = True
        self._fail(fault_of("contradicted"))

    # Text

    def _open(self, event: _Started) -> None:
        self._choice(event.choice)

    def _delta(self, event: _Delta) -> None:
        if event.text:
            self._answered.add(event.choice)
            self._choice(event.choice)
            self._written_texts.setdefault(event.part, WrittenText()).add(event.text)
            delta = self._text_delta(event, event.text)
            is_text = isinstance(event, TextDelta) and event.provider_metadata is not None
            found = read_logprobs(self._context.source, _TARGET, event.provider_metadata) if is_text else None
            if found is None:
                self._chunk(event.choice, delta)
            else:
                self._has_logprobs.add(event.part)
                self._text_chunk(event.choice, delta, found.tokens)

    def _has_place_for_metadata(self, event: Event) -> bool:
        """Return True if all of the event's metadata can be written. The metadata must consist only of log
        probabilities or of members of the source's own chunk.
        """
        if self._context.passed.own:
            names = getattr(event, "provider_metadata", None) or ()
            choice = getattr(event, "choice", 0)
            return self._head.has_all(self._members.lost(choice, names)) and not self._members.is_lossy(choice)
        if not isinstance(event, TextStarted | TextDelta | TextDone) or not event.provider_metadata:
            return False
        if isinstance(event, TextDelta) and not event.text:
            return False
        found = read_logprobs(self._context.source, _TARGET, event.provider_metadata)
        return found is not None and not found.others

    def _write_remaining_text(self, event: _Done) -> None:
        self._choice(event.choice)
        rest = self._written_texts.pop(event.part, WrittenText()).remaining(event.text)
        if rest is None:
            self._context.losses.note("text_corrected")
        elif rest:
            self._answered.add(event.choice)
            self._chunk(event.choice, self._text_delta(event, rest))

    def _text_delta(self, event: _Delta | _Done, text: str) -> str:
        if isinstance(event, ReasoningDelta | ReasoningDone):
            return self._reasoning.setdefault(event.choice, OwnReasoning()).next(text)
        return written_delta((_MEMBER[type(event)],), text)

    def _text_done(self, event: TextDone) -> None:
        self._choice(event.choice)
        found = read_logprobs(self._context.source, _TARGET, event.provider_metadata)
        if found is not None and event.part not in self._has_logprobs:
            self._text_chunk(event.choice, "{}", found.tokens)  # the tokens arrived only in the closing event
        self._has_logprobs.discard(event.part)
        reported = self._written_texts.get(event.part, WrittenText()).text()
        length = len(event.text) if event.text.startswith(reported) else len(reported)
        self._write_remaining_text(event)
        # Chat counts positions from the beginning of the message, and other dialects count from the beginning of the
        # part.
        is_message = self._context.source == _TARGET
        start = 0 if is_message else self._length.get(event.choice, 0)
        annotations = () if self._members.has_list(event.choice, "annotations") else event.annotations
        for annotation in annotations:
            citation = read_citation(annotation, None if is_message else length)
            if citation is None or citation.start is None or citation.end is None:
                # All clients expect a citation to have a position in the text, and @ai-sdk/openai rejects a stream that
                # contains a citation without a position.
                self._context.losses.note("sources")
            else:
                self._citations.setdefault(event.choice, []).append(_citation(citation.shifted(start)))
        self._length[event.choice] = self._length.get(event.choice, 0) + length

    def _reasoning_done(self, event: ReasoningDone) -> None:
        self._write_remaining_text(event)
        if event.signature and self._context.carries:
            self._carry(event.choice, event.signature)
            return
        reasoning = self._reasoning.get(event.choice)
        if reasoning is not None and reasoning.has_details:
            return
        if self._members.has_list(event.choice, "thinking_blocks"):
            return
        if event.signature:
            self._context.losses.note("reasoning_signature")
        if event.encrypted_content:
            self._context.losses.note("encrypted_reasoning")
        if event.kind == "redacted" and not event.text:
            self._context.losses.note("redacted_reasoning")

    def _carry(self, index: int, carrier: str) -> None:
        """Write a reasoning carrier into the member that clients send back unchanged:
        https://openrouter.ai/docs/use-cases/reasoning-tokens.
        """
        carrier_index = self._carriers.get(index, 0)
        self._carriers[index] = carrier_index + 1
        entry = members(
            type='"reasoning.encrypted"', data=quoted(carrier), format='"unknown"', index=str(carrier_index)
        )
        self._chunk(index, f'{{"reasoning_details":[{entry}]}}')

    def _source(self, source: Source) -> None:
        if source.url is None or self._context.passed.own:
            self._context.losses.note("sources")
        else:
            self._pages.setdefault(source.choice, []).append(source)

    def _cited(self, index: int) -> list[str]:
        """Return all citations of a choice.

        Citations without a position get an empty range at the end of the text.
        """
        end = self._length.get(index, 0)
        pages = [Citation(source.url or "", source.title, end, end) for source in self._pages.get(index, [])]
        return self._citations.get(index, []) + [_citation(page) for page in pages]

    # Calls

    def has_waiting_calls(self) -> bool:
        """Return True if a received call has not been fully written because it must wait for another call."""
        # Stop at the first choice with unwritten calls, because this check runs for every block, and there can be many
        # choices.
        while self._changed_calls:
            index, _ = self._changed_calls.popitem()
            if self._choices[index].has_unwritten:
                self._changed_calls[index] = None
                return True
        return False

    def _calls(self, index: int) -> Calls:
        """Return the calls of a choice, and record that they will change."""
        self._changed_calls[index] = None
        return self._choice(index)

    def _call_started(self, event: ToolCallStarted) -> None:
        self._elements(event.choice, self._calls(event.choice).started(event))

    def _call_delta(self, event: ToolCallDelta) -> None:
        self._elements(event.choice, self._calls(event.choice).delta(event))

    def _call(self, event: ToolCall) -> None:
        choice = self._calls(event.choice)
        elements = choice.whole(event)
        if choice.contradicted:
            self._break()
        else:
            self._elements(event.choice, elements)

    def _call_reset(self, event: ToolCallReset) -> None:
        self._choice(event.choice).reset(event.part)

    def _call_retracted(self, event: ToolCallRetracted) -> None:
        calls = self._calls(event.choice)
        if calls.is_begun(event.part):
            self._break()
        else:
            self._elements(event.choice, calls.retracted(event.part))

    def _elements(self, choice: int, elements: list[str]) -> None:
        for element in elements:
            self._chunk(choice, f'{{"tool_calls":[{element}]}}')

    def _result(self, event: ToolResult) -> None:
        self._context.losses.note("server_tool")
        self._choice(event.choice).answered(event.call_id)

    # Ending

    def _file(self, file: File) -> None:
        """Write an image into the member that OpenRouter documents:
        https://openrouter.ai/docs/features/multimodal/image-generation.
        """
        if self._context.passed.own:
            if not self._members.has_in_delta(file.choice, "images"):
                self._context.losses.note("files")
            return
        media_type = file.media_type or ""
        url = file.url if file.data is None else f"data:{media_type};base64,{file.data}"
        if url is None or not media_type.lower().startswith("image/"):
            self._context.losses.note("files")
            return
        self._choice(file.choice)
        self._answered.add(file.choice)
        number = self._images.get(file.choice, 0)
        self._images[file.choice] = number + 1
        image = members(type='"image_url"', image_url=members(url=quoted(url)), index=str(number))
        self._chunk(file.choice, f'{{"images":[{image}]}}')

    def _provider_item(self, item: ProviderItem) -> None:
        self._context.losses.note(item.kind)

    def _unknown(self, _: Unknown) -> None:
        self._context.losses.note("unknown")

    def _count(self, usage: Usage) -> None:
        self._usage = usage

    def _finish(self, event: Finished) -> None:
        self._elements(event.choice, self._calls(event.choice).finished())
        self._finished[event.choice] = event.finish_reason
        self._sent[event.choice] = own_word(_TARGET, event) if self._context.passed.own else None
        if self._sent[event.choice] is None and finish_is_lost(_TARGET, event.finish_reason):
            self._context.losses.note("finish")
            if event.raw_reason is not None:
                self._native[event.choice] = event.raw_reason

    def _word(self, index: int) -> str | None:
        """Return the finish word that matches the calls that were written.

        This word may differ from the source's finish word, because calls may be omitted or incomplete, and because
        calls that the provider ran are not written.
        """
        calls, reason = self._choices[index], self._finished[index]
        if reason == "tool_calls" and calls.has_nameless and not calls.written and index not in self._answered:
            return None  # if none of the choice's calls could be written, the choice is not a success
        if reason in SUCCESS and calls.has_empty_cut_call:
            return finish_word(_TARGET, "length")
        if reason == "tool_calls":
            return finish_word(_TARGET, "tool_calls" if calls.written else "stop")
        if reason == "stop":
            return finish_word(_TARGET, "tool_calls" if calls.has_unanswered else "stop")
        return self._sent[index] or finish_word(_TARGET, reason)

    def _usage_object(self) -> str | None:
        """Return the usage object.

        If the source has this dialect, its usage object is copied, unless clients do not know the names of its counts.
        Otherwise, the object is built from the token counts.
        """
        if self._usage is None or not self._context.include_usage:
            return None
        counts = neutral(self._usage, self._context.source)
        if counts.is_blank:
            return None
        if self._context.passed.own and self._usage.raw is not None and has_counts(self._usage.raw):
            return compact_json(self._usage.raw)
        total = counts.total if counts.total is not None else (counts.input or 0) + (counts.output or 0)
        return members(
            prompt_tokens=str(counts.input or 0),
            completion_tokens=str(counts.output or 0),
            total_tokens=str(total),
            prompt_tokens_details=_details(cached_tokens=counts.cached, cache_write_tokens=counts.cache_write),
            completion_tokens_details=_details(reasoning_tokens=counts.reasoning),
        )


def _details(**counts: int | None) -> str | None:
    known = {name: str(count) for name, count in counts.items() if count is not None}
    return members(**known) if known else None


def _citation(citation: Citation) -> str:
    error = members(
        url=quoted(citation.url),
        title=quoted(citation.title or ""),
        start_index=str(citation.start),
        end_index=str(citation.end),
    )
    return f'{{"type":"url_citation","url_citation":{error}}}'


def _chosen(index: int, delta: str, finish: str, more: str) -> str:
    return f'{{"index":{index},"delta":{delta},"finish_reason":{finish}{more}}}'
