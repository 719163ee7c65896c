"""Rules for Responses and OpenResponses streams: the response, its sequence numbers and its end.

The items are checked in `responses_items`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from streamweld.check.lifecycle import Lifecycle, array, count, missing, object_, string
from streamweld.check.responses_items import Items
from streamweld.check.violation import facts

if TYPE_CHECKING:
    from streamweld.check.violation import Report

__all__ = ["Responses"]

_TERMINAL: Final = ("response.completed", "response.failed", "response.incomplete", "response.cancelled")


class Responses(Lifecycle):
    """Checks `response.created`, the items event by event, the terminal response, and `[DONE]`."""

    dialect: ClassVar[str] = "responses"

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._facts = facts("responses")
        self._items = Items(self)
        self._sequence: int | None = None
        self._begun = False
        self._created = False
        self._id: str | None = None
        self._terminal: str | None = None
        self._error = False
        self._done = False

    def event(self, value: dict[str, Any], name: str, identifier: str) -> None:
        kind = string(value, "type")
        if kind is None:
            self.record("type_missing")
            return
        if name == "message":
            self.once("event_missing", kind)
        elif name != kind:
            self.record("event_differs", f"event: {name}, type {kind}")
        if identifier:
            self.once("id_used", identifier)
        if self._done:
            self.once("after_done", kind)
            return
        heartbeat = kind in self._facts["heartbeats"]
        if not heartbeat or "sequence_number" in value:  # only OpenAI's keepalive events are numbered
            self._sequenced(value)
        if heartbeat:
            return
        if self._terminal is not None:
            self.once("after_terminal", kind)
            return
        if not self._begun:
            self._begun = True
            if kind not in ("response.created", "error"):
                self.record("created_first", kind)
        if kind in self._facts["required"]:
            lacking = missing(value, self._facts["required"][kind])
            if lacking:
                self.record("event_fields", f"{kind}: {lacking}")
        else:
            self._extension(kind)
        if kind == "error":
            self._error = True
        elif "response" in value:
            self._response(kind, object_(value, "response") or {})
        else:
            self._items.event(kind, value)

    def marker(self) -> None:
        if self._done:
            self.once("after_done", "[DONE]")
        self._done = True

    def end(self) -> None:
        if self._error and self._terminal != "response.failed":
            self.record("error_not_failed")
        elif self._terminal is None:
            self.record("terminal_missing")
        if self._terminal is None:
            self._items.unfinished()
        if not self._done:
            self.record("done_missing")

    def _extension(self, kind: str) -> None:
        """Report an event type that is not in the schema."""
        if kind.startswith("response."):
            if kind != "response.cancelled" and kind[9:].rpartition(".")[0] not in self._facts["families"]:
                self.once("event_unlisted", kind)
        elif ":" not in kind:
            self.once("event_unknown", kind)

    def _sequenced(self, value: dict[str, Any]) -> None:
        number = count(value, "sequence_number")
        before, self._sequence = self._sequence, number if number is not None else self._sequence
        if number is None:
            self.once("sequence_missing", repr(value.get("sequence_number")))
        elif before is None:
            if number != 0:
                self.record("sequence_start", str(number))
        elif number <= before:
            self.record("sequence_repeated", f"{before}, then {number}")
        elif number != before + 1:
            self.record("sequence_gap", f"{before}, then {number}")

    def _response(self, kind: str, response: dict[str, Any]) -> None:
        if kind == "response.created":
            if self._created:
                self.record("created_repeated")
            self._created = True
        first = self._facts["opening"] if kind in self._facts["openings"] else ()
        if lacking := missing(response, first):
            self.once("opening_fields", lacking)
        lacking = missing(response, [name for name in self._facts["response"] if name not in first])
        if lacking:
            self.once("response_fields", lacking)
        identifier = string(response, "id")
        if identifier:
            if self._id is not None and identifier != self._id:
                self.once("response_id_changes", f"{self._id} and {identifier}")
            self._id = self._id or identifier
        status = string(response, "status")
        wanted = kind.removeprefix("response.")
        if wanted == "created":
            fits = status in (None, "in_progress", "queued")
        else:
            fits = status in (None, wanted)
        if not fits and wanted in self._facts["statuses"]:
            self.record("status_differs", f"{kind} with status {status}")
        if kind in _TERMINAL:
            self._terminal = kind
            self._items.unfinished()
            self._items.compare(kind, array(response, "output"))
            if kind == "response.incomplete" and not object_(response, "incomplete_details"):
                self.record("incomplete_details")
        elif output := array(response, "output"):
            self.once("output_early", f"{len(output)} items in {kind}")
