"""Items without a decoder: ids, usage, results, names and limits. `test_items` tests parts and calls."""

from __future__ import annotations

import pytest
from streamweld import events as ev
from streamweld._pure.model.delta import Usage
from streamweld.errors import LimitExceeded
from streamweld.options import Limits

from tests.support.rig import OSLO
from tests.support.rig_items import Items


def test_calls_of_the_provider_are_not_the_clients() -> None:
    rig = Items().open("web_search", provider=True, call_id="ws").call_done(OSLO, provider=True, call_id="ws").end()
    assert not rig.calls[0].dispatchable
    assert [e.reason for e in rig.events if isinstance(e, ev.Finished)] == ["stop"]


def test_missing_ids_are_minted_and_said() -> None:
    for dialect, code in (("anthropic", "id_minted"), ("gemini", "id_absent")):
        rig = Items(dialect=dialect).call_done(OSLO, "f", index=0).end(None)
        assert rig.brief == [("*", "f", OSLO)]
        assert [d.code for d in rig.out.diagnostics if d.code.startswith("id_")] == [code]


def test_usage_in_pieces() -> None:
    rig = Items(dialect="anthropic").call_done(OSLO, "f", call_id="a")
    rig.asm.merge_usage(Usage(input_tokens=5, output_tokens=1, raw='{"input_tokens":5,"output_tokens":1}'))
    rig.asm.merge_usage(Usage(output_tokens=9, raw='{"output_tokens":9}'))
    rig.end("tool_use")
    usage = next(e for e in rig.events if isinstance(e, ev.Usage))
    assert (usage.input_tokens, usage.output_tokens, usage.raw) == (5, 9, {"input_tokens": 5, "output_tokens": 9})


def test_results_of_one_call_are_one_part() -> None:
    rig = Items()
    for output in ("1", "2"):
        rig.asm.result(0, "a", output, False, None)
    assert [e.output for e in rig.asm.snapshot() if isinstance(e, ev.ToolResult)] == [2]
    rig.end(None)
    assert [e.part for e in rig.events if isinstance(e, ev.ToolResult)] == [0, 0]


def test_names_of_items_outlive_the_stream() -> None:
    rig = Items().part(item_id="msg_1", sub=0, metadata='{"phase":"final"}').say("a", item_id="msg_1", sub=0).end()
    assert [(e.part, e.item_id) for e in rig.asm.snapshot() if isinstance(e, ev.TextStarted)] == [(0, "msg_1")]
    assert [e.provider_metadata for e in rig.asm.snapshot() if isinstance(e, ev.TextDone)] == [{"phase": "final"}]


def test_ids_may_come_again_behind_a_step() -> None:
    rig = Items(dialect="ai-sdk-parts")
    for text in ("a", "b"):
        rig.part(item_id="0").say(text, item_id="0").close_part(item_id="0")
        rig.asm.forget_addresses(0)
    assert rig.end(None).texts() == ["a", "b"]


def test_caps_hold_for_what_is_held() -> None:
    with pytest.raises(LimitExceeded, match="max_arguments_bytes"):
        Items(limits=Limits(max_arguments_bytes=8)).open(args=OSLO, call_id="c1")
    with pytest.raises(LimitExceeded, match="max_text_bytes"):
        Items(limits=Limits(max_text_bytes=8)).part("x" * 9, item_id="m")
    with pytest.raises(LimitExceeded, match="max_id_bytes"):
        Items(limits=Limits(max_id_bytes=8)).open(call_id="x" * 9)
    rig = Items(limits=Limits(max_tool_calls=2)).open(call_id="a").open(call_id="b")
    with pytest.raises(LimitExceeded, match="max_tool_calls"):
        rig.open(call_id="c")
