"""Recognize a body that a gateway sends instead of an event stream: an HTML or XML page, an error as JSON, or a line of
text.
"""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld._messages import HEAD_BYTES, is_markup
from streamweld._pure.dialect.chat.error import is_error_body

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["TEXT", "describe_error_page", "is_error_text"]

TEXT: Final = "text that is not an event stream"
_BLANKS: Final = b" \t\r\n"
_JSON: Final = re.compile(rb"[ \t\r\n]*[{\[]")
_LONGEST_JSON: Final = 1 << 16  # a longer document is not an error, and parsing it would take many times its size
# The beginnings of gateways' plain-text errors: the reason phrase of an HTTP status, with or without the status code,
# or one of the messages of Envoy, Cloudflare, HAProxy and Go.
_REASONS: Final = "|".join([re.escape(status.phrase) for status in HTTPStatus if status >= HTTPStatus.BAD_REQUEST])
_ERROR_TEXT: Final = re.compile(
    rf"(?:HTTP/[\d.]+ )?(?:[45]\d\d[ :-]+)?(?:{_REASONS}|page not found|upstream |no healthy upstream|stream timeout"
    r"|error code: |an error |internal error|error: )",
    re.IGNORECASE,
)


def describe_error_page(body: memoryview) -> str:
    """Describe an error page, including the gateway's message.

    Return an empty string if the body is not an error page.
    """
    if is_markup(bytes(body[:HEAD_BYTES])):
        return "a page of HTML or XML"
    if len(body) > _LONGEST_JSON or _JSON.match(body) is None:
        return ""
    try:
        value: object = json.loads(bytes(body))
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


def is_error_text(body: memoryview) -> bool:
    """Return whether a body is the plain text of an error, such as `502 Bad Gateway`."""
    return _ERROR_TEXT.match(bytes(body[:HEAD_BYTES]).strip(_BLANKS).decode("utf-8", "replace")) is not None


def _message(holder: Mapping[str, Any]) -> str:
    found = [holder[name] for name in ("message", "detail", "error") if isinstance(holder.get(name), str)]
    return found[0] if found else ""
