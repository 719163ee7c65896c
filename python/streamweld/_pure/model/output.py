"""The one place where events and diagnostics leave, and where a policy turns a diagnostic into an exception.

It knows the place (offset and ordinal of the payload at hand, set by the parser) and what the policy says of each code;
it knows no dialect, no part and no call. Events go to the list of the current feed (or to a sink) and are not kept;
diagnostics are kept up to a cap, and counted beyond it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from streamweld import errors
from streamweld._pure.model.journal import Journal
from streamweld._spec import CODES
from streamweld.events import Diagnostic, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld._spec import Action
    from streamweld.events import DiagnosticCode, Event

RAW_HEAD = 256
# Diagnostics and `Unknown` events that one payload may cause: its size does not bound what an event costs.
MAX_NOTES = 1024
_DETAIL = 256  # characters of a detail that are worth repeating: names and paths in it are the sender's


@dataclass(slots=True)
class AddedItem:
    """An item of the output, as clients keep it from its opening."""

    kind: str | None
    id: str | None
    call_id: str | None
    parts: int


class Output:
    """The way out of one stream."""

    __slots__ = (
        "_actions",
        "_max_kept",
        "_noted",
        "_noted_at",
        "address",
        "added",
        "announced",
        "choices",
        "closed",
        "counted",
        "created",
        "diagnostics",
        "diagnostics_dropped",
        "emptied",
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
        "opening",
        "ordinal",
        "payload",
        "reasons",
        "refusal",
        "roleless",
        "sequence",
        "silent",
        "sink",
        "standing",
        "touched",
        "unopened",
        "why",
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._actions: Mapping[str, Action] = config["actions"]
        self._max_kept: int | None = config["limits"]["max_diagnostics"]
        # The payload at hand, set by the parser: everything said about it carries its place.
        self.offset = 0
        self.ordinal = 0
        self.event_type: str | None = None
        self.payload: bytes = b""
        self.faulted = False  # an exception is certain already: repairs on the way to it are recorded, not raised
        self.silent = False  # no event objects are wanted; diagnostics are kept all the same
        self.sink: Callable[[Event], None] | None = None  # takes the events, one by one, instead of the list
        self.on_element: Callable[[], None] | None = (
            None  # the same is told of each element of an array, when it is read
        )
        # Why the sink wants no more, if it has a reason: raised behind the payload at hand.
        self.refusal: errors.StreamError | None = None
        # The same is given each item that the wire ends, with its index: as it was sent.
        self.on_item: Callable[[int, Mapping[str, Any]], None] | None = None
        # What a ToolCallStarted does not say, and a sink has to know: is it free-form, does the provider run it.
        self.opening: tuple[bool, bool] = (False, False)
        # Of the part that a Started at hand opens: its index on the wire, that inside of its item, and its item's id.
        self.address: tuple[int | None, int | None, str | None] = (None, None, None)
        # What a sink cannot see in events, and has to know if it passes on payloads as they were sent.
        self.touched = False  # readers of the dialect would not take a payload as it was taken here
        self.emptied = False  # such a payload brought nothing
        self.mended = False  # a code says so
        self.name = ""  # the one that the event of a payload should have, if it is wrong
        self.unopened = False  # readers would take a payload, if the opening of the answer stood before it
        self.roleless: list[int] = []  # choices that begin in such a payload without a role
        self.why = ""  # the first reason for which one was touched that has no code
        self.choices = Journal()  # that were spoken of
        self.announced = Journal()  # indexes of items that were opened without a part
        self.closed = Journal()  # parts that the wire has closed
        self.ended = Journal()  # parts whose item it has closed
        self.sequence: int | None = None  # the last number of an event
        self.added: dict[int, AddedItem] = {}  # by index: items that were opened, as clients keep them
        self.created: tuple[str | None] | None = None  # the id of the response that the answer opened with
        self.standing: int | None = None  # the index of a block that is open and no part
        self.reasons = Journal()  # choices that said why they end
        self.counted = 0  # how often token counts were said
        self.events: list[Event] = []
        self.diagnostics: list[Diagnostic] = []
        self.diagnostics_dropped = 0
        self._noted_at = 0  # the payload that caused so many notes:
        self._noted = 0
        self.left_out = 0  # notes beyond MAX_NOTES

    def emit(self, event: Event) -> None:
        if self.sink is not None:
            self.sink(event)
        elif not self.silent:
            self.events.append(event)

    def end_payload(self) -> None:
        """Report how many notes of a payload were left out, and end the reading where the sink wants no more."""
        self._noted = 0  # what a repair says of the payload does not count
        if self.left_out:
            count, self.left_out = self.left_out, 0
            self.diagnose("notes_left_out", detail=str(count))
        if self.refusal is not None:
            raise self.refusal

    def take(self) -> list[Event]:
        """The events since the last call."""
        events, self.events = self.events, []
        return events

    def action(self, code: str) -> Action:
        return self._actions[code]

    def touch(self, why: str) -> None:
        """The payload at hand means something else to readers of its dialect, and no code says so.

        `why` is a word of the code `rewritten`.
        """
        self.touched = True
        self.why = self.why or why

    def leave_out(self, why: str) -> None:
        """Readers of its dialect would refuse the payload at hand, which brings nothing. `why`: as of `touch`."""
        self.emptied = True
        self.why = self.why or why

    def mend(self) -> None:
        """Readers of its dialect do not expect the payload at hand, which a code says of it or of the whole body."""
        self.touched = self.mended = True

    def element(self) -> None:
        """An element of an array was read. Others may follow before anything is passed on."""
        self.mend()
        if self.on_element is not None:
            self.on_element()

    def rename(self, name: str) -> None:
        """Readers of its dialect would take the payload at hand as it was taken, if its event had that name.

        For payloads that tell their dialect: none that waited for another one.
        """
        self.name = name

    def miss_opening(self) -> None:
        """Readers of its dialect would take the payload at hand as it was taken, behind the opening of an answer."""
        self.unopened = True
        self.why = self.why or "start_missing"

    def announce(self, index: int) -> None:
        """An item opens without a part. Readers keep one at an index."""
        if index in self.announced:
            self.touch("index_taken")
        self.announced.add(index)

    def diagnose(self, code: str, part: int | None = None, detail: str = "") -> None:
        """Record an anomaly, or raise where the policy says so."""
        known = CODES[code]
        detail = detail[:_DETAIL]
        self.touched = self.touched or known.mends == "stream"
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
        """Emit what nobody could read."""
        if self._notes():
            self.emit(Unknown(event, raw))

    def _notes(self) -> bool:
        """Count a diagnostic or an `Unknown` event. False: the payload has caused too many."""
        if self._noted_at != self.ordinal:
            self._noted_at, self._noted = self.ordinal, 0
        fits = self._noted < MAX_NOTES
        if fits:
            self._noted += 1
        else:
            self.left_out += 1
        return fits

    def fault(self, name: str, rule: str, detail: str = "", **own: Any) -> errors.StreamError:
        """The exception of that class of `streamweld.errors`, with the place. `own` are the fields of that class."""
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
        """A cap was passed. `observed` is always one more than the cap, so that it does not depend on the chunking."""
        return self.fault("LimitExceeded", f"limit_{name}", limit_name=name, limit=limit, observed=limit + 1)
