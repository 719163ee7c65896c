"""The `aiohttp` middleware and wrapper, over the loopback interface."""

from __future__ import annotations

import asyncio
import gzip
import importlib
import sys
import zlib
from typing import TYPE_CHECKING, Any

import aiohttp
import brotli
import pytest
import streamweld as sw
from streamweld.integrations.aiohttp import repair_middleware, repair_response

from tests.integrations.dropin.server import Answer, Gateway
from tests.integrations.dropin.streams import body_of, cells, frame_bytes
from tests.integrations.test_dropin_httpx import BROKEN, CHAT, CLEAN, JSON, PATH, STREAM, TWO, calls_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

MESSAGES = {cell["name"]: cell for cell in cells("messages")}
CUT = body_of(CHAT["f"])
NAMES = ["content.read", "read", "lines", "iter_any", "iter_chunked", "iter_chunks", "readuntil", "readexactly"]


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    answers = {
        "clean": Answer([CLEAN]),
        "broken": Answer([BROKEN]),
        "cut": Answer([CUT]),
        "drip": Answer([bytes([byte]) for byte in BROKEN]),
        "unnumbered": Answer([body_of(CHAT["b3"])]),
        "hang": Answer([frame_bytes(frame) for frame in CHAT["f"]["frames"]], end="hang"),
        "reset": Answer([CUT], end="reset"),
    }
    with Gateway(answers) as found:
        yield found
        assert found.quiet(), f"{found.open} connections are still open"


def with_session(use: Callable[[aiohttp.ClientSession], Awaitable[Any]], **options: Any) -> Any:
    async def run() -> Any:
        async with aiohttp.ClientSession(middlewares=[repair_middleware(**options)]) as session:
            return await use(session)

    return asyncio.run(run())


def body(gateway: Gateway, name: str, *, path: str = PATH, sent: Any = STREAM, **options: Any) -> Any:
    async def use(session: aiohttp.ClientSession) -> bytes:
        async with session.post(gateway.url(name) + path, json=sent) as response:
            return await response.read()

    return with_session(use, **options)


async def read_by(way: str, content: aiohttp.StreamReader) -> bytes:
    if way == "content.read":
        return await content.read()
    if way == "readuntil":
        pieces = []
        while piece := await content.readuntil(b"\n\n"):
            pieces.append(piece)
        return b"".join(pieces)
    if way == "readexactly":
        try:
            return await content.readexactly(10**6)
        except asyncio.IncompleteReadError as error:
            return error.partial
    pieces = []
    if way == "lines":
        pieces = [line async for line in content]
    elif way == "iter_any":
        pieces = [piece async for piece in content.iter_any()]
    elif way == "iter_chunked":
        pieces = [piece async for piece in content.iter_chunked(7)]
    else:
        pieces = [piece async for piece, _ in content.iter_chunks()]
    return b"".join(pieces)


@pytest.mark.parametrize("way", NAMES)
def test_every_way_to_read(gateway: Gateway, way: str) -> None:
    async def use(session: aiohttp.ClientSession) -> list[bytes]:
        found = []
        for name in ("clean", "drip"):
            async with session.post(gateway.url(name) + PATH, json=STREAM) as response:
                found.append(await response.read() if way == "read" else await read_by(way, response.content))
                assert response.content.at_eof()
        return found

    clean, broken = with_session(use)
    assert clean == CLEAN
    assert calls_of(broken) == TWO
    assert gateway.connections == 1  # the connection returned to the pool


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_encoded_bodies(gateway: Gateway, encoding: str) -> None:
    packed = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress}[encoding](BROKEN)
    headers = {"content-type": "text/event-stream", "content-encoding": encoding}
    gateway.answers["packed"] = Answer([packed[at : at + 7] for at in range(0, len(packed), 7)], headers=headers)
    assert calls_of(body(gateway, "packed")) == TWO

    async def left() -> bytes:
        session = aiohttp.ClientSession(middlewares=[repair_middleware()], auto_decompress=False)
        async with session, session.post(gateway.url("packed") + PATH, json=STREAM) as response:
            return await response.read()

    assert asyncio.run(left()) == packed


