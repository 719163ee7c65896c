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
    if error is not None and not (_says_nothing(error) and _brings_chunk(value)):
        return _read(payload, (*path, "error"), error)
    if value.get("object") == "error" or event == "error":
        return _read(payload, path, value)
    return _read(payload, path, value) if _complains(value) else None


def is_complaint(value: Mapping[str, Any]) -> bool:
    """Whether a whole body is an error without the word: a message with its code, or a web framework's `detail`."""
    return _complains(value) or (list(value) == ["detail"] and isinstance(value["detail"], str))


def read_choice_error(payload: Payload, value: Mapping[str, Any], path: Path) -> ErrorFields | None:
    """The error of one choice (`choices[i].error`), or None."""
    error = value.get("error")
    return None if _says_nothing(error) else _read(payload, (*path, "error"), error)


def value_error(payload: Payload) -> ErrorFields:
    """The error of a payload that is one as a whole, whatever it is."""
    return _read(payload, (), payload.value)


def text_error(text: str) -> ErrorFields:
    """An error that is plain text."""
    return ErrorFields(None, None, text[:MAX_TEXT])


def compact(raw: str) -> str:
    """A JSON text without the white space between its tokens."""
    return _TOKEN.sub(lambda found: found[0] if found[0][0] == '"' else "", raw)


def _complains(value: Mapping[str, Any]) -> bool:
    if "choices" in value or "usage" in value or value.get("message") is None:
        return False
    return value.get("code") is not None or value.get("type") is not None


def _says_nothing(error: object) -> bool:
    """Null and what some gateways send in its place: `""`, `false`, `0`, `{}`, `[]`."""
    return not error


def _brings_chunk(value: Mapping[str, Any]) -> bool:
    """Whether there is a chunk beside the error, maybe in an envelope (E17)."""
    inner = value.get("data")
    return any(name in value or (is_object(inner) and name in inner) for name in ("choices", "usage"))


def _read(payload: Payload, path: Path, error: object) -> ErrorFields:
    if not is_object(error):
        return ErrorFields(None, None, _plain(payload, path, error))
    code, kind = error.get("code"), error.get("type")
    said = "detail" if error.get("message") is None and isinstance(error.get("detail"), str) else "message"
    message = error.get(said)
    return ErrorFields(
        None if code is None else _plain(payload, (*path, "code"), code),
        None if kind is None else _plain(payload, (*path, "type"), kind),
        _plain(payload, path, error) if message is None else _plain(payload, (*path, said), message),
    )


def _plain(payload: Payload, path: Path, value: object) -> str:
    """A string's text, any other value as compact JSON."""
    return value if isinstance(value, str) else compact(payload.raw(*path) or "")
