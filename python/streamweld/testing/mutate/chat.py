"""Operators for texts, envelopes, usage and finish reasons in Chat Completions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from streamweld.options import Policy
from streamweld.testing.builders import DONE, chunk
from streamweld.testing.mutate.registry import changed, clone, inserted, operator
from streamweld.testing.stream import Call, Frame, Reasoning, Stream, Text

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

MERGE: dict[str, Any] = {"policy": Policy("standard", merge_choices=True)}
INLINE: dict[str, Any] = {"policy": Policy("standard", inline_reasoning=True)}


def choice_of(data: Any) -> dict[str, Any] | None:
    """Return the only choice of a chunk, or None if it has no choice."""
    choices: Any = cast("dict[str, Any]", data).get("choices") if isinstance(data, dict) else None
    return choices[0] if choices else None


def of_kind(stream: Stream, frame: Frame, kind: type) -> bool:
    """Return True if the frame contains text that belongs to a part of this kind."""
    return frame.part is not None and isinstance(stream.parts[frame.part], kind) and bool(frame.piece)


def place_of(stream: Stream, role: str) -> int:
    """Return the position of the first frame with this role, or of the last frame if no frame has this role."""
    return next((at for at, frame in enumerate(stream.frames) if frame.role == role), len(stream.frames) - 1)


def _each_choice(
    name: str, about: str, change: Callable[[dict[str, Any], Frame, Stream], None], aspect: Any = "envelope"
) -> None:
    """Register an operator that changes each choice of each chunk."""

    def run(_: Random, stream: Stream) -> Stream:
        def one(data: Any, frame: Frame) -> None:
            choice = choice_of(data)
            if choice is not None:
                change(choice, frame, stream)

        return stream.but(changed(stream, one))

    operator("chat", aspect=aspect, name=name, about=about)(run)


def _each_chunk(name: str, about: str, change: Callable[[dict[str, Any], int, Stream], Any], aspect: Any) -> None:
    """Register an operator that changes each chunk.

    `change` receives the chunk and its number, and may return a different chunk.
    """

    def run(_: Random, stream: Stream) -> Stream:
        numbers = iter(range(len(stream.frames)))
        return stream.but(changed(stream, lambda data, _frame: change(data, next(numbers), stream)))

    operator("chat", aspect=aspect, name=name, about=about)(run)


def _inserting(name: str, about: str, location: Callable[[Random, Stream], int], *data: Any) -> None:
    def run(rng: Random, stream: Stream) -> Stream:
        return stream.but(inserted(stream, location(rng, stream), *(Frame(each) for each in data)))

    operator("chat", aspect="envelope", name=name, about=about)(run)


def _anywhere(rng: Random, stream: Stream) -> int:
    return rng.randint(0, place_of(stream, "finish"))


# Envelopes


@operator(aspect="envelope")
def conformant(_: Random, stream: Stream) -> Stream:
    """The stream has the form in which the API itself sends it."""
    return stream


_inserting(
    "prompt_filter_results",
    "The first chunk has filter results but no choices.",
    lambda _, _s: 0,
    {"id": "", "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
)
_inserting(
    "choices_null",
    "The `choices` of some chunks are null or missing.",
    _anywhere,
    {"id": "x", "choices": None},
    {"id": "x"},
)
_inserting(
    "choice_without_delta",
    "A choice has no delta.",
    _anywhere,
    {"id": "", "choices": [{"index": 0, "finish_reason": None, "content_filter_offsets": {"check_offset": 9}}]},
)
_inserting(
    "delta_null",
    "The delta of a choice is null.",
    _anywhere,
    {"choices": [{"index": 0, "delta": None, "finish_reason": None}]},
)
_each_choice("choice_without_index", "Choices have no index.", lambda choice, _f, _s: choice.pop("index") and None)
_each_choice(
    "role_on_every_chunk",
    "Every delta has a role, which is `assistant` or null.",
    lambda choice, frame, _s: choice["delta"].update(role="assistant" if frame.piece else None),
)
_each_choice(
    "null_members",
    "Absent content and tool calls are sent as null.",
    lambda choice, _f, _s: choice.update(delta={"content": None, "tool_calls": None} | choice["delta"]),
)
_each_choice(
    "empty_tool_calls",
    "Absent tool calls are sent as an empty array.",
    lambda choice, _f, _s: choice.update(delta={"tool_calls": []} | choice["delta"]),
)
_each_choice(
    "finish_without_index",
    "The chunk with the finish reason has no index.",
    lambda choice, frame, _s: choice.pop("index") and None if frame.role == "finish" else None,
)
_each_chunk(
    "new_id_on_every_envelope",
    "Every chunk has another id.",
    lambda data, number, _s: data.update(id=f"chatcmpl-{number}"),
    "envelope",
)
_each_chunk(
    "success_envelope",
    "Chunks are wrapped in `data`, next to a `success` member.",
    lambda data, _n, _s: {"success": True, "data": data},
    "envelope",
)


@operator("chat", aspect="envelope", opaque=True)
def other_choice(_: Random, stream: Stream) -> Stream:
    """A second choice, with its own text and call, is interleaved."""
    call = {"index": 0, "id": "other", "type": "function", "function": {"name": "other", "arguments": '{"o":1}'}}
    deltas: list[Any] = [{"content": "other text"}, {"tool_calls": [call]}, {}]
    frames: list[Frame] = []
    for frame in stream.frames:
        frames.append(frame)
        if frame.role in {"start", "delta"} and len(deltas) > 1:
            frames.append(Frame(_second(deltas.pop(0), None)))
        if frame.role == "finish":
            frames += [Frame(_second(delta, None if delta else "tool_calls")) for delta in deltas]
    return stream.but(frames)


def _second(delta: Any, finish: str | None) -> dict[str, Any]:
    return chunk({}) | {"choices": [{"index": 1, "delta": delta, "finish_reason": finish}]}


@operator("chat", aspect="envelope")
def calls_in_another_choice(_: Random, stream: Stream) -> Stream | None:
    """The text is in choice 0 and the calls are in choice 1; the policy combines them into one response."""
    if not stream.calls or not stream.expected.text:
        return None

    def move(data: Any, frame: Frame) -> None:
        choice = choice_of(data)
        if choice is not None and ("tool_calls" in choice["delta"] or frame.role == "finish"):
            choice["index"] = 1

    return replace(stream.but(changed(stream, move)), options={**stream.options, **MERGE})


def message_of(stream: Stream) -> dict[str, Any]:
    """Return the stream's expected contents as a complete message."""
    truth = stream.expected
    message: dict[str, Any] = {"role": "assistant", "content": truth.text or None}
    if truth.reasoning:
        message["reasoning_content"] = truth.reasoning
    if truth.refusal:
        message["refusal"] = truth.refusal
    if truth.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in truth.calls
        ]
    return message


