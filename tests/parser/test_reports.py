"""Two failures from production: one response that became 231 calls, and tool results with unknown ids."""

from __future__ import annotations

from streamweld.events import ToolCall

from tests.support.harness import read
from tests.support.servers.wire import DONE, call, end

ARGUMENTS = '{"code":"' + "x = 1;" * 60 + '"}'
FRAGMENTS = [ARGUMENTS[i : i + 2] for i in range(0, len(ARGUMENTS), 2)]
ID = "functions.run-sandbox:2"


def same_id_every_chunk(index: int | None) -> bytes:
    """Return 231 deltas: the first with the name, the others with a blank name."""
    deltas = [call(index, ID, "run-sandbox", ""), *(call(index, ID, "", piece) for piece in FRAGMENTS)]
    deltas += [call(index, ID, "", "")] * (231 - len(deltas))
    assert len(deltas) == 231
    return b"".join(deltas) + end()


class TestToolCallDuplication:
    """DeepSeek sent the id in every delta.

    Each delta became a call, 230 of them without a name, and each call was run.
    """

    def test_deepseek_streaming_same_id_every_chunk(self, backend: str) -> None:
        outcome = read(backend, [same_id_every_chunk(0)])
        (only,) = outcome.response.tool_calls
        assert (only.call_id, only.name, only.arguments) == (ID, "run-sandbox", ARGUMENTS)
        assert sum(isinstance(e, ToolCall) for e in outcome.events) == 1
        assert outcome.response.dispatchable_calls == (only,)
        assert outcome.diagnostics == []

    def test_standard_openai_streaming_id_first_chunk_only(self, backend: str) -> None:
        body = (
            call(0, "call_abc123", "search", "") + b"".join(call(0, None, None, piece) for piece in FRAGMENTS) + end()
        )
        (only,) = read(backend, [body]).response.dispatchable_calls
        assert (only.call_id, only.name, only.arguments) == ("call_abc123", "search", ARGUMENTS)

    def test_multiple_tool_calls_different_indexes(self, backend: str) -> None:
        body = (
            call(0, "a", "f", '{"n":')
            + call(1, "b", "f", '{"n":')
            + call(0, None, None, "1}")
            + call(1, None, None, "2}")
        )
        calls = read(backend, [body + end()]).response.dispatchable_calls
        assert [(c.call_id, c.parsed) for c in calls] == [("a", {"n": 1}), ("b", {"n": 2})]

    def test_deepseek_no_index_same_id_merges(self, backend: str) -> None:
        (only,) = read(backend, [same_id_every_chunk(None)]).response.tool_calls
        assert (only.call_id, only.name, only.arguments) == (ID, "run-sandbox", ARGUMENTS)
        assert only.dispatchable

    def test_empty_name_tool_calls_are_filtered(self, backend: str) -> None:
        for blank in ("", " ", "\t\n", None):
            body = call(0, "a", "f", "{}") + call(1, "b", blank, '{"x":1}') + end()
            response = read(backend, [body]).response
            assert [c.call_id for c in response.dispatchable_calls] == ["a"]
            nameless = response.tool_calls[1]
            assert (nameless.state, nameless.reason, nameless.dispatchable) == ("invalid", "no_name", False)
            assert nameless.arguments == '{"x":1}'

    def test_empty_names_never_overwrite(self, backend: str) -> None:
        body = b"".join(call(0, ID, name, piece) for name, piece in (("f", '{"a"'), ("", ":"), (" ", "1"), (None, "}")))
        (only,) = read(backend, [body + end()]).response.dispatchable_calls
        assert (only.name, only.parsed) == ("f", {"a": 1})

    def test_231_nameless_deltas_dispatch_nothing(self, backend: str) -> None:
        body = b"".join(call(n, f"id{n}", "", "{}") for n in range(231)) + end()
        response = read(backend, [body]).response
        assert response.dispatchable_calls == ()
        assert {c.state for c in response.tool_calls} <= {"invalid"}


class TestLostToolCallId:
    """The next request must use the id that the stream contained."""

    def test_the_id_is_kept_exactly_as_sent(self, backend: str) -> None:
        for sent in (
            "call_abc123",
            "toolu_01Ab",
            "functions.f:0",
            "0",
            "a b",
            "  x ",
            "é",
            "call_0",
            "hist_tool_1",
            "x" * 512,
        ):
            (only,) = read(backend, [call(0, sent, "search", "{}") + end()]).response.dispatchable_calls
            assert only.call_id == sent

    def test_the_id_of_a_later_delta_is_not_lost(self, backend: str) -> None:
        body = call(0, None, "search", "") + call(0, "call_abc123") + call(0, None, None, "{}") + end()
        (only,) = read(backend, [body]).response.dispatchable_calls
        assert only.call_id == "call_abc123"

    def test_an_id_is_never_made_of_an_index(self, backend: str) -> None:
        """`call_0` would collide in every turn, and with the ids of a provider that uses such ids."""
        body = call(0, None, "f", '{"a":1}') + call(3, None, "f", '{"a":2}') + end()
        ids = [c.call_id for c in read(backend, [body]).response.tool_calls]
        assert len(set(ids)) == 2
        assert all(i.startswith("call_sw_") for i in ids)

    def test_made_up_ids_collide_with_nothing_in_the_stream(self, backend: str) -> None:
        body = (
            call(0, "call_sw_1", "f", '{"a":1}')
            + call(1, None, "f", '{"a":2}')
            + call(2, "call_sw_1__2", "f", '{"a":3}')
            + end()
        )
        ids = [c.call_id for c in read(backend, [body]).response.tool_calls]
        assert len(set(ids)) == 3
        assert {"call_sw_1", "call_sw_1__2"} <= set(ids)

    def test_no_collision_across_turns(self, backend: str) -> None:
        """Kimi and others restart their numbering in each turn.

        A history pairs results by id, so ids must be distinct.
        """
        known: tuple[str, ...] = ()
        for turn in range(4):
            body = call(0, "functions.f:0", "f", f'{{"t":{turn}}}') + call(1, None, "g", f'{{"t":{turn}}}') + end()
            calls = read(backend, [body], {"known_call_ids": known}).response.dispatchable_calls
            ids = [c.call_id for c in calls]
            assert len(ids) == len(set(ids)) == 2
            assert not set(ids) & set(known)
            assert ids[0] == ("functions.f:0" if turn == 0 else f"functions.f:0__{turn + 1}")
            known += tuple(ids)

    def test_a_seed_separates_turns_too(self, backend: str) -> None:
        body = call(0, None, "f", '{"a":1}') + end()
        ids = {read(backend, [body], {"seed": f"turn{n}"}).response.tool_calls[0].call_id for n in range(3)}
        assert ids == {"call_turn0_0", "call_turn1_0", "call_turn2_0"}

    def test_minting_is_deterministic(self, backend: str) -> None:
        body = call(0, None, "f", '{"a":1}') + call(1, "x", "f", '{"a":2}') + call(2, "x", "f", '{"a":3}') + end()
        runs = {tuple(c.call_id for c in read(backend, [body]).response.tool_calls) for _ in range(3)}
        assert len(runs) == 1

    def test_every_minted_id_is_said(self, backend: str) -> None:
        outcome = read(backend, [call(0, None, "f", "{}") + DONE])
        assert [d.detail for d in outcome.diagnostics if d.code == "id_minted"] == ["call_sw_0"]
