"""Error bodies: the proxy's own errors, and upstream errors converted to another API's format.

A refusal is always JSON. A refusal never quotes an upstream body, unless that body is an API error.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from streamweld._show import printable
from streamweld._spec import load_proxy
from streamweld.integrations.proxy.json_values import object_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Refusal", "converted_error", "refusal_body"]

_TYPES: Final = load_proxy()["errors"]
_SHOWN: Final = 1000


class Refusal(Exception):
    """Raised to end a request before a response has started.

    The exception has a status, a code that streamweld defines, a message without payload data, and headers.
    """

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers


def refusal_body(dialect: str | None, status: int, code: str | None, message: str, kind: str | None = None) -> bytes:
    """Return an error body in the API's format, or in OpenAI's format if the dialect is unknown."""
    word = str(status)
    if dialect == "anthropic":
        types = _TYPES["anthropic"]
        error = {"type": kind or types.get(word, types["other"]), "message": message}
        return orjson.dumps({"type": "error", "error": error})
    if dialect == "gemini":
        types = _TYPES["gemini"]
        return orjson.dumps({"error": {"code": status, "message": message, "status": types.get(word, types["other"])}})
    types = _TYPES["openai"]
    kind = kind or types.get(word, types["other"])
    return orjson.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})


def converted_error(dialect: str, status: int, body: bytes | bytearray) -> bytes:
    """Convert an upstream's error to another API's format.

    The message and code are kept. The status determines the error type.
    """
    try:
        given_value: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        given_value = None
    if isinstance(given_value, list):  # for a stream, the Gemini API sends the error in an array
        given_value = next(iter(cast("list[object]", given_value)), None)
    error: object = object_of(given_value).get("error", given_value)
    message, code = _text(error, "message"), _text(error, "code")
    if isinstance(error, str):
        message = error
    shown = printable(message, _SHOWN) if message else f"the upstream answered with status {status}"
    return refusal_body(dialect, status, printable(code, 100) if code else None, shown)


def _text(error: object, name: str) -> str | None:
    value: object = object_of(error).get(name)
    return value if isinstance(value, str) and value else None
