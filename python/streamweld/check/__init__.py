"""The linter for gateways: check whether a stream follows the rules of its own dialect.

    for violation in sw.check(body):
        print(violation.severity, violation.rule, violation.where.byte_offset, violation.message)

`Checker` accepts a stream in chunks and uses bounded memory. The rules are in `_spec/rules.json`: each has an id, a
severity, a description and a source document. The code refers to rules by id. The checker does not assemble or repair
anything, so its findings do not depend on how `StreamParser` interprets the same bytes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeGuard, cast, get_args

from streamweld._json import JsonFault, loads_arguments
from streamweld._messages import choice_message, reject_text
from streamweld._pure.dialect import detect, payload_summary
from streamweld._pure.json.automaton import MAX_DEPTH
from streamweld._pure.json.scanner import has_more_values
from streamweld._pure.pipeline.salvage import MOST_JOINS, WHITE, joined_field, split_joined_line
from streamweld._spec import LIMITS
from streamweld.check.framing import Framing
from streamweld.check.violation import Place, Report, Violation
from streamweld.errors import UnknownDialect, UsageError

if TYPE_CHECKING:
    from streamweld.check.lifecycle import Lifecycle

__all__ = ["DIALECTS", "CheckDialect", "Checker", "Place", "Violation", "check"]

CheckDialect: TypeAlias = Literal["auto", "chat", "responses", "anthropic", "gemini", "ai-sdk-parts", "ai-sdk-ui"]

DIALECTS: Final[tuple[str, ...]] = get_args(CheckDialect)
# Event types of the AI SDK that only open or end a response. The opening events of Chat Completions, Responses and
# Messages are not listed here. These events contain the id and model of the response, so they count as part of the
# response.
_FRAMES: Final = frozenset(
    ["start", "start-step", "stream-start", "response-metadata", "finish-step", "finish", "abort"]
)
_GEMINI: Final = ("usageMetadata", "modelVersion", "responseId")  # the members of a Gemini chunk except the candidates
_LONG_INTEGER: Final = re.compile(r"(?<![0-9])[0-9]{4000}")  # start a match only at the beginning of a run of digits
_BITS: Final = 13_000
_MOST_VALUES: Final = LIMITS["max_json_values"] or 0
_MAX_UNDETECTED: Final = 16  # maximum number of payloads before the first one that identifies the dialect
_MAX_UNDETECTED_LENGTH: Final = 64 * 1024  # maximum total length of these payloads, in characters


def check(body: bytes | bytearray | memoryview, dialect: CheckDialect = "auto") -> list[Violation]:
    """Return the places where a stream violates the rules of its own dialect, in byte order.

    Args:
        body: the response body, as bytes.
        dialect: the wire format, or `auto` to detect it from the first payloads. One of `chat`, `responses`,
            `anthropic`, `gemini`, `ai-sdk-parts`, `ai-sdk-ui`.

    Returns:
        One `Violation` for each place where a rule is broken, at most 100 per rule; an empty list if none was found.
        Malformed JSON and bytes that are not an event stream are also violations.

    Raises:
        UnknownDialect: if no payload is in a known dialect; `.seen` describes what was found instead.
        UsageError: if the dialect does not exist.
        TypeError: if the body is not a contiguous buffer of bytes.

    >>> check(b'data: {"type":"start"}\\n\\ndata: {"type":"finish"}\\n\\ndata: [DONE]\\n\\n')
    []
    """
    checker = Checker(dialect)
    found = checker.feed(body)
    found += checker.close()
    return sorted(found, key=_position)


def _position(violation: Violation) -> Place:
    return violation.where


class Checker:
    """Checks a stream that arrives in chunks. The result does not depend on the chunk sizes.

    Memory is bounded, because texts are kept as digests, and ids take at most 32 MiB in total.

    >>> checker = Checker("ai-sdk-ui")
    >>> [v.rule for piece in (b'data: {"type":"st', b'art"}', b'\\n\\n') for v in checker.feed(piece)]
    []
    >>> [v.rule for v in checker.close()]
    ['ai-sdk-ui.finish_missing', 'ai-sdk-ui.done_missing']
    """

    def __init__(self, dialect: CheckDialect = "auto") -> None:
        if dialect not in DIALECTS:
            raise UsageError(choice_message("dialect", dialect, DIALECTS))
        self._report = Report()
        self._framing = Framing(self._report, self._payload)
        self._lifecycle: Lifecycle | None = None if dialect == "auto" else _lifecycle(dialect, self._report)
        self._undetected: list[tuple[Place, dict[str, Any] | None, str, str]] = []
        self._undetected_length = 0
        self._error_at: Place | None = None  # position of the first payload that contains only an error
        self._has_response = False  # a payload contained a part of a response
        self._closed = False

    @property
    def dialect(self) -> str | None:
        """The dialect whose rules apply; None until it is detected."""
        return None if self._lifecycle is None else self._lifecycle.dialect

    @property
    def dropped(self) -> int:
        """The number of violations that are not listed because 100 violations of the same rule are already listed."""
        return self._report.dropped

    def feed(self, data: bytes | bytearray | memoryview) -> list[Violation]:
        """Read the next bytes, and return the violations found in them.

        Raises:
            UnknownDialect: if many payloads were read and none is in a known dialect.
            UsageError: after `close`.
            TypeError: if the data is not a contiguous buffer of bytes.
        """
        if self._closed:
            raise UsageError("the checker is closed and accepts no more input")
        reject_text(data)
        self._framing.feed(data)
        return self._report.take()

    def close(self) -> list[Violation]:
        """End the stream, and return the violations that can be found only at the end, such as missing events.

        A second call returns an empty list.

        Raises:
            UnknownDialect: if no payload was in a known dialect.
        """
        if self._closed:
            return []
        self._closed = True
        self._framing.close()
        if self._lifecycle is None:
            for _, value, _, _ in self._undetected:
                if value is not None:
                    raise _unknown(self._undetected[0][0], value)
            if not self._framing.broken:
                self._report.record("framing.no_events")
        elif not self._lifecycle.full and not self._framing.broken:
            if self._framing.payloads == 0:
                self._report.record("framing.no_events")
            else:
                self._lifecycle.end()
                if self._error_at is not None and not self._has_response:
                    self._report.record("framing.error_only", at=self._error_at)
        return self._report.take()

    # Parsing payloads, and passing them to the rules of the dialect

    def _payload(self, data: bytes, event: str, identifier: str) -> None:
        text = data.decode("utf-8", "replace").strip(" \t\r\n")
        if not text:
            self._report.record("framing.empty_data")
        else:
            self._text(text, event, identifier)

    def _text(self, text: str, event: str, identifier: str, joins: int = 0) -> None:
        """Pass on the payloads in a non-blank text.

        `joins`: the number of line ends that are missing before the text.
        """
        if text == "[DONE]":
            self._deliver(None, event, identifier)
        elif text.startswith(":"):
            self._report.record("framing.comment_as_data", text)
        else:
            self._json(text, event, identifier, joins)

    def _json(self, text: str, event: str, identifier: str, joins: int) -> None:
        if len(text) > _MOST_VALUES and has_more_values(text, _MOST_VALUES):
            self._report.record("framing.too_large", "max_json_values")
            return
        try:
            value = _loads(text)
        except JsonFault as fault:
            values = _several(text)
            if values is None:
                if not self._joined(text, event, identifier, joins):
                    self._report.record("framing.bad_json", str(fault))
                return
            self._report.record("framing.missing_blank_line", f"{len(values)} payloads in one event")
            for one in values:
                self._deliver(one, event, identifier, len(text))
            return
        if _is_object(value):
            self._deliver(value, event, identifier, len(text))
        else:
            self._report.record("framing.not_object", text[:40])

    def _joined(self, text: str, event: str, identifier: str, joins: int) -> bool:
        """Check a document and the data that follows it on the same line. Return False if no data follows."""
        line = text.encode()
        at = joined_field(line, MAX_DEPTH)
        if at is None or joins == MOST_JOINS:
            return False
        self._report.record("framing.fields_on_one_line")
        joined = split_joined_line(line, at)
        self._text(joined.document.decode(), event, identifier, joins)
        rest = line[joined.remainder :].strip(WHITE).decode()
        if rest:
            event = event if joined.event is None else joined.event.decode()
            self._text(rest, event, identifier, joins + 1)
        return True

    def _deliver(self, value: dict[str, Any] | None, event: str, identifier: str, length: int = 0) -> None:
        """Pass a payload to the rules of the dialect, or keep it until the dialect is detected. `value` is None for
        `[DONE]`."""
        if value is not None and not _is_ping(value, event):
            if not _is_error(value, event):
                self._has_response = self._has_response or not _is_frame(value)
            elif self._error_at is None:
                self._error_at = self._report.position
        lifecycle = self._lifecycle
        if lifecycle is None:
            before = [waiting[1] for waiting in self._undetected]
            found = None if value is None else detect(value, event, before)
            self._undetected.append((self._report.position, value, event, identifier))
            self._undetected_length += length
            if found not in DIALECTS:
                too_many = len(self._undetected) >= _MAX_UNDETECTED or self._undetected_length > _MAX_UNDETECTED_LENGTH
                if too_many and value is not None:
                    raise _unknown(self._undetected[0][0], value)
                return
            lifecycle = self._lifecycle = _lifecycle(found, self._report)
            now = self._report.position
            for position, waited, name, last in self._undetected:
                self._report.position = position
                _step(lifecycle, waited, name, last)
            self._undetected.clear()
            self._report.position = now
        else:
            _step(lifecycle, value, event, identifier)


def _loads(text: str) -> Any:
    value = loads_arguments(text)
    return _printable(value) if _LONG_INTEGER.search(text) else value


def _printable(value: Any) -> Any:
    """Return the value with placeholders for integers that Python refuses to print (4,300 digits or more)."""
    if isinstance(value, dict):
        return {key: _printable(member) for key, member in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_printable(member) for member in cast("list[object]", value)]
    return "a very large integer" if isinstance(value, int) and value.bit_length() > _BITS else value


def _step(lifecycle: Lifecycle, value: dict[str, Any] | None, event: str, identifier: str) -> None:
    if lifecycle.full:
        return
    if value is None:
        lifecycle.marker()
    else:
        lifecycle.event(value, event, identifier)


def _is_ping(value: dict[str, Any], event: str) -> bool:
    return "ping" in (event, value.get("type"))


def _is_error(value: dict[str, Any], event: str) -> bool:
    """Return whether a payload of any dialect contains an error and no part of a response."""
    if value.get("choices") or value.get("candidates"):
        return False
    return "error" in (event, value.get("type"), value.get("object")) or value.get("error") is not None


def _is_frame(value: dict[str, Any]) -> bool:
    """Return whether a payload only opens or ends a response, and contains no part of it."""
    kind = value.get("type")
    if isinstance(kind, str):
        return kind in _FRAMES
    return "candidates" not in value and any(name in value for name in _GEMINI)


def _unknown(position: Place, value: dict[str, Any]) -> UnknownDialect:
    return UnknownDialect(
        seen=payload_summary(value, ""), byte_offset=position.byte_offset, event_ordinal=position.event_ordinal
    )


def _several(text: str) -> list[dict[str, Any] | None] | None:
    """Return the payloads of an event if each of its lines is a separate payload, otherwise None."""
    lines = [line for line in (line.strip(" \t\r") for line in text.split("\n")) if line]
    if len(lines) < 2:
        return None
    values: list[dict[str, Any] | None] = []
    for line in lines:
        if line == "[DONE]":
            values.append(None)
            continue
        try:
            value = _loads(line)
        except JsonFault:
            return None
        if not _is_object(value):
            return None
        values.append(value)
    return values


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _lifecycle(dialect: str | None, report: Report) -> Lifecycle:
    """Import and return the rules of a dialect; each dialect has one module."""
    match dialect:
        case "responses":
            from streamweld.check.responses import Responses

            return Responses(report)
        case "anthropic":
            from streamweld.check.anthropic import Anthropic

            return Anthropic(report)
        case "gemini":
            from streamweld.check.gemini import Gemini

            return Gemini(report)
        case "ai-sdk-parts":
            from streamweld.check.ai_sdk_parts import Parts

            return Parts(report)
        case "ai-sdk-ui":
            from streamweld.check.ai_sdk_ui import Ui

            return Ui(report)
        case _:
            from streamweld.check.chat import Chat

            return Chat(report)
