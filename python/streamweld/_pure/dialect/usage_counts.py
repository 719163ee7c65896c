"""Reads the token counts from a usage object, using the table of dotted paths in `_spec/dialects.json`.

If a payload contains several usage objects, the caller selects the one to use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.json.kinds import integer, is_object
from streamweld._pure.model.delta import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Counts", "counts_of", "read_counts"]

Counts = dict[str, tuple[tuple[str, ...], ...]]  # paths of each count; the first path that leads to a number is used


def counts_of(table: Mapping[str, Sequence[str]]) -> Counts:
    """Split the paths in a dialect's `usage` table into steps."""
    return {name: tuple(tuple(path.split(".")) for path in paths) for name, paths in table.items()}


def read_counts(value: Mapping[str, Any], raw: str | None, counts: Counts) -> Usage:
    """Return the token counts in a usage object, and its JSON."""
    return Usage(**{name: _first(value, paths) for name, paths in counts.items()}, raw=raw)


def _first(value: Mapping[str, Any], paths: tuple[tuple[str, ...], ...]) -> int | None:
    for path in paths:
        found: Any = value
        for key in path:
            found = found.get(key) if is_object(found) else None
        number = None if isinstance(found, str) else integer(found)
        if number is not None:
            return number
    return None
