"""What stands beside texts and calls in an answer: files, sources, results of tools, items that nobody models.

Each is told once and kept for the snapshot; of the results of one call the last one counts. It knows no part of the
three channels and no call.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from streamweld._json import loads_raw
from streamweld._pure.assemble import announce
from streamweld._pure.assemble.shared import byte_length
from streamweld.events import File, Source, ToolResult, Unknown

if TYPE_CHECKING:
    from streamweld._pure.assemble.choice import Choice
    from streamweld.events import Event

__all__ = ["Attached", "AttachedSurface"]


class Attached:
    """What was attached so far, by part."""

    __slots__ = ("_results", "events")

    def __init__(self) -> None:
        self.events: dict[int, Event] = {}
        self._results: dict[tuple[int, str], int] = {}

    def part_of(self, choice: Choice, call_id: str) -> int:
        """The part of the results of that call."""
        part = self._results.get((choice.index, call_id))
        if part is None:
            part = self._results[choice.index, call_id] = choice.shared.next_part()
        return part


class AttachedSurface:
    """The part of the assembler that takes what is attached. `metadata` is the text of a JSON object."""

    __slots__ = ()

    _attached: Attached

    @abstractmethod
    def _live_choice(self, choice: int) -> Choice | None:
        """The choice, or None where nothing of it counts any more."""

    def file(
        self, choice: int, media_type: str | None, data: str | None, url: str | None, metadata: str | None
    ) -> None:
        """A file or image."""
        state = self._live_choice(choice)
        if state is None:
            return
        state.shared.spend_text(byte_length((data or "") + (url or "")))
        announce.flush_unstarted(state)
        part = state.shared.next_part()
        value = announce.parse_metadata(metadata)
        self._attach(state, part, File(part, media_type, data, url, choice=state.index, provider_metadata=value))

    def source(
        self, choice: int, url: str | None, title: str | None, document: str | None, metadata: str | None
    ) -> None:
        """A source of the answer. `document`: the text of a JSON object."""
        state = self._live_choice(choice)
        if state is None:
            return
        state.shared.spend_text(byte_length((url or "") + (title or "") + (document or "")))
        part = state.shared.next_part()
        said: Any = None if document is None else loads_raw(document)
        value = announce.parse_metadata(metadata)
        self._attach(state, part, Source(part, url, title, said, choice=state.index, provider_metadata=value))

    def result(self, choice: int, call_id: str, output: str, is_error: bool, metadata: str | None) -> None:
        """What a tool gave that the provider ran. `output`: JSON text. The same call again is the same part."""
        state = self._live_choice(choice)
        if state is None:
            return
        state.shared.check_id(call_id)
        state.shared.spend_text(byte_length(call_id + output))
        part = self._attached.part_of(state, call_id)
        said: Any = loads_raw(output)
        value = announce.parse_metadata(metadata)
        event = ToolResult(part, call_id, said, is_error, choice=state.index, provider_metadata=value)
        self._attach(state, part, event)

    def kept_unknown(self, choice: int, event: str | None, raw: bytes) -> None:
        """An item that nobody models but that a later turn must hand back."""
        state = self._live_choice(choice)
        if state is None:
            return
        state.shared.spend_text(len(raw))
        self._attach(state, state.shared.next_part(), Unknown(event, raw))

    def _attach(self, choice: Choice, part: int, event: Event) -> None:
        self._attached.events[part] = event
        choice.shared.out.emit(event)
