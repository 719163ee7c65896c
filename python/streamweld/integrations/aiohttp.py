"""Repairs what an `aiohttp` client reads: as a client middleware, or response by response. Extra: `[aiohttp]`.

    async with aiohttp.ClientSession(middlewares=[repair_middleware()]) as session:
        async with session.post(url, json=request) as response:
            async for line in response.content: ...

It knows how aiohttp holds a body, and nothing of what stands in it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from streamweld.errors import MissingExtra
from streamweld.integrations._body import RepairOptions, Settings

try:
    from aiohttp import BytesPayload, StreamReader
    from aiohttp.base_protocol import BaseProtocol
except ImportError:
    raise MissingExtra("aiohttp", "aiohttp") from None

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from aiohttp import ClientHandlerType, ClientMiddlewareType, ClientRequest, ClientResponse

    from streamweld.integrations._body import Body

__all__ = ["RepairOptions", "repair_middleware", "repair_response"]

_LINE = 2**20  # what aiohttp takes of one line before it raises; a whole answer can stand in one


def repair_middleware(**options: Unpack[RepairOptions]) -> ClientMiddlewareType:
    """A middleware for `ClientSession(middlewares=[…])`, or for one request.

    Put it last, next to the connection, if there are others. Bodies that the session leaves encoded
    (`auto_decompress=False`) are not touched.

    Args:
        **options: `RepairOptions`.

    Raises:
        UsageError: for an option that cannot be.
    """
    settings = Settings(**options)

    async def repair(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        response = await handler(request)
        if request.session.auto_decompress or "content-encoding" not in response.headers:
            _splice(response, settings, lambda: _content(request))
        return response

    return repair


def repair_response(response: ClientResponse, **options: Unpack[RepairOptions]) -> ClientResponse:
    """One response that has not been read yet, with the repairer before its body.

    What its request asked for is not seen here: only what is called an event stream is repaired.

    Args:
        response: of a session that decodes bodies (`auto_decompress`, as is the default).
        **options: `RepairOptions`.

    Returns:
        The same response.

    Raises:
        UsageError: for an option that cannot be.
    """
    _splice(response, Settings(**options), lambda: None)
    return response


def _splice(response: ClientResponse, settings: Settings, request: Callable[[], bytes | None]) -> None:
    if isinstance(response.content, _Repaired):
        return  # by a middleware of ours, closer to the connection: what it writes is no gateway's
    kind = response.headers.get("content-type", "")
    body = settings.body(response.method, response.url.path, response.status, kind, request)
    if body is not None:
        response.content = _Repaired(response.content, body)


def _content(request: ClientRequest) -> bytes | None:
    payload: Any = request.body
    return payload.decode().encode() if isinstance(payload, BytesPayload) else None


class _Repaired(StreamReader):
    """A reader that is fed when somebody waits for it. No task of ours runs: a wait that is given up loses nothing."""

    def __init__(self, inner: StreamReader, body: Body) -> None:
        loop = asyncio.get_running_loop()
        # The flow of the connection is the inner reader's to control; this protocol is connected to nothing.
        super().__init__(BaseProtocol(loop), _LINE, loop=loop)
        self._inner = inner
        self._body = body
        self._over = False

    async def _wait(self, func_name: str) -> None:  # noqa: ARG002 (it is a name of aiohttp's)
        if self._body.fault is not None:
            self.set_exception(self._body.fault)
            self._body.throw()
        if self._over:
            self.feed_eof()
            return
        try:
            piece = await self._inner.readany()
            given = self._body.step(piece) if piece else self._body.end()
        except Exception as error:  # the connection's, or what the callback raised: whoever reads again gets it again
            self.set_exception(error)
            raise
        if given:
            self.feed_data(given)
        self._over = self._body.over or not piece

    async def wait_eof(self) -> None:
        """Waits until everything is here."""
        while not self.is_eof():
            await self._wait("wait_eof")
