"""`repair` finds the HTTP clients inside models that frameworks build around official clients."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx
import openai
import pytest
import streamweld as sw
from streamweld.integrations.anthropic import repair as repair_anthropic
from streamweld.integrations.httpx import AsyncRepairHook, RepairHook
from streamweld.integrations.openai import repair as repair_openai


def hooks(client: Any) -> list[type]:
    return [type(hook) for hook in client._client.event_hooks["response"]]


class ChatOpenAI:
    """The attributes of langchain-openai: `client` is a resource; the clients are `root_client` and
    `root_async_client`.
    """

    def __init__(self) -> None:
        self.root_client = openai.OpenAI(api_key="k")
        self.root_async_client = openai.AsyncOpenAI(api_key="k")
        self.client = self.root_client.chat.completions
        self.async_client = self.root_async_client.chat.completions


class ChatAnthropic:
    """The attributes of langchain-anthropic."""

    def __init__(self) -> None:
        self._client = anthropic.Anthropic(api_key="k")
        self._async_client = anthropic.AsyncAnthropic(api_key="k")


class PydanticModel:
    """The attribute of pydantic-ai, and of openai-agents (`_client`)."""

    def __init__(self) -> None:
        self.client = openai.AsyncOpenAI(api_key="k")


def test_langchain_openai() -> None:
    model = ChatOpenAI()
    assert repair_openai(model) is model
    assert repair_openai(model) is model
    assert (hooks(model.root_client), hooks(model.root_async_client)) == ([RepairHook], [AsyncRepairHook])


def test_langchain_anthropic() -> None:
    model = ChatAnthropic()
    assert repair_anthropic(model, policy="strict") is model
    assert (hooks(model._client), hooks(model._async_client)) == ([RepairHook], [AsyncRepairHook])


def test_a_model_with_one_client_and_a_resource() -> None:
    model = PydanticModel()
    repair_openai(model)
    assert hooks(model.client) == [AsyncRepairHook]
    client = openai.OpenAI(api_key="k")
    repair_openai(client.chat.completions)
    assert hooks(client) == [RepairHook]
    with httpx.Client() as http:
        assert repair_openai(http) is http
        assert [type(hook) for hook in http.event_hooks["response"]] == [RepairHook]


def test_what_holds_no_client_is_refused_with_what_to_pass() -> None:
    with pytest.raises(
        sw.UsageError, match=r"'object' is not a client, and contains no .* Pass an official client such as"
    ):
        repair_openai(object())
    with pytest.raises(sw.UsageError, match=r"'ChatOpenAI' is a class, not an instance"):
        repair_openai(ChatOpenAI)
