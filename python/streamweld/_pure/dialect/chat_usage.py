"""Reads a Chat Completions usage object, whatever the gateway calls its members.

Knows the table in `_spec/dialects.json`; which of several objects holds is not decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.delta import Usage
from streamweld._pure.dialect.chat_kinds import integer, is_object
from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.dialect.chat_notes import Notes
    from streamweld._pure.json_door import Path, Payload

FIELDS: dict[str, tuple[tuple[str, ...], ...]] = {
    name: tuple(tuple(path.split(".")) for path in paths) for name, paths in DIALECTS["chat"]["usage"].items()
}


def read_usage(value: Mapping[str, Any], raw: str | None) -> Usage:
    """The counts of a usage object, and the object as sent."""
    return Usage(**{name: _first(value, paths) for name, paths in FIELDS.items()}, raw=raw)


def _first(value: Mapping[str, Any], paths: tuple[tuple[str, ...], ...]) -> int | None:
    for path in paths:
        found: Any = value
        for key in path:
            found = found.get(key) if is_object(found) else None
        number = None if isinstance(found, str) else integer(found)
        if number is not None:
            return number
    return None


def read_usage_member(
    payload: Payload, holder: Mapping[str, Any], path: Path, notes: Notes, assembler: Assembler
) -> None:
    """The `usage` of a chunk, a choice or an extension member; null says nothing."""
    usage = notes.an_object(holder, path, "usage")
    if usage is not None:
        assembler.usage(read_usage(usage, payload.raw(*path, "usage")))
    notes.tell()
