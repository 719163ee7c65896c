"""The result of a conversion: `Conversion` with its payload, edits, losses and map of tool call ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["Conversion", "Edit", "IdMap", "Loss"]


@dataclass(frozen=True, slots=True)
class Edit:
    """A change that goes beyond translating the history.

    Attributes:
        rule: the code of the rule that requires the change; a key of the edits in
            `streamweld/_spec/history_rules.json`.
        path: JSON pointer into the source; for an insertion, the position where the new part or message belongs.
        what: what was changed, in one short sentence.
        why: the text of the rule, and the document or issue that the rule comes from.
        removed: the source object or text that was removed; None if nothing was removed.
    """

    rule: str
    path: str
    what: str
    why: str
    removed: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return the edit as a dictionary. `json.dumps` accepts the result if it accepts the source."""
        return {name: getattr(self, name) for name in ("rule", "path", "what", "why", "removed")}


@dataclass(frozen=True, slots=True)
class Loss:
    """A member or a part that the target cannot represent.

    Attributes:
        feature: the name of the member, or the kind of the part.
        path: JSON pointer into the source, to the member or part, or to the object that contains the member or part.
        why: the reason, in one short sentence.
        removed: the value of the member or the part.
    """

    feature: str
    path: str
    why: str
    removed: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return the loss as a dictionary. `json.dumps` accepts the result if it accepts the source."""
        return {name: getattr(self, name) for name in ("feature", "path", "why", "removed")}


class _IdTables:
    """Lookup tables for an `IdMap`: target ids keyed by source id, source ids keyed by target id, and renamed calls."""

    __slots__ = ("back", "forth", "pairs")

    def __init__(self, calls: Sequence[tuple[str, str]]) -> None:
        self.forth: dict[str, list[str]] = {}
        for source, target in calls:
            self.forth.setdefault(source, []).append(target)
        self.pairs = tuple([pair for pair in calls if pair[0] != pair[1]])
        self.back = {target: source for source, target in self.pairs}


class IdMap:
    """Maps tool call ids from source to target and back. An id that was not renamed maps to itself.

    `to_target(id, n)` returns the id that the n-th call with that source id has in the payload; `to_source(id)` returns
    the source id of a call in the payload. `pairs` holds every renamed call as (source id, target id), in order.
    """

    __slots__ = ("_calls", "_id_tables")

    def __init__(self) -> None:
        self._calls: list[tuple[str, str]] = []
        self._id_tables: _IdTables | None = None  # the lookup tables are built at the first lookup

    @classmethod
    def of(cls, calls: Iterable[tuple[str, str]]) -> IdMap:
        """Return the map for these calls, which must be in order."""
        made = cls()
        made._calls = list(calls)
        return made

    def calls(self) -> Sequence[tuple[str, str]]:
        """Return (source id, target id) for every call, renamed or not, in order."""
        return self._calls

    def add(self, source: str, target: str) -> None:
        """Add one call, in the order of the history. Every call must be added, because `to_target` counts the calls."""
        self._calls.append((source, target))
        self._id_tables = None

    def keep(self, calls: Iterable[str]) -> None:
        """Add calls that keep their source ids, in the order of the history."""
        self._calls += [(call_id, call_id) for call_id in calls]
        self._id_tables = None

    def _both(self) -> _IdTables:
        if self._id_tables is None:
            self._id_tables = _IdTables(self._calls)
        return self._id_tables

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Return (source id, target id) for every renamed call."""
        return self._both().pairs

    def to_target(self, source_id: str, occurrence: int = 0) -> str:
        """Return the id that a call has in the payload.

        `occurrence`: the index (from 0) of the call among those with the same source id.
        """
        found = self._both().forth.get(source_id)
        return source_id if not found else found[min(occurrence, len(found) - 1)]

    def to_source(self, target_id: str) -> str:
        """Return the source id of a call in the payload."""
        return self._both().back.get(target_id, target_id)

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.pairs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdMap) and self.pairs == other.pairs

    def __hash__(self) -> int:
        return hash(self.pairs)

    def __repr__(self) -> str:
        return f"IdMap({list(self.pairs)!r})"


@dataclass(frozen=True, slots=True)
class Conversion:
    """A history converted to a target.

    Attributes:
        payload: the request fields of the target, such as `{"system": …, "messages": […]}`. Parts that needed no change
            are the same objects as in the source.
        edits: every change, in the order in which it was made.
        ids: the map of tool call ids.
        losses: every member or part that the target cannot represent.
    """

    payload: Mapping[str, Any]
    edits: tuple[Edit, ...] = ()
    ids: IdMap = field(default_factory=IdMap)
    losses: tuple[Loss, ...] = ()
    _seen: Any = field(default=None, repr=False, compare=False)
