"""Handle the end of the input: use an unfinished event if possible, and determine what is missing.

This module reads the framer's remaining data and passes it to the payload pipeline. It is the twin of
`rust/core/src/pipeline/end_of_stream.rs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.json.scanner import JsonFault, parse
from streamweld._pure.pipeline.salvage import MARKER, WHITE, joined_field, salvage
from streamweld._pure.sse.frame import ends_inside_character

if TYPE_CHECKING:
    from streamweld._pure.assemble import Rest
    from streamweld._pure.model.output import Output
    from streamweld._pure.pipeline.array_body import ArrayBody
    from streamweld._pure.pipeline.payload_pipeline import PayloadPipeline
    from streamweld._pure.sse.framer import Pending

__all__ = ["Ending"]


class Ending:
    """The end of one stream."""

    __slots__ = ("_out", "_stage")

    def __init__(self, stage: PayloadPipeline, out: Output) -> None:
        self._stage = stage
        self._out = out

    def of_events(self, pending: Pending) -> Rest:
        """Return the kind of unfinished input that is left.

        An unfinished event with a complete payload is used, so it is not left.
        """
        cut = pending.open and not pending.data and not pending.stray
        if pending.data and not self._used(pending.data, pending.event, pending.offset, stray=False):
            cut = True
        if pending.stray and not self._used(pending.stray, "message", pending.stray_offset, stray=True):
            cut = True
        if not cut:
            return "nothing"
        return "mid_utf8" if pending.mid_utf8 else "mid_event"

    def of_array(self, body: ArrayBody) -> Rest:
        """Return the kind of unfinished input that an array body leaves."""
        if body.spilled is not None:
            self._stage.set_position(body.spilled, self._stage.ordinal)
            self._stage.after_end()
        if body.closed:
            return "nothing"
        return "mid_utf8" if ends_inside_character(body.pending[-3:]) else "mid_event"

    def _used(self, data: bytes, event: str, offset: int, *, stray: bool) -> bool:
        """Use an unfinished event. Returns whether its payload was complete or had no content."""
        stage = self._stage
        text = data.strip(WHITE)
        if not text or text[:1] == b":" or stage.is_keep_alive(event):
            return True
        if stray and text[:1] == b"<" and not stage.seen:
            raise stage.no_stream(stage.head)
        if not stage.done:
            stage.set_position(offset, stage.ordinal, event, data)
            stage.reject_joined(text)
        usable = len(text) if text == MARKER or stage.done else self._usable(text)
        if usable == 0:
            return False
        if not stray and not stage.done:
            self._out.diagnose("unterminated_event")
        if usable < len(text):
            data = text[:usable]
        stage.payload(data, event, offset, stray=stray)
        return usable == len(text)

    def _usable(self, text: bytes) -> int:
        """Return how many bytes of an unfinished event can be read: all of them, those of its complete lines, or 0.

        The rest was truncated.
        """
        if text[:1] not in (b"{", b"["):
            return 0
        try:
            parse(text, *self._stage.caps)
        except JsonFault as fault:
            if joined_field(text, self._stage.caps[0]) is not None:
                return len(text)  # the rest after complete lines, for which the pipeline raises
            # A document that is nested too deeply raises the same fault, whether or not it is complete.
            if fault.reason == "too_deep":
                return len(text)
            stage = self._stage
            if fault.reason == "too_many" or not stage.salvages:
                return 0
            found = salvage(text, stage.caps, stage.is_of_use, finished=False)
            if found.kind == "none":
                return 0
            if found.rest is not None:
                rest = text[found.rest :].strip(WHITE)
                return len(text) if self._usable(rest) == len(rest) else found.rest
        return len(text)
