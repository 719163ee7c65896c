"""Streams that are abandoned in the middle of a loop, without `async with`: the errors that the event loop reports."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import aiohttp
import anthropic
import httpx
import httpx2
import openai
import pytest
from streamweld.integrations import anthropic as our_anthropic
from streamweld.integrations import httpx as our_httpx
from streamweld.integrations import openai as our_openai
from streamweld.integrations.aiohttp import repair_middleware

from tests.integrations.dropin.clients import CHAT, CLAUDE, RESPONSES
from tests.integrations.dropin.server import Answer, Gateway
from tests.integrations.dropin.streams import cells, frame_bytes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

RUNS = 4
# Maximum number of errors that the event loop reports for one abandoned stream without repair. httpx2 closes generators
# from generators, as does the loop at its end, so one of them is still running; which one differs from run to run.
ALONE = {"openai": 1, "openai responses": 1, "anthropic": 0, "httpx": 0, "httpx2": 1, "aiohttp": 1}
APIS = {"openai responses": "responses", "anthropic": "messages"}


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    """A gateway that sends each client one response whose stream never ends."""
    answers = {}
    for name in ALONE:
        (clean,) = [cell for cell in cells(APIS.get(name, "chat")) if cell["name"] == "clean"]
        answers[name.replace(" ", "-")] = Answer([frame_bytes(frame) for frame in clean["frames"][:3]], end="hang")
    with Gateway(answers) as found:
        yield found
        assert found.quiet(), f"{found.open} connections are still open"


async def asked(name: str, url: str, *, repaired: bool) -> AsyncIterator[Any]:
    """Yield the object that a loop iterates over: the stream of a client that is never closed."""
    if name.startswith("openai"):
        client = openai.AsyncOpenAI(api_key="k", base_url=url + "/v1", max_retries=0)
        client = our_openai.repair(client) if repaired else client
        if name == "openai":
            return await client.chat.completions.create(**CHAT, stream=True)  # type: ignore[no-any-return]
        return await client.responses.create(**RESPONSES, stream=True)  # type: ignore[no-any-return]
    if name == "anthropic":
        claude = anthropic.AsyncAnthropic(api_key="k", base_url=url, max_retries=0)
        claude = our_anthropic.repair(claude) if repaired else claude
        return await claude.messages.create(**CLAUDE, stream=True)  # type: ignore[no-any-return]
    http: Any = httpx.AsyncClient() if name == "httpx" else httpx2.AsyncClient()
    http = our_httpx.repair(http) if repaired else http
    request = http.build_request("POST", f"{url}/v1/chat/completions", json={"stream": True})
    return (await http.send(request, stream=True)).aiter_lines()  # type: ignore[no-any-return]


async def left(name: str, url: str, reported: list[Any], *, repaired: bool) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    if name == "aiohttp":  # aiohttp itself reports a session that is not closed
        async with aiohttp.ClientSession(middlewares=[repair_middleware()] if repaired else []) as session:
            response = await session.post(f"{url}/v1/chat/completions", json={"stream": True})
            async for _ in response.content:
                break
        return
    async for _ in await asked(name, url, repaired=repaired):
        break


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the client's own sockets are unclosed here
@pytest.mark.parametrize("repaired", [False, True], ids=["alone", "repaired"])
@pytest.mark.parametrize("name", ALONE)
def test_a_loop_that_is_left_without_a_block_is_told_of_as_without_us(
    gateway: Gateway, name: str, repaired: bool
) -> None:
    counts, reported = [], []
    for _ in range(RUNS):
        found: list[Any] = []
        asyncio.run(left(name, gateway.url(name.replace(" ", "-")), found, repaired=repaired))
        gc.collect()
        counts.append(len(found))
        reported += [f"{context['message']}: {context.get('exception')!r}" for context in found]
    assert max(counts) <= ALONE[name], "\n".join(reported)
    assert gateway.quiet()
    assert gateway.requests == gateway.aborted == RUNS
