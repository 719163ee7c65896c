"""Decodes the content blocks of a Messages stream: the opening event, the deltas, and the closing event of each block.

The index of a block is its address, even if a gateway misuses indexes. If an index is ambiguous, the assembler
determines which block a delta belongs to.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.anthropic.fields import (
    BLOCK_FIELDS,
    CALL_DELTA_FIELDS,
    CLIENTS,
    DELTA_FIELDS,
    PROVIDER_ITEMS,
    RESULT_FIELDS,
    a_name,
    an_id,
    arguments,
    block_type,
    delta_type,
    is_error,
    type_of,
)
from streamweld._pure.dialect.unread_arguments import may_hold_arguments
from streamweld._pure.json.kinds import integer, is_array, is_object
from streamweld._pure.json.members import Raw, as_object, leftovers
from streamweld._pure.model.delta import Address
from streamweld._pure.model.unmodelled import BlockClosed, BlockDelta, BlockMembers, BlockOpened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.assemble.part.text import Channel
    from streamweld._pure.dialect.anomalies import Anomalies
    from streamweld._pure.json.scanner import Path, Payload
    from streamweld._pure.model.delta import ItemKind
    from streamweld._pure.model.output import Output
    from streamweld.events import ReasoningKind

_INDEX_HEAD = 64  # an unusable index is reported with at most this many characters
_RESULTS = frozenset({"text", "tool_use"})
# The kind of content that each type of block and delta has.
_BRINGS = {
    "text": "text",
    "thinking": "thinking",
    "redacted_thinking": "thinking",
    "tool_use": "input",
    "server_tool_use": "input",
    "mcp_tool_use": "input",
}
_OWN = {
    "text_delta": "text",
    "citations_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "input",
    "tool_use": "input",
    "server_tool_use": "input",
    "mcp_tool_use": "input",
}
_TEXT_KINDS = ("text", "thinking")  # kinds of blocks whose deltas contain text
_CALL_DELTAS = frozenset({"input_json_delta", "tool_use", "server_tool_use", "mcp_tool_use"})
_CALL_HEADS = ("id", "tool_use_id", "name")
# Members of a block or a delta that may contain the arguments of a call. Of these members, clients read only
# `partial_json`, and only in a delta.
_CALL_TEXTS = ("partial_json", "input", "arguments", "args", "parameters", "text", "json")
_CALL_MEMBERS = (*_CALL_HEADS, *_CALL_TEXTS)
_TEXT_ELSEWHERE = ("content",)  # members in which gateways send the text of a delta
_THINKING_ELSEWHERE = ("text", "reasoning", "reasoning_content", "content")  # members in which gateways send reasoning
# Undocumented members in which gateways send the content of a block.
_ELSEWHERE = {
    "thinking": _THINKING_ELSEWHERE,
    "tool_use": _CALL_TEXTS,
    "server_tool_use": _CALL_TEXTS,
    "mcp_tool_use": _CALL_TEXTS,
}
_INDEX_CAP = 2**32 - 1  # maximum index if the limit is disabled


@dataclass(slots=True, frozen=True)
class Block:
    """A block, or a delta of a block, in a payload."""

    payload: Payload
    value: Mapping[str, Any]
    path: Path
    notes: Anomalies
    event: str | None  # name of the event that contained the block
    extra: Raw  # unknown members of the event that contained the block

    def raw(self, key: str) -> str | None:
        """Return the JSON of a member, or None if the member is absent."""
        return self.payload.raw(*self.path, key)

    @property
    def json(self) -> str:
        """The JSON of the block or delta."""
        return self.payload.raw(*self.path) or "null"

    def text(self, key: str) -> str:
        return self.notes.a_text(self.value, self.path, key)

    def metadata(self, modelled: frozenset[str]) -> str | None:
        """Return the unknown members of the block and of its event as metadata."""
        return as_object(self.extra | leftovers(self.payload, self.path, self.value, modelled))


@dataclass(slots=True)
class CallHead:
    """The latest call, with the values that identify its deltas."""

    index: int | None
    id: str | None
    name: str | None
    is_loose: bool = False  # opened by a delta, not by a block
    is_whole: bool = False  # arguments have arrived as an object instead of text

    @property
    def address(self) -> Address:
        """The address of the call.

        A call that a delta opened is addressed by its id, because another block may have the same index.
        """
        return Address(call_id=self.id) if self.is_loose else Address(index=self.index)

    def takes(self, index: int | None, identity: str | None, name: str | None, *, whole: bool) -> bool:
        """Return whether a delta with these members continues the call.

        If both ids are known, they must be equal. Otherwise, the index and the name must not differ. `whole`: whether
        the delta contains complete arguments. Two complete deltas that have a name but no id are two calls.
        """
        if identity is not None and self.id is not None:
            return identity == self.id
        if index != self.index or (name is not None and self.name is not None and name != self.name):
            return False
        return identity is not None or name is None or not (whole and self.is_whole)


class BlockReader:
    """Decodes the blocks of one message."""

    __slots__ = (
        "_assembler",
        "_fresh",
        "_used_before_start",
        "_given",
        "_head",
        "_held",
        "_kept",
        "_kept_event",
        "_last",
        "_last_kind",
        "_max_index",
        "_open",
        "_out",
        "_restated",
        "_open_index",
        "_open_kind",
    )

    def __init__(self, assembler: Assembler, out: Output, max_index: int | None) -> None:
        self._assembler = assembler
        self._out = out
        self._max_index = _INDEX_CAP if max_index is None else max_index
        self.begin()

    def begin(self) -> None:
        """Reset the state when a message starts or restarts."""
        self._open: set[int] = set()  # indexes of the open blocks that have a part
        self._open_index: int | None = None  # index of the latest block, of any type; None once it is closed
        self._open_kind = ""  # kind of content that the deltas of the latest block must have
        self._last: int | None = None  # index of the block that was opened last
        self._last_kind = "text"  # type of the block that was opened last
        self._used_before_start = 0  # one more than the highest index before a late `message_start`
        self._fresh = 0  # one more than the highest index of any opened block
        self._held: list[Block] = []  # blocks that `message_start` contained
        self._given = 0  # number of held blocks that have been emitted or skipped
        self._restated: set[int] = set()  # positions of held blocks that were also streamed
        self._kept: Raw | None = None  # members of a `compaction` block that is still receiving deltas
        self._kept_event: str | None = None
        self._head: CallHead | None = None  # the latest call

    @property
    def ends_with_answer(self) -> bool:
        """Whether the latest block can end a turn, because it is text or a call that the client runs."""
        return self._last_kind in _RESULTS

    def start_late(self) -> None:
        """Handle a `message_start` that arrives after blocks. The message is repeated from its beginning if a block
        starts at an index that is in use already.
        """
        self._used_before_start = self._fresh

    def repeat(self) -> None:
        """Handle a repeated message. The blocks of the message may arrive again, including the open blocks."""
        self._open_index = None

    # The index

    def index(self, payload: Payload, value: Mapping[str, Any]) -> int | None:
        """Return the index in an event, or None if the index is absent or unusable. An unusable index is reported."""
        sent = value.get("index")
        if sent is None:
            return None
        number = integer(sent)
        if number is not None and 0 <= number <= self._max_index:
            if not isinstance(sent, int):
                self._out.mark_misread("other_index")  # clients compare the index as it is written
            return number
        self._out.diagnose("index_unusable", detail=(payload.raw("index") or "")[:_INDEX_HEAD])
        return None

    # Opening events, deltas, and closing events

    def hold(self, blocks: list[Block]) -> None:
        """Hold back the blocks that `message_start` contained.

        A held block is emitted unless a `content_block_start` has the same index, whether this event arrives before or
        after the block is held back.
        """
        self._held = blocks
        self._restated.update(range(min(self._fresh, len(blocks))))

    def start(self, block: Block, index: int | None) -> None:
        """Handle `content_block_start`. A block without an index gets the next free index."""
        if index is None:
            self._out.diagnose("index_missing")
            index = self._fresh
        if index < self._used_before_start:
            self._used_before_start = 0
            self.repeat()
            self._assembler.message_repeated(0)
        if self._given < len(self._held):
            self._emit_held(index)
            if self._given <= index < len(self._held) and index not in self._restated:
                self._restated.add(index)
                self._out.diagnose("content_restated")
        self._left_open("block_open")  # clients close the latest block at the next stop event
        if index != self._fresh:
            self._out.mark_misread("other_index")  # clients append blocks to a list and find them by their index
        if _begins_with_content(block.value):
            self._out.mark_misread("whole_at_start")  # clients read only deltas
        kind = block_type(block.value)
        if kind != type_of(block.value):
            self._out.mark_misread("other_kind")  # clients ignore the content of a block without a type, or raise
        if not CLIENTS.suit(kind, block.value):
            self._out.leave_out("member_type")
        self._open_index = index
        self._open_kind = _BRINGS.get(kind, "")
        self._start(block, index)

    def _emit_held(self, below: int | None, *, stays_open: int | None = None) -> None:
        """Emit the held blocks with an index less than `below`, or all held blocks if `below` is None.

        Each block is closed immediately, except the block at `stays_open`, to which a delta belongs.
        """
        end = len(self._held) if below is None else min(below, len(self._held))
        while self._given < end:
            index = self._given
            self._given = index + 1
            if index not in self._restated:
                self._start(self._held[index], index)
                if index != stays_open:
                    self._stop(index, {})

    def _start(self, block: Block, index: int) -> None:
        self.emit_compaction()
        self._last = index
        self._fresh = max(self._fresh, index + 1)
        address = Address(index=index)
        kind = self._last_kind = block_type(block.value)
        if kind in BLOCK_FIELDS:
            modelled = BLOCK_FIELDS[kind].union(_ELSEWHERE.get(kind, ()))
            members = leftovers(block.payload, block.path, block.value, modelled)
            self._out.keep(BlockMembers(index, members))
        match kind:
            case "text":
                self._open.add(index)
                self._text(block, address)
            case "thinking" | "redacted_thinking":
                self._open.add(index)
                self._thinking(block, address, "thinking" if kind == "thinking" else "redacted")
            case "tool_use" | "server_tool_use" | "mcp_tool_use":
                self._open.add(index)
                self._call(block, index, BLOCK_FIELDS[kind], provider_executed=kind != "tool_use")
            case _:
                if index in self._open:
                    # Another block with the same index is still open, and the new block closes that block.
                    self._open.discard(index)
                    self._assembler.item_closed(0, None, address, None, None)
                self._out.announce(index)
                self._out.keep(BlockOpened(index, self._other(block, kind)))

    def _text(self, block: Block, address: Address) -> None:
        assembler = self._assembler
        text = block.text("text")
        metadata = block.metadata(BLOCK_FIELDS["text"])
        assembler.part_opened(0, "message", address, "text", "raw", text or None, metadata)
        citations = block.value.get("citations")
        if is_array(citations):
            if citations:
                assembler.part_attributes(0, "message", address, "text", block.raw("citations"), None, None, None)
        elif citations is not None:
            block.notes.shape((*block.path, "citations"))

    def _thinking(self, block: Block, address: Address, kind: ReasoningKind) -> None:
        assembler, notes = self._assembler, block.notes
        if kind == "thinking":
            text, metadata = self._thought(block, BLOCK_FIELDS["thinking"])
            signature, data = notes.clean(block.text("signature")), ""
        else:
            text, signature, data = "", "", notes.clean(block.text("data"))
            metadata = block.metadata(BLOCK_FIELDS["redacted_thinking"])
        assembler.part_opened(0, "reasoning", address, "reasoning", kind, text or None, metadata)
        if signature or data:
            assembler.part_attributes(0, "reasoning", address, "reasoning", None, signature or None, data or None, None)

    def _call(self, block: Block, index: int, modelled: frozenset[str], *, provider_executed: bool) -> None:
        payload, value, path, notes = block.payload, block.value, block.path, block.notes
        address = Address(call_id=an_id(payload, value, path, "id", notes), index=index)
        name = a_name(value, path, notes)
        self._head = CallHead(index, address.call_id, name)
        member, text = _input_of(block)
        if member != "input":
            self._out.mark_misread("other_member")  # clients look only for the `input` member
        self._assembler.call_opened(
            0,
            address,
            name,
            text,
            provider_executed,
            False,
            block.metadata(modelled | {member}),
        )
        has_input = _has_any(value, _CALL_TEXTS)
        if not has_input and may_hold_arguments(value, modelled.union(_CALL_MEMBERS)):
            self._assembler.call_misses_arguments(0, Address(index=index))

    def _other(self, block: Block, kind: str) -> str:
        """Emit a tool result, or emit a block of another type as a kept item.

        A `compaction` block is emitted later, when it is complete. Return the JSON of the block. In a tool result, the
        id is replaced by the final id of the call.
        """
        payload, value, path = block.payload, block.value, block.path
        call_id = an_id(payload, value, path, "tool_use_id", block.notes) if kind.endswith("tool_result") else None
        if call_id is not None:
            output = payload.raw(*path, "content") or "null"
            self._assembler.result(0, call_id, output, is_error(value), block.metadata(RESULT_FIELDS))
            renamed = self._assembler.id_of_result(0, call_id)
            if renamed != call_id:
                return as_object(payload.members(*path) | {"tool_use_id": json.dumps(renamed)}) or "{}"
        elif kind == "compaction":
            # The content of a `compaction` block arrives in deltas. The client must send the block back in a later
            # turn.
            self._kept, self._kept_event = payload.members(*path), block.event
        else:
            self._keep(kind, block.event, block.json)
        return block.json

    def _keep(self, kind: str, event: str | None, block: str) -> None:
        """Emit a block that the client must send back unchanged in a later turn."""
        if kind in PROVIDER_ITEMS:
            self._assembler.provider_item(0, kind, block, None)
        else:
            self._assembler.kept_unknown(0, event, block.encode())

    def delta(self, block: Block, index: int | None, *, recovered: bool) -> bool:
        """Handle `content_block_delta`. Return False if the type of the delta is unknown."""
        kind = delta_type(block.value)
        if kind not in DELTA_FIELDS and not (kind in _CALL_DELTAS and _has_any(block.value, _CALL_MEMBERS)):
            index = self._last if index is None else index
            self._miss_arguments(block, index, frozenset({"type"}))
            self._out.keep(BlockDelta(index, block.json))
            return False
        if recovered and kind != "text_delta":
            return True
        if type_of(block.value) not in DELTA_FIELDS:
            self._out.mark_misread("other_kind")  # clients drop a delta of an unknown type, or raise
        if not CLIENTS.suit(kind, block.value):
            self._out.leave_out("member_type")
        self._expect(index)
        if self._open_index is not None and _OWN.get(kind, self._open_kind) != self._open_kind:
            self._out.mark_misread("other_kind")  # clients drop a delta of another type, or raise
        if index is None:
            index = self._last
        if index is not None:
            self._emit_held(index + 1, stays_open=index)
        address = Address(index=index)
        if kind in _CALL_DELTAS and (kind != "input_json_delta" or _has_any(block.value, _CALL_HEADS)):
            self._call_delta(block, index, provider_executed=kind in ("server_tool_use", "mcp_tool_use"))
            return True
        metadata = block.metadata(DELTA_FIELDS[kind]) if kind != "compaction_delta" else None
        match kind:
            case "text_delta":
                text, metadata = self._text_elsewhere(block, "text", _TEXT_ELSEWHERE, DELTA_FIELDS[kind])
                self._push("message", address, "raw", text, metadata)
            case "thinking_delta":
                text, metadata = self._thought(block, DELTA_FIELDS[kind])
                self._push("reasoning", address, "thinking", text, metadata)
            case "signature_delta":
                signature = block.notes.clean(block.text("signature"))
                self._assembler.part_attributes(
                    0, "reasoning", address, "reasoning", None, signature or None, None, metadata
                )
            case "citations_delta":
                self._cite(block, address, metadata)
            case "input_json_delta":
                self._input(block, address)
            case _:
                self._out.keep(BlockDelta(index, block.json))
                self._compact(block)
        return True

    def _thought(self, block: Block, modelled: frozenset[str]) -> tuple[str, str | None]:
        """Return the text of a thinking block or delta, and its metadata.

        The text may be in one of `_THINKING_ELSEWHERE` instead of `thinking`.
        """
        return self._text_elsewhere(block, "thinking", _THINKING_ELSEWHERE, modelled)

    def _text_elsewhere(
        self, block: Block, member: str, others: tuple[str, ...], modelled: frozenset[str]
    ) -> tuple[str, str | None]:
        """Return the text in `member`, or in the first of the other members that contains text, and the metadata."""
        text = block.text(member)
        if text:
            return text, block.metadata(modelled)
        for name in others:
            if isinstance(block.value.get(name), str) and block.value[name]:
                self._out.mark_misread("other_member")  # clients look only for the documented member
                return block.text(name), block.metadata(modelled | {name})
        return "", block.metadata(modelled)

    def bare_delta(self, text: str, index: int | None) -> None:
        """Handle a delta that is a string. Such a delta extends the open text or thinking block."""
        index = self._last if index is None else index
        if index is None or index != self._open_index or self._open_kind not in _TEXT_KINDS:
            return
        self._out.mark_misread("other_member")  # clients expect an object
        kind: ItemKind = "message" if self._open_kind == "text" else "reasoning"
        self._push(kind, Address(index=index), "raw" if kind == "message" else "thinking", text, None)

    def _push(
        self, kind: ItemKind, address: Address, reasoning_kind: ReasoningKind, text: str, metadata: str | None
    ) -> None:
        if text:
            channel: Channel = "text" if kind == "message" else "reasoning"
            self._assembler.part_text(0, kind, address, channel, reasoning_kind, text, metadata)
        elif metadata is not None:
            self._assembler.choice_metadata(0, metadata)

    def _cite(self, block: Block, address: Address, metadata: str | None) -> None:
        citation = block.notes.an_object(block.value, block.path, "citation")
        if citation is not None:
            annotations = f"[{block.raw('citation')}]"
            self._assembler.part_attributes(0, "message", address, "text", annotations, None, None, metadata)

    def _input(self, block: Block, address: Address) -> None:
        member, text = _call_text(block)
        own = block.value.get("partial_json")
        if text and (not isinstance(own, str) or not own):
            self._out.mark_misread("other_member")  # clients look only for a string in `partial_json`
        modelled = DELTA_FIELDS["input_json_delta"] | {member}
        metadata = block.metadata(modelled)
        if not text:
            self._miss_arguments(block, address.index, modelled)
        if text or metadata is not None:
            self._assembler.call_text(0, address, text or "", None, metadata)

    def _miss_arguments(self, block: Block, index: int | None, read: frozenset[str]) -> None:
        """Report an unknown member of a delta that may contain arguments of the open call.

        After such a report, the call is dispatchable only if its arguments also arrive in a known member.
        """
        if index is None or index != self._open_index or self._open_kind != "input":
            return
        for name, value in block.value.items():
            if name not in read and value and (isinstance(value, str) or is_object(value) or is_array(value)):
                block.notes.shape((*block.path, name))
                self._assembler.call_misses_arguments(0, Address(index=index))
                return

    def _call_delta(self, block: Block, index: int | None, *, provider_executed: bool) -> None:
        """Handle a delta that contains a call or a piece of a call, possibly with an id and a name."""
        payload, value, path, notes = block.payload, block.value, block.path, block.notes
        ids = (an_id(payload, value, path, key, notes) for key in ("id", "tool_use_id"))
        identity = next((one for one in ids if one is not None), None)
        name = a_name(value, path, notes)
        member, text = _call_text(block)
        if text is None:
            member = next((key for key in _CALL_TEXTS if value.get(key) is not None), "input")
        piece = value.get(member)
        whole = piece is not None and not isinstance(piece, str)
        modelled = CALL_DELTA_FIELDS - {"type"} if provider_executed else CALL_DELTA_FIELDS
        metadata = block.metadata(modelled | {member})
        head = self._head
        if (identity is not None or name is not None) and not (
            head is not None and head.takes(index, identity, name, whole=whole)
        ):
            if head is not None and head.is_loose and head.is_whole:
                self._assembler.item_closed(0, "call", head.address, None, None)
            head = self._head = CallHead(index, identity, name, is_loose=True)
            self._last_kind = "server_tool_use" if provider_executed else "tool_use"
            self._assembler.call_opened(0, head.address, name, None, provider_executed, False, metadata)
            name, metadata = None, None
        elif head is not None and head.takes(index, identity, name, whole=False):
            # Some gateways repeat the call's name in each of its deltas.
            name = None if head.name is not None else name
            head.id, head.name = head.id or identity, head.name or name
        else:
            head = None
        address = Address(index=index) if head is None else head.address
        if head is not None and text:
            head.is_whole = head.is_whole or whole
        if text or name is not None or metadata is not None:
            self._assembler.call_text(0, address, text or "", name, metadata)

    def _compact(self, block: Block) -> None:
        changed_fields = leftovers(block.payload, block.path, block.value, frozenset({"type"}))
        if self._kept is not None:
            self._kept.update(changed_fields)
        elif changed_fields:
            self._assembler.kept_unknown(0, block.event, block.json.encode())

    def stop(self, index: int | None, extra: Raw) -> None:
        """Handle `content_block_stop`."""
        self._expect(index)
        self._open_index = None
        self._stop(index, extra)

    def end(self) -> None:
        """Handle the end of the message, when no block should be open."""
        self.emit_compaction()
        self._left_open("not_closed")  # clients run a call when its block is closed
        self._open_index = None

    def _left_open(self, reason: str) -> None:
        """Report the latest block if it is still open."""
        if self._open_index is not None:
            self._out.mark_misread(reason)
            self._out.diagnose("block_left_open", detail=str(self._open_index))

    def _expect(self, index: int | None) -> None:
        """Mark the event as misread by clients unless it addresses the open block."""
        if index is None or index != self._open_index:
            self._out.mark_misread("not_opened" if self._open_index is None else "other_index")

    def _stop(self, index: int | None, extra: Raw) -> None:
        self.emit_compaction()
        if index is None:
            index = self._last
        head = self._head
        if head is not None and head.index == index:
            self._head = None
            if head.is_loose:
                self._assembler.item_closed(0, "call", head.address, None, None)
        if index is None:
            return
        if index not in self._open:
            self._out.keep(BlockClosed(index))
            return
        self._open.discard(index)
        self._assembler.item_closed(0, None, Address(index=index), None, as_object(extra))

    def emit_compaction(self) -> None:
        """Emit the `compaction` block, if there is one. This method is called when the deltas of the block are
        complete.
        """
        if self._kept is not None:
            raw, self._kept = as_object(self._kept) or "{}", None
            self._keep("compaction", self._kept_event, raw)

    def finish(self) -> None:
        """Emit the held blocks and the `compaction` block when the message or the input ends."""
        self._emit_held(None)
        self.emit_compaction()

    # Complete messages

    def whole_block(self, block: Block, index: int) -> None:
        """Open and close a block of a complete message, because the block has no deltas."""
        self._start(block, index)
        self._stop(index, {})

    def restate(self, block: Block, index: int) -> None:
        """Compare a block in a complete message with the streamed block.

        Correct or complete the streamed block, but never duplicate its content. Emit a tool result that was not
        streamed.
        """
        assembler, value = self._assembler, block.value
        address = Address(index=index)
        kind = block_type(value)
        match kind:
            case "text":
                metadata = block.metadata(BLOCK_FIELDS["text"])
                assembler.restate_part(0, "message", address, "text", "raw", block.text("text") or None, metadata)
            case "thinking":
                text = block.text("thinking") or None
                metadata = block.metadata(BLOCK_FIELDS["thinking"])
                assembler.restate_part(0, "reasoning", address, "reasoning", "thinking", text, metadata)
            case "tool_use" | "server_tool_use" | "mcp_tool_use":
                assembler.restate_call(
                    0,
                    Address(call_id=an_id(block.payload, value, block.path, "id", block.notes), index=index),
                    a_name(value, block.path, block.notes),
                    _input_of(block)[1],
                    kind != "tool_use",
                    False,
                    block.metadata(BLOCK_FIELDS[kind] | {_input_of(block)[0]}),
                )
            case _ if kind.endswith("tool_result") and index < self._fresh:
                self._other(block, kind)
            case _ if kind.endswith("tool_result"):
                self.whole_block(block, index)
            case _:
                pass  # the block was emitted when it was streamed


def _begins_with_content(block: Mapping[str, Any]) -> bool:
    """Return whether an opening event contains content that should arrive in deltas."""
    kind = block_type(block)
    if kind in ("text", "thinking"):
        begun = block.get(kind)
        return isinstance(begun, str) and begun != ""
    given = block.get("input")
    return kind == "tool_use" and is_object(given) and bool(given)


def _call_text(block: Block) -> tuple[str, str | None]:
    """Return the name and value of the first member of `_CALL_TEXTS` that is not empty."""
    for name in _CALL_TEXTS:
        piece = block.value.get(name)
        text = piece if isinstance(piece, str) else arguments(block.payload, block.value, block.path, name)
        if text:
            return name, text
    return "partial_json", None


def _input_of(block: Block) -> tuple[str, str | None]:
    """Return the name of the block's member that contains the arguments of the call, and the arguments."""
    text = arguments(block.payload, block.value, block.path, "input")
    if text is not None:
        return "input", text
    member, text = _call_text(block)
    return ("input", None) if text is None else (member, text)


def _has_any(delta: Mapping[str, Any], keys: tuple[str, ...]) -> bool:
    return any(delta.get(key) is not None for key in keys)
