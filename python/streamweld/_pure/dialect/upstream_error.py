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

__all__ = ["ErrorFields", "is_bare", "read_error", "reports_failure", "text_error"]

MAX_TEXT = 512  # characters of a message that is not JSON
HTTP_ERROR = 400  # the first HTTP status that is an error
_STATUS_LIMIT = 10**9  # a number beyond it is not a status

# Members of an error outside of any dialect, in the order in which they are read. A path leads through objects.
_MESSAGES: tuple[Path, ...] = (
    ("message",), ("error_message",), ("errorMessage",), ("error_msg",), ("msg",), ("detail",), ("title",),
    ("base_resp", "status_msg"), ("errmsg",), ("err_msg",), ("error_description",), ("Message",), ("Error", "Message"),
    ("fault", "faultstring"),
)  # fmt: skip
_CODES: tuple[Path, ...] = (
    ("code",), ("error_code",), ("errorCode",), ("statusCode",), ("status_code",), ("base_resp", "status_code"),
    ("errcode",), ("err_code",), ("errno",), ("retcode",), ("ret",), ("Error", "Code"),
)  # fmt: skip
_KINDS: tuple[Path, ...] = (("type",), ("error_type",), ("errorType",), ("__type",))
_OWN = (
    "error_type", "error_message", "error_msg", "error_code", "errorType", "errorMessage", "errorCode", "errors",
    "error_description", "fault", "exception", "Error", "__type", "Message",
)  # fmt: skip
_WORDS = ("message", "msg", "detail", "title", "errmsg", "err_msg")
_STATUSES = ("code", "statusCode", "status_code", "status")
_RESULTS = ("errcode", "err_code", "errno", "retcode", "ret")  # zero is success
_FAILED = ("error", "failed", "fail", "failure")


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
    status = error.get("status")
    kind = _first(payload, path, error, _KINDS)
    message = _first(payload, path, error, _MESSAGES)
    return ErrorFields(
        _first(payload, path, error, _CODES),
        kind if kind is not None else status if isinstance(status, str) else None,
        _plain(payload, path, error) if message is None else message,
    )


def reports_failure(value: Mapping[str, Any]) -> bool:
    """Whether an object that has nothing of its dialect reports an error in one of the shapes of gateways.

    An error member of its own, a flag that denies success, or a status that is an error with words beside it.
    """
    if any(value.get(name) for name in _OWN) or value.get("success") is False or value.get("ok") is False:
        return True
    inner = value.get("base_resp")
    if is_object(inner) and _is_status(inner.get("status_code"), 1):
        return True
    worded = any(isinstance(value.get(name), str) and value[name] for name in _WORDS)
    if worded and (
        value.get("status") in _FAILED
        or any(_is_status(value.get(name), HTTP_ERROR) for name in _STATUSES)
        or any(_is_status(value.get(name), 1) for name in _RESULTS)
    ):
        return True
    return "detail" in value and "type" not in value and _is_detail(value["detail"])


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


def _first(payload: Payload, path: Path, error: Mapping[str, Any], places: tuple[Path, ...]) -> str | None:
    """The first of the members that is there, as text."""
    for place in places:
        value: object = error
        for name in place:
            value = value.get(name) if is_object(value) and isinstance(name, str) else None
        if value is None or (place == ("detail",) and not _is_detail(value)):
            continue
        return _plain(payload, (*path, *place), value)
    return None


def _is_status(value: object, least: int) -> bool:
    """A number, also as digits, from `least` on (or below zero)."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 18:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return least <= value < _STATUS_LIMIT or -_STATUS_LIMIT <= value < 0


def _is_detail(value: object) -> bool:
    """Words, or what did not validate, item by item."""
    return isinstance(value, str) or (is_array(value) and len(value) > 0)


def _plain(payload: Payload, path: Path, value: object) -> str:
    """A string's text, any other value as compact JSON."""
    return value if isinstance(value, str) else compact(payload.raw(*path) or "")
