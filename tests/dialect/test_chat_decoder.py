"""Every member of a Chat chunk, in both backends. Identity and framing are tested elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from streamweld.errors import LimitExceeded, UpstreamError

from tests.support.expect import calm, raised, said
from tests.support.harness import bytewise, difference, read
from tests.support.servers.wire import DONE, call, chunk, end, event, text

if TYPE_CHECKING:
    from tests.support.harness import Outcome

HE = text("he")
Y = text("y", "stop")


def of(outcome: Outcome, name: str) -> list[Any]:
    return [e for e in outcome.events if type(e).__name__ == name]


def entry(**members: Any) -> bytes:
    return chunk({"tool_calls": [members]})


class TestMetadata:
    """Unknown members: attached once, to the first event that can carry them."""

    def test_of_the_first_chunk_is_on_response_started(self, backend: str) -> None:
        calm(
            outcome := read(
                backend, [chunk({"content": "a"}, id="c", model="m", created=7, system_fingerprint="fp"), end("stop")]
            )
        )
        (started,) = of(outcome, "ResponseStarted")
        assert (started.id, started.model, started.created) == ("c", "m", 7)
        assert started.provider_metadata == {"system_fingerprint": "fp"}
        assert [e.provider_metadata for e in of(outcome, "TextDelta")] == [None]

    def test_of_a_chunk_is_not_repeated_but_for_news(self, backend: str) -> None:
        body = [
            chunk({"content": word}, tier=tier) for word, tier in (("a", 1), ("b", 1), ("c", 2), ("d", None), ("e", 2))
        ]
        calm(outcome := read(backend, [*body, end("stop")]))
        carried = [e.provider_metadata for e in of(outcome, "TextDelta")]
        assert carried == [None, None, {"tier": 2}, None, None]

    def test_the_text_as_sent_decides_what_is_news(self, backend: str) -> None:
        one = chunk({"content": "a"}, x="@")
        body = [one.replace(b'"@"', raw) for raw in (b"1.0", b"1.0", b"1.00")]
        calm(outcome := read(backend, [*body, end("stop")]))
        assert [e.provider_metadata for e in of(outcome, "TextDelta")] == [None, None, {"x": 1.0}]

    def test_an_inner_level_wins(self, backend: str) -> None:
        payload = {"choices": [{"index": 0, "delta": {"content": "b", "x": 3}, "x": 2, "y": 2}], "x": 1, "z": 1}
        calm(outcome := read(backend, [text("a"), event(payload), end("stop")]))
        assert of(outcome, "TextDelta")[1].provider_metadata == {"x": 3, "z": 1, "y": 2}

    def test_is_on_the_first_event_only(self, backend: str) -> None:
        calm(outcome := read(backend, [text("a"), chunk({"reasoning": "r", "content": "b"}, x=1), end("stop")]))
        carried = [
            e.provider_metadata
            for e in outcome.events
            if e.type in ("text_delta", "reasoning_started", "reasoning_delta")
        ]
        assert carried.count({"x": 1}) == 1
        assert carried.count(None) == len(carried) - 1

    def test_without_an_event_it_goes_to_finished(self, backend: str) -> None:
        filters = {"choices": [{"index": 0, "finish_reason": None, "offsets": {"a": 1}, "logprobs": None}]}
        body = [text("a", "stop"), event(filters), event({"choices": [], "cost": 2, "offsets": 3}), DONE]
        calm(outcome := read(backend, body))
        assert of(outcome, "Finished")[0].provider_metadata == {"offsets": 3, "cost": 2}

    def test_of_a_call_is_on_the_call(self, backend: str) -> None:
        body = [
            entry(index=0, id="a", type="function", function={"name": "f", "arguments": "{", "strict": True}),
            entry(index=0, function={"arguments": "}"}, extra_content={"google": {"thought_signature": "S"}}),
            end(),
        ]
        calm(outcome := read(backend, body))
        (only,) = outcome.response.tool_calls
        assert only.provider_metadata == {"strict": True, "extra_content": {"google": {"thought_signature": "S"}}}
        assert all(e.provider_metadata is None for e in of(outcome, "ToolCallDelta"))

    def test_logprobs(self, backend: str) -> None:
        payload = {"choices": [{"index": 0, "delta": {"content": "b"}, "logprobs": {"content": []}}]}
        calm(outcome := read(backend, [text("a"), event(payload), end("stop")]))
        assert of(outcome, "TextDelta")[1].provider_metadata == {"logprobs": {"content": []}}

    def test_raw_text_keeps_its_escapes(self, backend: str) -> None:
        body = text("b").replace(b'{"object"', '{"k\\u00e9y":"\\ud83d\\ude00é",  "n" : [1, 2.50],"object"'.encode())
        calm(outcome := read(backend, [text("a"), body, end("stop")]))
        assert of(outcome, "TextDelta")[1].provider_metadata == {"kéy": "\U0001f600é", "n": [1, 2.5]}


class TestContent:
    def test_parts(self, backend: str) -> None:
        parts = [
            {"type": "thinking", "thinking": [{"type": "text", "text": "h"}, {"type": "text", "text": "m"}]},
            {"type": "thinking", "thinking": "!"},
            {"type": "text", "text": "hi"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
            {"type": "image_url", "image_url": "https://x.example/a.png"},
            None,
        ]
        calm(outcome := read(backend, [chunk({"content": parts}), end("stop")]))
        assert (outcome.response.reasoning, outcome.response.text) == ("hm!", "hi")
        files = [(f.media_type, f.data, f.url) for f in of(outcome, "File")]
        assert files == [("image/png", "QUJD", None), (None, None, "https://x.example/a.png")]

    def test_a_part_that_nobody_knows_stays_reachable(self, backend: str) -> None:
        calm(outcome := read(backend, [chunk({"content": [{"type": "reference", "ids": [1]}]}), Y, DONE]))
        assert [e.raw for e in of(outcome, "Unknown")] == [b'{"type":"reference","ids":[1]}']

    def test_a_wrong_shape_stays_reachable(self, backend: str) -> None:
        outcome = read(backend, [HE, chunk({"content": 7, "refusal": 5}), Y, DONE])
        assert outcome.response.text == "hey"
        assert sorted(d.detail for d in outcome.diagnostics) == ["/choices/0/delta/content", "/choices/0/delta/refusal"]
        assert [e.raw for e in of(outcome, "Unknown")] == [b"7", b"5"]

    def test_one_part_of_unknown_type_stays_reachable(self, backend: str) -> None:
        """Content that is an object is one part. A part of an unknown type is kept as sent."""
        outcome = read(backend, [HE, chunk({"content": {"a": [1]}}), Y, DONE])
        assert outcome.response.text == "hey"
        assert [e.raw for e in of(outcome, "Unknown")] == [b'{"a":[1]}']

    def test_images_and_annotations(self, backend: str) -> None:
        cite = {"type": "url_citation", "url_citation": {"url": "https://x.example"}}
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}, "index": 0, "seed": 4}
        body = [chunk({"content": "see", "annotations": [cite]}), chunk({"images": [image], "annotations": [cite]})]
        calm(outcome := read(backend, [*body, end("stop")]))
        assert of(outcome, "TextDone")[0].annotations == (cite, cite)
        (file,) = of(outcome, "File")
        assert (file.media_type, file.data, file.provider_metadata) == ("image/png", "QUJD", {"seed": 4})

    def test_refusal(self, backend: str) -> None:
        calm(outcome := read(backend, [chunk({"refusal": "I can"}), chunk({"refusal": "not."}), end("stop")]))
        assert (outcome.response.refusal, outcome.response.text) == ("I cannot.", "")

    def test_restated_at_the_end(self, backend: str) -> None:
        body = [text("The answer "), text("is 42."), text("The answer is 42.", "stop"), DONE]
        assert read(backend, body).response.text == "The answer is 42."
        kept = read(backend, body, {"policy": {"drop_restated_content": False}})
        assert kept.response.text == "The answer is 42.The answer is 42."
        once = read(backend, [text("no"), text("no", "stop"), DONE])
        assert once.response.text == "nono"


class TestReasoning:
    @pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
    def test_fields(self, backend: str, field: str) -> None:
        calm(outcome := read(backend, [chunk({field: "h", "content": ""}), chunk({field: "m"}), Y, DONE]))
        assert (outcome.response.reasoning, outcome.response.text) == ("hm", "y")

    def test_one_text_in_two_fields_is_used_once_and_said_once(self, backend: str) -> None:
        body = [chunk({"reasoning": piece, "reasoning_content": piece}) for piece in ("h", "m")]
        calm(outcome := read(backend, [*body, Y, DONE]))
        assert outcome.response.reasoning == "hm"
        assert [d.code for d in outcome.diagnostics] == ["reasoning_repeated"]

    def test_details_are_kept_whole(self, backend: str) -> None:
        entries: list[dict[str, Any]] = [
            {"type": "reasoning.text", "text": "hm", "index": 0},
            {"type": "reasoning.text", "signature": "SIG", "index": 0},
            {"type": "reasoning.encrypted", "data": "ENC", "index": 1},
        ]
        calm(outcome := read(backend, [*[chunk({"reasoning_details": [e]}) for e in entries], Y, DONE]))
        (done,) = of(outcome, "ReasoningDone")
        assert (done.text, done.signature, done.encrypted_content) == ("hm", "SIG", "ENC")
        assert done.provider_metadata == {"reasoning_details": entries}

    def test_cumulative_details(self, backend: str) -> None:
        def details(words: str) -> bytes:
            return chunk({"reasoning_details": [{"index": 0, "text": words}]})

        outcome = read(backend, [details("The user"), details("The user asks"), details(" why"), Y, DONE])
        assert outcome.response.reasoning == "The user asks why"
        assert read(backend, [details("a"), details("and"), Y, DONE]).response.reasoning == "aand"

    def test_inline_tags_are_text_unless_asked_for(self, backend: str) -> None:
        body = [text("<think>hm</think>hi", "stop"), DONE]
        assert read(backend, body).response.text == "<think>hm</think>hi"
        split = read(backend, body, {"policy": {"inline_reasoning": True}})
        assert (split.response.reasoning, split.response.text) == ("hm", "hi")

    @pytest.mark.parametrize(
        ("said_text", "reasoning", "rest"),
        [
            ("<think>hm <b</think>hi < <thin", "hm <b", "hi < <thin"),
            ("hm</think>hi</think>", "hm", "hi</think>"),
            ("<think>hm", "hm", ""),
            ("a<think>b</think>c<think>d</think>e", "bd", "ace"),
            ("<thin", "", "<thin"),
        ],
    )
    def test_inline_tags_may_be_cut_anywhere(self, backend: str, said_text: str, reasoning: str, rest: str) -> None:
        for size in (1, 2, 3, 7, 100):
            pieces = [text(said_text[at : at + size]) for at in range(0, len(said_text), size)]
            outcome = read(backend, [*pieces, end("stop")], {"policy": {"inline_reasoning": True}})
            assert (outcome.response.reasoning, outcome.response.text) == (reasoning, rest), size

    def test_a_block_that_repeats_the_field_is_dropped(self, backend: str) -> None:
        body = [
            chunk({"reasoning_content": "h", "content": "<think>h"}),
            chunk({"reasoning_content": "m", "content": "m</think>"}),
            Y,
            DONE,
        ]
        outcome = read(backend, body, {"policy": {"inline_reasoning": True}})
        assert (outcome.response.reasoning, outcome.response.text) == ("hm", "y")
        said(outcome, "reasoning_repeated")
        other = read(
            backend,
            [chunk({"reasoning_content": "hm", "content": "<think>hx</think>"}), Y, DONE],
            {"policy": {"inline_reasoning": True}},
        )
        assert other.response.reasoning == "hmhx"


class TestCalls:
    @pytest.mark.parametrize(
        "calls",
        [
            [{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"n":1}'}}],
            {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"n":1}'}},
            [None, {"index": "0", "id": "a", "function": {"name": "f", "arguments": '{"n":1}'}}],
            [{"index": 0.0, "id": "a", "function": {"name": "f", "arguments": {"n": 1}}}],
            [{"index": 0, "id": "a", "name": "f", "arguments": '{"n":1}'}],
            [{"index": 0, "function": {"id": "a", "name": "f", "arguments": '{"n":1}'}}],
            [{"index": 0, "id": "a", "type": None, "function": {"name": "f", "arguments": '{"n":1}'}}],
        ],
        ids=str,
    )
    def test_shapes(self, backend: str, calls: Any) -> None:
        calm(outcome := read(backend, [chunk({"tool_calls": calls}), end()]))
        (only,) = outcome.response.tool_calls
        assert (only.call_id, only.name, only.arguments, only.state) == ("a", "f", '{"n":1}', "complete")

    def test_number_as_id(self, backend: str) -> None:
        calm(outcome := read(backend, [entry(index=0, id=7, function={"name": "f", "arguments": "{}"}), end()]))
        assert outcome.response.tool_calls[0].call_id == "7"

    @pytest.mark.parametrize("absent", [None, "", " ", "null", "None", "undefined"])
    def test_ids_that_are_none(self, backend: str, absent: Any) -> None:
        body = [
            call(0, "a", "f", '{"n"'),
            entry(index=0, id=absent, function={"name": absent and "", "arguments": ":1}"}),
        ]
        calm(outcome := read(backend, [*body, end()]))
        assert [(c.call_id, c.arguments) for c in outcome.response.tool_calls] == [("a", '{"n":1}')]

    def test_object_arguments_are_the_bytes_on_the_wire(self, backend: str) -> None:
        body = entry(index=0, id="a", function={"name": "f", "arguments": "@"}).replace(
            b'"@"', b'{ "n" : 1.50, "s":"\\u00e9"}'
        )
        calm(outcome := read(backend, [body, end()]))
        assert outcome.response.tool_calls[0].arguments == '{ "n" : 1.50, "s":"\\u00e9"}'

    def test_legacy_function_call(self, backend: str) -> None:
        body = [chunk({"function_call": {"name": "f", "arguments": ""}}), chunk({"function_call": {"arguments": "{}"}})]
        outcome = read(backend, [*body, end("function_call")])
        (only,) = outcome.response.tool_calls
        assert (only.name, only.arguments, only.state) == ("f", "{}", "complete")
        assert outcome.response.finish_reason == "tool_calls"

    def test_custom_tool(self, backend: str) -> None:
        body = [
            entry(index=0, id="a", type="custom", custom={"name": "run", "input": "print("}),
            entry(index=0, custom={"input": "1)"}),
        ]
        outcome = read(backend, [*body, end()])
        (only,) = outcome.response.tool_calls
        assert (only.call_id, only.name, only.arguments) == ("a", "run", "print(1)")

    def test_arguments_of_a_wrong_kind_never_make_a_call_that_runs(self, backend: str) -> None:
        for wrong in (["rm"], 5, True):
            outcome = read(backend, [entry(index=0, id="a", function={"name": "f", "arguments": wrong}), end()])
            assert outcome.response.dispatchable_calls == ()

    def test_empty_shapes_are_nothing(self, backend: str) -> None:
        for nothing in (
            None,
            [],
            [None],
            [{}],
            {},
            [{"index": 0, "id": None, "function": {"name": "", "arguments": None}}],
        ):
            outcome = read(backend, [HE, chunk({"tool_calls": nothing}), Y, DONE])
            assert (outcome.response.text, outcome.response.tool_calls) == ("hey", ()), nothing


USED: dict[str, Any] = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
ZERO: dict[str, Any] = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


class TestUsage:
    @pytest.mark.parametrize(
        "chunks",
        [
            [{"choices": [], "usage": USED}],
            [{"usage": USED}],
            [{"choices": [{"index": 0, "delta": {}, "usage": USED}]}],
            [{"choices": [], "x_groq": {"id": "r", "usage": USED}}],
            [{"choices": [], "usage": USED}, {"choices": [], "usage": None}, {"choices": [], "usage": ZERO}],
            [{"choices": [], "usage": {**USED, "completion_tokens": 1}}, {"choices": [], "usage": USED}],
        ],
        ids=str,
    )
    def test_wherever_it_stands(self, backend: str, chunks: list[Any]) -> None:
        calm(outcome := read(backend, [HE, *[event(c) for c in chunks], Y, DONE]))
        (usage,) = of(outcome, "Usage")
        assert (usage.input_tokens, usage.output_tokens, usage.total_tokens, usage.raw) == (5, 2, 7, USED)

    def test_other_names(self, backend: str) -> None:
        raw = {"input_tokens": 9, "output_tokens": 8, "prompt_cache_hit_tokens": 3, "reasoning_tokens": 2, "cost": 0.5}
        calm(outcome := read(backend, [Y, event({"choices": [], "usage": raw}), DONE]))
        usage = outcome.response.usage
        assert usage is not None
        assert (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens, usage.reasoning_tokens) == (
            9,
            8,
            3,
            2,
        )
        assert (usage.total_tokens, usage.raw) == (None, raw)


class TestChoices:
    def test_interleaved(self, backend: str) -> None:
        body = [
            chunk({"content": "b"}, index=1),
            chunk({"content": "a"}),
            chunk({}, "stop", index=1),
            chunk({}, "length"),
        ]
        calm(outcome := read(backend, [*body, DONE]))
        rows = [(c.index, c.text, c.finish_reason) for c in outcome.response.choices]
        assert rows == [(0, "a", "length"), (1, "b", "stop")]

    def test_without_an_index(self, backend: str) -> None:
        body = [event({"choices": [{"delta": {"content": word}}]}) for word in "hi"]
        calm(outcome := read(backend, [*body, end("stop")]))
        assert outcome.response.text == "hi"

    def test_capped(self, backend: str) -> None:
        body = [chunk({"content": "x"}, index=n) for n in range(3)]
        outcome = read(backend, body, {"limits": {"max_choices": 2}})
        raised(outcome, LimitExceeded, "limit_max_choices", len(body[0] + body[1]), 2)

    def test_merged(self, backend: str) -> None:
        body = [chunk({"content": "a"}), chunk({"content": "b"}, "stop", index=3), DONE]
        outcome = read(backend, body, {"policy": {"merge_choices": True}})
        assert [(c.index, c.text) for c in outcome.response.choices] == [(0, "ab")]
        said(outcome, "choices_merged", len(body[0]), 1)

    @pytest.mark.parametrize(
        ("reason", "mapped"),
        [("stop", "stop"), ("STOP", "stop"), ("max_tokens", "length"), ("safety", "content_filter"), ("odd", "other")],
    )
    def test_finish(self, backend: str, reason: str, mapped: str) -> None:
        for key in ("finish_reason", "finishReason"):
            body = [HE, event({"choices": [{"index": 0, "delta": {}, "finish_reason": "", key: reason}]}), DONE]
            outcome = read(backend, body)
            assert (outcome.response.finish_reason, outcome.response.raw_finish_reason) == (mapped, reason)


class TestMessages:
    def test_every_delta_mirrored_in_a_message(self, backend: str) -> None:
        words = ["", "he", "y"]
        body = [event({"choices": [{"index": 0, "delta": {"content": w}, "message": {"content": w}}]}) for w in words]
        last = {
            "choices": [{"index": 0, "finish_reason": "stop", "delta": {"content": "!"}, "message": {"content": "!"}}]
        }
        calm(outcome := read(backend, [*body, event(last), DONE]))
        assert outcome.response.text == "hey!"

    def test_the_text_so_far_in_every_message(self, backend: str) -> None:
        pairs = [("he", "he"), ("y", "hey")]
        body = [
            event({"choices": [{"index": 0, "delta": {"content": w}, "message": {"content": m}}]}) for w, m in pairs
        ]
        last = {
            "choices": [{"index": 0, "finish_reason": "stop", "delta": {"content": ""}, "message": {"content": "hey"}}]
        }
        calm(outcome := read(backend, [*body, event(last), DONE]))
        assert outcome.response.text == "hey"

    def test_whole_body(self, backend: str) -> None:
        message = {
            "role": "assistant",
            "content": "hi",
            "reasoning_content": "hm",
            "annotations": [{"a": 1}],
            "images": [{"image_url": {"url": "https://x.example/a.png"}}],
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        }
        body: dict[str, Any] = {
            "id": "c",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
        }
        for dump in (event(body)[6:-2], event(body)[6:-1], event(body)[6:-2].replace(b",", b",\n ")):
            calm(outcome := read(backend, [dump]))
            response = outcome.response
            assert (response.text, response.reasoning, response.completeness) == ("hi", "hm", "complete")
            assert [(c.call_id, c.state) for c in response.tool_calls] == [("a", "complete")]
            assert of(outcome, "TextDone")[0].annotations == ({"a": 1},)
            assert [f.url for f in of(outcome, "File")] == ["https://x.example/a.png"]
            assert response.usage is not None
            said(outcome, "body_not_streamed", 0, 0)
            assert difference(outcome.facts(), read(backend, bytewise(dump)).facts()) is None


class TestEnvelopes:
    def test_data_and_success(self, backend: str) -> None:
        inner = {
            "choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}],
            "system_fingerprint": "f",
        }
        calm(outcome := read(backend, [event({"success": True, "data": inner}), DONE]))
        assert outcome.response.text == "hi"
        assert of(outcome, "ResponseStarted")[0].provider_metadata == {"success": True, "system_fingerprint": "f"}

    def test_unknown_payloads_stay_reachable(self, backend: str) -> None:
        body = [HE, b'event: note\ndata: {"a":  1}\n\n', b"data: 5\n\n", b'data: ["x"]\n\n', Y, DONE]
        calm(outcome := read(backend, body))
        unknown = [(e.event, e.raw) for e in of(outcome, "Unknown")]
        assert unknown == [("note", b'{"a":  1}'), (None, b"5"), (None, b'["x"]')]

    def test_keep_alives(self, backend: str) -> None:
        body = [b'event: ping\ndata: {"type":"ping"}\n\n', HE, b"event: keepalive\ndata: x\n\n", Y, DONE]
        calm(outcome := read(backend, [*body, b"event: ping\ndata: {}\n\n"], {"dialect": "auto"}))
        assert (outcome.response.text, outcome.diagnostics, outcome.dialect) == ("hey", [], "chat")

    def test_error_beside_choices(self, backend: str) -> None:
        payload = {
            "choices": [{"index": 0, "delta": {"content": "y"}, "finish_reason": "error"}],
            "error": {"code": 502, "message": "m"},
        }
        error = raised(outcome := read(backend, [HE, event(payload)]), UpstreamError, "upstream_error", len(HE), 1)
        assert (error.code, error.message, outcome.response.text) == ("502", "m", "hey")
        assert outcome.events[-1].type == "upstream_error_event"

    def test_error_inside_a_choice(self, backend: str) -> None:
        payload = {"choices": [{"index": 0, "delta": {"content": "y"}, "error": {"code": "c", "message": "m"}}]}
        error = raised(outcome := read(backend, [HE, event(payload)]), UpstreamError, "upstream_error", len(HE), 1)
        assert (error.code, error.message, outcome.response.text) == ("c", "m", "hey")
