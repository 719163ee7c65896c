"""Operators for Anthropic Messages streams."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streamweld.testing.builders import value_of
from streamweld.testing.mutate.registry import changed, clone, inserted, operator
from streamweld.testing.stream import Call, Frame, Reasoning, Stream, Text

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random


def event(kind: str, **members: Any) -> Frame:
    """Return a new event frame."""
    return Frame({"type": kind} | members, kind)


def _each(
    name: str,
    about: str,
    change: Callable[[dict[str, Any], Frame, Stream], Any],
    *,
    aspect: Any = "items",
    calls: bool = False,
) -> None:
    def run(_: Random, stream: Stream) -> Stream | None:
        if calls and not stream.calls:
            return None
        return stream.but(changed(stream, lambda data, frame: change(data, frame, stream)))

    operator("anthropic", aspect=aspect, name=name, about=about)(run)


def _without(name: str, about: str, drop: Callable[[Frame], bool], aspect: Any = "items") -> None:
    def run(_: Random, stream: Stream) -> Stream:
        return stream.but(frame for frame in stream.frames if not drop(frame))

    operator("anthropic", aspect=aspect, name=name, about=about)(run)


def _first(stream: Stream, kind: type) -> int | None:
    return next((n for n, part in enumerate(stream.parts) if isinstance(part, kind)), None)


def _shared(stream: Stream) -> bool:
    ids = [call.id for call in stream.calls]
    return len(set(ids)) < len(ids)


# Indexes and blocks

_each(
    "block_index_0", "Every block has index 0.", lambda data, _f, _s: data.update(index=0) if "index" in data else None
)
_each(
    "block_index_sparse",
    "Block indexes are not contiguous.",
    lambda data, _f, _s: data.update(index=2 * data["index"] + 1) if "index" in data else None,
)
_without("no_block_ends", "Blocks have no end events.", lambda frame: frame.role == "close")
_each(
    "no_delta_index",
    "Deltas have no index.",
    lambda data, frame, _s: data.pop("index") and None if frame.role == "delta" else None,
)


@operator("anthropic", aspect="items")
def start_has_the_first_piece(_: Random, stream: Stream) -> Stream | None:
    """A text block's start event contains the beginning of the text, which no delta repeats."""
    number = _first(stream, Text)
    if number is None:
        return None
    delta = next((f for f in stream.frames if f.part == number and f.piece), None)
    if delta is None:
        return None

    def start(data: Any, frame: Frame) -> None:
        if frame.part == number and frame.role == "open":
            data["content_block"]["text"] = delta.piece

    frames = [
        replace(f, piece=delta.piece) if f.part == number and f.role == "open" else f
        for at, f in enumerate(changed(stream, start))
        if stream.frames[at] is not delta
    ]
    return stream.but(frames)


@operator("anthropic", aspect="items", certain=False, opaque=True)
def start_repeated_in_the_first_delta(_: Random, stream: Stream) -> Stream | None:
    """A text block's start event contains the beginning of the text, which the first delta repeats and continues."""
    number = _first(stream, Text)
    if number is None:
        return None
    part = stream.parts[number]
    assert isinstance(part, Text)  # noqa: S101
    if len(part.text) < 8:
        return None

    def start(data: Any, frame: Frame) -> None:
        if frame.part == number and frame.role == "open":
            data["content_block"]["text"] = part.text[:5]

    frames = changed(stream, start)
    at = next(position for position, f in enumerate(frames) if f.part == number and f.role == "open")
    kept = [f for f in frames if f.part != number or f.role != "delta"]
    delta = {"type": "text_delta", "text": part.text}
    whole = replace(event("content_block_delta", index=number, delta=delta), part=number, piece=part.text)
    kept[at + 1 : at + 1] = [whole]
    return stream.but(kept)


