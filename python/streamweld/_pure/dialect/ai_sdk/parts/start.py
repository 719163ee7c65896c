"""Merges the opening parts of an AI SDK stream into one `ResponseStarted` event.

The opening parts are `stream-start`, `start`, `start-step`, and `response-metadata`. The response id is in
`response-metadata`, which follows `stream-start`. The event is therefore held back until `response-metadata` or the
first content arrives.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from streamweld._pure.json.members import as_object

if TYPE_CHECKING:
    from streamweld._pure.assemble import Assembler
    from streamweld._pure.dialect.ai_sdk.part import TypedPart

# The format of `Date.prototype.toJSON`.
_TIMESTAMP = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?Z")
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class StartReader:
    """Collects the metadata that arrives before the start event is emitted."""

    __slots__ = ("_assembler", "_held", "_seen", "_emitted")

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler
        self._held: list[str] = []  # the held metadata, as JSON objects
        self._seen = False
        self._emitted = False

    def opening(self, part: TypedPart) -> None:
        """Handle `stream-start`, `start`, and `start-step`, which contain warnings and similar metadata.

        After the start event, such metadata is added to the last event of the response.
        """
        members = part.worth_keeping()
        self._seen = True
        if members is None:
            return
        if self._emitted:
            self._assembler.choice_metadata(0, members)
            return
        self._held.append(members)
        if len(self._held) > 1:
            self.emit()  # limits the memory for held metadata; a stream has one or two such parts

    def response(self, part: TypedPart) -> None:
        """Handle `response-metadata`, which contains the id, the model, and the creation time of the response.

        A second `response-metadata` is kept as metadata and does not change the id, model, or time.
        """
        if self._emitted:
            self._assembler.choice_metadata(0, as_object({"response": part.payload.text.strip()}) or "{}")
            return
        sent = part.value.get("timestamp")
        created, whole = seconds(sent) if isinstance(sent, str) else (None, False)
        kept = None if whole else part.json("timestamp")
        self._emit(
            part.identity("id"),
            part.descriptive_string("modelId"),
            created,
            part.metadata(("timestamp", kept)),
        )

    def emit(self) -> None:
        """Emit the start event, unless it has already been emitted."""
        if not self._emitted:
            self._emit(None, None, None, None)

    def emit_if_seen(self) -> None:
        """Emit the start event at the end of the stream, if an opening part arrived.

        Do nothing if the start event has already been emitted.
        """
        if self._seen:
            self.emit()

    def _emit(self, identity: str | None, model: str | None, created: int | None, metadata: str | None) -> None:
        self._emitted = True
        held = self._held if metadata is None else [*self._held, metadata]
        self._held = []
        self._assembler.started(identity, model, created, _joined(held))


def seconds(text: str) -> tuple[int | None, bool]:
    """Parse a timestamp in the format of JavaScript's `Date.prototype.toJSON`.

    Return the seconds since 1970-01-01, and whether that number is exact.
    """
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return None, False
    year, month, day, hour, minute, second = (int(found[position]) for position in range(1, 7))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _MONTH_DAYS[month - 1] + (leap and month == 2):
        return None, False
    if hour > 23 or minute > 59 or second > 59:
        return None, False
    days = _days_before(year, month, leap=leap) + day - 1
    return ((days * 24 + hour) * 60 + minute) * 60 + second, not (found[7] or "").strip("0")


def _days_before(year: int, month: int, *, leap: bool) -> int:
    """Return the number of days from 1970-01-01 to the first day of a month; negative before 1970."""
    past = year - 1
    days = past * 365 + past // 4 - past // 100 + past // 400 - 719_162
    return days + sum(_MONTH_DAYS[: month - 1]) + (leap and month > 2)


def _joined(objects: list[str]) -> str | None:
    """Join JSON objects into one. If a key occurs more than once, JSON parsers use the last value."""
    inner = [text[1:-1] for text in objects]
    return "{" + ",".join(inner) + "}" if inner else None
