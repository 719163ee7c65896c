"""Gemini's API as the upstream and as the client API of the proxy, with official clients and an upstream on the
loopback interface.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
import openai
import pytest
from google import genai
from google.genai import errors, types

from tests.proxy.test_proxy_convert import ANSWER, CALLS, TEXT, TOOL_USE, WEATHER, asked, in_turn, stopped
from tests.support.servers.proxying import between
from tests.support.servers.upstream import Talk, Upstream, sse
from tests.support.servers.wire import event

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNATURE = "c2lnbmF0dXJlIG9mIGdlbWluaQ=="
USAGE = {"promptTokenCount": 7, "candidatesTokenCount": 5, "totalTokenCount": 12}


def said(*parts: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    made = {"candidates": [candidate], "modelVersion": "gemini-3-pro", "responseId": "r1"}
    return (
        made
        if reason is None
        else made | {"candidates": [candidate | {"finishReason": reason}]} | {"usageMetadata": USAGE}
    )


def called(city: str, **more: str) -> dict[str, Any]:
    return {"functionCall": {"name": "weather", "args": {"city": city}}, **more}


CALL_OF_GEMINI = [
    event(said({"text": "Let me look."})),
    event(said(called("Oslo", thoughtSignature=SIGNATURE), called("Rome"), reason="STOP")),
]
ANSWER_OF_GEMINI = [event(said({"text": "It is "})), event(said({"text": "cold."}, reason="STOP"))]


def whole(body: dict[str, Any], status: int = 200) -> Any:
    async def script(talk: Talk) -> None:
        await talk.whole(json.dumps(body).encode(), status)

    return script


# --- An upstream of Gemini


def test_an_anthropic_client_runs_tools_through_gemini() -> None:
    upstream = Upstream(in_turn(CALL_OF_GEMINI, ANSWER_OF_GEMINI))
    messages: list[Any] = [{"role": "user", "content": "How cold is it?"}]
    tools: list[Any] = [{"name": "weather", "description": "of a city", "input_schema": WEATHER}]
    with (
        between(upstream, to="gemini") as url,
        anthropic.Anthropic(base_url=url, api_key="key-1", max_retries=0) as client,
    ):
        options: Any = {"model": "gemini-3-pro", "max_tokens": 100, "tools": tools}
        with client.messages.stream(system="Be brief.", messages=messages, **options) as stream:
            first = stream.get_final_message()
        used = [part for part in first.content if part.type == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": part.id, "content": "-3"} for part in used]
        messages += [
            {"role": "assistant", "content": [part.model_dump(exclude_none=True) for part in first.content]},
            {"role": "user", "content": results},
        ]
        with client.messages.stream(messages=messages, **options) as stream:
            second = stream.get_final_message()
    assert [(part.name, part.input) for part in used] == [("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"})]
    assert (first.stop_reason, first.usage.input_tokens, first.usage.output_tokens) == ("tool_use", 7, 5)
    assert [part.text for part in second.content if part.type == "text"] == ["It is cold."]
    assert second.stop_reason == "end_turn"
    assert [seen.target for seen in upstream.seen] == ["/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"] * 2
    assert upstream.seen[0].header("x-goog-api-key") == "key-1"
    assert upstream.seen[0].header("x-api-key") is None
    assert upstream.seen[0].header("authorization") is None
    one, two = asked(upstream, 0), asked(upstream, 1)
    declared = {"name": "weather", "description": "of a city", "parametersJsonSchema": WEATHER}
    assert one == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "How cold is it?"}]}],
        "tools": [{"functionDeclarations": [declared]}],
        "generationConfig": {"maxOutputTokens": 100},
    }
    types.GenerateContentConfig.model_validate({"tools": one["tools"], **one["generationConfig"]})
    assert [turn["role"] for turn in two["contents"]] == ["user", "model", "user"]
    parts = [part for part in two["contents"][1]["parts"] if "functionCall" in part]
    assert [part["functionCall"]["args"] for part in parts] == [{"city": "Oslo"}, {"city": "Rome"}]
    assert "thoughtSignature" in parts[0]  # Gemini 3 rejects a tool loop without it
    results_sent = [part["functionResponse"] for part in two["contents"][2]["parts"]]
    assert [(one["name"], one["id"]) for one in results_sent] == [
        ("weather", part["functionCall"]["id"]) for part in parts
    ]


def test_an_openai_client_runs_tools_through_gemini() -> None:
    upstream = Upstream(in_turn(CALL_OF_GEMINI, ANSWER_OF_GEMINI))
    tools: list[Any] = [{"type": "function", "function": {"name": "weather", "parameters": WEATHER}}]
    messages: list[Any] = [{"role": "user", "content": "How cold is it?"}]
    options: dict[str, Any] = {"model": "models/gemini-3-pro", "tools": tools}
    with (
        between(upstream, to="gemini") as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="key-1", max_retries=0) as client,
    ):
        with client.chat.completions.stream(messages=messages, **options) as stream:
            first = stream.get_final_completion().choices[0]
        calls: list[Any] = list(first.message.tool_calls or ())
        messages.append(first.message.model_dump(exclude_none=True, exclude={"parsed"}))
        messages += [{"role": "tool", "tool_call_id": one.id, "content": "-3"} for one in calls]
        with client.chat.completions.stream(messages=messages, **options) as stream:
            second = stream.get_final_completion().choices[0]
    assert [one.function.arguments for one in calls] == ['{"city":"Oslo"}', '{"city":"Rome"}']
    assert (first.finish_reason, second.finish_reason, second.message.content) == ("tool_calls", "stop", "It is cold.")
    assert len({one.id for one in calls}) == 2
    assert upstream.seen[0].target == "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"
    assert upstream.seen[0].header("x-goog-api-key") == "key-1"
    turns = asked(upstream, 1)["contents"]
    assert [turn["role"] for turn in turns] == ["user", "model", "user"]


def test_clients_that_do_not_stream() -> None:
    body = said({"text": "Cold."}, called("Oslo"), reason="STOP")
    upstream = Upstream(whole(body))
    with between(upstream, to="gemini") as url:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
            chat = client.chat.completions.create(model="g", messages=[{"role": "user", "content": "?"}])
            response = client.responses.create(model="g", input="?")
        with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as other:
            message = other.messages.create(model="g", max_tokens=9, messages=[{"role": "user", "content": "?"}])
    assert [seen.target for seen in upstream.seen] == ["/v1beta/models/g:generateContent"] * 3
    choice = chat.choices[0]
    assert (choice.message.content, choice.finish_reason) == ("Cold.", "tool_calls")
    arguments = [one.function.arguments for one in choice.message.tool_calls or () if one.type == "function"]
    assert [json.loads(text) for text in arguments] == [{"city": "Oslo"}]
    assert chat.usage is not None
    assert chat.usage.total_tokens == 12
    assert [item.type for item in response.output] == ["message", "function_call"]
    assert [part.type for part in message.content] == ["text", "tool_use"]


def test_an_error_of_gemini_keeps_its_status_and_message() -> None:
    error = {"error": {"code": 429, "message": "quota exceeded", "status": "RESOURCE_EXHAUSTED"}}
    for body in (error, [error]):
        with (
            between(Upstream(whole(body, 429)), to="gemini") as url,  # type: ignore[arg-type]
            openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client,
            pytest.raises(openai.RateLimitError, match="quota exceeded"),
        ):
            client.chat.completions.create(model="g", messages=[{"role": "user", "content": "?"}], stream=True)


@pytest.mark.parametrize("model", ["../../admin", "m:countTokens", "a/b", "m?key=x", "m#f", "\u00fc"])
def test_a_model_cannot_name_another_path(model: str) -> None:
    upstream = Upstream(whole(said({"text": "x"}, reason="STOP")))
    with between(upstream, to="gemini") as url:
        body = {"model": model, "messages": [{"role": "user", "content": "?"}]}
        assert httpx2.post(f"{url}/v1/chat/completions", json=body).status_code == 200
    target = upstream.seen[0].target
    assert target.startswith("/v1beta/models/")
    assert target.endswith(":generateContent")
    assert target.count("/") == 3
    assert target.count(":") == 1
    assert "?" not in target
    assert "#" not in target


# --- A client of Gemini


@pytest.fixture
def tools() -> list[Any]:
    declared = types.FunctionDeclaration(name="weather", parameters_json_schema=WEATHER)
    return [types.Tool(function_declarations=[declared])]


def connected(url: str) -> genai.Client:
    return genai.Client(api_key="key-1", http_options=types.HttpOptions(base_url=url))


def parts_of(chunks: Iterator[types.GenerateContentResponse]) -> tuple[list[types.Part], Any]:
    found: list[types.Part] = []
    reason = None
    for chunk in chunks:
        for candidate in chunk.candidates or ():
            found += (candidate.content and candidate.content.parts) or []
            reason = candidate.finish_reason or reason
    return found, reason


@pytest.mark.parametrize("to", ["chat", "anthropic"])
def test_a_gemini_client_runs_a_tool_through_another_upstream(to: str, tools: list[Any]) -> None:
    turns = {
        "chat": (CALLS, ANSWER),
        "anthropic": ([TOOL_USE, stopped("tool_use")], [TEXT, stopped("end_turn")]),
    }
    upstream = Upstream(in_turn(*turns[to]))
    config = types.GenerateContentConfig(tools=tools, system_instruction="Be brief.", max_output_tokens=100)
    contents: list[Any] = [types.Content(role="user", parts=[types.Part(text="How cold is it?")])]
    with between(upstream, to=to) as url:
        client = connected(url)
        first, reason = parts_of(client.models.generate_content_stream(model="m", contents=contents, config=config))
        calls = [part.function_call for part in first if part.function_call]
        contents.append(types.Content(role="model", parts=first))
        results = [
            types.Part(function_response=types.FunctionResponse(id=one.id, name=one.name, response={"output": "-3"}))
            for one in calls
        ]
        contents.append(types.Content(role="user", parts=results))
        second, end = parts_of(client.models.generate_content_stream(model="m", contents=contents, config=config))
    assert [one.args for one in calls] == [{"city": "Oslo"}, {"city": "Rome"}][: len(calls)]
    assert len(calls) == (2 if to == "chat" else 1)
    assert "".join([part.text or "" for part in second]) == "It is cold."
    assert reason == end == types.FinishReason.STOP
    one, two = asked(upstream, 0), asked(upstream, 1)
    assert (one["model"], one["stream"]) == ("m", True)
    if to == "chat":
        assert upstream.seen[0].target == "/v1/chat/completions"
        assert upstream.seen[0].header("authorization") == "Bearer key-1"
        assert one["stream_options"] == {"include_usage": True}
        assert [message["role"] for message in two["messages"]] == ["system", "user", "assistant", "tool", "tool"]
        assert [call["id"] for call in two["messages"][2]["tool_calls"]] == ["call_1", "call_2"]
    else:
        assert upstream.seen[0].target == "/v1/messages"
        assert upstream.seen[0].header("x-api-key") == "key-1"
        assert one["max_tokens"] == 100
        assert [message["role"] for message in two["messages"]] == ["user", "assistant", "user"]
        assert two["messages"][1]["content"][0]["id"] == "toolu_1"


def test_a_gemini_client_that_does_not_stream(tools: list[Any]) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
    message = {"role": "assistant", "content": "Wait.", "tool_calls": [call]}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "gw"}
    body["choices"] = [{"index": 0, "finish_reason": "tool_calls", "message": message}]
    body["usage"] = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    upstream = Upstream(whole(body))
    with between(upstream, to="chat") as url:
        client = connected(url)
        answer = client.models.generate_content(
            model="m", contents="?", config=types.GenerateContentConfig(tools=tools)
        )
    assert answer.candidates is not None
    assert answer.candidates[0].content is not None
    parts = answer.candidates[0].content.parts or []
    assert parts[0].text == "Wait."
    assert parts[1].function_call is not None
    assert (parts[1].function_call.name, parts[1].function_call.args) == ("weather", {"city": "Oslo"})
    assert answer.candidates[0].finish_reason == types.FinishReason.STOP
    assert answer.usage_metadata is not None
    assert (answer.usage_metadata.prompt_token_count, answer.usage_metadata.total_token_count) == (7, 12)
    assert "stream" not in asked(upstream)


def test_a_gemini_client_gets_errors_of_its_own_api() -> None:
    cut = Upstream(sse(*ANSWER[:1]))
    with between(cut, to="chat") as url:
        client = connected(url)
        with pytest.raises(errors.APIError):
            list(client.models.generate_content_stream(model="m", contents="?"))
        array = httpx2.post(
            f"{url}/v1beta/models/m:streamGenerateContent", json={"contents": [{"parts": [{"text": "?"}]}]}
        )
    assert array.status_code == 400
    assert array.json()["error"]["status"] == "INVALID_ARGUMENT"
    assert "alt=sse" in array.json()["error"]["message"]
