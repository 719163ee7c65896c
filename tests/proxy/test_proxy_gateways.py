"""`--gateway`: requests follow the rules of a gateway, whichever dialect the client speaks."""

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
from streamweld.integrations.proxy.config import SPEAKS

from tests.proxy.test_proxy_convert import QUESTION, asked
from tests.support.servers.proxying import GOOD, between
from tests.support.servers.upstream import Upstream, sse

UPSTREAM = "http://gateway.example/v1"
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "?"}]}


def test_every_gateway_can_be_reached() -> None:
    """Each profile of an API that is spoken over HTTP belongs to one dialect of an upstream at least."""
    unreached: list[str] = []
    for name in profiles.names():
        for to in SPEAKS:
            try:
                ProxyConfig(UPSTREAM, to=to, gateway=name)  # type: ignore[arg-type]
            except UsageError:
                continue
            break
        else:
            unreached.append(name)
    assert sorted(name.partition("@")[0] for name in unreached) == ["ai-sdk-model", "ai-sdk-ui", "bedrock-converse"]


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
        said = [chunk.choices[0].delta.content or "" for chunk in chunks]
    assert "".join(said) == "Hello"
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
    """Its API rejects members that it does not have (`max_completion_tokens`, `stream_options`) and other call ids."""
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
        said = stream.get_final_message()
    assert [part.text for part in said.content if part.type == "text"] == ["Hello"]
    sent = asked(upstream)
    assert upstream.seen[0].target == "/v1/chat/completions"
    assert sent.keys() == {"model", "messages", "tools", "max_tokens", "stream"}
    (call,) = sent["messages"][1]["tool_calls"]
    assert call["id"].isalnum()
    assert len(call["id"]) == 9
    assert sent["messages"][2]["tool_call_id"] == call["id"]
