"""Writes items from a source in the same dialect as they were sent, if their type is not one that the encoder writes
itself.

The events of such an item are copied. Only their sequence numbers and the members that address the item are replaced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from streamweld._json import loads_raw
from streamweld._pure.dialect.responses.readers import ITEM_TYPES, family_of
from streamweld._pure.dialect.upstream_error import is_blank_error
from streamweld._pure.encode.common.writer import quoted, spliced
from streamweld._pure.encode.responses.copied_items import (
    Copied,
    CopiedItems,
    object_members,
    status_of,
    with_status,
    with_values,
)
from streamweld._pure.json.kinds import integer
from streamweld._pure.json.scanner import replace_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.encode.responses.copied_items import Name
    from streamweld._pure.encode.responses.items import CallItem, Holder, Wire
    from streamweld._pure.json.members import Raw
    from streamweld._pure.model.unmodelled import ItemEvent, SentItem

__all__ = ["Announced", "KnownItem", "KnownItems", "SentItems", "is_written"]

# An item that clients of the response have, or that the source announced and the encoder has not written yet.
KnownItem: TypeAlias = "Copied | Holder | CallItem | Announced"

# Item types that the encoder writes from events. Their unknown members are added (`item_members`).
_WRITTEN: Final = frozenset({"message", "reasoning", "function_call", "custom_tool_call"})


def is_written(kind: str) -> bool:
    """Return True if the encoder writes items of this type from events."""
    return kind in _WRITTEN


@dataclass(frozen=True, slots=True)
class Announced:
    """A message or reasoning item that the source announced and that the encoder has not written, because it has no
    part yet.
    """

    kind: str
    at: int | None
    id: str | None


class KnownItems:
    """The items of a source in the same dialect, by the ids and the indexes that the source gives them."""

    __slots__ = ("by_id", "by_index")

    def __init__(self) -> None:
        self.by_id: dict[str, KnownItem] = {}
        self.by_index: dict[int, KnownItem] = {}

    def add(self, item_id: str | None, index: int | None, item: KnownItem) -> None:
        """Store an item, which replaces earlier items with the same id or index."""
        if item_id is not None:
            self.by_id[item_id] = item
        if index is not None:
            self.by_index[index] = item


class SentItems:
    """Writes the items of one response that are copied from the source, and the events about them."""

    __slots__ = ("_begin", "_context", "_end_idle_items", "_known", "_open_announced", "_wire", "copied")

    def __init__(
        self,
        context: EncodeContext,
        wire: Wire,
        known: KnownItems,
        begin: Callable[[], int],
        open_announced: Callable[[Announced], Holder],
        end_idle_items: Callable[[], None],
    ) -> None:
        """Create the writer. `begin` returns the index of a new item. `open_announced` opens an item without a part.
        `end_idle_items` ends the items whose parts have all ended.
        """
        self._context = context
        self._wire = wire
        self._begin = begin
        self._known = known
        self._open_announced = open_announced
        self._end_idle_items = end_idle_items
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
        known = self.copied.by_name.get(name) or self._open_at(sent)
        if known is None or not (known.is_done or sent.place == "added"):
            self._end_idle_items()  # an event of the item follows
        item = known or self._open(sent, item_id)
        self.copied.by_name[name] = item
        self._known.add(item_id, sent.index, item)
        # Clients compare the id with the one that they received first.
        named = sent.item if item_id == item.identity else with_values(sent.item, {"id": quoted(item.identity)})
        if known is None and sent.place != "added":
            announced = with_status(named, '"in_progress"')
            self._wire.event("response.output_item.added", f'"output_index":{item.index},"item":{announced}')
        is_over = item.is_done
        item.is_done = item.is_done or sent.place != "added"
        if known is None or sent.place != "added":
            self._keep(item, named, sent)
        if (sent.place == "added" and known is None) or (sent.place == "done" and not is_over):
            values = {"output_index": str(item.index)}
            if named is not sent.item:
                values["item"] = named
            self._copy(f"response.output_item.{sent.place}", sent.payload, values)
        elif sent.place == "output" and not is_over and (known is None or status_of(named) != "incomplete"):
            self._end(item, named)

    def copy_event(self, sent: ItemEvent) -> None:
        """Copy an event that the encoder does not write itself.

        An event of an item that clients do not have is not written, because they could not find the item. An event
        whose name is not printable ASCII is not written, because its name could contain a line end.
        """
        members = object_members(sent.payload)
        name = _word(members, "type") or sent.event or ""
        if not (name.isascii() and (name.isprintable())):
            self._context.losses.note("unknown")
            return
        self._end_idle_items()
        item_id, index = members.get("item_id", "null"), members.get("output_index", "null")
        if item_id == "null" and index == "null" and family_of(name)[0] not in ITEM_TYPES:
            self._copy(name, sent.payload, {})
            return
        values = self._address(name, _string(members, "item_id"), integer(loads_raw(index)))
        if values is None:
            self._context.losses.note("unknown")
        else:
            self._copy(name, sent.payload, values)

    def end_items(self) -> None:
        """Write the events that end the items without a status that the source announced and did not end.

        An item with a status is listed as incomplete, and no event ends it, because clients may run a call when an
        event ends it.
        """
        for item in self.copied.all:
            if not item.is_done and item.json is not None and status_of(item.json) is None:
                self._end(item, item.json)

    def _end(self, item: Copied, json: str) -> None:
        self._wire.event("response.output_item.done", f'"output_index":{item.index},"item":{spliced(json)}')

    def _address(self, name: str, item_id: str | None, index: int | None) -> dict[str, str] | None:
        """Return the members that address the item with an id or, if no item has that id, the item at an index. If
        several items have the id, the index decides.

        Return None if there is no such item, or if clients expect an item of another type.
        """
        at_index = None if index is None else self._known.by_index.get(index)
        item = None if item_id is None else self._known.by_id.get(item_id)
        if item is None or (_has_id(at_index, item_id) and _is_expected(name, at_index)):
            item = at_index
        if item is None or not _is_expected(name, item):
            return None
        if isinstance(item, Announced):
            item = self._open_announced(item)
        identity = quoted(item.identity) if isinstance(item, Copied) else item.identity
        known = {} if identity == "null" else {"item_id": identity}
        return {"output_index": str(item.index), **known}

    def _open_at(self, sent: SentItem) -> Copied | None:
        """Return the open item that an event ends under another id. Clients expect the id that was announced."""
        item = None if sent.index is None or sent.place != "done" else self._known.by_index.get(sent.index)
        return item if isinstance(item, Copied) and item.kind == sent.kind and not item.is_done else None

    def _open(self, sent: SentItem, item_id: str | None) -> Copied:
        item = Copied(self._begin(), sent.kind, item_id or self._context.mint.new("item"))
        self.copied.all.append(item)
        return item

    def _keep(self, item: Copied, named: str, sent: SentItem) -> None:
        """Store the item. The output of the response object is always stored, because it is as large as one payload."""
        more = _size(named) - (0 if item.json is None else _size(item.json))
        is_kept = sent.place == "output" or self._context.passed.keeps(max(more, 0))
        item.json = named if is_kept else None

    def _copy(self, name: str, payload: str, values: dict[str, str]) -> None:
        """Write an event as it was sent, with the next sequence number and the given values.

        If only the event's name tells its type, clients need the type in the payload as well. Clients disagree about a
        blank `error`, so it is left out.
        """
        passed = self._context.passed
        members = object_members(payload)
        if name and _word(members, "type") is None:
            values["type"] = quoted(name)
        if passed.sequence is not None and "sequence_number" in members:
            values["sequence_number"] = str(passed.sequence)
            passed.sequence += 1
        is_blank = "error" in members and is_blank_error(loads_raw(members["error"]))
        without = "error" if is_blank else None
        self._context.frames.named_later(name, lambda: with_values(payload, values, without=without))


def _has_id(item: KnownItem | None, item_id: str | None) -> bool:
    match item:
        case None:
            return False
        case Copied():
            return item.identity == item_id
        case Announced():
            return item.id == item_id
        case _:
            return item_id is not None and item.identity == quoted(item_id)


def _is_expected(name: str, item: KnownItem | None) -> bool:
    """Return True if events of this name may address the item."""
    return item is not None and ITEM_TYPES.get(family_of(name)[0], item.kind) == item.kind


def _word(members: Raw, name: str) -> str | None:
    return _string(members, name) or None


def _string(members: Raw, name: str) -> str | None:
    raw = members.get(name, "")
    return replace_lone_surrogates(loads_raw(raw)) if raw.startswith('"') else None


def _size(text: str) -> int:
    return len(text.encode())
