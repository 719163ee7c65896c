"""What an AI SDK stream says of itself before the first content: `stream-start`, `start`, `start-step` and
`response-metadata`, told as one `ResponseStarted`.

The id of the response comes in `response-metadata`, behind `stream-start`, so that the start waits for it; the
first content ends the waiting. Knows no content.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from streamweld._pure.json.members import as_object

if TYPE_CHECKING:
    from streamweld._pure.assemble import Assembler
    from streamweld._pure.dialect.ai_sdk.part import TypedPart

# `Date.prototype.toJSON`: what a timestamp is on the wire.
_TIMESTAMP = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?Z")
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class StartReader:
    """Holds what came before the first content."""

    __slots__ = ("_assembler", "_held", "_seen", "_told")

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler
        self._held: list[str] = []  # the texts of JSON objects
        self._seen = False
        self._told = False

    def opening(self, part: TypedPart) -> None:
        """`stream-start`, `start`, `start-step`: warnings and the like. Behind the start they go to the end."""
        members = part.worth_keeping()
        self._seen = True
        if members is None:
            return
        if self._told:
            self._assembler.choice_metadata(0, members)
            return
        self._held.append(members)
        if len(self._held) > 1:
            self.tell()  # a stream has one opening, or two: what is held does not grow

    def response(self, part: TypedPart) -> None:
        """`response-metadata`: what the response calls itself. A second one is kept, but changes nothing."""
        if self._told:
            self._assembler.choice_metadata(0, as_object({"response": part.payload.text.strip()}) or "{}")
            return
        sent = part.value.get("timestamp")
        created, whole = seconds(sent) if isinstance(sent, str) else (None, False)
        kept = None if whole else part.json("timestamp")
        self._tell(
            part.identity("id"),
            part.words("modelId"),
            created,
            part.metadata(("timestamp", kept)),
        )

    def tell(self) -> None:
        """The start cannot wait any longer."""
        if not self._told:
            self._tell(None, None, None, None)

    def tell_if_seen(self) -> None:
        """The same where the stream ends: a body that never began did not start."""
        if self._seen:
            self.tell()

    def _tell(self, identity: str | None, model: str | None, created: int | None, metadata: str | None) -> None:
        self._told = True
        held = self._held if metadata is None else [*self._held, metadata]
        self._held = []
        self._assembler.started(identity, model, created, _joined(held))


def seconds(text: str) -> tuple[int | None, bool]:
    """The seconds since 1970 of a timestamp as JavaScript writes it, and whether they say all of it."""
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return None, False
    year, month, day, hour, minute, second = (int(found[place]) for place in range(1, 7))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _MONTH_DAYS[month - 1] + (leap and month == 2):
        return None, False
    if hour > 23 or minute > 59 or second > 59:
        return None, False
    days = _days_before(year, month, leap=leap) + day - 1
    return ((days * 24 + hour) * 60 + minute) * 60 + second, not (found[7] or "").strip("0")


def _days_before(year: int, month: int, *, leap: bool) -> int:
    """From 1970-01-01 to the first of a month; before 1970 it is negative."""
    past = year - 1
    days = past * 365 + past // 4 - past // 100 + past // 400 - 719_162
    return days + sum(_MONTH_DAYS[: month - 1]) + (leap and month > 2)


def _joined(objects: list[str]) -> str | None:
    """Several JSON objects as one; of a key that stands in two, readers take the last."""
    inner = [text[1:-1] for text in objects]
    return "{" + ",".join(inner) + "}" if inner else None
