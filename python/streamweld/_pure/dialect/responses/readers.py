"""What the official clients need of an event, so that a repair rewrites what they would misread or reject.

openai-python raises at content of an item or part that was not announced, and at an item whose identity changes. At the
end it takes the output of the last event as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld._pure.json.kinds import is_array, is_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.model.output import Output

_MAX_ITEMS: Final = 4096  # that are remembered
_BY_CALL_ID: Final = ("function_call", "custom_tool_call", "shell_call", "shell_call_output")
_LIFECYCLE: Final = ("created", "queued", "in_progress", "completed", "failed", "incomplete")
_EVENTS: Final = frozenset(f"response.{name}" for name in _LIFECYCLE)


class _Item:
    """One item of the output, as clients keep it."""

    __slots__ = ("call_id", "id", "kind", "parts")

    def __init__(self, item: Mapping[str, Any]) -> None:
        self.kind = _word(item, "type")
        self.id = _word(item, "id")
        self.call_id = _word(item, "call_id")
        content = item.get("content")
        self.parts = len(content) if is_array(content) else 0

    def is_changed(self, item: _Item) -> bool:
        """Whether clients refuse `item` as the end of this one."""
        known = self.kind in _BY_CALL_ID
        ids_differ = self.id != item.id and not (known and self.id is None)
        return (self.kind, self.call_id) != (item.kind, item.call_id) or ids_differ


class Readers:
    """The output that clients keep of one response."""

    __slots__ = ("_id", "_items", "_out", "_started")

    def __init__(self, out: Output) -> None:
        self._out = out
        self._started = False
        self._id: str | None = None
        self._items: dict[int, _Item] = {}

    def event(self, kind: str, event: Mapping[str, Any]) -> None:
        """Check an event of a response."""
        if not self._started:
            self._started = True
            if kind != "response.created":
                self._out.touch("start_missing")
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

    def _lifecycle(self, kind: str, event: Mapping[str, Any]) -> None:
        response = event.get("response")
        if not is_object(response):
            return
        identity = _word(response, "id")
        if kind == "response.created":
            self._id = identity
        elif identity != self._id:
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
            self._items.setdefault(index, _Item(item))

    def _item_done(self, event: Mapping[str, Any]) -> None:
        item, index = event.get("item"), _index(event, "output_index")
        if not is_object(item):
            return
        known = None if index is None else self._items.get(index)
        if index is None:
            self._out.touch("no_index")
        elif known is None:
            if len(self._items) < _MAX_ITEMS:
                self._items[index] = _Item(item)
        elif known.is_changed(_Item(item)):
            self._out.touch("other_id")

    def _item(self, event: Mapping[str, Any]) -> _Item | None:
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
