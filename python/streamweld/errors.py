"""Every exception that streamweld raises.

    StreamweldError(Exception)
     |- StreamError                              the input or the upstream is at fault
     |   |- FramingError                         the bytes are not a well-formed event stream
     |   |   `- NotAnEventStream                 .body_head .content_type
     |   |- ChunkDecodeError(ValueError)         the data of an event is not usable JSON: .pos
     |   |- LimitExceeded                        .limit_name .limit .observed
     |   |- AssemblyError                        a tool call cannot be assembled
     |   |   |- InvalidToolIndex
     |   |   |- ToolCallConflict
     |   |   `- OrphanDelta
     |   |- ArgumentsError(ValueError)           `ToolCall.parsed` without an object: .state .reason .part .call_id
     |   |- UpstreamError                        the gateway sent an error: .code .kind .message
     |   |- TruncatedStream(EOFError)            the stream ended too early: .where .open_items
     |   |- UnknownDialect                       .seen .specified
     |   |- SpliceError                          the stream of a reconnect does not continue the first
     |   |- LifecycleError                       a conversion would break the target's rules: .violations
     |   `- InternalError                        a bug in streamweld: please report it
     |- HistoryError                             a request history breaks a rule: .rule .path .violations
     `- UsageError(RuntimeError)                 streamweld was used incorrectly
         |- ParserBusy                           two calls into one parser at the same time
         `- MissingExtra(ImportError)            an optional dependency is not installed: .extra

This module builds all messages from `_spec/diagnostics.json`, `_spec/errors.json`, the detail of the error and its
place in the stream. A message is one line. Text from the stream (a detail, a gateway's error message, the beginning of
an unrecognized body) is shortened, and its control characters are escaped. This module does not depend on streams or
backends.
"""

# ruff: noqa: SIM905 (a list of words is easier to read as words)

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, Unpack, cast

from streamweld._literals import DIALECTS
from streamweld._messages import code_text, input_hint
from streamweld._show import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamweld import Event, Response

__all__ = [
    "ArgumentsError",
    "AssemblyError",
    "ChunkDecodeError",
    "FramingError",
    "HistoryError",
    "InternalError",
    "InvalidToolIndex",
    "LifecycleError",
    "LimitExceeded",
    "MissingExtra",
    "NotAnEventStream",
    "OrphanDelta",
    "ParserBusy",
    "SpliceError",
    "StreamError",
    "StreamweldError",
    "ToolCallConflict",
    "TruncatedStream",
    "UnknownDialect",
    "UpstreamError",
    "UsageError",
]

RAW_BYTES: Final = 256
_DETAIL_CHARS: Final = 256
_BEGINNING_CHARS: Final = 40

# Messages for the base classes, and for the places where a stream can be truncated. The messages for rules are in
# `_spec`.
_SENTENCES: Final = {
    "stream": "the stream cannot be read",
    "framing": "the bytes are not a valid event stream",
    "assembly": "a tool call cannot be assembled",
    "truncated_empty": "the body contains no events",
    "truncated_idle": "the stream stalled",
    "truncated_transport": "the connection broke before the stream ended",
}

# Error codes and types that gateways send: first those after which a retry cannot succeed, then those after which a
# retry may succeed. The first list takes precedence, because the error for an exhausted quota may have the status 429.
_FINAL: Final = frozenset(
    "insufficient_quota billing_error billing_not_active context_length_exceeded content_filter "
    "content_policy_violation invalid_request_error invalid_request invalid_api_key authentication_error "
    "permission_error permission_denied not_found_error model_not_found request_too_large invalid_argument "
    "400 401 402 403 404 405 413 415 422".split()
)
_PASSING: Final = frozenset(
    "rate_limit_exceeded rate_limit_error rate_limited too_many_requests resource_exhausted "
    "overloaded_error overloaded server_error api_error internal_error internal_server_error engine_overloaded "
    "service_unavailable unavailable timeout timeout_error deadline_exceeded "
    "408 409 425 429 500 502 503 504 520 522 524 529".split()
)

# Members that requests have and responses do not.
_REQUEST_MEMBERS: Final = frozenset({"messages", "contents"})

_E = TypeVar("_E", bound="StreamError")


class _CommonFields(TypedDict, total=False):
    """The keyword arguments that every StreamError accepts in addition to its own."""

    rule: str
    detail: str
    byte_offset: int | None
    event_ordinal: int | None
    event_type: str | None
    path: str | None
    raw: bytes
    retryable: bool | None
    policy: str | None
    partial: Response | None
    events: Iterable[Event]


class StreamweldError(Exception):
    """The base class of all exceptions that streamweld defines."""


