"""Argument text and names, tested on the assembler alone: the rules A1 to A8, and the effect of a name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from streamweld import events as ev

from tests.support.rig import KEY, OSLO, ROME, VALUE, Rig

if TYPE_CHECKING:
    from streamweld.options import Policy


class TestArguments:
    def feed(self, *pieces: str, policy: Policy | str = "standard") -> Rig:
        rig = Rig(policy)(0, "a", "f", "")
        for piece in pieces:
            rig(0, None, None, piece)
        return rig.done()

    def test_a1_conformant_shows_no_repair(self) -> None:
        rig = self.feed(*'{"a":[1,{"b":"}{"}],"c":"\\u00e9 \\""}')
        assert rig.codes == []
        assert rig.count(ev.ToolCallReset) == 0

    @pytest.mark.parametrize("again", [OSLO, '{"city": "Oslo"}', json.dumps(OSLO)])
    def test_a2_replay(self, again: str) -> None:
        rig = self.feed(KEY, VALUE, again)
        assert rig.brief == [("a", "f", OSLO)]
        assert rig.codes == ["args_replay_dropped"]

    @pytest.mark.parametrize("placeholder", ["{}", "null", '""', " {} "])
    def test_a3_placeholder(self, placeholder: str) -> None:
        rig = self.feed(placeholder, KEY, VALUE)
        assert rig.brief == [("a", "f", OSLO)]
        assert rig.codes == ["args_placeholder_replaced"]

    def test_a4_cumulative(self) -> None:
        rig = self.feed('{"ci', '{"city":"O', '{"city":"O', OSLO)
        assert rig.brief == [("a", "f", OSLO)]
        assert rig.codes == ["args_cumulative"]
        assert rig.count(ev.ToolCallReset) == 0

    def test_a4_cumulative_where_append_stays_valid(self) -> None:
        rig = self.feed('{"o":', '{"o":{"x":1', '{"o":{"x":1}}')
        assert rig.brief == [("a", "f", '{"o":{"x":1}}')]
        assert rig.codes == ["args_cumulative"]

    def test_a4_cumulative_decided_at_the_end(self) -> None:
        rig = self.feed('{"o":', '{"o":1}')
        assert rig.brief == [("a", "f", '{"o":1}')]
        assert rig.codes == ["args_cumulative"]

    def test_a4_nested_object_is_not_cumulative(self) -> None:
        rig = self.feed('{"o":', '{"o":1}', "}")
        assert rig.brief == [("a", "f", '{"o":{"o":1}}')]
        assert rig.codes == []

    def test_a5_the_same_fragment_again(self) -> None:
        rig = self.feed('{"a":1', ',"b"', ":2", ":2", "}")
        assert rig.brief == [("a", "f", '{"a":1,"b":2}')]
        assert rig.codes == ["args_replay_dropped"]

    @pytest.mark.parametrize(
        "pieces",
        [[KEY, VALUE], ["{", '"', 'a":', "1", "}"], ['{"', "{", '":[]', "}"], ['{"a":"', "ab", "ab", '"', "}"]],
    )
    def test_a5_every_fragment_twice(self, pieces: list[str]) -> None:
        rig = self.feed(*[piece for piece in pieces for _ in range(2)])
        assert rig.brief == [("a", "f", "".join(pieces))]
        assert "args_doubled" in rig.codes

    def test_a5_twice_and_valid_is_kept_and_said(self) -> None:
        rig = self.feed('{"a":[', '{"a":[', "]}", "]}")
        assert rig.brief == [("a", "f", '{"a":[{"a":[]}]}')]
        assert rig.codes == ["args_doubled"]

    def test_a6_restart_after_a_cut_prefix(self) -> None:
        rig = self.feed('{"lang":"py","code":1', '{"lang"', ':"py","code":12}')
        assert rig.brief == [("a", "f", '{"lang":"py","code":12}')]
        assert rig.codes == ["args_restart"]

    def test_a6_replay_in_fragments(self) -> None:
        rig = self.feed(OSLO, KEY, VALUE, KEY, '"Os', 'lo"}')
        assert rig.brief == [("a", "f", OSLO)]
        assert rig.codes == ["args_replay_dropped"] * 2

    def test_a7_a_whole_object_after_a_broken_text(self) -> None:
        rig = self.feed('{"a":1', "!!", '{"a":2}')
        assert rig.brief == [("a", "f", '{"a":2}')]
        assert rig.codes == ["args_restart"]

    def test_a7_not_json_is_kept_as_it_came(self) -> None:
        rig = self.feed("<|DSML|", "<|DSML|", "x", OSLO)
        assert rig.brief == [("a", "f", "<|DSML|<|DSML|x" + OSLO)]
        assert (rig.calls[0].state, rig.calls[0].reason) == ("invalid", "not_json")

    @pytest.mark.parametrize(
        "pieces", [(OSLO, ROME), (OSLO, "x"), (OSLO + ROME,), (KEY, VALUE + "x"), (OSLO, "}", "}")]
    )
    def test_a8_overflow(self, pieces: tuple[str, ...]) -> None:
        rig = self.feed(*pieces)
        (call,) = rig.calls
        assert (call.arguments, call.state, call.reason) == (OSLO, "invalid", "overflow")
        assert call.raw_arguments == "".join(pieces)
        assert "args_overflow" in rig.codes

    def test_white_space_behind_is_no_overflow(self) -> None:
        assert self.feed(OSLO, "\n", " ").codes == []

    def test_objects_merge(self) -> None:
        rig = Rig()(0, "a", "w", {"path": "x", "n": 1})(0, None, None, {"path": "x.py", "text": "he"})
        rig(0, None, None, {"text": "y", "n": 2}).done()
        assert rig.brief == [("a", "w", '{"path":"x.py","n":2,"text":"hey"}')]
        assert rig.codes == ["args_merged"]

    def test_one_object_stays_as_sent(self) -> None:
        rig = Rig()(0, "a", "f", None, object_arguments='{"b": 1,\n "a": 2}').done()
        assert rig.brief == [("a", "f", '{"b": 1,\n "a": 2}')]

    def test_double_encoded(self) -> None:
        rig = self.feed(json.dumps(OSLO)[:7], json.dumps(OSLO)[7:])
        assert rig.brief == [("a", "f", OSLO)]
        assert rig.calls[0].raw_arguments == json.dumps(OSLO)
        assert rig.codes == ["args_double_encoded"]

    def test_custom_tools_are_text(self) -> None:
        rig = Rig()(0, "a", "run", "print(", custom=True)(0, None, None, "1)", custom=True).done()
        assert (rig.brief, rig.calls[0].state, rig.codes) == ([("a", "run", "print(1)")], "complete", [])

    def test_surrogates_are_joined(self) -> None:
        rig = self.feed('{"a":"', "\ud83d", '\ude00"}')
        assert rig.brief == [("a", "f", '{"a":"\U0001f600"}')]
        assert rig.codes == []

    def test_a_lone_surrogate_is_replaced(self) -> None:
        rig = self.feed('{"a":"\ud83d', '"}')
        assert rig.brief == [("a", "f", '{"a":"\ufffd"}')]
        assert rig.codes == ["lone_surrogate"]


class TestNames:
    def test_in_fragments(self) -> None:
        rig = Rig()(0, "a", "get_wea", "")(0, None, "ther", "")(0, None, None, OSLO).done()
        assert rig.brief == [("a", "get_weather", OSLO)]

    def test_growing(self) -> None:
        rig = Rig()(0, "a", "web", "")(0, "a", "web_search", "")(0, None, None, OSLO).done()
        assert rig.brief == [("a", "web_search", OSLO)]

    def test_late(self) -> None:
        rig = Rig()(0, "a", None, KEY)(0, None, None, VALUE)(0, None, "f", "").done()
        assert rig.brief == [("a", "f", OSLO)]
        assert rig.count(ev.ToolCallDelta) == 1

    def test_another_name_after_arguments_is_flagged(self) -> None:
        rig = Rig()(0, "a", "f", KEY)(0, "a", "g", VALUE).done()
        assert rig.brief == [("a", "f", OSLO)]
        assert rig.codes == ["name_conflict"]

    def test_two_tools_of_the_list_are_two_calls(self) -> None:
        rig = Rig(tools=["f", "g"])(0, None, "f", "")(0, None, "g", "").done()
        assert [call.name for call in rig.calls] == ["f", "g"]

    def test_the_list_ends_a_name(self) -> None:
        rig = Rig(tools=["get_weather"])(0, "a", "get_wea", KEY)(0, "a", "ther", VALUE).done()
        assert rig.brief == [("a", "get_weather", OSLO)]

    @pytest.mark.parametrize("name", ["two words", "\u202ename", "x\n"])
    def test_bad_names_are_invalid(self, name: str) -> None:
        rig = Rig()(0, "a", name, "{}").done()
        assert (rig.calls[0].state, rig.calls[0].reason) == ("invalid", "bad_name")
        assert [(d.code, d.detail) for d in rig.out.diagnostics] == [("id_invalid", "name")]

    def test_the_list_allows_a_name(self) -> None:
        assert Rig(tools=["two words"])(0, "a", "two words", "{}").done().calls[0].dispatchable

    def test_bad_id(self) -> None:
        rig = Rig()(0, "a\x00", "f", "{}").done()
        assert rig.calls[0].reason == "bad_id"
