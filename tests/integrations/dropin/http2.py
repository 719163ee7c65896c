"""The same responses over HTTP/2 without TLS (prior knowledge), for one or more connections. This module does not
depend on a client.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived, StreamEnded

if TYPE_CHECKING:
    from tests.integrations.dropin.server import Answer


class Gateway2:
    """A server for `async with Gateway2(answers) as gateway:`, in the event loop of the client."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.answers = answers
        self.connections = 0
        self.requests = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/{name}"

    async def __aenter__(self) -> Gateway2:  # noqa: PYI034 (the class has no subclasses)
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await asyncio.gather(*self._tasks)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        wire = H2Connection(H2Configuration(client_side=False))
        wire.initiate_connection()
        writer.write(wire.data_to_send())
        names: dict[int, str] = {}
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                for event in wire.receive_data(data):
                    if isinstance(event, RequestReceived):
                        path = dict(event.headers)[b":path"].decode()
                        names[event.stream_id] = path.split("/")[1]
                    elif isinstance(event, StreamEnded):
                        self.requests += 1
                        self._answer(wire, event.stream_id, self.answers[names[event.stream_id]])
                writer.write(wire.data_to_send())
                await writer.drain()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    def _answer(self, wire: H2Connection, stream: int, answer: Answer) -> None:
        wire.send_headers(stream, [(":status", str(answer.status)), *answer.headers.items()])
        for piece in answer.pieces:
            wire.send_data(stream, piece)
        wire.end_stream(stream)
