"""The iterators, sync and async, with the same tests: events precede exceptions, and sources are closed once."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
import streamweld as sw
from streamweld import stream
from streamweld.errors import ChunkDecodeError, StreamError, TruncatedStream, UpstreamError, UsageError
from streamweld.events import TextDelta
from streamweld.stream import StreamParser

from tests.support.servers.sources import (
    BODY,
    BROKEN,
    COMMENT,
    CUT,
    MODES,
    AsyncSource,
    SyncSource,
    expected,
    pieces,
    run,
    source,
)
from tests.support.servers.wire import DONE, call, end, event, text


@pytest.fixture(autouse=True)
def _chosen(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "backend", backend)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_same_events(mode: str, size: int) -> None:
    chunks = source(mode, pieces(BODY, size))
    assert run(mode, chunks) == expected(BODY)
    assert chunks.closed == 1


@pytest.mark.parametrize("mode", MODES)
def test_batches(mode: str) -> None:
    chunks = source(mode, [text("Hel"), COMMENT, text("lo") + call(0, "c", "f", "{}"), end(), b""])
    batches = run(mode, chunks, batches=True)
    assert [[item.type for item in batch] for batch in batches] == [
        ["response_started", "text_started", "text_delta"],
        ["text_delta", "text_done", "tool_call_started"],
        ["tool_call_delta", "tool_call", "finished"],  # `{}` may still be replaced by arguments
    ]
    assert chunks.closed == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize(("body", "kind"), [(BROKEN, ChunkDecodeError), (CUT, TruncatedStream)])
def test_events_first_and_then_the_fault(mode: str, batches: bool, body: bytes, kind: type[StreamError]) -> None:
    chunks = source(mode, [body, b"never read"] if kind is ChunkDecodeError else [body])
    *items, error = run(mode, chunks, batches=batches)
    assert ([event for batch in items for event in batch] if batches else items) == expected(body)
    assert type(error) is kind
    assert error.partial.text == "Hello"
    assert (chunks.closed, chunks.given) == (1, 1)


@pytest.mark.parametrize("mode", MODES)
def test_the_error_of_a_gateway(mode: str) -> None:
    chunks = source(mode, [text("Hello"), event({"error": {"message": "overloaded", "type": "overloaded_error"}})])
    *items, error = run(mode, chunks)
    assert items[-1].type == "upstream_error_event"
    assert isinstance(error, UpstreamError)
    assert error.retryable is True


@pytest.mark.parametrize("mode", MODES)
def test_the_exception_of_a_source_comes_through(mode: str) -> None:
    boom = OSError("connection reset")
    chunks = source(mode, [CUT, call(0, "call_1", "f", '{"a":')], error=boom)
    *items, error = run(mode, chunks)
    assert error is boom
    assert items == expected(CUT + call(0, "call_1", "f", '{"a":'))
    assert chunks.closed == 1
    assert [item.state for item in items if item.type == "tool_call"] == ["incomplete"]


def test_a_source_that_raises_has_not_ended() -> None:
    """All choices have a finish reason, so without the exception, the stream would count as ended."""
    items = sw.iter_events(source("sync", [BODY.removesuffix(DONE)], error=OSError("connection reset")))
    with pytest.raises(OSError, match="connection reset"):
        list(items)
    assert items.response.completeness == "truncated"
    whole = sw.iter_events(source("sync", [BODY], error=OSError("connection reset")))
    with pytest.raises(OSError, match="connection reset"):
        list(whole)
    assert whole.response.completeness == "complete"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("batches", [False, True])
def test_a_loop_that_is_left_closes_the_source(mode: str, batches: bool) -> None:
    chunks = source(mode, pieces(BODY))
    assert len(run(mode, chunks, batches=batches, stop=2)) == 2
    assert chunks.closed == 1
    assert chunks.given < len(chunks.chunks)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("chunks", "more", "stop"),
    [([BODY], {}, None), ([BODY], {}, 1), ([BROKEN], {}, None), ([CUT], {"error": OSError}, None)],
)
def test_a_source_that_is_not_ours_stays_open(mode: str, chunks: list[bytes], more: Any, stop: int | None) -> None:
    kept = source(mode, chunks, **more)
    run(mode, kept, stop=stop, close_source=False)
    assert kept.closed == 0


@pytest.mark.parametrize("mode", MODES)
def test_closing_by_hand(mode: str) -> None:
    chunks = source(mode, pieces(BODY))
    if mode == "sync":
        items = sw.iter_events(chunks)
        items.close()
        assert chunks.closed == 1
        items.close()
        assert list(items) == []
        chunks = source(mode, pieces(BODY))
        with sw.iter_events(chunks) as started:
            next(started)
        assert chunks.closed == 1
        return

    async def main() -> None:
        items = sw.aiter_events(chunks)
        await items.aclose()
        assert chunks.closed == 1
        await items.aclose()
        assert [item async for item in items] == []
        other = AsyncSource(pieces(BODY))
        async with sw.aiter_events(other) as started:
            await anext(started)
        assert other.closed == 1

    asyncio.run(main())
    assert chunks.closed == 1


def test_an_async_loop_that_is_left_closes_when_the_iterator_is_dropped() -> None:
    chunks = AsyncSource(pieces(BODY))

    async def main() -> None:
        async for _ in sw.aiter_events(chunks):
            break
        gc.collect()
        for _ in range(10):
            await asyncio.sleep(0)
        assert chunks.closed == 1

    asyncio.run(main())
    assert chunks.closed == 1


@pytest.mark.parametrize("mode", MODES)
def test_what_is_known_of_the_response(mode: str) -> None:
    chunks = source(mode, [text("Hel"), text("lo") + event("null"), end("stop")])
    if mode == "sync":
        items = sw.iter_events(chunks)
        assert (items.dialect, items.response.text) == (None, "")
        next(items)
        assert (items.dialect, items.response.text) == ("chat", "Hel")
        list(items)
        assert items.response.text == "Hello"
        assert [note.code for note in items.diagnostics] == ["null_payload"]
        return

    async def main() -> None:
        items = sw.aiter_events(chunks)
        assert (items.dialect, items.response.text) == (None, "")
        await anext(items)
        assert (items.dialect, items.response.text) == ("chat", "Hel")
        _ = [item async for item in items]
        assert items.response.text == "Hello"
        assert [note.code for note in items.diagnostics] == ["null_payload"]

    asyncio.run(main())


@pytest.mark.parametrize("mode", MODES)
def test_a_source_that_does_not_close(mode: str) -> None:
    stuck = RuntimeError("does not close")
    *items, error = run(mode, source(mode, [BODY], at_close=stuck))
    assert items == expected(BODY)
    assert error is stuck
    *items, error = run(mode, source(mode, [BROKEN], at_close=stuck))
    assert isinstance(error, ChunkDecodeError)
    boom = OSError("boom")
    *items, error = run(mode, source(mode, [CUT], error=boom, at_close=stuck))
    assert error is boom


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wrong", ["text", None, 5])
def test_a_source_that_gives_no_bytes(mode: str, wrong: Any) -> None:
    chunks = source(mode, [CUT, wrong])
    *_, error = run(mode, chunks)
    assert type(error) is TypeError
    assert chunks.closed == 1


def test_what_is_no_source() -> None:
    for make in (sw.iter_events, sw.iter_batches, sw.aiter_events, sw.aiter_batches):
        for wrong in (BODY, bytearray(BODY), memoryview(BODY), "text", None, 5):
            with pytest.raises(TypeError):
                make(wrong)  # type: ignore[operator]
    for make in (sw.iter_events, sw.iter_batches):
        with pytest.raises(TypeError, match=f"a{make.__name__}"):
            make(AsyncSource([]))  # type: ignore[operator]
    for make in (sw.aiter_events, sw.aiter_batches):
        with pytest.raises(TypeError, match=make.__name__[1:]):
            make(SyncSource([]))  # type: ignore[operator]


@pytest.mark.parametrize("name", ["iter_events", "iter_batches", "aiter_events", "aiter_batches"])
def test_options_are_checked_at_once(name: str) -> None:
    make: Any = getattr(sw, name)
    chunks = source("sync" if name.startswith("i") else "async", [BODY])
    for options in ({"policy": "lenient"}, {"seed": "a b"}, {"dialect": "x"}):
        with pytest.raises(UsageError):
            make(chunks, **options)
    with pytest.raises(TypeError):
        make(chunks, colour="red")
    if name.startswith("a"):
        for seconds in (0, -1, float("nan"), "5", [5]):
            for timeout in ("idle_timeout", "event_timeout"):
                with pytest.raises(UsageError, match=timeout):
                    make(chunks, **{timeout: seconds})
    assert (chunks.given, chunks.closed) == (0, 0)


@pytest.mark.parametrize("mode", MODES)
def test_options_reach_the_parser(mode: str) -> None:
    items = run(mode, source(mode, [CUT]), policy="salvage")
    assert not isinstance(items[-1], Exception)


def test_a_source_without_close_or_with_a_plain_one() -> None:
    assert run("sync", iter([BODY])) == run("sync", [BODY]) == expected(BODY)
    assert run("sync", (piece for piece in [BODY])) == expected(BODY)

    class Bare:
        def __init__(self) -> None:
            self.left = [BODY]

        def __aiter__(self) -> Bare:
            return self

        async def __anext__(self) -> bytes:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop()

    class Plain(Bare):
        closed = 0

        def close(self) -> None:
            self.closed += 1

    assert run("async", Bare()) == expected(BODY)
    plain = Plain()
    assert run("async", plain) == expected(BODY)
    assert plain.closed == 1


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_left_to_the_collector(mode: str) -> None:
    def alive() -> int:
        return sum(isinstance(thing, StreamParser) for thing in gc.get_objects())

    gc.collect()
    before = alive()  # objects that other tests hold
    gc.disable()
    try:
        if mode == "sync":
            run(mode, source(mode, [BROKEN])).clear()
            assert alive() == before
        run(mode, source(mode, [BROKEN]), batches=True).clear()
        assert mode == "async" or alive() == before
    finally:
        gc.enable()
    gc.collect()
    assert alive() == before


def test_a_delta_is_there_before_the_next_piece_is_asked_for() -> None:
    chunks = SyncSource([text("Hel"), text("lo"), end("stop")])
    for item in sw.iter_events(chunks):
        if isinstance(item, TextDelta):
            assert chunks.given == (1 if item.text == "Hel" else 2)
