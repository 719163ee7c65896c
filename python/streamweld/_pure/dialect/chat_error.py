"""Finds the error in a payload of a 200 stream and reads it, whatever its shape.

Knows the shapes in which gateways of the Chat dialect report one; what it does to the stream is decided elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.chat_kinds import is_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld._pure.json_door import Path, Payload

MAX_TEXT = 512  # characters of a message that is not JSON

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[ \t\r\n]+')


@dataclass(frozen=True, slots=True)
class ErrorFields:
    code: str | None
    kind: str | None
    message: str

    def cleaned(self, clean: Callable[[str], str]) -> ErrorFields:
        """The same, every text run through `clean`."""
        return ErrorFields(self.code and clean(self.code), self.kind and clean(self.kind), clean(self.message))


def find_error(payload: Payload, value: Mapping[str, Any], path: Path, event: str) -> ErrorFields | None:
    """The error of a payload object, or None. `choices` beside it do not matter here."""
    error = value.get("error")
    streaming = "choices" in value
    if is_error(error, beside_choices=streaming):
        return _read_member(payload, value, path)
    if value.get("object") == "error" or event == "error":
        return _read_object(payload, value, path)
    if streaming or "usage" in value or value.get("message") is None:
        return None
    if value.get("code") is None and value.get("type") is None:
        return None
    return _read_object(payload, value, path)


def is_error(error: object, *, beside_choices: bool) -> bool:
    """Whether an `error` member says that there was one: beside choices, an empty one is a placeholder."""
    if error is None:
        return False
    return not (beside_choices and (error is False or error in ("", {}, [])))


def read_choice_error(payload: Payload, value: Mapping[str, Any], path: Path) -> ErrorFields | None:
    """The error of one choice (`choices[i].error`), or None."""
    return _read_member(payload, value, path) if is_error(value.get("error"), beside_choices=True) else None


def text_error(text: str) -> ErrorFields:
    """An error that is plain text."""
    return ErrorFields(None, None, text[:MAX_TEXT])


def compact(raw: str) -> str:
    """A JSON text without the white space between its tokens."""
    return _TOKEN.sub(lambda found: found[0] if found[0][0] == '"' else "", raw)


def _read_member(payload: Payload, value: Mapping[str, Any], path: Path) -> ErrorFields:
    error = value["error"]
    inner = (*path, "error")
    if is_object(error):
        return _read_object(payload, error, inner)
    message = error if isinstance(error, str) else compact(payload.raw(*inner) or "")
    return ErrorFields(_label(payload, value, path, "code"), _label(payload, value, path, "type"), message)


def _read_object(payload: Payload, value: Mapping[str, Any], path: Path) -> ErrorFields:
    message = value.get("message")
    if isinstance(message, str):
        text = message
    elif message is not None:
        text = compact(payload.raw(*path, "message") or "")
    else:
        text = compact(payload.raw(*path) or "")
    return ErrorFields(_label(payload, value, path, "code"), _label(payload, value, path, "type"), text)


def _label(payload: Payload, value: Mapping[str, Any], path: Path, key: str) -> str | None:
    """A code or type as text: strings as they are, numbers as they were written."""
    label = value.get(key)
    if isinstance(label, str):
        return label or None
    if isinstance(label, int | float) and not isinstance(label, bool):
        return payload.raw(*path, key)
    return None
