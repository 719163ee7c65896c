"""Join a truncated stream and the stream that a reconnect returned: `splice`, `iter_splice`, `asplice`.

    for event in streamweld.iter_events(streamweld.iter_splice(first, response.iter_bytes())):
        ...

The streams are compared event by event, without decoding a dialect. `docs/guides/resume.md` lists the evidence that
determines where the second stream starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._chunk_loop import ChunkProcessor, arun, run
from streamweld._items import AsyncItems, Items
from streamweld._source import Source
from streamweld.errors import StreamError
from streamweld.splice.align import Start
from streamweld.splice.splicer import StreamSplicer

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Iterable

    from streamweld.options import Limits

__all__ = ["AsyncSpliceIterator", "SpliceIterator", "Start", "StreamSplicer", "asplice", "iter_splice", "splice"]


class _Joiner(ChunkProcessor[bytes]):
    """Adapts a `StreamSplicer` to the iterators: each result is bytes of the joined stream."""

    __slots__ = ("splicer",)

    def __init__(self, splicer: StreamSplicer) -> None:
        super().__init__()
        self.splicer = splicer

    def step(self, chunk: bytes | bytearray | memoryview) -> bytes:
        try:
            return self.splicer.feed(chunk)
        except StreamError as fault:
            self.fault = fault
            return b""

    def end(self, *, broken: bool = False) -> bytes:  # noqa: ARG002 (the joined bytes already show how the stream ended)
        try:
            return self.splicer.close()
        except StreamError as fault:
            self.fault = fault
            return b""


class SpliceIterator(Items[StreamSplicer, bytes]):
    """The iterator that `iter_splice` returns."""

    __slots__ = ()


class AsyncSpliceIterator(AsyncItems[StreamSplicer, bytes]):
    """The iterator that `asplice` returns."""

    __slots__ = ()


def splice(
    first: bytes | bytearray | memoryview,
    second: bytes | bytearray | memoryview,
    *,
    second_starts: Start = "auto",
    limits: Limits | None = None,
) -> bytes:
    """Join a truncated body and the body that a reconnect returned, without duplicating or losing bytes.

    Args:
        first: the truncated body, including an incomplete last event, if any.
        second: the body that the reconnect returned. The second body may replay the first body from the start, repeat a
            part of it, or continue right after it. If the second body is also truncated, splice the result with the
            body of another reconnect.
        second_starts: as for `StreamSplicer`; `"auto"` determines the position, and raises if the bytes do not prove
            it.
        limits: how much input to accept; only `max_event_bytes` and `max_field_bytes` apply.

    Returns:
        The joined body. The result contains at least the complete events of `first`.

    Raises:
        SpliceError: if `second` belongs to another stream (`rule` is `splice_other_stream`), events between the two are
            missing (`splice_gap`), its position cannot be proven (`splice_ambiguous`), or it is an HTML page, text, or
            an error as JSON (`splice_error_page`). `partial` is the response of `first`.
        UsageError: if an option is invalid.

    >>> first = b'data: {"sequence_number":0}\\n\\ndata: {"sequence_number":1}\\n\\ndata: {"seq'
    >>> second = b'data: {"sequence_number":1}\\n\\ndata: {"sequence_number":2}\\n\\n'
    >>> splice(first, second).count(b"sequence_number")
    3
    """
    splicer = StreamSplicer(first, second_starts=second_starts, limits=limits)
    return splicer.feed(second) + splicer.close()


def iter_splice(
    first: bytes | bytearray | memoryview,
    second: Iterable[bytes | bytearray | memoryview],
    *,
    second_starts: Start = "auto",
    limits: Limits | None = None,
    close_source: bool = True,
) -> SpliceIterator:
    """Join a truncated body and the body of a reconnect that arrives in chunks.

    Args:
        first: the truncated body.
        second: chunks of the second body, such as `response.iter_bytes()` of httpx.
        second_starts: as for `StreamSplicer`.
        limits: as for `splice`.
        close_source: whether to call `second.close()`, if it exists, exactly once: at the end, on an error, and when
            the loop is left early.

    Raises:
        SpliceError: as `splice`. Exceptions from the source are raised unchanged, after the bytes that precede them.

    >>> first = b'data: {"sequence_number":0}\\n\\ndata: {"seq'
    >>> b"".join(iter_splice(first, [b'data: {"sequence', b'_number":1}\\n\\n'])).count(b"\\n\\n")
    2
    """
    source = Source.sync(second, close=close_source, other="asplice()")
    splicer = StreamSplicer(first, second_starts=second_starts, limits=limits)
    return SpliceIterator(splicer, source, run(_Joiner(splicer), source))


def asplice(
    first: bytes | bytearray | memoryview,
    second: AsyncIterable[bytes | bytearray | memoryview],
    *,
    second_starts: Start = "auto",
    limits: Limits | None = None,
    close_source: bool = True,
) -> AsyncSpliceIterator:
    """Join two streams as `iter_splice` does; the second may be `response.aiter_bytes()` of httpx."""
    source = Source.asynchronous(second, close=close_source, other="iter_splice()")
    splicer = StreamSplicer(first, second_starts=second_starts, limits=limits)
    return AsyncSpliceIterator(splicer, source, arun(_Joiner(splicer), source, None))
