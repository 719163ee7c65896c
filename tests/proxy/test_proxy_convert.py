"""The proxy between an official client of one API and an upstream of another, on the loopback interface."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anthropic
import httpx2
import openai
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamweld.integrations.proxy import ProxyConfig
from streamweld.integrations.proxy.config import PROXY_DIALECTS
from streamweld.integrations.proxy.refusals import Refusal
from streamweld.integrations.proxy.translate import Translated, translated

from tests.support.servers.proxying import between
from tests.support.servers.upstream import Talk, Upstream, sse
from tests.support.servers.wire import DONE, call, chunk, end, event, text

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CALLS = [
    chunk({"role": "assistant", "content": "Let me look."}, id="chatcmpl-1", model="gw", created=1),
    call(0, "call_1", "weather", ""),
    call(0, None, None, '{"city": '),
    call(1, "call_2", "weather", '{"city": "Rome"}'),
    call(0, None, None, '"Oslo"}'),
    chunk({}, "tool_calls"),
    event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}}),
    DONE,
]
ANSWER = [text("It is "), text("cold."), end("stop")]


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> bytes:
    shown = [{"type": "content_block_start", "index": index, "content_block": start}]
    shown += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return named(*shown, {"type": "content_block_stop", "index": index})


def named(*payloads: dict[str, Any]) -> bytes:
    return b"".join([b"event: %s\n%s" % (shown["type"].encode(), event(shown)) for shown in payloads])


QUESTION: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
START = named(
    {
        "type": "message_start",
        "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": []}
        | {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 7, "output_tokens": 1}},
    }
)
TOOL_USE = START + block(
    0,
    {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}},
    {"type": "input_json_delta", "partial_json": '{"city": '},
    {"type": "input_json_delta", "partial_json": '"Oslo"}'},
)


def stopped(reason: str) -> bytes:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return named({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}, {"type": "message_stop"})


TEXT = START + block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "It is cold."})


def in_turn(*answers: list[bytes]) -> Any:
    """Return a script that sends one response per request."""
    left = list(answers)

    async def script(talk: Talk) -> None:
        await sse(*left.pop(0))(talk)

    return script


def asked(upstream: Upstream, number: int = -1) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(upstream.seen[number].body)
    return found


# --- An Anthropic client, a Chat upstream


def test_an_anthropic_client_runs_a_tool_through_a_chat_gateway() -> None:
    upstream = Upstream(in_turn(CALLS, ANSWER))
    messages: list[Any] = [{"role": "user", "content": "How cold is it?"}]
    tools: list[Any] = [{"name": "weather", "description": "of a city", "input_schema": WEATHER}]
    with (
        between(upstream, to="chat") as url,
        anthropic.Anthropic(base_url=url, api_key="key-1", max_retries=0) as client,
    ):
        with client.messages.stream(
            model="gw", max_tokens=100, system="Be brief.", messages=messages, tools=tools
        ) as stream:
            first = stream.get_final_message()
        used = [part for part in first.content if part.type == "tool_use"]
        messages += [
            {"role": "assistant", "content": [part.model_dump(exclude_none=True) for part in first.content]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": part.id, "content": "-3"} for part in used],
            },
        ]
        with client.messages.stream(model="gw", max_tokens=100, messages=messages, tools=tools) as stream:
            second = stream.get_final_message()
    assert [(part.id, part.name, part.input) for part in used] == [
        ("call_1", "weather", {"city": "Oslo"}),
        ("call_2", "weather", {"city": "Rome"}),
    ]
    assert (first.stop_reason, first.usage.input_tokens, first.usage.output_tokens) == ("tool_use", 7, 5)
    assert ([part.text for part in second.content if part.type == "text"], second.stop_reason) == (
        ["It is cold."],
        "end_turn",
    )
    assert [request.target for request in upstream.seen] == ["/v1/chat/completions"] * 2
    assert upstream.seen[0].header("authorization") == "Bearer key-1"
    assert upstream.seen[0].header("x-api-key") is None
    one, two = asked(upstream, 0), asked(upstream, 1)
    assert one == {
        "model": "gw",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How cold is it?"}],
        "tools": [
            {"type": "function", "function": {"name": "weather", "description": "of a city", "parameters": WEATHER}}
        ],
        "max_completion_tokens": 100,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert [message["role"] for message in two["messages"]] == ["user", "assistant", "tool", "tool"]
    assert [entry["id"] for entry in two["messages"][1]["tool_calls"]] == ["call_1", "call_2"]
    assert [message["tool_call_id"] for message in two["messages"][2:]] == ["call_1", "call_2"]


def test_nothing_is_lost_where_an_async_client_reads() -> None:
    upstream = Upstream(sse(*CALLS))

    async def read(url: str) -> anthropic.types.Message:
        client = anthropic.AsyncAnthropic(base_url=url, api_key="key-1", max_retries=0)
        async with client, client.messages.stream(**QUESTION) as stream:
            return await stream.get_final_message()

    with between(upstream, to="chat") as url:
        message = asyncio.run(read(url))
    assert [part.type for part in message.content] == ["text", "tool_use", "tool_use"]


def test_an_anthropic_client_that_does_not_stream() -> None:
    whole = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gw",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": "Wait.",
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "weather", "arguments": '{"city":"Oslo"}'},
                        }
                    ],
                },
            }
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
    }

    async def script(talk: Talk) -> None:
        await talk.whole(json.dumps(whole).encode())

    upstream = Upstream(script)
    with between(upstream, to="chat") as url, anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client:
        message = client.messages.create(model="gw", max_tokens=9, messages=[{"role": "user", "content": "?"}])
    assert [part.model_dump(exclude_none=True) for part in message.content] == [
        {"type": "text", "text": "Wait."},
        {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Oslo"}},
    ]
    assert (message.stop_reason, message.usage.output_tokens, message.model) == ("tool_use", 5, "gw")
    assert "stream" not in asked(upstream)


# --- An OpenAI client, an Anthropic upstream


def test_an_openai_client_runs_a_tool_through_an_anthropic_upstream() -> None:
    upstream = Upstream(in_turn([TOOL_USE, stopped("tool_use")], [TEXT, stopped("end_turn")]))
    tools: list[Any] = [{"type": "function", "function": {"name": "weather", "parameters": WEATHER}}]
    messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How cold is it?"}]
    options: dict[str, Any] = {"model": "claude", "tools": tools, "stream_options": {"include_usage": True}}
    with (
        between(upstream, to="anthropic") as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="key-1", max_retries=0) as client,
    ):
        with client.chat.completions.stream(messages=messages, **options) as stream:
            first = stream.get_final_completion()
        shown = first.choices[0].message
        messages.append(shown.model_dump(exclude_none=True, exclude={"parsed"}))
        calls: list[Any] = list(shown.tool_calls or ())
        messages += [{"role": "tool", "tool_call_id": one.id, "content": "-3"} for one in calls]
        with client.chat.completions.stream(messages=messages, **options) as stream:
            second = stream.get_final_completion()
    assert [(one.id, one.function.name, one.function.arguments) for one in calls] == [
        ("toolu_1", "weather", '{"city": "Oslo"}')
    ]
    assert first.choices[0].finish_reason == "tool_calls"
    assert first.usage is not None
    assert (first.usage.prompt_tokens, first.usage.completion_tokens) == (7, 5)
    assert (second.choices[0].message.content, second.choices[0].finish_reason) == ("It is cold.", "stop")
    assert [request.target for request in upstream.seen] == ["/v1/messages"] * 2
    assert upstream.seen[0].header("x-api-key") == "key-1"
    assert upstream.seen[0].header("authorization") is None
    assert upstream.seen[0].header("anthropic-version") == "2023-06-01"
    assert asked(upstream, 0) == {
        "model": "claude",
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "How cold is it?"}],
        "tools": [{"name": "weather", "input_schema": WEATHER}],
        "max_tokens": 8192,
        "stream": True,
    }
    assert asked(upstream, 1)["messages"][1:] == [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "-3"}]},
    ]


def test_an_openai_client_of_responses_through_an_anthropic_upstream() -> None:
    upstream = Upstream(in_turn([TOOL_USE, stopped("tool_use")], [TEXT, stopped("end_turn")]))
    tools: list[Any] = [{"type": "function", "name": "weather", "parameters": WEATHER, "strict": False}]
    given: list[Any] = [{"role": "user", "content": "How cold is it?"}]
    with (
        between(upstream, to="anthropic") as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="key-1", max_retries=0) as client,
    ):
        with client.responses.stream(model="claude", input=given, tools=tools) as stream:
            first = stream.get_final_response()
        given += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in first.output]
        given += [
            {"type": "function_call_output", "call_id": item.call_id, "output": "-3"}
            for item in first.output
            if item.type == "function_call"
        ]
        whole = client.responses.create(model="claude", input=given, tools=tools)
    assert [(item.type, getattr(item, "arguments", None)) for item in first.output] == [
        ("function_call", '{"city": "Oslo"}')
    ]
    assert (whole.output_text, whole.status) == ("It is cold.", "completed")
    assert [message["role"] for message in asked(upstream, 1)["messages"]] == ["user", "assistant", "user"]


def test_an_openai_client_that_does_not_stream() -> None:
    shown = {"type": "message", "id": "msg_1", "role": "assistant", "model": "claude", "stop_sequence": None}
    shown |= {"content": [{"type": "text", "text": "Cold."}], "stop_reason": "max_tokens"}
    shown |= {"usage": {"input_tokens": 7, "output_tokens": 5}}

    async def script(talk: Talk) -> None:
        await talk.whole(json.dumps(shown).encode())

    upstream = Upstream(script)
    with between(upstream, to="anthropic") as url, openai.OpenAI(base_url=f"{url}/v1", api_key="k") as client:
        done = client.chat.completions.create(model="claude", messages=[{"role": "user", "content": "?"}])
    assert (done.choices[0].message.content, done.choices[0].finish_reason) == ("Cold.", "length")
    assert done.usage is not None
    assert done.usage.total_tokens == 12


# --- Errors


def test_a_cut_stream_is_an_error_in_the_clients_own_words() -> None:
    async def script(talk: Talk) -> None:
        await talk.head()
        await talk.send(*CALLS[:3])
        talk.cut()

    with (
        between(Upstream(script), to="chat") as url,
        anthropic.Anthropic(base_url=url, api_key="k") as client,
        pytest.raises(anthropic.APIStatusError, match="the upstream's stream was truncated"),
        client.messages.stream(**QUESTION) as stream,
    ):
        stream.get_final_message()


@pytest.mark.parametrize(("status", "raised"), [(429, anthropic.RateLimitError), (401, anthropic.AuthenticationError)])
def test_an_error_of_the_upstream_keeps_its_status_and_words(status: int, raised: type[Exception]) -> None:
    error = {"error": {"message": "slow down", "type": "x", "code": "rate_limit_exceeded"}}

    async def script(talk: Talk) -> None:
        await talk.whole(json.dumps(error).encode(), status, retry_after="7")

    with (
        between(Upstream(script), to="chat") as url,
        anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client,
        pytest.raises(raised, match="slow down") as told,
    ):
        client.messages.create(**QUESTION, stream=True)
    assert isinstance(told.value, anthropic.APIStatusError)
    assert told.value.response.headers["retry-after"] == "7"


NAMED = {"type": "function", "function": {"name": "f"}}
BASE: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "?"}]}


def translate(request: dict[str, Any], source: Any, to: Any, gateway: str | None = None) -> Translated:
    config = ProxyConfig("http://gateway.example", to=to, gateway=gateway)
    return translated(request, source, config, stream=request.get("stream") is True)


@pytest.mark.parametrize(
    ("source", "to", "request_", "place"),
    [
        ("anthropic", "chat", {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools/0"),
        ("anthropic", "chat", {"mcp_servers": [{"url": "https://x.example"}]}, "mcp_servers/0"),
        ("anthropic", "gemini", {"container": "c"}, "container"),
        ("chat", "anthropic", {"n": 2}, "n"),
        ("chat", "anthropic", {"logprobs": True}, "logprobs"),
        ("chat", "anthropic", {"response_format": {"type": "json_object"}}, "response_format"),
        ("chat", "anthropic", {"tool_choice": {"type": "allowed_tools"}}, "tool_choice"),
        ("chat", "responses", {"stop": ["x"]}, "stop"),
        ("responses", "chat", {"previous_response_id": "resp_1", "input": "?"}, "previous_response_id"),
        ("responses", "gemini", {"background": True, "input": "?"}, "background"),
        ("gemini", "chat", {"cachedContent": "c", "contents": [{"parts": [{"text": "?"}]}]}, "cachedContent"),
    ],
)
def test_what_changes_the_answer_and_cannot_be_expressed_is_refused(
    source: Any, to: Any, request_: dict[str, Any], place: str
) -> None:
    with pytest.raises(Refusal) as refused:
        translate(BASE | request_, source, to)
    assert (refused.value.status, refused.value.code) == (400, "unsupported_option")
    assert refused.value.message == f"{place}: the upstream's API ({to}) cannot express it"


@pytest.mark.parametrize(
    ("source", "to", "request_", "code"),
    [
        ("chat", "anthropic", {"tools": "weather"}, "invalid_request"),
        ("chat", "responses", {"tools": False}, "invalid_request"),
        ("chat", "anthropic", {"messages": [3]}, "invalid_history"),
        ("chat", "anthropic", {"model": None}, "invalid_model"),
        ("anthropic", "chat", {"tools": [{"name": "n" * 100, "input_schema": WEATHER}]}, "unsupported_tool_name"),
    ],
)
def test_what_no_upstream_could_be_asked_is_refused(source: Any, to: Any, request_: dict[str, Any], code: str) -> None:
    with pytest.raises(Refusal) as refused:
        translate(BASE | request_, source, to)
    assert (refused.value.status, refused.value.code) == (400, code)


TOOL = {"type": "function", "function": {"name": "f", "parameters": WEATHER}}
OWN_TOOL = {"name": "f", "input_schema": WEATHER}


@pytest.mark.parametrize(
    ("source", "to", "given", "made", "dropped"),
    [
        ("chat", "anthropic", {"temperature": 1.7, "stop": "x"}, {"temperature": 1, "stop_sequences": ["x"]}, ()),
        ("chat", "anthropic", {"max_tokens": 5, "seed": 3, "n": 1}, {"max_tokens": 5}, ("seed",)),
        (
            "chat",
            "anthropic",
            {"reasoning_effort": "minimal"},
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
            (),
        ),
        (
            "chat",
            "anthropic",
            {"parallel_tool_calls": False, "tools": [TOOL]},
            {"tools": [OWN_TOOL], "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
            (),
        ),
        ("chat", "anthropic", {"parallel_tool_calls": False}, {}, ("parallel",)),
        (
            "chat",
            "anthropic",
            {"tool_choice": "required", "tools": [TOOL]},
            {"tools": [OWN_TOOL], "tool_choice": {"type": "any"}},
            (),
        ),
        (
            "chat",
            "responses",
            {"reasoning_effort": "high"},
            {"reasoning": {"effort": "high"}, "include": ["reasoning.encrypted_content"]},
            (),
        ),
        (
            "chat",
            "gemini",
            {"max_tokens": 5, "temperature": 0.5, "user": "u"},
            {"generationConfig": {"maxOutputTokens": 5, "temperature": 0.5}},
            ("user",),
        ),
        ("anthropic", "chat", {"metadata": {"user_id": "u"}, "top_k": 3}, {"safety_identifier": "u"}, ("top_k",)),
        (
            "anthropic",
            "chat",
            {"tool_choice": {"type": "tool", "name": "f"}, "tools": [OWN_TOOL]},
            {"tools": [TOOL], "tool_choice": NAMED},
            (),
        ),
        ("anthropic", "chat", {"thinking": {"type": "adaptive"}}, {}, ()),
        ("anthropic", "chat", {"made_up": 1, "a b\nc": 2}, {}, ("made_up", "other")),
    ],
)
def test_options_are_those_of_requests(
    source: Any, to: Any, given: Any, made: dict[str, Any], dropped: tuple[str, ...]
) -> None:
    plain = translate(BASE, source, to).payload
    told = translate(BASE | given, source, to)
    assert told.payload == {**plain, **made}
    assert told.dropped == dropped


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(max_size=5)
    | st.sampled_from(["function", "user"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "role", "content", "id", "name", "function", "tool_calls", "input", "text", "x"]),
            inner,
        )
    ),
    max_leaves=8,
)
MEMBERS = ["messages", "input", "system", "instructions", "tools", "tool_choice", "response_format", "stop", "text"]
MEMBERS += ["contents", "generationConfig", "toolConfig", "systemInstruction"]
MEMBERS += ["reasoning_effort", "reasoning", "metadata", "temperature", "n", "output_config", "stream_options"]


@given(
    st.dictionaries(st.sampled_from(MEMBERS), JSON),
    st.sampled_from([(one, other) for one in PROXY_DIALECTS for other in PROXY_DIALECTS if one != other]),
)
def test_whatever_a_request_holds_it_is_converted_or_refused(request_: dict[str, Any], way: tuple[Any, Any]) -> None:
    source, to = way
    try:
        told = translate(BASE | request_, source, to)
    except Refusal as refused:
        status = refused.status
    else:
        status = 400 if json.loads(orjson.dumps(told.payload))["model"] == "m" else 0
    assert status == 400


def test_a_gateway_that_knows_another_member() -> None:
    assert translate(BASE | {"max_tokens": 5}, "anthropic", "chat", "deepseek").payload["max_tokens"] == 5


def test_a_refusal_is_an_error_of_the_clients_api() -> None:
    upstream = Upstream(sse(*ANSWER))
    with between(upstream, to="anthropic") as url:
        answer = httpx2.post(f"{url}/v1/chat/completions", json=BASE | {"n": 2})
        unreadable = httpx2.post(f"{url}/v1/chat/completions", content=b"{")
    assert answer.status_code == unreadable.status_code == 400
    assert answer.json()["error"] == {
        "message": "n: the upstream's API (anthropic) cannot express it",
        "type": "invalid_request_error",
        "param": None,
        "code": "unsupported_option",
    }
    assert unreadable.json()["error"]["code"] == "invalid_body"
    assert upstream.seen == []
