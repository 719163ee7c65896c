"""The state of the Responses decoder and its size, which the vectors in `responses/` cannot test."""

from __future__ import annotations

from typing import Any

import pytest
from streamweld import Limits, Policy
from streamweld._pure.dialect.responses import ResponsesDecoder
from streamweld._pure.dialect.responses.sequence import WINDOW, Sequence
from streamweld._pure.dialect.responses.spec_tables import CALLS, CONTENT, TERMINALS, is_read, is_read_of_response
from streamweld._pure.model.output import Output
from streamweld._spec import DIALECTS
from streamweld.options import to_config


def out() -> Output:
    return Output(to_config(Policy(), Limits()))


class TestSequence:
    def test_a_replay_is_said_once(self) -> None:
        reported = out()
        numbers = Sequence(reported)
        assert [numbers.is_replayed(n, str(n)) for n in (0, 1, 1, 0, 2)] == [False, False, True, True, False]
        assert [(d.code, d.detail) for d in reported.diagnostics] == [("sequence_replayed", "1")]

    def test_trust_ends_at_another_content(self) -> None:
        reported = out()
        numbers = Sequence(reported)
        assert [numbers.is_replayed(1, text) for text in ("a", "b", "b", "b")] == [False] * 4
        assert [(d.code, d.detail) for d in reported.diagnostics] == [("sequence_untrusted", "1")]

    @pytest.mark.parametrize("number", [None, "1", 1.0, True, [], {}])
    def test_what_is_no_integer_says_nothing(self, number: object) -> None:
        numbers = Sequence(out())
        assert not numbers.is_replayed(number, "a")
        assert not numbers.is_replayed(number, "a")

    def test_it_remembers_a_window(self) -> None:
        numbers = Sequence(out())
        for n in range(WINDOW + 10):
            assert not numbers.is_replayed(n, "x" * (n % 7))
        assert len(numbers._seen) == WINDOW  # pyright: ignore[reportPrivateUsage]
        assert not numbers.is_replayed(0, "")  # the number is no longer remembered
        assert numbers.is_replayed(WINDOW, "x" * (WINDOW % 7))


class TestDocuments:
    @pytest.mark.parametrize(
        ("value", "body"),
        [
            ({"object": "response", "status": "completed"}, True),
            ({"object": "response"}, True),
            ({"object": "response", "status": "in_progress"}, False),
            ({"object": "response", "status": "queued"}, False),
            ({"object": "response", "status": []}, True),
            ({"error": {"message": "m"}}, True),
            ({"error": None}, False),
            ({"message": "m", "code": "c"}, True),
            ({"message": "m", "type": "invalid_request_error"}, True),
            ({"message": "m", "type": "acme:note"}, False),
            ({"detail": "Not Found"}, True),
            ({"type": "response.created", "response": {}}, False),
            ([], False),
        ],
    )
    def test_whole_bodies(self, value: object, body: bool) -> None:
        assert ResponsesDecoder.is_body(value) is body

    @pytest.mark.parametrize(
        ("value", "use"),
        [
            ({"type": "response.output_text.delta"}, True),
            ({"type": "response.completed"}, True),
            ({"type": "error"}, True),
            ({"error": "x"}, True),
            ({"type": "response.function_call_arguments.delta"}, False),
            ({"type": ["response.completed"]}, False),
            ("response.completed", False),
        ],
    )
    def test_what_a_broken_event_may_bring(self, value: object, use: bool) -> None:
        assert ResponsesDecoder.has_usable_data(value) is use

    @pytest.mark.parametrize(
        ("value", "note"), [({"type": "keepalive"}, True), ({"type": {}}, False), ({}, False), (None, False)]
    )
    def test_notes(self, value: object, note: bool) -> None:
        assert ResponsesDecoder.is_without_output(value) is note


class TestFacts:
    def test_every_name_leads_somewhere(self) -> None:
        facts: Any = DIALECTS["responses"]
        for table in ("named_calls", "custom_calls", "wrapped_calls", "provider_calls", "call_results"):
            assert set(facts[table]) <= set(facts["call_types"]), table
        for text in (*facts["text_deltas"].values(), *facts["text_values"].values(), *facts["content_types"].values()):
            assert text[0] in ("text", "refusal", "raw", "summary")
        assert set(TERMINALS.values()) <= set(facts["finish"]) & set(facts["terminal_statuses"])
        assert set(facts["finish"].values()) <= {"natural", "length", "content_filter", "error", "other"}
        assert set(CONTENT) >= {"output_text", "refusal", "reasoning_text", "summary_text"}

    def test_names_of_calls(self) -> None:
        assert CALLS["web_search_call"].name == "web_search"
        assert CALLS["mcp_call"].name is CALLS["function_call"].name is None
        assert "type" not in CALLS["local_shell_call"].modelled
        assert "type" in CALLS["function_call"].modelled

    @pytest.mark.parametrize(
        ("path", "read"),
        [
            (("delta",), True),
            (("logprobs",), False),
            (("item", "arguments"), True),
            (("item", "content", 0, "text"), True),
            (("item", "action", "type"), False),
            (("response", "id"), True),
            (("response", "output", 0, "name"), True),
            (("response", "output", 0, "content", 0, "text"), True),
            (("response", "tools", 0, "name"), False),
            (("error", "message"), True),
        ],
    )
    def test_members_that_are_read(self, path: tuple[str | int, ...], read: bool) -> None:
        assert is_read(path) is read
        if path[0] == "response":
            assert is_read_of_response(path[1:]) is read
