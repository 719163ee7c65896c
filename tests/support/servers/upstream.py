"""Real servers on the loopback interface for the integration suites: an upstream that follows a script, and uvicorn.

Each runs in its own thread with its own event loop, so that synchronous and asynchronous clients can both use it.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn

__all__ = ["Asked", "Talk", "Upstream", "running", "sse", "until"]


@dataclass
class Asked:
    """One request that the upstream received."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    gone_at: float | None = None
    """Time at which the client disconnected (`time.monotonic`), if it disconnected before the response was complete."""

    def header(self, name: str) -> str | None:
        return next((value for given, value in self.headers if given == name), None)


class Talk:
    """A client's connection, on which a test script sends its response."""

    def __init__(self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked = asked
        self._reader = reader
        self._writer = writer
        self.keep = True
        self.peer: tuple[str, int] = writer.get_extra_info("peername")

    async def head(self, status: int = 200, kind: str | None = "text/event-stream", **headers: str) -> None:
        """Send the head of a chunked response."""
        lines = [f"HTTP/1.1 {status} X", "transfer-encoding: chunked"]
        lines += [] if kind is None else [f"content-type: {kind}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.raw("\r\n".join([*lines, "", ""]).encode())

    async def raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def send(self, *pieces: bytes) -> None:
        """Send each piece as its own chunk."""
        for piece in pieces:
            await self.raw(b"%x\r\n%s\r\n" % (len(piece), piece))

    async def end(self) -> None:
        await self.raw(b"0\r\n\r\n")

    async def whole(self, body: bytes, status: int = 200, kind: str = "application/json", **headers: str) -> None:
        await self.head(status, kind, **headers)
        await self.send(body)
        await self.end()

    def cut(self) -> None:
        """Close the connection before the end of the response."""
        self.keep = False
        self._writer.transport.abort()

    def half_close(self) -> None:
        """Stop sending, and keep the connection open for reading."""
        self._writer.write_eof()

    def reset(self) -> None:
        """Reset the connection (RST); data in transit is lost."""
        self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.cut()

    async def wait_for_leave(self, seconds: float = 20.0) -> None:
        """Wait until the client disconnects, without sending anything."""
        try:
            await asyncio.wait_for(self._reader.read(1), seconds)
        except (TimeoutError, ConnectionError):
            pass
        if self.asked.gone_at is None:
            self.asked.gone_at = time.monotonic()
        self.keep = False


Script = Callable[[Talk], Awaitable[None]]


@dataclass
class Upstream:
    """A server that responds to each request with its script."""

    script: Script
    seen: list[Asked] = field(default_factory=list)
    url: str = ""
    open: int = 0

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        asked = None
        try:
            while (asked := await _request(reader)) is not None:
                self.seen.append(asked)
                talk = Talk(asked, reader, writer)
                await self.script(talk)
                if not talk.keep:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            if asked is not None:
                asked.gone_at = time.monotonic()
        finally:
            self.open -= 1
            writer.close()

    @contextmanager
    def serving(self) -> Iterator[Upstream]:
        loop = asyncio.new_event_loop()
        listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        stop = asyncio.Event()

        async def serve() -> None:
            server = await asyncio.start_server(self._connection, sock=listening)
            await stop.wait()
            server.close()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0)

        thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join(10)
            loop.close()


async def _request(reader: asyncio.StreamReader) -> Asked | None:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = await reader.readline()
        if not line:
            return None
        head += line
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    method, target, _ = first.split(" ")
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    asked = Asked(method, target, headers, b"")
    length = int(asked.header("content-length") or 0)
    asked.body = await reader.readexactly(length)
    return asked


@contextmanager
def running(app: Any, *, grace: int = 5, **options: Any) -> Iterator[str]:
    """Run `app` under uvicorn and yield its address. Requests that are open at the end have `grace` seconds to end."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=grace, **options
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(15)
        listening.close()
        assert not thread.is_alive(), "the server does not stop"


def until(true: Callable[[], Any], seconds: float = 10.0) -> None:
    """Wait for a condition that another thread makes true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


def sse(*pieces: bytes, status: int = 200, kind: str = "text/event-stream", **headers: str) -> Script:
    """Return a script that streams these pieces and then ends the response properly."""

    async def script(talk: Talk) -> None:
        await talk.head(status, kind, **headers)
        await talk.send(*pieces)
        await talk.end()

    return script
