"""Writes the tool calls of one choice as elements of `delta.tool_calls`, and detects a close that contradicts them.

The encoder decides which chunk an element goes into.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.encode.common.encode_context import final_text, is_empty_cut, is_whole
from streamweld._pure.encode.common.part_details import WrittenText
from streamweld._pure.encode.common.same_json import same_value
from streamweld._pure.encode.common.writer import quoted

if TYPE_CHECKING:
    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld.events import ToolCall, ToolCallDelta, ToolCallStarted

__all__ = ["Calls"]


class _Begun:
    """A call whose id and name have already been written."""

    __slots__ = ("call_id", "corrected", "custom", "index", "name", "written_text")

    def __init__(self, index: int, call_id: str, name: str, *, custom: bool) -> None:
        self.index = index
        self.custom = custom  # free-form text, which only clients of this dialect can read
        self.call_id = call_id
        self.name = name
        self.written_text = WrittenText()
        self.corrected = False  # its deltas were retracted; the close shows whether the arguments changed


class Calls:
    """The calls of one choice."""

    __slots__ = (
        "_begun",
        "_held_parts",
        "_indexes",
        "_context",
        "_next",
        "contradicted",
        "has_empty_cut_call",
        "written",
    )

    def __init__(self, context: EncodeContext) -> None:
        self._context = context
        self._begun: dict[int, _Begun] = {}  # started calls by part, until they are complete
        self._held_parts: set[int] = (
            set()
        )  # parts that are held until they are complete; later calls are not written before them
        self._indexes: set[int] = set()
        self._next = 0  # one more than the highest index of a started call
        self.written = 0
        self.contradicted = False
        # True if a truncated call was written without arguments (see `is_empty_cut`).
        self.has_empty_cut_call = False

    def is_begun(self, part: int) -> bool:
        return part in self._begun

    def started(self, event: ToolCallStarted) -> str | None:
        """Return the first element for the call, if it can be written before the call is complete."""
        context = self._context
        opens = context.opens(event)
        if context.provider_executed:
            return None
        if not opens or event.call_id is None or self._held_parts or (context.custom and not context.passed.own):
            self._held_parts.add(event.part)
            return None
        begun = self._begun[event.part] = self._begin(event.call_id, event.name, context.custom, context.passed.index)
        return _head(begun, "")

    def retracted(self, part: int) -> None:
        """Remove a call that was retracted."""
        self._held_parts.discard(part)

    def reset(self, part: int) -> None:
        if part in self._begun:
            self._begun[part].corrected = True

    def delta(self, event: ToolCallDelta) -> str | None:
        begun = self._begun.get(event.part)
        if begun is None or begun.corrected or not event.arguments:
            return None
        begun.written_text.add(event.arguments)
        return _piece(begun, event.arguments)

    def whole(self, call: ToolCall) -> str | None:
        """Return the part of the call that has not been written yet.

        Set `contradicted` if the call contradicts the text that was already written.
        """
        self._context.takes(call.call_id)
        self._held_parts.discard(call.part)
        begun = self._begun.pop(call.part, None)
        if begun is None:
            return self._at_once(call)
        whole, losses = is_whole(call), self._context.losses
        self.has_empty_cut_call = self.has_empty_cut_call or is_empty_cut(call)
        same = (begun.call_id, begun.name) == (call.call_id, call.name)
        if whole and (not same or call.provider_executed or call.custom != begun.custom):
            self.contradicted = True
            return None
        if call.reason == "refused":
            losses.note("refused_call")
        written_text = begun.written_text.text()
        text = final_text(written_text, call)
        rest = begun.written_text.rest(text)
        if rest is None and whole:
            # A call that is truncated or is not JSON ends with the text that was streamed.
            self.contradicted = call.custom or not same_value(written_text, text)
            if not self.contradicted:
                losses.note("arguments_spelling")
        return _piece(begun, rest) if rest else None

    def _at_once(self, call: ToolCall) -> str | None:
        losses = self._context.losses
        if call.provider_executed:
            losses.note("server_tool")
            return None
        if not call.name or not call.call_id:
            losses.note("nameless_call")
            return None
        if call.state == "incomplete":
            losses.note("cut_call")
            return None
        own = self._context.passed.own
        if call.custom and not own:
            losses.note("custom_call")
        if call.reason == "refused":
            losses.note("refused_call")
        arguments = f'{{"input":{quoted(call.arguments)}}}' if call.custom and not own else final_text("", call)
        return _head(self._begin(call.call_id, call.name, call.custom and own), arguments)

    def _begin(self, call_id: str, name: str, custom: bool, sent: int | None = None) -> _Begun:
        index = self._next if sent is None or sent < 0 or sent in self._indexes else sent
        self._indexes.add(index)
        self._next = max(self._next, index + 1)
        begun = _Begun(index, call_id, name, custom=custom)
        self.written += 1
        return begun


def _head(begun: _Begun, arguments: str) -> str:
    kind, text = _names(begun)
    inner = f'{{"name":{quoted(begun.name)},"{text}":{quoted(arguments)}}}'
    return f'{{"index":{begun.index},"id":{quoted(begun.call_id)},"type":"{kind}","{kind}":{inner}}}'


def _piece(begun: _Begun, arguments: str) -> str:
    kind, text = _names(begun)
    return f'{{"index":{begun.index},"{kind}":{{"{text}":{quoted(arguments)}}}}}'


def _names(begun: _Begun) -> tuple[str, str]:
    return ("custom", "input") if begun.custom else ("function", "arguments")