def _with_message(stream: Stream, frames: list[Frame]) -> list[Frame]:
    def add(frame: Frame) -> Frame:
        if frame.role != "finish":
            return frame
        data = clone(frame.data)
        data["choices"][0]["message"] = message_of(stream)
        return replace(frame, data=data)

    return [add(frame) for frame in frames]


def _plain(stream: Stream) -> bool:
    """Return True if a terminal message can repeat the stream, because no operator was applied and each call has its
    own id.
    """
    return not stream.operators and all(call.id is not None for call in stream.expected.calls)


@operator("chat", aspect="calls", opaque=True)
def terminal_message(_: Random, stream: Stream) -> Stream | None:
    """The last chunk repeats everything as a complete message."""
    return stream.but(_with_message(stream, list(stream.frames))) if _plain(stream) else None


@operator("chat", aspect="calls", opaque=True)
def calls_in_the_terminal_message(_: Random, stream: Stream) -> Stream | None:
    """Calls are sent only in the message of the last chunk."""
    if not _plain(stream) or not stream.calls:
        return None
    rest = [f for f in stream.frames if f.part is None or not isinstance(stream.parts[f.part], Call)]
    return stream.but(_with_message(stream, rest))


@operator("chat", aspect="envelope", opaque=True, certain=False)
def messages_in_place_of_deltas(_: Random, stream: Stream) -> Stream | None:
    """Each choice has a `message` instead of a `delta`."""

    def rename(data: Any, _: Frame) -> None:
        choice = choice_of(data)
        if choice is not None:
            choice["message"] = choice.pop("delta")

    return None if stream.operators else stream.but(changed(stream, rename))


# Texts


