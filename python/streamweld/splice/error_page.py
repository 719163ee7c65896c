"""Recognize a body that a gateway sends instead of an event stream: an HTML or XML page, or an error as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld._messages import HEAD_BYTES, is_markup
from streamweld._pure.dialect.chat.error import is_error_body

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["describe_error_page"]

_BLANKS: Final = b" \t\r\n"


def describe_error_page(body: bytes) -> str:
    """Describe a complete body that is an error page, with the gateway's message. Return an empty string for others."""
    if is_markup(body[:HEAD_BYTES]):
        return "a page of HTML or XML"
    if body.lstrip(_BLANKS)[:1] not in (b"{", b"["):
        return ""
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if isinstance(value, list):
        entries = cast("list[object]", value)
        value = entries[0] if len(entries) == 1 else None
    if not isinstance(value, dict):
        return ""
    document = cast("dict[str, Any]", value)
    error: object = document.get("error")
    if error is None and not is_error_body(document):
        return ""
    message = _message(cast("Mapping[str, Any]", error) if isinstance(error, dict) else document)
    return f"an error as JSON: {message}" if message else "an error as JSON"


def _message(holder: Mapping[str, Any]) -> str:
    found = [holder[name] for name in ("message", "detail", "error") if isinstance(holder.get(name), str)]
    return found[0] if found else ""
