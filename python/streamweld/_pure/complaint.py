"""An error of a gateway as its fields, whatever shape it has: an object, a text, or any other value.

Knows the three members that errors have in every dialect. Where an error stands in a payload, and what it does to the
stream, is decided elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamweld._pure.kinds import is_object
from streamweld._pure.members import compact

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld._pure.json_door import Path, Payload

__all__ = ["ErrorFields", "read_error", "text_error"]

MAX_TEXT = 512  # characters of a message that is not JSON


@dataclass(frozen=True, slots=True)
class ErrorFields:
    """What an error says."""

    code: str | None
    kind: str | None
    message: str

    def cleaned(self, clean: Callable[[str], str]) -> ErrorFields:
        """The same, every text run through `clean`."""
        return ErrorFields(self.code and clean(self.code), self.kind and clean(self.kind), clean(self.message))


def read_error(payload: Payload, path: Path, error: object) -> ErrorFields:
    """The error that stands at `path`: `code`, `type` and `message` (or `detail`), or all of it as the message."""
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


def text_error(text: str) -> ErrorFields:
    """An error that is plain text."""
    return ErrorFields(None, None, text[:MAX_TEXT])


def _plain(payload: Payload, path: Path, value: object) -> str:
    """A string's text, any other value as compact JSON."""
    return value if isinstance(value, str) else compact(payload.raw(*path) or "")
