"""Decodes output items when they are announced, completed, or repeated in the terminal output.

Messages and reasoning contain text. The module `calls` decodes tool calls. Results are paired with their calls. Items
that only the provider reads, and items of unknown type, are kept unchanged for the next turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.responses.calls import call_type, open_call, read_call
from streamweld._pure.dialect.responses.spec_tables import (
    ABSENT_IDS,
    ITEM_FIELDS,
    PROGRESS_ADDRESS,
    PROVIDER_ITEMS,
    RESPONSE_EVENTS,
    RESULT_MEMBERS,
    RESULTS,
    is_unmodelled_part,
)
from streamweld._pure.json.kinds import is_array, is_object
from streamweld._pure.json.members import as_object, compact
from streamweld._pure.json.scanner import replace_lone_surrogates
from streamweld._pure.model.delta import Address, CallEnding
from streamweld._pure.model.unmodelled import ItemEnd, SentItem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.dialect.responses.calls import CallItem
    from streamweld._pure.dialect.responses.read import Reader
    from streamweld._pure.dialect.responses.spec_tables import CallType
    from streamweld._pure.dialect.responses.text import TextReader
    from streamweld._pure.json.members import Raw
    from streamweld._pure.json.scanner import Path
    from streamweld._pure.model.delta import ItemKind
    from streamweld._pure.model.unmodelled import ItemPlace

_ONCE = 4096  # maximum number of emitted values whose hashes are stored
_TYPES = 4096  # maximum number of output indexes whose item type is stored
_ANNOUNCED = 4096  # maximum number of item ids, and of output indexes, of announced results that are stored
_TYPE = 64  # maximum length of a stored item type, in characters
_ITEM_DONE = "response.output_item.done"  # event name under which items of unknown type are emitted
_RESULT_FIELDS = frozenset({"call_id"})
_RESULT_ADDRESS = PROGRESS_ADDRESS | {"type"}  # members of a piece of a result that are not part of its output


class ItemReader:
    """Decodes the output items of one stream."""

    __slots__ = ("_assembler", "_by_id", "_by_index", "_once", "_text", "_types", "ends_with_answer")

    def __init__(self, assembler: Assembler, text: TextReader) -> None:
        self._assembler = assembler
        self._text = text
        self._once: set[int] = set()  # hashes of values that were emitted and must not be emitted twice
        self._types: dict[int, str] = {}  # type of the item at each output index
        self._by_id: dict[str, str] = {}  # call id of each announced result, by the id of its item
        self._by_index: dict[int, str] = {}  # call id of each announced result, by its output index
        self.ends_with_answer = True  # whether a response may end with the last complete item

    def begin_again(self, text: TextReader) -> None:
        """Discard all state when the response restarts, because indexes refer to other items after a restart."""
        self._text = text
        self._types.clear()
        self._by_id.clear()
        self._by_index.clear()
        self._once.clear()

    def added(self, event: Mapping[str, Any], reader: Reader) -> bool:
        """Handle `response.output_item.added`.

        Return False if the item has an unknown type, or is a result without an id.
        """
        item, item_id, index = self._item(event, reader)
        if item is None:
            return True
        _report_item(reader, item, ("item",), index, "added")
        if not self._added_item(item, reader, item_id, index):
            return False  # the event is emitted as unknown, which is part of the item
        reader.out.keep(ItemEnd())
        return True

    def _added_item(self, item: Mapping[str, Any], reader: Reader, item_id: str | None, index: int | None) -> bool:
        call = call_type(item)
        if call is not None:
            call_fields = read_call(item, ("item",), reader, call, item_id, index)
            open_call(self._assembler, call_fields, call)
            return True
        kind = _text_kind(item)
        if kind is not None:
            address = Address(reader.identity(item, ("item",), "id") or item_id, None, index)
            self._assembler.item_opened(0, kind, address)
            members = _members(item, ("item",), reader) if kind == "message" else {}
            self._text.open_content(item, ("item",), reader, address, members)
            return True
        if _is_result(item):
            return self._result(item, ("item",), reader, item_id, index, opens=True)
        return _is_provider_item(item)

    def result_delta(self, event: Mapping[str, Any], reader: Reader) -> bool:
        """Handle a piece of the output of a result. Return False if the event does not address an announced result."""
        address = reader.address(event)
        call_id = None if address.item_id is None else self._by_id.get(address.item_id)
        if call_id is None and address.index is not None:
            call_id = self._by_index.get(address.index)
        if call_id is None:
            return False
        members = reader.payload.members()
        output = as_object({name: raw for name, raw in members.items() if name not in _RESULT_ADDRESS})
        self._assembler.result_delta(0, call_id, output or "{}")
        return True

    def done(self, event: Mapping[str, Any], reader: Reader) -> None:
        """Handle `response.output_item.done`."""
        item, item_id, index = self._item(event, reader)
        if item is not None:
            _report_item(reader, item, ("item",), index, "done")
            self._whole_item(item, ("item",), reader, item_id, index, again=False)
            reader.out.keep(ItemEnd())

    def restate(self, output: Sequence[object], path: Path, reader: Reader) -> None:
        """Handle the terminal output, which lists every item, including items that were not streamed."""
        in_line = self._in_line(output)
        for position, item in enumerate(output):
            here = (*path, position)
            if is_object(item):
                index = position if in_line else None
                _report_item(reader, item, here, index, "output")
                self._whole_item(item, here, reader, None, index, again=True)
                reader.out.keep(ItemEnd())
            elif item is not None:
                reader.notes.shape(here)

    def _item(self, event: Mapping[str, Any], reader: Reader) -> tuple[dict[str, Any] | None, str | None, int | None]:
        item = reader.notes.an_object(event, (), "item")
        address = reader.address(event)
        known = address.index in self._types or len(self._types) < _TYPES
        if item is not None and address.index is not None and known:
            self._types[address.index] = _type_of(item)
        return item, address.item_id, address.index

    def _in_line(self, output: Sequence[object]) -> bool:
        """Return whether the terminal output has as many items as were streamed, with the same types.

        If the number and types agree, positions in the terminal output are output indexes. Some gateways omit items
        from the terminal output.
        """
        types = [_type_of(item) if is_object(item) else "" for item in output]
        return len(types) == len(self._types) and all(self._types.get(n) == name for n, name in enumerate(types))

    # Complete items

    def _whole_item(
        self,
        item: Mapping[str, Any],
        path: Path,
        reader: Reader,
        item_id: str | None,
        index: int | None,
        *,
        again: bool,
    ) -> None:
        call = call_type(item)
        self.ends_with_answer = _is_answer(item)
        if call is not None:
            call_fields = read_call(item, path, reader, call, item_id, index)
            self.ends_with_answer = self.ends_with_answer or not call_fields.provider
            self._call(item, path, reader, call, call_fields, again=again)
            return
        kind = _text_kind(item)
        if kind is not None:
            address = Address(reader.identity(item, path, "id") or item_id, None, index)
            left = self._text.close_content(item, path, reader, address, _members(item, path, reader), again=again)
            encrypted = reader.notes.a_text(item, path, "encrypted_content") or None
            self._assembler.item_closed(0, kind, address, encrypted, as_object(left))
            self._unmodelled_content(item, path, reader)
            return
        if not _is_result(item) or not self._result(item, path, reader, item_id, index, opens=False):
            self._keep(item, path, reader)

    def _call(
        self,
        item: Mapping[str, Any],
        path: Path,
        reader: Reader,
        kind: CallType,
        call: CallItem,
        *,
        again: bool,
    ) -> None:
        report = self._assembler.restate_call if again else self._assembler.call_closed
        report(
            0, call.address, call.name, call.arguments, call.provider, call.custom, call.metadata, ending=call.ending
        )
        if call.misses_arguments:
            self._assembler.call_misses_arguments(0, call.address)
        if call.ending is not CallEnding.WHOLE:
            return
        if kind.type == "image_generation_call":
            self._image(item, path, reader, call)
        elif kind.results:
            self._own_result(item, path, reader, call, kind)

    def _own_result(self, item: Mapping[str, Any], path: Path, reader: Reader, call: CallItem, kind: CallType) -> None:
        """Emit the result that a call item contains: its error if there is one, otherwise its output.

        Emit nothing if the item has neither an error nor an output.
        """
        output, error = kind.results
        failed = item.get(error) is not None
        raw = reader.payload.raw(*path, error if failed else output)
        identity = call.address.call_id
        if raw is None or raw == "null" or identity is None:
            return
        if self._is_new("result", identity, compact(raw)):
            self._assembler.result(0, identity, raw, failed, None)

    def _image(self, item: Mapping[str, Any], path: Path, reader: Reader, call: CallItem) -> None:
        """Emit a finished image as a file of the response.

        Previews (`partial_image`) are not files. Previews are emitted as metadata of the call.
        """
        result = reader.text(item, path, "result")
        if not result or not self._is_new("image", call.address.item_id or "", result):
            return
        shape = item.get("output_format")
        plain = isinstance(shape, str) and shape.isascii() and shape.isalnum()
        media_type = f"image/{shape}" if plain else "image/png"
        metadata = as_object({"item_id": reader.payload.raw(*path, "id") or "null"}) if call.address.item_id else None
        if result.startswith(("http://", "https://")):
            self._assembler.file(0, media_type, None, reader.notes.clean(result), metadata)
        else:
            self._assembler.file(0, media_type, reader.notes.clean(result), None, metadata)

    def _result(
        self,
        item: Mapping[str, Any],
        path: Path,
        reader: Reader,
        item_id: str | None,
        index: int | None,
        *,
        opens: bool,
    ) -> bool:
        """Emit the result of a tool. Return False if the item has no id that pairs the result with a call."""
        member = RESULT_MEMBERS.get(item["type"], "output")
        identity = reader.identity(item, path, "call_id")
        if identity is not None and opens:
            self._announce(_quiet_id(item) or item_id, index, identity)
        if identity is None and member == "output":
            identity = reader.identity(item, path, "id") or item_id
        if identity is None:
            return False
        raw = reader.payload.raw(*path, member)
        is_empty = item.get(member) in ((None, "", []) if opens or member == "output" else (None,))
        if raw is not None and not is_empty and self._is_new("result", identity, compact(raw)):
            failed = item.get("status") == "failed"
            metadata = as_object(reader.extra_fields(item, path, _RESULT_FIELDS | {member}))
            self._assembler.result(0, identity, raw, failed, metadata)
        return True

    def _announce(self, item_id: str | None, index: int | None, call_id: str) -> None:
        """Store the call id of a result, because pieces of its output contain only the address of its item."""
        for identity in (call_id, item_id):
            if identity is not None:
                self._assembler.check_id(identity)
        if item_id is not None and (item_id in self._by_id or len(self._by_id) < _ANNOUNCED):
            self._by_id[item_id] = call_id
        if index is not None and (index in self._by_index or len(self._by_index) < _ANNOUNCED):
            self._by_index[index] = call_id

    def _unmodelled_content(self, item: Mapping[str, Any], path: Path, reader: Reader) -> None:
        """Emit content parts of unknown type as unknown events, so that they are not lost."""
        content = item.get("content")
        if not is_array(content):
            return
        for position, part in enumerate(content):
            if is_unmodelled_part(part):
                raw = reader.payload.raw(*path, "content", position) or ""
                if self._is_new("part", "", raw):
                    self._assembler.unknown(None, raw.encode())

    def _keep(self, item: Mapping[str, Any], path: Path, reader: Reader) -> None:
        raw = reader.payload.raw(*path) or ""
        identity = item.get("id")
        item_id = replace_lone_surrogates(identity) if isinstance(identity, str) and identity else None
        if not self._is_new("item", item_id or raw, ""):
            return
        if _is_provider_item(item):
            self._assembler.provider_item(0, item["type"], raw, item_id)
        else:
            self._assembler.kept_unknown(0, _ITEM_DONE, raw.encode())

    def _is_new(self, what: str, name: str, value: str) -> bool:
        """Return whether the value has not been emitted before, because the terminal output repeats streamed values."""
        mark = hash((what, name, value))
        if mark in self._once:
            return False
        if len(self._once) < _ONCE:
            self._once.add(mark)
        return True


def _report_item(reader: Reader, item: Mapping[str, Any], path: Path, index: int | None, place: ItemPlace) -> None:
    """Report an item to the repair stage, before the events of the item."""
    if reader.out.on_unmodelled is None:
        return
    call, own = call_type(item), item.get("type")
    kind = _text_kind(item) if call is None else call.type
    if kind is None:
        kind = replace_lone_surrogates(own) if isinstance(own, str) else ""
    reader.out.keep(SentItem(place, kind, index, reader.payload.raw(*path) or "{}", reader.payload.text))


def _type_of(item: Mapping[str, Any]) -> str:
    """Return an item's type, or an empty string if the type is missing, not a string, or too long."""
    kind = item.get("type")
    return kind if isinstance(kind, str) and len(kind) <= _TYPE else ""


