"""The assembler's item interface without a decoder: items that the wire itself opens and closes. The numbers of quirks
are those in the vectors.
"""

from __future__ import annotations

from typing import Any

import pytest
from streamweld import events as ev
from streamweld._pure.assemble import InputEnd
from streamweld.errors import StreamError, TruncatedStream
from streamweld.options import Policy

from tests.support.rig import KEY, OSLO, ROME, VALUE
from tests.support.rig_items import FC1, FC2, Items, opened

# 1: which item an address refers to


@pytest.mark.parametrize(
    "addresses",
    [
        ({"item_id": "fc_1"}, {"item_id": "fc_1", "index": 7}),  # P7
        ({"item_id": "x2", "index": 0}, {"item_id": "x3", "index": 0}),  # P3
        ({"index": 0}, {"item_id": "", "index": 0}),  # P4
        ({"item_id": "c1"}, {"item_id": "c1|fc_1"}),  # P5
        ({"call_id": "c1"}, {"call_id": "c1", "index": 0}),  # P9
        ({}, {}),
    ],
)
def test_a_delta_finds_its_call(addresses: tuple[dict[str, Any], dict[str, Any]]) -> None:
    rig = opened()
    for piece, at in zip((KEY, VALUE), addresses, strict=True):
        rig.args(piece, **at)
    assert rig.end().brief == [("c1", "f", OSLO)]
    assert rig.calls[0].item_id == "fc_1"


def test_interleaved_calls_never_mix() -> None:
    rig = opened().open(call_id="c2", **FC2)
    for mine, other in zip(OSLO, ROME, strict=True):
        rig.args(mine, item_id="fc_1").args(other, item_id="fc_2")
    assert rig.end().brief == [("c1", "f", OSLO), ("c2", "f", ROME)]
    assert rig.codes == []


def test_an_unknown_id_is_nobody_elses() -> None:
    rig = opened().args(KEY, item_id="fc_1").args(ROME, call_id="c9").args(VALUE, item_id="fc_1")
    assert ("c1", "f", OSLO) in rig.end().brief


def test_a_delta_before_its_opening_waits_for_the_name() -> None:  # P19
    rig = Items().args(KEY, **FC1)
    assert rig.shown() == []
    rig.open(call_id="c1", **FC1).args(VALUE, **FC1)
    assert rig.end().brief == [("c1", "f", OSLO)]
    assert rig.codes == []


def test_a_call_that_nobody_opened() -> None:  # P20
    rig = Items().args(OSLO, **FC1).call_done(OSLO, "f", call_id="c1", **FC1)
    assert rig.end().brief == [("c1", "f", OSLO)]


def test_rotating_ids_are_aliases_and_said_once() -> None:
    rig = opened()
    for number, letter in enumerate(OSLO):
        rig.args(letter, item_id=f"x{number}", index=0)
    assert rig.end().calls[0].aliases == tuple(f"x{number}" for number in range(len(OSLO)))
    assert rig.codes == ["unstable_id"]


# 2: an index that is reused


def test_an_index_used_again_closes_what_has_no_other_name() -> None:  # M1
    rig = Items(dialect="anthropic").part(index=0).say("a", index=0).open(call_id="t1", index=0).args(OSLO, index=0)
    rig.open(call_id="t2", index=0).args(ROME, index=0).close(index=0)
    assert rig.shown("TextDone", "ToolCall") == ["TextDone", "ToolCall", "ToolCall"]
    assert rig.end("tool_use").brief == [("t1", "f", OSLO), ("t2", "f", ROME)]


def test_one_index_for_every_item() -> None:  # P6
    rig = Items().item(item_id="m", index=0).say("hi", item_id="m", index=0, sub=0)
    rig.open(call_id="c1", item_id="a", index=0).open(call_id="c2", item_id="b", index=0)
    rig.args(ROME, item_id="b", index=0).args(OSLO, item_id="a", index=0)
    assert rig.end().brief == [("c1", "f", OSLO), ("c2", "f", ROME)]
    assert rig.texts() == ["hi"]


# 3: announced again


