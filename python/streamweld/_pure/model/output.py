"""Emits events and diagnostics, and raises an exception for each diagnostic that the policy raises.

`Output` stores the byte offset and the ordinal of the current payload, which the parser sets, and the action of the
policy for each code. Events are passed to a sink. Without a sink, events are collected in a list until the parser takes
them. Up to `max_diagnostics` diagnostics are stored, and further diagnostics are only counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from streamweld import errors
from streamweld._pure.model.number_set import NumberSet
from streamweld._spec import CODES
from streamweld.events import Diagnostic, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld._pure.model.unmodelled import Unmodelled
    from streamweld._spec import Action
    from streamweld.events import DiagnosticCode, Event

RAW_HEAD = 256
# Maximum number of notes (diagnostics and `Unknown` events) per payload. Without this limit, a small payload could
# cause a very large number of notes.
MAX_NOTES = 1024
_DETAIL = 256  # maximum length of a diagnostic's detail, in characters; names and paths from the sender may be long


@dataclass(slots=True)
class AddedPart:
    """The type of an item's content part, and the number of annotations of that part."""

    kind: str | None
    annotations: int


@dataclass(slots=True)
class AddedItem:
    """An output item, in the form that clients store when the item opens."""

    kind: str | None
    id: str | None
    call_id: str | None
    parts: list[AddedPart]
    summaries: int
    before: int = 0  # number of earlier items that had the same index
    earlier: AddedItem | None = None  # the most recent of the earlier items
    is_done: bool = False  # the item was completed
    content: int | None = None  # hash of the content of a completed item; None if the item has no content


CREATED = "\0"  # stands for the creation time, which only the repair stage knows; JSON cannot contain this character


@dataclass(slots=True, frozen=True)
class Edit:
    """The range of a payload's text that must be replaced before clients accept the payload, and the new text, which
    may contain `CREATED`.
    """

    start: int
    end: int
    text: str


