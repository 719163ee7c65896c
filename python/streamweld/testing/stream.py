"""Streams as lists of frames, together with the contents that a correct reader finds in them.

This module does not parse anything: the expected contents follow from how a stream was built and how operators changed
it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Call", "Dialect", "Ending", "Expected", "Frame", "Part", "Reasoning", "Refusal", "Stream", "Text", "Tokens"]

Dialect: TypeAlias = Literal["chat", "responses", "anthropic", "gemini", "ai-sdk-parts", "ai-sdk-ui"]
Ending: TypeAlias = Literal["complete", "assumed", "truncated", "error"]
"""How a stream ends: with its terminal marker; with a finish reason but without the marker; truncated; or with an
error.
"""

Role: TypeAlias = Literal["start", "open", "delta", "close", "finish", "usage", "end", "other"]


@dataclass(frozen=True, slots=True)
class Text:
    """Text of the response."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Reasoning of the model."""

    text: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal, for the dialects that support refusals: chat and responses."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call.

    `arguments` is JSON text, or empty. In a list of parts, the builder replaces an id of None. In `Expected.calls`,
    None means that the stream does not contain an id, so any unique id is correct.
    """

    name: str
    arguments: str = "{}"
    id: str | None = None


Part: TypeAlias = Text | Reasoning | Refusal | Call


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts."""

    input: int
    output: int


@dataclass(frozen=True, slots=True)
class Expected:
    """The contents that a correct reader finds.

    `calls` are the calls that an agent must run, in order. If the stream is truncated or ends in an error, `calls` are
    the calls that an agent may run.
    """

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: tuple[Call, ...] = ()
    finish: str | None = None
    usage: Tokens | None = None
    ending: Ending = "complete"


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream. `data` is a JSON value, or text that is sent unchanged.

    `part` is the number of the part that the event belongs to, and `piece` is the text that it contributes to that
    part. `raw` replaces the bytes that `data` and `event` would produce.
    """

    data: Any
    event: str | None = None
    role: Role = "other"
    part: int | None = None
    piece: str = ""
    raw: bytes | None = None

    @property
    def payload(self) -> str:
        """The data as text."""
        if isinstance(self.data, str):
            return self.data
        return json.dumps(self.data, ensure_ascii=False, separators=(",", ":"))

    def encode(self) -> bytes:
        """Return the bytes of this event."""
        if self.raw is not None:
            return self.raw
        name = "" if self.event is None else f"event: {self.event}\n"
        return f"{name}data: {self.payload}\n\n".encode()


@dataclass(frozen=True)
class Stream:
    """A stream, and its expected contents.

    Attributes:
        dialect: the wire format.
        parts: the parts that it was built from.
        frames: its events, in order.
        expected: the contents that a correct reader finds.
        options: arguments of `StreamParser` and `parse` on which the expected contents depend, such as `policy`.
        operators: the names of the operators that were applied.
        cuts: the offsets in the body at which one read ends and the next begins.
        content_type: the content type of a response with this stream.
        opaque: True if the frames no longer show which part of the response each of them contains, so that the stream
            cannot be truncated.
    """

    dialect: Dialect
    parts: tuple[Part, ...]
    frames: tuple[Frame, ...]
    expected: Expected
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    operators: tuple[str, ...] = ()
    cuts: tuple[int, ...] = ()
    content_type: str = "text/event-stream"
    opaque: bool = False

    @property
    def body(self) -> bytes:
        """The complete body."""
        return b"".join(frame.encode() for frame in self.frames)

    @property
    def chunks(self) -> tuple[bytes, ...]:
        """The body in the chunks that the network delivers: split at `cuts`, or one event at a time."""
        if not self.cuts:
            return tuple(frame.encode() for frame in self.frames)
        body = self.body
        return tuple(body[start:end] for start, end in pairwise((0, *self.cuts, len(body))))

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls from which the stream was built, including their ids."""
        return tuple(part for part in self.parts if isinstance(part, Call))

    def but(self, frames: Iterable[Frame] | None = None, **expected: Any) -> Stream:
        """Return the same stream with other frames, and with some members of `expected` replaced."""
        return replace(
            self,
            frames=self.frames if frames is None else tuple(frames),
            expected=replace(self.expected, **expected) if expected else self.expected,
        )

    def cut(self, count: int, ending: Ending) -> Stream:
        """Return a stream of the first `count` frames.

        The expected contents are the texts and the complete calls in these frames.
        """
        frames = self.frames[:count]
        sent: dict[type, str] = {Text: "", Reasoning: "", Refusal: ""}
        for frame in frames:
            if frame.part is not None and type(self.parts[frame.part]) in sent:
                sent[type(self.parts[frame.part])] += frame.piece
        return self.but(
            frames,
            text=sent[Text],
            reasoning=sent[Reasoning],
            refusal=sent[Refusal],
            usage=None,
            finish=None,
            ending=ending,
        )
