"""`--gateway`: requests follow the rules of a gateway, regardless of the client's dialect."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from streamweld.errors import UsageError
from streamweld.history import profiles
from streamweld.integrations.proxy import ProxyConfig
from streamweld.integrations.proxy.config import PROXY_DIALECTS
from streamweld.integrations.proxy.warm import warm_up

from tests.proxy.test_proxy_convert import QUESTION, asked, in_turn
from tests.proxy.test_proxy_loops import CITIES, LAST, of_anthropic, of_gemini
from tests.support.servers.proxying import GOOD, between
from tests.support.servers.upstream import Upstream, sse

UPSTREAM = "http://gateway.example/v1"
GOOGLE = "/v1/projects/p/locations/global/publishers/google"
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "?"}]}


def test_every_gateway_can_be_reached() -> None:
    """Each gateway profile of an API over HTTP belongs to at least one upstream dialect."""
    unreached: list[str] = []
    for name in profiles.names():
        for to in PROXY_DIALECTS:
            try:
                ProxyConfig(UPSTREAM, to=to, gateway=name)  # type: ignore[arg-type]
            except UsageError:
                continue
            break
        else:
            unreached.append(name)
    assert sorted(name.partition("@")[0] for name in unreached) == ["ai-sdk-model", "ai-sdk-ui", "bedrock-converse"]


@pytest.mark.parametrize("name", profiles.names())
def test_a_proxy_for_every_gateway_starts(name: str) -> None:
    for to in PROXY_DIALECTS:
        try:
            config = ProxyConfig(UPSTREAM, to=to, gateway=name)  # type: ignore[arg-type]
        except UsageError:
            continue
        warm_up(config)


def test_a_gateway_does_not_speak_every_dialect() -> None:
    for to, gateway in (("gemini", "deepseek"), ("anthropic", "mistral"), ("chat", "anthropic")):
        with pytest.raises(UsageError):
            ProxyConfig(UPSTREAM, to=to, gateway=gateway)  # type: ignore[arg-type]


def test_a_client_of_the_same_api_is_converted_for_the_gateway() -> None:
    upstream = Upstream(sse(*GOOD))
    with (
        between(upstream, to="chat", gateway="deepseek") as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client,
    ):
        chunks = client.chat.completions.create(
            model="m",
            messages=[{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "?"}],
            max_completion_tokens=5,
            seed=1,
            stream=True,
        )
        shown = [chunk.choices[0].delta.content or "" for chunk in chunks]
    assert "".join(shown) == "Hello"
    assert asked(upstream) == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "?"}],
        "max_tokens": 5,
        "stream": True,
    }
    assert upstream.seen[0].target == "/v1/chat/completions"
    assert upstream.seen[0].header("authorization") == "Bearer k"


def test_a_request_that_follows_the_rules_keeps_its_bytes() -> None:
    body = b'{ "model":"m",  "messages":[{"role":"user","content":"\\u00fc"}], "stream" : true }'
    upstream = Upstream(sse(*GOOD))
    with between(upstream, to="chat", gateway="deepseek") as url:
        httpx2.post(f"{url}/v1/chat/completions", content=body, timeout=20).raise_for_status()
    assert upstream.seen[0].body == body


def test_without_a_gateway_the_same_api_is_not_read() -> None:
    body = json.dumps(CHAT | {"made_up": 1, "n": 7, "stream": True}).encode()
    upstream = Upstream(sse(*GOOD))
    with between(upstream, to="chat") as url:
        httpx2.post(f"{url}/v1/chat/completions", content=body, timeout=20).raise_for_status()
    assert upstream.seen[0].body == body


def test_mistral_is_a_gateway_of_chat() -> None:
    """Mistral's API rejects unknown members (`max_completion_tokens`, `stream_options`) and other forms of call ids."""
    upstream = Upstream(sse(*GOOD))
    messages: list[Any] = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_01", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_01", "content": "x"}]},
    ]
    tools: list[Any] = [{"name": "f", "input_schema": {"type": "object"}}]
    with (
        between(upstream, to="chat", gateway="mistral") as url,
        anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client,
        client.messages.stream(**QUESTION | {"messages": messages, "tools": tools}) as stream,
    ):
        shown = stream.get_final_message()
    assert [part.text for part in shown.content if part.type == "text"] == ["Hello"]
    sent = asked(upstream)
    assert upstream.seen[0].target == "/v1/chat/completions"
    assert sent.keys() == {"model", "messages", "tools", "max_tokens", "stream"}
    (call,) = sent["messages"][1]["tool_calls"]
    assert call["id"].isalnum()
    assert len(call["id"]) == 9
    assert sent["messages"][2]["tool_call_id"] == call["id"]


# Vertex AI: models in the path, OAuth tokens, and Claude without a model in the body
# (https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude).


