"""Runs the README's framework recipes on cells of `vectors/dropin` in the current interpreter, and prints JSON.

    python -m tests.integrations.dropin.recipes NAME... [plain]    "langchain/chat-b" -> the result of the framework

Each recipe is a function of a base URL that fills an `Outcome`. With `plain`, the streams are not repaired.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from tests.integrations.dropin.outcome import Outcome
from tests.integrations.dropin.server import Gateway
from tests.integrations.dropin.streams import APIS, answers, cells

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

PLAIN = "plain" in sys.argv
KEY = "k"


def mended(client: Any, kind: str) -> Any:
    """Apply the one line that every recipe adds."""
    if PLAIN:
        return client
    if kind == "anthropic":
        from streamweld.integrations import anthropic as ours
    elif kind == "openai":
        from streamweld.integrations import openai as ours
    else:
        from streamweld.integrations import httpx as ours
    return ours.repair(client)


# LangChain


async def langchain(api: str, url: str, out: Outcome) -> None:
    if api == "messages":
        from langchain_anthropic import ChatAnthropic

        model: Any = ChatAnthropic(model="m", api_key=KEY, base_url=url, max_retries=0)
        mended(model._async_client, "anthropic")
        client = model._async_client
    else:
        from langchain_openai import ChatOpenAI

        model = ChatOpenAI(
            model="m", api_key=KEY, base_url=url + "/v1", max_retries=0, use_responses_api=api == "responses"
        )
        client = mended(model.root_async_client, "openai")
    async with client:
        whole: Any = None
        async for chunk in model.astream("go"):
            whole = chunk if whole is None else whole + chunk
    out.calls = [[call["id"], call["name"], call["args"]] for call in whole.tool_calls]
    out.calls += [[call["id"], call["name"], call["args"]] for call in whole.invalid_tool_calls]


# pydantic-ai


async def pydantic_ai(api: str, url: str, out: Outcome) -> None:
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import ModelRequest

    if api == "messages":
        from anthropic import AsyncAnthropic
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        client: Any = AsyncAnthropic(api_key=KEY, base_url=url, max_retries=0)
        model: Any = AnthropicModel("m", provider=AnthropicProvider(anthropic_client=mended(client, "anthropic")))
    else:
        from openai import AsyncOpenAI
        from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        client = AsyncOpenAI(api_key=KEY, base_url=url + "/v1", max_retries=0)
        provider = OpenAIProvider(openai_client=mended(client, "openai"))
        kind: Any = OpenAIChatModel if api == "chat" else OpenAIResponsesModel
        model = kind("m", provider=provider)
    async with client, model_request_stream(model, [ModelRequest.user_text_prompt("go")]) as stream:
        async for _ in stream:
            pass
        response = stream.get() if callable(getattr(stream, "get", None)) else stream.response
    out.calls = [[part.tool_call_id, part.tool_name, part.args] for part in response.tool_calls]
    out.finish = response.finish_reason


# openai-agents


async def openai_agents(api: str, url: str, out: Outcome) -> None:
    import agents
    from openai import AsyncOpenAI

    agents.set_tracing_disabled(True)
    ran: list[list[Any]] = []

    @agents.function_tool
    def run_sandbox(code: str) -> str:
        ran.append(["run_sandbox", {"code": code}])
        return "ok"

    @agents.function_tool
    def get_time() -> str:
        ran.append(["get_time", {}])
        return "now"

    client = mended(AsyncOpenAI(api_key=KEY, base_url=url + "/v1", max_retries=0), "openai")
    kind: Any = agents.OpenAIChatCompletionsModel if api == "chat" else agents.OpenAIResponsesModel
    agent = agents.Agent(
        name="a",
        model=kind("m", openai_client=client),
        tools=[run_sandbox, get_time],
        tool_use_behavior="stop_on_first_tool",
    )
    async with client:
        result = agents.Runner.run_streamed(agent, "go", max_turns=1)
        async for _ in result.stream_events():
            pass
    called = [item.raw_item for item in result.new_items if item.type == "tool_call_item"]
    out.calls = [[call.call_id, call.name, call.arguments] for call in called]
    out.ran = ran


# litellm


async def litellm(api: str, url: str, out: Outcome) -> None:
    import httpx
    import litellm as lite

    messages = [{"role": "user", "content": "go"}]
    async with AsyncExitStack() as stack:
        if api == "chat":
            lite.aclient_session = await stack.enter_async_context(mended(httpx.AsyncClient(), "httpx"))
            options: dict[str, Any] = {"model": "openai/m", "api_base": url + "/v1"}
        else:
            from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

            handler = AsyncHTTPHandler()
            await handler.client.aclose()
            handler.client = await stack.enter_async_context(mended(httpx.AsyncClient(), "httpx"))
            options = {"model": "anthropic/m", "api_base": url, "client": handler}
        stream: Any = await lite.acompletion(
            messages=messages, stream=True, api_key=KEY, num_retries=0, max_tokens=9, **options
        )
        chunks = [chunk async for chunk in stream]
    whole: Any = lite.stream_chunk_builder(chunks, messages=messages)
    choice = whole.choices[0]
    out.calls = [[call.id, call.function.name, call.function.arguments] for call in choice.message.tool_calls or []]
    out.finish = choice.finish_reason


RECIPES: dict[str, tuple[Callable[[str, str, Outcome], Awaitable[None]], tuple[str, ...]]] = {
    "langchain": (langchain, APIS),
    "pydantic_ai": (pydantic_ai, APIS),
    "openai_agents": (openai_agents, ("chat", "responses")),
    "litellm": (litellm, ("chat", "messages")),
}


async def run(names: list[str]) -> dict[str, Any]:
    found = {}
    with Gateway(answers()) as gateway:
        for name in names:
            recipe, apis = RECIPES[name]
            for api in apis:
                for cell in cells(api):
                    out = Outcome()
                    try:
                        await recipe(api, gateway.url(f"{api}-{cell['name']}"), out)
                    except Exception as error:  # noqa: BLE001 (any exception is the result)
                        out.error = error
                    found[f"{name}/{api}-{cell['name']}"] = out.to_json()
    return found


if __name__ == "__main__":
    os.environ.update(OPENAI_API_KEY=KEY, LITELLM_LOCAL_MODEL_COST_MAP="True", DO_NOT_TRACK="1")
    print(json.dumps(asyncio.run(run([name for name in sys.argv[1:] if name != "plain"]))))
