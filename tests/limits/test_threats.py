"""Rows A1 to A14, A18 and B of the threat list: class, rule and position of the exception, in both backends.

test_threats_calls.py tests the rows about calls; test_costs.py tests the cost in memory and time.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamweld.errors import (
    ChunkDecodeError,
    FramingError,
    LimitExceeded,
    NotAnEventStream,
    UpstreamError,
)

from tests.support.expect import calm, raised, said
from tests.support.harness import bytewise, difference, read
from tests.support.servers.wire import DONE, call, chunk, end, event, text

HE = text("he")
Y = text("y", "stop")


class TestFraming:
    def test_a1_line_without_end(self, backend: str) -> None:
        outcome = read(backend, [HE, b"data: ", *[b"x" * 100] * 20], {"limits": {"max_event_bytes": 1000}})
        error = raised(outcome, LimitExceeded, "limit_max_event_bytes", len(HE), 1)
        assert (error.limit_name, error.limit, error.observed) == ("max_event_bytes", 1000, 1001)
        assert outcome.response.text == "he"

    def test_a2_every_data_line_counts(self, backend: str) -> None:
        outcome = read(backend, [HE, b"data:\n" * 2000], {"limits": {"max_event_bytes": 1000}})
        raised(outcome, LimitExceeded, "limit_max_event_bytes", len(HE), 1)

    def test_a3_heartbeats_are_dropped(self, backend: str) -> None:
        outcome = read(backend, [b":" + b"x" * 50_000 + b"\n", b": hb\n\n" * 20_000, HE, b": hb\n", Y + DONE])
        calm(outcome)
        assert (outcome.response.text, outcome.diagnostics) == ("hey", [])

    def test_a4_unknown_fields_are_dropped(self, backend: str) -> None:
        calm(outcome := read(backend, [b"x" * 100_000 + b"\nfoo: bar\ndatax: 1\n", HE, Y + DONE]))
        assert outcome.response.text == "hey"

    @pytest.mark.parametrize("field", [b"event", b"id"])
    def test_a5_long_fields(self, backend: str, field: bytes) -> None:
        body = [HE, field + b": " + b"x" * 8192 + b"\n"]
        assert type(read(backend, [*body, Y, DONE]).error) is not LimitExceeded
        outcome = read(backend, [HE, field + b": " + b"x" * 8193])
        error = raised(outcome, LimitExceeded, "limit_max_field_bytes", len(HE), 1)
        assert error.observed == 8193

    def test_a6_one_byte_a_read(self, backend: str) -> None:
        body = (HE + b": c\n\n" + Y + DONE).replace(b"\n", b"\r\n")
        pieces = [p for byte in bytewise(body) for p in (byte, b"")]
        assert difference(read(backend, [body]).facts(), read(backend, pieces).facts()) is None

    def test_a7_dispatch_at_once(self, backend: str) -> None:
        from tests.support.backends import make_parser

        for line_end in (b"\n\n", b"\r\r", b"\r\n\r\n", b"\r\n\r", b"\n\r"):
            parser = make_parser(backend)
            events = parser.feed(HE.removesuffix(b"\n\n") + line_end)
            assert [type(e).__name__ for e in events][-1] == "TextDelta", line_end

    @pytest.mark.parametrize(
        ("sent", "shown"),
        [
            (b"\xff", "\ufffd"),
            (b"\xc0\x80", "\ufffd\ufffd"),
            (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
            (b"\xf5\x80\x80\x80", "\ufffd" * 4),
            (b"\xe2\x82", "\ufffd"),
            (b"\xf0\x9f\x98x", "\ufffdx"),
            (b"\xe2\x82\xe2\x82\xac", "\ufffd€"),
        ],
    )
    def test_a8_invalid_utf8(self, backend: str, sent: bytes, shown: str) -> None:
        bad = text("@", "stop").replace(b"@", sent)
        outcome = read(backend, [HE, bad, DONE])
        assert outcome.error is None
        assert outcome.response.text == "he" + shown
        said(outcome, "invalid_utf8", len(HE), 1)
        strict = read(backend, [HE, bad, DONE], {"policy": "strict"})
        raised(strict, FramingError, "invalid_utf8", len(HE), 1)

    def test_a8_line_end_after_a_cut_sequence(self, backend: str) -> None:
        outcome = read(backend, [b": \xe2\x82\n" + HE + Y + DONE])
        assert outcome.response.text == "hey"

    def test_a9_one_byte_order_mark(self, backend: str) -> None:
        bom = b"\xef\xbb\xbf"
        for pieces in ([bom + HE], [b"", bom, HE], [b"\xef", b"\xbb", b"", b"\xbf" + HE]):
            calm(outcome := read(backend, [*pieces, Y + DONE]))
            assert outcome.response.text == "hey"
        assert read(backend, [bom + bom + HE + Y + DONE]).response.text == "y"

    def test_a10_nul(self, backend: str) -> None:
        outcome = read(backend, [b"event: a\x00b\nid: 1\x002\n" + HE, Y + DONE])
        assert outcome.response.text == "hey"
        raw_nul = HE.replace(b"he", b"h\x00e")
        raised(read(backend, [Y, raw_nul]), ChunkDecodeError, "malformed_json", len(Y), 1)
        escaped = HE.replace(b"he", b"h\\u0000e")
        assert read(backend, [escaped, end("stop")]).response.text == "h\x00e"

    def test_a11_no_line_ends_but_three(self, backend: str) -> None:
        for separator in ("\u2028", "\u2029", "\u0085", "\x7f"):
            body = HE.replace(b"he", f"a{separator}b".encode()) + end("stop")
            calm(outcome := read(backend, [body]))
            assert outcome.response.text == f"a{separator}b"
        for control in ("\x0b", "\x0c", "\x1c"):
            body = HE.replace(b"he", f"a{control}b".encode())
            raised(read(backend, [body]), ChunkDecodeError, "malformed_json", 0, 0)

    def test_a12_retry(self, backend: str) -> None:
        for value in (b"-1", b"+5", b"1_000", b" 5", b"\xd9\xa5", b"9" * 5000, b"", b"10"):
            calm(outcome := read(backend, [b"retry: " + value + b"\n" + HE, Y + DONE]))
            assert outcome.response.text == "hey"

    def test_a13_second_line_is_never_a_call_of_its_own(self, backend: str) -> None:
        evil = call(0, "x", "delete_all", "{}")[6:-2]
        body = b'data: {"t":"a\ndata: ' + evil + b"\n\n"
        for policy in ("strict", "standard", "salvage"):
            outcome = read(backend, [HE, body, DONE], {"policy": policy})
            assert outcome.response.tool_calls == ()
            if policy == "strict":
                raised(outcome, ChunkDecodeError, "malformed_json", len(HE), 1)
            assert outcome.error is not None or {d.severity for d in outcome.diagnostics} & {"warning", "error"}
        raised(
            read(backend, [HE, b'data: {"t":"a\ndata: {"evil":1}\n\n']), ChunkDecodeError, "malformed_json", len(HE), 1
        )

    def test_a14_text_in_is_text_out(self, backend: str) -> None:
        trap = 'x\n\ndata: {"choices":[{"index":0,"delta":{"content":"evil"}}]}\n\ndata: [DONE]\n\n'
        calm(outcome := read(backend, [text(trap), text(trap, "stop") + DONE]))
        assert outcome.response.text == trap * 2

    def test_a15_other_bodies(self, backend: str) -> None:
        page = b"<!DOCTYPE html>\n<html><body>502 Bad Gateway</body></html>\n"
        error = raised(read(backend, [page], {"content_type": "text/html"}), NotAnEventStream, "not_an_event_stream", 0)
        assert (error.body_head, error.content_type) == (page, "text/html")
        gzip = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + bytes(range(128, 256)) * 8
        error = raised(read(backend, [gzip]), NotAnEventStream, "not_an_event_stream", 0)
        assert error.body_head == gzip[:512]
        outcome = read(backend, [b'{"error":{"message":"no","type":"t","code":"c"}}'])
        assert raised(outcome, UpstreamError, "upstream_error", 0, 0).message == "no"
        lines = b"".join(part[6:-1] for part in (HE, Y))
        outcome = read(backend, [lines])
        assert (outcome.response.text, outcome.error) == ("hey", None)
        said(outcome, "json_lines_body", 0, 0)

    def test_a18_the_marker(self, backend: str) -> None:
        for tail in (b"data: [DONE]", b"data: [DONE]\n"):
            outcome = read(backend, [HE, Y, tail])
            assert (outcome.response.completeness, outcome.error) == ("complete", None)
            said(outcome, "unterminated_event")
        assert read(backend, [HE, Y, b"data:   [DONE] \t\n\n"]).response.completeness == "complete"
        outcome = read(backend, [HE, Y, b"data: [DONE] not really\n\n"])
        raised(outcome, ChunkDecodeError, "malformed_json", len(HE + Y), 2)
        late = len(HE + Y + DONE)
        outcome = read(backend, [HE, Y, DONE, text("evil"), call(0, "x", "f", "{}"), b"data: {oops\n\n"])
        assert (outcome.response.text, outcome.response.tool_calls, outcome.error) == ("hey", (), None)
        said(outcome, "data_after_done", late, 3)
        assert [d.code for d in outcome.diagnostics].count("data_after_done") == 1


class TestJson:
    def test_b1_depth_bombs(self, backend: str) -> None:
        for bomb in (b"[" * 100_000, b'{"a":' * 100_000, b'{"choices":[],"x":' + b"[" * 100_000):
            error = raised(
                read(backend, [HE, b"data: " + bomb + b"\n\n"]), LimitExceeded, "limit_max_json_depth", len(HE), 1
            )
            assert (error.limit, error.observed) == (128, 129)

    def test_b1_depth_is_counted_exactly(self, backend: str) -> None:
        for depth, fine in ((128, True), (129, False)):
            nested = b"[" * (depth - 1) + b"]" * (depth - 1)
            body = (
                b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"x":'
                + nested
                + b"}\n\n"
            )
            outcome = read(backend, [body + DONE])
            assert (outcome.error is None) == fine

    def test_b1_the_cap_can_only_be_lowered(self, backend: str) -> None:
        bomb = HE + b'data: {"choices":[],"x":' + b"[" * 200 + b"]" * 200 + b"}\n\n"
        for limit in (128, 500, None):
            outcome = read(backend, [bomb], {"limits": {"max_json_depth": limit}})
            error = raised(outcome, LimitExceeded, "limit_max_json_depth", len(HE), 1)
            assert (error.limit, error.observed) == (128, 129)
        outcome = read(backend, [bomb], {"limits": {"max_json_depth": 127}})
        assert raised(outcome, LimitExceeded, "limit_max_json_depth", len(HE), 1).limit == 127

    def test_b2_nesting_below_the_cap(self, backend: str) -> None:
        payload = b'{"a":' * 126 + b"1" + b"}" * 126
        outcome = read(backend, [HE, b"data: " + payload + b"\n\n", Y + DONE])
        assert outcome.error is None
        assert [e.raw for e in outcome.events if type(e).__name__ == "Unknown"] == [payload]

    def test_b3_the_last_of_two_keys_wins(self, backend: str) -> None:
        two = call(1, "b", "g", "1}").replace(b'"index":1,', b'"index":0,"index":1,')
        outcome = read(backend, [call(0, "a", "f", "{}"), call(1, "b", "g", '{"n":'), two, end()])
        assert [(c.call_id, c.arguments) for c in outcome.response.tool_calls] == [("a", "{}"), ("b", '{"n":1}')]
        said(outcome, "duplicate_key", len(call(0, "a", "f", "{}") + call(1, "b", "g", '{"n":')), 2)
        body = b'data: {"error":null,"error":{"message":"m"}}\n\n'
        assert raised(read(backend, [HE, body]), UpstreamError, "upstream_error", len(HE), 1).message == "m"
        assert read(backend, [b'data: {"error":{"message":"m"},"error":null,' + Y[7:], DONE]).error is None

    def test_b4_numbers(self, backend: str) -> None:
        number = b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"n":@}\n\n'
        for value in (b"18446744073709551616", b"-9223372036854775809", b"9" * 5000):
            outcome = read(backend, [number.replace(b"@", value), DONE])
            assert (outcome.error, outcome.response.text) == (None, "x")
            said(outcome, "numeric_overflow", 0, 0)
        for value in (b"18446744073709551615", b"-9223372036854775808", b"1e308", b"-0", b"1E2"):
            assert read(backend, [number.replace(b"@", value), DONE]).diagnostics == []
        for value in (b"1e999", b"NaN", b"Infinity", b"01", b"1.", b".5", b"+1", b"0x1", b"1_0"):
            raised(read(backend, [HE, number.replace(b"@", value)]), ChunkDecodeError, "malformed_json", len(HE), 1)

    def test_b5_surrogates(self, backend: str) -> None:
        def piece(escaped: bytes, finish: str | None = None) -> bytes:
            return text("@", finish).replace(b"@", escaped)

        calm(outcome := read(backend, [piece(b"\\ud83d"), piece(b"\\ude00", "stop"), DONE]))
        assert outcome.response.text == "\U0001f600"
        for body, shown in (
            ([piece(b"\\ud83dx"), piece(b"\\ude00", "stop")], "\ufffdx\ufffd"),
            ([piece(b"\\udc00\\ud800", "stop")], "\ufffd\ufffd"),
            ([piece(b"a\\ud800", "stop")], "a\ufffd"),
            ([piece(b"\\ud800"), chunk({"reasoning_content": "r"}), piece(b"\\udc00", "stop")], "\ufffd\ufffd"),
        ):
            outcome = read(backend, [*body, DONE])
            outcome.response.text.encode()
            assert outcome.response.text in (shown, "\U00010000")
            said(outcome, "lone_surrogate") if outcome.response.text == shown else None
        arguments = '{"s":"\\ud800"}'
        outcome = read(backend, [call(0, "a", "f", arguments), end()])
        (only,) = outcome.response.tool_calls
        assert (only.arguments, only.parsed) == (arguments, {"s": "\ufffd"})

    def test_b6_control_characters(self, backend: str) -> None:
        outcome = read(backend, [call(0, "a", "f", '{"s":"\\u0000"}'), end()])
        assert outcome.response.dispatchable_calls[0].parsed == {"s": "\x00"}
        for call_id, name, reason in (
            ("a\x00", "f", "bad_id"),
            ("a\n", "f", "bad_id"),
            ("a", "f\x00", "bad_name"),
            ("a", "f\ng", "bad_name"),
        ):
            (only,) = read(backend, [call(0, call_id, name, "{}"), end()]).response.tool_calls
            assert (only.state, only.reason, only.dispatchable) == ("invalid", reason, False)

    def test_b7_text_is_capped(self, backend: str) -> None:
        frames = [
            chunk({"content": "\x00" * 40}, index=0),
            chunk({"reasoning_content": "x" * 40}),
            chunk({"content": "é" * 20}),
        ]
        outcome = read(backend, frames, {"limits": {"max_text_bytes": 100}})
        raised(outcome, LimitExceeded, "limit_max_text_bytes", len(frames[0] + frames[1]), 2)

    @pytest.mark.parametrize(
        "payload",
        [
            {"choices": {}},
            {"choices": "x"},
            {"choices": [None]},
            {"choices": [[]]},
            {"choices": [{"index": 0, "delta": []}]},
            {"choices": [{"index": 0, "delta": {"content": 5}}]},
            {"choices": [{"index": 0, "delta": {"tool_calls": "x"}}]},
            {"choices": [{"index": 0, "delta": {"tool_calls": ["x"]}}]},
            {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": "x"}]}}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": 5}]},
            {"choices": [], "usage": "x"},
        ],
        ids=json.dumps,
    )
    def test_b9_wrong_types(self, backend: str, payload: Any) -> None:
        self.check_wrong_type(backend, payload, "hey")

    def test_b9_text_in_place_of_an_object(self, backend: str) -> None:
        self.check_wrong_type(backend, {"choices": [{"index": 0, "delta": "x"}]}, "hexy")

    def check_wrong_type(self, backend: str, payload: Any, text: str) -> None:
        outcome = read(backend, [HE, event(payload), Y + DONE])
        assert (outcome.error, outcome.response.text) == (None, text)
        said(outcome, "shape", len(HE), 1)
        strict = read(backend, [HE, event(payload), Y + DONE], {"policy": "strict"})
        raised(strict, ChunkDecodeError, "shape", len(HE), 1)

    @pytest.mark.parametrize(
        ("payload", "message"),
        [
            ({"object": "error", "message": "m"}, "m"),
            ({"error": "m"}, "m"),
            ({"error": {"message": "m"}}, "m"),
            ({"error": {"message": {"a": [1]}}}, '{"a":[1]}'),
            ({"error": {"error": {"message": "m"}}}, None),
            ({"error": 500}, "500"),
            ({"error": True}, None),
            ({"error": []}, None),
            ({"error": {}}, None),
            ({"message": "m", "code": 429}, "m"),
            ({"message": "m", "type": "t"}, "m"),
        ],
        ids=str,
    )
    def test_b10_errors_of_any_shape(self, backend: str, payload: Any, message: str | None) -> None:
        error = raised(read(backend, [HE, event(payload)]), UpstreamError, "upstream_error", len(HE), 1)
        assert isinstance(error.message, str)
        if message is not None:
            assert error.message == message
        assert error.raw == event(payload)[6:-2][:256]

    def test_b11_glued_documents(self, backend: str) -> None:
        one = HE[6:-2]
        for glue in (b"", b" "):
            raised(
                read(backend, [b"data: " + glue.join([one] * 3) + b"\n\n"]), ChunkDecodeError, "malformed_json", 0, 0
            )
        outcome = read(backend, [b"".join(b"data: " + one + b"\n" for _ in range(3)) + b"\n", end("stop")])
        assert outcome.response.text == "hehehe"
        said(outcome, "json_lines", 0, 0)

    def test_b12_names_that_mean_something_elsewhere(self, backend: str) -> None:
        payload: dict[str, Any] = {
            "__proto__": {"x": 1},
            "__class__": "X",
            "lc": 2,
            "type": "constructor",
            "id": ["langchain"],
            "kwargs": {"a": 1},
        }
        outcome = read(backend, [chunk({"content": "he", **payload}, **{**payload, "id": "c"}), Y + DONE])
        assert (outcome.error, outcome.response.text) == (None, "hey")
        arguments = json.dumps(payload)
        outcome = read(backend, [call(0, "a", "f", arguments), end()])
        assert outcome.response.tool_calls[0].parsed == payload
