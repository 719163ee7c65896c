"""The public interface of repair: when output is emitted, options, iterators, endings. Vectors test its bytes."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw
from streamweld.errors import LimitExceeded, NotAnEventStream, TruncatedStream, UpstreamError

from tests.support.backends import using
from tests.support.load.linear import assert_linear
from tests.support.servers.wire import DONE, call, chunk, end, event, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

CLEAN = text("Hello") + call(0, "call_1", "f", "") + call(0, arguments='{"a":1}') + end()
SICK = text("Hello") + call(0, "call_1", "f", "") + call(0, "call_1", "", '{"a":1}') + end()
FAILED = text("Hel") + event({"error": {"message": "slow down"}})


@pytest.fixture(autouse=True)
def with_backend(backend: str) -> Iterator[None]:
    with using(backend):
        yield


def repair(body: bytes, **options: Any) -> tuple[bytes, sw.StreamConverter]:
    converter = sw.StreamConverter(**{"target": "same", "source": "chat", "seed": "s", **options})
    return converter.feed(body) + converter.close(), converter


def arguments(made: bytes) -> list[tuple[str, str, str]]:
    return [(c.call_id, c.name, c.arguments) for c in sw.parse(made).tool_calls]


@pytest.mark.parametrize(
    "options",
    [
        {"target": "same", "source": "chat"},
        {"target": "chat", "source": "chat"},
        {"target": "same", "source": "auto"},
        {"target": "chat", "source": "auto"},
    ],
)
def test_all_ways_to_ask_for_it(options: dict[str, Any]) -> None:
    made, converter = repair(CLEAN, **options)
    assert (made, converter.repaired, converter.error) == (CLEAN, False, None)
    assert (converter.dialect, converter.response.text) == ("chat", "Hello")
    made, converter = repair(SICK, **options)
    assert converter.repaired
    assert made.startswith(text("Hello"))
    assert arguments(made) == [("call_1", "f", '{"a":1}')]
    pieces = [SICK[at : at + 7] for at in range(0, len(SICK), 7)]
    assert b"".join(sw.iter_convert(pieces, **{"seed": "s", **options})) == made
    assert sw.convert(SICK, **{"seed": "s", **options}) == made


def test_another_dialect_is_converted_as_ever() -> None:
    converter = sw.StreamConverter(target="gemini", seed="s")
    assert b'"functionCall"' in converter.feed(SICK) + converter.close()
    assert converter.repaired is False


def test_the_dialect_may_take_several_payloads_to_show() -> None:
    # The first payload does not identify the dialect, and clients of the later detected dialect reject it.
    body = event({"id": "x"}) + event({"id": "x", "object": "chat.completion.chunk", "choices": []}) + CLEAN
    for target in ("same", "chat"):
        converter = sw.StreamConverter(target=target, seed="s")  # type: ignore[arg-type]
        made = b"".join([converter.feed(body[at : at + 1]) for at in range(len(body))]) + converter.close()
        assert event({"id": "x"}) not in made
        assert text("Hello") in made
        assert arguments(made) == [("call_1", "f", '{"a":1}')]
        assert [(d.code, d.detail) for d in converter.diagnostics] == [("rewritten", "no_choices")]


def test_nothing_is_kept_behind_the_end_of_a_body_of_no_dialect() -> None:
    converter = sw.StreamConverter(target="chat", limits=sw.Limits(max_event_bytes=1_000))
    converter.feed(b"data: " + b"x" * 2_000)
    assert isinstance(converter.error, LimitExceeded)
    tracemalloc.start()
    for _ in range(50):
        converter.feed(bytes(100_000))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1_000_000


@pytest.mark.parametrize("before", ["event: x\n", "id: 3\n", "retry: 3\n", "x\n", ": c\n"])
def test_a_payload_on_a_line_of_its_own_does_not_count_toward_its_block(before: str) -> None:
    """The payload is complete at the end of its line, so that it is parsed before the bytes after it arrive."""
    payload = '{"choices":[{"index":0,"delta":{"content":"hi"}}],"pad":"' + "p" * 600_000 + '"}\n'
    body = f"{before}{payload}data: x".encode()
    made, converter = repair(body, limits=sw.Limits(max_event_bytes=len(body) - 1))
    assert isinstance(converter.error, TruncatedStream)
    assert b'"content":"hi"' in made


def test_what_passes_is_handed_out_at_once() -> None:
    converter = sw.StreamConverter(target="same", source="chat")
    for block in (text("a"), b": keep-alive\n\n", text("b").replace(b"\n", b"\r\n"), text("c").replace(b"\n", b"\r")):
        assert converter.feed(block[:-1]) in (b"", block[:-1])
        assert converter.feed(block[-1:]) in (block, block[-1:])


def test_a_header_waits_for_its_first_argument_and_no_longer() -> None:
    converter = sw.StreamConverter(target="same", source="chat")
    head, piece = call(0, "call_1", "f", ""), call(0, arguments="{")
    assert converter.feed(head) == b""
    assert converter.feed(b": keep-alive\n\n") == b""
    assert converter.feed(piece) == head + b": keep-alive\n\n" + piece
    assert converter.feed(text("x")) == text("x")


def test_comments_pass_before_the_dialect_is_known() -> None:
    converter = sw.StreamConverter(target="same")
    assert converter.feed(b": hi\n\n") == b": hi\n\n"


def test_arguments_can_be_held() -> None:
    converter = sw.StreamConverter(target="same", source="chat", hold_arguments=True)
    made = [converter.feed(block + b"\n\n") for block in CLEAN.split(b"\n\n")[:-1]]
    assert made == [text("Hello"), b"", b"", b"", CLEAN.removeprefix(text("Hello"))]
    assert converter.close() == b""


def test_a_fault_ends_the_answer_honestly() -> None:
    for cut in range(1, len(CLEAN) - len(DONE) - 60):
        made, converter = repair(CLEAN[:cut])
        assert isinstance(converter.error, TruncatedStream)
        assert converter.repaired
        assert made.count(b'"error"') == 1
        assert b"[DONE]" not in made
        assert converter.feed  # the converter can still be accessed after its end
    made, converter = repair(text("a") * 9, limits=sw.Limits(max_text_bytes=4))
    assert isinstance(converter.error, LimitExceeded)
    assert made.startswith(text("a") * 4 + b'data: {"error"')


def test_no_dialect_no_ending() -> None:
    made, converter = repair(b"<html>busy</html>", source="auto")
    assert (made, type(converter.error)) == (b"", NotAnEventStream)
    made, converter = repair(b"<html>busy</html>")
    assert made.startswith(b'data: {"error"')
    made, converter = repair(b"", source="auto")
    assert (made, type(converter.error)) == (b"", TruncatedStream)
    words = event("upstream connect error")
    made, converter = repair(words, source="auto")
    assert (made, type(converter.error)) == (words, UpstreamError)
    made, converter = repair(b'{"error":{"message":"no","type":"x"}}', source="auto")
    assert made == event({"error": {"message": "no", "type": "x", "code": "upstream_error"}})


@pytest.mark.parametrize("step", [1, 2, 100])
def test_the_line_feed_of_a_dropped_block_goes_with_it(step: int) -> None:
    """The block before it is held, because `[DONE]` alone does not identify the dialect."""
    converter = sw.StreamConverter(target="same", source="auto")
    body = b"data: [DONE]\n\nevent: x\n\r\n"
    made = b"".join(converter.feed(body[at : at + step]) for at in range(0, len(body), step))
    assert made + converter.close() == b"data: [DONE]\n\n"


def test_behind_an_error_of_the_upstream_no_success_passes() -> None:
    tail = b": c\n\n" + end("stop")
    made, converter = repair(FAILED + tail)
    assert made == FAILED + b": c\n\n" + DONE
    assert (converter.repaired, type(converter.error)) == (False, UpstreamError)
    pieces = sw.iter_convert([FAILED, tail, b": late\n\n"], target="same", source="chat")
    assert b"".join(pieces) == FAILED + b": c\n\n" + DONE + b": late\n\n"
    with pytest.raises(UpstreamError):
        sw.convert(FAILED, target="same", raise_on_error=True)


def test_async_source() -> None:
    async def source() -> AsyncIterator[bytes]:
        for at in range(0, len(SICK), 5):
            yield SICK[at : at + 5]

    async def run() -> bytes:
        return b"".join([piece async for piece in sw.aconvert(source(), target="same", seed="s")])

    assert asyncio.run(run()) == repair(SICK)[0]


def test_the_iterators_say_it_as_well() -> None:
    for body, repaired in ((CLEAN, False), (SICK, True)):
        pieces = sw.iter_convert([body], target="same")
        assert pieces.repaired is False
        assert (b"".join(pieces) != body, pieces.repaired) == (repaired, repaired)


def test_a_strict_policy_ends_where_it_raises() -> None:
    made, converter = repair(
        text("a") + call(0, "c", "f", '{"a":1}') + call(0, "d", arguments="{") + end(), policy="strict"
    )
    assert converter.error is not None
    assert b'"error"' in made
    assert b"[DONE]" not in made


def test_known_ids_of_earlier_turns_are_made_unique() -> None:
    made, converter = repair(CLEAN, known_call_ids=["call_1"])
    assert converter.repaired
    assert arguments(made) == [("call_1__2", "f", '{"a":1}')]


def test_half_a_character_is_held_with_its_block() -> None:
    halves = chunk({"content": "\ud83d"}) + chunk({"content": "\ude00"}) + end("stop")
    joined = repair(halves)[0]
    assert sw.parse(joined).text == "\U0001f600"
    assert b'\\ud83d"' not in joined  # a Python client would store each half as a character of its own
    alone = chunk({"content": "\ud83d"}) + text("b") + end("stop")
    made, converter = repair(alone)
    assert converter.repaired
    assert sw.parse(made).text == "\ufffdb"
    assert b"\\ud83d" not in made


@pytest.mark.parametrize("sick", [False, True])
def test_many_pieces_cost_no_more_than_their_length(sick: bool) -> None:
    def body(size: int) -> bytes:
        head = call(0, "call_1", "f", "[")
        again = "call_1" if sick else None
        return text("x" * 20) * (size // 300) + head + call(0, again, arguments="1, ") * (size // 300) + end()

    def new() -> Any:
        return sw.StreamConverter(target="same", source="chat", seed="s").feed

    assert_linear(new, body, 1_000)


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b'data: {data:{"choices":[{"index":{},"delta":{"content":"a"}}]}\n\n', '{data:{"choices":[{"index":{}'),
        (b'{"usage":{}}\n{"choices":[{"index":{},"delta":{"content":"a"}}]}\n', '{"choices":[{"index":{}'),
        (b'data: {"id":"x"}\n\ndata: {data:{"choices":[{"index":{},"delta":{"content":"a"}}]}\n\n', "{data:"),
    ],
    ids=["dialect-told-by-the-ladder", "the-second-of-several-lines", "the-first-waited"],
)
def test_what_is_raised_shows_the_payload_that_brought_it(body: bytes, shown: str) -> None:
    _, converter = repair(body, source="auto", policy=sw.Policy(actions={"not_carried": "raise"}))
    assert converter.error is not None
    assert converter.error.rule == "not_carried"
    assert converter.error.raw.startswith(shown.encode())


START = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant",'
    b'"model":"c","content":[],"usage":{"input_tokens":1,"output_tokens":0}}}\n\n'
)
DATA = b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}'


@pytest.mark.parametrize(
    ("sent", "passed"),
    [
        (DATA + b"\n\n", DATA + b"\nevent: content_block_start\n\n"),
        (DATA + b"\r\r", DATA + b"\revent: content_block_start\r\r"),
        (DATA + b"\n\r\n", DATA + b"\nevent: content_block_start\n\r\n"),
        (DATA + b"\r\n\n", DATA + b"\r\nevent: content_block_start\r\n\n"),
        (DATA + b"\revent: x\n\n", DATA + b"\revent: content_block_start\n\n"),
        (
            b"event\r\nevent:x\reventual\n" + DATA + b"\r\n\r",
            b"eventual\n" + DATA + b"\r\nevent: content_block_start\r\n\r",
        ),
        (b"event: content_block_start\nevent: x\n" + DATA + b"\n\n", DATA + b"\nevent: content_block_start\n\n"),
        (b"event: x\nevent: content_block_start\n" + DATA + b"\n\n", None),
    ],
)
def test_a_name_is_put_in_between_any_line_ends(sent: bytes, passed: bytes | None) -> None:
    for cut in range(len(sent) + 1):
        converter = sw.StreamConverter(target="same", source="anthropic")
        made = converter.feed(START) + converter.feed(sent[:cut]) + converter.feed(sent[cut:])
        assert made == START + (sent if passed is None else passed), cut
        assert converter.repaired == (passed is not None)


def test_where_a_name_that_is_put_in_is_a_fault() -> None:
    policy = sw.Policy("standard", actions={"rewritten": "raise"})
    made, converter = repair(START + DATA + b"\n\n", source="anthropic", policy=policy)
    assert made.startswith(START + b"event: content_block_start\n")
    assert b"event: error\n" in made
    assert converter.error is not None
    assert (converter.error.rule, converter.error.detail, converter.is_over) == ("rewritten", "event_name", True)


def test_a_contradicting_finish_reason_passes_and_is_corrected_in_a_rewritten_stream() -> None:
    """The texts of `finish_contradicts` and of the reason `finish_missing` describe this."""

    def finish(made: bytes) -> str | None:
        return sw.parse(made).raw_finish_reason

    for body, corrected in ((CLEAN, "tool_calls"), (text("Hello") + end(), "stop")):
        wrong = "stop" if corrected == "tool_calls" else "tool_calls"
        sent = body.replace(f'"finish_reason":"{corrected}"'.encode(), f'"finish_reason":"{wrong}"'.encode())
        sent = sent if finish(sent) == wrong else text("Hello") + chunk({}, wrong) + DONE
        made, converter = repair(sent)
        assert (sw.parse(sent).finish_reason, [found.code for found in converter.diagnostics]) == (
            corrected,
            ["finish_contradicts"],
        )
        assert (made == sent, converter.repaired, finish(made)) == (True, False, wrong)
    rewritten, converter = repair(SICK.replace(b'"tool_calls"}', b'"stop"}'))
    assert converter.repaired
    assert finish(rewritten) == "tool_calls"
    assert converter.diagnostics[-1].message.endswith("`repair` alone does not change it: stop")
    without = repair(CLEAN.replace(b'"finish_reason":"tool_calls"', b'"finish_reason":null'))
    assert finish(without[0]) == "tool_calls"
    assert [(found.code, found.detail) for found in without[1].diagnostics if found.code == "rewritten"] == [
        ("rewritten", "finish_missing")
    ]