def _input_in_the_start(stream: Stream, keep: Callable[[Frame], bool], *more: dict[str, Any]) -> Stream | None:
    calls = {n for n, part in enumerate(stream.parts) if isinstance(part, Call)}
    if not calls or any(value_of(call) == {} for call in stream.calls):
        return None

    def start(data: Any, frame: Frame) -> None:
        if frame.part in calls and frame.role == "open":
            call = stream.parts[frame.part]
            data["content_block"]["input"] = value_of(call)  # type: ignore[arg-type]

    frames: list[Frame] = []
    for frame in changed(stream, start):
        if frame.part in calls and frame.role == "delta" and not keep(frame):
            continue
        frames.append(frame)
        if frame.part in calls and frame.role == "open":
            frames += [event("content_block_delta", index=frame.data["index"], delta=delta) for delta in more]
    return stream.but(frames)


@operator("anthropic", aspect="items")
def input_in_the_start_only(_: Random, stream: Stream) -> Stream | None:
    """The input of a call is sent only in the start event of its block."""
    return _input_in_the_start(stream, lambda _: False)


@operator("anthropic", aspect="items")
def input_in_the_start_too(_: Random, stream: Stream) -> Stream | None:
    """The input of a call is sent in the start event of its block, and again in deltas after a `{}`."""
    return _input_in_the_start(stream, lambda _: True, {"type": "input_json_delta", "partial_json": "{}"})


@operator("anthropic", aspect="items", effect="calls")
def empty_input(_: Random, stream: Stream) -> Stream | None:
    """A call has no input except for an empty delta."""
    if stream.operators:
        return None
    index = len(stream.parts)
    block: dict[str, Any] = {"type": "tool_use", "id": "toolu_now", "name": "now", "input": {}}
    frames = [
        event("content_block_start", index=index, content_block=block),
        event("content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": ""}),
        event("content_block_stop", index=index),
    ]
    at = next(position for position, f in enumerate(stream.frames) if f.role == "finish")
    made = stream.but(inserted(stream, at, *frames), calls=(*stream.expected.calls, Call("now", "", "toolu_now")))

    def reason(data: Any, frame: Frame) -> None:
        if frame.role == "finish":
            data["delta"]["stop_reason"] = "tool_use"

    return made.but(changed(made, reason), finish="tool_calls")


@operator("anthropic", aspect="items", certain=False)
def first_fragment_lost(_: Random, stream: Stream) -> Stream | None:
    """The first fragment of the arguments, `{"`, is lost."""
    call = next((part for part in stream.calls if part.arguments.startswith('{"')), None)
    if call is None or _shared(stream):
        return None
    number = stream.parts.index(call)
    at = next(position for position, f in enumerate(stream.frames) if f.part == number and f.piece)
    frames = list(stream.frames)
    data = clone(frames[at].data)
    if len(frames[at].piece) < 3:
        return None
    data["delta"]["partial_json"] = frames[at].piece[2:]
    frames[at] = replace(frames[at], data=data)
    return stream.but(frames)


@operator("anthropic", aspect="items")
def a_block_for_every_fragment(rng: Random, stream: Stream) -> Stream | None:
    """Each fragment of the arguments is in a block of its own, with the id and the name of the call."""
    if _shared(stream) or not any(len(call.arguments) > 1 for call in stream.calls):
        return None
    counts = rng.random() < 0.5  # otherwise, all blocks of a call have the index of the first
    frames: list[Frame] = []
    opened: dict[int, tuple[Frame, bool]] = {}  # the start of the open block, and whether the block has a fragment
    index = -1
    for frame in stream.frames:
        data = clone(frame.data)
        kind = data.get("type", "")
        if kind == "content_block_start":
            index += 1
            opened[frame.part or 0] = (frame, False)
        elif frame.role == "delta" and data["delta"].get("type") == "input_json_delta":
            start, has_fragment = opened[frame.part or 0]
            opened[frame.part or 0] = (start, True)
            if has_fragment:
                frames.append(event("content_block_stop", index=index))
                index += counts
                frames.append(event("content_block_start", index=index, content_block=start.data["content_block"]))
        if kind.startswith("content_block_"):
            data["index"] = index
        frames.append(replace(frame, data=data))
    return stream.but(frames)


@operator("anthropic", aspect="items", effect="ids")
def calls_without_id(_: Random, stream: Stream) -> Stream | None:
    """Calls have no ids."""
    if not stream.calls:
        return None

    def drop(data: Any, frame: Frame) -> None:
        if frame.role == "open":
            data["content_block"].pop("id", None)

    return stream.but(changed(stream, drop), calls=tuple(replace(call, id=None) for call in stream.calls))


