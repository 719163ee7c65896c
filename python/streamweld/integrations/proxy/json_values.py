"""Read JSON values of an expected type, with a substitute for any other type."""

from __future__ import annotations

from typing import Any, cast

__all__ = ["list_of", "object_of"]


def object_of(value: object) -> dict[str, Any]:
    """Return the value if it is an object, otherwise an empty object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any] | None:
    """Return the value if it is a list, otherwise None."""
    return cast("list[Any]", value) if isinstance(value, list) else None  # type: ignore[redundant-cast]
