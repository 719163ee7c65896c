"""Rules for output items in a Responses stream: how they are added, filled, finished, and listed at the end."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld.check.lifecycle import Json, Lifecycle, Text, array, count, digest, missing, object_, string
from streamweld.check.violation import facts

__all__ = ["Items"]

# For each kind of delta: the name of the part's index member, the part type, and the text member of the closing event.
_CHANNELS: Final = {
    "output_text": ("content_index", "output_text", "text"),
    "refusal": ("content_index", "refusal", "refusal"),
    "reasoning": ("content_index", "reasoning_text", "text"),
    "reasoning_text": ("content_index", "reasoning_text", "text"),
    "reasoning_summary_text": ("summary_index", "summary_text", "text"),
    "function_call_arguments": ("", "function_call", "arguments"),
    "custom_tool_call_input": ("", "custom_tool_call", "input"),
    "mcp_call_arguments": ("", "mcp_call", "arguments"),
    "code_interpreter_call_code": ("", "code_interpreter_call", "code"),
}
_PARTS: Final = {"content_part": "content_index", "reasoning_summary_part": "summary_index"}

if TYPE_CHECKING:
    _Key = tuple[str, int]


class _Part:
    """The streamed text of a content part, a summary part, or a call's arguments."""

    __slots__ = ("closed", "done", "kind", "text")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.text = Text()
        self.done: bytes | None = None  # digest of the text in the part's closing event
        self.closed = False


class _Item:
    __slots__ = ("call_id", "counts", "digests", "done", "id", "index", "kind", "parts", "status")

    def __init__(self, index: int, kind: str, identifier: str | None, call_id: str | None) -> None:
        self.index = index
        self.kind = kind
        self.id = identifier
        self.call_id = call_id
        self.parts: dict[_Key, _Part] = {}
        self.counts: Counter[str] = Counter()  # number of parts per index member
        self.done = False
        self.status: str | None = None
        self.digests: dict[str, bytes] = {}  # digests of the members of the item in its done event

    def put(self, key: _Key, part: _Part) -> None:
        if key not in self.parts:
            self.counts[key[0]] += 1
        self.parts[key] = part


