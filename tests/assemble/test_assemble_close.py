"""How parts and calls close, and which events precede the close, tested on the assembler alone."""

from __future__ import annotations

import json

import pytest
from streamweld import events as ev
from streamweld._pure.assemble import Fragment, Usage
from streamweld.errors import UpstreamError
from streamweld.options import Policy

from tests.support.rig import KEY, OSLO, ROME, VALUE, Rig


class TestClose:
    def test_pieces_are_stitched(self) -> None:
        rig = Rig()(0, "r1", "f", '{"')(0, "r2", "f", '{":"')(0, "r3", "f", "O")(0, "r4", "f", '"}').done()
        assert rig.brief == [("r1", "f", '{"{":"O"}')]
        assert rig.calls[0].aliases == ("r2", "r3", "r4")
        assert "args_stitched" in rig.codes

    def test_nameless_arguments_are_paired(self) -> None:
        rig = Rig()(0, "b", None, OSLO)(1, "a", "f", "").done()
        assert rig.brief == [("a", "f", OSLO)]
        assert rig.codes == ["args_paired"]

    def test_null_and_blank_are_no_arguments(self) -> None:
        for text in ("null", '""', "  "):
            rig = Rig()(0, "a", "f", text).done()
            (call,) = rig.calls
            assert (call.state, call.arguments, call.raw_arguments, call.parsed) == ("empty", "", text, {})

    def test_honest_twins_stay_two(self) -> None:
        rig = Rig()(0, "a", "f", OSLO)(1, "b", "f", OSLO).done()
        assert [call.call_id for call in rig.calls] == ["a", "b"]
        assert rig.codes == []

    def test_same_id_name_and_arguments_is_one(self) -> None:
        rig = Rig()(0, "a", "f", OSLO)(1, "a", "f", KEY)(1, None, None, VALUE).done()
        assert rig.brief == [("a", "f", OSLO)]
        assert rig.codes == ["args_replay_dropped"]

    def test_minted_ids(self) -> None:
        rig = Rig(known_call_ids=["a", "call_sw_1"])(0, "a", "f", "{}")(1, None, "g", "{}")(2, "b", "h", "{}")
        rig(3, "b", "h", OSLO)(4, "b__2", "i", "{}").done()
        assert [c.call_id for c in rig.calls] == ["a__2", "call_sw_1__2", "b", "b__3", "b__2"]
        assert [d.detail for d in rig.out.diagnostics if d.code == "id_minted"] == ["a__2", "call_sw_1__2", "b__3"]

    def test_seed(self) -> None:
        assert Rig(seed="t7")(0, None, "f", "{}").done().calls[0].call_id == "call_t7_0"

    def test_ids_are_unique_over_choices(self) -> None:
        rig = Rig()(0, "a", "f", "{}")(0, "a", "f", "{}", choice=1)
        rig.asm.finish(1, "tool_calls")
        rig.done()
        assert [(c.choice, c.call_id) for c in rig.calls] == [(0, "a"), (1, "a__2")]

    def test_order_by_index(self) -> None:
        rig = Rig()(2, "a", "f", "{}")(1, "b", "g", "{}").done()
        assert [call.call_id for call in rig.calls] == ["b", "a"]

    def test_order_by_arrival_where_an_index_changed_hands(self) -> None:
        rig = Rig()(2, "a", "f", "{}")(1, "b", "g", "{}")(1, "c", "g", "{}").done()
        assert [call.call_id for call in rig.calls] == ["a", "b", "c"]

    def test_finish_length_inside_the_arguments(self) -> None:
        rig = Rig()(0, "a", "f", OSLO)(1, "b", "f", KEY).done("length")
        assert [call.state for call in rig.calls] == ["complete", "incomplete"]
        assert rig.codes == []

    def test_a_cut_call_is_incomplete_even_if_it_is_json(self) -> None:
        rig = Rig()(0, "a", "f", OSLO).cut()
        assert [call.state for call in rig.calls] == ["incomplete"]
        assert (rig.fault.where, rig.fault.open_items) == ("between_events", (0,))

    def test_where_it_was_cut(self) -> None:
        assert Rig()(0, "a", "f", KEY).cut().fault.where == "mid_arguments"
        assert Rig().text("par").cut().fault.where == "mid_text"
        assert Rig().cut().fault.where == "between_events"

    def test_assumed(self) -> None:
        rig = Rig()(0, "a", "f", OSLO)
        rig.asm.finish(0, "tool_calls")
        assert rig.asm.end("nothing") == "assumed"
        assert rig.check().calls[0].state == "complete"
        assert rig.codes == ["no_terminal_marker"]

    def test_not_an_object(self) -> None:
        for text in ("[1]", "12", '"x"', "true"):
            rig = Rig()(0, "a", "f", text).done()
            assert (rig.calls[0].state, rig.calls[0].reason) == ("invalid", "not_object")

    def test_close_at_finish(self) -> None:
        rig = Rig(Policy(close_calls_at="finish"))(0, "a", "f", OSLO)
        rig.asm.finish(0, "tool_calls")
        rig.check()
        assert rig.count(ev.ToolCall) == 1
        rig(0, None, None, "evil").text("more")
        rig.asm.done()
        assert rig.check().brief == [("a", "f", OSLO)]
        assert rig.codes == ["late_delta"]

    def test_after_the_marker_nothing_counts(self) -> None:
        rig = Rig()(0, "a", "f", OSLO).done()
        rig(1, "b", "f", ROME).text("x")
        rig.asm.finish(0, "stop")
        assert rig.check().brief == [("a", "f", OSLO)]