def _deltas(
    name: str,
    about: str,
    change: Callable[[dict[str, Any], Frame, Stream], None],
    *,
    kinds: tuple[type, ...] = (Text,),
    options: dict[str, Any] | None = None,
    certain: bool = True,
) -> None:
    """Register an operator that changes each delta for texts of these kinds.

    The operator applies if there is at least one such delta.
    """

    def run(_: Random, stream: Stream) -> Stream | None:
        found = False

        def one(data: Any, frame: Frame) -> None:
            nonlocal found
            if any(of_kind(stream, frame, kind) for kind in kinds):
                found = True
                change(data["choices"][0]["delta"], frame, stream)

        made = stream.but(changed(stream, one))
        return replace(made, options={**stream.options, **(options or {})}) if found else None

    operator("chat", aspect="texts", name=name, about=about, certain=certain)(run)


def _as_parts(delta: dict[str, Any], frame: Frame, stream: Stream) -> None:
    delta.clear()
    text = {"type": "text", "text": frame.piece}
    delta["content"] = [{"type": "thinking", "thinking": [text]} if of_kind(stream, frame, Reasoning) else text]


def _details(delta: dict[str, Any], frame: Frame, _: Stream, **more: Any) -> None:
    delta.clear()
    delta.update(more)
    delta["reasoning_details"] = [{"type": "reasoning.text", "index": 0, "text": frame.piece}]


_deltas("content_is_a_list", "Content is a list of parts: text, and thinking.", _as_parts, kinds=(Text, Reasoning))


def _as_summaries(delta: dict[str, Any], frame: Frame, stream: Stream) -> None:
    delta.clear()
    text = {"type": "text", "text": frame.piece}
    summary = {"type": "reasoning", "summary": [{"type": "summary_text", "text": frame.piece}]}
    delta["content"] = [summary if of_kind(stream, frame, Reasoning) else text]


_deltas(
    "content_lists_summaries",
    "Content is a list of parts: text, and reasoning with a summary (Databricks).",
    _as_summaries,
    kinds=(Text, Reasoning),
)
_deltas(
    "content_is_one_part",
    "Content is a part without a list.",
    lambda delta, frame, _: delta.update(content={"type": "text", "text": frame.piece}),
)
_deltas(
    "reasoning_is_an_object",
    "Reasoning is an object with the text (Envoy AI Gateway).",
    lambda delta, frame, _: delta.update(reasoning_content={"text": frame.piece}),
    kinds=(Reasoning,),
)
_deltas(
    "reasoning_under_another_name",
    "Reasoning is under `reasoning`.",
    lambda delta, frame, _: delta.update(reasoning=frame.piece, reasoning_content=None),
    kinds=(Reasoning,),
)
_deltas(
    "reasoning_twice",
    "Reasoning is under `reasoning` and under `reasoning_content`.",
    lambda delta, frame, _: delta.update(reasoning=frame.piece),
    kinds=(Reasoning,),
)
_deltas(
    "reasoning_and_details",
    "Reasoning is in `reasoning` and in `reasoning_details`.",
    lambda delta, frame, stream: _details(delta, frame, stream, reasoning=frame.piece),
    kinds=(Reasoning,),
)
_deltas(
    "reasoning_details_incremental",
    "Each `reasoning_details` contains one piece of the reasoning.",
    _details,
    kinds=(Reasoning,),
    certain=False,
)
_deltas(
    "empty_placeholders",
    "Absent reasoning and content are sent as empty strings.",
    lambda delta, _f, _s: delta.update({"content": "", "reasoning_content": ""} | delta),
    kinds=(Text, Reasoning),
)


def _cumulative(stream: Stream, kind: type, member: Callable[[str], dict[str, Any]]) -> Stream | None:
    so_far = ""

    def one(data: Any, frame: Frame) -> None:
        nonlocal so_far
        if of_kind(stream, frame, kind):
            so_far += frame.piece
            data["choices"][0]["delta"] = member(so_far)

    made = stream.but(changed(stream, one))
    return made if so_far else None


@operator("chat", aspect="texts", certain=False, opaque=True)
def cumulative_content(_: Random, stream: Stream) -> Stream | None:
    """Each delta repeats all of the text so far; the policy is set to recognize this."""
    made = _cumulative(stream, Text, lambda text: {"content": text})
    return made and replace(made, options={"policy": Policy("standard", content_mode="auto")})


@operator("chat", aspect="texts", certain=False, opaque=True)
def reasoning_details_cumulative(_: Random, stream: Stream) -> Stream | None:
    """`reasoning_details` repeats all of the reasoning so far."""
    return _cumulative(stream, Reasoning, lambda text: {"reasoning_details": [{"index": 0, "text": text}]})


