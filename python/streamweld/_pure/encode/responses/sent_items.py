"""Writes items from a source in the same dialect as they were sent, if their type is not one that the encoder writes
itself.

The events of such an item are copied. Only their sequence numbers and, if another item has the item's index, their
output indexes are replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld._json import loads_raw
from streamweld._pure.encode.common.writer import quoted, spliced
from streamweld._pure.encode.responses.copied_items import (
    Copied,
    CopiedItems,
    object_members,
    with_status,
    with_values,
)
from streamweld._pure.json.kinds import integer
from streamweld._pure.json.scanner import replace_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.encode.responses.copied_items import Name
    from streamweld._pure.encode.responses.items import Wire
    from streamweld._pure.json.members import Raw
    from streamweld._pure.model.unmodelled import ItemEvent, SentItem

__all__ = ["SentItems", "is_written"]

# Item types that the encoder writes from events. Their unknown members are added (`item_members`).
_WRITTEN: Final = frozenset({"message", "reasoning", "function_call", "custom_tool_call"})


def is_written(kind: str) -> bool:
    """Return True if the encoder writes items of this type from events."""
    return kind in _WRITTEN


class SentItems:
    """Writes the items of one response that are copied from the source, and the events about them."""

    __slots__ = ("_begin", "_context", "_index_of", "_wire", "copied")

    def __init__(
        self,
        context: EncodeContext,
        wire: Wire,
        begin: Callable[[], int],
        index_of: Callable[[str], int | None],
    ) -> None:
        """Create the writer. `begin` returns the index of a new item. `index_of` returns the index of the item with an
        id, if the encoder writes that item from events.
        """
        self._context = context
        self._wire = wire
        self._begin = begin
        self._index_of = index_of
        self.copied = CopiedItems()

    def copy_item(self, sent: SentItem) -> None:
        """Write the event about an item, and the event that announces the item if the source sent none."""
        members = object_members(sent.item)
        item_id = _word(members, "id")
        call_id = _word(members, "call_id")
        name: Name
        if item_id is not None:
            name = "id", sent.kind, item_id
        elif call_id is not None:
            name = "call", sent.kind, call_id
        elif sent.index is not None:
            name = "index", sent.kind, sent.index
        else:
            self._context.losses.note("unknown")
            return
        known = self.copied.by_name.get(name)
        item = known or self._open(sent, name, item_id)
        is_over = item.is_done
        item.is_done = item.is_done or sent.place != "added"
        if known is None or sent.place != "added":
            self._keep(item, sent)
        if (sent.place == "added" and known is None) or (sent.place == "done" and not is_over):
            self._copy(f"response.output_item.{sent.place}", sent.payload, item.index)
        elif sent.place == "output" and not is_over:
            self._wire.event("response.output_item.done", f'"output_index":{item.index},"item":{spliced(sent.item)}')

    def copy_event(self, sent: ItemEvent) -> None:
        """Copy an event that the encoder does not write itself.

        An event whose name is not printable ASCII is not written, because its name could contain a line end.
        """
        members = object_members(sent.payload)
        name = _word(members, "type") or sent.event or ""
        if not (name.isascii() and (name.isprintable())):
            self._context.losses.note("unknown")
            return
        index = integer(loads_raw(members.get("output_index", "null")))
        by_id = _string(members, "item_id")
        item = None if by_id is None else self.copied.by_id.get(by_id)
        written = None if by_id is None or item is not None else self._index_of(by_id)
        if item is None and written is None and index is not None:
            item = self.copied.by_index.get(index)
        if item is not None:
            written = item.index
        self._copy(name, sent.payload, written if written is not None else index or 0)

    def _open(self, sent: SentItem, name: Name, item_id: str | None) -> Copied:
        item = Copied(self._begin())
        self.copied.all.append(item)
        self.copied.by_name[name] = item
        if item_id is not None:
            self.copied.by_id[item_id] = item
        if sent.index is not None:
            self.copied.by_index[sent.index] = item
        if sent.place != "added":
            announced = with_status(sent.item, '"in_progress"')
            self._wire.event("response.output_item.added", f'"output_index":{item.index},"item":{announced}')
        return item

    def _keep(self, item: Copied, sent: SentItem) -> None:
        """Store the item. The output of the response object is always stored, because it is as large as one payload."""
        more = _size(sent.item) - (0 if item.json is None else _size(item.json))
        is_kept = sent.place == "output" or self._context.passed.keeps(max(more, 0))
        item.json = sent.item if is_kept else None

    def _copy(self, name: str, payload: str, index: int) -> None:
        """Write an event as it was sent, with the next sequence number and the given output index.

        If only the event's name tells its type, clients need the type in the payload as well.
        """
        values = {"output_index": str(index)}
        passed = self._context.passed
        members = object_members(payload)
        if name and _word(members, "type") is None:
            values["type"] = quoted(name)
        if passed.sequence is not None and "sequence_number" in members:
            values["sequence_number"] = str(passed.sequence)
            passed.sequence += 1
        self._context.frames.named_later(name, lambda: with_values(payload, values))


def _word(members: Raw, name: str) -> str | None:
    return _string(members, name) or None


def _string(members: Raw, name: str) -> str | None:
    raw = members.get(name, "")
    return replace_lone_surrogates(loads_raw(raw)) if raw.startswith('"') else None


def _size(text: str) -> int:
    return len(text.encode())
