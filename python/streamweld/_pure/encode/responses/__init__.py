"""Writes the events of the Responses API (OpenAI and OpenResponses): an output item for each part, and the response
object at the end.

If the source has another dialect, item ids, indexes, and sequence numbers are generated, and the first text of a part
opens its item. The closing events of an item repeat its whole text, including any corrections from the source.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamweld._json import loads_raw
from streamweld._pure.dialect.responses.spec_tables import ABSENT_IDS
from streamweld._pure.encode.common.citations import Citation, FileCitation, read_citation, read_file
from streamweld._pure.encode.common.encode_context import final_text, is_whole
from streamweld._pure.encode.common.finish import CUT, fault_of, finish_word, sent_word
from streamweld._pure.encode.common.logprobs import read_logprobs
from streamweld._pure.encode.common.same_json import same_value
from streamweld._pure.encode.common.usage import neutral
from streamweld._pure.encode.common.writer import compact_json, members, quoted, spliced
from streamweld._pure.encode.responses.copied_items import object_members
from streamweld._pure.encode.responses.image import write_image
from streamweld._pure.encode.responses.item_members import NO_MEMBERS, ItemMembers, read_members
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
from streamweld._pure.encode.responses.sent_items import Announced, KnownItems, SentItems, is_written
from streamweld._pure.encode.responses.web_search import WebSearches
from streamweld._pure.json.scanner import Payload, replace_lone_surrogates
from streamweld._pure.model.unmodelled import Annotated, ItemEnd, ItemEvent, SentItem, SentPart
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
    ToolResultDelta,
    Unknown,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.encode.common.finish import Ending, Fault
    from streamweld._pure.encode.responses.item_members import OtherPart
    from streamweld._pure.encode.responses.items import ItemStatus, Shape
    from streamweld._pure.model.output import AddedItem
    from streamweld._pure.model.unmodelled import Unmodelled
    from streamweld.events import Event

__all__ = ["Responses"]

_Delta: TypeAlias = TextDelta | ReasoningDelta | RefusalDelta
_Done: TypeAlias = TextDone | ReasoningDone | RefusalDone

_TARGET: Final = "responses"
_OWN_ID: Final = "resp_"
_UNKNOWN_MODEL: Final = "unknown"
_DONE: Final = "completed"
_CANCELLED: Final = ("cancelled", "canceled")  # gateways use both spellings
_CUT_REASON: Final = "stream_truncated"
_INVALID_REASON: Final = "invalid_tool_call"
_DELTAS: Final = (TextDelta, ReasoningDelta, RefusalDelta, ToolCallDelta)


class _Content(Enum):
    """What the current events of a source in the same dialect represent."""

    EVENTS = auto()  # content that is not an item
    WRITTEN = auto()  # an item that is written from its events
    COPIED = auto()  # an item or event that is copied from the source


@dataclass(frozen=True, slots=True)
class _Listing:
    """A text item from the source whose events are being written."""

    key: Key
    item: Announced
    index: int | None  # the index to keep


class Responses:
    """Writes one response. If there are several choices, only the first is written."""

    def __init__(self, context: EncodeContext) -> None:
        self._context = context
        self._wire = Wire(context)
        self._resource: Resource | None = None  # created with the first frame
        self._choice: int | None = None
        self._kinds: dict[int, Shape] = {}  # the `Shape` of each open reasoning part
        self._items: dict[int, TextItem | CallItem] = {}  # open items by part number, in order of their indexes
        self._has_nameless_call = False  # a call was omitted because it has no name
        self._index: dict[int, int] = {}
        self._bare: dict[int, Holder] = {}  # reasoning parts without text
        self._output: dict[int, Callable[[], str]] = {}  # items by index
        self._parts: dict[int, set[int]] = {}  # part numbers of the items in `_output`
        self._taken: set[int] = set()  # indexes in use
        self._next = 0  # one more than the highest index in use
        self._holders: dict[Key, Holder] = {}  # items of a source in the same dialect, until they end
        self._idle: dict[Key, Holder] = {}  # items in `_holders` whose parts have all ended
        self._left: dict[Key, Holder] = {}  # items that have ended
        self._resumed: list[Holder] = []  # items that continued after their `output_item.done` event
        self._continued: set[int] = set()  # indexes of items whose rest is written as a new item
        self._turns = 0  # number of times that an item began or continued
        self._holder_of: dict[int, Holder] = {}  # items by part number
        self._chances: dict[int, list[str]] = {}  # log probabilities of text parts without a written delta
        self._pages: list[Source] = []  # pages cited without a position, for the next text that ends
        self._usage: Usage | None = None
        self._finished: Finished | None = None
        self._called = False  # a complete call was written
        self._unfinished: list[tuple[int, str]] = []  # part numbers of incomplete calls, each with its reason
        self._searches = WebSearches(context, self._wire)
        self._known = KnownItems()
        self._sent_items = SentItems(
            context, self._wire, self._known, self._begin_copied, self._open_announced, self._end_idle_items
        )
        self._content = _Content.EVENTS
        self._copied_parts: set[int] = set()  # parts of items that are copied
        self._unopened: dict[Key, ItemMembers] = {}  # members of the source's items that no event has opened yet
        self._current: ItemMembers | None = None  # members of the source's item whose events are being written
        self._listing: _Listing | None = None  # the text item from the source whose events are being written
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
        """Handle the next event."""
        losses, own = self._context.losses, self._context.passed.own
        if own and self._is_copied(event):
            return
        if isinstance(event, ResponseStarted):
            if not own:
                losses.metadata(event)
            self._open(event)
        elif isinstance(event, Usage):
            self._usage = event
        elif isinstance(event, ProviderItem):
            losses.note(event.kind)
        elif isinstance(event, Unknown):
            losses.note("unknown")
        elif (handler := self._take.get(type(event))) is not None:
            choice: int = getattr(event, "choice", 0)
            if self._choice is None:
                self._choice = choice
            if choice != self._choice:
                losses.note("choices")
                return
            # The items of a source in the same dialect keep their unknown members, but its deltas do not.
            is_kept = own and not isinstance(event, _DELTAS)
            if not self._takes_logprobs(event) and not is_kept and not self._searches.expresses(event):
                losses.metadata(event)
            self._open(None)
            handler(event)

    def write_unmodelled(self, content: Unmodelled) -> None:
        """Write an item or an event as it was sent, or store unknown members of an item that the encoder writes."""
        match content:
            case SentItem():
                self._open(None)
                self._content = _Content.WRITTEN if is_written(content.kind) else _Content.COPIED
                if self._copies:
                    self._sent_items.copy_item(content)
                else:
                    self._keep_members(content)
            case SentPart():
                self._open(None)
                self._content = _Content.COPIED
                self._other_part(content)
            case ItemEvent():
                self._content = _Content.COPIED
                if self._resource is None:
                    self._context.losses.note("unknown")  # no event comes before the one that opens the response
                else:
                    self._sent_items.copy_event(content)
            case ItemEnd():
                self._content, self._current = _Content.EVENTS, None
                self._end_listing()
            case Annotated():
                item = self._items.get(content.part)
                # The annotations of a finished item follow its text.
                if isinstance(item, TextItem) and self._content is _Content.EVENTS:
                    closed = content.part in self._context.passed.closed
                    item.annotate(map(spliced, Payload(content.annotations, None).elements()), closed=closed)
            case _:
                pass  # other dialects

    def end(self, ending: Ending) -> None:
        """Write the ending: close open items as incomplete, then write the final response and `[DONE]`."""
        self._open(None)
        if self._pages:
            self._context.losses.note("sources")
        fault = ending.fault
        if fault is None and (ending.completeness == "truncated" or self._finished is None):
            fault = fault_of(CUT)
        word = None if self._finished is None else _word(self._finished)
        cancelled = self._context.passed.own and self._finished is not None and self._finished.raw_reason in _CANCELLED
        if fault is None and ((word is None and not cancelled) or self._lacks_calls()):
            fault = fault_of("finish")
        ends_unfinished = fault is not None and fault.is_cut and self._context.cut_ending == "incomplete"
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
        resource, passed = self._resource, self._context.passed
        if resource is not None:
            if started is not None:
                resource.learn(started)  # the id can no longer change: clients received it when the response was opened
                if passed.own:
                    resource.take(passed.payload)
        else:
            started = started or ResponseStarted()
            kept = started.id and (passed.own or started.id.startswith(_OWN_ID))
            identity = started.id if started.id and kept else self._context.mint.new("resp")
            created = self._context.created if started.created is None else started.created
            resource = self._resource = Resource(identity, started.model or _UNKNOWN_MODEL, created)
            if passed.own:
                resource.take(passed.payload)
            for kind in ("response.created",) if passed.unopened else ("response.created", "response.in_progress"):
                self._wire.event(kind, f'"response":{resource.json("in_progress")}')
        return resource

    def _lacks_calls(self) -> bool:
        """Return True if the response is not a success, because it has only calls that could not be written."""
        finished = self._finished
        is_for_calls = finished is not None and finished.finish_reason == "tool_calls"
        return is_for_calls and self._has_nameless_call and not self._taken

    def _calls_could_be_run(self) -> bool:
        """Return True if a client could run a call.

        Clients that look at the calls (AI SDK) would treat `response.incomplete` as the finish reason `tool-calls`, run
        the calls and continue.
        """
        items = self._items.values()
        return self._called or any(isinstance(item, CallItem) and item.could_be_run() for item in items)

    def _why_unfinished(self) -> str | None:
        """Return the reason of the last incomplete call as the reason why the response is incomplete, or None. Calls
        whose item the source itself closed are ignored.
        """
        ended = self._context.passed.ended
        return next((why for part, why in reversed(self._unfinished) if part not in ended), None)

    def _close_all(self) -> None:
        self._end_idle_items()
        searches = deque(self._searches.open_indexes())
        for part in list(self._items):
            while searches and searches[0] < self._index[part]:
                self._cut_search(searches.popleft())
            self._close(part, "incomplete")
        for index in searches:
            self._cut_search(index)
        self._end_idle_items("incomplete")
        self._end_resumed()
        self._sent_items.end_items()

    def _fail(self, fault: Fault) -> None:
        # Clients raise an exception for the error event. Open items stay open, as in OpenAI's own failed responses, so
        # that no truncated call is delivered.
        if self._context.cut_ending == "incomplete":
            self._close_all()
        # The event contains the code and message twice, because OpenResponses clients read them in `error` and OpenAI
        # clients read them next to `error`.
        code, message = quoted(fault.code), quoted(fault.message)
        error_object = members(type=quoted(fault.type), code=code, message=message, param="null")
        self._wire.event("error", f'"error":{error_object},"code":{code},"message":{message},"param":null')
        self._last("failed", error=(fault.code, fault.message))

    def _last(self, status: Any, *, incomplete: str | None = None, error: tuple[str, str] | None = None) -> None:
        counts = None if self._usage is None else neutral(self._usage, self._context.source)
        usage = "null" if counts is None or counts.is_blank else usage_json(counts)
        resource = self._open(None)
        if self._context.passed.own:
            resource.take(self._context.passed.payload)
            resource.keep_id(self._context.passed.created)
            parts_ended = self._context.passed.ended
            resource.continued = self._continued
            resource.passed = {index for index, parts in self._parts.items() if any(n in parts_ended for n in parts)}
        output = {index: item() for index, item in self._output.items()}
        ended = self._context.passed.items
        copied = self._sent_items.copied
        if copied.lack_any():
            self._context.losses.note("unknown")
        listed = copied.listed()
        response = resource.json(status, output, ended, listed, usage=usage, incomplete=incomplete, error=error)
        self._wire.event(f"response.{status}", f'"response":{response}')
        self._context.frames.done()

    def _break(self) -> None:
        self._context.broken = True
        self._fail(fault_of("contradicted"))

    def _close(self, part: int, status: ItemStatus) -> None:
        passed = self._context.passed
        item, closed, ended = self._items.pop(part), part in passed.closed, part in passed.ended
        if not isinstance(item, TextItem):
            index = self._index.pop(part)
            # The closing event of a call with another status than `completed` does not end the call.
            ended = ended or index in passed.items
            self._output[index] = item.close(status, closed=closed or ended, ended=ended)
            self._parts[index] = {part}
        elif passed.own:
            # A retracted part is neither closed nor listed in its item, because a repair of the repaired stream would
            # mistake an empty listed part for another part.
            if not item.is_retracted():
                item.close_part(closed=closed)
            self._end_part(item.holder, part)
        else:
            self._output[self._index.pop(part)] = item.close(status)

    def _end_idle_items(self, status: ItemStatus = "completed", but: Key | None = None) -> None:
        """End the items whose parts have all ended, because other output follows. If `status` is `incomplete`, end all
        items. `but` is the key of an item that continues. Does nothing if the source has another dialect.
        """
        for part in self._context.passed.ended.collected():
            if part in self._holder_of:
                self._holder_of[part].ended = True
        done = self._idle if status == "completed" else self._holders
        for holder in sorted([one for key, one in done.items() if key != but], key=_turn):
            self._leave(holder, status)

    def _leave(self, holder: Holder, status: ItemStatus) -> None:
        """End an item."""
        self._idle.pop(holder.key, None)
        self._left[holder.key] = self._holders.pop(holder.key)
        self._output[holder.index] = holder.close(status)
        self._parts[holder.index] = holder.numbers

    def _end_resumed(self) -> None:
        """Write a second `output_item.done` event for each resumed item.

        The second `output_item.done` events are written only at the end, because an item can be resumed once for each
        of its parts.
        """
        still_open: list[Holder] = []
        for holder in self._resumed:
            if self._holders.get(holder.key) is holder:
                still_open.append(holder)
            else:
                holder.resumed = False
                holder.done()
        self._resumed = still_open

    def _begin_item(self, holder: Holder, key: Key) -> None:
        """Record that the item begins or continues."""
        self._turns += 1
        holder.key, holder.turn = key, self._turns
        self._holders[key] = holder

    def _end_part(self, holder: Holder, part: int) -> None:
        """Record that a part of the item ended. An item can end once all its parts have ended."""
        holder.open.discard(part)
        self._mark_idle(holder)

    def _mark_idle(self, holder: Holder) -> None:
        if not (holder.open or holder.has_open_others) and self._holders.get(holder.key) is holder:
            self._idle[holder.key] = holder

    def _new_index(self, part: int, sent: int | None = None) -> int:
        """Return `sent` as the index of a new item, or the next free index if another item already has the index
        `sent`.
        """
        index = self._index[part] = self._take_index(sent)
        return index

    def _next_index(self) -> int:
        return self._take_index(None)

    def _take_index(self, sent: int | None) -> int:
        self._next = max(self._next, self._context.passed.next_index)
        index = self._next if sent is None or sent in self._taken else sent
        self._context.passed.moved = sent not in (None, index)
        self._taken.add(index)
        self._next = max(self._next, index + 1)
        return index

    # Items and events from a source in the same dialect

    def _is_copied(self, event: Event) -> bool:
        """Return True if the content of an event from a source in the same dialect is copied from the source.
        Annotations are copied with their text.
        """
        match event:
            case ToolCallStarted():
                if self._copies:
                    self._copied_parts.add(event.part)
                return self._copies
            case ToolCall():
                is_copied = self._is_copied_part(event.part)
                if is_copied and is_whole(event) and not event.provider_executed:
                    self._called = True
                return is_copied
            case ToolCallDelta() | ToolCallReset() | ToolCallRetracted():
                return self._is_copied_part(event.part)
            case ProviderItem() | Unknown():
                return self._content is not _Content.EVENTS
            case _:
                return isinstance(event, ToolResult | ToolResultDelta | Source | File)

    def _is_copied_part(self, part: int) -> bool:
        return part in self._copied_parts or (self._copies and part not in self._items)

    @property
    def _copies(self) -> bool:
        return self._content is _Content.COPIED

    def _begin_copied(self) -> int:
        """Return the index of a new item that is copied from the source."""
        return self._take_index(self._context.passed.index)

    def _open_announced(self, item: Announced) -> Holder:
        return self._own_holder(self._content_shape(item.kind), item.at, item.id, None)

    def _keep_members(self, sent: SentItem) -> None:
        """Store the members of an item from the source that the encoder does not write itself."""
        members = read_members(self._context, sent.kind, sent.item, is_done=sent.place != "added")
        if sent.kind not in ("message", "reasoning"):
            self._current = members  # the events of a call follow
            return
        item = Announced(sent.kind, sent.index, _id_of(sent.item))
        key = _key(item.kind, item.at, item.id, self._added(item.kind, item.at, item.id))
        known = self._known_holder(key, item)
        if known is not None:
            known.take_members(members)
        else:
            self._known.add(item.id, item.at, item)
            self._unopened[key] = members
        self._listing = _Listing(key, item, self._context.passed.index)

    def _known_holder(self, key: Key, item: Announced) -> Holder | None:
        by_id = None if item.id is None else self._known.by_id.get(item.id)
        same = by_id if isinstance(by_id, Holder) and by_id.kind == item.kind else None
        return self._holders.get(key) or self._left.get(key) or same

    def _end_listing(self) -> None:
        """Write the content parts of the source's item that are not written from events, and end them if the item
        ends.
        """
        listing, self._listing = self._listing, None
        if listing is None:
            return
        sent = listing.item
        holder = self._known_holder(listing.key, sent)
        if holder is None:
            unopened = self._unopened.get(listing.key, NO_MEMBERS)
            has_address = sent.at is not None or sent.id is not None
            is_empty = unopened.is_done and unopened.has_no_content and has_address
            if not (is_empty or unopened.content.others):
                return
            holder = self._own_holder(self._content_shape(sent.kind), sent.at, sent.id, listing.index)
        self._context.passed.index = listing.index
        is_open = self._holders.get(holder.key) is holder
        ends = is_open and holder.members.is_done
        if ends:
            holder.end_others()
        self._write_others(holder, None, shows=is_open)
        if ends:
            self._mark_idle(holder)
            if not holder.numbers:
                # No part tells whether the event that ends the item passes through.
                self._leave(holder, "completed")

    def _write_others(self, holder: Holder, shape: Shape | None, *, shows: bool = True) -> None:
        """Write the content parts that the source's item lists before the next part of a shape, or before its end, and
        that are not written from events. If `shows` is false, only the item contains them.
        """
        if shape is SUMMARY:
            return
        while (part := holder.next_other(shape)) is not None:
            added = self._add_other(holder, part.position, part.json, shows=shows)
            if holder.members.is_done:
                holder.end_other(added, shows=shows)

    def _add_other(self, holder: Holder, sent: int | None, raw: str, *, shows: bool = True) -> OtherPart:
        """Add a content part with the index `sent` in the source."""
        passed = self._context.passed
        # As long as the source's events pass through, clients have the part at the source's index.
        kept = None if passed.index is None else sent
        sub = holder.free_sub(TEXT if holder.is_message else RAW, kept)
        passed.moved = passed.moved or kept not in (None, sub)
        return holder.add_other(sent, sub, raw, shows=shows)

    def _other_part(self, sent: SentPart) -> None:
        """Write an event about a content part of a type that the encoder does not write itself."""
        passed = self._context.passed
        if not passed.keeps(len(sent.part.encode())):
            self._context.losses.note("metadata")
            return
        is_reasoning = self._added("reasoning", sent.index, sent.item_id) is not None
        shape = self._content_shape("reasoning" if is_reasoning else "message")
        holder = self._own_holder(shape, sent.index, sent.item_id, passed.index)
        part = holder.find_other(sent.sub, closes=sent.closes)
        if part is None:
            part = self._add_other(holder, sent.sub, sent.part)
        else:
            part.json = sent.part
        if sent.closes:
            holder.end_other(part)
        self._mark_idle(holder)

    def _content_shape(self, kind: str) -> Shape:
        return TEXT if kind == "message" else self._reasoning_shape("raw")

    def _take_current(self) -> ItemMembers:
        """Return the members of the source's item whose events are being written."""
        members, self._current = self._current or NO_MEMBERS, None
        return members

    # Text

    def _text_started(self, event: TextStarted | RefusalStarted) -> None:
        """If the source has the same dialect, open the item where the source opens it. If the source has another
        dialect, the first text opens the item.
        """
        if self._context.passed.own:
            self._own_part(event.part, TEXT if isinstance(event, TextStarted) else REFUSAL)

    def _reasoning_started(self, event: ReasoningStarted) -> None:
        shape = self._kinds[event.part] = self._reasoning_shape(event.kind)
        if self._context.passed.own:
            self._own_part(event.part, shape)

    def _own_part(self, part: int, shape: Shape) -> None:
        """Open a part inside its item, with the ids and the index from the source."""
        passed = self._context.passed
        holder = self._own_holder(shape, passed.at, passed.item_id, passed.index)
        self._holder_of[part] = holder
        holder.open.add(part)
        holder.numbers.add(part)
        self._index[part] = holder.index
        if passed.sub is None and shape.holder is not None:
            self._bare[part] = holder  # an item without a part; its metadata is written when the item ends
        else:
            self._write_others(holder, shape)
            # Clients append parts to an item, so the source's index is valid only as long as the source's events pass
            # through.
            sub = holder.free_sub(shape, None if passed.index is None else passed.sub)
            passed.moved = passed.moved or passed.sub not in (None, sub)
            self._items[part] = TextItem(holder, shape, sub)

    def _own_holder(self, shape: Shape, at: int | None, item_id: str | None, index: int | None) -> Holder:
        """Return the source's item with this index or id. Open or resume the item if necessary. `index` is the index to
        keep.
        """
        kind = "message" if shape.holder is None else "reasoning"
        sent = self._added(kind, at, item_id)
        key = _key(kind, at, item_id, sent)
        self._end_idle_items(but=key)
        holder = self._holders.get(key)
        if holder is None and index is not None and key in self._left:
            # An item that was ended because another item followed is resumed if the source continues it.
            holder = self._left.pop(key)
            if not holder.resumed:
                holder.resumed = True
                self._resumed.append(holder)
            self._begin_item(holder, key)
            del self._output[holder.index]
        if holder is not None and holder.ended and index is None:
            self._leave(holder, "completed")
            holder = None
        if holder is None:
            # Clients do not add to an item whose closing event they have read. If the source does, the rest is a new
            # item.
            is_rest = key in self._left
            if is_rest:
                self._continued.add(self._left[key].index)
            known, is_announced = (None, False) if is_rest else self._as_added(sent, at)
            own_id = None if is_rest else item_id
            identity = known.id if known else own_id or self._context.mint.new("msg" if shape.holder is None else "rs")
            index = self._take_index(at if is_announced else index)
            announced = is_announced and index == at
            members = self._unopened.pop(key, None) or NO_MEMBERS
            holder = Holder(self._wire, shape, identity, index, members, announced=announced)
            self._known.add(identity, at, holder)
            if item_id is not None:
                self._known.add(item_id, None, holder)
            self._begin_item(holder, key)
        self._idle.pop(key, None)
        return holder

    def _added(self, kind: str, at: int | None, item_id: str | None) -> AddedItem | None:
        """Return the item of the given kind that the source opened at this index, or None.

        If there are several items of that kind, returns the one with this id, or the last one if no item has that id.
        """
        item = None if at is None else self._context.passed.added.get(at)
        last = None
        while item is not None:
            if item.kind == kind:
                if item.id == item_id:
                    return item
                last = last or item
            item = item.earlier
        return last

    def _as_added(self, known: AddedItem | None, at: int | None) -> tuple[AddedItem | None, bool]:
        """Return two values: the item, or None if its id is not kept, and whether the item's opening event passed
        through.
        """
        passed = self._context.passed
        if known is None:
            return None, False
        has_passed = at in passed.announced and known.before == 0
        is_kept = has_passed or passed.index is not None or known.before > 0
        return (known if is_kept else None), has_passed

    def _reasoning_shape(self, kind: str) -> Shape:
        if kind == "summary":
            return SUMMARY
        return OPENRESPONSES if self._context.reasoning_events == "openresponses" else RAW

    def _shape(self, event: _Delta | _Done) -> Shape:
        if isinstance(event, TextDelta | TextDone):
            return TEXT
        if isinstance(event, RefusalDelta | RefusalDone):
            return REFUSAL
        return self._kinds.get(event.part) or self._reasoning_shape("raw")

    def _delta(self, event: _Delta) -> None:
        if event.text:
            logprobs = ",".join(self._chances.pop(event.part, ())) if self._chances else ""
            self._text_item(event).delta(event.text, logprobs)

    def _takes_logprobs(self, event: Event) -> bool:
        """Store the log probabilities of a text part.

        Return True if the event's metadata contains only log probabilities.
        """
        if not isinstance(event, TextStarted | TextDelta | TextDone) or not event.provider_metadata:
            return False
        found = read_logprobs(self._context.source, _TARGET, event.provider_metadata)
        if found is None:
            return False
        item = self._items.get(event.part)
        if not (isinstance(event, TextDone) and isinstance(item, TextItem) and item.logprobs):
            self._chances.setdefault(event.part, []).append(found.tokens)
        return not found.others

    def _text_item(self, event: _Delta | _Done) -> TextItem:
        item = self._items.get(event.part)
        if not isinstance(item, TextItem):
            shape = self._shape(event)
            holder = self._bare.pop(event.part, None)
            if holder is None:
                identity = self._context.mint.new("msg" if shape.holder is None else "rs")
                holder = Holder(self._wire, shape, identity, self._new_index(event.part), NO_MEMBERS)
            self._write_others(holder, shape)
            item = self._items[event.part] = TextItem(holder, shape, holder.free_sub(shape))
        return item

    def _part_done(self, event: _Done, annotations: tuple[str, ...] = ()) -> None:
        if event.part not in self._items and not event.text:
            bare = self._bare.pop(event.part, None)
            if bare is not None:
                self._end_part(bare, event.part)
            return  # a part without text is not written
        item = self._text_item(event)
        rest = item.written_text.remaining(event.text)
        if rest:
            item.delta(rest)
        item.whole = event.text
        item.annotate(annotations, closed=event.part in self._context.passed.closed)
        item.logprobs += self._chances.pop(event.part, ())  # log probabilities that arrived after the text
        if not self._context.cut:
            self._close(event.part, "completed")

    def _text_done(self, event: TextDone) -> None:
        own = self._context.passed.own
        self._part_done(event, self._own_annotations(event) if own else self._citations(event))
        if self._chances.pop(event.part, None):
            self._context.losses.note("metadata")

    def _own_annotations(self, event: TextDone) -> tuple[str, ...]:
        """Return the annotations that were not written when they arrived."""
        item = self._items.get(event.part)
        is_listed, left = bool(event.text), event.annotations
        if isinstance(item, TextItem):
            is_listed = is_listed or not item.written_text.text()
            left = left[len(item.annotations) :]
        if left and not is_listed:
            self._context.losses.note("sources")
            return ()
        return tuple(map(compact_json, left))

    def _citations(self, event: TextDone) -> tuple[str, ...]:
        """Return the cited pages and files of another dialect as annotations. A truncated part has none."""
        citations: list[str] = []
        end = len(event.text)
        for annotation in event.annotations:
            citation = read_citation(annotation, end)
            file = read_file(annotation) if self._context.source == "anthropic" else None
            if file is not None and event.text:
                citations.append(_file_annotation(file, end))
            elif citation is None or citation.start is None or citation.end is None or not event.text:
                self._context.losses.note("sources")
            else:
                citations.append(_annotation(citation))
        if event.text and not self._context.cut:
            # Pages without a position are cited with an empty range at the end of the text.
            citations += [_annotation(Citation(page.url or "", page.title, end, end)) for page in self._pages]
            self._pages = []
        return () if self._context.cut else tuple(citations)

    def _reasoning_done(self, event: ReasoningDone) -> None:
        carries = self._context.carries
        if carries and event.encrypted_content:
            if event.kind == "summary":
                self._kinds[event.part] = SUMMARY
            self._text_item(event)  # a carrier needs an item even without text
        kept = self._context.passed.own or carries
        item = self._items.get(event.part)
        holder = item.holder if isinstance(item, TextItem) else self._bare.get(event.part)
        if holder is not None and kept:
            holder.encrypted = event.encrypted_content or holder.encrypted
        self._part_done(event)
        self._kinds.pop(event.part, None)
        if event.signature:
            self._context.losses.note("reasoning_signature")
        if event.encrypted_content and not kept:
            self._context.losses.note("encrypted_reasoning")
        if event.kind == "redacted" and not event.text:
            self._context.losses.note("redacted_reasoning")

    # Calls

    def _call_started(self, event: ToolCallStarted) -> None:
        context = self._context
        is_run_by_client = context.passed.own or not context.provider_executed
        if context.opens(event) and is_run_by_client and event.call_id is not None:
            self._end_idle_items()
            self._call_item(event, event.name, context.custom, context.passed.index)

    def _call_item(
        self, event: ToolCallStarted | ToolCall, name: str, custom: bool, sent: int | None = None
    ) -> CallItem:
        call_id, part = event.call_id or "", event.part
        names = {"call_id": call_id, "name": name}
        shape = CUSTOM if custom else CALL
        identity = event.item_id if self._context.passed.own else None
        passed = self._context.passed
        known = (
            None if sent is None else self._as_added(self._added(shape.type, passed.at, passed.item_id), passed.at)[0]
        )
        identity = known.id if known else identity or self._context.mint.new("fc")
        item = CallItem(self._wire, shape, identity, self._new_index(part, sent), names, self._take_current())
        self._known.add(identity, passed.at if passed.own else None, item)
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
        self._context.takes(call.call_id)
        item = self._items.get(call.part)
        own = self._context.passed.own
        if not isinstance(item, CallItem):
            if call.provider_executed and not own:
                if not self._searches.begin(call, self._next_index):
                    self._context.losses.note("server_tool")
                return
            if not call.name or not call.call_id:
                self._context.losses.note("nameless_call")
                self._has_nameless_call = True
                return
            self._end_idle_items()
            item = self._call_item(call, call.name, call.custom)
        else:
            if self._current is not None:
                item.members = self._take_current()
            is_same = (item.call_id, item.name, item.custom) == (call.call_id, call.name, call.custom)
            if not is_same or (call.provider_executed and not own):
                self._break()
                return
        self._fill(item, call)

    def _fill(self, item: CallItem, call: ToolCall) -> None:
        if call.reason == "refused":
            self._context.losses.note("refused_call")
        written, whole = item.written_text.text(), is_whole(call)
        text = final_text(written, call)
        if call.part in self._context.passed.closed and not written:
            text = call.arguments  # clients already received the done event with empty arguments
        rest = item.written_text.remaining(text)
        if rest is None and whole and not call.custom and same_value(written, text):
            self._context.losses.note("arguments_spelling")
        else:
            item.corrected = False
            item.delta(rest or "")
            item.whole = text
        if whole:
            self._called = True
            self._close(call.part, "completed")
        else:
            # Only the last item may be incomplete, so this call stays open until the end.
            self._unfinished.append((call.part, _INVALID_REASON if call.state == "invalid" else _CUT_REASON))

    def _result(self, result: ToolResult) -> None:
        finished = self._searches.finish(result)
        if finished is None:
            self._context.losses.note("server_tool")
        else:
            self._add_output(*finished)

    def _cut_search(self, index: int) -> None:
        self._add_output(index, self._searches.cut(index))

    def _add_output(self, index: int, item: str) -> None:
        self._output[index] = lambda: item

    # Ending, citations and images

    def _source(self, source: Source) -> None:
        if source.url is None:
            self._context.losses.note("sources")
        else:
            self._pages.append(source)

    def _file(self, file: File) -> None:
        written = write_image(self._context, self._wire, file, self._next_index)
        if written is None:
            self._context.losses.note("files")
        else:
            self._add_output(*written)

    def _finish(self, event: Finished) -> None:
        self._end_idle_items()
        self._end_resumed()
        self._finished = event


