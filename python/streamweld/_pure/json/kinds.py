"""Type guards for JSON objects and arrays, and conversion of JSON values to integers."""

from __future__ import annotations

from typing import Any, TypeGuard

_DIGITS = 19


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def integer(value: object) -> int | None:
    """Return the value as a 64-bit integer, even if it was sent as `1.0` or `"1"`. Return None if the value is not an
    integer.
    """
    if isinstance(value, str):
        digits = value.lstrip("0")
        if not value.isascii() or not value.isdigit() or len(digits) > _DIGITS:
            return None
        number = int(digits or "0")
    elif type(value) is int:
        number = value
    elif type(value) is float and value.is_integer():
        number = int(value)
    else:
        return None
    return number if -(2**63) <= number < 2**63 else None
