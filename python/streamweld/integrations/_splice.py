"""Repair the body of an httpx or httpx2 response while the client reads it.

The two libraries have the same interface but different classes, and each accepts only its own classes. Therefore, the
stream classes are derived from the base classes of the library that created the response. This module imports neither
library. This module handles how the libraries read and store a body: decompression, closing, repeated iteration. This
module does not examine the contents of a body.

The body is decompressed here, in slices, because httpx would return all output for a chunk at once.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from streamweld._chunk_loop import run
from streamweld._source import Source
from streamweld.errors import UsageError
from streamweld.integrations._body import EVENT_STREAM
from streamweld.integrations._inflate import Inflater, coding_of, is_installed, slices
from streamweld.integrations._reporting import LOGGER

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterator
    from typing import Self

    from streamweld.integrations._body import Body, Settings

__all__ = ["EXTENSION", "splice"]

_FAMILIES: Final = ("httpx2", "httpx")
EXTENSION: Final = "streamweld"
"""The key of `response.extensions` that holds the `StreamConverter` of a repaired response."""


def splice(response: Any, settings: Settings, *, asynchronous: bool) -> None:
    """Insert the repair step between a response and its body, unless the body needs no repair step or already has one.

    The headers `content-encoding` and `content-length` are removed, because they do not apply to the repaired body. A
    body whose encoding cannot be decompressed with limited memory is left unchanged. A body that is already in memory
    (a response of `MockTransport(content=…)`, or one that another hook has read) is repaired at once.

    Args:
        response: the response.
        settings: the validated options.
        asynchronous: whether the body is read with `async for`. Some bodies support both kinds of iteration.

    Raises:
        UsageError: if `response` is not a response of httpx or httpx2, or if it belongs to the other kind of client
            (synchronous or asynchronous).
    """
    module = _module_of(response)
    request = response.request
    inner = response.stream
    if not isinstance(inner, module.AsyncByteStream if asynchronous else module.SyncByteStream):
        kinds = ("an AsyncClient", "repair_hook") if asynchronous else ("a Client", "async_repair_hook")
        raise UsageError("this hook is for {}: use {}".format(*kinds))
    if EXTENSION in response.extensions:
        return  # already repaired by a streamweld transport or hook that is closer to the connection
    headers = response.headers
    encoding = coding_of(headers.get("content-encoding", ""))
    was_read = response.is_stream_consumed or response.is_closed
    if not (was_read or is_installed(encoding)):
        return  # no installed package can decompress the body with limited memory
    body = settings.body(
        request.method,
        str(request.url),
        response.status_code,
        headers,
        lambda: _content(request, module),
    )
    if body is None:
        return
    if was_read:
        _repair_read(response, body, module)
        return
    # Create a second response around the original stream, because the public API of a response gives access to the raw
    # bytes.
    received = module.Response(response.status_code, headers=headers, stream=inner, request=request)
    response.stream = (
        _class(_AsyncRepaired, module.AsyncByteStream) if asynchronous else _class(_Repaired, module.SyncByteStream)
    )(body, received, inner, Inflater(encoding, body.max_ratio))
    _mark(response, body)


def _mark(response: Any, body: Body) -> None:
    response.extensions[EXTENSION] = body.converter
    for name in ("content-encoding", "content-length"):
        response.headers.pop(name, None)
    response.headers["content-type"] = EVENT_STREAM


def _repair_read(response: Any, body: Body, module: Any) -> None:
    """Repair a body that is in memory.

    Both libraries store the body in `_content`, and there is no public way to replace it.
    """
    try:
        content: bytes = response.content
    except module.ResponseNotRead:
        LOGGER.warning("a stream is not repaired: another hook has read it, and its bytes are gone; put repair first")
        return
    out = bytearray()
    for piece in slices(content):
        out += body.step(piece)
        if body.fault is not None or body.over:
            break
    else:
        out += body.end()
    body.finish()
    if body.fault is not None:
        body.throw()
    response._content = bytes(out)  # noqa: SLF001
    _mark(response, body)


def _module_of(response: Any) -> Any:
    for name in _FAMILIES:
        module = sys.modules.get(name)
        if module is not None and isinstance(response, module.Response):
            return module
    raise UsageError(f"{type(response).__name__!r} is not an {' or '.join(_FAMILIES)} response")


def _content(request: Any, module: Any) -> bytes | None:
    try:
        content: bytes = request.content
    except module.RequestNotRead:  # the request body was streamed and is no longer available
        return None
    return content


@cache
def _class(ours: type[Any], base: type[Any]) -> Any:
    return type(ours.__name__, (ours, base), {"__slots__": ()})


class _Held:
    """Base class of both stream classes. Other attributes, such as `elapsed`, are read from the original stream."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_inner":
            raise AttributeError(name)
        return getattr(self._inner, name)


class _Repaired(_Held):
    """A repaired stream, which is its own iterator, so that all iterations share one position.

    The openai client iterates a second time after `[DONE]`, and that iteration must continue where the first one
    stopped.
    """

    def __init__(self, body: Body, received: Any, inner: Any, inflater: Inflater) -> None:
        super().__init__(inner)
        self._body = body
        self._received = received
        self._pieces: Generator[bytes] = run(body, Source(_Inflated(received, inflater), close=True))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        return next(self._pieces)

    def close(self) -> None:
        self._pieces.close()
        self._body.finish()
        self._received.close()  # no effect if the iterator has already closed the response


class _AsyncRepaired(_Held):
    """Like `_Repaired`, for `async for`.

    This class is not a generator, because an event loop that ends closes all generators at once, and reports an error
    for each one that another generator is already closing.
    """

    def __init__(self, body: Body, received: Any, inner: Any, inflater: Inflater) -> None:
        super().__init__(inner)
        self._body = body
        self._received = received
        self._raw: AsyncGenerator[bytes] = received.aiter_raw()
        self._inflater = inflater
        self._plain: Iterator[bytes] = iter(())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        body = self._body
        try:
            while body.fault is None and not body.over:
                given = await self._step()
                if given:
                    return given
            if body.fault is not None:
                body.throw()
        except BaseException:
            # Do not let an error from closing the connection replace the original exception.
            with suppress(Exception):
                await self.aclose()
            raise
        await self.aclose()
        raise StopAsyncIteration

    async def _step(self) -> bytes:
        body = self._body
        try:
            piece = await self._next()
        except Exception as error:  # noqa: BLE001 (stored, and raised by the caller)
            return body.failed(error)
        if piece is not None:
            return body.step(piece)
        given = body.end()
        body.over = True
        return given

    async def _next(self) -> bytes | None:
        """Return the next decompressed chunk, or None at the end of a complete body."""
        while True:
            for piece in self._plain:
                return piece
            try:
                raw = await anext(self._raw)
            except StopAsyncIteration:
                self._inflater.end()
                return None
            self._plain = self._inflater.feed(raw)

    async def aclose(self) -> None:
        self._body.over, self._body.fault = True, None
        self._body.finish()
        # Close the connection first, as the clients do, so that closing the generator does not wait for data.
        await self._received.aclose()
        with suppress(RuntimeError):  # another task is reading; it will notice that the connection is closed
            await self._raw.aclose()


class _Inflated:
    """Iterates over the decompressed chunks of a response, and can be closed."""

    def __init__(self, response: Any, inflater: Inflater) -> None:
        self._response = response
        self._inflater = inflater

    def __iter__(self) -> Generator[bytes]:
        for piece in self._response.iter_raw():
            yield from self._inflater.feed(piece)
        self._inflater.end()

    def close(self) -> None:
        self._response.close()
