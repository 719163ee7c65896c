"""Sends filler through each integration, plain and compressed, and measures memory growth (128 MiB with the full
counts).

`python -m tests.support.load.flood INTEGRATION [FILLER ...]` prints a line of JSON for each filler, before and after
the first event, plain and compressed: peak memory growth, the exception, the size and the tail of the output. Each
combination runs in its own process.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from streamweld.errors import StreamError
from streamweld.options import Limits

from tests.conftest import NIGHTLY
from tests.support.attacks import KIB, MIB, PIECE, peak_of_process, reset_peak
from tests.support.load.fillers import FILLERS, pieces
from tests.support.servers.proxying import ASK

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    Run = Callable[[Iterator[bytes], str], "Tail"]

CHAT = "/v1/chat/completions"

# Compressed bodies must inflate to more than 16 MiB, because `max_inflate_ratio` is not enforced below that size.
TOTAL = {"plain": (128 if NIGHTLY else 8) * MIB, "packed": (128 if NIGHTLY else 17) * MIB}
LIMIT = (16 if NIGHTLY else 2) * MIB
LIMITS = Limits(max_event_bytes=LIMIT)


def packed(body: Iterator[bytes]) -> Iterator[bytes]:
    """Compress the body with gzip in chunks of `PIECE`, each of which inflates to up to 64 MiB."""
    packer = zlib.compressobj(9, wbits=31)
    ready = bytearray()
    for piece in body:
        ready += packer.compress(piece)
        while len(ready) >= PIECE:
            yield bytes(ready[:PIECE])
            del ready[:PIECE]
    yield bytes(ready) + packer.flush()


# --- Integrations: each takes the pieces of a body, and returns the number of output bytes and the tail


HEADERS: dict[str, dict[str, str]] = {"plain": {}, "packed": {"content-encoding": "gzip"}}


class Tail:
    """The number of bytes, and the last of them."""

    def __init__(self) -> None:
        self.size = 0
        self.last = b""

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        self.last = (self.last + piece)[-300:] if len(piece) < 300 else piece[-300:]


def asgi(pieces: Iterator[bytes], how: str) -> Tail:
    from streamweld.integrations.asgi import RepairMiddleware

    tail = Tail()

    async def app(_: Any, __: Any, send: Any) -> None:
        rows = [(b"content-type", b"text/event-stream")]
        rows += [(name.encode(), value.encode()) for name, value in HEADERS[how].items()]
        await send({"type": "http.response.start", "status": 200, "headers": rows})
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def send(message: Any) -> None:
        tail.add(message.get("body", b""))

    asyncio.run(RepairMiddleware(app, limits=LIMITS)({"type": "http", "method": "POST"}, None, send))  # type: ignore[arg-type]
    return tail


def hook(family: Any) -> Run:
    from streamweld.integrations.httpx import repair_hook

    return client(family, lambda transport: (transport, [repair_hook(limits=LIMITS)]))


def converting_hook(family: Any) -> Run:
    """Read with a hook that converts the response, because the client expects another dialect at this path."""
    from streamweld.integrations.httpx import repair_hook

    hook = repair_hook(limits=LIMITS, upstream_dialect="chat")
    return client(family, lambda transport: (transport, [hook]), "/v1/messages")


def wrapped_transport(family: Any) -> Run:
    from streamweld.integrations.httpx import RepairTransport

    return client(family, lambda transport: (RepairTransport(transport, limits=LIMITS), []))


def client(family: Any, repaired: Callable[[Any], tuple[Any, list[Any]]], path: str = CHAT) -> Run:
    """Read with a synchronous client. `repaired` returns the transport and the hooks to use."""

    class Stream(family.SyncByteStream):  # type: ignore[misc]
        def __init__(self, pieces: Iterator[bytes]) -> None:
            self._pieces = pieces

        def __iter__(self) -> Iterator[bytes]:
            return self._pieces

    def run(pieces: Iterator[bytes], how: str) -> Tail:
        tail = Tail()
        headers = {"content-type": "text/event-stream", **HEADERS[how]}
        mock = family.MockTransport(lambda _: family.Response(200, headers=headers, stream=Stream(pieces)))
        transport, hooks = repaired(mock)
        with (
            family.Client(transport=transport, event_hooks={"response": hooks}) as http,
            http.stream("POST", f"http://h{path}", json={"stream": True}) as response,
        ):
            for piece in response.iter_bytes():
                tail.add(piece)
        return tail

    return run


def async_hook(family: Any) -> Run:
    from streamweld.integrations.httpx import async_repair_hook

    class Stream(family.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, pieces: Iterator[bytes]) -> None:
            self._pieces = pieces

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in self._pieces:
                yield piece

    async def run(pieces: Iterator[bytes], how: str) -> Tail:
        tail = Tail()
        headers = {"content-type": "text/event-stream", **HEADERS[how]}
        transport = family.MockTransport(lambda _: family.Response(200, headers=headers, stream=Stream(pieces)))
        hooks = {"response": [async_repair_hook(limits=LIMITS)]}
        async with (
            family.AsyncClient(transport=transport, event_hooks=hooks) as client,
            client.stream("POST", f"http://h{CHAT}", json={"stream": True}) as response,
        ):
            async for piece in response.aiter_bytes():
                tail.add(piece)
        return tail

    return lambda pieces, how: asyncio.run(run(pieces, how))


async def serve(pieces: Iterator[bytes], how: str, use: Callable[[str], Awaitable[None]]) -> None:
    """Serve the body from a local server while `use` runs with its address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.CancelledError):
            await reader.readuntil(b"\r\n\r\n")
            rows = [f"{name}: {value}\r\n".encode() for name, value in HEADERS[how].items()]
            head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
            writer.write(head + b"".join(rows) + b"\r\n")
            for piece in filter(None, pieces):  # an empty chunk would end the body
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                await writer.drain()
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        await use(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")


async def read(url: str, tail: Tail, **session: Any) -> None:
    from aiohttp import ClientSession

    async with (
        ClientSession(**session) as client,
        client.post(f"{url}{CHAT}", json=ASK) as response,
    ):
        async for piece in response.content.iter_any():
            tail.add(piece)


def aiohttp(pieces: Iterator[bytes], how: str) -> Tail:
    from streamweld.integrations.aiohttp import repair_middleware

    tail = Tail()
    asyncio.run(serve(pieces, how, lambda url: read(url, tail, middlewares=[repair_middleware(limits=LIMITS)])))
    return tail


def proxy(pieces: Iterator[bytes], how: str) -> Tail:
    """Run upstream, proxy and client in one process, so that the memory of all three counts."""
    from streamweld.integrations.proxy import ProxyConfig, create_app

    from tests.support.servers.upstream import running

    class Capped(ProxyConfig):
        """A configuration with a smaller event limit; the proxy has no option for it."""

        limits = LIMITS  # type: ignore[assignment]

    tail = Tail()

    async def use(url: str) -> None:
        with running(create_app(Capped(url))) as own:
            await asyncio.wait_for(read(own, tail), 120)

    asyncio.run(serve(pieces, how, use))
    return tail


def integration(name: str) -> Run:
    import httpx
    import httpx2

    return INTEGRATIONS[name](httpx if name.startswith("httpx ") else httpx2)


INTEGRATIONS: dict[str, Callable[[Any], Run]] = {
    "asgi": lambda _: asgi,
    "httpx sync": hook,
    "httpx async": async_hook,
    "httpx2 sync": hook,
    "httpx2 async": async_hook,
    "httpx2 transport": wrapped_transport,
    "httpx2 converts": converting_hook,
    "aiohttp": lambda _: aiohttp,
    "proxy": lambda _: proxy,
}


def measured(name: str, filler: str, how: str, *, begun: bool, total: int) -> dict[str, Any]:
    """Run one flood and return the exception, the size of the output and its tail."""
    body = pieces(filler, total, PIECE, begun=begun)
    raised = "-"
    tail = Tail()
    try:
        tail = integration(name)(packed(body) if how == "packed" else body, how)
    except StreamError as fault:
        raised = fault.rule
    return {"raised": raised, "out": tail.size, "last": tail.last.decode("latin-1")}


def main(name: str, *fillers: str) -> None:
    for how in HEADERS:  # warm up: imports and caches
        measured(name, "comments", how, begun=True, total=4 * KIB)
    for filler in fillers or FILLERS:
        for begun in (False, True):
            for how in HEADERS:
                sys.stdout.flush()
                child = os.fork()
                if child == 0:
                    measured(name, filler, how, begun=begun, total=64 * KIB)  # warm up: its files are mapped
                    gc.collect()
                    reset_peak()
                    before = peak_of_process()
                    found = measured(name, filler, how, begun=begun, total=TOTAL[how])
                    row = {"filler": filler, "begun": begun, "how": how, "growth": peak_of_process() - before}
                    print(json.dumps(row | found), flush=True)
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    main(*sys.argv[1:])