def test_what_is_not_for_us_is_not_touched(gateway: Gateway) -> None:
    gateway.answers |= {
        "json": Answer([b'{"choices": [ ]}'], headers=JSON),
        "refused": Answer([BROKEN], status=500),
    }
    assert body(gateway, "json", sent={}) == b'{"choices": [ ]}'
    assert body(gateway, "refused") == BROKEN
    assert body(gateway, "broken", path="/v1/threads/runs") == BROKEN


def test_what_is_called_something_else(gateway: Gateway) -> None:
    gateway.answers["untold"] = Answer([BROKEN], headers={"content-type": "text/plain"})
    assert calls_of(body(gateway, "untold")) == TWO
    assert body(gateway, "untold", sent={"stream": False}) == BROKEN


def test_a_cut_is_an_error_event_or_our_exception(gateway: Gateway) -> None:
    found = body(gateway, "cut")
    assert found.startswith(CUT)
    assert b'data: {"error":' in found[len(CUT) :]

    async def use(session: aiohttp.ClientSession) -> bytes:
        seen = b""
        async with session.post(gateway.url("cut") + PATH, json=STREAM) as response:
            while seen != CUT:
                seen += await response.content.readany()
            with pytest.raises(sw.TruncatedStream):
                await response.content.readany()
        return seen

    assert with_session(use, on_error="raise") == CUT


def test_a_broken_connection_is_the_clients_own_exception(gateway: Gateway) -> None:
    with pytest.raises(aiohttp.ClientPayloadError):
        body(gateway, "reset")


def test_diagnostics_and_conversion(gateway: Gateway) -> None:
    reported: list[sw.Diagnostic] = []
    body(gateway, "unnumbered", on_diagnostic=reported.append)
    assert {diagnostic.code for diagnostic in reported} == {"index_missing"}
    gateway.answers["claude"] = Answer([body_of(MESSAGES["clean"])])
    assert calls_of(body(gateway, "claude", upstream_dialect="anthropic")) == [("toolu_1", {"code": "print(1)"})]
    with pytest.raises(sw.UsageError):
        repair_middleware(upstream_dialect="openai")  # type: ignore[typeddict-item]


def test_a_wait_that_is_given_up_loses_nothing(gateway: Gateway) -> None:
    gateway.answers["slow"] = Answer([frame_bytes(frame) for frame in CHAT["b"]["frames"]], pause=0.1)

    async def use(session: aiohttp.ClientSession) -> tuple[bytes, int]:
        found, given_up = b"", 0
        async with session.post(gateway.url("slow") + PATH, json=STREAM) as response:
            while not response.content.at_eof():
                try:
                    found += await asyncio.wait_for(response.content.readany(), 0.02)
                except TimeoutError:
                    given_up += 1
        return found, given_up

    found, given_up = with_session(use)
    assert calls_of(found) == TWO
    assert given_up > 2


def test_leaving_early_and_cancelling_close_the_connection(gateway: Gateway) -> None:
    async def read(session: aiohttp.ClientSession) -> bytes:
        async with session.post(gateway.url("hang") + PATH, json=STREAM) as response:
            return await response.read()

    async def use(session: aiohttp.ClientSession) -> None:
        async with session.post(gateway.url("hang") + PATH, json=STREAM) as response:
            await response.content.readline()
        reading = asyncio.create_task(read(session))
        assert await asyncio.to_thread(gateway.asked, 2)
        await asyncio.sleep(0.2)  # the client waits for data that never arrive
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert await asyncio.to_thread(gateway.quiet)

    with_session(use)
    assert gateway.aborted == 2


def test_a_response_alone(gateway: Gateway) -> None:
    async def run() -> tuple[bytes, bytes]:
        async with aiohttp.ClientSession() as session:
            async with session.post(gateway.url("broken") + PATH, json=STREAM) as response:
                repaired = await repair_response(response).read()
            async with session.post(gateway.url("broken") + "/other", json=STREAM) as response:
                return repaired, await repair_response(response).read()

    repaired, other = asyncio.run(run())
    assert calls_of(repaired) == TWO
    assert other == BROKEN


def test_without_aiohttp_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "streamweld.integrations.aiohttp"
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    monkeypatch.delitem(sys.modules, name)
    with pytest.raises(sw.MissingExtra) as caught:
        importlib.import_module(name)
    assert (caught.value.extra, caught.value.package) == ("aiohttp", "aiohttp")
