"""Values that came as JSON, taken for what they ought to be. It knows no member by name."""

from __future__ import annotations

from typing import Any, cast

__all__ = ["list_of", "object_of"]


def object_of(value: object) -> dict[str, Any]:
    """The object; an empty one in the place of anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any] | None:
    """The list; None in the place of anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else None  # type: ignore[redundant-cast]
