"""Extracts the code, type, and message from an error of any shape that a gateway sends inside a stream.

The same rules apply to every dialect. The caller finds the error in a payload and decides how it affects the stream.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamweld._pure.json.kinds import is_array, is_object
from streamweld._pure.json.members import compact

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld._pure.json.scanner import Path, Payload

__all__ = [
    "ErrorFields",
    "is_bare",
    "is_blank_error",
    "is_message",
    "is_notice",
    "is_problem",
    "is_raised_by_clients",
    "is_stated",
    "read_error",
    "reports_failed_base",
    "reports_failure",
    "reports_success",
    "text_error",
]

MAX_TEXT = 512  # maximum length, in characters, of a message taken from text that is not JSON
HTTP_ERROR = 400  # the lowest HTTP status that indicates an error
_HTTP_LIMIT = 600  # HTTP statuses are below this value
_STATUS_LIMIT = 10**9  # numbers greater than or equal to this value are not treated as a status

# Members that may contain the message of an error, in the order in which they are tried. A path with several names
# leads into nested objects.
_MESSAGES: tuple[Path, ...] = (
    ("message",), ("error_message",), ("errorMessage",), ("error_msg",), ("msg",), ("detail",), ("title",),
    ("base_resp", "status_msg"), ("errmsg",), ("err_msg",), ("error_description",), ("Message",), ("Error", "Message"),
    ("fault", "faultstring"), ("reason",), ("httpMessage",), ("http_message",), ("errorText",), ("err",),
    ("error_info", "message"), ("error_info", "msg"), ("header", "message"), ("ErrorMsg", "Msg"),
    ("Response", "Error", "Message"), ("data", "error", "message"), ("data",),
)  # fmt: skip
_CODES: tuple[Path, ...] = (
    ("code",), ("error_code",), ("errorCode",), ("statusCode",), ("status_code",), ("base_resp", "status_code"),
    ("errcode",), ("err_code",), ("errno",), ("retcode",), ("ret",), ("Error", "Code"),
    ("originalStatusCode",), ("http_status",), ("httpStatus",), ("httpCode",), ("http_code",), ("error_info", "code"),
    ("header", "code"), ("ErrorMsg", "Code"), ("Response", "Error", "Code"), ("data", "error", "code"),
)  # fmt: skip
_KINDS: tuple[Path, ...] = (("type",), ("error_type",), ("errorType",), ("__type",))
_OWN = (
    "error_type", "error_message", "error_msg", "error_code", "errorType", "errorMessage", "errorCode", "errors",
    "error_description", "fault", "exception", "Error", "__type", "Message",
    "upstream_error", "errorText", "error_info", "ErrorMsg", "err",
    "internalServerException", "modelStreamErrorException", "modelTimeoutException",
    "serviceUnavailableException", "throttlingException", "validationException",
)  # fmt: skip
_WRAPPED = (("Response", "Error"), ("data", "error"))  # objects in an envelope that are present only in an error
_WORDS = ("message", "msg", "detail", "title", "errmsg", "err_msg", "reason", "httpMessage", "http_message")
# Members that may contain an error message, in an object that does not look like an error otherwise.
_SENTENCES = ("message", "msg", "errmsg", "err_msg")
_STATUSES = (
    "code", "statusCode", "status_code", "status", "originalStatusCode", "http_status", "httpStatus", "httpCode",
    "http_code",
)  # fmt: skip
# Members that can only contain the status of an HTTP response.
_HTTP_STATUSES = (
    "statusCode", "status_code", "originalStatusCode", "http_status", "httpStatus", "httpCode", "http_code",
)  # fmt: skip
_RESULTS = ("errcode", "err_code", "errno", "retcode", "ret")  # zero means success
_FAILED = ("error", "failed", "fail", "failure")
_SUCCEEDED = ("ok", "OK", "success", "succeeded")
# Words in an event name or a payload type that identify progress reports of a request.
_NOTICES = frozenset({
    "status", "keepalive", "heartbeat", "ping", "progress", "metadata", "info", "notice", "notification", "log",
    "debug", "trace", "tool",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class ErrorFields:
    """The code, type, and message of an error."""

    code: str | None
    kind: str | None
    message: str

    def cleaned(self, clean: Callable[[str], str]) -> ErrorFields:
        """Return the fields after applying `clean` to every text."""
        return ErrorFields(self.code and clean(self.code), self.kind and clean(self.kind), clean(self.message))


def read_error(payload: Payload, path: Path, error: object) -> ErrorFields:
    """Return the error at `path`.

    The fields of the error are taken from members such as `code`, `type`, and `message`. If no member contains a
    message, the message is the JSON of the complete value.
    """
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
    """Return whether an object without members of its dialect has a known error shape.

    The known shapes are a gateway-specific error member, a flag that indicates failure, the status of a failed HTTP
    response, and another error status with a message.
    """
    if any(value.get(name) for name in _OWN) or value.get("success") is False or value.get("ok") is False:
        return True
    if any(_lookup(value, path) for path in _WRAPPED) or value.get("event") == "error":
        return True
    if reports_failed_base(value) or _is_status(_lookup(value, ("header", "code")), 1):
        return True
    if any(_is_http_error(value.get(name)) for name in _HTTP_STATUSES) and not _states_success(value):
        return True
    worded = any(isinstance(value.get(name), str) and value[name] for name in _WORDS)
    if (
        worded
        and not _states_success(value)
        and (
            value.get("status") in _FAILED
            or value.get("result") in _FAILED
            or any(_is_status(value.get(name), HTTP_ERROR) for name in _STATUSES)
            or any(_is_status(value.get(name), 1) for name in _RESULTS)
        )
    ):
        return True
    return "detail" in value and "type" not in value and _is_detail(value["detail"])


def reports_failed_base(value: Mapping[str, Any]) -> bool:
    """Return whether `base_resp` reports a failure (MiniMax). It may be next to the choices of a chunk."""
    return _is_status(_lookup(value, ("base_resp", "status_code")), 1)


def is_problem(value: Mapping[str, Any]) -> bool:
    """Return whether the object has the form of problem details (RFC 9457): a URI as type, the status of a failed HTTP
    response, and a title or detail.
    """
    kind = value.get("type")
    is_uri = isinstance(kind, str) and (":" in kind or "/" in kind)
    worded = any(isinstance(value.get(name), str) for name in ("title", "detail"))
    return is_uri and worded and _is_http_error(value.get("status"))


def is_notice(name: str) -> bool:
    """Return whether an event name or a payload type identifies a progress report of a request.

    The name of a progress report contains a word of `_NOTICES` and no word that means failure. A progress report is not
    an error of the response, even if it reports that a tool failed.
    """
    words = re.split(r"[._\-:/]", name)
    failed = any(word in _FAILED or word.endswith("exception") for word in words)
    return not failed and not _NOTICES.isdisjoint(words)


def is_stated(error: object) -> bool:
    """Return whether the value of `error` is an object with a message or a code. Such an object is an error in every
    kind of event.
    """
    return is_object(error) and not is_blank_error(error) and any(error.get(name) for name in ("message", "code"))


def is_blank_error(error: object) -> bool:
    """Return whether the value of `error` has no content.

    A value without content is null, or a value that gateways send instead of null: `""`, `"0"`, `false`, `0`, `{}`,
    `[]`. Some gateways write into every chunk an object whose members all have such values.
    """
    if is_object(error):
        return all(map(_is_blank, error.values()))
    if is_array(error):
        return all(map(_is_blank, error))
    return _is_blank(error)


def is_raised_by_clients(error: object) -> bool:
    """Return whether official clients raise an exception for a blank `error`, because JavaScript or Python treats the
    value as true.
    """
    return is_blank_error(error) and (is_object(error) or is_array(error) or (isinstance(error, str) and error != ""))


def _is_blank(value: object) -> bool:
    return not value or (isinstance(value, str) and value.strip() in ("", "0"))


def reports_success(value: Mapping[str, Any]) -> bool:
    """Return whether the object reports success, either in words or with a status or code of 0 or 200 to 299."""
    sent = [value.get(name) for name in _STATUSES]
    zero = any(_is_status(one, 0) and not _is_status(one, 1) for one in sent)
    return zero or any(_is_status(one, 200) and not _is_status(one, 300) for one in sent) or _states_success(value)


def _states_success(value: Mapping[str, Any]) -> bool:
    """Return whether a status or the message of the object is `true` or a word such as `ok`.

    If the object states success in words, its code may be any number, because some gateways define their own codes for
    success, such as 20000.
    """
    return any(
        sent is True or (isinstance(sent, str) and sent in _SUCCEEDED)
        for sent in (value.get(name) for name in (*_STATUSES, *_SENTENCES))
    )


def is_bare(value: Mapping[str, Any]) -> bool:
    """Return whether the object has only one member: a string in `message`, or a usable `detail`.

    Proxies and web frameworks send errors in this form.
    """
    match list(value):
        case ["detail"]:
            return _is_detail(value["detail"])
        case ["message"]:
            return isinstance(value["message"], str)
        case _:
            return False


def is_message(value: object) -> bool:
    """Return whether an object that no dialect defines has no type, and has a message, or a blank message with a code.

    Gateways send notices and errors in this form. An object in this form is an error if it is the last object of the
    response.
    """
    if not is_object(value) or value.get("type") is not None or reports_success(value):
        return False
    sentences = [value[name] for name in _SENTENCES if isinstance(value.get(name), str)]
    has_code = any(_is_status(value.get(name), 1) for name in (*_STATUSES, *_RESULTS))
    return bool(sentences) and (has_code or any(text.strip() for text in sentences))


def text_error(text: str) -> ErrorFields:
    """Return an error for text that is not JSON. The message of the error is the beginning of the text."""
    return ErrorFields(None, None, text[:MAX_TEXT])


def _first(payload: Payload, path: Path, error: Mapping[str, Any], paths: tuple[Path, ...]) -> str | None:
    """Return, as text, the value at the first path in `paths` that leads to a usable value, or None."""
    for path_of_field in paths:
        value = _lookup(error, path_of_field)
        if value is None or (path_of_field == ("detail",) and not _is_detail(value)):
            continue
        if path_of_field == ("data",) and not isinstance(value, str):
            continue
        return _plain(payload, (*path, *path_of_field), value)
    return None


def _lookup(value: object, path: Path) -> object:
    """Return the value at a path, or None if the value is absent."""
    for name in path:
        value = value.get(name) if is_object(value) and isinstance(name, str) else None
    return value


def _is_status(value: object, least: int) -> bool:
    """Return whether the value is a number that is negative or at least `least`. The number may be an integer or a
    string of digits.
    """
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 18:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return least <= value < _STATUS_LIMIT or -_STATUS_LIMIT <= value < 0


def _is_http_error(value: object) -> bool:
    """Return whether the value is the status of a failed HTTP response."""
    return _is_status(value, HTTP_ERROR) and not _is_status(value, _HTTP_LIMIT)


def _is_detail(value: object) -> bool:
    """Return whether the value can be the `detail` of an error from a web framework: a text, or a non-empty array of
    validation errors.
    """
    return (isinstance(value, str) and not _is_blank(value)) or (is_array(value) and len(value) > 0)


def _plain(payload: Payload, path: Path, value: object) -> str:
    """Return the text of a string, or any other value as compact JSON."""
    return value if isinstance(value, str) else compact(payload.raw(*path) or "")
