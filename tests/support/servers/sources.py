"""Sources that count how they are used, and one way to run a sync or async iterator over them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import streamweld as sw
from streamweld.errors import StreamError
from streamweld.stream import StreamParser

from tests.support.servers.wire import call, end, event, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

BODY = text("Hel") + text("lo") + call(0, "call_1", "f", '{"a":1}') + end()
CUT = text("Hel") + text("lo")
BROKEN = CUT + event("{nonsense")
COMMENT = b": keep-alive\n\n"
MODES = ["sync", "async"]


class Closing:
    """A source that counts how often it was closed."""

    closed = 0

    def __init__(self, chunks: Iterable[Any], error: Any = None, at_close: Exception | None = None):
        self.chunks = list(chunks)
        self.error = error
        self.at_close = at_close
        self.given = 0

    def _close(self) -> None:
        self.closed += 1
        if self.at_close is not None:
            raise self.at_close


class SyncSource(Closing):
    def __iter__(self) -> Iterator[Any]:
        for chunk in self.chunks:
            self.given += 1
            yield chunk
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        self._close()


class AsyncSource(Closing):
    """A source that waits before each chunk and while it is closed."""

    async def __aiter__(self) -> AsyncIterator[Any]:
        for chunk in self.chunks:
            await asyncio.sleep(0)
            self.given += 1
            yield chunk
        if self.error is not None:
            raise self.error

    async def aclose(self) -> None:
        self._close()
        await asyncio.sleep(0)


class Slow:
    """A source with pauses: numbers are seconds, bytes are chunks."""

    def __init__(self, *script: bytes | float) -> None:
        self.script = script
        self.closed = 0
        self.finished = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            for step in self.script:
                if isinstance(step, bytes):
                    yield step
                else:
                    await asyncio.sleep(step)
        finally:
            self.finished = True

    async def aclose(self) -> None:
        self.closed += 1


def pieces(body: bytes, size: int = 7) -> list[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)]


def source(mode: str, chunks: Iterable[Any], **more: Any) -> Any:
    return SyncSource(chunks, **more) if mode == "sync" else AsyncSource(chunks, **more)


def run(mode: str, chunks: Any, *, batches: bool = False, stop: int | None = None, **options: Any) -> list[Any]:
    """Return all results, followed by the exception if there was one. `stop`: leave the loop at that item."""
    out: list[Any] = []
    if mode == "sync":
        make = sw.iter_batches if batches else sw.iter_events
        try:
            for item in make(chunks, **options):
                out.append(item)
                if len(out) == stop:
                    break
        except Exception as error:  # noqa: BLE001
            out.append(error)
        return out

    async def main() -> None:
        amake = sw.aiter_batches if batches else sw.aiter_events
        try:
            async with amake(chunks, **options) as items:
                async for item in items:
                    out.append(item)
                    if len(out) == stop:
                        break
        except Exception as error:  # noqa: BLE001
            out.append(error)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    return out


def expected(body: bytes) -> list[Any]:
    parser = StreamParser()
    out: list[Any] = []
    try:
        out += parser.feed(body)
        out += parser.close()
    except StreamError as error:
        out += error.events
    return out