@operator("chat", aspect="texts", certain=False, opaque=True)
def finish_restates_content(_: Random, stream: Stream) -> Stream | None:
    """The chunk with the finish reason repeats the complete text."""
    if sum(of_kind(stream, frame, Text) for frame in stream.frames) < 2 or stream.expected.refusal:
        return None

    def restate(data: Any, frame: Frame) -> None:
        if frame.role == "finish":
            data["choices"][0]["delta"]["content"] = stream.expected.text

    return stream.but(changed(stream, restate))


@operator("chat", aspect="texts", opaque=True)
def last_text_on_finish(_: Random, stream: Stream) -> Stream | None:
    """The last piece of text is in the chunk with the finish reason."""
    last = next((at for at in reversed(range(len(stream.frames))) if of_kind(stream, stream.frames[at], Text)), None)
    if last is None:
        return None
    piece = stream.frames[last].piece
    if stream.expected.text == 2 * piece:  # a reader would treat this piece as a repetition of the complete text
        return None

    def move(data: Any, frame: Frame) -> None:
        if frame.role == "finish":
            data["choices"][0]["delta"]["content"] = piece

    frames = changed(stream, move)
    del frames[last]
    return stream.but(frames)


@operator("chat", aspect="envelope", certain=False, opaque=True)
def answer_restarts(_: Random, stream: Stream) -> Stream | None:
    """The response restarts with another id after an incomplete attempt; the policy expects this."""
    if stream.operators:
        return None
    first = [
        Frame(chunk({"role": "assistant", "content": ""}, id="chatcmpl-first")),
        Frame(chunk({"content": "Once up"}, id="chatcmpl-first")),
    ]
    options = {"policy": Policy("standard", restart_on_new_stream_id=True)}
    return replace(stream.but(inserted(stream, 0, *first)), options=options)


# Operators that put thinking tags into the content; readers need the policy `inline_reasoning`


def _tagged(stream: Stream, pieces: list[str], **expected: Any) -> Stream | None:
    """Replace reasoning at the start of the stream with `pieces` of content."""
    if not stream.parts or not isinstance(stream.parts[0], Reasoning) or stream.operators:
        return None
    if sum(isinstance(part, Reasoning) for part in stream.parts) > 1 or "<" in stream.expected.text:
        return None
    if not stream.expected.reasoning.strip() or "<" in stream.expected.reasoning:
        return None
    rest = stream.but(frame for frame in stream.frames if frame.part != 0)
    frames = inserted(rest, 1, *(Frame(chunk({"content": piece})) for piece in pieces))
    return replace(stream.but(frames, **expected), options=INLINE)


@operator("chat", aspect="texts", opaque=True)
def think_tags(_: Random, stream: Stream) -> Stream | None:
    """Reasoning is in the content between `<think>` and `</think>`, which are split between chunks."""
    thought = stream.expected.reasoning
    return _tagged(stream, ["<th", f"ink>{thought}</thi", "nk>"])


@operator("chat", aspect="texts", opaque=True)
def think_tag_closed_only(_: Random, stream: Stream) -> Stream | None:
    """Reasoning is in the content before `</think>`; the opening tag was in the prompt."""
    return _tagged(stream, [f"{stream.expected.reasoning}</think>"])


@operator("chat", aspect="texts", effect="texts", opaque=True)
def think_tag_not_closed(_: Random, stream: Stream) -> Stream | None:
    """`<think>` is never closed, so all content is reasoning."""
    if stream.calls or stream.expected.refusal:
        return None
    thought = stream.expected.reasoning
    return _tagged(stream, ["<think>" + thought], text="", reasoning=thought + stream.expected.text)


@operator("chat", aspect="texts", opaque=True)
def think_tags_and_reasoning(_: Random, stream: Stream) -> Stream | None:
    """The same reasoning is sent between tags in the content and in `reasoning_content`."""
    thought = stream.expected.reasoning
    made = _tagged(stream, [f"<think>{thought}</think>"])
    if made is None:
        return None

    def add(data: Any, _frame: Frame) -> None:
        choice = choice_of(data)
        if choice is not None and str(choice["delta"].get("content", "")).startswith("<think>"):
            choice["delta"]["reasoning_content"] = thought

    return made.but(changed(made, add))


# Usage


def _counts(stream: Stream) -> dict[str, Any] | None:
    usage = stream.expected.usage
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
    }