def _word(finished: Finished) -> str | None:
    """Return `completed`, or the reason why the response is incomplete, or None if the response failed."""
    word = finish_word(_TARGET, finished.finish_reason)
    return word if word == _DONE else sent_word(_TARGET, finished) or word


def _annotation(citation: Citation) -> str:
    span = f'"start_index":{citation.start or 0},"end_index":{citation.end or 0}'
    return f'{{"type":"url_citation","url":{quoted(citation.url)},{span},"title":{quoted(citation.title or "")}}}'


def _file_annotation(file: FileCitation, end: int) -> str:
    return members(type='"file_citation"', file_id=quoted(file.file_id), filename=quoted(file.name), index=str(end))


def _key(kind: str, at: int | None, item_id: str | None, sent: AddedItem | None) -> Key:
    """Return the key of an item from a source in the same dialect. `sent` is the item as the source opened it."""
    return item_id or "" if at is None else at, kind == "message", 0 if sent is None else sent.before


def _id_of(item: str) -> str | None:
    """Return the id of an item, or None if the item has no id or an id that stands for none."""
    raw = object_members(item).get("id", "")
    item_id = replace_lone_surrogates(loads_raw(raw)) if raw.startswith('"') else ""
    return item_id if item_id.strip() and item_id.strip() not in ABSENT_IDS else None


def _turn(holder: Holder) -> int:
    return holder.turn
