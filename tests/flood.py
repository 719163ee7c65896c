"""128 MiB of filler through one integration, in a process of its own; prints how far its memory grew.

    python -m tests.flood <integration> [<filler> ...]

For each filler, before and behind the first event, as it is and packed: one line of JSON with the growth of the
resident set in bytes, what came out, and how it ended.
"""

from __future__ import annotations

import asyncio
import json
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamweld.options import Limits

from tests.wire import DONE, chunk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

MEBI = 1_048_576
FLOOD = 128 * MEBI
PIECE = 65_536
FILLERS = {
    "comments": b": " + b"x" * 1021 + b"\n",
    "comment blocks": b": " + b"x" * 61 + b"\n\n",
    "unknown fields": b"x: " + b"y" * 60 + b"\n",
    "blank lines": b"\n",
    "spaces": b" ",
    "keep-alives": b": keep-alive\n\n",
    "pings": b'event: ping\ndata: {"type":"ping"}\n\n',
}
HEAD: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
FIRST = chunk({"role": "assistant", "content": "Hi"}, **HEAD)
LAST = chunk({}, "stop", **HEAD) + DONE
LIMITS = Limits()


def plain(filler: bytes, size: int, *, behind: bool) -> Iterator[bytes]:
    """The body in pieces, with the filler before or behind its first event."""
    piece = filler * (PIECE // len(filler))
    if behind:
        yield FIRST
    for _ in range(size // len(piece)):
        yield piece
    if not behind:
        yield FIRST
    yield LAST


def packed(filler: bytes, size: int, *, behind: bool) -> Iterator[bytes]:
    """The same, as gzip in pieces of `PIECE`: each inflates to up to 64 MiB."""
    packer = zlib.compressobj(9, wbits=31)
    ready = bytearray()
    for piece in plain(filler, size, behind=behind):
        ready += packer.compress(piece)
        while len(ready) >= PIECE:
            yield bytes(ready[:PIECE])
            del ready[:PIECE]
    yield bytes(ready) + packer.flush()


BODIES = {"plain": plain, "packed": packed}


class Memory:
    """The resident set of this process: its growth up to the peak since the last look."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5", "ascii")
        self._before = self._read("VmRSS")

    @property
    def growth(self) -> int:
        return self._read("VmHWM") - self._before

    @staticmethod
    def _read(name: str) -> int:
        return int(Path("/proc/self/status").read_text("ascii").split(f"{name}:")[1].split()[0]) * 1024


# --- Integrations: each takes the pieces of a body, and gives how many bytes came out and the last of them


Received = tuple[int, bytes]
HEADERS = {"plain": {}, "packed": {"content-encoding": "gzip"}}


class Tail:
    """How many bytes there were, and the last of them."""

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


def hook(family: Any) -> Callable[[Iterator[bytes], str], Tail]:
    from streamweld.integrations.httpx import repair_hook

    class Stream(family.SyncByteStream):  # type: ignore[misc]
        def __init__(self, pieces: Iterator[bytes]) -> None:
            self._pieces = pieces

        def __iter__(self) -> Iterator[bytes]:
            return self._pieces

    def run(pieces: Iterator[bytes], how: str) -> Tail:
        tail = Tail()
        headers = {"content-type": "text/event-stream", **HEADERS[how]}
        transport = family.MockTransport(lambda _: family.Response(200, headers=headers, stream=Stream(pieces)))
        hooks = {"response": [repair_hook(limits=LIMITS)]}
        with (
            family.Client(transport=transport, event_hooks=hooks) as client,
            client.stream("POST", "http://h/v1/chat/completions", json={"stream": True}) as response,
        ):
            for piece in response.iter_bytes():
                tail.add(piece)
        return tail

    return run


def async_hook(family: Any) -> Callable[[Iterator[bytes], str], Tail]:
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
            client.stream("POST", "http://h/v1/chat/completions", json={"stream": True}) as response,
        ):
            async for piece in response.aiter_bytes():
                tail.add(piece)
        return tail

    return lambda pieces, how: asyncio.run(run(pieces, how))


async def serve(pieces: Iterator[bytes], how: str, use: Callable[[str], Awaitable[None]]) -> None:
    """A server on this machine that answers with the body, while `use` is given its address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            rows = [f"{name}: {value}\r\n".encode() for name, value in HEADERS[how].items()]
            head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
            writer.write(head + b"".join(rows) + b"\r\n")
            for piece in pieces:
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                await writer.drain()
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        await use(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    finally:
        server.close()


async def read(url: str, tail: Tail, **session: Any) -> None:
    from aiohttp import ClientSession

    async with (
        ClientSession(**session) as client,
        client.post(f"{url}/v1/chat/completions", json={"stream": True, "model": "m", "messages": []}) as response,
    ):
        async for piece in response.content.iter_any():
            tail.add(piece)


def aiohttp(pieces: Iterator[bytes], how: str) -> Tail:
    from streamweld.integrations.aiohttp import repair_middleware

    tail = Tail()
    asyncio.run(serve(pieces, how, lambda url: read(url, tail, middlewares=[repair_middleware(limits=LIMITS)])))
    return tail


def proxy(pieces: Iterator[bytes], how: str) -> Tail:
    """Upstream, proxy and client in one process: what all three of them keep counts."""
    from streamweld.integrations.proxy import ProxyConfig, create_app

    from tests.upstream import running

    tail = Tail()

    async def use(url: str) -> None:
        with running(create_app(ProxyConfig(url))) as own:
            await asyncio.wait_for(read(own, tail), 120)

    asyncio.run(serve(pieces, how, use))
    return tail


def integration(name: str) -> Callable[[Iterator[bytes], str], Tail]:
    import httpx
    import httpx2

    found: dict[str, Callable[[Iterator[bytes], str], Tail]] = {
        "asgi": asgi,
        "httpx": hook(httpx),
        "httpx async": async_hook(httpx),
        "httpx2": hook(httpx2),
        "httpx2 async": async_hook(httpx2),
        "aiohttp": aiohttp,
        "proxy": proxy,
    }
    return found[name]


def main(name: str, *fillers: str) -> None:
    run = integration(name)
    for how, body in BODIES.items():
        run(body(b"\n", MEBI // 4, behind=True), how)
    for filler in fillers or FILLERS:
        for behind in (False, True):
            for how, body in BODIES.items():
                memory = Memory()
                tail = run(body(FILLERS[filler], FLOOD, behind=behind), how)
                row = {"filler": filler, "behind": behind, "how": how, "growth": memory.growth}
                print(json.dumps(row | {"out": tail.size, "last": tail.last.decode("latin-1")}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
