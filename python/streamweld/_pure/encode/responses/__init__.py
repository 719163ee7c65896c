"""Writes the events of the Responses API (OpenAI's and OpenResponses'): an item for each part, one response at the end.

Knows this dialect's wire, and of the source only its events. One `output_item.added` and one `.done` a call, under one
item id; what was open when the source ended is done as `incomplete`, and so is the response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamweld._pure.encode.common.citations import read_citation
from streamweld._pure.encode.common.encode_context import is_whole, text_behind
from streamweld._pure.encode.common.finish import CUT, fault_of, finish_word, sent_word
from streamweld._pure.encode.common.same_json import same_value
from streamweld._pure.encode.common.usage import neutral
from streamweld._pure.encode.common.writer import members, quoted
from streamweld._pure.encode.responses.items import (
    CALL,
    CUSTOM,
    OPENRESPONSES,
    RAW,
    REFUSAL,
    SUMMARY,
    TEXT,
    CallItem,
    Holder,
    Key,
    TextItem,
    Wire,
)
from streamweld._pure.encode.responses.resource import Resource, usage_json
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

    from streamweld._pure.encode.common.citations import Citation
    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.encode.common.finish import Ending, Fault
    from streamweld._pure.encode.responses.items import ItemStatus, Shape
    from streamweld._pure.model.output import AddedItem
    from streamweld.events import Event

__all__ = ["Responses"]

_Delta: TypeAlias = TextDelta | ReasoningDelta | RefusalDelta
_Done: TypeAlias = TextDone | ReasoningDone | RefusalDone

_TARGET: Final = "responses"
_OWN_ID: Final = "resp_"
_UNKNOWN_MODEL: Final = "unknown"
_DONE: Final = "completed"
_CANCELLED: Final = ("cancelled", "canceled")  # as gateways of the same dialect spell it
_CUT_REASON: Final = "stream_truncated"
_INVALID_REASON: Final = "invalid_tool_call"


class Responses:
    """One answer. Of several choices the first is written."""

    def __init__(self, job: EncodeContext) -> None:
        self._job = job
        self._wire = Wire(job)
        self._resource: Resource | None = None  # made with the first frame
        self._choice: int | None = None
        self._kinds: dict[int, Shape] = {}  # of reasoning parts that opened
        self._items: dict[int, TextItem | CallItem] = {}  # open ones by part, in the order of their indexes
        self._index: dict[int, int] = {}
        self._bare: dict[int, Holder] = {}  # reasoning parts of which nothing was said
        self._output: dict[int, Callable[[], str]] = {}  # items by index
        self._parts: dict[int, set[int]] = {}  # what was in them
        self._taken: set[int] = set()  # indexes of items
        self._next = 0  # behind them
        self._holders: dict[Key, Holder] = {}  # of the source's own: its items, until they are done
        self._idle: dict[Key, Holder] = {}  # of these, the ones whose parts are all closed
        self._left: dict[Key, Holder] = {}  # and those that are done
        self._resumed: list[Holder] = []  # items that continued after their done event
        self._turns = 0  # how often one of them began, or went on
        self._holder_of: dict[int, Holder] = {}  # by part
        self._usage: Usage | None = None
        self._finished: Finished | None = None
        self._called = False  # a call is whole
        self._unfinished: list[tuple[int, str]] = []  # calls that are not whole, and why
        self._take: Mapping[type[Any], Callable[[Any], None]] = {
            TextStarted: self._text_started,
            TextDelta: self._delta,
            TextDone: self._text_done,
            ReasoningStarted: self._reasoning_started,
            ReasoningDelta: self._delta,
            ReasoningDone: self._reasoning_done,
            RefusalStarted: self._text_started,
            RefusalDelta: self._delta,
            RefusalDone: self._part_done,
            ToolCallStarted: self._call_started,
            ToolCallDelta: self._call_delta,
            ToolCall: self._call,
            ToolCallReset: self._call_reset,
            ToolCallRetracted: self._call_retracted,
            ToolResult: self._result,
            Source: self._source,
            File: self._file,
            Finished: self._finish,
        }

    def event(self, event: Event) -> None:
        """Write what the event brings."""
        losses = self._job.losses
        if isinstance(event, ResponseStarted):
            losses.metadata(event)
            self._open(event)
        elif isinstance(event, Usage):
            self._usage = event
        elif isinstance(event, Unknown):
            losses.note("unknown")
        elif (handler := self._take.get(type(event))) is not None:
            choice: int = getattr(event, "choice", 0)
            if self._choice is None:
                self._choice = choice
            if choice != self._choice:
                losses.note("choices")
                return
            losses.metadata(event)
            self._open(None)
            handler(event)

    def end(self, ending: Ending) -> None:
        """What is open is done as incomplete; then the response, whole or as far as it came, and `[DONE]`."""
        self._open(None)
        fault = ending.fault
        if fault is None and (ending.completeness == "truncated" or self._finished is None):
            fault = fault_of(CUT)
        word = None if self._finished is None else _word(self._finished)
        cancelled = self._job.passed.own and self._finished is not None and self._finished.raw_reason in _CANCELLED
        if fault is None and word is None and not cancelled:
            fault = fault_of("finish")
        ends_unfinished = fault is not None and fault.is_cut and self._job.cut_ending == "incomplete"
        if fault is not None and (not ends_unfinished or self._calls_could_be_run()):
            self._fail(fault)
            return
        self._close_all()
        if fault is None and cancelled:
            self._last("cancelled")
            return
        reason = _CUT_REASON if fault is not None else self._why_unfinished() if word == _DONE else word
        if reason is None:
            self._last("completed")
        else:
            self._last("incomplete", incomplete=reason)

    # The response

    def _open(self, started: ResponseStarted | None) -> Resource:
        resource, passed = self._resource, self._job.passed
        if resource is not None:
            if started is not None:
                resource.learn(started)  # late: clients have the id of the opening
                if passed.own:
                    resource.take(passed.payload)
        else:
            started = started or ResponseStarted()
            kept = started.id and (passed.own or started.id.startswith(_OWN_ID))
            identity = started.id if started.id and kept else self._job.mint.new("resp")
            created = self._job.created if started.created is None else started.created
            resource = self._resource = Resource(identity, started.model or _UNKNOWN_MODEL, created)
            if passed.own:
                resource.take(passed.payload)
            for kind in ("response.created",) if passed.unopened else ("response.created", "response.in_progress"):
                self._wire.event(kind, f'"response":{resource.json("in_progress")}')
        return resource

    def _calls_could_be_run(self) -> bool:
        """Readers that go by calls (AI SDK) would end a response.incomplete as `tool-calls`, run them, and go on."""
        items = self._items.values()
        return self._called or any(isinstance(item, CallItem) and item.could_be_run() for item in items)

    def _why_unfinished(self) -> str | None:
        """Why the answer is incomplete: the last call that is not whole, unless the source has ended its item."""
        ended = self._job.passed.ended
        return next((why for part, why in reversed(self._unfinished) if part not in ended), None)

    def _close_all(self) -> None:
        self._settle()
        for part in list(self._items):
            self._close(part, "incomplete")
        self._settle("incomplete")
        self._end_resumed()

    def _fail(self, fault: Fault) -> None:
        # A client raises at the error: what is open stays so, as where OpenAI fails, and no cut call is handed over.
        if self._job.cut_ending == "incomplete":
            self._close_all()
        # OpenResponses has these in `error`, OpenAI beside it: readers of both find them.
        code, message = quoted(fault.code), quoted(fault.message)
        said = members(type=quoted(fault.type), code=code, message=message, param="null")
        self._wire.event("error", f'"error":{said},"code":{code},"message":{message},"param":null')
        self._last("failed", error=(fault.code, fault.message))

    def _last(self, status: Any, *, incomplete: str | None = None, error: tuple[str, str] | None = None) -> None:
        counts = None if self._usage is None else neutral(self._usage, self._job.source)
        usage = "null" if counts is None or counts.is_blank else usage_json(counts)
        resource = self._open(None)
        if self._job.passed.own:
            resource.take(self._job.passed.payload)
            resource.keep_id(self._job.passed.created)
            parts_ended = self._job.passed.ended
            resource.passed = {index for index, parts in self._parts.items() if any(n in parts_ended for n in parts)}
        output = {index: item() for index, item in self._output.items()}
        ended = self._job.passed.items
        response = resource.json(status, output, ended, usage=usage, incomplete=incomplete, error=error)
        self._wire.event(f"response.{status}", f'"response":{response}')
        self._job.frames.done()

    def _break(self) -> None:
        self._job.broken = True
        self._fail(fault_of("contradicted"))

    def _close(self, part: int, status: ItemStatus, citations: tuple[Citation, ...] = ()) -> None:
        passed = self._job.passed
        item, closed, ended = self._items.pop(part), part in passed.closed, part in passed.ended
        if not isinstance(item, TextItem):
            index = self._index.pop(part)
            self._output[index] = item.close(status, closed=closed, ended=ended)
            self._parts[index] = {part}
        elif passed.own:
            # A part that was taken back has no close, and no entry in the list of its item: a repair of the repaired
            # stream would take an empty one for another part.
            if not item.is_retracted():
                item.close_part(citations, closed=closed)
            self._leave(item.holder, part)
        else:
            self._output[self._index.pop(part)] = item.close(status, citations)

    def _settle(self, status: ItemStatus = "completed", but: Key | None = None) -> None:
        """Items of the source's own whose parts are all closed are done when something else comes."""
        for part in self._job.passed.ended.collected():
            if part in self._holder_of:
                self._holder_of[part].ended = True
        done = self._idle if status == "completed" else self._holders
        for holder in sorted([one for key, one in done.items() if key != but], key=_turn):
            self._idle.pop(holder.key, None)
            self._left[holder.key] = self._holders.pop(holder.key)
            self._output[holder.index] = holder.close(status)
            self._parts[holder.index] = holder.numbers

    def _end_resumed(self) -> None:
        """Write the done events of resumed items: once, as the item may have many parts and resume as often."""
        still_open: list[Holder] = []
        for holder in self._resumed:
            if self._holders.get(holder.key) is holder:
                still_open.append(holder)
            else:
                holder.resumed = False
                holder.done()
        self._resumed = still_open

    def _come(self, holder: Holder, key: Key) -> None:
        """The item begins, or goes on."""
        self._turns += 1
        holder.key, holder.turn = key, self._turns
        self._holders[key] = holder

    def _leave(self, holder: Holder, part: int) -> None:
        """A part of the item is over."""
        holder.open.discard(part)
        if not holder.open and self._holders.get(holder.key) is holder:
            self._idle[holder.key] = holder

    def _new_index(self, part: int, sent: int | None = None) -> int:
        """For a new item: as sent, unless another one has it."""
        self._next = max(self._next, self._job.passed.behind)
        index = self._index[part] = self._next if sent is None or sent in self._taken else sent
        self._job.passed.moved = sent not in (None, index)
        self._taken.add(index)
        self._next = max(self._next, index + 1)
        return index

    # Text

    def _text_started(self, event: TextStarted | RefusalStarted) -> None:
        """An item is opened by what it holds; one of the source's own where the source did that."""
        if self._job.passed.own:
            self._own_part(event.part, TEXT if isinstance(event, TextStarted) else REFUSAL)

    def _reasoning_started(self, event: ReasoningStarted) -> None:
        shape = self._kinds[event.part] = self._reasoning_shape(event.kind)
        if self._job.passed.own:
            self._own_part(event.part, shape)

    def _own_part(self, part: int, shape: Shape) -> None:
        """A part opens inside of its item, under the ids and at the place that the source gave them."""
        passed = self._job.passed
        item_id = passed.item_id
        key = (passed.at if passed.at is not None else item_id or "", shape.holder is None)
        self._settle(but=key)
        holder = self._holders.get(key)
        if holder is None and passed.index is not None and key in self._left:
            # What came between was no end of it.
            holder = self._left.pop(key)
            if not holder.resumed:
                holder.resumed = True
                self._resumed.append(holder)
            self._come(holder, key)
            del self._output[holder.index]
        if holder is None:
            known, is_announced = self._as_added("message" if shape.holder is None else "reasoning")
            identity = known.id if known else item_id or self._job.mint.new("msg" if shape.holder is None else "rs")
            index = self._new_index(part, passed.at if is_announced else passed.index)
            announced = is_announced and index == passed.at
            holder = Holder(self._wire, shape, identity, index, announced=announced)
            self._come(holder, key)
        self._idle.pop(key, None)
        self._holder_of[part] = holder
        holder.open.add(part)
        holder.numbers.add(part)
        self._index[part] = holder.index
        if passed.sub is None and shape.holder is not None:
            self._bare[part] = holder  # an item without a part: what hangs on it comes with its end
        else:
            sub = holder.free_sub(shape, passed.sub)
            passed.moved = passed.moved or passed.sub not in (None, sub)
            self._items[part] = TextItem(holder, shape, sub)

    def _as_added(self, kind: str) -> tuple[AddedItem | None, bool]:
        """The item at hand as clients keep it, if it is of that kind; and whether its opening has passed."""
        passed = self._job.passed
        if passed.at is None:
            return None, False
        known, has_passed = passed.added.get(passed.at), passed.at in passed.announced
        is_kept = known is not None and known.kind == kind and (has_passed or passed.index is not None)
        return (known if is_kept else None), has_passed and is_kept

    def _reasoning_shape(self, kind: str) -> Shape:
        if kind == "summary":
            return SUMMARY
        return OPENRESPONSES if self._job.reasoning_events == "openresponses" else RAW

    def _shape(self, event: _Delta | _Done) -> Shape:
        if isinstance(event, TextDelta | TextDone):
            return TEXT
        if isinstance(event, RefusalDelta | RefusalDone):
            return REFUSAL
        return self._kinds.get(event.part) or self._reasoning_shape("raw")

    def _delta(self, event: _Delta) -> None:
        if event.text:
            self._text_item(event).delta(event.text)

    def _text_item(self, event: _Delta | _Done) -> TextItem:
        item = self._items.get(event.part)
        if not isinstance(item, TextItem):
            shape = self._shape(event)
            holder = self._bare.pop(event.part, None)
            if holder is None:
                identity = self._job.mint.new("msg" if shape.holder is None else "rs")
                holder = Holder(self._wire, shape, identity, self._new_index(event.part))
            item = self._items[event.part] = TextItem(holder, shape, holder.free_sub(shape))
        return item

    def _part_done(self, event: _Done, citations: tuple[Citation, ...] = ()) -> None:
        if event.part not in self._items and not event.text:
            bare = self._bare.pop(event.part, None)
            if bare is not None:
                self._leave(bare, event.part)
            return  # an empty part is nothing to read
        item = self._text_item(event)
        rest = item.told.rest(event.text)
        if rest:
            item.delta(rest)
        item.whole = event.text
        if not self._job.cut:
            self._close(event.part, "completed", citations)

    def _text_done(self, event: TextDone) -> None:
        citations: list[Citation] = []
        for annotation in event.annotations:
            citation = read_citation(annotation)
            if citation is None or citation.start is None or citation.end is None or not event.text:
                self._job.losses.note("sources")
            else:
                citations.append(citation)
        self._part_done(event, tuple(citations))

    def _reasoning_done(self, event: ReasoningDone) -> None:
        carries = self._job.carries
        if carries and event.encrypted_content:
            if event.kind == "summary":
                self._kinds[event.part] = SUMMARY
            self._text_item(event)  # a carrier needs an item, also without a text
        kept = self._job.passed.own or carries
        item = self._items.get(event.part)
        holder = item.holder if isinstance(item, TextItem) else self._bare.get(event.part)
        if holder is not None and kept:
            holder.encrypted = event.encrypted_content or holder.encrypted
        self._part_done(event)
        self._kinds.pop(event.part, None)
        if event.signature:
            self._job.losses.note("reasoning_signature")
        if event.encrypted_content and not kept:
            self._job.losses.note("encrypted_reasoning")
        if event.kind == "redacted" and not event.text:
            self._job.losses.note("redacted_reasoning")

    # Calls

    def _call_started(self, event: ToolCallStarted) -> None:
        job = self._job
        if job.opens(event) and not job.provider_executed and event.call_id is not None:
            self._settle()
            self._call_item(event, event.name, job.custom, job.passed.index)

    def _call_item(
        self, event: ToolCallStarted | ToolCall, name: str, custom: bool, sent: int | None = None
    ) -> CallItem:
        call_id, part = event.call_id or "", event.part
        names = {"call_id": call_id, "name": name}
        shape = CUSTOM if custom else CALL
        identity = event.item_id if self._job.passed.own else None
        known = None if sent is None else self._as_added(shape.type)[0]
        identity = known.id if known else identity or self._job.mint.new("fc")
        item = CallItem(self._wire, shape, identity, self._new_index(part, sent), names)
        self._items[part] = item
        return item

    def _call_delta(self, event: ToolCallDelta) -> None:
        item = self._items.get(event.part)
        if isinstance(item, CallItem) and event.arguments:
            item.delta(event.arguments)

    def _call_reset(self, event: ToolCallReset) -> None:
        item = self._items.get(event.part)
        if isinstance(item, CallItem):
            item.corrected = True

    def _call_retracted(self, event: ToolCallRetracted) -> None:
        if event.part in self._items:
            self._break()

    def _call(self, call: ToolCall) -> None:
        self._job.takes(call.call_id)
        item = self._items.get(call.part)
        if not isinstance(item, CallItem):
            if call.provider_executed:
                self._job.losses.note("server_tool")
                return
            if not call.name or not call.call_id:
                self._job.losses.note("nameless_call")
                return
            self._settle()
            item = self._call_item(call, call.name, call.custom)
        elif (item.call_id, item.name, item.custom, False) != (
            call.call_id,
            call.name,
            call.custom,
            call.provider_executed,
        ):
            self._break()
            return
        self._fill(item, call)

    def _fill(self, item: CallItem, call: ToolCall) -> None:
        if call.reason == "refused":
            self._job.losses.note("refused_call")
        told, whole = item.told.text(), is_whole(call)
        text = text_behind(told, call)
        if call.part in self._job.passed.closed and not told:
            text = call.arguments  # it was told to be empty
        rest = item.told.rest(text)
        if rest is None and whole and not call.custom and same_value(told, text):
            self._job.losses.note("arguments_spelling")
        else:
            item.corrected = False
            item.delta(rest or "")
            item.whole = text
        if whole:
            self._called = True
            self._close(call.part, "completed")
        else:
            # An incomplete item must be the last one: it stays open until the end.
            self._unfinished.append((call.part, _INVALID_REASON if call.state == "invalid" else _CUT_REASON))

    def _result(self, _: ToolResult) -> None:
        self._job.losses.note("server_tool")

    # The rest

    def _source(self, _: Source) -> None:
        self._job.losses.note("sources")  # a citation here needs the place in the text that it stands for

    def _file(self, _: File) -> None:
        self._job.losses.note("files")

    def _finish(self, event: Finished) -> None:
        self._settle()
        self._end_resumed()
        self._finished = event


def _word(finished: Finished) -> str | None:
    """`completed`, or why the response is incomplete; None where it failed."""
    word = finish_word(_TARGET, finished.finish_reason)
    return word if word == _DONE else sent_word(_TARGET, finished) or word


def _turn(holder: Holder) -> int:
    return holder.turn
