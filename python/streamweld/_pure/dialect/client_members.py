"""Checks whether an object has the members that the official clients of its dialect need.

If a required member is missing, null, or of another type, clients raise an exception or drop the content, even if the
value does not matter. The table `client_members` in `_spec/dialects.json` lists the required members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.json.kinds import is_array, is_object
from streamweld._pure.json.scanner import BigInteger

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ClientMembers"]

_ABSENT = object()


class ClientMembers:
    """The members that the clients of one dialect need, by object type."""

    __slots__ = ("_types",)

    def __init__(self, spec: Mapping[str, Any]) -> None:
        types: Mapping[str, Mapping[str, str]] = spec["client_members"]
        self._types = {name: tuple(members.items()) for name, members in types.items()}

    def suit(self, name: str, value: Mapping[str, Any]) -> bool:
        """Return whether clients can read an object of the type `name`.

        Objects of types that are not in the table are not checked.
        """
        return all(_is_of_type(value.get(key, _ABSENT), kind) for key, kind in self._types.get(name, ()))


def _is_of_type(value: object, kind: str) -> bool:
    if value is _ABSENT:
        return kind.endswith(("?", "|null"))
    if value is None:
        return kind.endswith("|null")
    if kind.startswith("="):
        return value in kind[1:].removesuffix("?").split(",")
    match kind.removesuffix("?").removesuffix("|null"):
        case "string":
            return isinstance(value, str)
        case "number":
            return isinstance(value, int | float | BigInteger) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "object":
            return is_object(value)
        case "array":
            return is_array(value)
        case _:
            return True
