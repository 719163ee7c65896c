"""Passes the bytes of a case to clients that need HTTP: an httpx transport without a network."""

from __future__ import annotations

import logging
from importlib.metadata import version
from typing import Any

import httpx

try:
    import httpx2
except ImportError:  # older clients use httpx
    httpx2 = httpx  # type: ignore[misc]

logging.disable()  # logging about a broken stream is not part of the result

ASKED: Any = [{"role": "user", "content": "hi"}]
_current: list[bytes] = []


def reader(distribution: str, name: str | None = None) -> dict[str, str]:
    """Return the name and version that an adapter reports."""
    return {"name": name or distribution, "version": version(distribution)}


def _clients(http: Any) -> tuple[Any, Any]:
    """Return a synchronous and an asynchronous client of this library.

    Their responses contain the bytes of the case.
    """

    class Body(http.SyncByteStream, http.AsyncByteStream):  # type: ignore[misc]
        def __init__(self) -> None:
            self.reads = list(_current)

        def __iter__(self) -> Any:
            return iter(self.reads)

        async def __aiter__(self) -> Any:
            for piece in self.reads:
                yield piece

    def answer(_: Any) -> Any:
        return http.Response(200, headers={"content-type": "text/event-stream"}, stream=Body())

    async def async_answer(request: Any) -> Any:
        return answer(request)

    transports = http.MockTransport(answer), http.MockTransport(async_answer)
    return http.Client(transport=transports[0]), http.AsyncClient(transport=transports[1])


CLIENT, _ = _clients(httpx)
# The newest major versions of the clients of OpenAI and Anthropic require httpx2.
SDK_CLIENT, SDK_ASYNC_CLIENT = _clients(httpx2)


def serve(reads: list[bytes]) -> None:
    """Set the body of the next responses."""
    _current[:] = reads


def failed(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:100]}"
