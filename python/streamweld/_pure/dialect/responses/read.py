"""Reads the members of a Responses event: ids, indexes, text, addresses, and unknown members.

One `Reader` is created for each payload.
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

_INDEX_HEAD = 64  # an unusable index is reported with at most this many characters
INDEX_CAP = 2**32 - 1  # maximum index if no lower limit is configured


class Reader:
    """The payload that is being decoded, and the anomalies that have been found in it."""

    __slots__ = ("_max_index", "kind", "notes", "out", "payload", "tools")

    def __init__(
        self, payload: Payload, notes: Anomalies, out: Output, max_index: int, kind: str, tools: frozenset[str]
    ) -> None:
        self.payload = payload
        self.notes = notes
        self.kind = kind  # the name of the event
        self.tools = tools  # tools of the request, if the caller supplied them
        self.out = out
        self._max_index = max_index

    def mark_misread(self, why: str) -> None:
        """Mark the event as misread by clients. The diagnostic `rewritten` contains the reason."""
        self.out.mark_misread(why)

    def identity(self, holder: Mapping[str, Any], path: Path, key: str) -> str | None:
        """Return an id, or None if the id is absent, blank, or a placeholder (`absent_ids`)."""
        value = holder.get(key)
        if value is None:
            return None
        if isinstance(value, str):
            trimmed = value.strip()
            return None if not trimmed or trimmed in ABSENT_IDS else self.notes.clean(value)
        self.notes.shape((*path, key))
        return None

    def name(self, holder: Mapping[str, Any], path: Path) -> str | None:
        """Return the name of a tool, or None if the name is absent or blank."""
        value = self.notes.a_text(holder, path, "name")
        return self.notes.clean(value) if value.strip() else None

    def _index(self, event: Mapping[str, Any], key: str, most: int) -> int | None:
        """Return an index, or None if the index is absent or unusable.

        An unusable index is reported, and is never used to address an item or a part.
        """
        value = event.get(key)
        if value is None:
            return None
        number = integer(value)
        if number is not None and 0 <= number <= most:
            return number
        self.out.diagnose("index_unusable", detail=(self.payload.raw(key) or "")[:_INDEX_HEAD])
        return None

    def text(self, holder: Mapping[str, Any], path: Path, key: str) -> str | None:
        """Return the text of a string member, or None for any other value.

        The text may end with half of a surrogate pair, which the next delta may complete.
        """
        value = holder.get(key)
        if value is None or isinstance(value, str):
            return value
        self.notes.shape((*path, key))
        return None

    def quiet_address(self, event: Mapping[str, Any]) -> Address:
        """Return the address of the item that an event of any type refers to. Unusable values are not reported."""
        item_id, index = event.get("item_id"), integer(event.get("output_index"))
        return Address(
            item_id if isinstance(item_id, str) and item_id.strip() else None,
            None,
            index if index is not None and 0 <= index <= self._max_index else None,
        )

    def address(self, event: Mapping[str, Any], position: str | None = None) -> Address:
        """Return the address of the item or part that an event refers to.

        `position`: the member that contains the index of the part.
        """
        return Address(
            self.identity(event, (), "item_id"),
            self.identity(event, (), "call_id"),
            self._index(event, "output_index", self._max_index),
            None if position is None else self._index(event, position, INDEX_CAP),
        )

    def extra_fields(self, holder: Mapping[str, Any], path: Path, modelled: frozenset[str]) -> Raw:
        """Return the members that are not in `modelled`, except members that are null or `[]`.

        Some gateways send an empty `logprobs` with every delta.
        """
        if modelled.issuperset(holder):
            return {}
        left = {key for key in holder.keys() - modelled if holder[key] is not None and holder[key] != []}
        if not left:
            return {}
        return {key: raw for key, raw in self.payload.members(*path).items() if key in left}

    def metadata(self, event: Mapping[str, Any]) -> str | None:
        """Return the unknown members of an event as metadata, or None."""
        return as_object(self.extra_fields(event, (), EVENT_FIELDS))
