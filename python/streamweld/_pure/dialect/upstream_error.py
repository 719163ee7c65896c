"""An error of a gateway as its fields, whatever shape it has: an object, a text, or any other value.

Knows the three members that errors have in every dialect. Where an error stands in a payload, and what it does to the
stream, is decided elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamweld._pure.json.kinds import is_array, is_object
from streamweld._pure.json.members import compact

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld._pure.json.scanner import Path, Payload

__all__ = ["ErrorFields", "is_bare", "read_error", "text_error"]

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
    """The error that stands at `path`: `code`, `type` (`status`) and `message` (`detail`), or all as message."""
    if not is_object(error):
        return ErrorFields(None, None, _plain(payload, path, error))
    code, kind, status = error.get("code"), error.get("type"), error.get("status")
    said = "detail" if error.get("message") is None and _is_detail(error.get("detail")) else "message"
    message = error.get(said)
    return ErrorFields(
        None if code is None else _plain(payload, (*path, "code"), code),
        _plain(payload, (*path, "type"), kind) if kind is not None else status if isinstance(status, str) else None,
        _plain(payload, path, error) if message is None else _plain(payload, (*path, said), message),
    )


def is_bare(value: Mapping[str, Any]) -> bool:
    """Whether all of a body is what a proxy or a web framework says in the place of an answer."""
    match list(value):
        case ["detail"]:
            return _is_detail(value["detail"])
        case ["message"]:
            return isinstance(value["message"], str)
        case _:
            return False


def text_error(text: str) -> ErrorFields:
    """An error that is plain text."""
    return ErrorFields(None, None, text[:MAX_TEXT])


def _is_detail(value: object) -> bool:
    """Words, or what did not validate, item by item."""
    return isinstance(value, str) or (is_array(value) and len(value) > 0)


def _plain(payload: Payload, path: Path, value: object) -> str:
    """A string's text, any other value as compact JSON."""
    return value if isinstance(value, str) else compact(payload.raw(*path) or "")
