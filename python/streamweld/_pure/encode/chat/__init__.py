"""Writes Chat Completions chunks: every choice with its index, deltas as they come, finish and usage at the end.

Knows this dialect's wire, and of the source only its events. A delta cannot be taken back here: a source that corrects
what was passed on gets the error ending. How an unfinished answer ends: `data: {"error":…}`, and no `[DONE]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamweld._json import loads_raw
from streamweld._pure.encode.chat.calls import Calls
from streamweld._pure.encode.common.citations import Citation, read_citation
from streamweld._pure.encode.common.finish import CUT, fault_of, finish_is_lost, finish_word, own_word
from streamweld._pure.encode.common.part_details import Told
from streamweld._pure.encode.common.usage import neutral
from streamweld._pure.encode.common.writer import members, quoted
from streamweld._pure.json.kinds import integer, is_object
from streamweld._pure.json.scanner import replace_lone_surrogates
from streamweld.events import (
    File,
    Finished,
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
    from streamweld.events import Event

__all__ = ["Chat"]

_Started: TypeAlias = TextStarted | ReasoningStarted | RefusalStarted
_Delta: TypeAlias = TextDelta | ReasoningDelta | RefusalDelta
_Done: TypeAlias = TextDone | ReasoningDone | RefusalDone

_TARGET: Final = "chat"
_UNKNOWN_MODEL: Final = "unknown"
_MEMBER: Final[Mapping[type[Any], str]] = {
    TextDelta: "content",
    TextDone: "content",
    ReasoningDelta: "reasoning_content",
    ReasoningDone: "reasoning_content",
    RefusalDelta: "refusal",
    RefusalDone: "refusal",
}


class Chat:
    """One answer, with all its choices."""

    def __init__(self, job: EncodeContext) -> None:
        self._job = job
        self._head = ""  # of every chunk; made when the first one is written
        self._started: ResponseStarted | None = None
        self._choices: dict[int, Calls] = {}
        self._finished: dict[int, str] = {}
        self._sent: dict[int, str | None] = {}  # the word of a source of this dialect
        self._told: dict[int, Told] = {}  # of the parts that are open
        self._carriers: dict[int, int] = {}  # how many carriers of reasoning each choice has
        self._citations: dict[int, list[str]] = {}
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
            RefusalDone: self._rest,
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
            Unknown: self._unknown,
        }

    def event(self, event: Event) -> None:
        """Write what the event brings."""
        handler = self._take.get(type(event))
        if handler is not None:
            self._job.losses.metadata(event)
            handler(event)

    def end(self, ending: Ending) -> None:
        """Finish chunks, usage, `[DONE]`; or the error, and nothing behind it."""
        fault = ending.fault
        if fault is None and (ending.completeness == "truncated" or not self._finished):
            fault = fault_of(CUT)
        if fault is None and self._finished.keys() < self._choices.keys():
            fault = fault_of(CUT)
        if fault is None and None in (self._word(index) for index in self._finished):
            fault = fault_of("finish")
        if fault is not None:
            self._fail(fault)
            return
        for index in sorted(self._finished):
            if index in self._job.passed.finished:
                continue
            # In one chunk: openai-python raises at a second list of them, openai-node keeps the last one.
            if index in self._citations and index not in self._job.passed.choices:
                self._chunk(index, f'{{"annotations":[{",".join(self._citations[index])}]}}')
            self._chunk(index, "{}", quoted(self._word(index) or ""))
        self._write_usage()
        self._job.frames.done()

    def role(self, choice: int) -> bytes:
        """The chunk that opens a choice whose first one lacks the role."""
        opened = _chosen(choice, '{"role":"assistant"}')
        return f"data: {self._envelope()}{opened}]}}\n\n".encode()

    # Chunks

    def _begin(self, started: ResponseStarted) -> None:
        self._started = self._started or started

    def _envelope(self) -> str:
        """The members that stand first in every chunk."""
        if not self._head:
            started = self._started or ResponseStarted()
            if self._job.passed.own:
                started = _completed(started, self._job.passed.payload)
            identity = started.id or self._job.mint.new("chatcmpl")
            model = started.model or _UNKNOWN_MODEL
            created = self._job.created if started.created is None else started.created
            self._head = (
                f'{{"id":{quoted(identity)},"object":"chat.completion.chunk","created":{created},'
                f'"model":{quoted(model)},"choices":['
            )
        return self._head

    def _chunk(self, index: int, delta: str, finish: str = "null") -> None:
        self._job.frames.data(f"{self._envelope()}{_chosen(index, delta, finish)}]}}")

    def _choice(self, index: int) -> Calls:
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = Calls(self._job)
            if index not in self._job.passed.choices:
                self._chunk(index, '{"role":"assistant","content":""}')
        return choice

    def _fail(self, fault: Fault) -> None:
        sent = None if fault.sent is None else quoted(fault.sent)
        said = members(message=quoted(fault.message), type=quoted(fault.type), code=quoted(fault.code), detail=sent)
        self._job.frames.data(f'{{"error":{said}}}')

    def _break(self) -> None:
        self._job.broken = True
        self._fail(fault_of("contradicted"))

    # Text

    def _open(self, event: _Started) -> None:
        self._choice(event.choice)

    def _delta(self, event: _Delta) -> None:
        if event.text:
            self._choice(event.choice)
            self._told.setdefault(event.part, Told()).add(event.text)
            self._chunk(event.choice, f'{{"{_MEMBER[type(event)]}":{quoted(event.text)}}}')

    def _rest(self, event: _Done) -> None:
        self._choice(event.choice)
        rest = self._told.pop(event.part, Told()).rest(event.text)
        if rest is None:
            self._job.losses.note("text_corrected")
        elif rest:
            self._chunk(event.choice, f'{{"{_MEMBER[type(event)]}":{quoted(rest)}}}')

    def _text_done(self, event: TextDone) -> None:
        self._rest(event)
        for annotation in event.annotations:
            citation = read_citation(annotation)
            if citation is None or citation.start is None or citation.end is None:
                # Every client has its types with the place in the text; @ai-sdk/openai refuses the stream without it.
                self._job.losses.note("sources")
            else:
                self._citations.setdefault(event.choice, []).append(_citation(citation))

    def _reasoning_done(self, event: ReasoningDone) -> None:
        self._rest(event)
        if event.signature and self._job.carries:
            self._carry(event.choice, event.signature)
            return
        if event.signature:
            self._job.losses.note("reasoning_signature")
        if event.encrypted_content:
            self._job.losses.note("encrypted_reasoning")
        if event.kind == "redacted" and not event.text:
            self._job.losses.note("redacted_reasoning")

    def _carry(self, index: int, carrier: str) -> None:
        """A carrier of reasoning, in the member whose entries clients return as they are:
        https://openrouter.ai/docs/use-cases/reasoning-tokens.
        """
        place = self._carriers.get(index, 0)
        self._carriers[index] = place + 1
        entry = members(type='"reasoning.encrypted"', data=quoted(carrier), format='"unknown"', index=str(place))
        self._chunk(index, f'{{"reasoning_details":[{entry}]}}')

    def _source(self, _: Source) -> None:
        self._job.losses.note("sources")  # a citation here needs the place in the text that it stands for

    # Calls

    def _call_started(self, event: ToolCallStarted) -> None:
        self._entry(event.choice, self._choice(event.choice).started(event))

    def _call_delta(self, event: ToolCallDelta) -> None:
        self._entry(event.choice, self._choice(event.choice).delta(event))

    def _call(self, event: ToolCall) -> None:
        choice = self._choice(event.choice)
        entry = choice.whole(event)
        if choice.contradicted:
            self._break()
        else:
            self._entry(event.choice, entry)

    def _call_reset(self, event: ToolCallReset) -> None:
        self._choice(event.choice).reset(event.part)

    def _call_retracted(self, event: ToolCallRetracted) -> None:
        calls = self._choice(event.choice)
        calls.retracted(event.part)
        if calls.is_begun(event.part):
            self._break()

    def _entry(self, choice: int, entry: str | None) -> None:
        if entry is not None:
            self._chunk(choice, f'{{"tool_calls":[{entry}]}}')

    def _result(self, event: ToolResult) -> None:
        self._job.losses.note("server_tool")
        self._choice(event.choice).answered(event.call_id)

    # The rest

    def _file(self, _: File) -> None:
        self._job.losses.note("files")

    def _unknown(self, _: Unknown) -> None:
        self._job.losses.note("unknown")

    def _count(self, usage: Usage) -> None:
        self._usage = usage

    def _finish(self, event: Finished) -> None:
        self._choice(event.choice)
        self._finished[event.choice] = event.finish_reason
        self._sent[event.choice] = own_word(_TARGET, event) if self._job.passed.own else None
        if self._sent[event.choice] is None and finish_is_lost(_TARGET, event.finish_reason):
            self._job.losses.note("finish")

    def _word(self, index: int) -> str | None:
        """Its word beside the calls that were written: some may not have been, and a provider's own are none here."""
        calls, reason = self._choices[index], self._finished[index]
        if reason == "tool_calls":
            return finish_word(_TARGET, "tool_calls" if calls.written else "stop")
        if reason == "stop":
            return finish_word(_TARGET, "tool_calls" if calls.waiting else "stop")
        return self._sent[index] or finish_word(_TARGET, reason)

    def _write_usage(self) -> None:
        if self._usage is None or not self._job.include_usage or self._job.passed.counted:
            return
        counts = neutral(self._usage, self._job.source)
        if counts.is_blank:
            return
        total = counts.total if counts.total is not None else (counts.input or 0) + (counts.output or 0)
        usage = members(
            prompt_tokens=str(counts.input or 0),
            completion_tokens=str(counts.output or 0),
            total_tokens=str(total),
            prompt_tokens_details=_details(cached_tokens=counts.cached, cache_write_tokens=counts.cache_write),
            completion_tokens_details=_details(reasoning_tokens=counts.reasoning),
        )
        self._job.frames.data(f'{self._envelope()}],"usage":{usage}}}')


