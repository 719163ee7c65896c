"""Detect two connection failures that aiohttp does not report to the reader of a body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import ClientPayloadError

if TYPE_CHECKING:
    import asyncio

    from aiohttp import ClientResponse

__all__ = ["ConnectionWatch"]


class ConnectionWatch:
    """Watches the connection of a response until its body has ended.

    After malformed chunks, aiohttp closes the connection without notifying the reader, which would wait forever. This
    class makes the reader raise an exception. A body without a length ends when the connection is closed. aiohttp
    treats such a body as complete even if the connection was reset; in that case, `was_reset` returns True.
    """

    def __init__(self, response: ClientResponse) -> None:
        self._content = response.content
        self._is_framed = "content-length" in response.headers or "transfer-encoding" in response.headers
        connection = response.connection
        protocol = None if connection is None else connection.protocol
        self._lost = None if protocol is None else protocol.closed  # None if the body has already been received
        if self._lost is not None:
            self._lost.remove_done_callback(_look)  # an earlier response on this connection added this callback
            self._lost.add_done_callback(_look)
            self._lost.add_done_callback(self._leave)

    def was_reset(self) -> bool:
        """Stop watching after the end of the body, and return True if the body ended because the connection was
        reset."""
        if self._lost is None:
            return False
        self._lost.remove_done_callback(self._leave)
        return not self._is_framed and self._lost.done() and self._lost.exception() is not None

    def _leave(self, _: asyncio.Future[None]) -> None:
        if not self._content.is_eof() and self._content.exception() is None:
            self._content.set_exception(ClientPayloadError("the connection was closed in the middle of the body"))


def _look(lost: asyncio.Future[None]) -> None:
    """Retrieve the exception, because asyncio logs exceptions that are never retrieved."""
    if not lost.cancelled():
        lost.exception()