def _usage(
    name: str, about: str, change: Callable[[dict[str, Any], Frame, dict[str, Any], int], None], *, last: bool = False
) -> None:
    """Register an operator that changes the usage. `last`: whether to keep the chunk with the original usage."""

    def run(_: Random, stream: Stream) -> Stream | None:
        counts = _counts(stream)
        if counts is None:
            return None
        numbers = iter(range(len(stream.frames)))
        frames = changed(stream, lambda data, frame: change(data, frame, counts, next(numbers)))
        return stream.but(frame for frame in frames if last or frame.role != "usage")

    operator("chat", aspect="usage", name=name, about=about)(run)


def _growing(data: dict[str, Any], frame: Frame, counts: dict[str, Any], number: int) -> None:
    data["usage"] = counts
    if frame.role != "finish":
        done = min(number, counts["completion_tokens"])
        total = counts["prompt_tokens"] + done
        data["usage"] = counts | {"completion_tokens": done, "total_tokens": total}


_usage("usage_on_every_chunk", "Every chunk contains the token counts so far.", _growing)
_usage(
    "usage_null_elsewhere",
    "Usage is null in every chunk except the last.",
    lambda data, frame, _c, _n: None if frame.role == "usage" else data.update(usage=None),
    last=True,
)
_usage(
    "usage_null_afterwards",
    "Usage is in the first chunk, and null afterwards.",
    lambda data, frame, counts, _n: data.update(usage=counts if frame.role == "start" else None),
)
_usage(
    "usage_zero_afterwards",
    "Usage is in the first chunk, and all zeros afterwards.",
    lambda data, frame, counts, _n: data.update(usage=counts if frame.role == "start" else dict.fromkeys(counts, 0)),
)
_usage(
    "usage_in_the_choice",
    "Usage is inside the last choice.",
    lambda data, frame, counts, _n: data["choices"][0].update(usage=counts) if frame.role == "finish" else None,
)


# Finish reasons


def _finish(
    name: str,
    about: str,
    change: Callable[[list[Frame], int, Stream], None],
    *,
    calls: bool | None = None,
    effect: str = "nothing",
    alone: bool = False,
    expect: Callable[[Stream], dict[str, Any]] = lambda _: {},
) -> None:
    """Register an operator that changes the finish reason.

    `change` receives the frames and the position of the finish reason. `calls`: True applies the operator only to
    streams with calls, False only to streams without calls. `alone`: the operator applies only to streams that no other
    operator has changed.
    """

    def run(_: Random, stream: Stream) -> Stream | None:
        at = place_of(stream, "finish")
        finishes = stream.frames[at].role == "finish"
        if not finishes or (calls is not None and bool(stream.expected.calls) != calls):
            return None
        if alone and stream.operators:
            return None
        frames = list(stream.frames)
        change(frames, at, stream)
        return stream.but(frames, **expect(stream))

    operator("chat", aspect="finish", name=name, about=about, effect=effect)(run)


def _reason(frames: list[Frame], at: int, reason: Any) -> None:
    data = clone(frames[at].data)
    data["choices"][0]["finish_reason"] = reason
    frames[at] = replace(frames[at], data=data)


def _empty_elsewhere(frames: list[Frame], at: int, _: Stream) -> None:
    for location, frame in enumerate(frames):
        if location != at and choice_of(frame.data) is not None:
            _reason(frames, location, "")


def _null_elsewhere(frames: list[Frame], at: int, _: Stream) -> None:
    for place in range(at):
        if choice_of(frames[place].data) is not None:
            _reason(frames, place, "null")


def _camel(frames: list[Frame], at: int, _: Stream) -> None:
    data = clone(frames[at].data)
    data["choices"][0]["finishReason"] = data["choices"][0].pop("finish_reason").upper()
    frames[at] = replace(frames[at], data=data)


def _early(frames: list[Frame], at: int, stream: Stream) -> None:
    """Move the finish reason before the last frame of a call."""
    del stream
    frame = frames.pop(at)
    last = max((location for location, each in enumerate(frames) if "tool_calls" in str(each.data)), default=at)
    frames.insert(last, frame)


