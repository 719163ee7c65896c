"""Two failures of a connection of which aiohttp reports nothing to those who read a body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import ClientPayloadError

if TYPE_CHECKING:
    import asyncio

    from aiohttp import ClientResponse

__all__ = ["ConnectionWatch"]


class ConnectionWatch:
    """Watches the connection of a response until its body has ended.

    After malformed chunks aiohttp closes the connection, and a reader waits for ever: it is given an exception here. A
    body that ends with its connection looks whole to it when that is reset: `was_reset` is True then.
    """

    def __init__(self, response: ClientResponse) -> None:
        self._content = response.content
        self._is_framed = "content-length" in response.headers or "transfer-encoding" in response.headers
        connection = response.connection
        protocol = None if connection is None else connection.protocol
        self._lost = None if protocol is None else protocol.closed  # None: the body is here already
        if self._lost is not None:
            self._lost.remove_done_callback(_look)  # of an earlier response on this connection
            self._lost.add_done_callback(_look)
            self._lost.add_done_callback(self._leave)

    def was_reset(self) -> bool:
        """The body has ended: whether it did because its connection was reset. Nothing is watched any more."""
        if self._lost is None:
            return False
        self._lost.remove_done_callback(self._leave)
        return not self._is_framed and self._lost.done() and self._lost.exception() is not None

    def _leave(self, _: asyncio.Future[None]) -> None:
        if not self._content.is_eof() and self._content.exception() is None:
            self._content.set_exception(ClientPayloadError("the connection was closed in the middle of the body"))


def _look(lost: asyncio.Future[None]) -> None:
    """asyncio logs exceptions that nobody has looked at."""
    if not lost.cancelled():
        lost.exception()
