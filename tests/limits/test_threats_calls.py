"""Rows C of the threat list: invalid tool calls that must never be dispatched, in both backends."""

from __future__ import annotations

from typing import Any

import pytest
from streamweld.errors import (
    ArgumentsError,
    LimitExceeded,
    ToolCallConflict,
    TruncatedStream,
)

from tests.support.expect import calm, raised, said
from tests.support.harness import read
from tests.support.servers.wire import DONE, call, chunk, end, event, text

HE = text("he")
Y = text("y", "stop")


class TestCalls:
    @pytest.mark.parametrize("index", [-1, -2, -(2**63), 2**63, 4097, 10**9, 1.5, True, False, "x", "-1", [], {}, None])
    def test_c1_no_index_addresses_an_existing_call(self, backend: str, index: Any) -> None:
        evil = chunk(
            {"tool_calls": [{"index": index, "id": "c", "function": {"name": "danger", "arguments": '{"e":1}'}}]}
        )
        body = [
            call(0, "a", "safe", '{"n":'),
            call(1, "b", "safe", '{"m":'),
            evil,
            call(0, None, None, "1}"),
            call(1, None, None, "2}"),
        ]
        outcome = read(backend, [*body, end()])
        shown = [(c.call_id, c.name, c.arguments) for c in outcome.response.dispatchable_calls]
        assert sorted(shown) == [("a", "safe", '{"n":1}'), ("b", "safe", '{"m":2}'), ("c", "danger", '{"e":1}')]
        place = len(body[0] + body[1])
        said(outcome, "index_missing" if index is None else "index_unusable", place, 2)

    @pytest.mark.parametrize("index", ["1", 1.0, "01"])
    def test_c1_what_is_an_index_all_the_same(self, backend: str, index: Any) -> None:
        body = [
            call(0, "a", "f", '{"n":'),
            call(1, "b", "f", '{"n":'),
            call(index, None, None, "2}"),
            call(0, None, None, "1}"),
        ]
        outcome = read(backend, [*body, end()])
        assert [c.arguments for c in outcome.response.tool_calls] == ['{"n":1}', '{"n":2}']

    def test_c2_a_huge_index_in_strict(self, backend: str) -> None:
        body = [HE, call(10**9, "a", "f", "{}"), end()]
        assert read(backend, body).response.dispatchable_calls[0].call_id == "a"
        error = read(backend, body, {"policy": "strict"}).error
        assert error is not None
        assert (type(error).__name__, error.rule, error.byte_offset) == ("InvalidToolIndex", "index_unusable", len(HE))

    def test_c3_calls_are_capped(self, backend: str) -> None:
        frames = [call(n, f"i{n}", "f", "{}") for n in range(5)]
        outcome = read(backend, frames, {"limits": {"max_tool_calls": 3}})
        raised(outcome, LimitExceeded, "limit_max_tool_calls", len(b"".join(frames[:3])), 3)
        assert len(outcome.response.tool_calls) == 3
        assert outcome.response.dispatchable_calls == ()

    def test_c4_arguments_are_capped(self, backend: str) -> None:
        frames = [call(0, "a", "f", '{"x":"'), *[call(0, None, None, "yyyy")] * 30]
        place = len(frames[0]) + 12 * len(frames[1])  # 6 + 12 * 4 = 54 bytes so far; the next would make 58
        outcome = read(backend, frames, {"limits": {"max_arguments_bytes": 57}})
        raised(outcome, LimitExceeded, "limit_max_arguments_bytes", place, 13)
        many = [call(n, f"i{n}", "f", '{"x":"yyyy"}') for n in range(6)]
        outcome = read(backend, many, {"limits": {"max_total_arguments_bytes": 36}})
        raised(outcome, LimitExceeded, "limit_max_total_arguments_bytes", len(b"".join(many[:3])), 3)

    def test_c5_same_index_new_id(self, backend: str) -> None:
        outcome = read(backend, [call(0, "a", "f", '{"n":1}'), call(0, "b", "f", '{"n":2}'), end()])
        assert [(c.call_id, c.parsed) for c in outcome.response.dispatchable_calls] == [
            ("a", {"n": 1}),
            ("b", {"n": 2}),
        ]

    def test_c6_ids_and_names_are_set_once(self, backend: str) -> None:
        calm(outcome := read(backend, [*[call(0, "call_A", "safe", p) for p in ("{", '"n"', ":", "1", "}")], end()]))
        assert [(c.call_id, c.name, c.parsed) for c in outcome.response.dispatchable_calls] == [
            ("call_A", "safe", {"n": 1})
        ]

    def test_c7_same_id_on_two_indexes(self, backend: str) -> None:
        body = [call(0, "x", "f", '{"n":1}'), call(1, "x", "f", '{"n":2}'), end()]
        outcome = read(backend, body)
        assert [(c.call_id, c.parsed) for c in outcome.response.dispatchable_calls] == [
            ("x", {"n": 1}),
            ("x__2", {"n": 2}),
        ]
        said(outcome, "id_minted")
        error = read(backend, body, {"policy": "strict"}).error
        assert type(error) is ToolCallConflict

    def test_c8_a_name_that_changes(self, backend: str) -> None:
        for call_id in (None, "a", "b"):
            body = [call(0, "a", "read", '{"n":'), call(0, call_id, "delete_all", "1}"), end()]
            outcome = read(backend, body)
            assert not [c for c in outcome.response.dispatchable_calls if c.name != "read"]
            assert [d for d in outcome.diagnostics if d.severity != "info"] or outcome.response.dispatchable_calls == ()

    @pytest.mark.parametrize("name", ["", " ", "f g", "f\x00", "f\n", "\u202ef", "f" * 129, "f(x)", '"'])
    def test_c9_names_that_are_none(self, backend: str, name: str) -> None:
        outcome = read(backend, [HE, call(0, "a", name, '{"x":1}'), end()])
        assert outcome.response.dispatchable_calls == ()
        if outcome.error is None:
            (only,) = outcome.response.tool_calls
            assert (only.state, only.reason) == ("invalid", "bad_name" if name.strip() else "no_name")
        else:
            raised(outcome, LimitExceeded, "limit_max_name_bytes", len(HE), 1)
        for good in ("f", "a.b:c/d-e_F9", "x" * 128):
            assert read(backend, [call(0, "a", good, "{}"), end()]).response.dispatchable_calls

    @pytest.mark.parametrize("name", ["\u0440ead", "é"])
    def test_c9_names_outside_ascii_are_named(self, backend: str, name: str) -> None:
        """Tools may have names outside ASCII, but such a name may merely resemble a tool's name, so a diagnostic
        reports it.
        """
        outcome = read(backend, [HE, call(0, "a", name, '{"x":1}'), end()])
        assert [c.name for c in outcome.response.dispatchable_calls] == [name]
        said(outcome, "name_not_ascii")

    def test_c10_arguments_of_other_types(self, backend: str) -> None:
        outcome = read(backend, [call(0, "a", "f", {"city": "Oslo"}), end()])
        assert outcome.response.dispatchable_calls[0].arguments == '{"city":"Oslo"}'
        raw_null = chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": None}}]})
        calm(outcome := read(backend, [raw_null, call(0, None, None, "{}"), end()]))
        assert outcome.response.dispatchable_calls[0].arguments == "{}"
        for value in (5, True, [1]):
            outcome = read(backend, [HE, call(0, "a", "f", value), end()])
            assert outcome.response.dispatchable_calls == ()
            assert any(d.severity != "info" for d in outcome.diagnostics)

    def test_c11_arguments_after_the_close(self, backend: str) -> None:
        body = [call(0, "a", "f", '{"n":1}'), chunk({}, "tool_calls"), call(0, None, None, "evil"), DONE]
        outcome = read(backend, body, {"policy": {"base": "standard", "close_calls_at": "finish"}})
        assert [c.arguments for c in outcome.response.dispatchable_calls] == ['{"n":1}']
        said(outcome, "late_delta", len(body[0] + body[1]), 2)
        assert sum(type(e).__name__ == "ToolCall" for e in outcome.events) == 1

    def test_c12_deltas_and_a_full_message(self, backend: str) -> None:
        full = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"n":1}'}}]}
        last = event({"choices": [{"index": 0, "delta": {}, "message": full, "finish_reason": "tool_calls"}]})
        calm(outcome := read(backend, [call(0, "a", "f", '{"n":1}'), last, DONE]))
        assert [c.parsed for c in outcome.response.dispatchable_calls] == [{"n": 1}]

    def test_c13_a_delta_for_a_call_never_opened(self, backend: str) -> None:
        outcome = read(backend, [call(0, "a", "f", '{"n":1}'), call(7, None, None, '{"evil":1}'), end()])
        assert [c.arguments for c in outcome.response.dispatchable_calls] == ['{"n":1}']
        assert [c.reason for c in outcome.response.tool_calls if c.arguments == '{"evil":1}'] == ["no_name"]

    def test_c14_indexes_out_of_order(self, backend: str) -> None:
        body = [
            call(1, "b", "f", '{"n":'),
            call(0, "a", "f", '{"n":'),
            call(0, None, None, "0}"),
            call(1, None, None, "1}"),
            end(),
        ]
        calm(outcome := read(backend, body))
        assert [(c.call_id, c.parsed) for c in outcome.response.tool_calls] == [("a", {"n": 0}), ("b", {"n": 1})]

    def test_c15_every_prefix_of_arguments(self, backend: str) -> None:
        arguments = '{"path":"/data/x","recursive":true,"n":[1,{"a":null}]}'
        for size in range(len(arguments)):
            outcome = read(backend, [call(0, "a", "rm", arguments[:size])])
            assert type(outcome.error) is TruncatedStream
            for ending in (chunk({}, "length"), chunk({}, "tool_calls") if size else chunk({}, "length")):
                outcome = read(backend, [call(0, "a", "rm", arguments[:size]), ending, DONE])
                (only,) = outcome.response.tool_calls
                assert (only.state, only.dispatchable) == ("incomplete", False)
                with pytest.raises(ArgumentsError) as caught:
                    _ = only.parsed
                assert caught.value.state == "incomplete"

    @pytest.mark.parametrize(
        ("arguments", "reason"),
        [
            ("[1]", "not_object"),
            ("5", "not_object"),
            ('{"a":1}{"b":2}', "overflow"),
            ('{"a":1} x', "overflow"),
            ("{'a':1}", "not_json"),
            ('{"a":NaN}', "not_json"),
            ('{"a":1e999}', "not_json"),
            ("[" * 200 + "]" * 200, "not_json"),
        ],
    )
    def test_c16_arguments_that_are_no_object(self, backend: str, arguments: str, reason: str) -> None:
        outcome = read(backend, [call(0, "a", "f", arguments), end()])
        (only,) = outcome.response.tool_calls
        assert (only.state, only.reason, only.dispatchable) == ("invalid", reason, False)
        with pytest.raises(ArgumentsError):
            _ = only.parsed

    def test_c17_choices(self, backend: str) -> None:
        calm(outcome := read(backend, [chunk({"content": "x"}, "stop", index=10**9), DONE]))
        assert [(c.index, c.text) for c in outcome.response.choices] == [(10**9, "x")]
        frames = [chunk({"content": "x"}, index=n) for n in range(130)]
        raised(read(backend, frames), LimitExceeded, "limit_max_choices", len(b"".join(frames[:128])), 128)

    def test_c18_calls_written_as_text(self, backend: str) -> None:
        markup = '<tool_call>{"name":"f","arguments":{}}</tool_call><|tool_calls_section_begin|>'
        calm(outcome := read(backend, [text(markup, "stop"), DONE]))
        assert (outcome.response.text, outcome.response.tool_calls) == (markup, ())