class Items:
    """All items of one response. Violations are added to the report of the response's lifecycle."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._record = lifecycle.record
        self._remember = lifecycle.remember
        self._forget = lifecycle.forget
        self._facts = facts("responses")
        self._items: dict[int, _Item] = {}  # items by output index
        self._ids: dict[str, _Item] = {}
        self._call_ids: dict[str, _Item] = {}
        self._incomplete: _Item | None = None
        self._next = 0  # the output index that the next item should have

    def event(self, kind: str, value: dict[str, Any]) -> None:
        """Check an event that belongs to an item rather than to the response."""
        _, _, rest = kind.partition("response.")
        family, _, step = rest.rpartition(".")
        if family == "output_item":
            if step == "added":
                self._added(value)
            elif step == "done":
                self._item_done(value)
        elif "item_id" in value or "output_index" in value:
            item = self._named(kind, value)
            if item is None:
                return
            if item.done:
                self._record("after_item_done", f"{kind}, {_label(item)}")
            elif family in _PARTS:
                self._part(kind, family, step, item, value)
            elif family in _CHANNELS and step in ("delta", "done"):
                self._text(kind, family, step, item, value)

    # Item events

    def _added(self, value: dict[str, Any]) -> None:
        body = object_(value, "item") or {}
        kind = string(body, "type") or ""
        identifier, call_id = string(body, "id"), string(body, "call_id")
        given = count(value, "output_index")
        if given is not None and given in self._items:
            self._record("output_index_repeated", f"{given}: {identifier} after {self._items[given].id}")
        elif given is not None and given != len(self._items):
            self._record("output_index_order", f"{given}, but the next index is {len(self._items)}")
        index = self._next if given is None else given
        self._next = max(self._next, index + 1)
        wanted = self._facts["items"].get(kind, ("type", "id"))
        empty = ("id", "call_id", "name")  # members for which an empty value is not valid
        lacking = missing({name: member for name, member in body.items() if member or name not in empty}, wanted)
        if lacking:
            self._record("item_fields", f"{kind or 'item'}: {lacking}")
        if kind not in self._facts["item_types"] and ":" not in kind:
            self._record("item_unlisted", kind or repr(body.get("type")))
        if self._incomplete is not None:
            self._record("incomplete_not_last", f"{_label(self._incomplete)}, then output[{index}]")
        item = _Item(index, kind, identifier, call_id)
        if identifier in self._ids:
            self._record("added_repeated", identifier)
        elif identifier:
            self._ids[identifier] = item
        if call_id and kind in self._facts["calls"]:
            other = self._call_ids.setdefault(call_id, item)
            if other.id != identifier:
                self._record("call_id_repeated", f"{call_id}: items {other.id} and {identifier}")
        if body.get("arguments") and kind == "function_call":
            self._record("arguments_in_added", f"{identifier}: {len(str(body['arguments']))} characters")
        self._items[index] = item
        self._remember(identifier, call_id)

    def _named(self, kind: str, value: dict[str, Any]) -> _Item | None:
        """Return the item that an event refers to by its output index, and check that `item_id` matches."""
        index = count(value, "output_index")
        identifier = string(value, "item_id")
        by_index = None if index is None else self._items.get(index)
        by_id = None if identifier is None else self._ids.get(identifier)
        found = by_index or by_id
        if found is None:
            if identifier in self._call_ids:
                self._record("item_id_is_call_id", f"{kind}: {identifier}")
                return self._call_ids[identifier]
            self._record("item_unknown", f"{kind}: output_index {value.get('output_index')!r}, item_id {identifier!r}")
        elif identifier is not None and found.id is not None and identifier != found.id:
            if identifier == found.call_id or identifier in self._call_ids:
                self._record("item_id_is_call_id", f"{kind}: {identifier}, {_label(found)}")
            else:
                self._record("item_id_differs", f"{kind}: {identifier}, {_label(found)}")
        return found

    def _item_done(self, value: dict[str, Any]) -> None:
        body = object_(value, "item") or {}
        identifier = string(body, "id")
        index = count(value, "output_index")
        item = (None if index is None else self._items.get(index)) or (
            self._ids.get(identifier) if identifier else None
        )
        if item is None:
            self._record("item_unknown", f"response.output_item.done: output_index {index!r}, id {identifier!r}")
            return
        if item.done:
            self._record("item_done_repeated", _label(item))
            return
        item.done = True
        if identifier is not None and item.id is not None and identifier != item.id:
            rule = "item_id_is_call_id" if identifier == item.call_id else "item_id_differs"
            self._record(rule, f"response.output_item.done: {identifier}, {_label(item)}")
        kind = string(body, "type")
        call_id = string(body, "call_id")
        if (kind is not None and kind != item.kind) or (call_id and item.call_id and call_id != item.call_id):
            self._record("item_changes", f"{item.kind} {item.call_id or ''} into {kind} {call_id or ''}")
        item.status = string(body, "status")
        if item.status is None and item.kind in self._facts["calls"]:
            self._record("done_status_missing", _label(item))
        if item.status == "incomplete":
            self._incomplete = item
        elif item.status == "in_progress":
            self._record("done_in_progress", _label(item))
        self._close_parts(item, body)
        arguments = string(body, "arguments")
        if kind == "function_call" and arguments is not None and item.status in (None, "completed"):
            text = Json()
            text.add(arguments)
            if text.fault():
                self._record("arguments_not_object", f"{_label(item)}: {text.fault()}")
        item.digests = {name: digest(member) for name, member in body.items()}
        for _ in item.parts:
            self._forget()
        item.parts.clear()
        item.counts.clear()

    def _close_parts(self, item: _Item, body: dict[str, Any]) -> None:
        for (name, number), part in item.parts.items():
            where = f"{_label(item)}, {name} {number}" if name else _label(item)
            if part.done is None and item.status != "incomplete":
                self._record("text_done_missing", f"{where}, {part.kind}")
            if name and not part.closed:
                self._record("part_done_missing", where)
            whole = self._whole(name, number, part, body)
            if whole is not None and part.done is not None and digest(whole) != part.done:
                self._record("item_done_differs", where)

    def _whole(self, name: str, number: int, part: _Part, body: dict[str, Any]) -> str | None:
        """Return the text of a part as repeated in the done item."""
        if not name:
            member = next((member for _, kind, member in _CHANNELS.values() if kind == part.kind), "")
            return string(body, member)
        parts = array(body, "content" if name == "content_index" else "summary") or []
        if number >= len(parts) or not isinstance(parts[number], dict):
            return None
        inner = cast("dict[str, Any]", parts[number])
        found = string(inner, "text")
        return string(inner, "refusal") if found is None else found

    # Events of parts and their texts

    def _part(self, kind: str, family: str, step: str, item: _Item, value: dict[str, Any]) -> None:
        name = _PARTS[family]
        key = (name, count(value, name) or 0)
        body = object_(value, "part") or {}
        part = item.parts.get(key)
        if step == "added":
            if part is not None:
                self._record("part_repeated", f"{_label(item)}, {name} {key[1]}")
            else:
                self._remember()
                if key[1] != item.counts[name]:
                    self._record("part_order", f"{_label(item)}, {name} {key[1]}")
            item.put(key, _Part(string(body, "type") or ""))
        elif step == "done":
            if part is None:
                self._record("part_unknown", f"{kind}, {_label(item)}, {name} {key[1]}")
                return
            if part.closed:
                self._record("part_repeated", f"{kind}, {_label(item)}, {name} {key[1]}")
            part.closed = True
            text = string(body, "text") if "text" in body else string(body, "refusal")
            if part.done is None:
                # Mark the part as closed, so that the end of the item does not report it again.
                self._record("text_done_missing", f"{_label(item)}, {name} {key[1]}, {part.kind}")
                part.done = digest(text or "")
            elif text is not None and digest(text) != part.done:
                self._record("part_done_differs", f"{_label(item)}, {name} {key[1]}")

    def _text(self, kind: str, family: str, step: str, item: _Item, value: dict[str, Any]) -> None:
        name, wanted, member = _CHANNELS[family]
        key = (name, (count(value, name) or 0) if name else 0)
        part = item.parts.get(key)
        if part is None:
            if name:
                self._record("part_unknown", f"{kind}, {_label(item)}, {name} {key[1]}")
            elif item.kind != wanted:
                self._record("part_type", f"{kind}, {_label(item)}")
            self._remember()
            part = _Part(wanted)
            item.put(key, part)
            part.closed = bool(name)  # a part that was never opened needs no closing event
        elif part.kind != wanted and not (wanted == "reasoning_text" and part.kind in ("text", "summary_text")):
            self._record("part_type", f"{kind}, {_label(item)}, a part of type {part.kind}")
        if part.done is not None:
            self._record("delta_after_done" if step == "delta" else "text_done_repeated", f"{kind}, {_label(item)}")
            return
        if step == "delta":
            part.text.add(string(value, "delta") or "")
            return
        whole = string(value, member)
        part.done = digest(whole or "")
        if whole is None:
            return
        if part.text.pieces == 0 and whole:
            self._record("delta_missing", f"{kind}, {_label(item)}")
        elif not part.text.is_(whole):
            self._record("done_differs", f"{kind}, {_label(item)}: {part.text.length} and {len(whole)} characters")

    # End of the response

    def unfinished(self) -> None:
        """Report the items that have not ended when the response ends."""
        for _, item in sorted(self._items.items()):
            if not item.done:
                self._record("item_done_missing", _label(item))

    def compare(self, kind: str, output: list[object] | None) -> None:
        """Compare the items with the output of the terminal response."""
        if self._incomplete is not None and kind == "response.completed":
            self._record("incomplete_status", _label(self._incomplete))
        if output is None or not self._items:
            return
        if not output:
            self._record("output_empty", f"{len(self._items)} items were streamed")
            return
        if len(output) != len(self._items):
            self._record("output_count", f"{len(output)} in the response, {len(self._items)} streamed")
            return
        for (_, item), final in zip(sorted(self._items.items()), output, strict=True):
            if not isinstance(final, dict) or not item.done:
                continue
            body = cast("dict[str, Any]", final)
            names = [name for name in sorted(item.digests.keys() | body.keys()) if _differs(item, body, name)]
            for rule, of_rule in (("output_opaque_differs", True), ("output_differs", False)):
                present = [name for name in names if (name in self._facts["opaque"]) is of_rule]
                if present:
                    self._record(rule, f"{_label(item)}: {', '.join(present)}")


def _differs(item: _Item, body: dict[str, Any], name: str) -> bool:
    if name not in body or name not in item.digests:
        other = body.get(name) if name in body else None
        return name in item.digests or other is not None  # a member that is null counts as absent
    return digest(body[name]) != item.digests[name]


def _label(item: _Item) -> str:
    return f"output[{item.index}] {item.kind} {item.id or 'without an id'}"
