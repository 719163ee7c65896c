"""Detects the dialect (wire format) of a stream from its first payloads.

The detection rules are data (`detect` in `_spec/dialects.json`). The module does not import any decoder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["detect", "payload_summary"]

_SEEN = 32  # maximum number of member names that `payload_summary` returns
_SEEN_HEAD = 64  # maximum number of characters of each name


def detect(value: object, event: str, before: Sequence[object] = ()) -> str | None:
    """Return the dialect that a payload's members and event name indicate, or None.

    `event`: the name of the event that contains the payload. `before`: the earlier payloads, from which the dialect
    could not be determined.
    """
    if _is_array(value) and _is_object(value[0]) and "error" in value[0]:
        # Some gateways send an error object in an array.
        value = value[0]
    if _is_object(value):
        named = value
        if event not in ("", "message", "error") and "type" not in value and "choices" not in value:
            # If the `type` is missing, the event name replaces it, unless the name is one that every dialect uses.
            named = {**value, "type": event}
        for rule in DIALECTS["detect"]:
            if "after" in rule and not any(_is_object(one) and _holds(rule["after"], one) for one in before):
                continue
            for conditions in rule["any"]:
                subject = named if any(name in value for name in rule.get("named", ())) else value
                if all(_holds(condition, subject) for condition in conditions):
                    dialect: str = rule["dialect"]
                    return dialect
    # An `error` event of unknown shape is decoded as a Chat error.
    return "chat" if event == "error" else None


def payload_summary(value: object, text: str) -> tuple[str, ...]:
    """Summarize a payload of unknown dialect: return the names of its members, or the beginning of its text."""
    if _is_object(value):
        return tuple([name[:_SEEN_HEAD] for name in sorted(value)[:_SEEN]])
    return (text[:_SEEN_HEAD],)


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_array(value: object) -> TypeGuard[list[Any]]:
    """Return whether the value is a non-empty array."""
    return isinstance(value, list) and len(value) > 0  # pyright: ignore[reportUnknownArgumentType]


def _holds(condition: str, value: Mapping[str, Any]) -> bool:
    """Return whether an object meets a condition of the detection table.

    A condition is `member`, `member:value`, `member:prefix*`, or `member:key` for a member that is an object. `!member`
    requires that the member be absent.
    """
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
