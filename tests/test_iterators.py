"""The iterators, sync and async by the same tests: events before faults, sources closed once, timeouts, cancels."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw
from streamweld import stream
from streamweld.errors import ChunkDecodeError, StreamError, TruncatedStream, UpstreamError, UsageError
from streamweld.events import TextDelta
from streamweld.stream import StreamParser

from tests.wire import DONE, call, end, event, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator

BODY = text("Hel") + text("lo") + call(0, "call_1", "f", '{"a":1}') + end()
CUT = text("Hel") + text("lo")
BROKEN = CUT + event("{nonsense")
COMMENT = b": keep-alive\n\n"
MODES = ["sync", "async"]


class Closing:
    """Counts how often it was closed."""

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
    """Waits before each chunk, and in closing."""

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


@pytest.fixture(autouse=True)
def _chosen(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "backend", backend)


def pieces(body: bytes, size: int = 7) -> list[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)]


def source(mode: str, chunks: Iterable[Any], **more: Any) -> Any:
    return SyncSource(chunks, **more) if mode == "sync" else AsyncSource(chunks, **more)


def run(mode: str, chunks: Any, *, batches: bool = False, stop: int | None = None, **options: Any) -> list[Any]:
    """Everything that comes out, at the end the exception if there was one. `stop`: leave the loop at that item."""
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
        ["text_delta", "text_done", "tool_call_started", "tool_call_delta"],
        ["tool_call", "finished"],
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
        for seconds in (0, -1, float("nan")):
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


# Cancellation


def cancelled_at(step: int, make: Callable[[AsyncSource], Awaitable[None]], chunks: AsyncSource) -> bool:
    """Run with a cancellation after `step` turns of the loop; whether it hit."""

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


class Slow:
    """Gives chunks after pauses: numbers are seconds, bytes are chunks."""

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


def test_a_stream_that_had_said_everything_is_no_stalled_one() -> None:
    done = Slow(BODY, LONG)
    assert run("async", done, idle_timeout=SHORT) == expected(BODY)
    assert done.closed == 1
    assumed = Slow(BODY.removesuffix(DONE), LONG)
    assert run("async", assumed, idle_timeout=SHORT) == expected(BODY.removesuffix(DONE))


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
        """Without any event loop: nothing here has to wait."""
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


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_left_to_the_collector(mode: str) -> None:
    def alive() -> int:
        return sum(isinstance(thing, StreamParser) for thing in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        if mode == "sync":
            run(mode, source(mode, [BROKEN])).clear()
            assert alive() == 0
        run(mode, source(mode, [BROKEN]), batches=True).clear()
        assert mode == "async" or alive() == 0
    finally:
        gc.enable()
    gc.collect()
    assert alive() == 0


def test_a_delta_is_there_before_the_next_piece_is_asked_for() -> None:
    chunks = SyncSource([text("Hel"), text("lo"), end("stop")])
    for item in sw.iter_events(chunks):
        if isinstance(item, TextDelta):
            assert chunks.given == (1 if item.text == "Hel" else 2)
