"""Sources of frames, sync and async, are closed exactly once, however the iteration ends."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import pytest
from streamweld import sse
from streamweld.errors import LimitExceeded, UsageError
from streamweld.options import Limits

from tests.support.backends import using

if TYPE_CHECKING:
    from streamweld.sse import AsyncFrameIterator, FrameIterator


def iter_frames(backend: str, chunks: Any, **options: Any) -> FrameIterator:
    with using(backend):
        return sse.iter_frames(chunks, **options)


def aiter_frames(backend: str, chunks: Any, **options: Any) -> AsyncFrameIterator:
    with using(backend):
        return sse.aiter_frames(chunks, **options)


class Pieces:
    """A source that counts how often it was closed, and may fail."""

    def __init__(self, chunks: list[bytes], error: Exception | None = None) -> None:
        self.chunks = list(chunks)
        self.error = error
        self.closed = 0

    def __iter__(self) -> Pieces:
        return self

    def __next__(self) -> bytes:
        if self.chunks:
            return self.chunks.pop(0)
        if self.error is not None:
            raise self.error
        raise StopIteration

    def close(self) -> None:
        self.closed += 1


class AsyncPieces:
    """The same source, asynchronous; every operation waits one turn of the event loop."""

    def __init__(self, chunks: list[bytes], error: Exception | None = None) -> None:
        self._pieces = Pieces(chunks, error)
        self.closed = 0

    def __aiter__(self) -> AsyncPieces:
        return self

    async def __anext__(self) -> bytes:
        await asyncio.sleep(0)
        try:
            return next(self._pieces)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self.closed += 1
        await asyncio.sleep(0)


THREE = [b"id: 5\nretry: 9\ndata: 1\n\ndata: 2\n\nda", b"ta: 3\n\n", b"data: cut"]
LONG = [b"data: 1\n\n", b"data: " + b"x" * 99]
SMALL = Limits(max_event_bytes=50)


def test_iter_frames_closes_its_source_once(backend: str) -> None:
    source = Pieces(THREE)
    frames = iter_frames(backend, source)
    assert [frame.data for frame in frames] == ["1", "2", "3"]
    assert source.closed == 1
    assert (frames.last_event_id, frames.reconnection_time) == ("5", 9)
    frames.close()
    assert source.closed == 1

    source = Pieces(THREE[:1], error=OSError("reset"))
    with pytest.raises(OSError, match="reset"):
        list(iter_frames(backend, source))
    assert source.closed == 1

    source = Pieces(LONG)
    with pytest.raises(LimitExceeded):
        list(iter_frames(backend, source, limits=SMALL))
    assert source.closed == 1


def test_iter_frames_closes_its_source_when_it_is_left(backend: str) -> None:
    source = Pieces(THREE)
    for frame in iter_frames(backend, source):
        assert frame.data == "1"
        break
    gc.collect()
    assert source.closed == 1

    source = Pieces(THREE)
    with iter_frames(backend, source) as frames:
        assert next(frames).data == "1"
    assert source.closed == 1

    source = Pieces(THREE)
    iter_frames(backend, source).close()  # before the first frame
    assert source.closed == 1


def test_iter_frames_leaves_its_source_open_on_demand(backend: str) -> None:
    source = Pieces(THREE)
    assert len(list(iter_frames(backend, source, close_source=False))) == 3
    with iter_frames(backend, source, close_source=False) as frames:
        assert list(frames) == []
    assert source.closed == 0
    nothing_to_close = [b"data: 1\n\n"]
    assert [frame.id for frame in iter_frames(backend, nothing_to_close, last_event_id="9")] == ["9"]


def test_a_source_that_does_not_close_hides_no_error(backend: str) -> None:
    class Stuck(Pieces):
        def close(self) -> None:
            raise RuntimeError("stuck")

    with pytest.raises(OSError, match="reset"):
        list(iter_frames(backend, Stuck(THREE, error=OSError("reset"))))
    with pytest.raises(RuntimeError, match="stuck"):
        list(iter_frames(backend, Stuck(THREE)))


def test_what_is_no_source(backend: str) -> None:
    for wrong in (b"data: 1\n\n", "data", 7, AsyncPieces(THREE)):
        with pytest.raises(TypeError):
            iter_frames(backend, wrong)  # type: ignore[arg-type]
    for wrong in (b"data: 1\n\n", "data", 7, [b"data"]):
        with pytest.raises(TypeError):
            aiter_frames(backend, wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        iter_frames(backend, [], limits=7)  # type: ignore[arg-type]


async def consume(frames: AsyncFrameIterator, seen: list[str]) -> None:
    async for frame in frames:
        seen.append(frame.data)  # noqa: PERF401 (keeps the frames before an error)


def test_aiter_frames_closes_its_source_once(backend: str) -> None:
    async def run() -> None:
        source = AsyncPieces(THREE)
        frames = aiter_frames(backend, source)
        assert [frame.data async for frame in frames] == ["1", "2", "3"]
        assert (source.closed, frames.last_event_id, frames.reconnection_time) == (1, "5", 9)
        await frames.aclose()
        assert source.closed == 1

        source = AsyncPieces(THREE, error=OSError("reset"))
        with pytest.raises(OSError, match="reset"):
            [frame async for frame in aiter_frames(backend, source)]
        assert source.closed == 1

        source = AsyncPieces(LONG)
        seen: list[str] = []
        with pytest.raises(LimitExceeded):
            await consume(aiter_frames(backend, source, limits=SMALL), seen)
        assert (seen, source.closed) == (["1"], 1)

        source = AsyncPieces(THREE)
        async with aiter_frames(backend, source) as frames:
            assert (await anext(frames)).data == "1"
        assert source.closed == 1

        source = AsyncPieces(THREE)
        await aiter_frames(backend, source).aclose()  # before the first frame
        assert source.closed == 1

        source = AsyncPieces(THREE)
        assert len([frame async for frame in aiter_frames(backend, source, close_source=False)]) == 3
        assert source.closed == 0

    asyncio.run(run())


def test_aiter_frames_closes_its_source_when_the_loop_is_left(backend: str) -> None:
    async def run() -> None:
        source = AsyncPieces(THREE)
        async for frame in aiter_frames(backend, source):
            assert frame.data == "1"
            break
        del frame
        gc.collect()
        for _ in range(3):
            await asyncio.sleep(0)
        assert source.closed == 1

    asyncio.run(run())


def test_aiter_frames_closes_its_source_when_it_is_cancelled_anywhere(backend: str) -> None:
    async def run(steps: int) -> bool:
        source = AsyncPieces(THREE)
        task = asyncio.create_task(consume(aiter_frames(backend, source), []))
        for _ in range(steps):
            await asyncio.sleep(0)
        cancelled = task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            assert source.closed == (1 if steps else 0)  # a task that never ran did not open its source
        else:
            assert source.closed == 1
        assert len(asyncio.all_tasks()) == 1
        return cancelled

    ways = [asyncio.run(run(steps)) for steps in range(12)]
    assert True in ways
    assert False in ways