def _text_kind(item: Mapping[str, Any]) -> ItemKind | None:
    """Return the kind of an item that contains text, or None for any other item."""
    kind = item.get("type")
    if kind == "message":
        return "message"
    if kind == "reasoning":
        return "reasoning"
    if not isinstance(kind, str) and is_array(item.get("content")):
        return "message"
    return None


def _is_answer(item: Mapping[str, Any]) -> bool:
    """Return whether a response may end with this item.

    Other items always follow reasoning, commentary, calls that the provider runs, and lists of the provider's tools.
    """
    kind = item.get("type")
    return not isinstance(kind, str) or (kind in RESPONSE_EVENTS and item.get("phase") != "commentary")


def _is_result(item: Mapping[str, Any]) -> bool:
    kind = item.get("type")
    return isinstance(kind, str) and kind in RESULTS


def _is_provider_item(item: Mapping[str, Any]) -> bool:
    kind = item.get("type")
    return isinstance(kind, str) and kind in PROVIDER_ITEMS


def _quiet_id(item: Mapping[str, Any]) -> str | None:
    """Return the item's own id, or None if the id is absent or unusable. An unusable id is not reported."""
    value = item.get("id")
    usable = isinstance(value, str) and value.strip() and value.strip() not in ABSENT_IDS
    return replace_lone_surrogates(value) if usable and isinstance(value, str) else None


def _members(item: Mapping[str, Any], path: Path, reader: Reader) -> Raw:
    """Return the unknown members of a text item.

    Omit the statuses `in_progress` and `completed`, which the events already report.
    """
    members = reader.extra_fields(item, path, ITEM_FIELDS)
    if item.get("status") in ("in_progress", "completed"):
        members.pop("status", None)
    return members
