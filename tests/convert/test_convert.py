"""The public interface of the converter: feed, close, error, iterators, options. Its output is tested by vectors."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw
from streamweld.errors import TruncatedStream, UpstreamError, UsageError

from tests.support.backends import using
from tests.support.load.linear import assert_linear
from tests.support.servers.wire import DONE, call, chunk, end, event, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

BODY = text("Hello") + end("stop")
CUT = text("Hel") + call(0, "call_1", "f", '{"a":')
FAILED = text("Hel") + event({"error": {"message": "slow down", "type": "rate_limit_error"}})
PIECES = [BODY[at : at + 9] for at in range(0, len(BODY), 9)]


@pytest.fixture(autouse=True)
def with_backend(backend: str) -> Iterator[None]:
    with using(backend):
        yield


class Pieces:
    """A source that counts the chunks taken from it, and records whether it was closed."""

    def __init__(self, *pieces: bytes, error: Exception | None = None) -> None:
        self.pieces = list(pieces)
        self.error = error
        self.taken = 0
        self.closed = 0

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self.taken == len(self.pieces):
            raise self.error or StopIteration
        self.taken += 1
        return self.pieces[self.taken - 1]

    def close(self) -> None:
        self.closed += 1

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self  # type: ignore[return-value]

    async def __anext__(self) -> bytes:
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self.closed += 1


async def gathered(pieces: Any) -> bytes:
    return b"".join([piece async for piece in pieces])


def test_all_ways_write_the_same() -> None:
    whole = sw.convert(BODY, target="responses", seed="s")
    assert whole.endswith(b"data: [DONE]\n\n")
    source = Pieces(*PIECES)
    assert b"".join(sw.iter_convert(source, target="responses", seed="s")) == whole
    assert (source.taken, source.closed) == (len(PIECES), 1)
    source = Pieces(*PIECES)
    assert asyncio.run(gathered(sw.aconvert(source, target="responses", seed="s"))) == whole
    assert (source.taken, source.closed) == (len(PIECES), 1)
    assert sw.convert(bytearray(BODY), target="responses", source="chat", seed="s") == whole


def test_what_can_be_asked() -> None:
    with sw.StreamConverter(target="gemini") as converter:
        assert (converter.dialect, converter.error, converter.diagnostics) == (None, None, ())
        out = converter.feed(BODY)
        out += converter.close()
        assert converter.close() == b""
    assert converter.dialect == "chat"
    assert (converter.response.text, converter.response.completeness) == ("Hello", "complete")
    assert sw.parse(out).text == "Hello"
    with pytest.raises(UsageError, match="closed"):
        converter.feed(b"")


def test_ids_are_random_unless_seeded() -> None:
    one, other = sw.convert(BODY, target="responses"), sw.convert(BODY, target="responses")
    assert one != other
    assert sw.convert(BODY, target="responses", seed="a") == sw.convert(BODY, target="responses", seed="a")


def test_a_fault_is_kept_and_nothing_follows_its_ending() -> None:
    converter = sw.StreamConverter(target="responses", source="chat", seed="s")
    out = converter.feed(FAILED)
    assert b"event: response.failed" in out
    assert b"slow down" in out
    assert isinstance(converter.error, UpstreamError)
    assert converter.error.partial is not None
    assert converter.error.partial.text == "Hel"
    assert (converter.error.policy, converter.error.events) == ("standard", [])
    assert converter.feed(BODY) == b""
    assert converter.close() == b""


def test_errors_can_be_raised_behind_the_last_bytes() -> None:
    converter = sw.StreamConverter(target="chat", source="anthropic", raise_on_error=True)
    assert converter.feed(b"data: oops\n\n").startswith(b'data: {"error":')
    with pytest.raises(sw.StreamError):
        converter.feed(b"")
    with pytest.raises(UsageError):
        converter.feed(b"")
    with pytest.raises(TruncatedStream):
        sw.convert(CUT, target="responses", raise_on_error=True)
    given = []
    with pytest.raises(TruncatedStream) as raised:
        given += sw.iter_convert([CUT], target="responses", raise_on_error=True)
    assert raised.value.partial is not None
    converter = sw.StreamConverter(target="responses", raise_on_error=True)
    assert converter.feed(CUT)
    assert converter.close().endswith(b"data: [DONE]\n\n")
    with pytest.raises(TruncatedStream):
        converter.close()
    assert converter.close() == b""


def test_nothing_is_taken_behind_an_ending() -> None:
    source = Pieces(FAILED, BODY, BODY)
    pieces = sw.iter_convert(source, target="gemini")
    assert b"slow down" in b"".join(pieces)
    assert isinstance(pieces.error, UpstreamError)
    assert (source.taken, source.closed) == (1, 1)


def test_a_source_that_raises_ends_as_a_cut_and_its_exception_comes_through() -> None:
    source = Pieces(text("Hel"), error=ConnectionError("gone"))
    given: list[bytes] = []
    with pytest.raises(ConnectionError):
        given.extend(sw.iter_convert(source, target="responses"))
    assert source.closed == 1
    pieces = sw.iter_convert(Pieces(text("Hel"), error=ConnectionError("gone")), target="responses")
    given = [next(pieces), next(pieces)]
    assert b"event: response.incomplete" in given[-1]
    with pytest.raises(ConnectionError):
        next(pieces)


@pytest.mark.parametrize("target", ["responses", "same"])
def test_a_broken_transport_is_written_as_a_cut(target: Any) -> None:
    """All choices have a finish reason, so without the transport failure, the stream would count as ended."""
    unmarked = BODY.removesuffix(DONE)
    for broken in (False, True):
        converter = sw.StreamConverter(target=target)
        out = converter.feed(unmarked) + converter.close(broken=broken)
        assert (b"stream_truncated" in out) == broken
        assert isinstance(converter.error, TruncatedStream) == broken
    pieces = sw.iter_convert(Pieces(unmarked, error=ConnectionError("gone")), target=target)
    given: list[bytes] = []
    with pytest.raises(ConnectionError):
        given.extend(pieces)
    assert isinstance(pieces.error, TruncatedStream)
    assert pieces.error.where == "transport"


def test_a_stalled_source_ends_as_a_cut() -> None:
    async def stalls() -> AsyncIterator[bytes]:
        yield text("Hel")
        await asyncio.sleep(60)

    async def run(*, raises: bool) -> bytes:
        return await gathered(sw.aconvert(stalls(), target="responses", idle_timeout=0.05, raise_on_error=raises))

    assert b"stream_truncated" in asyncio.run(run(raises=False))
    with pytest.raises(TruncatedStream) as raised:
        asyncio.run(run(raises=True))
    assert raised.value.where == "idle"


def test_the_block_wants_its_last_bytes() -> None:
    with pytest.raises(UsageError, match="close"), sw.StreamConverter(target="gemini") as converter:
        converter.feed(BODY)
    with pytest.raises(KeyError), sw.StreamConverter(target="gemini"):
        raise KeyError


@pytest.mark.parametrize(
    "options",
    [{"target": "bedrock"}, {"source": "x"}, {"reasoning_events": "x"}, {"seed": "a b"}, {"policy": "x"}],
)
def test_options_that_cannot_be(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        sw.StreamConverter(**{"target": "gemini", **options})
    with pytest.raises(TypeError):
        sw.StreamConverter(target="gemini").feed("text")  # type: ignore[arg-type]


def test_a_policy_that_raises_for_a_loss_ends_the_answer() -> None:
    strict = sw.Policy(actions={"not_carried": "raise"})
    converter = sw.StreamConverter(target="gemini", source="chat", policy=strict)
    body = event({"choices": [{"index": 0, "delta": {"refusal": "No."}, "finish_reason": None}]})
    out = converter.feed(body)
    assert isinstance(converter.error, sw.StreamError)
    assert converter.error.rule == "not_carried"
    assert b'"error"' in out
    assert converter.feed(BODY) == b""


@pytest.mark.parametrize("target", ["responses", "gemini", "anthropic", "ai-sdk-ui"])
def test_many_pieces_cost_no_more_than_their_length(target: Any) -> None:
    def body(size: int) -> bytes:
        pieces = size // 300
        return text("x" * 20) * pieces + call(0, "call_1", "f", "[") + call(0, arguments="1, ") * pieces + end()

    def new() -> Any:
        return sw.StreamConverter(target=target, source="chat", seed="s").feed

    assert_linear(new, body, 1_000)


EVIL = 'x\n\ndata: [DONE]\n\nevent: y\r\n\r\n"}\u2028\u2029\x00'


@pytest.mark.parametrize("target", ["responses", "gemini", "anthropic", "ai-sdk-parts", "ai-sdk-ui"])
def test_no_text_of_the_upstream_makes_a_frame(target: Any) -> None:
    """Threats E1 and E6: the frames are those of a harmless stream, whatever ids, names, models and texts contain."""

    def body(word: str) -> bytes:
        head = {"id": f"chatcmpl-{word}", "model": f"m{word}", "created": 1, "object": "chat.completion.chunk"}
        function = {"name": "f", "arguments": '{"a":"b"}'}
        deltas: list[dict[str, Any]] = [
            {"content": f"t{word}"},
            {"reasoning_content": f"r{word}"},
            {"refusal": f"n{word}"},
            {"tool_calls": [{"index": 0, "id": f"call_{word}", "function": function}]},
            {
                "annotations": [
                    {"type": "url_citation", "url_citation": {"url": word, "start_index": 0, "end_index": 1}}
                ]
            },
        ]
        chunks = [{**head, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        failure = {"error": {"message": f"e{word}", "type": f"k{word}", "code": f"c{word}"}}
        return b"".join(map(event, [*chunks, failure]))

    def frames(word: str) -> list[bytes]:
        made = sw.convert(body(word), source="chat", target=target, seed="s")
        lines = made.splitlines()  # splits at more line separators than SSE has, as some readers do
        assert made.decode().splitlines() == [line.decode() for line in lines]
        return [line[:16] if line.startswith(b"event") else line[:5] for line in lines]

    assert frames(EVIL) == frames("tame")


def test_a_loss_that_is_a_fault_stands_where_it_happened() -> None:
    """A payload is held while the dialect is unknown. The second event has two documents, which identify the dialect,
    so the held payload is decoded while that event is processed.
    """
    body = b'data: {"x":1}\n\ndata: {"choices":[{"delta":{"content":"a"}}]}\ndata: [DONE]\n\n'
    policy = sw.Policy("salvage", actions={"not_carried": "raise"})
    converter = sw.StreamConverter(target="anthropic", policy=policy)
    assert converter.feed(body).startswith(b"event: error\n")
    assert converter.error is not None
    assert (converter.error.rule, converter.error.detail) == ("not_carried", "unknown")
    assert (converter.error.event_ordinal, converter.error.raw) == (0, b'{"x":1}')


def test_a_loss_that_is_a_fault_is_raised_where_it_came() -> None:
    """The loss is raised at the event that causes it, even if that event resembles the previous one."""
    frames = [
        chunk({"content": "n"}, index=1),
        call(0, "", "g", ""),
        call(0, "", "f", "{"),
        call(0, "", "f", "}"),
        end(),
    ]
    policy = sw.Policy(actions={"not_carried": "raise"})
    converter = sw.StreamConverter(target="responses", source="chat", seed="s", policy=policy)
    converter.feed(b"".join(frames))
    error = converter.error
    assert error is not None
    assert (error.rule, error.detail) == ("not_carried", "choices")
    assert (error.event_ordinal, error.byte_offset) == (2, len(b"".join(frames[:2])))
    assert error.raw == frames[2][len("data: ") :].strip()