class StreamError(StreamweldError):
    """A fault of the input or of the upstream.

    Attributes:
        rule: the stable snake_case code of the fault: a diagnostic code, `limit_<name>`, or a code that this module
            defines.
        detail: the part of the message that follows the text of the rule; it may contain text from the stream.
        byte_offset: the absolute offset of the event's first data line, in bytes of the decoded body.
        event_ordinal: the 0-based number of that event.
        event_type: the name of that event, if it has an `event:` line.
        path: JSON pointer to the offending member, if known.
        raw: the first 256 bytes of the payload. These bytes are not part of the message.
        retryable: whether the same request may succeed if sent again; None if unknown.
        policy: the name of the base policy with which the stream was read.
        hint: what to do about the fault, if the input shows what went wrong; otherwise empty. The message ends with
            this hint.
        partial: everything read before the fault, as a `Response`; None outside a parser.
        events: the events that the failed call decoded before the fault.
    """

    _rule = "stream"
    _retryable: bool | None = None
    _own: tuple[str, ...] = ()  # additional fields of a subclass, for to_dict() and repr()

    def __init__(self, **common: Unpack[_CommonFields]) -> None:
        self.rule: str = common.get("rule") or self._rule
        self.detail: str = common.get("detail", "")
        self.byte_offset: int | None = common.get("byte_offset")
        self.event_ordinal: int | None = common.get("event_ordinal")
        self.event_type: str | None = common.get("event_type")
        self.path: str | None = common.get("path")
        self.raw: bytes = bytes(common.get("raw", b"")[:RAW_BYTES])
        retryable = common.get("retryable")
        self.retryable: bool | None = self._retryable if retryable is None else retryable
        self.policy: str | None = common.get("policy")
        self.partial: Response | None = common.get("partial")
        self.events: list[Event] = list(common.get("events", ()))
        self.hint: str = ""
        unknown = common.keys() - _CommonFields.__annotations__.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__}() got unexpected keyword arguments: {', '.join(sorted(unknown))}")
        super().__init__(self._sentence())

    def _text(self) -> str:
        return _SENTENCES.get(self.rule) or code_text(self.rule)

    def _message_detail(self) -> str:
        """Return the part of the message that follows the text of the rule."""
        return self.detail

    def _sentence(self) -> str:
        message = printable(self._message_detail(), _DETAIL_CHARS)
        where = "" if self.byte_offset is None else f" at byte {self.byte_offset}"
        if self.event_ordinal is not None:
            where += f", event {self.event_ordinal}"
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self._text()}{': ' if message else ''}{message} [{self.rule}{where}]{hint}"

    def advise(self, hint: str) -> None:
        """Set `hint`, and rebuild the message to include it."""
        self.hint = hint
        super().__init__(self._sentence())

    def __repr__(self) -> str:
        names = ("rule", *self._own, "byte_offset", "event_ordinal")
        return f"{type(self).__name__}({', '.join([f'{name}={getattr(self, name)!r}' for name in names])})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), str(self), self.__dict__)

    def to_dict(self, *, include_raw: bool = False) -> dict[str, Any]:
        """Return the exception as data for `json.dumps`, without `partial` and `events`.

        Bytes from the stream (`raw`, `body_head`) are included only with `include_raw`, as text with U+FFFD for invalid
        UTF-8.
        """
        names = [
            "rule",
            "byte_offset",
            "event_ordinal",
            "event_type",
            "path",
            "retryable",
            "policy",
            "detail",
            *self._own,
        ]
        if include_raw:
            names.append("raw")
        out: dict[str, Any] = {"error": type(self).__name__, "text": str(self)}
        for name in names:
            value: object = getattr(self, name)
            if isinstance(value, bytes):
                if not include_raw:
                    continue
                value = value.decode("utf-8", "replace")
            out[name] = list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value
        return out


def _beginning(head: bytes) -> str:
    """Return the first characters of a body in quotation marks."""
    text = head.decode("utf-8", "replace")
    return f"it begins with {text[:_BEGINNING_CHARS]!r}{'…' if len(text) > _BEGINNING_CHARS else ''}" if text else ""


def _restored(cls: type[_E], sentence: str, state: dict[str, Any]) -> _E:
    error = cls.__new__(cls, sentence)
    error.__dict__.update(state)
    return error


class FramingError(StreamError):
    """The bytes break a rule of the event-stream format.

    `rule` is a diagnostic code, or `line_ends_missing` if the line endings were removed before the stream was parsed.
    """

    _rule = "framing"

    def __init__(self, **common: Unpack[_CommonFields]) -> None:
        super().__init__(**common)
        if self.rule == "line_ends_missing":
            self.advise("the input has no line endings: pass raw bytes (iter_bytes()), not the lines of iter_lines()")


