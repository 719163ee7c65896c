"""Paths of members that an SDK names or nests differently than the API. They are moved before the conversion."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from streamweld.errors import HistoryError
from streamweld.history.model import pointer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld.history.check.report import HistoryViolation
    from streamweld.history.edits import Conversion
    from streamweld.history.model import Path

__all__ = ["Moved", "before", "converted_before", "error_before", "parsed", "violation_before"]

Converted = TypeVar("Converted", bound="Conversion")
# Maps the new path of a member that was renamed or moved to its old path; list indexes are strings.
Moved: TypeAlias = "dict[tuple[str, ...], Path]"


def before(path: Sequence[str | int], moved: Moved) -> Path:
    """Return the path that a member had before it was moved."""
    for end in range(len(path), 0, -1) if moved else ():
        found = moved.get(tuple(map(str, path[:end])))
        if found is not None:
            return (*found, *path[end:])
    return tuple(path)


def parsed(place: str) -> Path:
    """Return the steps of a JSON pointer."""
    return tuple([step.replace("~1", "/").replace("~0", "~") for step in place.split("/")[1:]])


def _pointer_before(place: str, moved: Moved) -> str:
    return pointer(before(parsed(place), moved))


def converted_before(done: Converted, moved: Moved) -> Converted:
    """Return the conversion with the paths of its edits and losses as they were before the members were moved."""
    if not moved:
        return done
    edits = tuple([replace(edit, path=_pointer_before(edit.path, moved)) for edit in done.edits])
    losses = tuple([replace(loss, path=_pointer_before(loss.path, moved)) for loss in done.losses])
    return replace(done, edits=edits, losses=losses)


def violation_before(found: HistoryViolation, moved: Moved) -> HistoryViolation:
    """Return the violation with its path as it was before the members were moved."""
    return replace(found, path=_pointer_before(found.path, moved)) if moved else found


def error_before(error: HistoryError, moved: Moved) -> HistoryError:
    """Return the error with its path as it was before the members were moved.

    If the error has violations, the path of the error is not changed, because that path refers to the payload.
    """
    if error.violations:
        return error
    return HistoryError(error.rule, _pointer_before(error.path, moved), detail=error.detail)