class Output:
    """Receives the events and diagnostics of one stream, and facts about the received payloads that repair needs."""

    __slots__ = (
        "_actions",
        "_max_kept",
        "_noted",
        "_noted_at",
        "address",
        "added",
        "announced",
        "begun",
        "choices",
        "closed",
        "counted",
        "created",
        "diagnostics",
        "diagnostics_dropped",
        "emptied",
        "edited",
        "edits",
        "ended",
        "event_type",
        "events",
        "faulted",
        "left_out",
        "mended",
        "name",
        "offset",
        "on_element",
        "on_item",
        "on_request_tools",
        "on_unmodelled",
        "opening",
        "ordinal",
        "payload",
        "reasons",
        "refusal",
        "rejected",
        "roleless",
        "sequence",
        "silent",
        "sink",
        "misread",
        "unopened",
        "untyped",
        "why",
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._actions: Mapping[str, Action] = config["actions"]
        self._max_kept: int | None = config["limits"]["max_diagnostics"]
        # Byte offset and ordinal of the current payload, set by the parser. Diagnostics contain both.
        self.offset = 0
        self.ordinal = 0
        self.event_type: str | None = None
        self.payload: bytes = b""
        self.faulted = False  # an exception will be raised, so later diagnostics are recorded instead of raised
        self.silent = False  # no event objects are created, but diagnostics are stored
        self.sink: Callable[[Event], None] | None = None  # receives each event; None: events are collected in `events`
        # A function that is called after each element of an array has been read.
        self.on_element: Callable[[], None] | None = None
        # The exception to raise after the current payload. The sink sets this exception to reject further input.
        self.refusal: errors.StreamError | None = None
        # A function that is called when the stream closes an item. The arguments of the function are the index and the
        # received item.
        self.on_item: Callable[[int, Mapping[str, Any]], None] | None = None
        # A function that is called with the tools of the request, if the response repeats them.
        self.on_request_tools: Callable[[object], None] | None = None
        # A function that is called with content that no event type can contain.
        self.on_unmodelled: Callable[[Unmodelled], None] | None = None
        # The values (custom, provider_executed) of the current ToolCallStarted event. Encoders need these values, but
        # the event does not contain them.
        self.opening: tuple[bool, bool] = (False, False)
        # Wire address of the part that the current Started event opens: index of the item, index inside the item, and
        # item id.
        self.address: tuple[int | None, int | None, str | None] = (None, None, None)
        # The following attributes are facts about the received payloads that no event contains. Repair uses these facts
        # to decide which payloads pass through unchanged.
        self.misread = False  # clients of the dialect would misread one of the payloads
        self.emptied = False  # a payload that clients do not expect produced no events
        self.rejected: int | None = None  # ordinal of the last payload that clients would reject
        self.mended = False  # a diagnostic reports that clients do not expect one of the payloads
        self.name = ""  # the name that the payload's event should have, if its name is wrong
        self.unopened = False  # clients would read the payload correctly if the opening event were not missing
        self.untyped = False  # clients would read the chunk correctly if it had the member `object`
        self.edited = ""  # text of the payload that `edits` refers to
        self.edits: list[tuple[str, Edit]] = []  # edits after which clients read the payload correctly, with the reason
        self.begun: list[int] = []  # choices whose first delta is in the current payload
        self.roleless: list[int] = []  # choices whose first delta is in the current payload and has no role
        self.why = ""  # the first reason to change a payload, if no diagnostic reports a reason
        self.choices = NumberSet()  # the choices that payloads contained
        self.announced = NumberSet()  # indexes of items that were opened without a part
        self.closed = NumberSet()  # the parts that were closed, or whose text is complete
        self.ended = NumberSet()  # the parts whose item was closed
        self.sequence: int | None = None  # sequence number of the last event
        self.added: dict[int, AddedItem] = {}  # the opened items by index, in the form that clients store
        self.created: tuple[str | None] | None = None  # response id in the opening event, if it has arrived
        self.reasons = NumberSet()  # choices that received a finish reason
        self.counted = 0  # how many times token counts were received
        self.events: list[Event] = []
        self.diagnostics: list[Diagnostic] = []
        self.diagnostics_dropped = 0
        self._noted_at = 0  # ordinal of the payload whose notes are counted in `_noted`
        self._noted = 0
        self.left_out = 0  # number of notes that were dropped because the payload already had MAX_NOTES

    def emit(self, event: Event) -> None:
        if self.sink is not None:
            self.sink(event)
        elif not self.silent:
            self.events.append(event)

    def end_payload(self) -> None:
        """If notes of the payload were dropped, report their number. Then raise the exception that the sink has set, if
        any.
        """
        self._noted = 0  # do not limit the diagnostics that repair adds for this payload
        if self.left_out:
            count, self.left_out = self.left_out, 0
            self.diagnose("notes_left_out", detail=str(count))
        if self.refusal is not None:
            raise self.refusal

    def take(self) -> list[Event]:
        """Return the events emitted since the last call to this method, and clear the list."""
        events, self.events = self.events, []
        return events

    def action(self, code: str) -> Action:
        return self._actions[code]

    def mark_misread(self, why: str) -> None:
        """Mark the current payload as misread by clients of its dialect, without a diagnostic.

        `why` is one of the reasons defined for the code `rewritten`.
        """
        self.misread = True
        self.why = self.why or why

    def recount(self) -> None:
        """Record that clients do not have the latest token counts, so that repair writes them again."""
        self.counted += 1
        self.mark_misread("usage_missing")

    def leave_out(self, why: str) -> None:
        """Mark the current payload so that repair drops it. Clients would reject the payload, and it contains no data
        that they use.

        An `Unknown` event may have been emitted for the payload. `why`: the same as in `mark_misread`.
        """
        self.emptied = True
        self.why = self.why or why
        self.rejected = self.ordinal

    def mend(self) -> None:
        """Mark the current payload as misread by clients. A diagnostic already reports the reason."""
        self.misread = self.mended = True

    def element(self) -> None:
        """Record that the payload is an element of an array, which clients do not expect.

        More elements may follow before repair decides which bytes pass through.
        """
        self.mend()
        if self.on_element is not None:
            self.on_element()

    def rename(self, name: str) -> None:
        """Record that clients would interpret the current payload correctly if its event had this name.

        This method is called only for payloads that were not buffered while the dialect was detected.
        """
        self.name = name

    def miss_opening(self) -> None:
        """Record that clients would interpret the current payload correctly if the missing opening event came before
        it.
        """
        self.unopened = True
        self.why = self.why or "start_missing"

    def edit(self, text: str, why: str, edit: Edit) -> None:
        """Record that clients would interpret the current payload correctly after this edit of its text."""
        self.edited = text
        self.edits.append((why, edit))

    def announce(self, index: int) -> None:
        """Record that an item was opened without a part. Clients store one item per index, so they misread a repeated
        index.
        """
        if index in self.announced:
            self.mark_misread("index_taken")
        self.announced.add(index)

    def keep(self, content: Unmodelled) -> None:
        """Pass content that no event type can contain to the repair stage."""
        if self.on_unmodelled is not None:
            self.on_unmodelled(content)

    def diagnose(self, code: str, part: int | None = None, detail: str = "") -> None:
        """Record a diagnostic. If the policy raises this code, raise the exception instead."""
        known = CODES[code]
        detail = detail[:_DETAIL]
        self.misread = self.misread or known.mends == "stream"
        self.emptied = self.emptied or known.mends == "payload"
        self.mended = self.mended or known.mends is not None
        if self._actions[code] == "raise" and not self.faulted:
            raise self.fault(known.raises or "StreamError", code, detail)
        if not self._notes():
            return
        event = Diagnostic(cast("DiagnosticCode", code), known.severity, self.offset, self.ordinal, part, detail)
        if not self.silent and self.sink is None:
            self.events.append(event)
        if self._max_kept is None or len(self.diagnostics) < self._max_kept:
            self.diagnostics.append(event)
        else:
            self.diagnostics_dropped += 1

    def unknown(self, event: str | None, raw: bytes) -> None:
        """Emit an `Unknown` event for a payload that could not be decoded."""
        if self._notes():
            self.emit(Unknown(event, raw))

    def _notes(self) -> bool:
        """Count a diagnostic or an `Unknown` event. Return False if the current payload has already caused `MAX_NOTES`
        diagnostics and `Unknown` events.
        """
        if self._noted_at != self.ordinal:
            self._noted_at, self._noted = self.ordinal, 0
        fits = self._noted < MAX_NOTES
        if fits:
            self._noted += 1
        else:
            self.left_out += 1
        return fits

    def fault(self, name: str, rule: str, detail: str = "", **own: Any) -> errors.StreamError:
        """Create an exception from `streamweld.errors` with the byte offset and ordinal of the current payload.

        `own`: the fields that are specific to the exception class.
        """
        made: errors.StreamError = getattr(errors, name)(
            rule=rule,
            detail=detail,
            byte_offset=self.offset,
            event_ordinal=self.ordinal,
            event_type=self.event_type,
            **({"raw": self.payload[:RAW_HEAD]} | own),
        )
        return made

    def limit(self, name: str, limit: int) -> errors.StreamError:
        """Create the exception for an exceeded limit. `observed` is always limit + 1, so that it does not depend on the
        chunk sizes.
        """
        return self.fault("LimitExceeded", f"limit_{name}", limit_name=name, limit=limit, observed=limit + 1)
