"""Parsing a complete body or a long read releases the GIL, so that another thread can run in the meantime."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw
from streamweld._backend import load
from streamweld._extension import extension
from streamweld.options import to_config

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(extension() is None, reason="the pure backend holds the interpreter")

CHUNK = b'data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n'
END = b'data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def body(pieces: int) -> tuple[bytes, str]:
    """Return a stream whose payloads differ in length, and its text."""
    texts = [f"{number} " * (number % 7 + 1) for number in range(pieces)]
    return b"".join([CHUNK % text.encode() for text in texts]) + END, "".join(texts)


def read(data: bytes) -> str:
    return sw.parse(data, dialect="chat").text


def fed(data: bytes) -> str:
    parser = sw.StreamParser(dialect="chat")
    parser.feed(data)
    parser.close()
    return parser.response.text


def converted(data: bytes) -> bytes:
    return sw.convert(data, source="chat", target="anthropic", seed="same")


@pytest.mark.parametrize("call", [read, fed, converted])
def test_another_thread_runs_during_a_long_call(call: Callable[[bytes], Any]) -> None:
    """With a switch interval of one minute, another thread runs only if the GIL is released.

    `calling` is true only between two statements of the working thread, so the count does
    not depend on how long the call takes or on how soon this thread wakes.
    """
    data, _ = body(120_000)
    started, calling, seen = threading.Event(), False, 0

    def work() -> None:
        nonlocal calling
        started.wait()
        for _ in range(5):
            calling = True
            call(data)
            calling = False

    before = sys.getswitchinterval()
    thread = threading.Thread(target=work)
    thread.start()
    sys.setswitchinterval(60.0)
    try:
        started.set()
        while thread.is_alive():
            seen += calling
            time.sleep(0.001)
    finally:
        sys.setswitchinterval(before)
        thread.join()
    assert seen


def test_threads_read_different_bodies_at_once() -> None:
    made = [body(200 * number) for number in range(1, 9)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(read, [data for data, _ in made])) == [text for _, text in made]
        assert list(pool.map(fed, [data for data, _ in made])) == [text for _, text in made]
        alone = [converted(data) for data, _ in made]
        assert list(pool.map(converted, [data for data, _ in made])) == alone


@pytest.mark.parametrize("feed", ["feed", "feed_silent"])
def test_overlapping_calls_into_one_parser_are_refused(feed: str) -> None:
    """A parser that one thread is using raises `ParserBusy` in another thread, even while the GIL is released."""
    data, text = body(120_000)
    faults: list[BaseException] = []
    for _ in range(5):  # a busy machine may run the other thread only after the call
        parser: Any = load("native")("chat", to_config())
        thread = threading.Thread(target=getattr(parser, feed), args=(data,))
        thread.start()
        while thread.is_alive():
            try:
                parser.snapshot()
            except sw.ParserBusy as fault:
                faults.append(fault)
            time.sleep(0.0005)
        thread.join()
        parser.close_silent()
        assert [event.text for event in parser.snapshot()[0] if event.type == "text_done"] == [text]
        if faults:
            return
    pytest.fail("no call was refused")
