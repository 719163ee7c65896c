"""Replay recordings to `httpx` and `httpx2` clients without a server.

client = httpx.Client(transport=ReplayTransport(read_recording("stream.jsonl")))
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any

from streamweld.testing.gateway import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from typing import Self

    from streamweld.testing.recording import Recording
    from streamweld.testing.stream import Stream

__all__ = ["ReplayTransport"]


class ReplayTransport:
    """A transport that responds to every request with the same recording, for synchronous and asynchronous clients.

    Args:
        given: a recording, a stream, a reply, or a body.
        speed: the replay speed of a recording: 1 is as recorded, None replays without waiting.
    """

    def __init__(self, given: Reply | Stream | Recording | bytes, *, speed: float | None = None) -> None:
        self._reply = Reply.of(given, speed=speed)

    def handle_request(self, request: Any) -> Any:
        """Return the response to a request of a synchronous client."""
        module = _module_of(request)
        return self._response(module, _stream_class(module.SyncByteStream, __iter__=_pieces)(), module)

    async def handle_async_request(self, request: Any) -> Any:
        """Return the response to a request of an asynchronous client."""
        module = _module_of(request)
        return self._response(module, _stream_class(module.AsyncByteStream, __aiter__=_async_pieces)(), module)

    def close(self) -> None:
        """Do nothing. httpx calls this method, but a replay has no connection."""

    async def aclose(self) -> None:
        """Do nothing. httpx calls this method, but a replay has no connection."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _response(self, module: Any, stream: Any, errors: Any) -> Any:
        stream.reply, stream.errors = self._reply, errors
        headers = {"content-type": self._reply.content_type}
        return module.Response(self._reply.status, headers=headers, stream=stream)


def _module_of(request: Any) -> Any:
    """Return the module (`httpx` or `httpx2`) to which the request belongs."""
    return sys.modules[type(request).__module__.split(".")[0]]


def _stream_class(base: type[Any], **members: Any) -> Any:
    """Create a subclass of the client's own stream class, because clients check the type of the body."""
    return type("ReplayedBody", (base,), members)


def _pieces(body: Any) -> Iterator[bytes]:
    began = time.monotonic()
    for piece in body.reply.pieces:
        time.sleep(max(0.0, piece.at - (time.monotonic() - began)))
        yield piece.data
    _end(body)


async def _async_pieces(body: Any) -> AsyncIterator[bytes]:
    began = time.monotonic()
    for piece in body.reply.pieces:
        left = piece.at - (time.monotonic() - began)
        if left > 0:
            await asyncio.sleep(left)
        yield piece.data
    _end(body)


def _end(body: Any) -> None:
    if body.reply.end == "stall":
        raise body.errors.ReadTimeout("the recording stalls here")
    if body.reply.end != "complete":
        raise body.errors.RemoteProtocolError("the recorded connection failed here")