class TestMessage:
    def message(self, rig: Rig, *fragments: Fragment, content: str | None = None) -> Rig:
        rig.asm.message(0, content, None, None, fragments)
        rig.asm.finish(0, "tool_calls" if fragments else "stop")
        return rig.done(None)

    def entry(self, call_id: str | None, name: str, args: str) -> Fragment:
        return Fragment(id=call_id, name=name, arguments=args)

    def test_whole_body(self) -> None:
        rig = self.message(Rig(), self.entry("a", "f", OSLO), self.entry(None, "f", ROME), content="ok")
        assert rig.brief == [("a", "f", OSLO), ("*", "f", ROME)]
        assert [d.code for d in rig.out.diagnostics] == ["id_minted"]

    def test_completes_what_was_streamed(self) -> None:
        rig = Rig().text("Hello ").text("wor")(0, "a", "f", KEY)
        self.message(rig, self.entry("a", "f", OSLO), content="Hello world")
        assert rig.brief == [("a", "f", OSLO)]
        assert "".join(e.text for e in rig.events if isinstance(e, ev.TextDone)) == "Hello world"
        assert rig.codes == []

    def test_replaces_what_differs(self) -> None:
        rig = self.message(Rig()(0, "a", "f", ROME), self.entry("a", "f", OSLO))
        assert rig.brief == [("a", "f", OSLO)]
        assert rig.codes == ["conflict"]

    @pytest.mark.parametrize(("said", "codes"), [("", []), ("{}", ["conflict"]), ("<x>", ["conflict"])])
    def test_never_shrinks(self, said: str, codes: list[str]) -> None:
        rig = self.message(Rig()(0, "a", "f", OSLO), self.entry("a", "f", said))
        assert rig.brief == [("a", "f", OSLO)]
        assert rig.codes == codes

    def test_calls_without_id_by_place(self) -> None:
        rig = self.message(Rig()(0, None, "f", KEY)(1, None, "g", ""), *[self.entry(None, n, OSLO) for n in "fg"])
        assert rig.brief == [("*", "f", OSLO), ("*", "g", OSLO)]

    def test_what_it_leaves_out_stays(self) -> None:
        rig = self.message(Rig()(0, "a", "f", OSLO)(1, "b", "g", "{}"), self.entry("a", "f", OSLO))
        assert [call.call_id for call in rig.calls] == ["a", "b"]
        assert rig.codes == ["conflict"]

    def test_calls_close_at_once(self) -> None:
        rig = Rig()(0, "a", "f", OSLO)
        rig.asm.message(0, None, None, None, [self.entry("a", "f", OSLO)])
        rig.asm.finish(0, "tool_calls")
        assert rig.check().count(ev.ToolCall) == 1

    def test_text_conflict(self) -> None:
        rig = self.message(Rig().text("Hallo"), content="Hello")
        assert [e.text for e in rig.asm.snapshot() if isinstance(e, ev.TextDone)] == ["Hello"]
        assert rig.codes == ["conflict"]