_finish(
    "finish_stop_with_calls",
    "The finish reason is `stop` although there are calls.",
    lambda frames, at, _: _reason(frames, at, "stop"),
    calls=True,
)
_finish("finish_empty_elsewhere", "The finish reason is an empty string in all other chunks.", _empty_elsewhere)
_finish("finish_null_elsewhere", "The finish reason is the string `null` in all earlier chunks.", _null_elsewhere)
_finish(
    "no_finish_reason",
    "The stream ends with `[DONE]`, but no chunk has a finish reason.",
    lambda frames, at, _: _reason(frames, at, None),
    effect="finish",
    alone=True,
    expect=lambda stream: {
        "calls": tuple(c for c in stream.expected.calls if c.arguments),
        "finish": "tool_calls" if stream.expected.calls else "stop",
    },
)
_finish(
    "finish_twice",
    "The finish reason is sent twice.",
    lambda frames, at, _: frames.insert(at + 1, Frame(chunk({}, frames[at].data["choices"][0]["finish_reason"]))),
)
_finish(
    "finish_then_stop",
    "The finish reason `tool_calls` is followed by `stop`.",
    lambda frames, at, _: frames.insert(at + 1, Frame(chunk({}, "stop"))),
    calls=True,
)
_finish(
    "finish_tool_calls_without_calls",
    "The finish reason is `tool_calls`, but no call was sent.",
    lambda frames, at, _: _reason(frames, at, "tool_calls"),
    calls=False,
)
_finish(
    "calls_after_finish",
    "The last fragment of the last call is sent after the finish reason.",
    _early,
    calls=True,
    alone=True,
)
_finish("finish_in_camel_case", "The finish reason is under `finishReason`, in capitals.", _camel)


_OTHER_WORDS = {
    "stop": ("end_turn", "STOP", "eos_token", "COMPLETE"),
    "tool_calls": ("tool_use", "TOOL_CALLS", "tool-calls"),
    "length": ("max_tokens", "MAX_TOKENS", "max_output_tokens"),
    "content_filter": ("refusal", "SAFETY", "sensitive"),
}


@operator("chat", aspect="finish")
def finish_of_another_api(rng: Random, stream: Stream) -> Stream | None:
    """The finish reason is the word of another API, such as `tool_use` or `MAX_TOKENS`."""
    at = place_of(stream, "finish")
    words = _OTHER_WORDS.get(stream.frames[at].data["choices"][0].get("finish_reason") or "")
    if words is None:
        return None
    frames = list(stream.frames)
    _reason(frames, at, rng.choice(words))
    return stream.but(frames)


@operator("chat", aspect="finish")
def finish_with_the_last_delta(_: Random, stream: Stream) -> Stream | None:
    """The finish reason is in the last chunk with content."""
    at = place_of(stream, "finish")
    last, finish = stream.frames[at - 1], stream.frames[at]
    choice, end = choice_of(last.data), choice_of(finish.data)
    if choice is None or end is None or end["delta"] or not ("tool_calls" in choice["delta"] or last.piece):
        return None
    # A reader would treat this text as a repetition of the complete text.
    if last.piece and stream.expected.text == 2 * last.piece:
        return None
    data = clone(finish.data)
    data["choices"][0]["delta"] = choice["delta"]
    return stream.but([*stream.frames[: at - 1], replace(last, data=data, role="finish"), *stream.frames[at + 1 :]])


# Endings


@operator("chat", aspect="ending", effect="truncated")
def length_in_the_arguments(_: Random, stream: Stream) -> Stream | None:
    """The finish reason `length` arrives in the middle of the arguments, so the call must not be run."""
    if stream.operators or not stream.calls:
        return None
    last = max(n for n, part in enumerate(stream.parts) if isinstance(part, Call))
    positions = [at for at, frame in enumerate(stream.frames) if frame.part == last and frame.piece]
    if len(positions) < 2:
        return None
    kept = stream.cut(positions[-1], "complete")
    frames = [*kept.frames, Frame(chunk({}, "length"), role="finish"), DONE]
    # A call without arguments is complete only if the finish reason is a success.
    calls = tuple(call for call in stream.expected.calls[:-1] if call.arguments)
    return kept.but(frames, calls=calls, finish="length")


@operator("chat", aspect="ending", effect="error")
def error_beside_a_choice(rng: Random, stream: Stream) -> Stream | None:
    """An error is sent in the same chunk as a choice whose finish reason is `error`."""
    if "success_envelope" in stream.operators:
        return None
    kept = stream.cut(rng.randint(1, max(1, place_of(stream, "finish"))), "error")
    error = {"error": {"code": 502, "message": "provider disconnected"}}
    return kept.but([*kept.frames, Frame(chunk({"content": ""}, "error") | error), DONE])
