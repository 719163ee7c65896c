"""Joining a truncated stream and a reconnect: all truncations and overlaps, and streams that do not match."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw
from streamweld.errors import LimitExceeded, SpliceError, UsageError

from tests.support.backends import using
from tests.support.corpus import absent, recordings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


def sse(*payloads: Any, name: bool = False, ids: bool = False, end: str = "\n") -> list[bytes]:
    """Return events as a server sends them; a string is a verbatim block."""
    blocks = []
    for number, payload in enumerate(payloads):
        if isinstance(payload, str):
            blocks.append(payload.encode())
            continue
        lines = [f"event: {payload['type']}"] if name else []
        lines += [f"id: {number + 7}"] if ids else []
        blocks.append(end.join([*lines, f"data: {json.dumps(payload, ensure_ascii=False)}", "", ""]).encode())
    return blocks


def delta(text: str, **more: Any) -> dict[str, Any]:
    return {"id": "c1", "choices": [{"index": 0, "delta": {"content": text, **more}}]}


RESPONSES = sse(
    *({"type": "t", "sequence_number": n, "delta": text} for n, text in enumerate(["", "a", "a", "é", "x: y"])),
    name=True,
)
WITH_IDS = sse(*(delta("a") for _ in range(4)), ids=True, end="\r\n")
CHAT = sse(delta("", role="assistant"), delta("a"), ": keep-alive\n\n", delta("a"), delta("data: "), "data: [DONE]\n\n")
MESSAGES = sse(
    {"type": "message_start", "message": {"id": "m"}},
    "event: ping\ndata: {}\n\n",
    {"type": "content_block_delta", "index": 0, "delta": {"text": "a"}},
    {"type": "content_block_delta", "index": 0, "delta": {"text": "a"}},
    {"type": "message_stop"},
    name=True,
)
GEMINI = sse(*({"candidates": [{"content": {"parts": [{"text": text}]}}]} for text in "abb"), end="\r\n")
UI = sse({"type": "start"}, *({"type": "text-delta", "id": "0", "delta": "é"} for _ in range(3)), "data: [DONE]\n\n")
MARKED = {"responses": RESPONSES, "ids": WITH_IDS}
UNMARKED = {"chat": CHAT, "messages": MESSAGES, "gemini": GEMINI, "ui": UI}


def is_event(block: bytes) -> bool:
    return not block.startswith((b":", b"event: ping"))


def cuts(blocks: list[bytes]) -> Iterator[tuple[bytes, bytes, list[int]]]:
    """Yield each truncation: the stream, its first part, and the positions of the events with which a reconnect may
    start.
    """
    stream = b"".join(blocks)
    starts = [len(b"".join(blocks[:place])) for place, block in enumerate(blocks) if is_event(block)]
    # The CR of the last CRLF completes an event.
    ends = [
        len(b"".join(blocks[: place + 1])) - block.endswith(b"\r\n")
        for place, block in enumerate(blocks)
        if is_event(block)
    ]
    for cut in range(len(stream) + 1):
        complete = sum(end <= cut for end in ends)
        yield stream, stream[:cut], [*starts, len(stream)][: complete + 1]


def joined_or_rule(first: bytes, second: bytes) -> bytes | str:
    """Return the joined stream, or the rule of the exception."""
    try:
        return sw.splice(first, second)
    except SpliceError as fault:
        return fault.rule


def events_of(body: bytes) -> list[bytes]:
    """Return the payloads without keep-alives. Keep-alives may be missing if a reconnect starts after them."""
    return [frame.data.encode() for frame in sw.sse.iter_frames([body]) if frame.event != "ping"]


@pytest.mark.parametrize("name", MARKED)
def test_numbered_streams_join_at_every_cut_and_overlap(backend: str, name: str) -> None:
    tried = 0
    with using(backend):
        for stream, first, starts in cuts(MARKED[name]):
            for start in starts:
                assert sw.splice(first, stream[start:]) == stream, (len(first), start)
                tried += 1
    assert tried > 700


@pytest.mark.parametrize("name", MARKED | UNMARKED)
def test_a_replay_joins_at_every_cut(backend: str, name: str) -> None:
    with using(backend):
        for stream, first, _ in cuts((MARKED | UNMARKED)[name]):
            assert sw.splice(first, stream) == stream, len(first)
            assert sw.splice(first, stream, second_starts="first_event") == stream, len(first)


@pytest.mark.parametrize("name", MARKED | UNMARKED)
def test_the_next_byte_joins_at_every_cut(name: str) -> None:
    blocks = (MARKED | UNMARKED)[name]
    refused = set()
    for stream, first, _ in cuts(blocks):
        second = stream[len(first) :]
        assert sw.splice(first, second, second_starts="next_byte") == stream
        joined = joined_or_rule(first, second)
        assert joined in (stream, "splice_ambiguous"), len(first)
        if joined != stream:
            refused.add(len(first))
    # Without numbers and ids, a position between two events or within a keep-alive cannot be determined.
    places = {0: 0}
    for place, block in enumerate(blocks):
        end = len(b"".join(blocks[: place + 1]))
        places |= dict.fromkeys((end,) if is_event(block) else range(end - len(block), end + 1), 0)
    assert refused <= (places.keys() if name in UNMARKED else set())


@pytest.mark.parametrize("name", UNMARKED)
def test_an_overlap_that_is_stated_joins_at_every_cut(name: str) -> None:
    for stream, first, starts in cuts(UNMARKED[name]):
        for number, start in enumerate(starts):
            joined = sw.splice(first, stream[start:], second_starts=number)
            assert events_of(joined) == events_of(stream), (len(first), number)
        joined = sw.splice(first, stream[starts[-1] :], second_starts="next_event")
        assert events_of(joined) == events_of(stream), len(first)


@pytest.mark.parametrize("name", UNMARKED)
def test_an_overlap_without_marks_is_never_guessed(name: str) -> None:
    refused = 0
    for stream, first, starts in cuts(UNMARKED[name]):
        for start in starts[1:]:
            joined = joined_or_rule(first, stream[start:])
            assert joined in (stream, "splice_ambiguous"), (len(first), start)
            refused += joined != stream
    assert refused > 100


def test_reads_of_any_size_join_the_same() -> None:
    for stream, first, starts in cuts(MESSAGES):
        if len(first) % 7:
            continue
        splicer = sw.StreamSplicer(first)
        joined = b"".join([splicer.feed(stream[place : place + 1]) for place in range(len(stream))])
        assert joined + splicer.close() == stream
        assert splicer.close() == b""
        assert starts


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
def test_blank_lines_in_reads_of_any_size_join_the_same(line_end: bytes) -> None:
    """A chunk of blank lines contains as many blocks as lines."""
    event = b'data: {"sequence_number":%d}' + 2 * line_end
    stream = b"".join([event % 0, 9 * line_end, event % 1, 30 * line_end, event % 2])
    for cut in range(len(event) - 2, len(stream)):
        for start in (0, stream.index(event % 1)):
            if start > cut - len(event):
                continue
            second = stream[start:]
            whole = sw.splice(stream[:cut], second)
            assert events_of(whole) == events_of(stream)
            for size in (1, 2, 7):
                splicer = sw.StreamSplicer(stream[:cut])
                reads = [second[place : place + size] for place in range(0, len(second), size)]
                assert b"".join([splicer.feed(read) for read in reads]) + splicer.close() == whole, (cut, start, size)


def test_a_truncated_second_stream_loses_nothing_of_the_first() -> None:
    for stream, first, starts in cuts(RESPONSES):
        if len(first) % 5:
            continue
        for start in starts:
            for end in range(start, len(stream), 11):
                joined = sw.splice(first, stream[start:end])
                assert stream.startswith(joined)
                assert len(joined) >= len(first)
                assert sw.splice(joined, stream) == stream


def test_three_connections_give_one_stream() -> None:
    stream = b"".join(RESPONSES)
    two = sw.splice(stream[:120], stream[len(RESPONSES[0]) : 260])
    assert sw.splice(two, b"".join(RESPONSES[3:])) == stream


@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [
        pytest.param(RESPONSES[:2], RESPONSES[3:], "splice_gap", id="gap"),
        pytest.param(WITH_IDS[:2], WITH_IDS[3:], "splice_gap", id="gap-of-ids"),
        pytest.param([], RESPONSES[3:], "splice_gap", id="gap-at-the-start"),
        pytest.param(
            RESPONSES[:3], [RESPONSES[1].replace(b'"a"', b'"b"')], "splice_other_stream", id="other-text-of-a-number"
        ),
        pytest.param(CHAT[:2], [CHAT[0], CHAT[4]], "splice_other_stream", id="other-answer"),
        pytest.param([*CHAT[:1], CHAT[1][:-5]], [CHAT[0], CHAT[4]], "splice_other_stream", id="other-tail"),
        pytest.param([CHAT[0][:30]], MESSAGES, "splice_other_stream", id="other-dialect"),
        pytest.param(CHAT[:2], [b"choices: 1}\n\n", *CHAT], "splice_other_stream", id="middle-of-a-line"),
        pytest.param(CHAT[:2], [CHAT[1]], "splice_ambiguous", id="no-position"),
        pytest.param(CHAT[:2], sse(delta("a") | {"id": "c2"}), "splice_other_stream", id="another-chat-response"),
        pytest.param(
            sse(*[{"responseId": "r1", "candidates": [{"index": n}]} for n in range(2)]),
            sse({"responseId": "r2", "candidates": [{"index": 0}]}),
            "splice_other_stream",
            id="another-gemini-response",
        ),
        pytest.param(
            [GEMINI[1], GEMINI[1]], [GEMINI[1], GEMINI[1], GEMINI[0]], "splice_ambiguous", id="repeats-itself"
        ),
    ],
)
def test_what_does_not_belong_together_raises(first: list[bytes], second: list[bytes], rule: str) -> None:
    with pytest.raises(SpliceError) as caught:
        sw.splice(b"".join(first) or b": nothing\n\n", b"".join(second))
    assert caught.value.rule == rule
    parser = sw.StreamParser(policy="salvage")
    with contextlib.suppress(sw.StreamError):
        parser.feed(b"".join(first) or b": nothing\n\n")
        parser.close()
    assert caught.value.partial is not None
    assert caught.value.partial.choices == parser.response.choices


PLAIN = "text that is not an event stream"
PAGES = {
    "json": (b'{"error":{"message":"Rate limit reached","code":429}}', "an error as JSON: Rate limit reached"),
    "json with a line end": (b'{"error":{"message":"Rate limit reached"}}\n', "an error as JSON: Rate limit reached"),
    "json and a blank line": (
        b'{"error":{"message":"Rate limit reached"}}\n\n',
        "an error as JSON: Rate limit reached",
    ),
    "pretty json": (b'{\n  "error": {\n    "message": "overloaded"\n  }\n}\n', "an error as JSON: overloaded"),
    "json array": (b'[{"error":{"code":500,"message":"internal"}}]', "an error as JSON: internal"),
    "detail": (b'{"detail":"Not found","status":404}', "an error as JSON: Not found"),
    "html": (b"<!DOCTYPE html>\n<html><body>\n<h1>502</h1>\n</body></html>\n", "a page of HTML or XML"),
    "html with blank lines": (b"\n<html>\n\n<body>\n\n502</body>\n\n</html>", "a page of HTML or XML"),
    "xml": (b"<?xml version='1.0'?><Error><Code>SlowDown</Code></Error>", "a page of HTML or XML"),
    "json with blank lines": (b'{\n\n  "error": {\n\n "message": "overloaded"}\n}\n', PLAIN),
    "text": (b"Internal Server Error", PLAIN),
    "text with a line end": (b"404 page not found\n", PLAIN),
    "text with a blank line": (b"upstream connect error or disconnect\r\n\r\n", PLAIN),
    "text after blank lines": (b"\n\n502 Bad Gateway\n\nnginx\n", PLAIN),
}


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("starts", ["auto", "first_event", "next_event", 1])
def test_an_error_page_instead_of_the_second_stream_raises(name: str, starts: Any, backend: str) -> None:
    page, detail = PAGES[name]
    for blocks in (CHAT, RESPONSES):
        stream = b"".join(blocks)
        for cut in range(len(b"".join(blocks[:2])), len(stream), 17):
            for size in (1, 7, len(page)):
                reads = [page[place : place + size] for place in range(0, len(page), size)]
                joined = sw.iter_splice(stream[:cut], reads, second_starts=starts)
                with using(backend), pytest.raises(SpliceError) as caught:
                    next(joined)
                fault = caught.value
                if fault.rule == "splice_other_stream":
                    # After a complete event, the text may as well be the rest of a line of another stream.
                    assert detail == PLAIN
                    assert stream[:cut].endswith(b"\n\n")
                    continue
                assert (fault.rule, fault.detail) == ("splice_error_page", detail), (cut, size)
    with using(backend), pytest.raises(sw.StreamError) as read:
        sw.parse(stream[:cut])
    assert fault.partial is not None
    assert read.value.partial is not None
    assert fault.partial.choices == read.value.partial.choices


@pytest.mark.parametrize("second", [b"no healthy upstream\n\n", b"{\n\n}", b"Service Unavailable", b"x\n\ny\n\n"])
def test_text_is_not_joined_to_a_line_that_was_cut(second: bytes, backend: str) -> None:
    """In every line of an event: inside a field name, an event name, an id, and a JSON string."""
    event = b'event: delta\nid: 7\ndata: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n'
    first = CHAT[0] + event
    for cut in range(len(CHAT[0]) + 1, len(first) - 2):
        for size in (1, len(second)):
            reads = [second[place : place + size] for place in range(0, len(second), size)]
            with using(backend), pytest.raises(SpliceError) as caught:
                list(sw.iter_splice(first[:cut], reads))
            assert caught.value.rule == "splice_error_page", cut
            assert caught.value.partial is not None


def test_a_continuation_that_looks_like_a_page_joins() -> None:
    """The second stream begins like an error page; the joined event proves that it is not one."""
    chat = b'data: {"choices":[{"index":0,"delta":{"content":"<html><body>x</body></html>"}}]}\n\n'
    error = b'data: {"error":{"message":"overloaded"}}\n\n'
    for event, begin in ((chat, b"<html>"), (error, b'{"error"')):
        stream = CHAT[0] + event
        cut = stream.index(begin)
        assert sw.splice(stream[:cut], stream[cut:]) == stream


def test_padding_and_spacing_may_differ_and_the_first_wins() -> None:
    first = b'data: {"sequence_number":0,"obfuscation":"x"}\n\n'
    second = b'data: {"obfuscation":"yy", "sequence_number": 0}\n\ndata: {"sequence_number":1}\n\n'
    assert sw.splice(first, second) == first + b'data: {"sequence_number":1}\n\n'


@pytest.mark.parametrize("values", [8190, 8200, 20_000])
def test_an_event_with_very_many_values_is_joined_by_its_number(values: int) -> None:
    """Such an event is compared without parsing it."""
    nested = {"type": "inner", "sequence_number": 7, "text": 'a "quoted" { text', "list": list(range(values))}
    events = sse(
        {"type": "t", "sequence_number": 0},
        {"nested": [nested], "type": "t\u00e9", "sequence_number": 1},
        {"type": "t", "sequence_number": 2},
    )
    whole = b"".join(events)
    for start in (0, 1, 2):
        for at in range(len(whole) - len(events[2]), len(whole), 7):
            assert sw.splice(whole[:at], b"".join(events[start:])) == whole
    other = events[1].replace(b"quoted", b"Quoted")
    with pytest.raises(SpliceError, match="splice_other_stream"):
        sw.splice(whole[:-5], other + events[2])


@pytest.mark.parametrize("size", [10, 16_290, 16_300, 40_000])
def test_a_long_event_may_be_spelled_differently(size: int) -> None:
    """Long events are not parsed, and short ones are. A payload may be short in one stream and long in the other."""
    payload = {"a": ["x" * size, 1.50, -0, True], "obfuscation": "p", "b": {"c": "\u00e9\U0001f600\n", "d": None}}
    first = f"data: {json.dumps(payload)}\n\n".encode()
    for spelled in (
        json.dumps(payload | {"obfuscation": "q"}, sort_keys=True, ensure_ascii=False),
        json.dumps(payload, indent=2).replace("\n", "\ndata: "),
        json.dumps(payload, separators=(",", ":")).replace("1.5", "1.500"),
    ):
        assert sw.splice(first, f"data: {spelled}\n\ndata: 1\n\n".encode()) == first + b"data: 1\n\n"
    for other in (
        json.dumps(payload | {"b": {"c": "\u00e9\U0001f601\n", "d": None}}),
        json.dumps(payload | {"a": ["x" * size, -0, 1.5, True]}),
        json.dumps(payload)[:-1] + "]",
    ):
        with pytest.raises(SpliceError):
            sw.splice(first, f"data: {other}\n\ndata: 1\n\n".encode())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (b'event: x\ndata: ["a', b"nt: ping\ndata: {}\n{"),
        (b'data: ["a', b" x\ndata: {}\n"),
        (b'data: {"a":1}\n\nevent: x', b"y z\ndata: 1\ndata: {}\n"),
    ],
)
def test_a_second_stream_without_a_blank_line_is_examined(first: bytes, second: bytes) -> None:
    """The first line continues a line that was cut, and the rest looks like an event without its blank line."""
    assert joined_or_rule(first, second) in {"splice_error_page", "splice_other_stream", "splice_ambiguous"}


@pytest.mark.parametrize("line", [b": ping\n\n", b"\n", b"event: y\n\n"])
def test_a_cut_comment_that_is_never_followed_by_an_event_is_bounded(line: bytes) -> None:
    splicer = sw.StreamSplicer(b": pi", limits=sw.Limits(max_event_bytes=1000))
    splicer.feed(b"ng\n\n")
    with pytest.raises(LimitExceeded):
        splicer.feed(line * 80_000)


def test_an_event_that_lacked_its_blank_line_counts_when_the_server_counts_it() -> None:
    first = b"".join(RESPONSES[:2]) + RESPONSES[2].rstrip(b"\n")
    assert sw.splice(first, b"".join(RESPONSES[3:])) == b"".join(RESPONSES)


def test_a_json_body_joins_only_a_replay() -> None:
    body = b'[{"candidates":[1]},\n{"candidates":[2]}]'
    assert sw.splice(body[:20], body) == body
    assert sw.splice(body, body[:20]) == body
    assert sw.splice(body[:20], body[20:], second_starts="next_byte") == body
    with pytest.raises(SpliceError):
        sw.splice(body[:20], b'[{"candidates":[3]}]')
    with pytest.raises(UsageError):
        sw.splice(body[:20], body, second_starts="next_event")


def test_options_and_order_of_calls_are_checked() -> None:
    first = b"".join(CHAT[:2])
    for wrong in (-1, 3, True, "nowhere"):
        with pytest.raises(UsageError):
            sw.StreamSplicer(first, second_starts=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        sw.splice(first, "data: 1\n\n")  # type: ignore[arg-type]
    splicer = sw.StreamSplicer(first)
    with pytest.raises(SpliceError):
        splicer.feed(CHAT[1])
    with pytest.raises(UsageError):
        splicer.feed(CHAT[1])
    assert splicer.close() == b""


def test_a_second_stream_without_events_is_bounded() -> None:
    limits = sw.Limits(max_event_bytes=1000, max_field_bytes=1000)
    splicer = sw.StreamSplicer(b"".join(RESPONSES[:2]), limits=limits)
    assert splicer.feed(b"data: " + b"x" * 900) == b""
    with pytest.raises(LimitExceeded):
        splicer.feed(b"x" * 1200)
    splicer = sw.StreamSplicer(b"".join(RESPONSES[:2]), limits=limits)
    tracemalloc.start()
    for _ in range(12_500):
        assert splicer.feed(b": ping\n\n") == b""
    kept = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert kept < 100_000
    assert splicer.feed(RESPONSES[2]).endswith(RESPONSES[2])


def test_an_empty_first_stream_adds_nothing() -> None:
    for second in (b"", b"".join(CHAT), b'[{"candidates":[1]},\n\n{"candidates":[2]}]'):
        assert sw.splice(b"", second) == second


def test_iterators_join_and_close_their_source() -> None:
    stream = b"".join(CHAT)
    closed = []

    class Pieces:
        def __iter__(self) -> Iterator[bytes]:
            yield from (stream[place : place + 10] for place in range(0, len(stream), 10))

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in self:
                yield piece

        def close(self) -> None:
            closed.append(1)

    async def joined() -> bytes:
        return b"".join([piece async for piece in sw.asplice(stream[:70], Pieces())])

    assert b"".join(sw.iter_splice(stream[:70], Pieces())) == stream
    assert asyncio.run(joined()) == stream
    with pytest.raises(SpliceError):
        list(sw.iter_splice(b"".join(MESSAGES[:3]), Pieces()))
    assert closed == [1, 1, 1]


@pytest.mark.parametrize("folder", ["chat", "responses", "anthropic", "gemini", "aisdk-ui", "aisdk-parts"])
def test_replays_of_recorded_streams(folder: str, full: bool) -> None:
    if absent():
        pytest.skip(str(absent()))
    # If the first line starts with a space, it is not a field, so a replay cannot be recognized by its first event.
    found = [r for r in recordings(folder) if len(r.body) < 20_000 and not r.body.startswith(b" ")]
    for recording in found[:: 5 if full else 25]:
        stream = recording.body
        for cut in range(0, len(stream) + 1, max(1, len(stream) // 12)):
            joined = joined_or_rule(stream[:cut], stream)
            assert joined in (stream, "splice_ambiguous"), (recording.name, cut)
            if joined != stream:
                assert len(set(events_of(stream))) < len(events_of(stream)), recording.name
    assert found


# Inputs for the decision about a retry.

START = b'data: {"choices":[{"index":0,"delta":{"role":"assistant"}}]}\n\n'
TEXT = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n'
CALL = (
    b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"f",'
    b'"arguments":"{\\"a\\":"}}]}}]}\n\n'
)
BLOCK = (
    b'data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"f",'
    b'"input":{}}}\n\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta",'
    b'"partial_json":"{}"}}\n\n'
)
BLOCK_END = b'data: {"type":"content_block_stop","index":0}\n\n'
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize(
    ("body", "dialect", "verdict"),
    [
        pytest.param(b"", "auto", "nothing_emitted", id="empty"),
        pytest.param(START, "chat", "nothing_emitted", id="role-only"),
        pytest.param(START + TEXT, "chat", "text_only", id="text"),
        pytest.param(START + TEXT + CALL, "chat", "call_open", id="chat-call-closes-at-the-end"),
        pytest.param(BLOCK, "anthropic", "call_open", id="open-block"),
        pytest.param(BLOCK + BLOCK_END, "anthropic", "call_complete", id="closed-block"),
    ],
)
def test_the_verdict_on_a_retry(backend: str, body: bytes, dialect: Any, verdict: str) -> None:
    with using(backend):
        with pytest.raises(sw.TruncatedStream) as caught:
            sw.parse(body, dialect=dialect)
        assert caught.value.partial is not None
        assert caught.value.partial.retry_verdict == verdict


def test_a_whole_response_has_no_verdict_and_a_broken_one_has(backend: str) -> None:
    with using(backend):
        assert sw.parse(START + TEXT + END).retry_verdict is None
        parser = sw.StreamParser(dialect="chat")
        parser.feed(START + CALL)
        assert parser.response.retry_verdict == "call_open"
        with pytest.raises(sw.UpstreamError) as caught:
            parser.feed(b'data: {"error":{"message":"overloaded"}}\n\n')
        assert caught.value.partial is not None
        assert caught.value.partial.retry_verdict == "call_open"
