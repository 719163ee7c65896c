"""Handle the end of the input: parse an unfinished event if its payload is complete, and determine what is missing.

This module reads the framer's remaining data and passes it to the payload pipeline. This module is the twin of
`rust/core/src/pipeline/end_of_stream.rs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.json.scanner import JsonFault, parse, reject_incomplete
from streamweld._pure.pipeline.nested_event import nested_event
from streamweld._pure.pipeline.salvage import MARKER, MOST_JOINS, WHITE, joined_field, salvage, split_joined_line
from streamweld._pure.sse.frame import ends_inside_character

if TYPE_CHECKING:
    from streamweld._pure.assemble import UnfinishedInput
    from streamweld._pure.model.output import Output
    from streamweld._pure.pipeline.array_body import ArrayBody
    from streamweld._pure.pipeline.payload_pipeline import PayloadPipeline
    from streamweld._pure.sse.framer import Pending

__all__ = ["Ending"]


class Ending:
    """Handles the end of one stream."""

    __slots__ = ("_out", "_stage")

    def __init__(self, stage: PayloadPipeline, out: Output) -> None:
        self._stage = stage
        self._out = out

    def of_events(self, pending: Pending) -> UnfinishedInput:
        """Parse an unfinished event if its payload is complete. Return the kind of unfinished input that is left."""
        parts = [self._data, self._stray]
        if pending.data and pending.stray and pending.stray_offset < pending.offset:
            self._stage.is_framed = True
            parts.reverse()
        is_empty = pending.open and not pending.data and not pending.stray
        are_whole = [part(pending) for part in parts]
        if all(are_whole) and not is_empty:
            return "nothing"
        return "mid_utf8" if pending.mid_utf8 else "mid_event"

    def _data(self, pending: Pending) -> bool:
        """Parse the data lines. Return True if the lines were complete or had no content."""
        is_joined = pending.is_joined
        return not pending.data or self._used(pending.data, pending.event, pending.offset, is_joined=is_joined)

    def _stray(self, pending: Pending) -> bool:
        """Parse the stray lines. Return True if the lines were complete or had no content."""
        return not pending.stray or self._used(pending.stray, "message", pending.stray_offset, stray=True)

    def of_array(self, body: ArrayBody) -> UnfinishedInput:
        """Return the kind of unfinished input at the end of an array body. Data after the array is reported."""
        if body.spilled is not None:
            self._stage.set_position(body.spilled, self._stage.ordinal)
            self._stage.after_end()
        if body.closed:
            return "nothing"
        return "mid_utf8" if ends_inside_character(body.pending[-3:]) else "mid_event"

    def _used(self, data: bytes, event: str, offset: int, *, stray: bool = False, is_joined: bool = False) -> bool:
        """Parse the complete part of an unfinished event.

        Returns True if the payload was complete or had no content.
        """
        stage = self._stage
        text = data.strip(WHITE)
        if not text or text[:1] == b":" or stage.is_keep_alive(event):
            return True
        if stray and text[:1] == b"<" and not stage.seen:
            raise stage.no_stream(stage.head)
        if not stage.done:
            stage.set_position(offset, stage.ordinal, event, data)
        if not stage.seen:
            stage.reject_joined(text)
        usable = len(text) if text == MARKER or stage.done else self._usable(text)
        if usable == 0:
            return False
        if is_joined:
            stage.report_joined_frame(data, event, offset)
        if not stray and not stage.done:
            self._out.diagnose("unterminated_event")
        if usable < len(text):
            data = text[:usable]
        stage.payload(data, event, offset, stray=stray)
        return usable == len(text)

    def _usable(self, text: bytes, joins: int = 0) -> int:
        """Return how many bytes of an unfinished event can be parsed: all, those of its complete lines, or 0.

        The remaining bytes are treated as truncated. `joins`: the number of missing line endings before the unfinished
        event.
        """
        if text == MARKER:
            return len(text)
        if text[:1] not in (b"{", b"["):
            return len(text) if self._is_whole_nested(text) else 0
        try:
            max_depth, max_values, _ = self._stage.caps
            reject_incomplete(text, max_depth, max_values)
            parse(text, *self._stage.caps)
        except JsonFault as fault:
            at = joined_field(text, self._stage.caps[0])
            if at is not None:
                if joins == MOST_JOINS:
                    return len(text)  # the pipeline raises the fault
                remainder = text[split_joined_line(text, at).remainder :].strip(WHITE)
                is_whole = remainder and self._usable(remainder, joins + 1) == len(remainder)
                return len(text) if is_whole else at
            # The fault for a document that is nested too deeply is the same whether or not the document is complete.
            if fault.reason == "too_deep":
                return len(text)
            stage = self._stage
            if fault.reason == "too_many" or not stage.salvages:
                return 0
            found = salvage(text, stage.caps, stage.has_usable_data, finished=False)
            if found.kind == "none":
                return 0
            if found.remainder is not None:
                remainder = text[found.remainder :].strip(WHITE)
                return len(text) if self._usable(remainder, joins) == len(remainder) else found.remainder
        return len(text)

    def _is_whole_nested(self, text: bytes) -> bool:
        """Return True if unfinished data is itself an event, and the data of that event can be parsed."""
        nested = nested_event(text)
        if nested is None or nested.data is None:
            return nested is not None
        text = nested.data.strip(WHITE)
        return text == MARKER or (text[:1] in (b"{", b"[") and self._usable(text) == len(text))
