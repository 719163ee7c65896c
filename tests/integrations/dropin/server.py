"""A scripted gateway on the loopback interface, in a thread: plain HTTP/1.1 on asyncio streams.

The first segment of a path selects the response (`a` for `/a/v1/chat/completions`). The gateway counts connections,
open connections, requests, and bodies that a client abandoned. This module does not depend on a client.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self


@dataclass
class Answer:
    """The response to a request: `pieces`, one HTTP chunk each, `pause` seconds apart, followed by the end.

    `end`: `clean`, `reset` (the connection breaks inside the body) or `hang` (no more data is sent).
    """

    pieces: list[bytes]
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    pause: float = 0.0
    end: str = "clean"


class Gateway:
    """A server for `with Gateway(answers) as gateway:`; `gateway.url("a")` is the base URL of the response `a`."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.answers = answers
        self.connections = self.open = self.requests = self.aborted = 0
        self.bodies: list[bytes] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self.port = 0

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}"

    def asked(self, requests: int, *, seconds: float = 5.0) -> bool:
        """Return True once that many requests have arrived, False after that time."""
        return _becomes(lambda: self.requests >= requests, seconds)

    def quiet(self, *, seconds: float = 5.0) -> bool:
        """Return True once all connections are closed, False after that time."""
        return _becomes(lambda: not self.open, seconds)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()

        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            self.connections += 1
            self.open += 1
            try:
                with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                    early: bytes | None = b""  # bytes of the next request that arrived during this response
                    while early is not None:
                        early = await self._one(early, reader, writer)
            finally:
                self.open -= 1
                tasks.discard(task)
                writer.close()

        server = await asyncio.start_server(accepted, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, early: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes | None:
        head = (early + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *rows = head.split("\r\n")
        headers = {row.partition(":")[0].lower(): row.partition(":")[2].strip() for row in rows if row}
        self.bodies.append(await reader.readexactly(int(headers.get("content-length", 0))))
        self.requests += 1
        answer = self.answers[line.split(" ")[1].split("/")[1]]
        reading = asyncio.ensure_future(reader.read(1))
        try:
            goes_on = await self._answer(answer, writer, reading)
        except ConnectionError:  # the client disconnected during a write
            self.aborted += 1
            raise
        finally:
            reading.cancel()
            came = (await asyncio.gather(reading, return_exceptions=True))[0]
        return (came if isinstance(came, bytes) else b"") if goes_on else None

    async def _answer(self, answer: Answer, writer: asyncio.StreamWriter, reading: asyncio.Future[bytes]) -> bool:
        writer.write(f"HTTP/1.1 {answer.status} OK\r\n".encode())
        for name, value in answer.headers.items():
            writer.write(f"{name}: {value}\r\n".encode())
        writer.write(b"transfer-encoding: chunked\r\n\r\n")
        for piece in answer.pieces:
            if answer.pause:
                await asyncio.wait([reading], timeout=answer.pause)
            if reading.done():
                self.aborted += 1
                return False
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        if answer.end == "hang":
            await asyncio.wait([reading])
            self.aborted += 1
            return False
        if answer.end == "reset":
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


def _becomes(true: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not true() and time.monotonic() < until:
        time.sleep(0.01)
    return true()