def test_an_open_call_announced_again_is_the_same_call() -> None:  # P1, report of a gateway
    rig = opened().args(OSLO, **FC1).open(args=OSLO, call_id="c1", **FC2).args_done(OSLO, **FC2).call_done(OSLO, **FC2)
    assert rig.end().brief == [("c1", "f", OSLO)]
    assert rig.calls[0].aliases == ("fc_2",)
    assert rig.codes == ["announced_again"]
    assert rig.out.diagnostics[0].detail == "fc_2"


def test_what_overflows_behind_a_second_announcement_is_a_second_call() -> None:
    rig = opened().args(OSLO, **FC1).open(call_id="c1", **FC2).args(ROME, **FC2)
    assert rig.end().brief == [("c1", "f", OSLO), ("c1__2", "f", ROME)]


@pytest.mark.parametrize("args", ["", OSLO, '{ "city": "Oslo" }'])
def test_a_closed_call_announced_again_brings_nothing_new(args: str) -> None:
    rig = opened().call_done(OSLO, **FC1).open(call_id="c1", **FC2)
    if args:
        rig.args(args, **FC2)
    rig.call_done(None, **FC2)
    assert rig.end().brief == [("c1", "f", OSLO)]
    assert rig.codes == ["announced_again"]


def test_a_closed_call_announced_again_with_other_arguments_is_a_second_one() -> None:  # M12
    rig = Items(dialect="anthropic")
    for index, args in enumerate((OSLO, OSLO, ROME)):
        rig.open(call_id="t1", index=index).args(args, index=index).close(index=index)
    assert rig.end("tool_use").brief == [("t1", "f", OSLO), ("t1__2", "f", ROME)]


def test_another_name_under_the_same_id_is_another_call() -> None:
    rig = opened().args(OSLO, **FC1).open("g", call_id="c1", **FC2).args(ROME, **FC2)
    assert rig.end().brief == [("c1", "f", OSLO), ("c1__2", "g", ROME)]


def test_the_first_takes_the_text_of_its_second_announcement() -> None:
    rig = opened().call_done(None, **FC1).open(call_id="c1", **FC2).args(OSLO, **FC2).call_done(None, **FC2)
    assert rig.end().brief == [("c1", "f", OSLO)]


# 4: the values of the opening


@pytest.mark.parametrize(
    ("snapshot", "pieces", "wanted"),
    [
        ("Hello", ["Hello wor", "ld"], "Hello world"),  # M4
        ("Hel", ["lo"], "Hello"),  # M5
        ("Hello", ["He", "llo"], "Hello"),
        ("Hello", ["He", "y"], "HelloHey"),
        ("Hello", [], "Hello"),
        ("Hello", ["He"], "HelloHe"),
        ("", ["a"], "a"),
    ],
)
def test_text_of_an_opening(snapshot: str, pieces: list[str], wanted: str) -> None:
    rig = Items(dialect="anthropic").part(snapshot, index=0)
    for piece in pieces:
        rig.say(piece, index=0)
    rig.close(index=0).end("end_turn")
    assert rig.texts() == [wanted]
    assert "".join(e.text for e in rig.events if isinstance(e, ev.TextDelta)) == wanted


@pytest.mark.parametrize(
    ("snapshot", "pieces", "wanted"),
    [
        (OSLO, [], OSLO),  # M6
        (OSLO, ["{}", OSLO], OSLO),  # M7
        (OSLO, ["{}"], OSLO),
        (KEY, [KEY, VALUE], OSLO),  # P22
        (KEY, [VALUE], OSLO),
        (OSLO, [KEY, VALUE], OSLO),
        (OSLO, [ROME], ROME),
        (KEY, [ROME], ROME),
        (None, ['city":', VALUE], OSLO),  # M9
    ],
)
def test_arguments_of_an_opening(snapshot: str | None, pieces: list[str], wanted: str) -> None:
    rig = Items(dialect="anthropic").open(args=snapshot, call_id="t1", index=0)
    for piece in pieces:
        rig.args(piece, index=0)
    assert rig.close(index=0).end("tool_use").brief == [("t1", "f", wanted)]
    assert rig.calls[0].state == "complete"