class TestEmission:
    def test_start_waits_for_an_argument_byte(self) -> None:
        rig = Rig()(0, "a", "get_", "")
        assert rig.out.events == []
        rig(0, None, "weather", "")(0, None, None, "{")
        shown = [e for e in rig.out.events if not isinstance(e, ev.Diagnostic)]
        assert [type(e).__name__ for e in shown] == ["ToolCallStarted", "ToolCallDelta"]
        assert shown[0].name == "get_weather"

    def test_text_settles_the_names_before_it(self) -> None:
        """The header of another call does not settle them, because the names of parallel calls may arrive in
        alternating pieces.
        """
        rig = Rig()(0, "a", "f", "")(1, "b", "g", "")
        assert rig.out.events == []
        rig.text("x")
        started = [(type(e).__name__, e.part) for e in rig.out.events]
        assert started == [("ToolCallStarted", 0), ("ToolCallStarted", 1), ("TextStarted", 2), ("TextDelta", 2)]

    def test_arguments_of_another_call_settle_the_name(self) -> None:
        rig = Rig()(0, "a", "f", "")(1, "b", "g", "")(1, None, None, "{")
        assert [(type(e).__name__, e.part) for e in rig.out.events] == [
            ("ToolCallStarted", 0),
            ("ToolCallStarted", 1),
            ("ToolCallDelta", 1),
        ]

    def test_arguments_before_any_name_are_one_delta(self) -> None:
        rig = Rig()(0, "a", None, KEY)(0, None, None, '"O')
        assert rig.out.events == []
        rig(0, None, "f", 'slo"}')
        assert [getattr(e, "arguments", None) for e in rig.out.events] == [None, OSLO]

    def test_text_closes_before_a_call(self) -> None:
        rig = Rig().text("a")(0, "a", "f", "{}").text("b").done()
        kinds = [type(e).__name__ for e in rig.events]
        assert kinds.index("TextDone") < kinds.index("ToolCallStarted")
        assert [e.text for e in rig.events if isinstance(e, ev.TextDone)] == ["a", "b"]

    def test_reset_when_shown_text_changes(self) -> None:
        rig = Rig()(0, "a", "f", KEY)(0, None, None, "oops")(0, None, None, ROME).done()
        assert rig.brief == [("a", "f", ROME)]
        assert rig.count(ev.ToolCallReset) == 1

    @pytest.mark.parametrize(
        "pieces",
        [
            ("null", OSLO),
            ("{}", KEY, VALUE),
            ('""', KEY, VALUE),
            ('"{}"', OSLO),
            (json.dumps(OSLO),),
            ('{"city":', '{"city":"Os', OSLO),
            (KEY, KEY, VALUE, VALUE),
        ],
    )
    def test_what_may_be_another_text_is_not_shown(self, pieces: tuple[str, ...]) -> None:
        rig = Rig()(0, "a", "f", pieces[0])
        for piece in pieces[1:]:
            rig(0, None, None, piece)
        assert rig.done().brief == [("a", "f", OSLO)]
        assert rig.count(ev.ToolCallReset) == 0

    def test_more_is_shown_once_the_doubt_is_gone(self) -> None:
        rig = Rig()(0, "a", "f", '{"o":')(0, None, None, '{"o":1}').check()
        assert [e.arguments for e in rig.events if isinstance(e, ev.ToolCallDelta)] == ['{"o":']
        rig(0, None, None, "}").check()
        assert [e.arguments for e in rig.events if isinstance(e, ev.ToolCallDelta)] == ['{"o":', '{"o":1}}']

    def test_one_call_event_a_part(self) -> None:
        rig = Rig()(0, "a", "f", OSLO)(1, "b", "g", KEY).done()
        assert sorted(e.part for e in rig.events if isinstance(e, ev.ToolCall)) == [0, 1]

    def test_silent_builds_no_events_and_says_the_same(self) -> None:
        def run(*, silent: bool) -> Rig:
            rig = Rig(silent=silent).text("t")(0, "a", "f", KEY)(0, None, None, KEY)(0, None, None, VALUE)
            rig(1, "a", "f", ROME)
            rig.asm.usage(Usage(input_tokens=1, raw='{"prompt_tokens":1}'))
            return rig.done()

        loud, silent = run(silent=False), run(silent=True)
        assert silent.events == []
        assert silent.asm.snapshot() == loud.asm.snapshot()
        assert silent.out.diagnostics == loud.out.diagnostics

    def test_metadata_goes_to_the_first_event(self) -> None:
        rig = Rig().text("a", metadata='{"m":1}').text("b").text("", metadata='{"n":2}').done("stop")
        assert [e.provider_metadata for e in rig.events] == [{"m": 1}, None, None, None, {"n": 2}]

    def test_snapshot_of_an_open_stream(self) -> None:
        rig = Rig().text("a")(0, "a", "f", KEY)(1, None, "g", "")
        text, first, second = rig.asm.snapshot()
        assert (text.text, first.state, first.arguments, second.call_id) == ("a", "open", KEY, "call_sw_2")
        rig.cut()


