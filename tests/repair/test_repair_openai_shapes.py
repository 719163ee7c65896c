"""Streams that openai-python misreads or rejects, and the results of its helpers after a repair. The expected results
are in this file. A gateway was reported to send each stream; the comment before its name refers to the report.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import openai
import pytest
import streamweld as sw
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from tests.support.backends import using

if TYPE_CHECKING:
    from collections.abc import Sequence

Json = dict[str, Any]
ASKED: Any = [{"role": "user", "content": "hi"}]
OSLO, ROME = '{"city":"Oslo"}', '{"city":"Rome"}'


# Chat Completions


def chunk(delta: Json | None, finish: str | None = None, **choice: Any) -> Json:
    """Return a chunk. `choice`: further members of its choice. A delta of None is omitted."""
    members = {"index": 0, **({} if delta is None else {"delta": delta}), **choice, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [members]}


def entry(index: int, identity: str | None = None, **function: Any) -> Json:
    return {"index": index, **({} if identity is None else {"id": identity}), "function": function}


def entries(*tool_calls: Json) -> Json:
    return chunk({"tool_calls": list(tool_calls)})


STOP, CALLED = chunk({}, "stop"), chunk({}, "tool_calls")
CHAT: dict[str, tuple[list[Json], str, list[tuple[str, str]]]] = {
    # Amm1rr/WebAI-to-API#55
    "messages": (
        [chunk(None, message={"content": "Hel"}), chunk(None, message={"content": "lo"}), STOP],
        "Hello",
        [],
    ),
    "messages-so-far": (
        [chunk(None, message={"content": "Hel"}), chunk(None, "stop", message={"content": "Hello"})],
        "Hello",
        [],
    ),
    # databricks/appkit!559
    "reasoning-parts": (
        [
            chunk({"content": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "Look"}]}]}),
            chunk({"content": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": " up"}]}]}),
            chunk({"content": [{"type": "text", "text": "Hi"}]}),
            STOP,
        ],
        "Hi",
        [],
    ),
    "one-part": ([chunk({"content": {"type": "text", "text": t}}) for t in ("H", "i")] + [STOP], "Hi", []),
    # the name of the first call arrives last; index 0 remains the first call
    "late-name": (
        [
            entries(entry(0, "a")),
            entries(entry(1, "b", name="get_time", arguments=ROME)),
            entries(entry(0, name="get_weather", arguments=OSLO)),
            CALLED,
        ],
        "",
        [("get_weather", OSLO), ("get_time", ROME)],
    ),
    "late-name-after-arguments": (
        [
            entries(entry(0, "a", arguments='{"city"')),
            entries(entry(1, "b", name="get_time", arguments=ROME)),
            entries(entry(0, name="get_weather", arguments=':"Oslo"}')),
            CALLED,
        ],
        "",
        [("get_weather", OSLO), ("get_time", ROME)],
    ),
    # the names of two calls in alternating pieces, without a type (NVIDIA-NeMo/Switchyard!785 for one call)
    "names-in-turns": (
        [
            entries(entry(0, "a", name="get_", arguments="")),
            entries(entry(1, "b", name="sear", arguments="")),
            entries(entry(0, name="weather", arguments="")),
            entries(entry(1, name="ch", arguments="")),
            entries(entry(0, arguments=OSLO)),
            entries(entry(1, arguments=ROME)),
            CALLED,
        ],
        "",
        [("get_weather", OSLO), ("search", ROME)],
    ),
    "function-call-after-a-tool-call": (
        [
            entries(entry(0, "a", name="get_time", arguments=ROME)),
            chunk({"function_call": {"name": "get_weather", "arguments": OSLO}}),
            CALLED,
        ],
        "",
        [("get_time", ROME), ("get_weather", OSLO)],
    ),
}

ENTRIES: list[Json] = [{"type": "a", "n": {"x": 1}}, {"type": "b"}, {"type": "c", "text": "z"}]
# Where a gateway sends a list without indexes in its deltas: a member, or a member of an object.
LISTS = [
    ("thinking_blocks",),  # LiteLLM
    ("provider_specific_fields", "thinking_blocks"),  # LiteLLM
    ("reasoning_details",),  # OpenRouter
    ("annotations",),
    ("images",),
    ("of_tomorrow",),
    ("of_tomorrow", "a", "b"),
]


# Responses


def event(kind: str, **members: Any) -> Json:
    return {"type": f"response.{kind}", **members}


def response(status: str, *output: Json, **members: Any) -> Json:
    fixed = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
    return {**head, "status": status, "output": list(output), **fixed, **members}


def message(*texts: str, kind: str = "output_text") -> Json:
    content = [{"type": kind, "text": text, "annotations": []} for text in texts]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}


def call(arguments: Any, name: str | None = "get_weather") -> Json:
    head = {"id": "fc_1", "type": "function_call", "call_id": "call_1"}
    return {**head, "name": name, "arguments": arguments, "status": "completed"}


def added(item: Json) -> Json:
    return event("output_item.added", output_index=0, item=item)


def done(item: Json) -> Json:
    return event("output_item.done", output_index=0, item=item)


def arguments_of(*pieces: str) -> list[Json]:
    named = {"item_id": "fc_1", "output_index": 0}
    return [event("function_call_arguments.delta", **named, delta=piece) for piece in pieces]


def text_of(kind: str = "output_text", member: str = "delta", part: str = "output_text") -> list[Json]:
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    opened = event("content_part.added", **at, part={"type": part, "text": "", "annotations": []})
    return [added(message()), opened] + [event(f"{kind}.delta", **at, **{member: piece}) for piece in ("Hel", "lo")]


CREATED = event("created", response=response("in_progress"))
WEATHER = [("get_weather", OSLO)]


def completed(*output: Json) -> Json:
    return event("completed", response=response("completed", *output))


RESPONSES: dict[str, tuple[list[Json], str, list[tuple[str, str]]]] = {
    # BigPizzaV3/CodexPlusPlus#614
    "empty-name-at-the-end": (
        [CREATED, added(call("")), *arguments_of(OSLO), done(call(OSLO, "")), completed(call(OSLO, ""))],
        "",
        WEATHER,
    ),
    "null-name-in-the-output": (
        [CREATED, added(call("")), *arguments_of(OSLO), done(call(OSLO)), completed(call(OSLO, None))],
        "",
        WEATHER,
    ),
    # pjq/sap-ai-core-llm-proxy!35
    "response-is-not-wrapped": (
        [
            {"type": "response.created", **response("in_progress")},
            *text_of(),
            done(message("Hello")),
            {"type": "response.completed", **response("completed", message("Hello"))},
        ],
        "Hello",
        [],
    ),
    "arguments-are-an-object": (
        [CREATED, added(call("")), done(call({"city": "Oslo"})), completed(call({"city": "Oslo"}))],
        "",
        WEATHER,
    ),
    "arguments-are-null": (
        [CREATED, added(call(None)), *arguments_of(OSLO), done(call(None)), completed()],
        "",
        WEATHER,
    ),
    # opened items that are completed neither by an event nor in the output
    "calls-are-not-completed": (
        [CREATED, added(call("")), *arguments_of(OSLO), completed({"type": "function_call", "call_id": "other"})],
        "",
        WEATHER,
    ),
    "messages-are-not-completed": (
        [CREATED, *text_of(), event("completed", response=response("completed"))],
        "Hello",
        [],
    ),
    "parts-of-type-text": (
        [CREATED, *text_of(part="text"), done(message("Hello", kind="text")), completed(message("Hello", kind="text"))],
        "Hello",
        [],
    ),
    "content-is-text": (
        [CREATED, *text_of(), done({**message(), "content": "Hello"}), completed({**message(), "content": "Hello"})],
        "Hello",
        [],
    ),
    "deltas-under-text": ([CREATED, *text_of(member="text"), completed()], "Hello", []),
    "deltas-of-another-name": ([CREATED, *text_of(kind="text"), completed()], "Hello", []),
}
MARKED = [CREATED, *text_of(), done(message("Hello")), completed(message("Hello"))]


def body_of(payloads: Sequence[Json | str], *, named: bool, typed: bool = True) -> bytes:
    lines: list[str] = []
    for payload in payloads:
        if isinstance(payload, str):
            lines.append(f"data: {payload}\n\n")
            continue
        name = f"event: {payload['type']}\n" if named else ""
        members = {key: value for key, value in payload.items() if typed or key != "type"}
        lines.append(f"{name}data: {json.dumps(members, separators=(',', ':'))}\n\n")
    return "".join(lines).encode()


def read(dialect: str, body: bytes) -> tuple[str, list[tuple[str, Any]]] | str:
    """Return the text and the calls that openai-python reads, or the name of its exception."""

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)

    transport = httpx.Client(transport=httpx.MockTransport(answer))
    client = openai.OpenAI(api_key="none", base_url="http://gateway/v1", max_retries=0, http_client=transport)
    try:
        if dialect == "chat":
            with client.chat.completions.stream(model="m", messages=ASKED) as stream:
                held = stream.get_final_completion().choices[0].message
            calls = [(one.function.name, one.function.arguments) for one in held.tool_calls or ()]
            return held.content or "", calls
        with client.responses.stream(model="m", input="hi") as stream:
            final = stream.get_final_response()
        return final.output_text, [(one.name, one.arguments) for one in final.output if one.type == "function_call"]
    except Exception as error:  # noqa: BLE001 (the client's exception is compared)
        return type(error).__name__


def check(backend: str, dialect: Any, body: bytes, text: str, calls: list[tuple[str, str]]) -> None:
    with using(backend):
        parsed = sw.parse(body, dialect=dialect)
        repaired = sw.convert(body, source=dialect, target="same", seed="vec")
    assert (parsed.text, [(one.name, one.arguments) for one in parsed.dispatchable_calls]) == (text, calls)
    assert read(dialect, repaired) == (text, calls)


@pytest.mark.filterwarnings("ignore")  # pydantic warns about values that gateways send instead of strings
@pytest.mark.parametrize("name", CHAT)
def test_chat(backend: str, name: str) -> None:
    payloads, text, calls = CHAT[name]
    check(backend, "chat", body_of([*payloads, "[DONE]"], named=False), text, calls)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RESPONSES)
def test_responses(backend: str, name: str) -> None:
    payloads, text, calls = RESPONSES[name]
    body = body_of(payloads, named=True)
    assert read("responses", body) != (text, calls)
    check(backend, "responses", body, text, calls)


def message_of(body: bytes) -> Json:
    """Return the message that openai-python accumulates from the chunks. Raises its exceptions."""
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    for frame in body.split(b"\n\n"):
        if frame.startswith(b"data: {"):
            state.handle_chunk(ChatCompletionChunk.model_validate_json(frame.removeprefix(b"data: ")))
    held: Json = state.current_completion_snapshot.choices[0].message.model_dump(exclude_none=True, warnings=False)
    return held


@pytest.mark.parametrize("sent", [(1, 1, 1), (1, 2), (2, 1)], ids=str)
@pytest.mark.parametrize("place", LISTS, ids="/".join)
def test_lists_without_indexes(backend: str, place: tuple[str, ...], sent: tuple[int, ...]) -> None:
    """Behind repair, openai-python has every entry of a list whose entries have no index, in order."""
    deltas: list[Json] = []
    for count in sent:
        begin = sum(len(nested_in(place, delta)) for delta in deltas)
        value: Any = ENTRIES[begin : begin + count]
        for name in reversed(place):
            value = {name: value}
        deltas.append({"content": "x", **value})
    body = body_of([*map(chunk, deltas), STOP, "[DONE]"], named=False)
    with pytest.raises(RuntimeError):
        message_of(body)
    with using(backend):
        repaired = sw.convert(body, source="chat", target="same", seed="vec")
        assert sw.convert(repaired, source="chat", target="same", seed="vec") == repaired
    held = message_of(repaired)
    entries = [{key: value for key, value in one.items() if key != "index"} for one in nested_in(place, held)]
    assert (held["content"], entries) == ("x" * len(sent), ENTRIES)


def nested_in(place: tuple[str, ...], value: Any) -> list[Json]:
    for name in place:
        value = value[name]
    return value  # type: ignore[no-any-return]


def test_a_marker_before_the_last_event(backend: str) -> None:
    """openai-python stops at `[DONE]`, so repair drops it if the last event has not been sent yet."""
    body = body_of([*MARKED[:-1], "[DONE]", MARKED[-1]], named=True)
    assert read("responses", body) == "RuntimeError"
    check(backend, "responses", body, "Hello", [])


def test_events_without_a_type(backend: str) -> None:
    """openai-python does not read the names of events."""
    body = body_of(MARKED, named=True, typed=False)
    assert read("responses", body) == "RuntimeError"
    check(backend, "responses", body, "Hello", [])
