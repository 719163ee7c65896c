"""Operators for Gemini and AI SDK streams, and for texts of several dialects."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from streamweld.testing.mutate.registry import changed, operator
from streamweld.testing.stream import Frame, Stream, Text

if TYPE_CHECKING:
    from random import Random


@operator("gemini", aspect="calls", effect="ids")
def calls_have_no_ids(_: Random, stream: Stream) -> Stream | None:
    """Calls have no ids, as in older releases of the API."""
    if not stream.calls:
        return None

    def drop(data: Any, _frame: Frame) -> None:
        for part in data["candidates"][0]["content"]["parts"]:
            part.get("functionCall", {}).pop("id", None)

    return stream.but(changed(stream, drop), calls=tuple(replace(call, id=None) for call in stream.calls))


@operator("gemini", aspect="envelope")
def candidates_without_index(_: Random, stream: Stream) -> Stream:
    """Candidates have no index."""
    return stream.but(changed(stream, lambda data, _f: data["candidates"][0].pop("index") and None))


@operator("gemini", aspect="envelope")
def response_envelope(_: Random, stream: Stream) -> Stream:
    """Chunks are wrapped in `response`, as Cloud Code does."""
    return stream.but(changed(stream, lambda data, _f: {"response": data}))


_OTHER_WORDS = {"STOP": ("stop", "end_turn", "tool_calls"), "MAX_TOKENS": ("length", "max_tokens")}


@operator("gemini", aspect="finish")
def reason_of_another_api(rng: Random, stream: Stream) -> Stream | None:
    """The finish reason is the word of another API, such as `length`, or is in lower case."""
    documents: list[Any] = [frame.data or {} for frame in stream.frames]
    candidates: list[Any] = [candidate for data in documents for candidate in data.get("candidates", ())]
    reasons = [str(candidate["finishReason"]) for candidate in candidates if "finishReason" in candidate]
    words = _OTHER_WORDS.get(reasons[0]) if reasons else None
    if words is None:
        return None
    word = rng.choice(words)

    def write(data: Any, _frame: Frame) -> None:
        for candidate in data.get("candidates", ()):
            if "finishReason" in candidate:
                candidate["finishReason"] = word

    return stream.but(changed(stream, write))


@operator("gemini", aspect="envelope")
def members_in_snake_case(_: Random, stream: Stream) -> Stream:
    """Members have the names from the proto files (`finish_reason`), as in a dump by Google's Python SDK."""

    def rename(data: Any, _frame: Frame) -> None:
        for candidate in data.get("candidates", ()):
            for part in candidate.get("content", {}).get("parts", ()):
                _in_snake_case(part)
            _in_snake_case(candidate)
        _in_snake_case(data.get("usageMetadata", {}))
        _in_snake_case(data)

    return stream.but(changed(stream, rename))


