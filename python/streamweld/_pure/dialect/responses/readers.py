"""What the official clients need of an event, so that a repair rewrites what they would misread or reject.

openai-python raises at content of an item or part that was not announced, and at an item whose identity changes. At the
end it takes the output of the last event as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from streamweld._pure.dialect.responses.spec_tables import ABSENT_IDS, TERMINALS
from streamweld._pure.json.kinds import is_array, is_object
from streamweld._pure.model.output import AddedItem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.model.output import Output

_MAX_ITEMS: Final = 4096  # that are remembered
_BY_CALL_ID: Final = ("function_call", "custom_tool_call", "shell_call", "shell_call_output")
_LIFECYCLE: Final = ("created", "queued", "in_progress", "completed", "failed", "incomplete")
_EVENTS: Final = frozenset(f"response.{name}" for name in _LIFECYCLE)
_UNDER_WAY: Final = ("response.queued", "response.in_progress")

# What the answer opened with: nothing yet, an event of the source, or the opening that is put before its first event.
_Opening: TypeAlias = Literal["none", "sent", "ours"]


def _added(item: Mapping[str, Any]) -> AddedItem:
    content = item.get("content")
    parts = len(content) if is_array(content) else 0
    return AddedItem(_word(item, "type"), _word(item, "id"), _word(item, "call_id"), parts)


def _is_changed(known: AddedItem, item: AddedItem) -> bool:
    """Whether clients refuse `item` as the end of the other."""
    ids_differ = known.id != item.id and not (known.kind in _BY_CALL_ID and known.id is None)
    return (known.kind, known.call_id) != (item.kind, item.call_id) or ids_differ


class Readers:
    """The output that clients keep of one response."""

    __slots__ = ("_id", "_items", "_opening", "_out")

    def __init__(self, out: Output) -> None:
        self._out = out
        self._opening: _Opening = "none"
        self._id: str | None = None
        self._items = out.added

    def event(self, kind: str, event: Mapping[str, Any]) -> None:
        """Check an event of a response."""
        if self._opening == "none":
            self._begin(kind, event)
        if kind in _EVENTS:
            self._lifecycle(kind, event)
        elif kind == "response.done":
            self._out.touch("end_name")
        elif kind == "response.output_item.added":
            self._added(event)
        elif kind == "response.output_item.done":
            self._item_done(event)
        elif kind == "response.content_part.added":
            item = self._item(event)
            if item is not None:
                item.parts += 1
        elif kind in ("response.output_text.delta", "response.output_text.done"):
            self._text(kind, event)
        elif kind == "response.function_call_arguments.delta":
            item = self._item(event)
            if item is not None and item.kind == "function_call" and not isinstance(event.get("delta"), str):
                self._out.touch("no_text")

    def _begin(self, kind: str, event: Mapping[str, Any]) -> None:
        """The first event. Clients want `response.created` before any other."""
        self._opening = "sent"
        if kind in TERMINALS:
            self._out.touch("start_missing")  # what it brings is not streamed either
        elif kind != "response.created":
            self._opening = "ours"
            self._out.miss_opening()
            response = event.get("response") if kind in _UNDER_WAY else None
            identity = _word(response, "id") if is_object(response) else None
            if identity is not None and identity.strip() and identity.strip() not in ABSENT_IDS:
                self._id = identity  # which the opening takes

    def _lifecycle(self, kind: str, event: Mapping[str, Any]) -> None:
        response = event.get("response")
        if not is_object(response):
            return
        identity = _word(response, "id")
        if kind == "response.created" and self._opening == "sent":
            self._id = identity
            self._out.created = (identity,)
        elif identity != self._id or (identity is None and self._opening == "ours"):
            self._out.touch("other_id")
        output = response.get("output")
        if kind == "response.completed" and is_array(output) and not output and self._items:
            self._out.touch("empty_output")

    def _added(self, event: Mapping[str, Any]) -> None:
        item, index = event.get("item"), _index(event, "output_index")
        if not is_object(item):
            return
        if index is None:
            self._out.touch("no_index")
        elif len(self._items) < _MAX_ITEMS:
            self._items.setdefault(index, _added(item))

    def _item_done(self, event: Mapping[str, Any]) -> None:
        item, index = event.get("item"), _index(event, "output_index")
        if not is_object(item):
            return
        known = None if index is None else self._items.get(index)
        if index is None:
            self._out.touch("no_index")
            return
        if known is None:
            if len(self._items) < _MAX_ITEMS:
                self._items[index] = _added(item)
        elif _is_changed(known, _added(item)):
            self._out.touch("other_id")
        if self._out.on_item is not None:
            self._out.on_item(index, item)

    def _item(self, event: Mapping[str, Any]) -> AddedItem | None:
        """The item that an event speaks of."""
        index = _index(event, "output_index")
        item = None if index is None else self._items.get(index)
        if item is None and len(self._items) < _MAX_ITEMS:
            self._out.touch("no_index" if index is None else "not_opened")
        return item

    def _text(self, kind: str, event: Mapping[str, Any]) -> None:
        item = self._item(event)
        if item is None:
            return
        place = _index(event, "content_index")
        if place is None:
            self._out.touch("no_index")
        elif item.kind != "message" or place >= item.parts:
            self._out.touch("not_opened")
        elif kind.endswith("delta") and not isinstance(event.get("delta"), str):
            self._out.touch("no_text")


def _index(holder: Mapping[str, Any], key: str) -> int | None:
    value = holder.get(key)
    return value if type(value) is int and value >= 0 else None


def _word(holder: Mapping[str, Any], key: str) -> str | None:
    value = holder.get(key)
    return value if isinstance(value, str) else None
