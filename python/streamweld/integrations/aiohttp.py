"""Repair the streams that an `aiohttp` client reads, with a client middleware or per response (extra `aiohttp`).

    async with aiohttp.ClientSession(middlewares=[repair_middleware()]) as session:
        async with session.post(url, json=request) as response:
            async for line in response.content: ...

This module handles how aiohttp stores a body. This module does not examine the contents of a body.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from streamweld.errors import MissingExtra
from streamweld.integrations._body import RepairOptions, Settings
from streamweld.integrations._inflate import BrokenBodyError, check_ratio, slices
from streamweld.integrations._reporting import StreamContext

try:
    from aiohttp import BytesPayload, StreamReader
    from aiohttp.base_protocol import BaseProtocol

    from streamweld.integrations._connection import ConnectionWatch
except ImportError:
    raise MissingExtra("aiohttp", "aiohttp") from None

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Unpack

    from aiohttp import ClientHandlerType, ClientMiddlewareType, ClientRequest, ClientResponse

    from streamweld.integrations._body import Body

__all__ = ["RepairOptions", "StreamContext", "repair_middleware", "repair_response"]

_LINE = 2**20  # maximum length of a line before aiohttp raises; a complete response can be on one line


def repair_middleware(**options: Unpack[RepairOptions]) -> ClientMiddlewareType:
    """Return a middleware for `ClientSession(middlewares=[…])`, or for a single request.

    If there are other middlewares, put this one last, next to the connection. Bodies that the session leaves compressed
    (`auto_decompress=False`) are not modified.

    Args:
        **options: `RepairOptions`.

    Raises:
        UsageError: if an option is invalid.
    """
    settings = Settings(**options)

    async def repair(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        response = await handler(request)
        if request.session.auto_decompress or "content-encoding" not in response.headers:
            _splice(response, settings, lambda: _content(request))
        return response

    return repair


def repair_response(response: ClientResponse, **options: Unpack[RepairOptions]) -> ClientResponse:
    """Repair one response that has not been read yet.

    The request is not available here, so only responses with the content type of an event stream are repaired.

    Args:
        response: a response from a session that decompresses bodies (`auto_decompress`, which is the default).
        **options: `RepairOptions`.

    Returns:
        The same response.

    Raises:
        UsageError: if an option is invalid.
    """
    _splice(response, Settings(**options), lambda: None)
    return response


def _splice(response: ClientResponse, settings: Settings, request: Callable[[], bytes | None]) -> None:
    if isinstance(response.content, _Repaired):
        return  # already repaired by a streamweld middleware that is closer to the connection
    body = settings.body(response.method, str(response.url), response.status, response.headers, request)
    if body is not None:
        response.content = _Repaired(response.content, body, ConnectionWatch(response))


def _content(request: ClientRequest) -> bytes | None:
    payload: Any = request.body
    return payload.decode().encode() if isinstance(payload, BytesPayload) else None


class _Repaired(StreamReader):
    """A stream reader that reads from the connection only while a caller waits for data.

    The reader does not start a task, so no data is lost if a wait is canceled.
    """

    def __init__(self, inner: StreamReader, body: Body, watch: ConnectionWatch) -> None:
        loop = asyncio.get_running_loop()
        # The original reader handles flow control for the connection, so this reader gets a protocol without a
        # connection.
        super().__init__(BaseProtocol(loop), _LINE, loop=loop)
        self._inner = inner
        self._watch = watch
        self._body = body
        self._pieces: Iterator[bytes] = iter(())
        self._over = False

    async def _wait(self, func_name: str) -> None:  # noqa: ARG002 (named by aiohttp)
        if self._body.fault is not None:
            self.set_exception(self._body.fault)
            self._body.throw()
        if self._over:
            self.feed_eof()
            return
        given = await self._step()
        if given:
            self.feed_data(given)

    async def _step(self) -> bytes:
        body = self._body
        try:
            piece = await self._next()
        except Exception as error:  # noqa: BLE001 (stored, and raised by the next wait)
            given = body.failed(error)
        else:
            given = body.end() if piece is None else body.step(piece)
            self._over = piece is None
        self._over = self._over or body.over
        return given

    async def _next(self) -> bytes | None:
        """Return the next slice of the decompressed body, or None at the end."""
        for piece in self._pieces:
            return piece
        received = await self._inner.readany()
        if not received:
            if self._watch.was_reset():
                raise BrokenBodyError("the connection was reset")
            return None
        packed: int | None = getattr(self._inner, "total_compressed_bytes", None)
        if packed is not None:
            check_ratio(packed, self._inner.total_bytes, self._body.max_ratio)
        self._pieces = slices(received)
        return next(self._pieces)

    async def wait_eof(self) -> None:
        """Wait until the whole body has been received."""
        while not self.is_eof():
            await self._wait("wait_eof")