@operator("anthropic", aspect="items", effect="ids")
def one_id_for_all_calls(_: Random, stream: Stream) -> Stream | None:
    """All calls have the same id."""
    if not stream.calls or len({str(value_of(call)) for call in stream.calls}) < len(stream.calls):
        return None
    # An empty object may also be a placeholder for arguments that follow.
    if any(value_of(call) == {} for call in stream.calls):
        return None

    def same(data: Any, frame: Frame) -> None:
        if frame.role == "open" and "id" in data["content_block"]:
            data["content_block"]["id"] = "t1"

    first, *rest = stream.calls
    wanted = (replace(first, id="t1"), *(replace(call, id=None) for call in rest))
    return stream.but(changed(stream, same), calls=wanted)


@operator("anthropic", aspect="items")
def interleaved_blocks(_: Random, stream: Stream) -> Stream | None:
    """All blocks are started first; their deltas are interleaved."""
    if any(not isinstance(part, Call) for part in stream.parts[1:]) or len(stream.parts) < 2:
        return None
    opened = [f for f in stream.frames if f.role == "open"]
    rows = [[f for f in stream.frames if f.part == n and f.role != "open"] for n in range(len(stream.parts))]
    mixed: list[Frame] = []
    while any(rows):
        mixed += [row.pop(0) for row in rows if row]
    rest = [f for f in stream.frames if f.part is None]
    return stream.but([rest[0], *opened, *mixed, *rest[1:]])


# Deltas of another type


def _join(stream: Stream, kind: type, into: type, *, closed: bool = False, member: str = "") -> Stream | None:
    """Move the deltas of a block into the preceding block, which has another type."""
    number = next(
        (
            n
            for n, (a, b) in enumerate(zip(stream.parts, stream.parts[1:], strict=False))
            if isinstance(a, into) and isinstance(b, kind)
        ),
        None,
    )
    if number is None:
        return None
    moved = [
        replace(f, data=f.data | {"index": number})
        for f in stream.frames
        if f.part == number + 1 and f.role not in {"open", "close"}
    ]
    if member:
        for at, frame in enumerate(moved):
            if frame.role == "delta":
                delta = dict(frame.data["delta"])
                delta[member] = delta.pop("thinking")
                moved[at] = replace(frame, data=frame.data | {"delta": delta})
    frames = [f for f in stream.frames if f.part != number + 1]
    at = next(position for position, f in enumerate(frames) if f.part == number and f.role == "close")
    position = at + 1 if closed else at
    frames[position:position] = moved
    return stream.but(frames)


@operator("anthropic", aspect="items")
def thinking_in_a_text_block(_: Random, stream: Stream) -> Stream | None:
    """Thinking and its signature are sent as deltas in an open text block."""
    return _join(stream, Reasoning, Text)


@operator("anthropic", aspect="items")
def text_in_a_thinking_block(_: Random, stream: Stream) -> Stream | None:
    """Text is sent as deltas in an open thinking block."""
    return _join(stream, Text, Reasoning)


@operator("anthropic", aspect="items")
def thinking_after_the_block(_: Random, stream: Stream) -> Stream | None:
    """Thinking is sent as deltas with the index of a text block that has ended."""
    return _join(stream, Reasoning, Text, closed=True)


@operator("anthropic", aspect="items")
def thinking_in_the_first_text_block(_: Random, stream: Stream) -> Stream | None:
    """A text block begins with thinking deltas and continues with its text."""
    if len(stream.parts) < 2 or not isinstance(stream.parts[0], Reasoning) or not isinstance(stream.parts[1], Text):
        return None
    thinking = [f for f in stream.frames if f.part == 0 and f.role == "delta"]
    frames = [f for f in stream.frames if f.part != 0]
    at = next(position for position, f in enumerate(frames) if f.part == 1 and f.role == "open") + 1
    frames[at:at] = [replace(f, data=f.data | {"index": 1}) for f in thinking]
    return stream.but(frames)


