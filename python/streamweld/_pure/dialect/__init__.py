"""Which dialect a stream speaks: the detection table of `_spec/dialects.json`, applied to a first payload.

Knows no decoder; which of the dialects can be read is the parser's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["detect", "seen"]

_SEEN = 32  # how many names are worth telling
_SEEN_HEAD = 64  # characters of one


def detect(value: object, event: str, before: Sequence[object] = ()) -> str | None:
    """The dialect that a payload tells, or None. `event` is its event name, `before` the payloads that told none."""
    if _is_array(value) and _is_object(value[0]) and "error" in value[0]:
        # Some gateways wrap a lone error object into an array.
        value = value[0]
    if _is_object(value):
        for rule in DIALECTS["detect"]:
            if "after" in rule and not any(_is_object(one) and _holds(rule["after"], one) for one in before):
                continue
            for conditions in rule["any"]:
                if all(_holds(condition, value) for condition in conditions):
                    dialect: str = rule["dialect"]
                    return dialect
    # An error in a shape of its own still is one.
    return "chat" if event == "error" else None


def seen(value: object, text: str) -> tuple[str, ...]:
    """What was there instead of a dialect: member names, or the first characters."""
    if _is_object(value):
        return tuple([name[:_SEEN_HEAD] for name in sorted(value)[:_SEEN]])
    return (text[:_SEEN_HEAD],)


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_array(value: object) -> TypeGuard[list[Any]]:
    """An array that holds something."""
    return isinstance(value, list) and len(value) > 0  # pyright: ignore[reportUnknownArgumentType]


def _holds(condition: str, value: Mapping[str, Any]) -> bool:
    """`member`, `member:value`, `member:prefix*`, or `member:key` of an object member; `!member`: it is not there."""
    if condition.startswith("!"):
        return condition[1:] not in value
    member, colon, wanted = condition.partition(":")
    if member not in value or not colon:
        return member in value
    found = value[member]
    if _is_object(found):
        return wanted in found
    if not isinstance(found, str):
        return False
    return found.startswith(wanted[:-1]) if wanted.endswith("*") else found == wanted
