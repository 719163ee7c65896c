"""The ambiguities AM1 to AM12, tested on the assembler alone, each with its default and its alternative."""

from __future__ import annotations

import pytest
from streamweld import events as ev
from streamweld.errors import ToolCallConflict
from streamweld.options import Policy

from tests.support.rig import KEY, OSLO, ROME, VALUE, Rig, two


class TestAmbiguities:
    def test_am1_default_is_a_parallel_call(self) -> None:
        rig = Rig()(0, "r1", "f", "")(0, "r2", "f", OSLO).done()
        assert rig.brief == [("r1", "f", ""), ("r2", "f", OSLO)]
        assert rig.codes == ["ambiguous_same_index"]

    def test_am1_is_settled_by_the_id(self) -> None:
        rig = Rig()(0, "a", "f", "")(0, "b", "f", "")(0, "a", None, OSLO)(0, "b", None, ROME).done()
        assert rig.brief == two()
        assert rig.codes == []

    def test_am1_merge(self) -> None:
        rig = Rig(Policy(same_index_new_id_same_name_empty="merge"))(0, "r1", "f", "")(0, "r2", "f", OSLO).done()
        assert rig.brief == [("r1", "f", OSLO)]

    def test_am2_first_in_first_out(self) -> None:
        rig = Rig()(0, "a", "f", "")(0, "b", "f", "")(1, None, None, OSLO)(2, None, None, ROME).done()
        assert rig.brief == two()
        assert "ambiguous_orphan_index" in rig.codes

    def test_am2_latest(self) -> None:
        rig = Rig(Policy(orphan_index="latest"))(0, "a", "f", "")(0, "b", "f", "")
        rig(1, None, None, OSLO)(2, None, None, ROME).done()
        assert rig.brief == [("a", "f", ROME), ("b", "f", OSLO)]

    INTERLEAVED = ((0, KEY), (1, KEY), (0, VALUE), (1, '"Rome"}'))

    def test_am3_auto_splits_where_the_joined_text_breaks(self) -> None:
        rig = Rig()(0, "x", "f", "")(1, "x", "f", "")
        for index, piece in self.INTERLEAVED:
            rig(index, "x", None, piece)
        rig.done()
        assert rig.brief == two("x", "x__2")
        assert "ambiguous_duplicate_id" in rig.codes
        assert rig.count(ev.ToolCallReset) == 0  # no text was emitted that may belong to the other call

    def test_am3_auto_without_ids_on_the_pieces(self) -> None:
        rig = Rig()(0, "x", "f", "")(1, "x", "f", "")
        for index, piece in self.INTERLEAVED:
            rig(index, None, None, piece)
        assert rig.done().brief == two("x", "x__2")

    def test_am3_auto_joins_one_call_smeared_over_indexes(self) -> None:
        rig = Rig()(0, "a", "f", "")(1, "a", "f", KEY)(2, "a", None, VALUE)(3, "a", "f", OSLO)(4, "a", "f", "").done()
        assert rig.brief == [("a", "f", OSLO)]
        assert {"args_replay_dropped", "dup_id_header_dropped", "ambiguous_duplicate_id"} <= set(rig.codes)

    def test_am3_decided_at_the_end(self) -> None:
        rig = Rig()(0, "x", "f", "")(1, "x", "f", "")(0, "x", None, '{"a":"')(1, "x", None, "{")
        rig(1, "x", None, "}")(0, "x", None, "").done()
        assert len(rig.calls) == 1  # one of the texts is truncated, so there is no proof of two calls

    def test_am3_join(self) -> None:
        rig = Rig(Policy(dup_id_parallel_headers="join"))(0, "x", "f", "")(1, "x", "f", "")
        for index, piece in self.INTERLEAVED:
            rig(index, "x", None, piece)
        rig.done()
        assert not any(call.dispatchable for call in rig.calls)

    def test_am3_split(self) -> None:
        rig = Rig(Policy(dup_id_parallel_headers="split"))(0, "x", "f", "")(1, "x", "f", "")
        for index, piece in self.INTERLEAVED:
            rig(index, "x", None, piece)
        assert rig.done().brief == two("x", "x__2")

    def test_am4_drop(self) -> None:
        rig = Rig()(0, "x", "f", OSLO)(1, "x", "f", "").done()
        assert rig.brief == [("x", "f", OSLO)]
        assert rig.codes == ["dup_id_header_dropped", "ambiguous_empty_header"]
        assert rig.count(ev.ToolCallStarted) == 1

    def test_am4_is_no_doubt_where_the_tool_needs_arguments(self) -> None:
        tools = {"f": {"required": ["city"]}}
        rig = Rig(tools=tools)(0, "x", "f", OSLO)(1, "x", "f", "").done()
        assert rig.codes == ["dup_id_header_dropped"]

    def test_am4_keep(self) -> None:
        rig = Rig(Policy(dup_id_empty_header="keep"))(0, "x", "f", OSLO)(1, "x", "f", "").done()
        assert rig.brief == [("x", "f", OSLO), ("x__2", "f", "")]

    def test_am5_keep(self) -> None:
        rig = Rig(Policy(identical_idless_same_index="keep"))(0, None, "f", OSLO)(0, None, "f", OSLO).done()
        assert rig.brief == [("*", "f", OSLO)] * 2

    def test_am5_in_fragments(self) -> None:
        rig = Rig()(0, None, "f", OSLO)(0, None, "f", KEY)(0, None, None, VALUE).done()
        assert rig.brief == [("*", "f", OSLO)]
        assert rig.codes == ["args_replay_dropped", "ambiguous_identical_call"]
        assert rig.count(ev.ToolCallRetracted) == 1

    def test_am6_split(self) -> None:
        rig = Rig(Policy(on_overflow="split"))(0, "a", "f", OSLO)(0, None, None, ROME).done()
        assert rig.brief == [("a", "f", OSLO), ("*", "f", ROME)]

    def test_am8_content_mode(self) -> None:
        for mode, expected in (("delta", "The weatherThe weather in Oslo"), ("auto", "The weather in Oslo")):
            rig = Rig(Policy(content_mode=mode)).text("The weather").text("The weather in Oslo").done("stop")
            assert [e.text for e in rig.events if isinstance(e, ev.TextDone)] == [expected]

    def test_am9_restated(self) -> None:
        rig = Rig().text("The answer ").text("is 42.")
        assert rig.asm.restates(0, "text", "The answer is 42.")
        assert not rig.asm.restates(0, "text", "The answer is 43.")
        assert not Rig().text("once").asm.restates(0, "text", "once")

    def test_am10_restart(self) -> None:
        rig = Rig().text("Once up")(0, "a", "f", KEY)
        rig.asm.restart(0)
        rig.text("Once upon")(0, "a", "f", OSLO).done()
        assert rig.brief == [("a", "f", OSLO)]
        assert [e.text for e in rig.asm.snapshot() if isinstance(e, ev.TextDone)] == ["Once upon"]
        assert rig.count(ev.ToolCallRetracted) == 1
        assert rig.codes == ["stream_restarted"]

    def test_am12_last_id(self) -> None:
        rig = Rig(Policy(unstable_id="last"))(0, "A", "f", "")(0, "B", None, KEY)(0, "B", None, VALUE).done()
        assert rig.brief == [("B", "f", OSLO)]
        assert rig.calls[0].aliases == ("A",)

    def test_am13_name_after_arguments_started(self) -> None:
        rig = Rig()(0, "a", "get_wea", KEY)(0, None, "ther", VALUE).done()
        assert rig.brief == [("a", "get_wea", KEY), ("*", "ther", VALUE)]
        assert not any(call.dispatchable for call in rig.calls)

    def test_strict_raises(self) -> None:
        rig = Rig("strict")(0, "a", "f", OSLO)
        with pytest.raises(ToolCallConflict) as caught:
            rig(0, "a", "f", OSLO)
        assert caught.value.rule == "args_replay_dropped"