class TestParts:
    def kinds(self, rig: Rig) -> list[str]:
        return [type(e).__name__ for e in rig.events]

    def test_parts_close_each_other(self) -> None:
        rig = Rig()
        rig.asm.reasoning(0, "raw", "hm", None)
        rig.text("hi")
        rig.asm.refusal(0, "no", None)
        rig.done("stop")
        assert [k for k in self.kinds(rig) if k.endswith("Done")] == ["ReasoningDone", "TextDone", "RefusalDone"]

    def test_attributes_and_annotations(self) -> None:
        rig = Rig()
        rig.asm.reasoning_attributes(0, "sig", None, '[{"a":1}]')
        rig.asm.reasoning(0, "raw", "hm", None)
        rig.asm.reasoning_attributes(0, None, "enc", '[{"b":2}]')
        rig.text("hi")
        rig.asm.annotations(0, '[{"url":"u"}]')
        rig.done("stop")
        done = [e for e in rig.events if isinstance(e, ev.ReasoningDone)]
        assert (done[0].signature, done[0].encrypted_content) == ("sig", "enc")
        assert done[0].provider_metadata == {"reasoning_details": [{"a": 1}, {"b": 2}]}
        assert [e.annotations for e in rig.events if isinstance(e, ev.TextDone)] == [({"url": "u"},)]

    def test_encrypted_reasoning_without_text(self) -> None:
        rig = Rig().text("hi")
        rig.asm.reasoning_attributes(0, None, "enc", None)
        rig.done("stop")
        assert [e.encrypted_content for e in rig.events if isinstance(e, ev.ReasoningDone)] == ["enc"]

    def test_retype(self) -> None:
        rig = Rig().text("hm")
        rig.asm.retype_text(0)
        rig.text("hi").done("stop")
        shown = [(type(e).__name__, e.text) for e in rig.asm.snapshot() if hasattr(e, "text")]
        assert shown == [("ReasoningDone", "hm"), ("TextDone", "hi")]

    def test_surrogate_over_two_deltas(self) -> None:
        rig = Rig().text("a\ud83d").text("\ude00b").done("stop")
        assert [e.text for e in rig.events if isinstance(e, ev.TextDelta)] == ["a", "\U0001f600b"]
        assert rig.codes == []

    def test_surrogate_at_the_end(self) -> None:
        rig = Rig().text("a\ud83d").done("stop")
        assert [e.text for e in rig.events if isinstance(e, ev.TextDone)] == ["a\ufffd"]
        assert rig.codes == ["lone_surrogate"]


class TestFinish:
    @pytest.mark.parametrize(
        ("reasons", "reason", "raw", "codes"),
        [
            (["stop"], "stop", "stop", []),
            (["tool_calls", "stop"], "stop", "tool_calls", ["finish_repeated", "finish_contradicts"]),
            (["stop", "length"], "length", "length", ["finish_repeated"]),
            (["length", "stop"], "length", "length", ["finish_repeated"]),
            (["stop", "stop"], "stop", "stop", []),
            (["eos"], "stop", "eos", []),
            (["weird"], "other", "weird", ["finish_unknown"]),
            ([], "stop", None, ["finish_missing"]),
        ],
    )
    def test_without_calls(self, reasons: list[str], reason: str, raw: str | None, codes: list[str]) -> None:
        rig = Rig().text("x")
        for word in reasons:
            rig.asm.finish(0, word)
        rig.done(None)
        (finished,) = [e for e in rig.events if isinstance(e, ev.Finished)]
        assert (finished.reason, finished.raw_reason, rig.codes) == (reason, raw, codes)

    @pytest.mark.parametrize(
        ("sent", "reason"), [("stop", "tool_calls"), ("length", "length"), (None, "tool_calls"), ("odd", "other")]
    )
    def test_with_calls(self, sent: str | None, reason: str) -> None:
        rig = Rig()(0, "a", "f", OSLO).done(sent)
        assert [e.reason for e in rig.events if isinstance(e, ev.Finished)] == [reason]

    def test_usage_the_last_that_says_something(self) -> None:
        rig = Rig().text("x")
        for tokens in (1, 5, 0):
            rig.asm.usage(Usage(input_tokens=tokens, raw=f'{{"prompt_tokens":{tokens}}}'))
        rig.done("stop")
        assert [e.input_tokens for e in rig.events if isinstance(e, ev.Usage)] == [5]

    def test_upstream_error(self) -> None:
        rig = Rig().text("par")(0, "a", "f", OSLO)
        with pytest.raises(UpstreamError) as caught:
            rig.asm.upstream_error("502", None, "gone", b"{}")
        rig.check()
        assert isinstance(rig.events[-1], ev.UpstreamErrorEvent)
        assert (caught.value.code, caught.value.message) == ("502", "gone")
        assert [call.state for call in rig.calls] == ["incomplete"]
        assert rig.count(ev.Finished) == 0
