"""What every decoder can do, which there are, and which one a stream needs.

Knows the dialects by name, and of a payload only what `dialect.detect` makes of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from streamweld._pure.dialect import detect, seen
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
    "NAMELESS_MARKER",
    "WALKED",
    "WRAPPED_NAMES",
    "Decoder",
    "DialectWatch",
    "HeldPayload",
    "Other",
    "UndetectedPayloads",
]

MAX_HELD = 16  # payloads that tell no dialect, before it is given up
MAX_HELD_BYTES = 64 * 1024


class Decoder(Protocol):
    """One stream's decoder, of whatever dialect."""

    ended: bool  # the dialect's end was decoded: what comes behind it is not

    def __init__(self, config: Mapping[str, Any], assembler: Assembler, out: Output) -> None: ...

    @staticmethod
    def is_body(value: object) -> bool:
        """Whether a payload outside of any event is a whole answer, or the error in its place."""
        ...

    @staticmethod
    def is_line(value: object) -> bool:
        """Whether such a whole answer looks like any chunk that ends one: more of them may follow, a line each."""
        ...

    @staticmethod
    def is_complaint(value: object) -> bool:
        """Whether a body that no event stream is and no dialect claims is an error in a shape of its own."""
        ...

    @staticmethod
    def is_of_use(value: object) -> bool:
        """Whether a document behind a broken one brings what may be taken from there."""
        ...

    @staticmethod
    def is_note(value: object) -> bool:
        """Whether a document says nothing of the answer, so that it may stand behind its end."""
        ...

    def decode(self, payload: Payload, event: str, *, recovered: bool = False) -> None:
        """One payload that is JSON."""
        ...

    def marker(self) -> None:
        """`[DONE]`."""
        ...

    def text(self, text: str) -> None:
        """A payload that is plain words."""
        ...

    def flush(self) -> None:
        """The stream is about to close: hand over what was held back."""
        ...


DECODERS: Mapping[str, type[Decoder]] = {
    "chat": ChatDecoder,
    "responses": ResponsesDecoder,
    "anthropic": AnthropicDecoder,
    "gemini": GeminiDecoder,
    "ai-sdk-parts": AiSdkPartsDecoder,
    "ai-sdk-ui": AiSdkUiDecoder,
}
# Events that are heartbeats by their name.
KEEP_ALIVE: Mapping[str, frozenset[str]] = {name: frozenset(DIALECTS[name]["keepalive_events"]) for name in DECODERS}
# Readers skip a `[DONE]`, unless its event has a name.
# openai-python reads an event without data as JSON. None: the dialect is not known yet; no client needs such an event.
READ_EMPTY: frozenset[str | None] = frozenset({None, "chat", "responses"})
NAMELESS_MARKER = frozenset([name for name in DECODERS if DIALECTS[name].get("marker_is_nameless")])
# Readers put the data of an event whose name begins so into another object.
WRAPPED_NAMES: Mapping[str, tuple[str, ...]] = {
    name: tuple(DIALECTS[name].get("wrapped_names", ())) for name in DECODERS
}

# The lists whose entries a decoder reads one by one.
WALKED: Mapping[str, Walked] = {
    name: Walked(frozenset(facts["lists"]), frozenset(facts["objects"]))
    for name in DECODERS
    if (facts := DIALECTS[name].get("walked"))
}


@dataclass(frozen=True, slots=True)
class HeldPayload:
    """A payload that waits for another one to tell the dialect, with its place."""

    data: bytes
    event: str
    offset: int
    ordinal: int
    stray: bool


class UndetectedPayloads:
    """The payloads so far, as long as none of them told the dialect."""

    __slots__ = ("_names", "_size", "_values", "held")

    def __init__(self) -> None:
        self.held: list[HeldPayload] = []
        self._values: list[object] = []
        self._names: list[str] = []
        self._size = 0

    def tells(self, value: object, event: str) -> str | None:
        """The dialect that a payload tells, behind those before it."""
        return detect(value, event, self._values)

    def hold(self, one: HeldPayload, payload: Payload | None) -> bool:
        """Keep a payload that tells none; False where there were too many."""
        if len(self.held) == MAX_HELD or self._size + len(one.data) > MAX_HELD_BYTES:
            return False
        self._size += len(one.data)
        self.held.append(one)
        if payload is not None:
            self._values.append(payload.value)
            self.note(payload)
        return True

    def note(self, payload: Payload) -> None:
        """What was there instead of a dialect."""
        self._names += [name for name in seen(payload.value, payload.text) if name not in self._names]

    def seen(self) -> tuple[str, ...]:
        return tuple([replace_lone_surrogates(name) for name in sorted(self._names)])


@dataclass(frozen=True, slots=True)
class Other:
    """Another dialect than the one that was given, and the payload that shows it."""

    dialect: str
    seen: tuple[str, ...]
    shown: HeldPayload


class DialectWatch:
    """Which dialect the first payloads show where another one was given, in case nothing of them is understood."""

    __slots__ = ("_given", "_waiting", "found")

    def __init__(self, given: str) -> None:
        self._given = given
        self._waiting: UndetectedPayloads | None = UndetectedPayloads()
        self.found: Other | None = None

    def look(self, one: HeldPayload, payload: Payload) -> None:
        """One payload; the first that tells a dialect counts. The name of an event tells none."""
        waiting = self._waiting
        if waiting is None:
            return
        dialect = waiting.tells(payload.value, "message")
        if dialect is None and waiting.hold(one, payload):
            return
        self._waiting = None
        if dialect is not None and dialect != self._given:
            waiting.note(payload)
            self.found = Other(dialect, waiting.seen(), one)
