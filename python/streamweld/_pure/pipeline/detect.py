"""Detect the dialect of a stream, and hold payloads until the dialect is known.

Defines the decoder interface and lists the decoders. Uses dialects only by name; `dialect.detect` examines the
payloads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from streamweld._pure.dialect import detect, payload_summary
from streamweld._pure.dialect.ai_sdk.parts import AiSdkPartsDecoder
from streamweld._pure.dialect.ai_sdk.ui import AiSdkUiDecoder
from streamweld._pure.dialect.anthropic import AnthropicDecoder
from streamweld._pure.dialect.chat import ChatDecoder
from streamweld._pure.dialect.gemini import GeminiDecoder
from streamweld._pure.dialect.responses import ResponsesDecoder
from streamweld._pure.json.scanner import Payload, Walked, replace_lone_surrogates
from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.model.output import Output

__all__ = [
    "DECODERS",
    "KEEP_ALIVE",
    "MARKER_IS_JSON",
    "WALKED",
    "WRAPPED_NAMES",
    "Decoder",
    "DialectWatch",
    "HeldPayload",
    "Other",
    "UndetectedPayloads",
]

MAX_HELD = 16  # maximum number of inconclusive payloads before detection fails
MAX_HELD_BYTES = 64 * 1024


class Decoder(Protocol):
    """Decoder for one stream, in any dialect."""

    ended: bool  # whether the dialect's terminal marker was decoded; data after it is not decoded

    def __init__(self, config: Mapping[str, Any], assembler: Assembler, out: Output) -> None: ...

    @staticmethod
    def is_body(value: object) -> bool:
        """Return True if a payload outside any event is a complete response, or an error sent instead of a response."""
        ...

    @staticmethod
    def may_be_json_line(value: object) -> bool:
        """Return True if a document that looks like a complete response could also be the last chunk of JSON Lines."""
        ...

    @staticmethod
    def is_error_body(value: object) -> bool:
        """Return True if a plain body reports an error without an `error` member, such as a message with a code."""
        ...

    @staticmethod
    def has_usable_data(value: object) -> bool:
        """Return True if a document that follows a broken document contains usable data."""
        ...

    @staticmethod
    def is_without_output(value: object) -> bool:
        """Return True if a document contains no part of the response.

        A document without any part of the response may follow the end of the stream.
        """
        ...

    def decode(self, payload: Payload, event: str, *, recovered: bool = False) -> None:
        """Decode one JSON payload."""
        ...

    def marker(self) -> None:
        """Handle `[DONE]`."""
        ...

    def text(self, text: str) -> None:
        """Handle a payload that is plain text."""
        ...

    def flush(self) -> None:
        """Emit held-back output before the stream closes."""
        ...


DECODERS: Mapping[str, type[Decoder]] = {
    "chat": ChatDecoder,
    "responses": ResponsesDecoder,
    "anthropic": AnthropicDecoder,
    "gemini": GeminiDecoder,
    "ai-sdk-parts": AiSdkPartsDecoder,
    "ai-sdk-ui": AiSdkUiDecoder,
}
# Event names of keep-alives.
KEEP_ALIVE: Mapping[str, frozenset[str]] = {name: frozenset(DIALECTS[name]["keepalive_events"]) for name in DECODERS}
# Dialects whose clients parse `[DONE]` as JSON: in events with a name, or always.
MARKER_IS_JSON: Mapping[str, str] = {name: DIALECTS[name].get("marker_is_json", "never") for name in DECODERS}
# Prefixes of event names that make clients wrap the data in another object.
WRAPPED_NAMES: Mapping[str, tuple[str, ...]] = {
    name: tuple(DIALECTS[name].get("wrapped_names", ())) for name in DECODERS
}

# Lists whose elements a decoder reads one by one.
WALKED: Mapping[str, Walked] = {
    name: Walked(frozenset(facts["lists"]), frozenset(facts["objects"]))
    for name in DECODERS
    if (facts := DIALECTS[name].get("walked"))
}


@dataclass(frozen=True, slots=True)
class HeldPayload:
    """A stored payload with its place."""

    data: bytes
    event: str
    offset: int
    ordinal: int
    stray: bool


class UndetectedPayloads:
    """Payloads that are held back because none of them has identified the dialect yet."""

    __slots__ = ("_names", "_size", "_values", "held")

    def __init__(self) -> None:
        self.held: list[HeldPayload] = []
        self._values: list[object] = []
        self._names: list[str] = []
        self._size = 0

    def identifies(self, value: object, event: str) -> str | None:
        """Return the dialect that a payload identifies together with the held payloads before it, or None."""
        return detect(value, event, self._values)

    def hold(self, one: HeldPayload, payload: Payload | None) -> bool:
        """Hold back an inconclusive payload.

        Return False if too many payloads, or too many bytes, would be held back.
        """
        if len(self.held) == MAX_HELD or self._size + len(one.data) > MAX_HELD_BYTES:
            return False
        self._size += len(one.data)
        self.held.append(one)
        if payload is not None:
            self._values.append(payload.value)
            self.note(payload)
        return True

    def note(self, payload: Payload) -> None:
        """Record the names of the payload's members, for the error message."""
        self._names += [name for name in payload_summary(payload.value, payload.text) if name not in self._names]

    def seen(self) -> tuple[str, ...]:
        return tuple([replace_lone_surrogates(name) for name in sorted(self._names)])


@dataclass(frozen=True, slots=True)
class Other:
    """A dialect that differs from the specified dialect, and the payload that identifies it."""

    dialect: str
    specified: str
    seen: tuple[str, ...]
    shown: HeldPayload


class DialectWatch:
    """Detects the dialect of a stream whose dialect the caller specified.

    If no payload can be decoded, the error message reports the detected dialect.
    """

    __slots__ = ("_given", "_waiting", "found")

    def __init__(self, given: str) -> None:
        self._given = given
        self._waiting: UndetectedPayloads | None = UndetectedPayloads()
        self.found: Other | None = None

    def look(self, one: HeldPayload, payload: Payload) -> None:
        """Examine one payload. The first conclusive payload determines the dialect. Event names are not used."""
        waiting = self._waiting
        if waiting is None:
            return
        dialect = waiting.identifies(payload.value, "message")
        if dialect is None and waiting.hold(one, payload):
            return
        self._waiting = None
        if dialect is not None and dialect != self._given:
            waiting.note(payload)
            self.found = Other(dialect, self._given, waiting.seen(), one)