def test_gemini_on_vertex() -> None:
    upstream = Upstream(in_turn(of_gemini(len(CITIES))))
    with (
        between(
            upstream, to="gemini", gateway="vertex", base="/v1/projects/p/locations/global/publishers/google"
        ) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="ya29.token", max_retries=0) as client,
        client.chat.completions.stream(model="gemini-3-pro", messages=CHAT["messages"]) as stream,
    ):
        shown = stream.get_final_completion().choices[0].message.content
    assert shown == LAST
    (seen,) = upstream.seen
    path = f"{GOOGLE}/models/gemini-3-pro:streamGenerateContent"
    assert seen.target == f"{path}?alt=sse"
    assert seen.header("authorization") == "Bearer ya29.token"
    assert seen.header("x-goog-api-key") is None
    assert json.loads(seen.body) == {"contents": [{"role": "user", "parts": [{"text": "?"}]}]}


@pytest.mark.parametrize("client", ["chat", "anthropic"])
def test_claude_on_vertex(client: str) -> None:
    base = "/v1/projects/p/locations/global/publishers/anthropic"
    upstream = Upstream(in_turn(of_anthropic(len(CITIES))))
    model = "claude-sonnet-4-5@20250929"
    with between(upstream, to="anthropic", gateway="vertex", base=base) as url:
        if client == "chat":
            with (
                openai.OpenAI(base_url=f"{url}/v1", api_key="ya29.token", max_retries=0) as chat,
                chat.chat.completions.stream(model=model, max_tokens=9, messages=CHAT["messages"]) as stream,
            ):
                shown = stream.get_final_completion().choices[0].message.content
        else:
            with (
                anthropic.Anthropic(base_url=url, api_key="ya29.token", max_retries=0) as own,
                own.messages.stream(model=model, max_tokens=9, messages=CHAT["messages"]) as told,
            ):
                shown = told.get_final_text()
    assert shown == LAST
    (seen,) = upstream.seen
    assert seen.target == f"{base}/models/claude-sonnet-4-5%4020250929:streamRawPredict"
    assert seen.header("authorization") == "Bearer ya29.token"
    assert seen.header("x-api-key") is None
    assert json.loads(seen.body) == {
        "anthropic_version": "vertex-2023-10-16",
        "messages": [{"role": "user", "content": "?"}],
        "max_tokens": 9,
        "stream": True,
    }


# Clients of Claude on Vertex AI (AnthropicVertex, Claude Code with CLAUDE_CODE_USE_VERTEX) put the model into the path.

VERTEX = "/v1/projects/p/locations/global/publishers/anthropic"
CLAUDE = "claude-sonnet-4-5@20250929"
RAW: dict[str, Any] = {
    "anthropic_version": "vertex-2023-10-16",
    "max_tokens": 20,
    "messages": [{"role": "user", "content": "?"}],
}


def test_a_client_of_claude_on_vertex_keeps_its_bytes() -> None:
    upstream = Upstream(in_turn(of_anthropic(len(CITIES))))
    body = json.dumps(RAW | {"stream": True}).encode()
    with between(upstream, to="anthropic", gateway="vertex", base=VERTEX) as url:
        sent = httpx2.post(f"{url}{VERTEX}/models/{CLAUDE}:streamRawPredict", content=body, timeout=20)
    assert b"message_stop" in sent.raise_for_status().content
    (seen,) = upstream.seen
    assert seen.target == f"{VERTEX}/models/claude-sonnet-4-5%4020250929:streamRawPredict"
    assert seen.body == body


def test_without_a_gateway_a_stream_of_vertex_is_repaired() -> None:
    """Without `--gateway`, the path identifies Anthropic's API. The upstream omits the last event; repair adds it."""
    upstream = Upstream(sse(b"".join(of_anthropic(len(CITIES))).partition(b"event: message_stop")[0]))
    body = json.dumps(RAW | {"stream": True}).encode()
    with between(upstream, to=None) as url:
        sent = httpx2.post(f"{url}{VERTEX}/models/{CLAUDE}:streamRawPredict", content=body, timeout=20)
    assert sent.raise_for_status().content.endswith(b'data: {"type":"message_stop"}\n\n')
    (seen,) = upstream.seen
    assert seen.target == f"{VERTEX}/models/{CLAUDE}:streamRawPredict"
    assert seen.body == body


@pytest.mark.parametrize("to", ["chat", "anthropic"])
def test_a_client_of_claude_on_vertex_reaches_other_apis(to: Any) -> None:
    """The model in the path is moved into the body, and `anthropic_version` is removed from the body."""
    answer = sse(*GOOD) if to == "chat" else in_turn(of_anthropic(len(CITIES)))
    upstream = Upstream(answer)
    with between(upstream, to=to, gateway="deepseek" if to == "chat" else "anthropic") as url:
        path = f"{url}{VERTEX}/models/{CLAUDE}:streamRawPredict"
        sent = httpx2.post(path, json=RAW | {"stream": True}, headers={"authorization": "Bearer k"}, timeout=20)
    assert b"message_stop" in sent.raise_for_status().content
    (seen,) = upstream.seen
    assert seen.target == ("/v1/chat/completions" if to == "chat" else "/v1/messages")
    assert seen.header("authorization" if to == "chat" else "x-api-key") == ("Bearer k" if to == "chat" else "k")
    body = json.loads(seen.body)
    assert body["model"] == CLAUDE
    assert body["messages"] == RAW["messages"]
    assert "anthropic_version" not in body
