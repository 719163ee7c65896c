"""A repaired official client still returns connections to the pool, stops when canceled, and does not leave anything
open.
"""

from __future__ import annotations

import asyncio
import types
from typing import TYPE_CHECKING, Any

import anthropic
import httpx
import httpx2
import openai
import pytest
import streamweld as sw
from streamweld.integrations import anthropic as our_anthropic
from streamweld.integrations import openai as our_openai

from tests.integrations.dropin.clients import CHAT, CLAUDE, RESPONSES
from tests.integrations.dropin.http2 import Gateway2
from tests.integrations.dropin.server import Answer, Gateway
from tests.integrations.dropin.streams import answers, body_of, cells, frame_bytes

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator, Iterator

CELLS = {cell["name"]: cell for cell in cells("chat")}
ONE = [("call_1", '{"code":"print(1)"}')]
TWO = [*ONE, ("call_2", "{}")]


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway(answers()) as found:
        yield found
        assert found.quiet(), f"{found.open} connections are still open"


def async_openai(gateway: Any, name: str, **options: Any) -> openai.AsyncOpenAI:
    client = openai.AsyncOpenAI(api_key="k", base_url=gateway.url(name) + "/v1", max_retries=0, **options)
    return our_openai.repair(client)


async def completed(client: openai.AsyncOpenAI) -> list[tuple[str, str]]:
    async with client.chat.completions.stream(**CHAT) as stream:
        done = await stream.get_final_completion()
    return [(call.id, call.function.arguments) for call in done.choices[0].message.tool_calls or []]


def test_connections_come_back_into_the_pool(gateway: Gateway) -> None:
    async def run() -> None:
        async with async_openai(gateway, "chat-b") as client:
            for _ in range(5):
                assert await completed(client) == TWO

    asyncio.run(run())
    assert (gateway.requests, gateway.connections) == (5, 1)


@pytest.mark.parametrize("repaired", [False, True], ids=["alone", "repaired"])
@pytest.mark.parametrize("last", [b"", b"data: [DONE]\n\n"], ids=["as-documented", "done"])
def test_anthropic_connections_come_back_into_the_pool(gateway: Gateway, last: bytes, repaired: bool) -> None:
    """Connections return to the pool, even after the `[DONE]` that Chat gateways send in every dialect."""
    clean = {cell["name"]: cell for cell in cells("messages")}["clean"]
    gateway.answers["ended"] = Answer([*[frame_bytes(frame) for frame in clean["frames"]], *([last] if last else [])])
    options: Any = {"api_key": "k", "base_url": gateway.url("ended"), "max_retries": 0}
    uses = [("toolu_1", {"code": "print(1)"})]

    def used(message: anthropic.types.Message) -> list[tuple[str, Any]]:
        return [(block.id, block.input) for block in message.content if block.type == "tool_use"]

    async def run() -> None:
        client = anthropic.AsyncAnthropic(**options)
        async with our_anthropic.repair(client) if repaired else client:
            for _ in range(5):
                async with client.messages.stream(**CLAUDE) as stream:
                    assert used(await stream.get_final_message()) == uses
                async for _event in await client.messages.create(**CLAUDE, stream=True):
                    pass

    asyncio.run(run())
    assert (gateway.requests, gateway.connections) == (10, 1)
    client = anthropic.Anthropic(**options)
    with our_anthropic.repair(client) if repaired else client:
        for _ in range(5):
            with client.messages.stream(**CLAUDE) as stream:
                assert used(stream.get_final_message()) == uses
            for _event in client.messages.create(**CLAUDE, stream=True):
                pass
    assert (gateway.requests, gateway.connections) == (20, 2)


def test_fifty_at_once_in_pieces_of_one_byte(gateway: Gateway) -> None:
    gateway.answers["drip"] = Answer([bytes([byte]) for byte in body_of(CELLS["b"])])

    async def run() -> None:
        async with async_openai(gateway, "drip") as client:
            found = await asyncio.gather(*[completed(client) for _ in range(50)])
        assert found == [TWO] * 50

    asyncio.run(run())


