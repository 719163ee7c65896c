"""The asynchronous iterators under cancellation at every await, and their timeouts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw
from streamweld import stream
from streamweld.errors import TruncatedStream, UsageError

from tests.support.servers.sources import BODY, COMMENT, CUT, AsyncSource, Slow, expected, pieces, run
from tests.support.servers.wire import DONE, call, end, text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


@pytest.fixture(autouse=True)
def _chosen(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "backend", backend)


# Cancellation


def cancelled_at(step: int, make: Callable[[AsyncSource], Awaitable[None]], chunks: AsyncSource) -> bool:
    """Cancel after `step` turns of the event loop; return True if the cancellation took effect."""

    async def main() -> bool:
        task = asyncio.ensure_future(make(chunks))
        for _ in range(step):
            await asyncio.sleep(0)
        hit = task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            pass
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return hit and task.cancelled()

    return asyncio.run(main())


@pytest.mark.parametrize("timeouts", [{}, {"idle_timeout": 60, "event_timeout": 60}])
@pytest.mark.parametrize("batches", [False, True])
def test_cancelled_at_every_await(batches: bool, timeouts: dict[str, float]) -> None:
    hits = 0
    for step in range(1, 200):
        seen: list[Any] = []
        chunks = AsyncSource(pieces(BODY, 40))
        kept: list[Any] = []

        async def consume(chunks: AsyncSource, kept: list[Any] = kept, seen: list[Any] = seen) -> None:
            make: Any = sw.aiter_batches if batches else sw.aiter_events
            kept.append(make(chunks, **timeouts))
            async with kept[0] as items:
                async for item in items:
                    seen.append(item)
                    await asyncio.sleep(0)

        hit = cancelled_at(step, consume, chunks)
        if kept:
            assert chunks.closed == 1, step
            assert kept[0].response.completeness in {"open", "complete"}
            assert "Hello".startswith(kept[0].response.text)
        if not hit:
            break
        hits += 1
    assert hits > 10
    assert kept[0].response.text == "Hello"


# Timeouts

LONG = 30.0
SHORT = 0.05


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("timeout", ["idle_timeout", "event_timeout"])
def test_a_stalled_stream(timeout: str, batches: bool) -> None:
    chunks = Slow(CUT, call(0, "call_1", "f", '{"a":'), LONG)
    *items, error = run("async", chunks, batches=batches, **{timeout: SHORT})
    events = [event for batch in items for event in batch] if batches else items
    assert events == expected(CUT + call(0, "call_1", "f", '{"a":'))
    assert isinstance(error, TruncatedStream)
    assert error.where == "idle"
    assert error.open_items == (1,)
    assert error.partial is not None
    assert error.partial.completeness == "truncated"
    assert error.byte_offset == len(CUT + call(0, "call_1", "f", '{"a":'))
    assert error.policy == "standard"
    assert error.__cause__ is None
    assert chunks.closed == 1
    assert chunks.finished


def test_keep_alive_comments_are_bytes_but_no_events() -> None:
    script: list[bytes | float] = [CUT]
    for _ in range(400):
        script += [0.005, COMMENT]
    chunks = Slow(*script)
    *_, error = run("async", chunks, event_timeout=0.1)
    assert isinstance(error, TruncatedStream)
    assert error.where == "idle"
    assert chunks.finished
    kept = Slow(*script[:40], end("stop"))
    assert run("async", kept, idle_timeout=5)[-1].type == "finished"
    awake = Slow(*[step for _ in range(10) for step in (0.02, text("x"))], end("stop"))
    assert run("async", awake, event_timeout=0.15)[-1].type == "finished"


def test_only_waiting_for_the_source_counts() -> None:
    async def main() -> str:
        chunks = Slow(text("Hel"), text("lo"), end("stop"))
        async with sw.aiter_events(chunks, idle_timeout=SHORT, event_timeout=SHORT) as items:
            async for _ in items:
                await asyncio.sleep(2 * SHORT)
            return items.response.text

    assert asyncio.run(main()) == "Hello"


def test_a_stream_that_had_sent_its_marker_is_no_stalled_one() -> None:
    done = Slow(BODY, LONG)
    assert run("async", done, idle_timeout=SHORT) == expected(BODY)
    assert done.closed == 1
    unmarked = Slow(BODY.removesuffix(DONE), LONG)
    *events, error = run("async", unmarked, idle_timeout=SHORT)
    assert [event.type for event in events[-1:]] == ["finished"]
    assert (type(error), error.where, error.partial.completeness) == (TruncatedStream, "idle", "truncated")


def test_a_stalled_stream_under_salvage_ends_as_a_cut_one() -> None:
    items = run("async", Slow(CUT, LONG), idle_timeout=SHORT, policy="salvage")
    assert not isinstance(items[-1], Exception)
    assert [item.code for item in items if item.type == "diagnostic"] == ["truncated"]


def test_the_timeouts_of_others_are_theirs() -> None:
    theirs = TimeoutError("read timed out")
    *_, error = run("async", AsyncSource([CUT], error=theirs), idle_timeout=LONG)
    assert error is theirs

    async def main() -> None:
        async with asyncio.timeout(SHORT):
            async for _ in sw.aiter_events(Slow(CUT, LONG), idle_timeout=LONG):
                pass

    with pytest.raises(TimeoutError):
        asyncio.run(main())


def test_timeouts_need_asyncio_and_nothing_else_does() -> None:
    class Ready:
        def __init__(self) -> None:
            self.left = [BODY]
            self.closed = 0

        def __aiter__(self) -> Ready:
            return self

        async def __anext__(self) -> bytes:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop()

        async def aclose(self) -> None:
            self.closed += 1

    async def consume(chunks: Ready, **options: Any) -> list[Any]:
        return [item async for item in sw.aiter_events(chunks, **options)]

    def drive(**options: Any) -> list[Any]:
        """Run a coroutine without an event loop, because it never has to wait."""
        try:
            consume(chunks, **options).send(None)
        except StopIteration as stop:
            return list(stop.value)
        raise AssertionError("it waited")

    chunks = Ready()
    assert drive() == expected(BODY)
    chunks = Ready()
    with pytest.raises(UsageError, match="asyncio"):
        drive(idle_timeout=1)
    assert chunks.closed == 1
