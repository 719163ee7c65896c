"""Checks Responses events against the requirements of official clients, so that repair can rewrite the events that
clients would misread.

openai-python and openai-node store one item at each output index and one part at each position of an item. The clients
raise an exception if an event contradicts what they have stored, if its item or part was not added before, or if the id
of an item changes. The final result of the clients is the `output` in the last event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from streamweld._pure.dialect.responses.item_content import (
    content_of,
    has_content,
    has_whole_arguments,
    is_whole_call,
)
from streamweld._pure.dialect.responses.spec_tables import ABSENT_IDS, TERMINALS, is_unmodelled_part
from streamweld._pure.json.kinds import is_array, is_object
from streamweld._pure.json.scanner import replace_lone_surrogates
from streamweld._pure.model.output import AddedItem, AddedPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streamweld._pure.model.output import Output

_MAX_ITEMS: Final = 4096  # maximum number of items to store
_MAX_AT_INDEX: Final = 16  # maximum number of additional items to store at one index
_MAX_PARTS: Final = 4096  # maximum number of content parts to store; further parts are not checked
_BY_CALL_ID: Final = ("function_call", "custom_tool_call", "shell_call", "shell_call_output")
_RESULT: Final = "_output"  # suffix of result types; a result is complete when it is added
_WITHOUT_ID: Final = ("function_call", "custom_tool_call")  # item types that do not need an id
_MESSAGE_PARTS: Final = ("output_text", "refusal")  # types of the parts of a message
_LIFECYCLE: Final = ("created", "queued", "in_progress", "completed", "failed", "incomplete")
_EVENTS: Final = frozenset(f"response.{name}" for name in _LIFECYCLE)
_RESULTS: Final = ("response.completed", "response.incomplete")
_UNDER_WAY: Final = ("response.queued", "response.in_progress")
# The type of item that each family of events addresses.
ITEM_TYPES: Final = {
    "output_text": "message",
    "output_text.annotation": "message",
    "refusal": "message",
    "reasoning_text": "reasoning",
    "reasoning_summary_part": "reasoning",
    "reasoning_summary_text": "reasoning",
    "function_call_arguments": "function_call",
    "custom_tool_call_input": "custom_tool_call",
    "mcp_call_arguments": "mcp_call",
    "code_interpreter_call_code": "code_interpreter_call",
    "mcp_call": "mcp_call",
    "mcp_list_tools": "mcp_list_tools",
    "code_interpreter_call": "code_interpreter_call",
    "file_search_call": "file_search_call",
    "web_search_call": "web_search_call",
    "image_generation_call": "image_generation_call",
}
_OTHER_NAMES: Final = ("text", "function_call.arguments")  # event families that clients expect under another name
# The type of content part that each family of events addresses.
_PART_TYPES: Final = {
    "output_text": "output_text",
    "output_text.annotation": "output_text",
    "refusal": "refusal",
    "reasoning_text": "reasoning_text",
}

# How the response was opened. `none`: the response has not been opened yet. `sent`: an event of the source opened it.
# `ours`: repair inserts an opening event.
_Opening: TypeAlias = Literal["none", "sent", "ours"]


def family_of(name: str) -> tuple[str, str]:
    """Return the two parts of an event name: what the event is about, and what happened to it."""
    family, _, verb = name.removeprefix("response.").rpartition(".")
    return family, verb


def _added(item: Mapping[str, Any]) -> AddedItem:
    content, summary = item.get("content"), item.get("summary")
    parts = [_part(part) for part in content[: _MAX_PARTS + 1]] if is_array(content) else []
    summaries = len(summary) if is_array(summary) else 0
    return AddedItem(_word(item, "type"), _word(item, "id"), _word(item, "call_id"), parts, summaries)


def _part(part: object) -> AddedPart:
    if not is_object(part):
        return AddedPart(None, 0)
    annotations = part.get("annotations")
    return AddedPart(_word(part, "type"), len(annotations) if is_array(annotations) else 0)


def _is_message_part(part: Mapping[str, Any]) -> bool:
    """Return whether clients read a part of a message correctly. Clients keep a part of unknown type unchanged in the
    list of parts, but they also do so with a text whose type is a name that only gateways use.
    """
    return part.get("type") in _MESSAGE_PARTS or is_unmodelled_part(part)


def _is_changed(known: AddedItem, item: AddedItem) -> bool:
    """Return whether clients reject `item` as the completed form of `known`."""
    ids_differ = known.id != item.id and not (known.kind in _BY_CALL_ID and known.id is None)
    return (known.kind, known.call_id) != (item.kind, item.call_id) or ids_differ


def _identity(item: AddedItem) -> tuple[str | None, str | None, str | None]:
    """Return the values that clients compare to find an item in the final output: its type, id, and call id."""
    return item.kind, None if item.kind in _BY_CALL_ID else item.id, item.call_id


def _names(item: AddedItem) -> Iterable[tuple[str | None, str]]:
    """Return the keys by which clients find the item. Each of these keys must be unique."""
    if item.id:
        yield None, item.id
    if item.kind in _BY_CALL_ID and item.call_id:
        yield item.kind, item.call_id


class Readers:
    """The output items that clients store for one response."""

    __slots__ = ("_id", "_is_ambiguous", "_items", "_names", "_opening", "_out", "_parts")

    def __init__(self, out: Output) -> None:
        self._out = out
        self._opening: _Opening = "none"
        self._id: str | None = None
        self._items = out.added
        self._names: dict[tuple[str | None, str], int] = {}  # index of each item, by its keys
        self._parts = 0  # number of content parts in all items
        self._is_ambiguous = False  # two items have the same index or key

    def event(self, kind: str, event: Mapping[str, Any]) -> None:
        """Mark the event as misread if official clients would interpret it incorrectly, and store the values that these
        clients store.
        """
        if not _word(event, "type"):
            self._out.mark_misread("other_member")  # clients do not read the name of the event
        if self._opening == "none":
            self._begin(kind, event)
        if kind in _EVENTS:
            self._lifecycle(kind, event)
        elif kind == "response.done":
            self._out.mark_misread("end_name")
        elif kind == "response.output_item.added":
            self._added(event)
        elif kind == "response.output_item.done":
            self._item_done(event)
        else:
            family, verb = family_of(kind)
            if family == "content_part":
                self._content_part(verb, event)
            elif family in ITEM_TYPES:
                self._of_item(family, verb, event)
            elif family in _OTHER_NAMES:
                self._out.mark_misread("other_name")

    def _begin(self, kind: str, event: Mapping[str, Any]) -> None:
        """Check the first event. Clients require `response.created` before any other event."""
        self._opening = "sent"
        if kind in TERMINALS:
            self._out.mark_misread("start_missing")  # the terminal event contains content that was not streamed
        elif kind != "response.created":
            self._opening = "ours"
            self._out.miss_opening()
            response = event.get("response") if kind in _UNDER_WAY else None
            identity = _word(response, "id") if is_object(response) else None
            if identity is not None and identity.strip() and identity.strip() not in ABSENT_IDS:
                self._id = identity  # the inserted opening event uses this id

    def _lifecycle(self, kind: str, event: Mapping[str, Any]) -> None:
        response = event.get("response")
        if not is_object(response):
            self._out.mark_misread("other_member")
            return
        identity = _word(response, "id")
        if kind == "response.created" and self._opening == "sent":
            self._id = identity
            self._out.created = (identity,)
        elif identity != self._id or (identity is None and self._opening == "ours"):
            self._out.mark_misread("other_id")
        output = response.get("output")
        if kind in _RESULTS:
            self._check_status(kind, response)
            items = [item for item in output if is_object(item)] if is_array(output) else None
            self._compare(items)
            if kind == "response.completed":
                self._completed((items or [])[:_MAX_ITEMS])

    def _check_status(self, kind: str, response: Mapping[str, Any]) -> None:
        """Check the status of the final response. openai-python and openai-node return it. If an incomplete response
        has no reason, the AI SDK reads it as complete.
        """
        status = response.get("status")
        if kind == "response.completed":
            if status != "completed":
                self._out.mark_misread("other_status")
        elif status != "completed":
            details = response.get("incomplete_details")
            reason = details.get("reason") if is_object(details) else None
            if not (isinstance(reason, str) and reason.strip()):
                self._out.mark_misread("other_status")

    def _compare(self, output: Sequence[Mapping[str, Any]] | None) -> None:
        """Compare the final output with the completed items. openai-python and openai-node return the final output,
        and the AI SDK reads only items that were streamed.
        """
        if output is None or self._is_ambiguous or len(self._items) >= _MAX_ITEMS:
            return
        if not output and self._items:
            self._out.mark_misread("empty_output")
            return
        listed = [content for item in output if (content := content_of(item)) is not None]
        left = (hash(content) for content in listed)
        streamed = [item.content for _, item in sorted(self._items.items()) if item.content is not None]
        may_have_content = [item for item in self._items.values() if item.content is not None or not item.is_done]
        most = sum([has_content(item.kind) for item in may_have_content])
        if not all(content in left for content in streamed) or sum([has_content(kind) for kind, *_ in listed]) > most:
            self._out.mark_misread("other_output")

    def _completed(self, output: Iterable[Mapping[str, Any]]) -> None:
        """Check the final output. Clients require that the final output contain every item that has not been completed
        before.
        """
        final: dict[tuple[str | None, str | None, str | None], str | None] = {}
        for sent in output:
            self._check_whole(sent)
            if not is_whole_call(sent) and has_whole_arguments(sent):
                self._out.mark_misread("other_status")
            added = _added(sent)
            final[_identity(added)] = added.id
        for item in self._items.values():
            if item.is_done or (item.kind or "").endswith(_RESULT):
                continue
            identity = _identity(item)
            # The AI SDK runs a call of the client only when its item is completed.
            if item.kind in _WITHOUT_ID or identity not in final or final[identity] != item.id:
                self._out.mark_misread("not_closed")

    def _check_whole(self, item: Mapping[str, Any]) -> None:
        """Check the members of a completed item that clients use without validation."""
        kind = item.get("type")
        if kind == "function_call":
            if not _word(item, "name"):
                self._out.mark_misread("no_name")
            self._check_arguments(item)
        elif kind == "message":
            content = item.get("content")
            if not is_array(content):
                self._out.mark_misread("no_text")
            elif not all(is_object(part) and _is_message_part(part) for part in content):
                self._out.mark_misread("other_kind")

    def _check_arguments(self, call: Mapping[str, Any]) -> None:
        arguments = call.get("arguments")
        if not isinstance(arguments, str):
            self._out.mark_misread("no_arguments" if arguments is None else "args_object")

    def _added(self, event: Mapping[str, Any]) -> None:
        item, index = event.get("item"), _index(event, "output_index")
        if not is_object(item):
            return
        if index is None:
            self._out.mark_misread("no_index")
            return
        if item.get("type") == "function_call":
            self._check_arguments(item)
        elif item.get("type") == "message" and not is_array(item.get("content")):
            self._out.mark_misread("no_text")  # clients add parts to the list
        known, added = self._items.get(index), _added(item)
        if known is None:
            self._keep(index, added)
            return
        self._out.mark_misread("index_taken")
        self._is_ambiguous = True
        if _is_changed(known, added) and known.before < _MAX_AT_INDEX:
            added.before, added.earlier = known.before + 1, known
            self._items[index] = added

    def _keep(self, index: int, item: AddedItem) -> None:
        """Store a new item. Mark the event as misread if the item has no id, or if its id is that of another item."""
        if len(self._items) >= _MAX_ITEMS:
            return
        self._items[index] = item
        self._parts += len(item.parts)
        if not item.id and (item.id is not None or item.kind not in _WITHOUT_ID):
            self._out.mark_misread("no_id")
        for name in _names(item):
            if self._names.setdefault(name, index) != index:
                self._out.mark_misread("id_taken")
                self._is_ambiguous = True

    def _item_done(self, event: Mapping[str, Any]) -> None:
        item, index = event.get("item"), _index(event, "output_index")
        if not is_object(item):
            return
        if index is None:
            self._out.mark_misread("no_index")
            return
        self._check_whole(item)
        known, done = self._items.get(index), _added(item)
        content = content_of(item)
        done.is_done, done.content = True, None if content is None else hash(content)
        if known is None:
            if len(self._items) < _MAX_ITEMS:
                self._out.mark_misread("not_opened")
            self._keep(index, done)
        elif _is_changed(known, done):
            self._out.mark_misread("other_id")
        else:
            done.before, done.earlier = known.before, known.earlier
            self._items[index] = done
            self._parts += len(done.parts) - len(known.parts)
        if self._out.on_item is not None:
            self._out.on_item(index, item)

    def _item(self, event: Mapping[str, Any], kind: str) -> AddedItem | None:
        """Return the item that an event addresses.

        If clients cannot find the item, mark the event as misread and return None.
        """
        index = _index(event, "output_index")
        item = None if index is None else self._items.get(index)
        if item is None:
            if len(self._items) < _MAX_ITEMS:
                self._out.mark_misread("no_index" if index is None else "not_opened")
            return None
        identity = _word(event, "item_id")
        if item.kind != kind:
            self._out.mark_misread("other_kind")
        elif not identity:
            self._out.mark_misread("no_id")
        elif identity != item.id:
            self._out.mark_misread("other_id")
        else:
            return item
        return None

    def _content_part(self, verb: str, event: Mapping[str, Any]) -> None:
        part = event.get("part")
        if not is_object(part) or verb not in ("added", "done"):
            return
        index = _index(event, "output_index")
        known = self._items.get(index) if index is not None and is_unmodelled_part(part) else None
        is_reasoning = part.get("type") == "reasoning_text" or (known is not None and known.kind == "reasoning")
        item = self._item(event, "reasoning" if is_reasoning else "message")
        if item is None:
            return
        if item.kind == "message" and not _is_message_part(part):
            self._out.mark_misread("other_kind")
        adds = verb == "added"
        position = self._position(event, "content_index", len(item.parts), adds=adds)
        if position is not None and self._parts <= _MAX_PARTS:
            item.parts[position : position + 1] = [_part(part)]
            self._parts += adds

    def _of_item(self, family: str, verb: str, event: Mapping[str, Any]) -> None:
        item = self._item(event, ITEM_TYPES[family])
        if item is None:
            return
        if family in _PART_TYPES:
            self._of_part(item, family, event)
        elif family.startswith("reasoning_summary"):
            adds = verb == "added"
            if self._position(event, "summary_index", item.summaries, adds=adds) is not None:
                item.summaries += adds
        if verb == "delta" and not isinstance(event.get("delta"), str):
            self._out.mark_misread("no_text")

    def _of_part(self, item: AddedItem, family: str, event: Mapping[str, Any]) -> None:
        position = self._position(event, "content_index", len(item.parts))
        if position is None or self._parts > _MAX_PARTS:
            return
        part = item.parts[position]
        if part.kind != _PART_TYPES[family]:
            self._out.mark_misread("other_kind")
        elif family == "output_text.annotation":
            adds = event.get("annotation_index") == part.annotations
            if self._position(event, "annotation_index", part.annotations, adds=adds) is not None:
                part.annotations += adds

    def _position(self, event: Mapping[str, Any], key: str, count: int, *, adds: bool = False) -> int | None:
        """Return the position that an event addresses among `count` parts, or None if the position is wrong.

        An event that adds a part must address the next position.
        """
        position = _index(event, key)
        if position is None:
            self._out.mark_misread("no_index")
        elif self._parts > _MAX_PARTS:
            return position
        elif adds and position != count:
            self._out.mark_misread("index_taken" if position < count else "other_index")
        elif not adds and position >= count:
            self._out.mark_misread("not_opened")
        else:
            return position
        return None


def _index(holder: Mapping[str, Any], key: str) -> int | None:
    value = holder.get(key)
    return value if type(value) is int and 0 <= value < 2**63 else None


def _word(holder: Mapping[str, Any], key: str) -> str | None:
    value = holder.get(key)
    return replace_lone_surrogates(value) if isinstance(value, str) else None
