"""Decides by event type alone which events repair may pass through in two cases.

The first case is an event after an upstream error. Some dialects report a failure with two events (Responses: `error`,
`response.failed`) or send a final event after the error (AI SDK). Comments and the terminal marker may also follow the
error, but an event that reports success must not. The second case is an event without content for any part, while the
stream is being rewritten. The types come from `_spec/conversions.json`; apart from that, this module does not depend on
any dialect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._json import loads_raw
from streamweld._pure.json.kinds import is_object
from streamweld._pure.sse.framer import Frame, Framer, FramerLimit
from streamweld._spec import LIMITS, load_conversions

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AfterError", "is_contentless"]

_MARKER = b"[DONE]"


class AfterError:
    """State of a stream after an upstream error."""

    __slots__ = ("_framer", "_good", "_may")

    def __init__(self, dialect: str) -> None:
        self._framer = Framer(LIMITS, keep_stray=True)
        facts: Mapping[str, Any] = load_conversions()["behind_error"]
        # These are tuples instead of sets, because the value to look up is arbitrary JSON and might not be hashable.
        self._may: tuple[str, ...] = tuple(facts["types"].get(dialect, ()))
        self._good: tuple[str, ...] = tuple(facts["success"])

    def passes(self, block: bytes) -> bool:
        """Return True if the block contains only comments, the terminal marker, and events that may follow the error.

        No further block may be emitted after a block that is too long.
        """
        try:
            items = self._framer.feed(block)
        except FramerLimit:
            return False
        return all(isinstance(item, Frame) and self._is_fine(item) for item in items)

    def _is_fine(self, frame: Frame) -> bool:
        text = frame.data.strip()
        if not text or text == _MARKER:
            return True
        value = _object(text)
        if value.get("type") not in self._may:
            return False
        reason: object = value.get("finishReason")
        word: object = reason.get("unified") if is_object(reason) else reason
        return word not in self._good


def is_contentless(dialect: str, payload: bytes) -> bool:
    """Return True if the payload's type is one that has no content for any part in this dialect.

    Called only for a payload that produced no event.
    """
    return _object(payload).get("type") in load_conversions()["contentless"].get(dialect, ())


def _object(payload: bytes) -> Mapping[str, Any]:
    try:
        value: object = loads_raw(payload.decode("utf-8", "replace"))
    except ValueError:
        return {}
    return value if is_object(value) else {}
