"""Check whether the clients of a dialect raise an exception for an upstream error in the form in which it was sent.

openai-python and openai-node raise an exception if a payload has an `error` member with a non-empty value.
@ai-sdk/anthropic and both AI SDK protocols check the `type` member. google-genai raises an exception only if `error` is
the first member. These clients treat an error in any other form as a chunk without content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._json import loads_raw
from streamweld._pure.json.kinds import is_object

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["is_own"]


def is_own(dialect: str, event: str | None, payload: bytes) -> bool:
    """Return True if the dialect's clients raise an exception for this payload. `event` is the name of the payload's
    event.
    """
    try:
        value: object = loads_raw(payload.decode("utf-8", "replace"))
    except ValueError:
        return False
    if not is_object(value):
        return False
    error: object = value.get("error")
    is_typed = value.get("type") == "error"
    if dialect == "chat":
        return bool(error)
    if dialect == "responses":
        return bool(error) or _is_own_event(value, event)
    if dialect == "anthropic":
        return is_typed and is_object(error) and bool(error)
    if dialect == "gemini":
        return is_object(error) and bool(error) and next(iter(value)) == "error"
    if dialect == "ai-sdk-ui":
        return is_typed and isinstance(value.get("errorText"), str)
    return is_typed and "error" in value


def _is_own_event(value: Mapping[str, Any], event: str | None) -> bool:
    """Return True for a Responses error without an `error` member: an event named `error` with the error's members at
    the top level, or a failed response.
    """
    if value.get("type") == "response.failed":
        return is_object(value.get("response"))
    return event == "error" == value.get("type") and isinstance(value.get("message"), str)
