"""Bodies in br and zstd that inflate to a multiple of their size: the ratio is capped, and memory stays within the
limits.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import brotli
import httpx
import httpx2
import pytest
import streamweld as sw
from streamweld.integrations import _inflate
from streamweld.integrations.asgi import RepairMiddleware
from streamweld.integrations.httpx import async_repair_hook, repair_hook

from tests.support.attacks import MIB, peak_of_process, reset_peak
from tests.support.servers.wire import end, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

LIMIT = 2 * MIB
LIMITS = sw.Limits(max_event_bytes=LIMIT)
PIECE = 65_536
# The body is an event followed by comments. It is larger than the size up to which every ratio is allowed.
SMALL = brotli.compress(text("Hello") * 10_000 + end("stop"), quality=4)
BOMB = brotli.compress(text("Hello") + b": filler\n\n" * (48 * MIB // 10), quality=4)
HEADERS = {"content-type": "text/event-stream", "content-encoding": "br"}
PATH = "/v1/chat/completions"


class Pieces(httpx.SyncByteStream, httpx.AsyncByteStream, httpx2.SyncByteStream, httpx2.AsyncByteStream):
    def __init__(self, body: bytes) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        yield from (self._body[at : at + PIECE] for at in range(0, len(self._body), PIECE))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece


def by_hook(family: Any, body: bytes) -> tuple[int, bytes]:
    size, last = 0, b""
    transport = family.MockTransport(lambda _: family.Response(200, headers=HEADERS, stream=Pieces(body)))
    hooks = {"response": [repair_hook(limits=LIMITS)]}
    with (
        family.Client(transport=transport, event_hooks=hooks) as client,
        client.stream("POST", f"http://h{PATH}", json={"stream": True}) as answer,
    ):
        for piece in answer.iter_bytes():
            size, last = size + len(piece), (last + piece)[-400:]
    return size, last


def by_async_hook(family: Any, body: bytes) -> tuple[int, bytes]:
    async def run() -> tuple[int, bytes]:
        size, last = 0, b""
        transport = family.MockTransport(lambda _: family.Response(200, headers=HEADERS, stream=Pieces(body)))
        hooks = {"response": [async_repair_hook(limits=LIMITS)]}
        async with (
            family.AsyncClient(transport=transport, event_hooks=hooks) as client,
            client.stream("POST", f"http://h{PATH}", json={"stream": True}) as answer,
        ):
            async for piece in answer.aiter_bytes():
                size, last = size + len(piece), (last + piece)[-400:]
        return size, last

    return asyncio.run(run())


READERS: dict[str, Callable[[bytes], tuple[int, bytes]]] = {
    "httpx": lambda body: by_hook(httpx, body),
    "httpx2": lambda body: by_hook(httpx2, body),
    "httpx async": lambda body: by_async_hook(httpx, body),
    "httpx2 async": lambda body: by_async_hook(httpx2, body),
}


def grown(name: str) -> tuple[int, int, bytes]:
    """Return the memory growth of the process, and the size and the end of the output."""
    run = READERS[name]
    run(SMALL)  # imports and caches are not part of the growth
    gc.collect()
    reset_peak()
    before = peak_of_process()
    size, last = run(BOMB)
    return peak_of_process() - before, size, last


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process can be reset on Linux alone")
@pytest.mark.parametrize("name", READERS)
def test_a_client_ends_a_brotli_bomb_with_a_limit(name: str) -> None:
    """Each reader runs in a process of its own: in the process of the tests, the growth depends on the free memory that
    earlier tests left.
    """
    assert len(BOMB) * 200 < 48 * MIB
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        growth, size, last = process.submit(grown, name).result()
    assert b"exceeds a limit" in last
    assert size < 17 * MIB  # of 48 MiB, because `FREE_BYTES` is 16 MiB
    assert growth <= LIMIT + MIB + PIECE


def test_the_middleware_passes_brotli_as_it_is() -> None:
    """The middleware supports only gzip and deflate. A body in another encoding is not inflated, so it cannot be a bomb
    here.
    """
    sent: list[bytes] = []

    async def app(_: Any, __: Any, send: Any) -> None:
        rows = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
        await send({"type": "http.response.start", "status": 200, "headers": rows})
        for piece in Pieces(BOMB):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))

    asyncio.run(RepairMiddleware(app, limits=LIMITS)({"type": "http", "method": "POST"}, None, send))  # type: ignore[arg-type]
    assert b"".join(sent) == BOMB


class Zstd:
    """The interface of `compression.zstd`: a decoder that returns at most `max_length` bytes at a time."""

    class ZstdError(Exception):
        pass

    class DecompressionParameter:
        window_log_max = 100

    class ZstdDecompressor:
        eof = False
        needs_input = True
        unused_data = b""

        def __init__(self, options: dict[int, int]) -> None:
            assert options[100] <= 23, "the window of a frame must be bounded"
            self.left = 64 * MIB

        def decompress(self, _: bytes, max_length: int = -1) -> bytes:
            assert 0 < max_length <= MIB, "the output must be bounded"
            size = min(max_length, self.left)
            self.left -= size
            self.needs_input = not self.left
            return bytes(size)


def test_a_zstd_bomb_is_capped_by_the_same_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_inflate, "_zstd", lambda: Zstd)
    sizes: list[int] = []
    with pytest.raises(sw.LimitExceeded) as caught:
        sizes.extend(map(len, _inflate.Inflater("zstd", 200).feed(bytes(1000))))
    assert max(sizes) <= _inflate.SLICE
    assert caught.value.limit_name == "max_inflate_ratio"
    assert _inflate.FREE_BYTES - _inflate.SLICE <= sum(sizes) <= _inflate.FREE_BYTES