_each(
    "thinking_under_text",
    "The text of a thinking delta is under `text`.",
    lambda data, frame, _s: (
        data["delta"].update(text=data["delta"].pop("thinking"))
        if frame.role == "delta" and data["delta"].get("type") == "thinking_delta"
        else None
    ),
)


@operator("anthropic", aspect="items")
def text_after_the_stop(_: Random, stream: Stream) -> Stream | None:
    """The last delta of a text block is sent after the block's stop event, with the block's index."""
    number = _first(stream, Text)
    if number is None:
        return None
    own = [f for f in stream.frames if f.part == number]
    pieces = [f for f in own if f.piece]
    close = next((f for f in own if f.role == "close"), None)
    if len(pieces) < 2 or close is None:
        return None
    frames = [f for f in stream.frames if f is not pieces[-1]]
    frames.insert(frames.index(close) + 1, pieces[-1])
    return stream.but(frames)


_each(
    "blocks_without_type",
    "Content blocks have no type.",
    lambda data, frame, _s: data["content_block"].pop("type") and None if frame.role == "open" else None,
)


@operator("anthropic", aspect="items")
def null_deltas(rng: Random, stream: Stream) -> Stream:
    """Deltas that are null or have a null text are sent between the other deltas."""
    frames: list[Frame] = []
    for frame in stream.frames:
        frames.append(frame)
        if frame.role == "delta" and frame.piece and rng.random() < 0.5:
            index, delta = (
                frame.data["index"],
                dict.fromkeys(frame.data["delta"]) | {"type": frame.data["delta"]["type"]},
            )
            frames.append(event("content_block_delta", index=index, delta=rng.choice([delta, None])))
    return stream.but(frames)


# Message events and usage


def _start(name: str, about: str, change: Callable[[dict[str, Any]], Any]) -> None:
    def run(_: Random, stream: Stream) -> Stream:
        def start(data: Any, frame: Frame) -> None:
            if frame.role == "start":
                change(data["message"])

        return stream.but(changed(stream, start))

    operator("anthropic", aspect="envelope", name=name, about=about)(run)


_start("start_content_null", "The content of `message_start` is null.", lambda message: message.update(content=None))
_start("start_without_content", "`message_start` has no content.", lambda message: message.pop("content") and None)


@operator("anthropic", aspect="usage", effect="usage")
def start_without_usage(_: Random, stream: Stream) -> Stream:
    """`message_start` has no usage."""

    def drop(data: Any, frame: Frame) -> None:
        if frame.role == "start":
            data["message"].pop("usage", None)

    return stream.but(changed(stream, drop), usage=None)


@operator("anthropic", aspect="finish")
def stop_reason_beside_the_delta(_: Random, stream: Stream) -> Stream:
    """The stop reason is in `message_delta` itself, not in its `delta`."""

    def move(data: Any, frame: Frame) -> None:
        if frame.role == "finish":
            data["stop_reason"] = data.pop("delta")["stop_reason"]

    return stream.but(changed(stream, move))


_OTHER_WORDS = {
    "end_turn": ("stop", "STOP", "completed"),
    "tool_use": ("tool_calls", "tool-calls", "TOOL_USE"),
    "max_tokens": ("length", "MAX_TOKENS"),
    "refusal": ("content_filter", "SAFETY"),
}


@operator("anthropic", aspect="finish")
def stop_reason_of_another_api(rng: Random, stream: Stream) -> Stream | None:
    """The stop reason is the word of another API, such as `tool_calls` or `MAX_TOKENS`."""
    data: Any = next(frame for frame in stream.frames if frame.role == "finish").data
    delta: Any = data.get("delta") or data
    words = _OTHER_WORDS.get(str(delta.get("stop_reason")))
    if words is None or "delta" not in data:
        return None
    word = rng.choice(words)

    def write(data: Any, frame: Frame) -> None:
        if frame.role == "finish":
            data["delta"]["stop_reason"] = word

    return stream.but(changed(stream, write))


@operator("anthropic", aspect="usage", effect="usage")
def no_usage_in_the_end(_: Random, stream: Stream) -> Stream:
    """`message_delta` has no usage."""

    def drop(data: Any, frame: Frame) -> None:
        if frame.role == "finish":
            data.pop("usage")

    return stream.but(changed(stream, drop), usage=None)