class NotAnEventStream(FramingError):
    """The body is not an event stream; for example, it is an HTML page or plain text.

    `body_head`: the first 512 bytes of the body.
    """

    _rule = "not_an_event_stream"
    _own = ("content_type", "body_head")

    def __init__(
        self, *, body_head: bytes = b"", content_type: str | None = None, **common: Unpack[_CommonFields]
    ) -> None:
        self.body_head = body_head
        self.content_type = content_type
        super().__init__(**common)
        self.advise(input_hint(body_head))

    def _message_detail(self) -> str:
        message = f"content type {self.content_type}" if self.content_type else self.detail
        begins = "" if input_hint(self.body_head) else _beginning(self.body_head)
        return ", ".join([part for part in (message, begins) if part])


class ChunkDecodeError(StreamError, ValueError):
    """The data of an event is not JSON, or is unusable. `pos`: the byte position in the data; None if unknown."""

    _rule = "malformed_json"
    _own = ("pos",)

    def __init__(self, *, pos: int | None = None, **common: Unpack[_CommonFields]) -> None:
        self.pos = pos
        super().__init__(**common)

    def _text(self) -> str:
        return super()._text() + ("" if self.pos is None else f" (position {self.pos})")


class LimitExceeded(StreamError):
    """A limit of `Limits` was exceeded. The input that exceeded the limit was discarded. `observed` is `limit` + 1."""

    _rule = "limit"
    _retryable = False
    _own = ("limit_name", "limit", "observed")

    def __init__(
        self, *, limit_name: str = "", limit: int = 0, observed: int = 0, **common: Unpack[_CommonFields]
    ) -> None:
        self.limit_name = limit_name
        self.limit = limit
        self.observed = observed
        common.setdefault("rule", f"limit_{limit_name}")
        super().__init__(**common)

    def _text(self) -> str:
        return f"the stream exceeds {self.limit_name}"

    def _message_detail(self) -> str:
        return str(self.limit)


class AssemblyError(StreamError):
    """A tool call cannot be assembled."""

    _rule = "assembly"


class InvalidToolIndex(AssemblyError):
    """The index of a tool call is invalid, and the policy requires an exception."""

    _rule = "index_unusable"


class ToolCallConflict(AssemblyError):
    """Two fragments of one tool call contradict each other, and the policy requires an exception."""

    _rule = "conflict"


class OrphanDelta(AssemblyError):
    """A fragment belongs to a tool call that is closed or was never opened, and the policy requires an exception."""

    _rule = "late_delta"


class ArgumentsError(StreamError, ValueError):
    """`ToolCall.parsed` was read for a call that is incomplete, invalid or still open.

    `state` is the state of the call (`incomplete`, `invalid` or `open`), `reason` is why it has that state, and `pos`
    is the position in `arguments` where the JSON becomes invalid, if known. `rule` is `arguments_<state>`, or
    `arguments_custom` for a call to a free-form tool, whose `arguments` are always plain text.
    """

    _own = ("state", "reason", "part", "call_id", "pos")

    def __init__(
        self,
        *,
        state: str = "invalid",
        reason: str | None = None,
        part: int | None = None,
        call_id: str | None = None,
        pos: int | None = None,
        **common: Unpack[_CommonFields],
    ) -> None:
        self.state = state
        self.reason = reason
        self.part = part
        self.call_id = call_id
        self.pos = pos
        common.setdefault("rule", f"arguments_{state}")
        super().__init__(**common)

    def _message_detail(self) -> str:
        return self.detail or self.reason or ""


class UpstreamError(StreamError):
    """The gateway sent an error inside the stream.

    `code`, `kind` (the `type` of the error) and `message` are the gateway's values, converted to text. The
    `UpstreamErrorEvent` before this exception contains the whole payload; `raw` contains its first 256 bytes.
    """

    _rule = "upstream_error"
    _own = ("code", "kind", "message")

    def __init__(
        self, *, code: str | None = None, kind: str | None = None, message: str = "", **common: Unpack[_CommonFields]
    ) -> None:
        self.code = code
        self.kind = kind
        self.message = message
        if common.get("retryable") is None:
            words = {word.lower() for word in (code, kind) if word}
            common["retryable"] = False if words & _FINAL else True if words & _PASSING else None
        super().__init__(**common)

    def _message_detail(self) -> str:
        return ": ".join([word for word in (self.kind, self.code, self.message or self.detail) if word])


