"""Operators for Responses streams."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from streamweld.testing.builders import value_of
from streamweld.testing.mutate.registry import changed, clone, inserted, operator
from streamweld.testing.stream import Call, Frame, Reasoning, Stream, Text

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random


def kind_of(data: Any) -> str:
    """Return the type of an event without the prefix `response.`."""
    if not isinstance(data, dict):
        return ""
    return str(cast("dict[str, Any]", data).get("type", "")).removeprefix("response.")


def event(kind: str, **members: Any) -> Frame:
    """Return a new event frame."""
    return Frame({"type": f"response.{kind}"} | members, f"response.{kind}")


def _each(
    name: str,
    about: str,
    change: Callable[[str, dict[str, Any], Frame, Stream], Any],
    *,
    calls: bool | None = None,
    aspect: Any = "items",
    effect: str = "nothing",
) -> None:
    """Register an operator that changes each event of a stream without repeated call ids.

    If `calls` is set, the operator applies only to streams with calls.
    """

    def run(_: Random, stream: Stream) -> Stream | None:
        ids = [call.id for call in stream.calls]
        if (calls is not None and not ids) or len(set(ids)) < len(ids):
            return None
        return stream.but(changed(stream, lambda data, frame: change(kind_of(data), data, frame, stream)))

    operator("responses", aspect=aspect, name=name, about=about, effect=effect)(run)


def _without(
    name: str,
    about: str,
    drop: Callable[[str, Frame, Stream], bool],
    *,
    calls: bool = False,
) -> None:
    """Register an operator that omits events."""

    def run(_: Random, stream: Stream) -> Stream | None:
        if (calls and not stream.calls) or _shared(stream):
            return None
        return stream.but(f for f in stream.frames if not drop(kind_of(f.data), f, stream))

    operator("responses", aspect="items", name=name, about=about)(run)


def _shared(stream: Stream) -> bool:
    ids = [call.id for call in stream.calls]
    return len(set(ids)) < len(ids)


def _is_call(frame: Frame, stream: Stream) -> bool:
    return frame.part is not None and isinstance(stream.parts[frame.part], Call)


def _call_of(frame: Frame, stream: Stream) -> Call | None:
    part = None if frame.part is None else stream.parts[frame.part]
    return part if isinstance(part, Call) else None


def _output(data: Any) -> list[dict[str, Any]]:
    """Return the items in the terminal event; another operator may have removed them."""
    return data["response"].get("output", []) if kind_of(data) in {"completed", "incomplete"} else []


# Ids and indexes


def _duplicate_added(rng: Random, stream: Stream, **other: Any) -> Stream | None:
    """Announce the first call again, after its arguments."""
    del rng
    if not stream.calls or _shared(stream) or value_of(stream.calls[0]) == {}:
        return None
    part = stream.parts.index(stream.calls[0])
    opened = next(f for f in stream.frames if f.part == part and f.role == "open")
    data = clone(opened.data)
    data["item"] |= other
    if other:
        data["output_index"] = len(stream.parts)
        data["item"]["arguments"] = stream.calls[0].arguments
    at = next(position for position, f in enumerate(stream.frames) if f.part == part and f.role == "close")
    if not other:
        at = stream.frames.index(opened) + 1
    data.pop("sequence_number")
    return stream.but(inserted(stream, at, Frame(data, opened.event)))


@operator("responses", aspect="items")
def call_announced_again(rng: Random, stream: Stream) -> Stream | None:
    """A call is announced again with another item id and index, but the same call id."""
    return _duplicate_added(rng, stream, id="item_again")


@operator("responses", aspect="items")
def item_announced_twice(rng: Random, stream: Stream) -> Stream | None:
    """A call is announced twice with the same ids."""
    return _duplicate_added(rng, stream)


def _ids(change: Callable[[str, int], str]) -> Callable[[str, dict[str, Any], Frame, Stream], None]:
    """Return a change of each item id in an event. `change` receives the id and the number of the event."""

    def run(kind: str, data: dict[str, Any], frame: Frame, stream: Stream) -> None:
        number = next(at for at, other in enumerate(stream.frames) if other is frame)
        if frame.part is not None:
            if "item_id" in data:
                data["item_id"] = change(data["item_id"], number)
            if "item" in data:
                data["item"]["id"] = change(data["item"]["id"], number)
        for item in _output(data):
            item["id"] = change(item["id"], number)
        del kind

    return run


def _composite(kind: str, data: dict[str, Any], frame: Frame, stream: Stream) -> None:
    call = _call_of(frame, stream)
    if call is None:
        return
    if "item_id" in data:
        data["item_id"] = call.id
    if kind == "output_item.done":
        data["item"]["id"] = f"{call.id}|{data['item']['id']}"


def _by_call_id(_: str, data: dict[str, Any], frame: Frame, stream: Stream) -> None:
    call = _call_of(frame, stream)
    if call is not None and "item_id" in data:
        del data["item_id"], data["output_index"]
        data["call_id"] = call.id


_each("new_item_id_in_every_event", "Every event has another item id.", _ids(lambda old, n: f"{old}_{n}"))
_each("empty_item_ids", "Item ids are empty.", _ids(lambda _old, _n: ""))
_each("call_id_as_item_id", "The item id is the call id, or both ids joined by a vertical bar.", _composite, calls=True)
_each(
    "output_index_0",
    "Every output index is 0.",
    lambda _k, data, _f, _s: data.update(output_index=0) if "output_index" in data else None,
)
_each(
    "other_output_index_at_the_end",
    "The output index differs between deltas and the end of an item.",
    lambda kind, data, _f, _s: (
        data.update(output_index=data["output_index"] + 50) if kind == "output_item.done" else None
    ),
)
_each(
    "no_output_index",
    "Deltas of calls have an item id and no output index.",
    lambda _k, data, frame, stream: (
        data.pop("output_index", None) and None if _is_call(frame, stream) and "item_id" in data else None
    ),
    calls=True,
)
_each(
    "call_id_instead_of_item_id",
    "Deltas of calls have a call id, and neither item id nor output index.",
    _by_call_id,
    calls=True,
)
_each(
    "items_without_id",
    "Items have no id in `output_item.done` and in the final output.",
    lambda kind, data, _f, _s: (
        [item.pop("id") for item in _output(data)] and None
        if _output(data)
        else data["item"].pop("id") and None
        if kind == "output_item.done"
        else None
    ),
)
_each(
    "content_index_from_one",
    "`content_index` and `summary_index` begin at 1.",
    lambda _k, data, _f, _s: (
        [data.update({key: data[key] + 1}) for key in ("content_index", "summary_index") if key in data] and None
    ),
)
_each(
    "content_index_never_reset",
    "`content_index` is not reset for a new item.",
    lambda _k, data, frame, _s: data.update(content_index=frame.part) if "content_index" in data else None,
)
_each(
    "no_content_index",
    "Deltas have no `content_index`.",
    lambda _k, data, _f, _s: data.pop("content_index", None) and None,
)
_each(
    "sequence_number_constant",
    "Every sequence number is 1.",
    lambda _k, data, _f, _s: data.update(sequence_number=1),
    aspect="envelope",
)
_each(
    "no_sequence_number",
    "Events have no sequence number.",
    lambda _k, data, _f, _s: data.pop("sequence_number", None) and None,
    aspect="envelope",
)


@operator("responses", aspect="items", opaque=True)
def content_index_on_every_delta(_: Random, stream: Stream) -> Stream | None:
    """`content_index` increases with every delta."""
    if any(isinstance(part, Text) and not part.text for part in stream.parts):
        return None
    numbers: dict[int | None, int] = {}

    def change(data: Any, frame: Frame) -> None:
        if frame.role == "delta" and "content_index" in data:
            data["content_index"] = numbers.get(frame.part, 0)
            numbers[frame.part] = numbers.get(frame.part, 0) + 1

    return stream.but(f for f in changed(stream, change) if kind_of(f.data) not in _WITHIN)


_WITHIN = {"content_part.added", "content_part.done", "output_text.done", "refusal.done"}


# Omitted events

_without(
    "arguments_in_done_only",
    "Arguments are sent only in the events that end them.",
    lambda kind, _f, _s: kind == "function_call_arguments.delta",
    calls=True,
)
_without(
    "arguments_in_the_item_only",
    "Arguments are sent only in the item that ends the call.",
    lambda kind, _f, _s: kind.startswith("function_call_arguments."),
    calls=True,
)
_without(
    "no_item_ends",
    "The events that end call items are missing.",
    lambda kind, frame, stream: kind == "output_item.done" and _is_call(frame, stream),
    calls=True,
)
_without(
    "items_not_announced",
    "Calls are not announced.",
    lambda kind, frame, stream: kind == "output_item.added" and _is_call(frame, stream),
    calls=True,
)
_without(
    "messages_not_announced",
    "Messages and their parts are not announced.",
    lambda kind, frame, stream: kind in {"output_item.added", "content_part.added"} and not _is_call(frame, stream),
)
_without(
    "parts_not_announced", "Parts of messages are not announced.", lambda kind, _f, _s: kind.endswith("_part.added")
)
_without(
    "no_response_created",
    "The stream begins without `response.created`.",
    lambda kind, _f, _s: kind in {"created", "in_progress"},
)
_without(
    "no_text_done",
    "Texts have no `done` events; only deltas and the final item are sent.",
    lambda kind, _f, _s: kind in {"output_text.done", "content_part.done"},
)
_without(
    "items_at_the_end_only", "Items are sent only in the last event.", lambda _k, frame, _s: frame.part is not None
)
_each(
    "empty_output_at_the_end",
    "The output of the last event is empty.",
    lambda kind, data, _f, _s: data["response"].update(output=[]) if kind == "completed" else None,
)
_each(
    "no_output_at_the_end",
    "The last event has no output.",
    lambda kind, data, _f, _s: data["response"].pop("output") and None if kind == "completed" else None,
)
_each(
    "end_is_response_done",
    "The last event is `response.done`.",
    lambda kind, data, _f, _s: data.update(type="response.done") if kind == "completed" else None,
)
_each(
    "empty_name_at_the_end",
    "The item that ends a call has an empty name.",
    lambda kind, data, frame, stream: (
        data["item"].update(name="") if kind == "output_item.done" and _is_call(frame, stream) else None
    ),
    calls=True,
)
_each(
    "empty_arguments_at_the_end",
    "The arguments in the item that ends a call are `{}`.",
    lambda kind, data, frame, stream: (
        data["item"].update(arguments="{}") if kind == "output_item.done" and _is_call(frame, stream) else None
    ),
    calls=True,
)
_each(
    "other_ids_at_the_end",
    "Items have other ids in the last event.",
    lambda _k, data, _f, _s: [item.update(id=item["id"] + "_last") for item in _output(data)] and None,
)
_each(
    "delta_is_an_object",
    "Each text delta is an object with `text`.",
    lambda kind, data, _f, _s: data.update(delta={"text": data["delta"]}) if kind == "output_text.delta" else None,
)


@operator("responses", aspect="items", opaque=True)
def text_in_output_text_only(_: Random, stream: Stream) -> Stream | None:
    """The whole text is in the `output_text` of the last event, whose output is empty."""
    if stream.operators or not stream.parts or not all(isinstance(part, Text) for part in stream.parts):
        return None

    def change(data: Any, _frame: Frame) -> None:
        if kind_of(data) == "completed":
            data["response"].update(output=[], output_text=stream.expected.text)

    return stream.but(frame for frame in changed(stream, change) if frame.part is None)


@operator("responses", aspect="items", opaque=True)
def object_deltas_without_done(_: Random, stream: Stream) -> Stream | None:
    """Each text delta is an object with a `text` member, and no other event repeats the text."""
    if not stream.expected.text or any(isinstance(part, (Call, Reasoning)) for part in stream.parts):
        return None

    def change(data: Any, _frame: Frame) -> None:
        if kind_of(data) == "output_text.delta":
            data["delta"] = {"text": data["delta"]}
        if kind_of(data) == "completed":
            data["response"]["output"] = []

    dropped = {"output_text.done", "content_part.done", "output_item.done"}
    return stream.but(f for f in changed(stream, change) if kind_of(f.data) not in dropped)


# Order of events


def _around(stream: Stream) -> tuple[int, int] | None:
    """Return the positions of the announcement and the second delta of the first call that has two deltas."""
    for number, part in enumerate(stream.parts):
        locations = [at for at, f in enumerate(stream.frames) if f.part == number and f.role == "delta"]
        if isinstance(part, Call) and len(locations) > 1:
            return locations[0] - 1, locations[0]
    return None


@operator("responses", aspect="items")
def delta_before_the_item(_: Random, stream: Stream) -> Stream | None:
    """The first arguments of a call precede its announcement."""
    locations = _around(stream)
    if locations is None or _shared(stream):
        return None
    frames = list(stream.frames)
    first, second = locations
    frames[first], frames[second] = frames[second], frames[first]
    return stream.but(frames)


@operator("responses", aspect="items")
def delta_after_the_end(_: Random, stream: Stream) -> Stream | None:
    """The arguments of a call are sent again after its end."""
    call = next((part for part in stream.calls if value_of(part) != {}), None)
    if call is None or _shared(stream):
        return None
    part = stream.parts.index(call)
    at = next(position for position, f in enumerate(stream.frames) if f.part == part and f.role == "close")
    late = event("function_call_arguments.delta", output_index=part, item_id=f"item_{part + 1}", delta=call.arguments)
    return stream.but(inserted(stream, at + 1, late))


@operator("responses", aspect="items")
def announcement_has_the_first_delta(_: Random, stream: Stream) -> Stream | None:
    """The announcement of a call contains the arguments that the first delta repeats."""
    locations = _around(stream)
    if locations is None or _shared(stream):
        return None
    piece = stream.frames[locations[1]].piece
    frames = list(stream.frames)
    data = clone(frames[locations[0]].data)
    data["item"]["arguments"] = piece
    frames[locations[0]] = replace(frames[locations[0]], data=data)
    return stream.but(frames) if len(piece) > 1 else None


@operator("responses", aspect="items", opaque=True)
def events_replayed(rng: Random, stream: Stream) -> Stream:
    """Some events are sent again with the same sequence number, as after a resumed connection."""
    at = rng.randrange(1, len(stream.frames) - 1)
    again = stream.frames[max(0, at - 2) : at + 1]
    return stream.but(inserted(stream, at + 1, *again))


@operator("responses", aspect="items")
def items_in_another_order(_: Random, stream: Stream) -> Stream | None:
    """Items are sent in reverse order, with correct output indexes."""
    if not stream.parts or any(not isinstance(part, Call) for part in stream.parts) or _shared(stream):
        return None
    head = [f for f in stream.frames if f.part is None and f.role != "end"]
    items = [f for part in reversed(range(len(stream.parts))) for f in stream.frames if f.part == part]
    return stream.but([*head, *items, stream.frames[-1]])


@operator("responses", aspect="items")
def interleaved_calls(_: Random, stream: Stream) -> Stream | None:
    """All calls are announced first; their arguments are interleaved."""
    if len(stream.calls) < 2 or _shared(stream) or any(not isinstance(part, Call) for part in stream.parts):
        return None
    head = [f for f in stream.frames if f.part is None and f.role != "end"]
    opened = [f for f in stream.frames if f.role == "open"]
    rows = [[f for f in stream.frames if f.part == n and f.role != "open"] for n in range(len(stream.parts))]
    mixed: list[Frame] = []
    while any(rows):
        mixed += [row.pop(0) for row in rows if row]
    return stream.but([*head, *opened, *mixed, stream.frames[-1]])


@operator("responses", aspect="envelope", opaque=True)
def vendor_items(_: Random, stream: Stream) -> Stream:
    """Vendor-specific items precede the end: a shell command with its output and a compaction."""
    at = len(stream.parts)
    command = {"type": "shell_call", "id": "sh_1", "call_id": "shell_1", "action": {"commands": ["ls"]}}
    output: dict[str, Any] = {"type": "shell_call_output", "id": "sho_1", "call_id": "shell_1"}
    output |= {"output": [{"stdout": "a\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]}
    items = (command, output, {"type": "compaction", "id": "cmp_1", "encrypted_content": "c2ln"})
    frames = [
        event(f"output_item.{step}", output_index=at + number, item=item)
        for number, item in enumerate(items)
        for step in ("added", "done")
    ]
    return stream.but(inserted(stream, len(stream.frames) - 1, *frames))


@operator("responses", aspect="envelope", opaque=True)
def two_cycles(_: Random, stream: Stream) -> Stream | None:
    """The stream is sent twice, from `response.created` to `response.completed`."""
    if stream.operators or stream.calls:
        return None

    def second(data: Any, _frame: Frame) -> None:
        if "response" in data:
            data["response"]["id"] = "resp_2"
        data.pop("sequence_number", None)

    return stream.but([*stream.frames, *changed(stream, second)])


@operator("responses", aspect="envelope", opaque=True)
def result_with_the_call_id(_: Random, stream: Stream) -> Stream | None:
    """The result of a call is an item with the same call id."""
    if not stream.calls or stream.operators or _shared(stream):
        return None
    item = {"type": "function_call_output", "id": "o1", "call_id": stream.calls[0].id, "output": "12"}
    result = event("output_item.added", output_index=len(stream.parts), item=item)
    made = stream.but(inserted(stream, len(stream.frames) - 1, result))
    return made.but(calls=stream.expected.calls[1:], finish=None)


@operator("responses", aspect="envelope")
def response_beside_the_type(_: Random, stream: Stream) -> Stream:
    """The members of the response are next to the type of the event instead of in `response`."""

    def unwrap(data: Any, _frame: Frame) -> dict[str, Any] | None:
        return data | data.pop("response") if isinstance(data.get("response"), dict) else None

    return stream.but(changed(stream, unwrap))


# Several texts in one message


@operator("responses", aspect="items", opaque=True)
def two_parts_with_deltas_only(_: Random, stream: Stream) -> Stream | None:
    """A message has two text parts for which only deltas are sent; the done event of the item lists both."""
    number = next((n for n, p in enumerate(stream.parts) if isinstance(p, Text) and len(p.text) > 1), None)
    if number is None or stream.operators:
        return None
    part = stream.parts[number]
    assert isinstance(part, Text)  # noqa: S101
    halves = (part.text[: len(part.text) // 2], part.text[len(part.text) // 2 :])
    content: list[Any] = [{"type": "output_text", "text": half, "annotations": []} for half in halves]
    at = {"output_index": number, "item_id": f"item_{number + 1}"}
    deltas = [event("output_text.delta", **at, content_index=n, delta=half) for n, half in enumerate(halves)]
    frames: list[Frame] = []
    for frame in stream.frames:
        data = clone(frame.data)
        if frame.part == number and frame.role not in {"open", "close"}:
            continue
        if frame.part == number and frame.role == "close":
            data["item"]["content"] = content
        if frame.role == "end":
            data["response"]["output"][number]["content"] = content
        frames.append(replace(frame, data=data))
        if frame.part == number and frame.role == "open":
            frames += deltas
    return stream.but(frames)


# Endings


@operator("responses", aspect="ending", effect="assumed")
def no_response_completed(_: Random, stream: Stream) -> Stream | None:
    """The stream ends without `response.completed`."""
    if stream.operators:
        return None
    return stream.but(stream.frames[:-1], ending="truncated", finish=None, usage=None)


@operator("responses", aspect="ending", effect="truncated")
def incomplete_in_the_arguments(_: Random, stream: Stream) -> Stream | None:
    """`response.incomplete` is sent in the middle of the arguments, so the call must not be run."""
    if stream.operators or not stream.calls:
        return None
    last = max(n for n, part in enumerate(stream.parts) if isinstance(part, Call))
    locations = [at for at, frame in enumerate(stream.frames) if frame.part == last and frame.piece]
    if len(locations) < 2:
        return None
    kept = stream.cut(locations[-1], "complete")
    response: dict[str, Any] = {"id": "resp_1", "status": "incomplete", "output": []}
    response["incomplete_details"] = {"reason": "max_output_tokens"}
    # A call without arguments is complete only if the finish reason is a success.
    calls = tuple(call for call in stream.expected.calls[:-1] if call.arguments)
    return kept.but([*kept.frames, event("incomplete", response=response)], calls=calls, finish="length")


@operator("responses", aspect="ending", effect="error")
def response_failed(rng: Random, stream: Stream) -> Stream:
    """`response.failed` is sent in the middle of the stream."""
    kept = stream.cut(rng.randint(1, len(stream.frames) - 1), "error")
    error = {"code": "server_error", "message": "no"}
    return kept.but([*kept.frames, event("failed", response={"id": "resp_1", "status": "failed", "error": error})])


# Values of other types and names


def _calls_in(kind: str, data: dict[str, Any]) -> list[dict[str, Any]]:
    items = [data["item"]] if kind == "output_item.done" else _output(data)
    return [item for item in items if item["type"] == "function_call"]


def _nameless_at_the_end(kind: str, data: dict[str, Any], _: Frame, _stream: Stream) -> None:
    for item in _calls_in(kind, data):
        item["name"] = ""


def _object_arguments(kind: str, data: dict[str, Any], _: Frame, _stream: Stream) -> None:
    for item in _calls_in(kind, data):
        item["arguments"] = json.loads(item["arguments"] or "{}")


def _parts_of_type_text(kind: str, data: dict[str, Any], _: Frame, _stream: Stream) -> None:
    items = [data["item"]] if "item" in data else _output(data)
    parts = [part for item in items if item["type"] == "message" for part in item["content"]]
    for part in [*parts, *([data["part"]] if kind.startswith("content_part") else [])]:
        part["type"] = "text" if part["type"] == "output_text" else part["type"]


def _under_text(kind: str, data: dict[str, Any], _: Frame, _stream: Stream) -> None:
    if kind == "output_text.delta":
        data["text"] = data.pop("delta")


def _flat(kind: str, data: dict[str, Any], _: Frame, _stream: Stream) -> None:
    if kind in {"created", "in_progress"}:
        data.update(data.pop("response"))


_each(
    "no_name_at_the_end",
    "Completed calls have an empty name, even in the last event.",
    _nameless_at_the_end,
    calls=True,
)
_each("object_arguments_at_the_end", "The arguments of completed calls are objects.", _object_arguments, calls=True)
_each("parts_of_type_text", "Content parts have the type `text`.", _parts_of_type_text, aspect="texts")
_each("delta_under_text", "The text of a delta is under `text`.", _under_text, aspect="texts")
_each("response_not_wrapped", "The first events contain the response itself.", _flat, aspect="envelope")


@operator("responses", aspect="envelope")
def marker_before_the_end(_: Random, stream: Stream) -> Stream | None:
    """`[DONE]` is sent before the last event."""
    if kind_of(stream.frames[-1].data) != "completed":
        return None
    return stream.but(inserted(stream, len(stream.frames) - 1, Frame("[DONE]")))