def test_lost_beginnings_are_not_put_back_in_strict() -> None:
    rig = Items("strict", dialect="anthropic").open(call_id="t1", index=0).args('city":"Oslo"}', index=0)
    rig.close(index=0)  # only the finish reason shows whether they may be
    with pytest.raises(StreamError) as raised:
        rig.end("tool_use")
    assert raised.value.rule == "args_restored"


# 5: complete values


def test_a_value_completes_what_was_streamed() -> None:
    rig = opened().args(KEY, **FC1).call_done(OSLO, **FC1)
    assert rig.shown("ToolCallDelta", "ToolCallReset") == ["ToolCallDelta", "ToolCallDelta"]
    assert rig.end().codes == []


def test_a_value_corrects_what_was_streamed() -> None:
    rig = opened().args(ROME, **FC1).call_done(OSLO, **FC1)
    assert rig.end().brief == [("c1", "f", OSLO)]
    assert rig.codes == ["conflict"]
    assert rig.count(ev.ToolCallReset) == 1


def test_another_spelling_is_no_conflict() -> None:
    rig = opened().args('{ "city": "Oslo" }', **FC1).call_done(OSLO, **FC1)
    assert (rig.end().brief, rig.codes) == ([("c1", "f", OSLO)], [])


def test_nothing_does_not_replace_arguments() -> None:  # P12
    rig = opened().args(OSLO, **FC1).args_done(OSLO, **FC1).call_done("{}", **FC1)
    assert (rig.end().brief, rig.codes) == ([("c1", "f", OSLO)], ["conflict"])


def test_a_text_told_as_a_whole() -> None:
    rig = Items().part(item_id="m", sub=0).say("Hel", item_id="m", sub=0).value("Hello", item_id="m", sub=0)
    rig.close_part("Hello", item_id="m", sub=0).end()
    assert [e.text for e in rig.events if isinstance(e, ev.TextDelta)] == ["Hel", "lo"]
    rig = Items().say("Hullo", item_id="m", sub=0).close_part("Hello", item_id="m", sub=0).end()
    assert (rig.texts(), rig.codes) == (["Hello"], ["conflict"])
    assert rig.count(ev.TextDelta) == 1


# 6: closes


def test_reasoning_waits_for_its_encrypted_content() -> None:
    rig = Items().item("reasoning", item_id="rs", index=0)
    for sub in (0, 1):
        rig.part(kind="reasoning", item_id="rs", sub=sub).say("t", "reasoning", item_id="rs", sub=sub)
        rig.close_part("t", "reasoning", item_id="rs", sub=sub)
    assert rig.shown("ReasoningDone") == []
    rig.close("reasoning", "gAAA", item_id="rs").end()
    done = [e for e in rig.events if isinstance(e, ev.ReasoningDone)]
    assert [(e.item_id, e.encrypted_content) for e in done] == [("rs", None), ("rs", "gAAA")]


def test_reasoning_without_a_word_is_kept() -> None:
    rig = Items().item("reasoning", item_id="rs").close("reasoning", "gAAA", item_id="rs").end()
    assert [(e.text, e.item_id) for e in rig.events if isinstance(e, ev.ReasoningDone)] == [("", "rs")]


def test_a_call_without_arguments_waits() -> None:
    rig = opened().call_done(None, **FC1)
    assert rig.shown("ToolCall") == []
    assert rig.end().calls[0].state == "empty"


def test_a_call_is_told_at_its_close() -> None:
    rig = opened().args(OSLO, **FC1).call_done(OSLO, **FC1)
    assert rig.shown("ToolCall") == ["ToolCall"]


def test_late_deltas_are_said_once_a_part() -> None:  # P21
    rig = opened().call_done(OSLO, **FC1).args(OSLO, **FC1).args(OSLO, **FC1)
    rig.part(item_id="m", sub=0).close_part("a", item_id="m", sub=0).say("b", item_id="m", sub=0)
    assert rig.end().codes == ["late_delta", "late_delta"]
    assert (rig.brief, rig.texts()) == ([("c1", "f", OSLO)], ["a", "b"])


