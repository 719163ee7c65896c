"""Reads a Chat Completions usage object, whatever the gateway calls its members.

Knows the table in `_spec/dialects.json`. An object that is all zero is a placeholder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.chat_kinds import is_object
from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Mapping

FIELDS: dict[str, tuple[tuple[str, ...], ...]] = {
    name: tuple(tuple(path.split(".")) for path in paths) for name, paths in DIALECTS["chat"]["usage"].items()
}
READ = frozenset(path[0] for paths in FIELDS.values() for path in paths)


def read_usage(value: Mapping[str, Any]) -> dict[str, int | None] | None:
    """Field of `Usage` -> number; None where no number says anything (absent or all zero: a placeholder)."""
    numbers = {name: _first(value, paths) for name, paths in FIELDS.items()}
    return numbers if any(numbers.values()) else None


def _first(value: Mapping[str, Any], paths: tuple[tuple[str, ...], ...]) -> int | None:
    for path in paths:
        found: Any = value
        for key in path:
            found = found.get(key) if is_object(found) else None
        number = _count(found)
        if number is not None:
            return number
    return None


def _count(value: object) -> int | None:
    """A token count: an integer within 64 bits; an integral float is what some JSON writers make of one."""
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not int or not -(2**63) <= value < 2**64:
        return None
    return value
