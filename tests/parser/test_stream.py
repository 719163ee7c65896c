"""StreamParser and parse: accepted input, results, and the state after an exception."""

from __future__ import annotations

import gc
import io
import re
import sys
import threading
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import pytest
from streamweld import errors, stream
from streamweld.errors import ParserBusy, StreamError, TruncatedStream, UnknownDialect, UpstreamError, UsageError
from streamweld.events import Diagnostic, TextDelta, TextDone
from streamweld.options import Limits, Policy
from streamweld.stream import StreamParser, parse
from streamweld.testing import Text, build

from tests.support.servers.wire import DONE, call, end, event, text

BODY = text("Hel") + text("lo") + call(0, "call_1", "f", '{"a":') + call(0, None, None, "1}") + end()
CUT = text("Hel") + call(0, "call_1", "f", '{"a":')
BROKEN = text("Hel") + text("lo") + event("{nonsense")


@pytest.fixture(autouse=True)
def _chosen(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use this backend for all public functions."""
    monkeypatch.setattr(stream, "backend", backend)


# Input


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: memoryview(b"x" + data + b"y")[1:-1]])
def test_what_can_be_fed(kind: Any) -> None:
    parser = StreamParser()
    events = parser.feed(kind(BODY))
    assert events
    parser.close()
    assert parser.response.text == "Hello"
    assert parse(kind(BODY)) == parser.response


@pytest.mark.parametrize("data", ["text", None, 1, [1, 2], object(), memoryview(BODY)[::2]])
def test_what_cannot_be_fed(data: Any) -> None:
    parser = StreamParser()
    with pytest.raises(TypeError, match="a stream is read from"):
        parser.feed(data)
    with pytest.raises(TypeError, match="a stream is read from"):
        parse(data)
    parser.feed(BODY)
    parser.close()
    assert parser.response.text == "Hello"


@pytest.mark.parametrize(
    ("data", "remedy"),
    [
        (Path("sample.sse"), "not from PosixPath: pass the result of .read_bytes()"),
        (io.BytesIO(BODY), "not from BytesIO: pass the result of .read() (open the file in mode 'rb')"),
        ([BODY], "not from list: iter_events() reads a source of several chunks"),
        (iter([BODY]), "iter_events() reads a source of several chunks"),
    ],
)
def test_what_cannot_be_fed_is_named_with_a_remedy(data: Any, remedy: str) -> None:
    with pytest.raises(TypeError, match=re.escape(remedy)):
        parse(data)


def test_a_mapped_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.sse").write_bytes(BODY)
    with (tmp_path / "a.sse").open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as mapped:
        assert parse(mapped).text == "Hello"


def test_a_buffer_may_be_used_again() -> None:
    buffer = bytearray(64)
    parser = StreamParser()
    for at in range(0, len(BODY), 64):
        piece = BODY[at : at + 64]
        buffer[: len(piece)] = piece
        parser.feed(memoryview(buffer)[: len(piece)])
        buffer[:] = b"\xff" * 64
    parser.close()
    assert parser.response == parse(BODY)


def test_nothing_can_be_fed() -> None:
    parser = StreamParser()
    assert parser.feed(b"") == []
    with pytest.raises(TruncatedStream) as raised:
        parser.close()
    assert raised.value.where == "empty"
    with pytest.raises(TruncatedStream):
        parse(b"")


# Results


def test_state_under_way(backend: str) -> None:
    parser = StreamParser()
    assert (parser.dialect, parser.diagnostics, parser.response.completeness) == (None, (), "open")
    assert repr(parser) == f"StreamParser(dialect=None, backend={backend!r})"
    parser.feed(CUT)
    assert parser.dialect == "chat"
    before = parser.response
    assert (before.text, before.completeness, before.finish_reason) == ("Hel", "open", None)
    assert [c.state for c in before.tool_calls] == ["open"]
    assert before.dispatchable_calls == ()
    with pytest.raises(errors.ArgumentsError, match="still open"):
        before.tool_calls[0].parsed  # noqa: B018
    parser.feed(call(0, None, None, "1}") + end())
    parser.close()
    assert before.text == "Hel"
    assert [c.state for c in before.tool_calls] == ["open"]
    assert parser.response.dispatchable_calls[0].parsed == {"a": 1}
    assert parser.response is not parser.response
    assert parser.response == parser.response


def test_the_block_closes() -> None:
    with StreamParser() as parser:
        parser.feed(BODY.removesuffix(DONE))
    assert parser.response.completeness == "assumed"
    assert parser.close() == []


def test_the_block_raises_what_close_raises() -> None:
    with pytest.raises(TruncatedStream) as raised, StreamParser() as parser:
        parser.feed(CUT)
    assert raised.value.where == "mid_arguments"
    assert raised.value.partial is not None
    assert raised.value.partial.text == "Hel"


@pytest.mark.parametrize(
    ("dialect", "early"),
    [("chat", "complete"), ("responses", "complete"), ("anthropic", "complete"), ("gemini", "open")],
)
def test_the_terminal_marker_completes_the_response_before_the_input_ends(dialect: Any, early: str) -> None:
    parser = StreamParser()
    body = build(dialect, [Text("Hi")]).body
    parser.feed(body[:-40])
    assert parser.response.completeness == "open"
    parser.feed(body[-40:])
    assert parser.response.completeness == early  # Gemini has no terminal marker
    parser.close()
    assert parser.response.completeness == "complete"


def test_an_exception_in_the_block_does_not_close() -> None:
    parser = StreamParser()
    with pytest.raises(KeyError, match="mine"), parser:
        raise KeyError("mine")
    parser.feed(CUT)
    assert parser.response.completeness == "open"
    parser.feed(call(0, None, None, "1}") + end())
    parser.close()
    assert parser.response.completeness == "complete"


# Exceptions


@pytest.mark.parametrize(
    ("body", "options", "error", "rule"),
    [
        (BROKEN, {}, errors.ChunkDecodeError, "malformed_json"),
        (text("Hello") + event({"error": {"message": "no", "code": 429}}), {}, UpstreamError, "upstream_error"),
        (text("Hello") + b"data: " + b"x" * 199, {"limits": Limits(max_event_bytes=160)}, errors.LimitExceeded, None),
        (text("Hello") + call(-2, "a", "f", "{}"), {"policy": "strict"}, errors.InvalidToolIndex, "index_unusable"),
    ],
)
def test_a_fault_in_feed(body: bytes, options: dict[str, Any], error: type[StreamError], rule: str) -> None:
    parser = StreamParser(**options)
    with pytest.raises(error) as raised:
        parser.feed(body)
    fault = raised.value
    assert fault.rule == (rule or "limit_max_event_bytes")
    assert fault.policy == options.get("policy", "standard")
    assert fault.byte_offset is not None
    assert fault.event_ordinal is not None
    assert "".join([e.text for e in fault.events if isinstance(e, TextDelta)]) == "Hello"
    assert fault.partial == parser.response
    assert fault.partial.text == "Hello"
    assert fault.partial.completeness == "truncated"
    with pytest.raises(UsageError):
        parser.feed(text("more"))
    with pytest.raises(UsageError):
        parser.feed(b"")
    assert parser.close() == []
    assert parser.close() == []
    assert parser.response.text == "Hello"
    assert isinstance(parser.diagnostics, tuple)
    assert parser.dialect == "chat"
    with pytest.raises(error) as again:
        parse(body, **options)
    assert again.value.partial == fault.partial
    assert str(again.value) == str(fault)
    assert again.value.events == []


def test_after_close() -> None:
    parser = StreamParser()
    parser.feed(BODY)
    parser.close()
    assert parser.close() == []
    with pytest.raises(UsageError, match="close"):
        parser.feed(b"")
    assert parser.response.text == "Hello"


def test_a_cut_is_raised_once_and_after_the_events() -> None:
    parser = StreamParser()
    parser.feed(CUT)
    with pytest.raises(TruncatedStream) as raised:
        parser.close()
    fault = raised.value
    assert [e.type for e in fault.events if not isinstance(e, Diagnostic)][-1] == "tool_call"
    assert fault.retryable is True
    assert parser.close() == []
    assert parser.response.completeness == "truncated"
    assert [c.state for c in parser.response.tool_calls] == ["incomplete"]
    assert parser.response.dispatchable_calls == ()


def test_a_broken_transport_cuts_what_its_marker_did_not_end() -> None:
    parser = StreamParser(policy=Policy(missing_terminal="assume"))
    parser.feed(BODY.removesuffix(DONE))
    with pytest.raises(TruncatedStream) as raised:
        parser.close(broken=True)
    assert (raised.value.where, raised.value.open_items) == ("transport", ())
    assert "the connection broke" in str(raised.value)
    assert parser.close(broken=True) == []
    response = parser.response
    assert (response.completeness, response.finish_reason) == ("truncated", "tool_calls")
    assert [c.state for c in response.tool_calls] == ["complete"]  # the choice of this call had ended
    parser = StreamParser()
    parser.feed(BODY)
    parser.close(broken=True)
    assert parser.response.completeness == "complete"


def test_salvage_reports_a_cut_as_data() -> None:
    response = parse(CUT, policy="salvage")
    assert response.completeness == "truncated"
    assert [d.code for d in response.diagnostics] == ["truncated"]
    assert parse(CUT, policy=Policy("standard", actions={"truncated": "diagnose"})) == response


def test_every_cut_gives_the_same_events() -> None:
    def all_of(pieces: list[bytes]) -> tuple[list[Any], str, Any]:
        parser = StreamParser()
        events: list[Any] = []
        try:
            for piece in pieces:
                events += parser.feed(piece)
            events += parser.close()
        except StreamError as fault:
            return events + fault.events, str(fault), fault.partial
        return events, "", parser.response

    for body in (BODY, CUT, BROKEN):
        whole = all_of([body])
        for at in range(len(body)):
            assert all_of([body[:at], body[at:]]) == whole


def parsers_alive() -> int:
    return sum(isinstance(thing, StreamParser) for thing in gc.get_objects())


def test_a_fault_holds_no_parser() -> None:
    """The exception contains only plain data. As for every exception, only its traceback refers to the parser."""

    gc.collect()
    before = parsers_alive()  # objects that other tests hold

    def fault() -> StreamError:
        parser = StreamParser()
        with pytest.raises(StreamError) as raised:
            parser.feed(BROKEN)
        return raised.value

    kept = fault()
    link: BaseException | None = kept
    while link is not None:
        link.__traceback__ = None
        link = link.__context__
    gc.collect()
    assert parsers_alive() == before
    assert kept.partial is not None


@pytest.mark.parametrize("body", [BODY, CUT, BROKEN])
def test_a_parser_is_freed_without_the_collector(body: bytes) -> None:
    gc.collect()
    before = parsers_alive()
    gc.disable()
    try:
        parser = StreamParser()
        try:
            parser.feed(body)
            parser.close()
        except StreamError:
            pass
        del parser
        assert parsers_alive() == before
    finally:
        gc.enable()


# Options


@pytest.mark.parametrize(
    "options",
    [
        {"dialect": "chatt"},
        {"dialect": "openai"},
        {"policy": "lenient"},
        {"limits": {"max_events": 5}},
        {"tools": "f"},
        {"known_call_ids": "call_1"},
        {"seed": "no spaces"},
    ],
)
def test_options_that_cannot_be(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(options))):
        StreamParser(**options)
    with pytest.raises(UsageError, match=next(iter(options))):
        parse(b"", **options)
    with pytest.raises(TypeError):
        StreamParser("chat")  # type: ignore[misc]
    with pytest.raises(TypeError, match="colour"):
        StreamParser(colour="red")  # type: ignore[call-arg]


def test_options_reach_the_backend() -> None:
    nameless = call(0, None, "f", '{"a":1}') + end()
    assert parse(nameless, seed="abc").tool_calls[0].call_id == "call_abc_0"
    assert parse(BODY, known_call_ids=["call_1"]).tool_calls[0].call_id == "call_1__2"
    cut_name = call(0, "c", "get_wea", '{"a":') + call(0, None, "ther", "1}") + end()
    assert parse(cut_name, tools=["get_weather"]).tool_calls[0].name == "get_weather"
    definition = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
    assert parse(cut_name, tools=[definition]).tool_calls[0].name == "get_weather"
    think = text("<think>hm</think>hi", "stop") + DONE
    assert parse(think).text == "<think>hm</think>hi"
    assert parse(think, policy=Policy(inline_reasoning=True)).reasoning == "hm"
    with pytest.raises(errors.NotAnEventStream) as raised:
        parse(b"<html>", content_type="text/html")
    assert raised.value.content_type == "text/html"


def test_auto_says_what_it_saw() -> None:
    with pytest.raises(UnknownDialect) as raised:
        parse(event({"type": "greeting", "words": {}}))
    assert raised.value.seen == ("type", "words")
    with pytest.raises(UnknownDialect):
        parse(event({"type": "ping"}))


# parse()


def test_parse_is_feed_without_events() -> None:
    parser = StreamParser()
    events = parser.feed(BODY) + parser.close()
    response = parse(BODY)
    assert response == parser.response
    assert [e.text for e in events if isinstance(e, TextDone)] == [response.text]
    assert parse(BODY.removesuffix(DONE)).completeness == "assumed"


# Threads


def test_a_parser_may_move_between_threads() -> None:
    parser = StreamParser()
    for at in range(0, len(BODY), 10):
        thread = threading.Thread(target=parser.feed, args=(BODY[at : at + 10],))
        thread.start()
        thread.join()
    parser.close()
    assert parser.response == parse(BODY)


def test_overlapping_calls(backend: str) -> None:
    """Each call runs alone or raises ParserBusy. The native `feed` holds the GIL, so ParserBusy occurs only in a
    free-threaded interpreter.
    """
    interval = sys.getswitchinterval()
    parser = StreamParser()
    big = text("x") * 3_000
    done = threading.Event()
    seen: list[Exception] = []

    def feed() -> None:
        try:
            parser.feed(big)
        finally:
            done.set()

    thread = threading.Thread(target=feed)
    sys.setswitchinterval(1e-5)
    try:
        thread.start()
        while not done.is_set():
            for act in (lambda: parser.feed(b""), lambda: parser.response):
                try:
                    act()
                except ParserBusy as busy:
                    seen.append(busy)
    finally:
        sys.setswitchinterval(interval)
        thread.join()
    parser.feed(end("stop"))
    parser.close()
    assert parser.response.text == "x" * 3_000
    assert all(isinstance(busy, RuntimeError) for busy in seen)
    if backend == "pure":
        assert seen


@pytest.mark.parametrize("broken", [False, True])
def test_what_is_said_after_the_end(broken: bool) -> None:
    parser = StreamParser()
    if broken:
        with pytest.raises(StreamError):
            parser.feed(b"data: {\n\n")
    else:
        parser.feed(BODY)
        parser.close()
    with pytest.raises(UsageError) as reported:
        parser.feed(b"")
    assert str(reported.value) == "the parser accepts no input after close() or an exception"


def test_a_buffer_that_was_released() -> None:
    view = memoryview(BODY)
    view.release()
    with pytest.raises(TypeError, match="not from memoryview"):
        StreamParser().feed(view)


def test_two_parsers_do_not_know_each_other() -> None:
    one, other = StreamParser(), StreamParser()
    for at in range(0, len(BODY), 7):
        one.feed(BODY[at : at + 7])
        other.feed(BODY[at : at + 7])
    one.close()
    other.feed(b"")
    assert one.response.completeness == "complete"
    assert other.response.text == one.response.text
