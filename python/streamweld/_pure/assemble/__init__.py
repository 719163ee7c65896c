"""Combines the wire deltas of one stream into parts and tool calls, emits their events, and determines whether the
response is complete.

Decoders call the methods of `Assembler`, one for each kind of wire delta. The assembler contains no code for a specific
dialect. `by_evidence` decides which call a fragment belongs to, `arguments` repairs argument text, and `close_calls`
closes calls. `items` contains the methods for parts and calls that the stream opens and closes explicitly. All events
and diagnostics are emitted through `Output`.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, cast

from streamweld._json import loads_raw
from streamweld._pure.assemble.attachments import AttachedSurface, Attachments
from streamweld._pure.assemble.choice import CallComparison, Choice
from streamweld._pure.assemble.finish_reason import conclude, end_of_calls, take_reason
from streamweld._pure.assemble.items import ItemSurface
from streamweld._pure.assemble.part import call_events
from streamweld._pure.assemble.part.close_calls import close_calls
from streamweld._pure.assemble.part.item_end import end_items
from streamweld._pure.assemble.part.item_text import take_back
from streamweld._pure.assemble.part.object_merge import Growth, RawMembers
from streamweld._pure.assemble.resolve.route_fragment import take_fragment
from streamweld._pure.assemble.rule_context import RuleContext
from streamweld._pure.assemble.settings import Settings
from streamweld._pure.assemble.snapshot import client_calls, finished_event, part_events, shown_calls
from streamweld._pure.assemble.terminal_message import reconcile
from streamweld._pure.json.scanner import replace_lone_surrogates
from streamweld._pure.model.delta import Address, Fragment, Usage
from streamweld._pure.model.finish_words import is_alias, meaning
from streamweld._spec import DIALECTS
from streamweld.events import ResponseStarted, UpstreamErrorEvent
from streamweld.events import Usage as UsageEvent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld._pure.assemble.part.text import Channel
    from streamweld._pure.model.output import Output
    from streamweld.events import Event, ReasoningKind

__all__ = ["Assembler", "Completeness", "Fragment", "InputEnd", "UnfinishedInput", "Usage"]

Completeness = Literal["open", "complete", "assumed", "truncated"]
UnfinishedInput = Literal["nothing", "empty", "mid_event", "mid_utf8"]  # what was left unfinished when the input ended


class InputEnd(Enum):
    """How the input of a stream ended."""

    CLEAN = "clean"
    BROKEN = "broken"  # the transport failed, so bytes may be missing at the end


class _ChoiceEnd(Enum):
    """How complete a choice is when the input ends."""

    REASON = "reason"  # the choice has a finish reason
    CLOSED = "closed"  # the choice has no finish reason, but everything that the stream opened is closed
    OPEN = "open"  # a part, call or item is open, or a call that continued after the finish reason is incomplete


_COUNTS = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)


class Assembler(ItemSurface, AttachedSurface):
    """Assembles the parts and calls of one stream from wire deltas."""

    __slots__ = (
        "_addressed",
        "_attached",
        "_broken_off",
        "_choices",
        "_error",
        "_dialect",
        "_out",
        "_over",
        "_pending",
        "_shared",
        "_started",
        "_usage",
        "_usage_members",
        "_valid_end",
        "completeness",
        "unknown_size",
    )

    def __init__(self, config: Mapping[str, Any], out: Output) -> None:
        self._out = out
        self._shared = RuleContext(Settings(config), out)
        self._dialect = "chat"
        self._choices: dict[int, Choice] = {}
        self._addressed: set[int] = set()  # the choices that may have changed since `has_pending` was last read
        self._pending: set[int] = set()  # the choices, apart from those in `_addressed`, that hold back input
        self._attached = Attachments()
        self._started: ResponseStarted | None = None
        self._usage: Usage | None = None
        self._usage_members: RawMembers | None = None  # raw members of usage that arrives in several payloads
        self._error: UpstreamErrorEvent | None = None
        self._over = False
        self.unknown_size = 0  # size of the last payload or member that was emitted as `Unknown`, until it is reset
        self._broken_off = False
        self._valid_end = False
        self.completeness: Completeness = "open"

    # The response

    @property
    def shared(self) -> RuleContext:
        """The state that all choices share: settings, counters for the limits, and call ids in use."""
        return self._shared

    @property
    def is_blank(self) -> bool:
        """True if no choice and no error has arrived."""
        return not self._choices and self._error is None

    @property
    def lacks_start(self) -> bool:
        """True if the first chunk lacked the response's id, model, or time, and no later chunk has added it."""
        first = self._started
        return first is not None and (not first.id or not first.model or first.created is None)

    @property
    def states_end(self) -> bool:
        """True if a choice has a finish reason, or the response has ended."""
        return self._over or any(choice.finish.raw is not None for choice in self._choices.values())

    @property
    def has_pending(self) -> bool:
        """True if input is still held back: some call or text has not been emitted yet."""
        for index in self._addressed:
            if self._choices[index].has_pending:
                self._pending.add(index)
            else:
                self._pending.discard(index)
        self._addressed.clear()
        return bool(self._pending)

    def started(self, id: str | None, model: str | None, created: int | None, metadata: str | None) -> None:  # noqa: A002
        """Emit `ResponseStarted` with the fields of the first chunk and store it for the snapshot.

        Do nothing when called again.
        """
        if self._started is None and not self._over:
            self._started = ResponseStarted(id, model, created, call_events.parse_metadata(metadata))
            self._out.emit(self._started)

    def complete_start(self, id: object, model: object, created: int | None) -> None:  # noqa: A002
        """Add to the snapshot the fields that the first chunk lacked. `ResponseStarted` was emitted without these
        fields.

        An id or model that is not a string, or is blank, is ignored.
        """
        first = self._started
        if first is None or self._over:
            return
        self._started = ResponseStarted(
            first.id or _word(id),
            first.model or _word(model),
            created if first.created is None else first.created,
            first.provider_metadata,
        )

    def usage(self, usage: Usage) -> None:
        """Store token counts, which replace earlier counts unless every new count is absent or zero. Counts are never
        summed.
        """
        if not self._over and (self._usage is None or not usage.is_blank()):
            self._usage = usage
            if not usage.is_blank():
                self._out.counted += 1
                self._shared.counted_at = self._shared.place

    @property
    def has_counts(self) -> bool:
        """True if a token count that is not zero has been received."""
        return self._usage is not None and not self._usage.is_blank()

    def merge_usage(self, usage: Usage) -> None:
        """Merge token counts that arrive in several payloads. Each count that is present replaces the earlier value."""
        if self._over:
            return
        known = self._usage = self._usage or Usage()
        for name in _COUNTS:
            number: int | None = getattr(usage, name)
            if number is not None:
                setattr(known, name, number)
        if usage.raw is not None:
            if self._usage_members is None:
                self._usage_members = RawMembers()
            self._shared.spend_growth(self._usage_members.add(usage.raw))

    def unknown(self, event: str | None, raw: bytes) -> None:
        """Emit an `Unknown` event for a payload or member that the decoder does not recognize."""
        self.unknown_size = len(raw)
        self._out.unknown(event, raw)

    # Text

    def text(self, choice: int, text: str, metadata: str | None) -> None:
        self._textual(choice, "text", "raw", text, metadata)

    def reasoning(self, choice: int, kind: ReasoningKind, text: str, metadata: str | None) -> None:
        self._textual(choice, "reasoning", kind, text, metadata)

    def refusal(self, choice: int, text: str, metadata: str | None) -> None:
        self._textual(choice, "refusal", "raw", text, metadata)

    def restates(self, choice: int, channel: Channel, text: str) -> bool:
        """Return True if `text` equals all earlier text of the choice's channel, and the earlier text arrived in at
        least two pieces (AM9).
        """
        state = self._choices.get(choice)
        return state is not None and state.textual.restates(channel, text)

    def mirrors_call(self, choice: int, fragment: Fragment) -> bool:
        """Return True if this `function_call` fragment, which has a name, repeats a call from `tool_calls`."""
        state = self._choices.get(choice)
        arguments = fragment.object_arguments or fragment.arguments or ""
        return state is not None and state.mirrors(fragment.name or "", replace_lone_surrogates(arguments).encode())

    def compare_call(self, choice: int, identity: str | None, name: str, arguments: str) -> CallComparison:
        """Compare a call that arrived outside a delta's `tool_calls` with the calls of the choice."""
        state = self._choices.get(choice)
        return "own" if state is None else state.compare(identity, name, arguments.encode())

    def retype_text(self, choice: int) -> None:
        """Turn the open text part into reasoning: the text part closes with empty text, and its text is emitted as
        reasoning.
        """
        if not self._over:
            self._choice(choice).textual.retype()

    def reasoning_attributes(
        self, choice: int, signature: str | None, encrypted_content: str | None, details: str | None
    ) -> None:
        """Add attributes to the open reasoning part of the choice. If no reasoning part is open, the next reasoning
        part gets the attributes. `details` is the text of a JSON array.
        """
        if not self._over:
            self._choice(choice).textual.attribute(signature, encrypted_content, details)

    def open_reasoning(self, choice: int) -> str:
        """Return the text of the open reasoning part of the choice, or an empty string if none is open."""
        state = self._choices.get(choice)
        part = None if state is None else state.textual.current
        return part.text() if part is not None and part.channel == "reasoning" else ""

    def end_reasoning(self, choice: int, signature: str | None, encrypted_content: str | None) -> None:
        """Close the open reasoning part of the choice with these attributes. If no reasoning part is open, or if the
        attributes include encrypted content, add a reasoning part that has the attributes but no text.
        """
        if not self._over:
            state = self._choice(choice)
            call_events.flush_unstarted(state)
            state.textual.end_reasoning(signature, encrypted_content)

    def annotations(self, choice: int, raw_list: str) -> None:
        """Add annotations to the open text part. If no text part is open, the next text part gets the annotations.
        `raw_list` is the text of a JSON array.
        """
        if not self._over:
            self._choice(choice).textual.annotate(raw_list)

    # Calls

    def call(self, choice: int, fragment: Fragment) -> None:
        """Apply one fragment of a tool call to the call that it belongs to."""
        if self._over:
            return
        self._shared.called_at = self._shared.place
        state = self._choice(choice)
        if state.closed:
            if fragment.id is not None or fragment.name is not None or fragment.arguments or fragment.object_arguments:
                self._out.diagnose("late_delta")
            return
        take_fragment(state, fragment)

    def message(
        self,
        choice: int,
        content: str | None,
        reasoning: str | None,
        refusal: str | None,
        fragments: Sequence[Fragment],
    ) -> None:
        """Apply a complete message. The message corrects and completes the streamed content, or is the only content."""
        if self._over:
            return
        state = self._choice(choice)
        if state.closed:
            if content or reasoning or refusal or fragments:
                self._out.diagnose("late_delta")
            return
        reconcile(state, content, reasoning, refusal, fragments)

    def restart(self, choice: int) -> None:
        """Discard all parts and calls of the choice, because the upstream starts the response again (AM10)."""
        if self._over:
            return
        state = self._choice(choice)
        if state.closed:
            self._out.diagnose("late_delta")  # final events have already been emitted and cannot be withdrawn
            return
        self._out.diagnose("stream_restarted")
        for item in state.item_index.opened():
            take_back(state, item)
        state.textual.take_back()
        for call in state.calls:
            if not call.dropped and call.outcome is None:
                call_events.retract(state, call)
        state.forget_calls()
        state.item_index.start_again()

    def restart_step(self, choice: int) -> None:
        """Discard the parts and calls of the current step, because the upstream starts the step again. Final calls and
        tool results are kept.
        """
        state = self._item_choice(choice)
        if state is None:
            return
        self._out.diagnose("stream_restarted")
        for item in state.item_index.opened():
            take_back(state, item)
        state.textual.take_back_from(state.step)
        for call in reversed(state.calls):
            if call.part < state.step:
                break
            if not call.dropped and call.outcome is None:
                call_events.retract(state, call)
        state.item_index.drop_open()
        state.step = self._shared.parts

    def has_reported_call(self, choice: int) -> bool:
        """Return True if the final event of any call in the choice has been emitted, so that the choice can no longer
        restart.
        """
        state = self._choices.get(choice)
        return state is not None and any(call.outcome is not None for call in state.calls)

    def last_closed_call(self, choice: int) -> str | None:
        """Return the id of the call that was addressed last, or None if that call is not final yet. A tool result
        without an id is assigned to the call that was addressed last.
        """
        state = self._choices.get(choice)
        latest = None if state is None else state.latest
        return None if latest is None or latest.outcome is None else latest.outcome.call_id

    # The end

    def choice_metadata(self, choice: int, metadata: str) -> None:
        """Store unmodeled members for the `Finished` event of the choice, because no other event can contain them."""
        if not self._over:
            self._leave(self._choice(choice), metadata)

    def begin_document(self) -> None:
        """Count a JSON document that is about to be decoded."""
        self._shared.documents += 1

    def hold(self, growth: Growth) -> None:
        """Count towards `max_text_bytes` the data that a decoder is about to store. A negative `growth` means that the
        decoder no longer stores the data.
        """
        self._shared.spend_growth(growth)

    def check_id(self, identity: str) -> None:
        """Check the length of an id that a decoder is about to store."""
        self._shared.check_id(identity)

    def finish(self, choice: int, raw_reason: str) -> None:
        """Record the finish reason of a choice. If the policy closes calls at the finish reason, or if a complete
        message with calls arrived, the parts and calls of the choice close.
        """
        if self._over:
            return
        state = self._choice(choice)
        if is_alias(self._dialect, raw_reason):
            self._out.mark_misread("finish_alias")  # clients know only their API's word
        take_reason(state, raw_reason, meaning(self._dialect, raw_reason))
        if self._shared.settings.close_at_finish or (state.message_seen and (state.closed or shown_calls(state))):
            self._close_choice(state, ended=True)

    def cut(self) -> None:
        """Record that the upstream reported a broken stream. The response is truncated even if every part and call was
        closed.
        """
        self._broken_off = True

    def mark_valid_end(self) -> None:
        """Record that the response is complete if the input ends here. Gemini streams need this, because Gemini has no
        terminal marker.
        """
        self._valid_end = True

    def done(self) -> None:
        """End the response as complete, because the terminal marker arrived or a complete body was read."""
        if self._over:
            return
        self._over = True
        self._close(ended=True)
        if not self._choices:
            self._out.diagnose("finish_missing")  # the response has neither content nor a finish reason
        self.completeness = "complete"

    def end(self, unfinished: UnfinishedInput, how: InputEnd = InputEnd.CLEAN) -> Completeness:
        """End the response because the input has ended. Does nothing if a terminal marker or an error has already ended
        the response.

        Return whether the response is complete.
        """
        if self._over:
            return self.completeness
        ends = {_end_of(choice) for choice in self._choices.values()}
        # An unfinished event may contain more of the response, even after the finish reason.
        if unfinished != "nothing" or how is InputEnd.BROKEN or self._broken_off or not ends:
            ends = {_ChoiceEnd.OPEN}
        if ends == {_ChoiceEnd.REASON}:
            if self._valid_end:
                self.done()
            else:
                self._assume("no_terminal_marker")
        elif self._shared.settings.switches.missing_terminal == "assume" and _ChoiceEnd.OPEN not in ends:
            if self._out.action("terminal_missing") == "raise":
                self._truncate("terminal_missing", unfinished, how)
            else:
                self._assume("terminal_missing")
        else:
            self._truncate("truncated", unfinished, how)
        return self.completeness

    def _assume(self, code: str) -> None:
        """End the response as assumed to be complete and close all choices. `code` is the diagnostic to record."""
        self._over = True
        self._close(ended=False, assumed=True)
        self.completeness = "assumed"
        self._out.diagnose(code)

    def _truncate(self, code: str, unfinished: UnfinishedInput, how: InputEnd) -> None:
        """End the response as truncated and close all choices. `code` is the diagnostic to record or raise."""
        self._over = True
        self.completeness = "truncated"
        where = self._cut_where() if unfinished == "nothing" else unfinished
        if how is InputEnd.BROKEN and where in ("between_events", "empty"):
            where = "transport"
        open_items = tuple(self._open_parts())
        self._out.faulted = self._out.action(code) == "raise"
        self._close(ended=False)
        if self._out.faulted:
            raise self._out.fault("TruncatedStream", code, where, where=where, open_items=open_items)
        self._out.diagnose(code, None, where)

    def upstream_error(self, code: str | None, kind: str | None, message: str, raw: bytes) -> None:
        """End the response as truncated and close all choices, because the gateway sent an error."""
        if self._over:
            return
        self._over = True
        self.completeness = "truncated"
        self._error = UpstreamErrorEvent(code, kind, message, raw)
        self._out.faulted = self._out.action("upstream_error") == "raise"
        self._close(ended=False)
        if not self._out.faulted:
            self._out.diagnose("upstream_error")
        self._out.emit(self._error)
        if self._out.faulted:
            raise self._out.fault("UpstreamError", "upstream_error", code=code, kind=kind, message=message, raw=raw)

    def snapshot(self) -> list[Event]:
        """Return the events from which the current response can be built: the closing event of each part, even if the
        part is still open, and the events about the whole response.
        """
        choices = self._in_order()
        events: list[Event] = [] if self._started is None else [self._started]
        events += part_events(choices, self._attached.events)
        if self._usage is not None:
            events.append(_usage_event(self._usage, self._usage_members))
        events += [finished_event(choice) for choice in choices if self._is_finished(choice)]
        if self._error is not None:
            events.append(self._error)
        return events

    def shown_arguments(self, part: int) -> str | None:
        """Return the arguments emitted so far for the call with part number `part`, or None if no such call has been
        emitted.
        """
        for choice in self._choices.values():
            for call in choice.calls:
                if call.part == part and call.started and not call.dropped:
                    return call.text.data[: call.text.shown].decode("utf-8", "replace")
        return None

    def assumed_ends(self) -> list[Event]:
        """Return a `Finished` event for each choice without a finish reason, if the response is assumed to be complete.

        The returned events are not part of the response. Conversion uses these events if the target format requires a
        finish reason.
        """
        if self.completeness != "assumed":
            return []
        return [finished_event(choice) for choice in self._in_order() if not self._is_finished(choice)]

    def set_dialect(self, dialect: str) -> None:
        """Set the dialect, which determines the table of finish reasons and whether calls may lack an id."""
        facts: Mapping[str, Any] = DIALECTS[dialect]
        self._dialect = dialect
        self._shared.ids_optional = bool(facts.get("ids_optional", False))

    # Inside

    def _live_choice(self, choice: int) -> Choice | None:
        return None if self._over else self._choice(choice)

    def call_misses_arguments(self, choice: int, address: Address) -> None:
        """Mark the call at this address as possibly incomplete, because a member that was not read may contain its
        arguments.
        """
        state = self._choices.get(choice)
        item = None if state is None else state.item_index.find("call", address, "delta")
        if item is not None and item.call is not None:
            item.call.misses_arguments = True

    def _item_choice(self, choice: int) -> Choice | None:
        state = self._live_choice(choice)
        if state is None or not state.closed:
            return state
        self._out.diagnose("late_delta")
        return None

    def _choice(self, index: int) -> Choice:
        state = self._choices.get(index)
        if state is None:
            self._shared.count_choice()
            state = self._choices[index] = Choice(index, self._shared)
        self._addressed.add(index)
        return state

    def _in_order(self) -> list[Choice]:
        return [self._choices[index] for index in sorted(self._choices)]

    def _textual(self, index: int, channel: Channel, kind: ReasoningKind, text: str, metadata: str | None) -> None:
        if self._over:
            return
        state = self._choice(index)
        if text:
            call_events.flush_unstarted(state)
            metadata = state.textual.push(channel, text, metadata, kind)
        if metadata is not None:
            self._leave(state, metadata)

    def _leave(self, choice: Choice, metadata: str) -> None:
        self._shared.spend_growth(choice.metadata.add(metadata))

    def _close_choice(self, choice: Choice, *, ended: bool, broken_off: bool = False) -> None:
        """Close the parts of a choice in order, then its calls.

        Text that arrives later opens a new part, but calls that arrive later are only reported as late.
        """
        self._addressed.add(choice.index)
        for member, raw in choice.textual.end().items():
            choice.metadata.put(member, raw)
        end_items(choice, ended=ended)
        if not choice.closed:
            choice.closed = True
            close_calls(choice, end_of_calls(choice.finish, ended=ended), broken_off=broken_off)

    def _close(self, *, ended: bool, assumed: bool = False) -> None:
        """Close all choices and emit the token counts. After these events, emit `Finished` for each choice that has
        ended.

        `ended`: all choices have ended, even those without a finish reason. `assumed`: the response is assumed to be
        complete, and no `Finished` is emitted for a choice without a finish reason.
        """
        choices = self._in_order()
        whole = ended or assumed
        for choice in choices:
            over = whole or choice.finish.raw is not None
            self._close_choice(choice, ended=over, broken_off=not whole)
        if self._usage is not None and not self._out.silent:
            self._out.emit(_usage_event(self._usage, self._usage_members))
        for choice in choices:
            if ended or choice.finish.raw is not None:
                self._conclude(choice)

    def _conclude(self, choice: Choice) -> None:
        finish = choice.finish
        finish.concluded = conclude(choice, client_calls(choice))
        if finish.raw is None:
            self._out.diagnose("finish_missing")
            if finish.concluded == "tool_calls" or DIALECTS[self._dialect].get("reason_required"):
                self._out.mark_misread("finish_missing")  # clients raise, or do not run the calls
        elif finish.concluded != finish.reason and not finish.natural:
            self._out.diagnose("finish_contradicts", detail=finish.raw)
        if not self._out.silent:
            self._out.emit(finished_event(choice))

    def _is_finished(self, choice: Choice) -> bool:
        return choice.finish.raw is not None or choice.finish.concluded is not None

    def _cut_where(self) -> str:
        cut = [choice for choice in self._choices.values() if _end_of(choice) is _ChoiceEnd.OPEN]
        if any(not call.complete and call.outcome is None for choice in cut for call in shown_calls(choice)):
            return "mid_arguments"
        if any(choice.textual.open_parts() for choice in cut):
            return "mid_text"
        return "between_events"

    def _open_parts(self) -> list[int]:
        parts: list[int] = []
        for choice in self._choices.values():
            if _end_of(choice) is not _ChoiceEnd.OPEN:
                continue
            parts += choice.textual.open_parts()
            if not choice.closed:
                parts += [call.part for call in shown_calls(choice) if call.outcome is None]
        return sorted(parts)


def _end_of(choice: Choice) -> _ChoiceEnd:
    """Return how complete the choice is.

    A call that continued after the finish reason and is incomplete makes the choice open.
    """
    if any(call.late and not call.complete for call in shown_calls(choice)):
        return _ChoiceEnd.OPEN
    if choice.finish.raw is not None:
        return _ChoiceEnd.REASON
    closed = choice.item_index.all_closed and choice.textual.current is None
    return _ChoiceEnd.CLOSED if closed else _ChoiceEnd.OPEN


def _usage_event(usage: Usage, members: RawMembers | None) -> UsageEvent:
    """Return the usage event. `members` contains the raw members of usage that arrived in several payloads. The members
    are joined only here, so that processing a payload stays cheap.
    """
    text = usage.raw if members is None else members.text()
    raw = None if text is None else cast("dict[str, Any]", loads_raw(text))
    return UsageEvent(
        usage.input_tokens,
        usage.output_tokens,
        usage.total_tokens,
        usage.cached_input_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
        raw,
    )


def _word(value: object) -> str | None:
    return replace_lone_surrogates(value) if isinstance(value, str) and value.strip() else None
