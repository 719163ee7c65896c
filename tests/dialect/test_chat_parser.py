"""From bytes to the decoder: the effects of policy options, the salvage of broken payloads, and the parser."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from streamweld._pure.pipeline.parser import Parser as PureParser
from streamweld.errors import (
    ChunkDecodeError,
    LimitExceeded,
    NotAnEventStream,
    ParserBusy,
    TruncatedStream,
    UpstreamError,
    UsageError,
)
from streamweld.options import to_config

from tests.support.backends import make_parser
from tests.support.expect import calm, raised, said
from tests.support.harness import bytewise, difference, read
from tests.support.servers.wire import DONE, call, chunk, end, event, text

HE = text("he")
Y = text("y", "stop")


class TestSwitches:
    def test_restart_under_a_new_id(self, backend: str) -> None:
        body = [
            chunk({"role": "assistant", "content": "Once up"}, id="A"),
            chunk({"role": "assistant", "content": "Once upon"}, id="B"),
            chunk({"content": " a time"}, "stop", id="B"),
            DONE,
        ]
        assert read(backend, body).response.text == "Once upOnce upon a time"
        outcome = read(backend, body, {"policy": {"restart_on_new_stream_id": True}})
        assert outcome.response.text == "Once upon a time"
        said(outcome, "stream_restarted", len(body[0]), 1)

    def test_duplicate_payloads(self, backend: str) -> None:
        body = [text("ha"), text("ha"), text("ha"), Y, DONE]
        assert read(backend, body).response.text == "hahahay"
        outcome = read(backend, body, {"policy": {"duplicate_payload": "drop"}})
        assert outcome.response.text == "hay"
        assert [d.code for d in outcome.diagnostics] == ["duplicate_payload"] * 2


class TestLadder:
    TAIL = HE[6:-2]

    def test_a_tail_brings_no_call_and_no_reasoning(self, backend: str) -> None:
        tail = {
            "id": "evil",
            "choices": [
                {
                    "index": 0,
                    "delta": {
                        "content": "he",
                        "reasoning": "r",
                        "tool_calls": [{"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"}}],
                    },
                }
            ],
            "usage": {"prompt_tokens": 1},
        }
        outcome = read(backend, [b'data: {"choices":[{"del data: ' + event(tail)[6:], Y, DONE])
        assert (outcome.response.text, outcome.response.reasoning, outcome.response.tool_calls) == ("hey", "", ())
        assert (outcome.response.id, outcome.response.finish_reason) == (None, "stop")
        assert outcome.response.usage is not None
        said(outcome, "recovered_tail", 0, 0)

    def test_many_tails_cost_little(self, backend: str) -> None:
        raised(
            read(backend, [HE, b"data: {" + b"data: {" * 20_000 + b"\n\n"]),
            ChunkDecodeError,
            "malformed_json",
            len(HE),
            1,
        )

    def test_rungs(self, backend: str) -> None:
        head = b'data: {"choices":[{"index":0,"delta":{"content":"h'
        cut = head + b'\ndata: e"}}]}\n\n'
        assert said(outcome := read(backend, [cut, Y, DONE]), "lines_joined", 0, 0) is None
        assert outcome.response.text == "hey"
        several = HE[:-1] + b": c\n" + b"data: null\n" + Y[:-1] + DONE
        outcome = read(backend, [several])
        assert (outcome.response.text, outcome.response.completeness) == ("hey", "complete")
        assert [d.detail for d in outcome.diagnostics if d.code == "json_lines"] == ["2"]

    def test_an_unfinished_event_may_hold_whole_lines(self, backend: str) -> None:
        outcome = read(backend, [HE[:-1] + Y[:-1] + b"data: [DONE]"])
        assert (outcome.response.text, outcome.response.completeness) == ("hey", "complete")
        assert {"unterminated_event", "json_lines"} <= outcome.codes


class TestParser:
    def test_what_feed_takes(self, backend: str) -> None:
        for kind in (bytes, bytearray, memoryview):
            parser = make_parser(backend)
            assert [e.type for e in parser.feed(kind(HE))][-1] == "text_delta"
        parser = make_parser(backend)
        for wrong in ("data", None, 5, memoryview(b"abcdef")[::2]):
            with pytest.raises(TypeError):
                parser.feed(wrong)  # type: ignore[arg-type]
        assert [e.type for e in parser.feed(HE)][-1] == "text_delta"

    def test_nothing_is_fed_after_the_end_or_a_fault(self, backend: str) -> None:
        parser = make_parser(backend)
        parser.feed(HE + Y + DONE)
        assert parser.close() == []
        with pytest.raises(UsageError):
            parser.feed(b"")
        assert parser.close() == []
        parser = make_parser(backend)
        with pytest.raises(ChunkDecodeError) as fault:
            parser.feed(HE + b"data: {oops\n\n" + Y)
        assert [e.type for e in fault.value.events][-1] == "text_delta"
        with pytest.raises(UsageError):
            parser.feed(Y)
        assert (parser.close(), parser.response.text) == ([], "he")

    def test_events_before_the_fault_do_not_depend_on_the_chunking(self, backend: str) -> None:
        body = HE + text("y") + b"data: {oops\n\n" + Y
        assert difference(read(backend, [body]).facts(), read(backend, bytewise(body)).facts()) is None

    def test_stream_and_event_caps(self, backend: str) -> None:
        for pieces in ([HE + Y + DONE], bytewise(HE + Y + DONE)):
            outcome = read(backend, pieces, {"limits": {"max_stream_bytes": len(HE) + 10}})
            assert isinstance(outcome.error, LimitExceeded)
            assert (outcome.error.rule, outcome.error.observed) == ("limit_max_stream_bytes", len(HE) + 11)
            assert outcome.response.text == "he"
            outcome = read(backend, pieces, {"limits": {"max_events": 1}})
            raised(outcome, LimitExceeded, "limit_max_events", len(HE), 1)

    def test_a_snapshot_changes_nothing(self, backend: str) -> None:
        body = HE + call(0, "a", "f", '{"n":1}') + chunk({"reasoning": "r"}) + end()
        parser = make_parser(backend)
        events: list[Any] = []
        for count, byte in enumerate(bytewise(body), 1):
            events += parser.feed(byte)
            assert parser.response.completeness == ("complete" if count == len(body) else "open")
        events += parser.close()
        assert events == read(backend, [body]).events

    def test_two_calls_at_a_time(self, backend: str) -> None:
        parser = make_parser(backend)
        body = text("x" * 50) * 20_000
        busy: list[BaseException] = []

        def other() -> None:
            for _ in range(2000):
                try:
                    parser.diagnostics  # noqa: B018
                    parser.response  # noqa: B018
                except ParserBusy as fault:
                    busy.append(fault)
                    return

        thread = threading.Thread(target=other)
        thread.start()
        try:
            parser.feed(body)
        except ParserBusy as fault:
            busy.append(fault)
        thread.join()
        assert all(isinstance(fault, UsageError) for fault in busy)

    def test_a_call_while_another_one_runs(self) -> None:
        parser = PureParser("chat", to_config())
        with parser._lock:
            for overlapping in (lambda: parser.feed(HE), lambda: parser.feed_silent(HE), parser.close, parser.snapshot):
                with pytest.raises(ParserBusy):
                    overlapping()
        assert [e.type for e in parser.feed(HE)][-1] == "text_delta"


class TestEnd:
    @pytest.mark.parametrize(
        ("body", "where"),
        [
            (b"", "empty"),
            (b": c\n\nevent: x\nid: 5\n\n", "empty"),
            (b"data:\n\nevent: ping\ndata: {}\n\ndata: null\n\n", "empty"),
            (b"da", "mid_event"),
            (b'{"choices":[{"mess', "mid_event"),
            (HE + b"data: {", "mid_event"),
            (HE + b": a comm", "mid_text"),
            (HE + b"data:\n", "mid_event"),
            (HE + b"event: ping\ndata: {", "mid_text"),
            (HE + b'data: {"\xe2\x82', "mid_utf8"),
            (call(0, "a", "f", '{"n":'), "mid_arguments"),
            (chunk({"role": "assistant"}), "between_events"),
        ],
    )
    def test_where_a_stream_was_cut(self, backend: str, body: bytes, where: str) -> None:
        error = raised(read(backend, [body]), TruncatedStream, "truncated", len(body))
        assert error.where == where

    def test_a_choice_that_was_announced_has_to_end(self, backend: str) -> None:
        two = event(
            {"choices": [{"index": 0, "delta": {"role": "assistant"}}, {"index": 1, "delta": {"role": "assistant"}}]}
        )
        outcome = read(backend, [two, Y])
        raised(outcome, TruncatedStream, "truncated", len(two + Y))
        outcome = read(backend, [chunk({"role": "assistant", "content": ""}), DONE])
        assert [(c.text, c.finish_reason) for c in outcome.response.choices] == [("", "stop")]

    def test_other_bodies_are_told_from_their_beginning(self, backend: str) -> None:
        page = b"\xef\xbb\xbf<html>\n<p>502</p>\n\n<hr>\n" + b"x" * 600
        plain = b"Internal Server Error\n" * 40
        for body in (page, plain, b"event: x\nGateway timeout\n", b"data:\n\n" + page[3:]):
            outcome = read(backend, [body])
            error = raised(outcome, NotAnEventStream, "not_an_event_stream", 0, 0)
            assert body.startswith(error.body_head)
            assert 0 < len(error.body_head) <= 512
            assert difference(outcome.facts(), read(backend, bytewise(body)).facts()) is None
        # In the middle of a stream, plain text is an error message of the gateway.
        assert type(read(backend, [HE, b"<html>\n\n"]).error).__name__ == "UpstreamError"

    def test_a_note_behind_the_marker_is_no_anomaly(self, backend: str) -> None:
        calm(outcome := read(backend, [HE, Y, DONE, event({"choices": [], "cost": "0"}), DONE], {"policy": "strict"}))
        assert outcome.events[-1].raw == b'{"choices":[],"cost":"0"}'
        said(read(backend, [Y, DONE, HE, HE]), "data_after_done", len(Y + DONE), 2)

    def test_an_error_event_need_not_be_json(self, backend: str) -> None:
        for policy in ("strict", "standard"):
            outcome = read(backend, [HE, b"event: error\ndata: [500] died\n\n"], {"policy": policy})
            error = raised(outcome, UpstreamError, "upstream_error", len(HE) + len(b"event: error\n"), 1)
            assert (error.message, error.event_type) == ("[500] died", "error")
