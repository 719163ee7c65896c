"""Assembles the content of a response other than text and calls: files, sources, tool results and kept items.

Kept items are those that clients send back unchanged in a later turn: items that only the provider reads, and items
that streamweld does not model.

Each file, source, result and item is emitted when it arrives, and is stored for the snapshot. If a call has several
results, the snapshot contains the last one.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from streamweld._json import loads_raw
from streamweld._pure.assemble.part import call_events
from streamweld._pure.assemble.rule_context import byte_length
from streamweld.events import File, ProviderItem, Source, ToolResult, ToolResultDelta, Unknown

if TYPE_CHECKING:
    from streamweld._pure.assemble.choice import Choice
    from streamweld.events import Event

__all__ = ["AttachedSurface", "Attachments"]


class Attachments:
    """The attachments (files, sources, tool results and kept items) received so far, by part number."""

    __slots__ = ("_keyed", "_results", "events")

    def __init__(self) -> None:
        self.events: dict[int, Event] = {}
        self._results: dict[tuple[int, str], int] = {}
        self._keyed: dict[tuple[int, str], int] = {}

    def part_of(self, choice: Choice, call_id: str) -> int:
        """Return the part number for the results of this call. The first result gets a new part number."""
        part = self._results.get((choice.index, call_id))
        if part is None:
            part = self._results[choice.index, call_id] = choice.shared.next_part()
        return part

    def part_under(self, choice: Choice, key: str | None) -> int:
        """Return the part number for an item with this key. The first item with a key, and each item without one, gets
        a new number.
        """
        if key is None:
            return choice.shared.next_part()
        part = self._keyed.get((choice.index, key))
        if part is None:
            choice.shared.spend_text(byte_length(key))
            part = self._keyed[choice.index, key] = choice.shared.next_part()
        return part


class AttachedSurface:
    """The assembler's methods for files, sources, tool results and kept items. `metadata` is always the text of a JSON
    object.
    """

    __slots__ = ()

    _attached: Attachments

    @abstractmethod
    def _live_choice(self, choice: int) -> Choice | None:
        """Return the choice, or None if the stream has ended."""

    def file(
        self, choice: int, media_type: str | None, data: str | None, url: str | None, metadata: str | None
    ) -> None:
        """Add a file or image to the response and emit its event."""
        state = self._live_choice(choice)
        if state is None:
            return
        state.shared.spend_text(byte_length((data or "") + (url or "") + (metadata or "")))
        call_events.flush_unstarted(state)
        part = state.shared.next_part()
        value = call_events.parse_metadata(metadata)
        self._attach(state, part, File(part, media_type, data, url, choice=state.index, provider_metadata=value))

    def source(
        self, choice: int, url: str | None, title: str | None, document: str | None, metadata: str | None
    ) -> None:
        """Add a source to the response and emit its event. `document` is the text of a JSON object."""
        state = self._live_choice(choice)
        if state is None:
            return
        state.shared.spend_text(byte_length((url or "") + (title or "") + (document or "") + (metadata or "")))
        part = state.shared.next_part()
        value_sent: Any = None if document is None else loads_raw(document)
        value = call_events.parse_metadata(metadata)
        self._attach(state, part, Source(part, url, title, value_sent, choice=state.index, provider_metadata=value))

    def id_of_result(self, choice: int, call_id: str) -> str:
        """Return the id that events report for a call's result: the id in the call's final event.

        Returns the id unchanged if no final call has it.
        """
        state = self._live_choice(choice)
        call = None if state is None else state.item_index.call_of(call_id)
        return call_id if call is None or call.outcome is None else call.outcome.call_id

    def result(self, choice: int, call_id: str, output: str, is_error: bool, metadata: str | None) -> None:
        """Add a tool result that the stream contains, so the client must not run the call. `output` is JSON text.

        A second result of the same call has the same part number as the first. If several calls received this id, the
        result belongs to the latest of them. The event of the result contains the id from the call's final event.
        """
        state = self._live_choice(choice)
        if state is None:
            return
        state.shared.check_id(call_id)
        state.shared.spend_text(byte_length(call_id + output + (metadata or "")))
        call = state.item_index.call_of(call_id)
        if call is not None:
            call.answered = True
            call_id = call.outcome.call_id if call.outcome is not None else call_id
        part = self._attached.part_of(state, call_id)
        value_sent: Any = loads_raw(output)
        value = call_events.parse_metadata(metadata)
        event = ToolResult(part, call_id, value_sent, is_error, choice=state.index, provider_metadata=value)
        self._attach(state, part, event)

    def result_delta(self, choice: int, call_id: str, output: str) -> None:
        """Emit a piece of a result that the provider sends while the tool runs. `output` is JSON text.

        The event has the part number and the call id that the result will have. The result itself contains the whole
        output.
        """
        state = self._live_choice(choice)
        if state is None:
            return
        state.shared.spend_text(byte_length(output))
        call_id = self.id_of_result(choice, call_id)
        part = self._attached.part_of(state, call_id)
        value_sent: Any = loads_raw(output)
        state.shared.out.emit(ToolResultDelta(part, call_id, value_sent, choice=state.index))

    def provider_item(self, choice: int, kind: str, value: str, item_id: str | None) -> None:
        """Add an item that only the provider reads and that clients must send back in a later turn. `value` is the item
        as JSON text.
        """
        state = self._live_choice(choice)
        if state is None:
            return
        state.shared.spend_text(byte_length(value))
        part = state.shared.next_part()
        value_sent: Any = loads_raw(value)
        self._attach(state, part, ProviderItem(part, kind, value_sent, item_id, choice=state.index))

    def kept_unknown(self, choice: int, event: str | None, raw: bytes, key: str | None = None) -> None:
        """Add an item that streamweld does not model but that clients must send back in a later turn.

        An item replaces an earlier item with the same key.
        """
        state = self._live_choice(choice)
        if state is None:
            return
        state.shared.spend_text(len(raw))
        self._attach(state, self._attached.part_under(state, key), Unknown(event, raw))

    def _attach(self, choice: Choice, part: int, event: Event) -> None:
        self._attached.events[part] = event
        choice.shared.out.emit(event)