def _in_snake_case(members: dict[str, Any]) -> None:
    for key in list(members):
        members[re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", key)] = members.pop(key)


@operator("gemini", aspect="framing")
def body_is_an_array(_: Random, stream: Stream) -> Stream | None:
    """The body is one JSON array instead of events."""
    if any(frame.raw is not None for frame in stream.frames):
        return None
    text = json.dumps([frame.data for frame in stream.frames], ensure_ascii=False, indent=1)
    return replace(stream.but([Frame("", raw=text.encode())]), content_type="application/json")


@operator("gemini", aspect="calls")
def arguments_as_text(_: Random, stream: Stream) -> Stream | None:
    """The arguments of calls are text."""
    if not stream.calls:
        return None

    def write(data: Any, _frame: Frame) -> None:
        for part in data["candidates"][0]["content"]["parts"]:
            call = part.get("functionCall", {})
            if call.get("args"):
                call["args"] = json.dumps(call["args"], ensure_ascii=False)

    return stream.but(changed(stream, write))


@operator("ai-sdk-ui", aspect="items")
def optional_members_are_null(_: Random, stream: Stream) -> Stream:
    """Optional members are null, as Pydantic writes them."""

    def fill(data: Any, _frame: Frame) -> None:
        if data["type"].startswith(("text-", "reasoning-")) or data["type"] in {
            "tool-input-start",
            "tool-input-available",
        }:
            data["providerMetadata"] = None

    return stream.but(changed(stream, fill))


@operator("ai-sdk-ui", aspect="envelope")
def unknown_chunks(rng: Random, stream: Stream) -> Stream:
    """Chunks with an unknown type or without a type are sent between the other chunks."""
    frames: list[Frame] = []
    for frame in stream.frames:
        if frame.data == "[DONE]" or rng.random() < 0.3:
            frames.append(Frame(rng.choice([{"type": "agent-updated"}, {"heartbeat": 1}])))
        frames.append(frame)
    return stream.but(frames)


@operator("ai-sdk-parts", "ai-sdk-ui", aspect="items")
def texts_without_a_start(_: Random, stream: Stream) -> Stream:
    """Texts and reasoning have no start chunk."""
    return stream.but(
        f for f in stream.frames if f.data == "[DONE]" or f.data["type"] not in {"text-start", "reasoning-start"}
    )


@operator("responses", "anthropic", "ai-sdk-parts", "ai-sdk-ui", aspect="items", opaque=True)
def text_closed_early(_: Random, stream: Stream) -> Stream | None:
    """A text is closed after its first delta, and its other deltas follow."""
    for number, part in enumerate(stream.parts):
        own = [at for at, frame in enumerate(stream.frames) if frame.part == number]
        deltas = [at for at in own if stream.frames[at].role == "delta"]
        if not isinstance(part, Text) or len(deltas) < 2:
            continue
        first = stream.frames[deltas[0]].piece
        if not first or part.text.startswith(first + first):
            continue  # the other deltas could repeat the first one
        closing = [at for at in own if at > deltas[-1]]
        early = [replace(frame, data=_shortened(frame.data, part.text, first)) for frame in _at(stream, closing)]
        frames = [frame for at, frame in enumerate(stream.frames) if at not in closing]
        frames[deltas[0] + 1 : deltas[0] + 1] = early
        return stream.but(_renumbered(frames))
    return None


def _at(stream: Stream, places: list[int]) -> list[Frame]:
    return [stream.frames[at] for at in places]


def _shortened(value: Any, text: str, first: str) -> Any:
    """Return a copy of a JSON value in which `first` replaces each string that equals `text`."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {key: _shortened(member, text, first) for key, member in members.items()}
    if isinstance(value, list):
        return [_shortened(member, text, first) for member in cast("list[object]", value)]
    return first if value == text else value


def _renumbered(frames: list[Frame]) -> list[Frame]:
    """Return the frames with their sequence numbers, if they have any, in ascending order."""
    numbers = iter(sorted([frame.data["sequence_number"] for frame in frames if _is_numbered(frame)]))
    return [
        replace(frame, data=frame.data | {"sequence_number": next(numbers)}) if _is_numbered(frame) else frame
        for frame in frames
    ]


def _is_numbered(frame: Frame) -> bool:
    data: Any = frame.data
    return isinstance(data, dict) and "sequence_number" in data


@operator("ai-sdk-parts", "ai-sdk-ui", aspect="texts")
def texts_end_twice(_: Random, stream: Stream) -> Stream:
    """The end chunk of each text and reasoning is repeated."""
    frames: list[Frame] = []
    for frame in stream.frames:
        frames.append(frame)
        if frame.data != "[DONE]" and frame.data["type"] in {"text-end", "reasoning-end"}:
            frames.append(frame)
    return stream.but(frames)


@operator("ai-sdk-parts", "ai-sdk-ui", aspect="texts")
def text_delta_of_older_releases(_: Random, stream: Stream) -> Stream:
    """The text of a delta is in `textDelta`, as in AI SDK 4."""

    def rename(data: Any, _frame: Frame) -> None:
        if data["type"] in {"text-delta", "reasoning-delta"}:
            data["textDelta"] = data.pop("delta")

    return stream.but(changed(stream, rename))


@operator("ai-sdk-parts", "ai-sdk-ui", aspect="items")
def input_as_an_object_without_end(_: Random, stream: Stream) -> Stream | None:
    """The input of a call is an object, and `tool-input-end` is missing."""
    if not stream.calls:
        return None

    def parsed(data: Any, frame: Frame) -> None:
        if frame.role == "close" and isinstance(data.get("input"), str):
            data["input"] = json.loads(data["input"])

    return stream.but(f for f in changed(stream, parsed) if f.data == "[DONE]" or f.data["type"] != "tool-input-end")


@operator("ai-sdk-parts", "ai-sdk-ui", aspect="items")
def calls_without_a_start(_: Random, stream: Stream) -> Stream | None:
    """Calls are sent in one piece, without a start or deltas."""
    if not stream.calls:
        return None
    return stream.but(
        f
        for f in stream.frames
        if f.data == "[DONE]"
        or not f.data["type"].startswith("tool-input-")
        or f.data["type"] == "tool-input-available"
    )


@operator("ai-sdk-parts", "ai-sdk-ui", aspect="items")
def texts_without_an_end(_: Random, stream: Stream) -> Stream:
    """Texts and reasoning have no end chunk."""
    return stream.but(
        f for f in stream.frames if f.data == "[DONE]" or f.data["type"] not in {"text-end", "reasoning-end"}
    )


@operator("ai-sdk-ui", aspect="ending", effect="assumed")
def no_done_after_finish(_: Random, stream: Stream) -> Stream | None:
    """`[DONE]` is missing after the finish reason."""
    return None if stream.operators else stream.but(stream.frames[:-1], ending="assumed")