def test_a_new_number_in_every_delta() -> None:  # P28
    rig = Items().item(item_id="m", index=0)
    for sub, letter in enumerate("hello"):
        rig.say(letter, item_id="m", sub=sub)
    assert rig.end().texts() == ["hello"]


def test_parts_that_were_announced_stay_apart() -> None:
    rig = Items().part(item_id="m", sub=0).part(item_id="m", sub=1)
    rig.say("b", item_id="m", sub=1).say("a", item_id="m", sub=0).say("B", item_id="m", sub=1)
    assert rig.end().texts() == ["a", "bB"]


# 7: the end


ASSUME = Policy(missing_terminal="assume")


def test_what_the_wire_closed_is_cut_without_its_end() -> None:  # P18
    rig = opened().call_done(OSLO, **FC1).cut()
    assert (rig.fault.rule, rig.fault.where, rig.fault.open_items) == ("truncated", "between_events", ())
    assert rig.calls[0].state == "complete"


def test_what_the_wire_closed_may_be_assumed_to_be_all() -> None:  # P18
    rig = Items(ASSUME).open(**FC1).call_done(OSLO, **FC1)
    assert rig.asm.end("nothing") == "assumed"
    assert rig.check().codes == ["terminal_missing"]
    assert rig.calls[0].dispatchable
    assert rig.count(ev.Finished) == 0
    rig = Items(ASSUME).open(**FC1).call_done(OSLO, **FC1)
    with pytest.raises(TruncatedStream) as caught:
        rig.asm.end("mid_event")
    assert caught.value.where == "mid_event"


def test_a_broken_transport_is_never_an_end() -> None:
    for policy in (Policy(), ASSUME):
        rig = Items(policy).open(**FC1).call_done(OSLO, **FC1)
        rig.asm.finish(0, "completed")
        with pytest.raises(TruncatedStream) as caught:
            rig.asm.end("nothing", InputEnd.BROKEN)
        assert (caught.value.where, rig.asm.completeness) == ("transport", "truncated")
        assert rig.check().calls[0].state == "complete"


def test_an_answer_does_not_end_with_reasoning() -> None:
    rig = Items(ASSUME).item("reasoning", item_id="rs").close("reasoning", item_id="rs")
    assert rig.cut().fault.where == "between_events"


def test_an_open_call_is_cut() -> None:
    rig = opened().args(OSLO, **FC1)
    assert rig.cut().calls[0].state == "incomplete"
    assert not rig.calls[0].dispatchable


def test_several_open_parts_are_told_as_open() -> None:
    rig = Items().part(item_id="a", sub=0).say("x", item_id="a", sub=0).part(item_id="b", sub=0)
    assert rig.cut().fault.open_items == (0, 1)


# The terminal list


def test_a_list_that_repeats_changes_nothing() -> None:  # P15, P16
    for address in ({"item_id": "fc_1"}, {"call_id": "c1"}, {"item_id": "fc_9", "call_id": "c9"}):
        rig = Items().say("hi", item_id="m1", index=0, sub=0).open(call_id="c1", **FC2).args(OSLO, **FC2)
        rig.text_again("hi", item_id="m9", index=0, sub=0).again(OSLO, **address).end()
        assert (rig.texts(), rig.brief) == (["hi"], [("c1", "f", OSLO)])


def test_a_list_that_is_all_there_is() -> None:  # P14
    rig = Items().text_again("hi", item_id="m", index=0, sub=0).again(OSLO, call_id="c1").again(OSLO, call_id="c2")
    assert rig.end().brief == [("c1", "f", OSLO), ("c2", "f", OSLO)]
    assert rig.texts() == ["hi"]


def test_a_list_completes_what_is_open() -> None:
    rig = opened().args(KEY, **FC1).say("h", item_id="m", index=1, sub=0)
    rig.again(OSLO, call_id="c1").text_again("hi", item_id="m", index=1, sub=0).end()
    assert (rig.brief, rig.texts(), rig.codes) == ([("c1", "f", OSLO)], ["hi"], [])
