"""How members of a Responses event are read: ids, indexes, texts, addresses, and what nobody models.

One `Reader` lives as long as one payload. Knows no kind of event and no item type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.responses.spec_tables import ABSENT_IDS, EVENT_FIELDS
from streamweld._pure.json.kinds import integer
from streamweld._pure.json.members import as_object
from streamweld._pure.model.delta import Address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.dialect.anomalies import Anomalies
    from streamweld._pure.json.members import Raw
    from streamweld._pure.json.scanner import Path, Payload
    from streamweld._pure.model.output import Output

_INDEX_HEAD = 64  # characters of an unusable index that are worth repeating
INDEX_CAP = 2**32 - 1  # what an index can be at all, where no limit is lower


class Reader:
    """One payload, with what has to be said about it."""

    __slots__ = ("_max_index", "_out", "kind", "notes", "payload", "tools")

    def __init__(
        self, payload: Payload, notes: Anomalies, out: Output, max_index: int, kind: str, tools: frozenset[str]
    ) -> None:
        self.payload = payload
        self.notes = notes
        self.kind = kind  # the event's name
        self.tools = tools  # those of the request, as far as they are known
        self._out = out
        self._max_index = max_index

    def touch(self, why: str) -> None:
        """Readers of the dialect would not read the event so: a word of the code `rewritten`."""
        self._out.touch(why)

    def identity(self, holder: Mapping[str, Any], path: Path, key: str) -> str | None:
        """An id exactly as sent; blank is absent, and so is what says so in words."""
        value = holder.get(key)
        if value is None:
            return None
        if isinstance(value, str):
            trimmed = value.strip()
            return None if not trimmed or trimmed in ABSENT_IDS else self.notes.clean(value)
        self.notes.shape((*path, key))
        return None

    def name(self, holder: Mapping[str, Any], path: Path) -> str | None:
        """A tool's name as sent; blank is absent."""
        value = self.notes.a_text(holder, path, "name")
        return self.notes.clean(value) if value.strip() else None

    def _index(self, event: Mapping[str, Any], key: str, most: int) -> int | None:
        """An index; what cannot be one is absent, and never addresses anything."""
        value = event.get(key)
        if value is None:
            return None
        number = integer(value)
        if number is not None and 0 <= number <= most:
            return number
        self._out.diagnose("index_unusable", detail=(self.payload.raw(key) or "")[:_INDEX_HEAD])
        return None

    def text(self, holder: Mapping[str, Any], path: Path, key: str) -> str | None:
        """A text as sent, or None. A surrogate at its edge may find its other half in the next delta."""
        value = holder.get(key)
        if value is None or isinstance(value, str):
            return value
        self.notes.shape((*path, key))
        return None

    def address(self, event: Mapping[str, Any], place: str | None = None) -> Address:
        """Whom an event speaks of."""
        return Address(
            self.identity(event, (), "item_id"),
            self.identity(event, (), "call_id"),
            self._index(event, "output_index", self._max_index),
            None if place is None else self._index(event, place, INDEX_CAP),
        )

    def rest(self, holder: Mapping[str, Any], path: Path, modelled: frozenset[str]) -> Raw:
        """The members nobody models, as sent; null and `[]` (an empty `logprobs` in every delta) say nothing."""
        if modelled.issuperset(holder):
            return {}
        left = {key for key in holder.keys() - modelled if holder[key] is not None and holder[key] != []}
        if not left:
            return {}
        return {key: raw for key, raw in self.payload.members(*path).items() if key in left}

    def metadata(self, event: Mapping[str, Any]) -> str | None:
        """What an event says beyond its content."""
        return as_object(self.rest(event, (), EVENT_FIELDS))
