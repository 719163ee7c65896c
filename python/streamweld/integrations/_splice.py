"""A response of httpx, or of httpx2, whose body is repaired while it is read.

The two are different classes with one interface, and each asserts its own: which one is at hand is seen by the
response, and the classes are made from that module. Nothing is imported. It knows how these libraries hold a body
(encoded, closed once, iterated twice), and nothing of what stands in it.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from streamweld._source import Source
from streamweld._step import run
from streamweld.errors import UsageError
from streamweld.integrations._body import EVENT_STREAM

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from typing import Self

    from streamweld.integrations._body import Body, Settings

__all__ = ["EXTENSION", "splice"]

_FAMILIES: Final = ("httpx2", "httpx")
EXTENSION: Final = "streamweld"
"""The key of `response.extensions` under which the `StreamConverter` of a repaired response can be found."""


def splice(response: Any, settings: Settings, *, asynchronous: bool) -> None:
    """Put the repairer between a response and its body, if it is one to repair, and there is none yet.

    Its `content-encoding` and `content-length` are taken out: what the client reads now is neither.

    Args:
        response: whose body nobody has read.
        settings: what is repaired, and how.
        asynchronous: whether the body is read with `async for`; some can be read both ways.

    Raises:
        UsageError: for what is no response of httpx or httpx2, or one of the other kind of client.
    """
    module = _module_of(response)
    request = response.request
    inner = response.stream
    if not isinstance(inner, module.AsyncByteStream if asynchronous else module.SyncByteStream):
        kinds = ("an AsyncClient", "repair_hook") if asynchronous else ("a Client", "async_repair_hook")
        raise UsageError("this hook is for {}: take {}".format(*kinds))
    if response.is_stream_consumed or response.is_closed:
        return  # somebody before us has read it whole
    if EXTENSION in response.extensions:
        return  # a transport or hook of ours, closer to the connection: what it writes is no gateway's
    headers = response.headers
    body = settings.body(
        request.method,
        request.url.path,
        response.status_code,
        headers.get("content-type", ""),
        lambda: _content(request, module),
    )
    if body is None:
        return
    # A second response around the body as it came decodes it by public API, with whatever decoders are installed.
    decoded = module.Response(response.status_code, headers=headers, stream=inner, request=request)
    response.stream = (
        _class(_AsyncRepaired, module.AsyncByteStream) if asynchronous else _class(_Repaired, module.SyncByteStream)
    )(body, decoded, inner)
    response.extensions[EXTENSION] = body.converter
    for name in ("content-encoding", "content-length"):
        headers.pop(name, None)
    headers["content-type"] = EVENT_STREAM


def _module_of(response: Any) -> Any:
    for name in _FAMILIES:
        module = sys.modules.get(name)
        if module is not None and isinstance(response, module.Response):
            return module
    raise UsageError(f"{type(response).__name__!r} is no response of {' or of '.join(_FAMILIES)}")


def _content(request: Any, module: Any) -> bytes | None:
    try:
        content: bytes = request.content
    except module.RequestNotRead:  # it was sent piece by piece and is gone
        return None
    return content


@cache
def _class(ours: type[Any], base: type[Any]) -> Any:
    return type(ours.__name__, (ours, base), {"__slots__": ()})


class _Held:
    """What both streams have: all else that is asked of them (`elapsed`) is asked of the body as it came."""

    def __init__(self, decoded: Any, inner: Any) -> None:
        self._decoded = decoded
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_inner":
            raise AttributeError(name)
        return getattr(self._inner, name)


class _Repaired(_Held):
    """Its own one iterator: openai iterates a second time behind `[DONE]`, and must go on where the first was."""

    def __init__(self, body: Body, decoded: Any, inner: Any) -> None:
        super().__init__(decoded, inner)
        self._pieces: Generator[bytes] = run(body, Source(_Decoded(decoded), close=True))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        return next(self._pieces)

    def close(self) -> None:
        self._pieces.close()
        self._decoded.close()  # nothing more, where the iterator has done it


class _AsyncRepaired(_Held):
    """The same for `async for`, and no generator: an event loop that ends closes all of those at once, and tells of
    each that another one is just closing."""

    def __init__(self, body: Body, decoded: Any, inner: Any) -> None:
        super().__init__(decoded, inner)
        self._body = body
        self._pieces: AsyncGenerator[bytes] = decoded.aiter_bytes()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        body = self._body
        try:
            while body.fault is None and not body.over:
                try:
                    given = body.step(await anext(self._pieces))
                except StopAsyncIteration:
                    given = body.end()
                    body.over = True
                if given:
                    return given
            if body.fault is not None:
                body.throw()
        except BaseException:
            # What is on its way says more than a connection that does not close.
            with suppress(Exception):
                await self.aclose()
            raise
        await self.aclose()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self._body.over, self._body.fault = True, None
        # The connection first, as the clients do it: then nothing has to wait inside of a generator that is closed.
        await self._decoded.aclose()
        with suppress(RuntimeError):  # it is being read, or closed: whoever does that finds out by the connection
            await self._pieces.aclose()


class _Decoded:
    """The pieces of a response, as a source that can be closed."""

    def __init__(self, response: Any) -> None:
        self._response = response

    def __iter__(self) -> Generator[bytes]:
        return self._response.iter_bytes()  # type: ignore[no-any-return]

    def close(self) -> None:
        self._response.close()