def _details(**counts: int | None) -> str | None:
    known = {name: str(count) for name, count in counts.items() if count is not None}
    return members(**known) if known else None


def _citation(citation: Citation) -> str:
    said = members(
        url=quoted(citation.url),
        title=quoted(citation.title or ""),
        start_index=str(citation.start),
        end_index=str(citation.end),
    )
    return f'{{"type":"url_citation","url_citation":{said}}}'


def _chosen(index: int, delta: str, finish: str = "null") -> str:
    return f'{{"index":{index},"delta":{delta},"finish_reason":{finish}}}'


def _completed(started: ResponseStarted, payload: bytes) -> ResponseStarted:
    """With the id, model and time of the current chunk where the first one left them blank (Azure)."""
    if started.id and started.model:
        return started
    try:
        chunk: object = loads_raw(payload.decode("utf-8", "replace"))
    except ValueError:
        return started
    if not is_object(chunk):
        return started
    created = chunk.get("created")
    number = None if isinstance(created, str) else integer(created)
    return ResponseStarted(
        id=started.id or _word(chunk.get("id")),
        model=started.model or _word(chunk.get("model")),
        created=started.created if started.created or number is None else number,
    )


def _word(value: object) -> str | None:
    return replace_lone_surrogates(value) if isinstance(value, str) and value.strip() else None
