"""What clients refuse by a rule of their own. For the stream of each row in `client_refusals.json`, the client raises
the same exception without and with repair.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel
from streamweld.testing import BrokenGateway, Call, Reply, Stream, Text, build

from tests.testing.judges import ASKED, NAMES, REFUSALS, made

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamweld.testing.stream import Dialect


class Weather(BaseModel):
    city: str


SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}
CHAT_TOOL = {"type": "function", "function": {"name": "get_weather", "strict": True, "parameters": SCHEMA}}
RESPONSES_TOOL = {"type": "function", "name": "get_weather", "strict": True, "parameters": SCHEMA}
NOT_JSON = Call("get_weather", '{"city" Oslo}')
TRUNCATED, OTHER = Text('{"city":"Os'), Text('{"town":"Oslo"}')


def typed(stream: Stream) -> Stream:
    """Return the stream with the members that openai-python needs to recognize a function."""
    frames = []
    for frame in stream.frames:
        data = json.loads(json.dumps(frame.data))
        for choice in data.get("choices", ()) if isinstance(data, dict) else ():
            for call in choice["delta"].get("tool_calls", ()):
                call["type"] = "function"
        frames.append(replace(frame, data=data))
    return stream.but(tuple(frames))


def ended(stream: Stream, reason: str) -> Stream:
    """Return the Chat stream with another finish reason."""
    text = json.dumps([frame.data for frame in stream.frames]).replace(
        '"finish_reason": "stop"', f'"finish_reason": "{reason}"'
    )
    return stream.but(
        tuple(replace(frame, data=data) for frame, data in zip(stream.frames, json.loads(text), strict=True))
    )


# (rule, dialect) -> the stream, and the options of the request.
STREAMS: dict[tuple[str, Dialect], Callable[[], tuple[Stream, dict[str, Any]]]] = {
    ("arguments_of_a_strict_tool_are_not_json", "chat"): lambda: (
        typed(build("chat", [NOT_JSON])),
        {"tools": [CHAT_TOOL]},
    ),
    ("arguments_of_a_strict_tool_are_not_json", "responses"): lambda: (
        build("responses", [NOT_JSON]),
        {"tools": [RESPONSES_TOOL]},
    ),
    ("arguments_are_not_json", "anthropic"): lambda: (build("anthropic", [NOT_JSON]), {}),
    ("length", "chat"): lambda: (build("chat", [TRUNCATED], finish="length"), {}),
    ("content_filter", "chat"): lambda: (ended(build("chat", [TRUNCATED]), "content_filter"), {}),
    ("length", "responses"): lambda: (build("responses", [TRUNCATED], finish="length"), {}),
    ("structured_output_does_not_fit", "chat"): lambda: (build("chat", [OTHER]), {"response_format": Weather}),
    ("structured_output_does_not_fit", "responses"): lambda: (build("responses", [OTHER]), {"text_format": Weather}),
    ("structured_output_does_not_fit", "anthropic"): lambda: (build("anthropic", [OTHER]), {"output_format": Weather}),
    ("structured_output_truncated", "anthropic"): lambda: (
        build("anthropic", [TRUNCATED], finish="length"),
        {"output_format": Weather},
    ),
}
DIALECTS: dict[str, Dialect] = {name: dialect for dialect, name in NAMES.items()}  # type: ignore[misc]


def read(client: Any, dialect: Dialect, options: dict[str, Any]) -> None:
    if dialect == "chat":
        with client.chat.completions.stream(model="m", messages=ASKED, **options) as stream:
            stream.get_final_completion()
    elif dialect == "responses":
        with client.responses.stream(model="m", input="hi", **options) as stream:
            stream.get_final_response()
    else:
        with client.messages.stream(model="m", max_tokens=9, messages=ASKED, **options) as stream:
            stream.get_final_message()


@pytest.fixture(scope="module")
def clients() -> Iterator[dict[bool, dict[str, Any]]]:
    both = {repaired: made(repaired) for repaired in (False, True)}
    yield both
    for group in both.values():
        for client in {id(client): client for client in group.values()}.values():
            client.close()


def test_every_listed_refusal_has_a_stream() -> None:
    assert {(row["name"], DIALECTS[row["client"]]) for row in REFUSALS} == set(STREAMS)


@pytest.mark.parametrize("row", REFUSALS, ids=lambda row: f"{row['name']}-{row['client'].split(' ')[0]}")
def test_a_client_refuses_the_stream_without_and_with_repair(
    clients: dict[bool, dict[str, Any]], row: dict[str, Any]
) -> None:
    dialect = DIALECTS[row["client"]]
    stream, options = STREAMS[row["name"], dialect]()
    with BrokenGateway(lambda _: Reply.of(stream)) as gateway, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        base = gateway.url + ("" if dialect == "anthropic" else "/v1")
        raised = []
        for repaired in (False, True):
            try:
                read(clients[repaired][dialect].with_options(base_url=base), dialect, options)
            except Exception as error:  # noqa: BLE001 (the exception is compared)
                raised.append((type(error).__name__, str(error)))
    assert len(raised) == 2
    assert raised[0] == raised[1]
    assert raised[0][0] in row["errors"]
