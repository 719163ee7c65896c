"""The call to which a fragment belongs, tested on the assembler alone: rules R1 to R3, and cases from reports."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamweld import events as ev
from streamweld._pure.assemble.resolve import by_evidence

from tests.support.rig import KEY, OSLO, ROME, VALUE, Rig, two


class TestReports:
    """Behaviors from the bug reports that motivated the project."""

    def test_deepseek_streaming_same_id_every_chunk(self) -> None:
        rig = Rig()(0, "a", "run-sandbox", "")
        for piece in ['{"co', 'de":', '"1+', '1"}']:
            rig(0, "a", "", piece)
        rig.done()
        assert rig.brief == [("a", "run-sandbox", '{"code":"1+1"}')]
        assert rig.codes == []
        assert rig.count(ev.ToolCallStarted) == 1

    def test_231_chunks_are_one_call(self) -> None:
        rig = Rig()(0, "functions.run-sandbox:2", "run-sandbox", '{"code":"')
        for _ in range(230):
            rig(0, "functions.run-sandbox:2", None, "x")
        rig(0, "functions.run-sandbox:2", None, '"}').done()
        assert len(rig.calls) == 1
        assert rig.codes == []

    def test_standard_openai_streaming_id_first_chunk_only(self) -> None:
        rig = Rig()(0, "a", "f", "")(0, None, None, KEY)(0, None, None, VALUE).done()
        assert rig.brief == [("a", "f", OSLO)]
        assert rig.codes == []

    def test_multiple_tool_calls_different_indexes(self) -> None:
        rig = Rig()(0, "a", "f", "")(1, "b", "f", "")(0, None, None, OSLO)(1, None, None, ROME).done()
        assert rig.brief == two()
        assert rig.codes == []

    def test_deepseek_no_index_same_id_merges(self) -> None:
        rig = Rig()(None, "a", "f", "")(None, "a", None, KEY)(None, "a", None, VALUE).done()
        assert rig.brief == [("a", "f", OSLO)]

    def test_empty_name_tool_calls_are_not_dispatchable(self) -> None:
        rig = Rig()(0, "a", "", OSLO)(1, "b", "g", "{}").done()
        nameless, named = rig.calls
        assert (nameless.state, nameless.reason, nameless.dispatchable) == ("invalid", "no_name", False)
        assert named.dispatchable

    def test_the_original_id_is_kept(self) -> None:
        """Only the first fragment has the id. Whatever the index is, a result must be sent back with this id."""
        rig = Rig()(3, "call_abc123", "search", None)(3, None, None, "{}").done()
        assert [call.call_id for call in rig.calls] == ["call_abc123"]

    def test_a_missing_id_is_minted_the_same_way_every_time(self) -> None:
        for _ in range(2):
            rig = Rig()(0, None, "search", "{}").done()
            assert [call.call_id for call in rig.calls] == ["call_sw_0"]


class TestKnownId:
    def test_r1a_unfinished_call_whatever_the_index_says(self) -> None:
        rig = Rig()(0, "a", "f", KEY)(7, "a", None, VALUE).done()
        assert rig.brief == [("a", "f", OSLO)]

    def test_r1a_prefers_the_call_bound_to_the_index(self) -> None:
        rig = Rig()(0, "x", "f", OSLO)(1, "x", "f", KEY)(0, "x", None, OSLO)(1, "x", None, '"Rome"}').done()
        assert rig.brief == two("x", "x__2")
        assert rig.codes == ["args_replay_dropped"]

    def test_r1b_another_name_is_another_call(self) -> None:
        rig = Rig()(0, "x", "f", OSLO)(0, "x", "g", "{}").done()
        assert rig.brief == [("x", "f", OSLO), ("x__2", "g", "{}")]

    def test_r1b_another_name_on_another_index_before_any_argument(self) -> None:
        rig = Rig()(0, "x", "f", "")(1, "x", "g", "")(0, None, None, OSLO)(1, None, None, ROME).done()
        assert rig.brief == [("x", "f", OSLO), ("x__2", "g", ROME)]

    def test_r1b_other_arguments_are_another_call(self) -> None:
        rig = Rig()(0, "x", "f", OSLO)(0, "x", "f", ROME)(0, "x", "f", "{}").done()
        assert rig.brief == [*two("x", "x__2"), ("x__3", "f", "{}")]

    def test_r1b_placeholder_and_a_header_are_two_calls(self) -> None:
        rig = Rig()(0, "x", "f", "{}")(0, "x", "f", OSLO).done()
        assert rig.brief == [("x", "f", "{}"), ("x__2", "f", OSLO)]

    def test_r1c_tentative_call_gets_its_arguments(self) -> None:
        rig = Rig()(0, "f", "f", OSLO)(1, "f", "f", "")(1, None, None, ROME).done()
        assert rig.brief == two("f", "f__2")
        assert rig.codes == []

    def test_r1d_replay_is_dropped(self) -> None:
        rig = Rig()(0, "a", "f", OSLO)(0, "a", "f", ' { "city" : "\\u004fslo" } ')(2, "a", "f", OSLO).done()
        assert rig.brief == [("a", "f", OSLO)]
        assert rig.codes == ["args_replay_dropped"] * 2

    def test_r1d_replay_of_an_earlier_call_of_the_id(self) -> None:
        rig = Rig()(0, "x", "f", OSLO)(0, "x", "f", ROME)(0, "x", "f", OSLO).done()
        assert rig.brief == two("x", "x__2")

    def test_r1e_a_call_that_begins_like_the_one_before(self) -> None:
        rig = Rig()(0, "x", "f", KEY)(0, "x", None, VALUE)(0, "x", "f", KEY)(0, "x", None, '"Rome"}').done()
        assert rig.brief == two("x", "x__2")

    def test_r1e_a_replay_in_pieces(self) -> None:
        rig = Rig()(0, "x", "f", OSLO)(0, "x", "f", KEY)(0, "x", "f", VALUE).done()
        assert rig.brief == [("x", "f", OSLO)]
        assert rig.codes == ["args_replay_dropped"]

    def test_r1f_the_index_wins_over_a_stale_id(self) -> None:
        rig = Rig()(0, "a", "f", OSLO)(1, "b", "f", KEY)(1, "a", None, '"Rome"}').done()
        assert rig.brief == two()

    def test_r1g_announced_again_then_overflow(self) -> None:
        rig = Rig()(0, "x", "f", OSLO)(0, "x", "f", "")(0, "x", None, ROME).done()
        assert rig.brief == two("x", "x__2")

    def test_r1g_both_values_glued_in_one_fragment(self) -> None:
        rig = Rig()(0, "x", "f", KEY)(1, "x", "f", "")(1, "x", None, '"Oslo"}' + ROME).done()
        assert [call.state for call in rig.calls] == ["complete", "complete"]
        assert rig.brief == two("x", "x__2")


class TestNewId:
    def test_r2a_late_id_without_index(self) -> None:
        rig = Rig()(None, None, "f", KEY)(None, "a", None, VALUE).done()
        assert rig.brief == [("a", "f", OSLO)]

    def test_r2b_call_without_id_takes_it(self) -> None:
        rig = Rig()(0, None, "f", KEY)(0, "a", None, None)(0, None, None, VALUE).done()
        assert rig.brief == [("a", "f", OSLO)]
        assert rig.codes == []

    def test_r2b_replay_with_the_id_of_a_call_without(self) -> None:
        rig = Rig()(0, None, "f", OSLO)(0, "a", "f", OSLO).done()
        assert rig.brief == [("a", "f", OSLO)]

    def test_r2c_another_id_and_a_header(self) -> None:
        rig = Rig()(0, "a", "f", OSLO)(0, "b", "f", ROME).done()
        assert rig.brief == two()
        assert rig.codes == []

    def test_r2d_new_id_and_name_in_every_delta(self) -> None:
        rig = Rig()(0, "r1", "f", KEY)(0, "r2", "f", '"Os')(0, "r3", "f", 'lo"}').done()
        assert rig.brief == [("r1", "f", OSLO)]
        assert rig.codes == ["unstable_id"] * 2
        assert rig.calls[0].aliases == ("r2", "r3")

    def test_r2d_once_the_id_changed_an_object_may_start(self) -> None:
        rig = Rig()(0, "r1", "f", '{"a":1,')(0, "r2", "f", '"o":')(0, "r3", "f", '{"x":1}')(0, "r4", "f", "}").done()
        assert rig.brief == [("r1", "f", '{"a":1,"o":{"x":1}}')]

    def test_r2e_new_id_in_every_delta(self) -> None:
        rig = Rig()(0, "r1", "f", "")(0, "r2", None, KEY)(0, "r3", None, VALUE).done()
        assert rig.brief == [("r1", "f", OSLO)]

    def test_aliases_are_capped(self) -> None:
        rig = Rig()(0, "r", "f", '{"a":"')
        for n in range(300):
            rig(0, f"r{n}", None, "x")
        rig(0, "end", None, '"}').done()
        assert rig.calls[0].state == "complete"
        assert len(rig.calls[0].aliases) == 64

    def test_r2f_a_new_id_on_a_new_index(self) -> None:
        rig = Rig()(5, "a", "f", OSLO)(9, "b", "f", ROME).done()
        assert rig.brief == two()

    def test_r2f_name_follows(self) -> None:
        rig = Rig()(1, "b", None, "")(1, None, "g", OSLO).done()
        assert rig.brief == [("b", "g", OSLO)]


class TestNoId:
    def test_r3a1_plain_continuation(self) -> None:
        rig = Rig()(0, None, "f", KEY)(0, None, "f", VALUE).done()
        assert rig.brief == [("*", "f", OSLO)]

    def test_r3a2_complete_and_a_header_with_payload(self) -> None:
        rig = Rig()(0, None, "f", OSLO)(0, None, "f", ROME)(0, None, "g", "{}").done()
        assert rig.brief == [("*", "f", OSLO), ("*", "f", ROME), ("*", "g", "{}")]
        assert rig.codes == []

    def test_r3a2_in_fragments(self) -> None:
        rig = Rig()(0, None, "f", KEY)(0, None, None, VALUE)(0, None, "f", KEY)(0, None, None, '"Rome"}').done()
        assert rig.brief == [("*", "f", OSLO), ("*", "f", ROME)]

    def test_r3a3_resend_of_any_earlier_call(self) -> None:
        rig = Rig()(0, None, "f", OSLO)(0, None, "f", ROME)(0, None, "f", ROME)(0, None, "f", OSLO).done()
        assert rig.brief == [("*", "f", OSLO), ("*", "f", ROME)]
        assert rig.codes == ["ambiguous_identical_call", "args_replay_dropped", "args_replay_dropped"]

    def test_r3a4_continuations_on_the_index_of_the_first_call(self) -> None:
        rig = Rig()(0, "a", "f", OSLO)(1, "b", "g", KEY)(0, None, None, '"Rome"}').done()
        assert rig.brief == [("a", "f", OSLO), ("b", "g", ROME)]
        assert rig.codes == []

    def test_r3a4_into_a_string_is_a_guess_and_said(self) -> None:
        rig = Rig()(0, "a", "f", OSLO)(1, "b", "g", '{"city":"Ro')(0, None, None, 'me"}').done()
        assert rig.brief == [("a", "f", OSLO), ("b", "g", ROME)]
        assert rig.codes == ["ambiguous_orphan_index"]

    def test_r3a4_a_fragment_twice_in_a_row_does_not_leak(self) -> None:
        rig = Rig()(1, "b", "g", '{"city":"Ro')(0, "a", "f", KEY)(0, None, None, VALUE)(0, None, None, VALUE)
        rig(1, None, None, 'me"}').done()
        assert rig.brief == [("a", "f", OSLO), ("b", "g", ROME)]

    def test_r3b1_new_index(self) -> None:
        rig = Rig()(0, None, "f", OSLO)(1, None, "f", ROME).done()
        assert rig.brief == [("*", "f", OSLO), ("*", "f", ROME)]

    def test_r3b2_the_only_header_that_waits(self) -> None:
        rig = Rig()(2, "a", "f", "")(1, None, None, KEY)(1, None, None, VALUE).done()
        assert rig.brief == [("a", "f", OSLO)]
        assert rig.codes == []

    def test_r3b2_an_unfinished_call(self) -> None:
        rig = Rig()(2, "a", "f", KEY)(1, None, None, VALUE).done()
        assert rig.brief == [("a", "f", OSLO)]

    def test_r3b3_nothing_waits(self) -> None:
        rig = Rig()(0, None, None, KEY)(0, None, None, VALUE)(0, None, "f", None).done()
        assert rig.brief == [("*", "f", OSLO)]

    def test_r3c1_no_index_no_id(self) -> None:
        rig = Rig()(None, None, "f", OSLO)(None, None, "f", ROME)(None, None, "g", "").done()
        assert rig.brief == [("*", "f", OSLO), ("*", "f", ROME), ("*", "g", "")]
        assert rig.calls[2].state == "empty"

    def test_r3c2_latest_unfinished(self) -> None:
        rig = Rig()(None, "a", "f", "")(None, None, None, KEY)(None, None, None, VALUE)
        rig(None, "b", "f", "")(None, None, None, ROME).done()
        assert rig.brief == two()

    def test_r3c2_late_name(self) -> None:
        rig = Rig()(None, "a", None, KEY)(None, None, "f", VALUE).done()
        assert rig.brief == [("a", "f", OSLO)]

    def test_r3c2_extra_members_only(self) -> None:
        rig = Rig()(None, "a", "f", OSLO)(None, metadata='{"extra_content":{"sig":"S"}}').done()
        assert rig.calls[0].provider_metadata == {"extra_content": {"sig": "S"}}

    def test_r3c3_by_place_in_the_list(self) -> None:
        rig = Rig()
        for first, second in [(("a", "f", ""), ("b", "f", "")), ((None, None, KEY),) * 2]:
            rig(None, *first, position=0, array_len=2)(None, *second, position=1, array_len=2)
        rig(None, None, None, VALUE, position=0, array_len=2)(None, None, None, '"Rome"}', position=1, array_len=2)
        rig.done()
        assert rig.brief == two()

    def test_n6_ghosts_create_nothing(self) -> None:
        rig = Rig()(0, "a", "f", "")(0)(1)(0, None, None, OSLO)(2, None, None, "").done()
        assert rig.brief == [("a", "f", OSLO)]
        assert rig.codes == []

    def test_legacy_function_call(self) -> None:
        rig = Rig()(None, None, "f", "", legacy=True)(None, None, None, KEY, legacy=True)
        rig(None, None, None, VALUE, legacy=True).done("function_call")
        assert rig.brief == [("*", "f", OSLO)]
        assert "index_missing" not in [d.code for d in rig.out.diagnostics]


class TestIndexes:
    def test_unusable_is_absent_and_said_once_a_call(self) -> None:
        rig = Rig()(None, "a", "f", KEY, index_raw="-1")(None, "a", None, VALUE, index_raw="-1").done()
        assert [(d.code, d.detail) for d in rig.out.diagnostics] == [("index_unusable", "-1")]

    @pytest.mark.parametrize("index", [-1, 4097, 10**9])
    def test_out_of_range(self, index: int) -> None:
        rig = Rig()(index, "a", "f", OSLO).done()
        assert [(d.code, d.detail) for d in rig.out.diagnostics] == [("index_unusable", str(index))]

    def test_missing_is_said(self) -> None:
        rig = Rig()(None, "a", "f", KEY)(None, "a", None, VALUE).done()
        assert [d.code for d in rig.out.diagnostics] == ["index_missing"]


def test_the_table_of_rules_is_complete() -> None:
    """Every rule that `decide` can return is in the table at the top of its module."""
    table = (by_evidence.__doc__ or "").splitlines()
    rules = {line.split()[0] for line in table if line.startswith("    R")}
    source = Path(by_evidence.__file__).read_text("utf-8").splitlines()
    named = {line.split('"')[1] for line in source if "Decision(" in line and '"R' in line}
    assert named <= rules