@types.coroutine
def cancelled_at(place: int, work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Run `work`, and cancel its task at its `place`-th wait."""
    waits = 0
    step, given = work.send, None
    while True:
        try:
            waited = step(given)
        except StopIteration as done:
            return done.value
        waits += 1
        if waits == place:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        try:
            step, given = work.send, (yield waited)
        except BaseException as error:  # noqa: BLE001 (any exception is passed to `work`)
            step, given = work.throw, error  # type: ignore[assignment]


@pytest.mark.parametrize("api", ["chat", "messages"])
def test_cancelling_at_every_await_leaves_nothing(gateway: Gateway, api: str) -> None:
    frames = [frame_bytes(frame) for frame in {cell["name"]: cell for cell in cells(api)}["clean"]["frames"]]
    gateway.answers["slow"] = Answer(frames, pause=0.005)

    async def once(client: Any) -> str:
        if api == "chat":
            async with await client.chat.completions.create(**CHAT, stream=True) as stream:
                async for _ in stream:
                    pass
        else:
            async with await client.messages.create(**CLAUDE, stream=True) as stream:
                async for _ in stream:
                    pass
        return "done"

    async def run() -> int:
        client: Any
        if api == "chat":
            client = async_openai(gateway, "slow")
        else:
            client = our_anthropic.repair(
                anthropic.AsyncAnthropic(api_key="k", base_url=gateway.url("slow"), max_retries=0)
            )
        async with client:
            for place in range(1, 200):
                task = asyncio.ensure_future(_awaiting(cancelled_at(place, once(client))))
                (found,) = await asyncio.gather(task, return_exceptions=True)
                assert asyncio.all_tasks() == {asyncio.current_task()}
                if found == "done":
                    return place
                assert isinstance(found, asyncio.CancelledError)
        raise AssertionError("it never came to its end")

    assert asyncio.run(run()) > 5


async def _awaiting(work: Any) -> Any:
    return await work


def test_a_cancelled_read_aborts_upstream_at_once(gateway: Gateway) -> None:
    gateway.answers["hang"] = Answer([frame_bytes(frame) for frame in CELLS["f"]["frames"]], end="hang")

    async def run() -> None:
        async with async_openai(gateway, "hang") as client:
            reading = asyncio.create_task(_awaiting(completed(client)))
            assert await asyncio.to_thread(gateway.asked, 1)
            await asyncio.sleep(0.2)  # the client waits for data that never arrive
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            assert await asyncio.to_thread(gateway.quiet)

    asyncio.run(run())
    assert gateway.aborted == 1


def test_leaving_the_loop_early_closes_the_stream(gateway: Gateway) -> None:
    gateway.answers["hang"] = Answer([frame_bytes(frame) for frame in CELLS["f"]["frames"]], end="hang")

    async def run() -> None:
        async with async_openai(gateway, "hang") as client:
            async with await client.chat.completions.create(**CHAT, stream=True) as stream:
                async for _ in stream:
                    break
            assert await asyncio.to_thread(gateway.quiet)

    asyncio.run(run())


def test_timeouts_are_the_clients_own(gateway: Gateway) -> None:
    gateway.answers["hang"] = Answer([frame_bytes(frame) for frame in CELLS["f"]["frames"]], end="hang")

    async def run() -> None:
        async with async_openai(gateway, "hang", timeout=0.3) as client:
            with pytest.raises(openai.APITimeoutError):
                await completed(client)

    asyncio.run(run())


def test_http2(gateway: Gateway) -> None:
    async def run() -> None:
        http = httpx2.AsyncClient(http1=False, http2=True)
        async with Gateway2(gateway.answers) as second:
            async with async_openai(second, "chat-b", http_client=http) as client:
                found = await asyncio.gather(*[completed(client) for _ in range(20)])
            assert found == [TWO] * 20
            assert (second.requests, second.connections) == (20, 1)

    asyncio.run(run())


def test_raw_and_streaming_responses(gateway: Gateway) -> None:
    with our_openai.repair(openai.OpenAI(api_key="k", base_url=gateway.url("chat-b") + "/v1")) as client:
        raw = client.chat.completions.with_raw_response.create(**CHAT, stream=True)
        with raw.parse() as stream:
            pieces = [piece for chunk in stream for piece in chunk.choices[0].delta.tool_calls or []]
        assert [(piece.index, piece.id) for piece in pieces if piece.id] == [(0, "call_1"), (1, "call_2")]
        with client.chat.completions.with_streaming_response.create(**CHAT, stream=True) as response:
            body = b"".join(response.iter_bytes())
        assert [call.call_id for call in sw.parse(body).dispatchable_calls] == ["call_1", "call_2"]
        assert "content-encoding" not in response.headers


def test_our_exception_through_the_client(gateway: Gateway) -> None:
    client = openai.OpenAI(api_key="k", base_url=gateway.url("chat-f") + "/v1")
    with our_openai.repair(client, on_error="raise"):
        with client.chat.completions.create(**CHAT, stream=True) as stream:
            seen = [next(stream) for _ in CELLS["f"]["frames"]]
            with pytest.raises(sw.TruncatedStream) as caught:
                next(stream)
        assert len(seen) == len(CELLS["f"]["frames"])
        assert caught.value.partial is not None
        assert not caught.value.partial.dispatchable_calls


def test_an_anthropic_stream_under_an_openai_client(gateway: Gateway) -> None:
    url = gateway.url("messages-clean") + "/v1"
    with our_openai.repair(openai.OpenAI(api_key="k", base_url=url), upstream_dialect="anthropic") as client:
        with client.chat.completions.stream(**CHAT) as chat:
            calls = chat.get_final_completion().choices[0].message.tool_calls or []
        assert [(call.id, call.function.arguments) for call in calls] == [("toolu_1", '{"code":"print(1)"}')]
        with client.responses.stream(**RESPONSES) as responses:
            done = responses.get_final_response()
        assert [item.call_id for item in done.output if item.type == "function_call"] == ["toolu_1"]


def test_repair_returns_the_client_and_holds_for_its_copies(gateway: Gateway) -> None:
    client = openai.OpenAI(api_key="k", base_url=gateway.url("chat-a") + "/v1")
    assert our_openai.repair(client) is client
    assert our_openai.repair(client) is client
    with client, client.with_options(timeout=5).chat.completions.stream(**CHAT) as stream:
        calls = stream.get_final_completion().choices[0].message.tool_calls or []
    assert [(call.id, call.function.arguments) for call in calls] == ONE
    with pytest.raises(sw.UsageError, match="is not a client"):
        our_openai.repair(object())
    with pytest.raises(sw.UsageError, match="is not a client"):
        our_anthropic.repair(object())


def test_an_http_client_of_the_other_library(gateway: Gateway) -> None:
    """openai 3 still accepts an `httpx.Client`. The hook depends on the response, not on the installed library."""
    http = httpx.Client()
    client = openai.OpenAI(api_key="k", base_url=gateway.url("chat-b") + "/v1", http_client=http)  # type: ignore[arg-type]
    with our_openai.repair(client), client.chat.completions.stream(**CHAT) as stream:
        calls = stream.get_final_completion().choices[0].message.tool_calls or []
    assert [call.id for call in calls] == ["call_1", "call_2"]