class TruncatedStream(StreamError, EOFError):
    """The stream ended too early. Everything before that point was delivered; open calls are incomplete.

    `where` is `empty`, `mid_event`, `mid_utf8`, `mid_text`, `mid_arguments`, `between_events`, `transport` (the
    transport failed, and no other value is more precise), or `idle` (a timeout of the async iterators). `open_items`:
    the numbers of the parts that were still open.
    """

    _rule = "truncated"
    _retryable = True
    _own = ("where", "open_items")

    def __init__(
        self, *, where: str = "between_events", open_items: Iterable[int] = (), **common: Unpack[_CommonFields]
    ) -> None:
        self.where = where
        self.open_items: tuple[int, ...] = tuple(open_items)
        super().__init__(**common)

    def _text(self) -> str:
        return _SENTENCES.get(f"truncated_{self.where}") or super()._text()

    def _message_detail(self) -> str:
        parts = len(self.open_items)
        return self.where if not parts else f"{self.where}, {parts} open part{'' if parts == 1 else 's'}"


class UnknownDialect(StreamError):
    """The first payloads are not in a known dialect, or not in the dialect that the caller specified.

    Attributes:
        seen: the names of the payloads' members.
        specified: the dialect that the caller specified, if the payloads are in another known dialect, which `detail`
            names; otherwise None.
    """

    _rule = "unknown_dialect"
    _retryable = False
    _own = ("seen", "specified")

    def __init__(
        self, *, seen: Iterable[str] = (), specified: str | None = None, **common: Unpack[_CommonFields]
    ) -> None:
        self.seen: tuple[str, ...] = tuple(seen)
        self.specified = specified
        super().__init__(**common)
        if self.detail in DIALECTS:
            self.advise(f"use the dialect {self.detail} or auto")
        elif _REQUEST_MEMBERS & set(self.seen):
            self.advise("this looks like the body of a request; pass the body of its response")

    def _message_detail(self) -> str:
        seen = [f"saw {', '.join(self.seen)}"] if self.seen else []
        if self.specified is not None:
            basis = f" ({seen[0]})" if seen else ""
            return f"{self.specified} was specified, but the payloads are in {self.detail}{basis}"
        if self.detail:
            return ": ".join([self.detail, *seen])
        begins = _beginning(self.raw)
        return ", ".join([*seen, begins] if begins else seen)


class SpliceError(StreamError):
    """The stream of a reconnect does not continue the first stream. The byte offset refers to the second stream.

    `rule` is `splice_other_stream` (the second stream belongs to another response), `splice_gap` (events between the
    two streams are missing), `splice_ambiguous` (the bytes do not show where the second stream starts; set
    `second_starts`), or `splice_error_page` (the gateway sent an HTML page, an error as JSON, or text instead of a
    stream). `partial` is the response of the first stream.
    """

    _rule = "splice_other_stream"


class LifecycleError(StreamError):
    """A converted stream would break the rules of its target dialect."""

    _rule = "lifecycle"
    _own = ("violations",)

    def __init__(self, *, violations: Iterable[Any] = (), **common: Unpack[_CommonFields]) -> None:
        self.violations: tuple[Any, ...] = tuple(violations)
        super().__init__(**common)


class InternalError(StreamError):
    """A bug in streamweld, never the fault of the caller or the gateway. Please report it."""

    _rule = "internal"


class HistoryError(StreamweldError):
    """A request history breaks a rule of its target.

    Attributes:
        rule: the code of the rule.
        path: JSON pointer to the offending member.
        violations: the violations that `check` found in the history, if they caused this error.
        detail: a description of what is wrong.
    """

    def __init__(self, rule: str, path: str = "", violations: Iterable[Any] = (), detail: str = "") -> None:
        self.rule = rule
        self.path = path
        self.violations: tuple[Any, ...] = tuple(violations)
        self.detail = detail
        where, what = printable(path, _DETAIL_CHARS), printable(detail, _DETAIL_CHARS)
        super().__init__(": ".join([word for word in (where, rule, what) if word]))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.rule, self.path, self.violations, self.detail)


class UsageError(StreamweldError, RuntimeError):
    """The caller made a mistake, such as feeding data after the end or passing an option that does not exist."""


class ParserBusy(UsageError):
    """A method of a parser was called while another call was running.

    A parser reads one stream, and allows only one call at a time.
    """


class MissingExtra(UsageError, ImportError):
    """An optional dependency is not installed. Run `pip install 'streamweld[<extra>]'` with the value of `extra`."""

    def __init__(self, extra: str, package: str) -> None:
        self.extra = extra
        self.package = package
        super().__init__(f"{package} is not installed: pip install 'streamweld[{extra}]'")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.extra, self.package)
