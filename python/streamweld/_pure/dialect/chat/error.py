"""Finds and reads an error in a payload of a stream that was sent with HTTP status 200.

The module recognizes every error shape that Chat gateways use. The caller decides how an error affects the stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.upstream_error import (
    is_bare,
    is_blank_error,
    is_notice,
    is_problem,
    is_stated,
    read_error,
    reports_failed_base,
    reports_failure,
    reports_success,
)
from streamweld._pure.json.kinds import is_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.dialect.upstream_error import ErrorFields
    from streamweld._pure.json.scanner import Path, Payload


def find_error(payload: Payload, value: Mapping[str, Any], path: Path, event: str) -> ErrorFields | None:
    """Return the error in a payload object, or None. `event`: the name of the event that contains the payload."""
    error = value.get("error")
    if is_notice(event) and "choices" not in value and "usage" not in value and not is_stated(error):
        return None
    if has_error(value):
        return read_error(payload, (*path, "error"), error)
    if value.get("object") == "error" or event == "error":
        return read_error(payload, path, value)
    return read_error(payload, path, value) if reports_error(value) else None


def has_error(value: Mapping[str, Any]) -> bool:
    """Return whether the object has an `error` member. A blank value is ignored next to a chunk."""
    error = value.get("error")
    return error is not None and not (is_blank_error(error) and _brings_chunk(value))


def is_error_body(value: Mapping[str, Any]) -> bool:
    """Return whether a body without `error` reports an error, because it has a message with a code, or only a
    message.
    """
    return reports_error(value) or is_bare(value)


def read_choice_error(payload: Payload, value: Mapping[str, Any], path: Path) -> ErrorFields | None:
    """Return the error in `error` of a choice or its delta, or None if the value is blank, such as `""` or `{}`."""
    for holder, here in ((value, path), (value.get("delta"), (*path, "delta"))):
        error = holder.get("error") if is_object(holder) else None
        if not is_blank_error(error):
            return read_error(payload, (*here, "error"), error)
    return None


def value_error(payload: Payload) -> ErrorFields:
    """Return the whole payload, which may have any JSON type, as an error."""
    return read_error(payload, (), payload.value)


def reports_error(value: Mapping[str, Any]) -> bool:
    if reports_failed_base(value) or is_problem(value):
        return True
    if value.get("choices") or value.get("usage") or holds_chunk(value.get("data")):
        return False
    kind = value.get("type")
    if isinstance(kind, str) and is_notice(kind):
        return False
    if reports_failure(value):
        return True
    message = value.get("message")
    if "choices" in value or "usage" in value or message is None or reports_success(value):
        return False
    # A `message` object with a type and without a code belongs to an event of another dialect (`message_start`).
    return value.get("code") is not None or (kind is not None and not is_object(message))


def _brings_chunk(value: Mapping[str, Any]) -> bool:
    """Return whether the payload contains a chunk in addition to the error, either directly or in an envelope."""
    return any(name in value for name in ("choices", "usage")) or holds_chunk(value.get("data"))


def holds_chunk(inner: object) -> bool:
    """Return whether `inner`, the `data` of a possible envelope, is an object with `choices` or `usage`."""
    return is_object(inner) and ("choices" in inner or "usage" in inner)
