"""Threads: separate parsers in 2 and 8 threads, and several threads on one parser (row R17).

A parser may be used by one thread at a time. A call into a parser that is running raises ParserBusy or waits, and never
corrupts the result of another thread.
"""

from __future__ import annotations

import os
import sys
import threading
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw
from streamweld.errors import ParserBusy, StreamError, UsageError
from streamweld.events import TextDelta

from tests.support.backends import make_parser, using
from tests.support.vector_files import chunks_of, is_broken, streams

if TYPE_CHECKING:
    from collections.abc import Callable

NIGHTLY = os.environ.get("STREAMWELD_NIGHTLY") == "1"
ROUNDS = {"native": 200, "pure": 40} if NIGHTLY else {"native": 6, "pure": 1}
READ = 37


def bodies() -> list[tuple[str, bytes]]:
    """Return (dialect, bytes) of a sample of the vectors that run without options."""
    plain = (v for v in streams() if v["options"].keys() == {"dialect"} and not is_broken(v))
    return [(vector["options"]["dialect"], b"".join(chunks_of(vector))) for vector in islice(plain, 0, None, 4)]


def facts(dialect: str, body: bytes) -> Any:
    """Return all results of reading one stream."""
    parser = sw.StreamParser(dialect=dialect)  # type: ignore[arg-type]
    events: list[Any] = []
    error = None
    try:
        for at in range(0, len(body), READ):
            events += parser.feed(body[at : at + READ])
        events += parser.close()
    except StreamError as exc:
        events += exc.events
        error = str(exc)
    return events, error, list(parser.diagnostics), parser.response


def in_threads(count: int, work: Callable[[int], None]) -> list[BaseException]:
    """Run `work(number)` in `count` threads at once; return the exceptions."""
    raised: list[BaseException] = []
    start = threading.Barrier(count)

    def run(number: int) -> None:
        try:
            start.wait()
            work(number)
        except BaseException as exc:  # noqa: BLE001 (the main thread reports it)
            raised.append(exc)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    return raised


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("count", [2, 8])
def test_each_thread_has_its_own_parsers(backend: str, count: int, figure: Callable[[str, str], None]) -> None:
    cases = bodies()
    with using(backend):  # the backend is process-wide: it is selected once, before the threads start
        expected = [facts(*case) for case in cases]
        wrong: list[int] = []
        done = [0] * count

        def work(number: int) -> None:
            for step in range(max(1, ROUNDS[backend] * len(cases) // count)):
                at = (step * 7 + number) % len(cases)
                if facts(*cases[at]) != expected[at]:
                    wrong.append(at)
                done[number] += 1

        assert in_threads(count, work) == []
    assert wrong == []
    figure(f"{backend}, {count} threads", f"{sum(done)} streams exact")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("count", [2, 8])
def test_several_threads_on_one_parser(backend: str, count: int, figure: Callable[[str, str], None]) -> None:
    """Each event is fed by exactly one thread. The content of accepted input is emitted exactly once, and no other
    content is emitted.
    """
    events = 20_000 if NIGHTLY else 400
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"x%07d"}}]}\n\n'
    parser = make_parser(backend, "chat")
    accepted: list[list[str]] = [[] for _ in range(count)]
    shown: list[list[str]] = [[] for _ in range(count)]
    busy = [0] * count

    def work(number: int) -> None:
        for at in range(number, events, count):
            try:
                found = parser.feed(chunk % at)
            except ParserBusy:
                busy[number] += 1
                continue
            accepted[number].append(f"x{at:07}")
            shown[number] += [event.text for event in found if isinstance(event, TextDelta)]

    assert in_threads(count, work) == []
    parser.feed(b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
    parser.close()
    text = parser.response.text
    pieces = [text[at : at + 8] for at in range(0, len(text), 8)]
    assert sorted(pieces) == sorted(piece for thread in accepted for piece in thread)
    assert sorted("".join(thread) for thread in shown) == sorted("".join(thread) for thread in accepted)
    assert len(pieces) + sum(busy) == events
    figure(f"{backend}, {count} threads on one parser", f"{len(pieces)} accepted, {sum(busy)} ParserBusy, 0 lost")


def test_a_parser_that_was_closed_in_another_thread(backend: str) -> None:
    parser = make_parser(backend, "chat")
    parser.feed(b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
    assert in_threads(1, lambda _: parser.close() and None) == []
    with pytest.raises(UsageError):
        parser.feed(b"data: {}\n\n")
    assert parser.response.text == "x"