@operator("anthropic", aspect="usage")
def usage_totals_are_cumulative(_: Random, stream: Stream) -> Stream | None:
    """The counts in `message_delta` are totals that include the input again."""
    usage = stream.expected.usage
    if usage is None:
        return None

    def totals(data: Any, frame: Frame) -> None:
        if frame.role == "finish":
            data["usage"] = {"input_tokens": usage.input, "output_tokens": usage.output}

    return stream.but(changed(stream, totals))


@operator("anthropic", aspect="envelope")
def pings_and_unknown_events(rng: Random, stream: Stream) -> Stream:
    """Pings, vendor-specific events and `[DONE]` are sent between the other events."""
    extra = [event("ping"), event("vendor.metrics", x=1), Frame("[DONE]")]
    frames: list[Frame] = []
    for frame in stream.frames:
        frames.append(frame)
        if rng.random() < 0.3:
            frames.append(rng.choice(extra))
    return stream.but(frames)


@operator("anthropic", aspect="envelope", certain=False, opaque=True)
def message_restarts(_: Random, stream: Stream) -> Stream | None:
    """The message restarts with another id after an incomplete attempt."""
    if stream.operators or not stream.parts:
        return None
    first = clone(stream.frames[0].data)
    first["message"]["id"] = "msg_0"
    block = {"type": "text", "text": ""}
    attempt = [
        event("message_start", message=first["message"]),
        event("content_block_start", index=0, content_block=block),
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Onc"}),
    ]
    return stream.but(inserted(stream, 0, *attempt))


@operator("anthropic", aspect="envelope", opaque=True)
def content_before_message_start(_: Random, stream: Stream) -> Stream | None:
    """`message_start` follows the first block."""
    at = next((position for position, f in enumerate(stream.frames) if f.role == "close"), None)
    if at is None or stream.operators:
        return None
    start, *rest = stream.frames
    return stream.but([*rest[:at], start, *rest[at:]])


@operator("anthropic", aspect="envelope")
def no_message_start(_: Random, stream: Stream) -> Stream | None:
    """`message_start` is missing."""
    return stream.but(stream.frames[1:], usage=None) if stream.parts else None


@operator("anthropic", aspect="ending", opaque=True)
def whole_message_in_the_start(_: Random, stream: Stream) -> Stream | None:
    """`message_start` contains all content and the stop reason; no blocks follow."""
    if stream.operators or any(isinstance(part, Reasoning) for part in stream.parts):
        return None

    def whole(data: Any, frame: Frame) -> None:
        if frame.role == "start":
            data["message"]["content"] = [
                {"type": "tool_use", "id": part.id, "name": part.name, "input": value_of(part)}
                if isinstance(part, Call)
                else {"type": "text", "text": part.text}
                for part in stream.parts
            ]
            finish = next(f for f in stream.frames if f.role == "finish")
            data["message"]["stop_reason"] = finish.data["delta"]["stop_reason"]
        if frame.role == "finish":
            data["delta"]["stop_reason"] = None

    return stream.but(f for f in changed(stream, whole) if f.part is None)


# Endings


@operator("anthropic", aspect="ending", effect="truncated")
def no_message_end(_: Random, stream: Stream) -> Stream | None:
    """The stream ends after the last block, without `message_delta` and `message_stop`."""
    if stream.operators:
        return None
    return stream.but(stream.frames[:-2], ending="truncated", finish=None, usage=None)


@operator("anthropic", aspect="ending", effect="assumed")
def no_message_stop(_: Random, stream: Stream) -> Stream | None:
    """The stream ends after the stop reason, without `message_stop`."""
    return None if stream.operators else stream.but(stream.frames[:-1], ending="assumed")


@operator("anthropic", aspect="ending", effect="error")
def overloaded(rng: Random, stream: Stream) -> Stream:
    """An `error` event is sent although the HTTP status is 200."""
    kept = stream.cut(rng.randint(1, len(stream.frames) - 2), "error")
    error = {"type": "overloaded_error", "message": "Overloaded"}
    return kept.but([*kept.frames, event("error", error=error)])
