"""Which diagnostics make repair rewrite a stream in its own dialect, why the other ones leave it unchanged, and which
ones only repair reports.
"""

from __future__ import annotations

import pytest
import streamweld as sw
from streamweld._spec import CODES

from tests.support.backends import using
from tests.support.servers.wire import DONE, call, chunk, end, event, text
from tests.support.vector_files import chunks_of, load

# Diagnostic -> why repair passes the stream through: readers agree with streamweld, or a rewrite could not improve the
# stream.
PASSES = {
    "numeric_overflow": "a number is a number to every reader",
    "duplicate_key": "the last one wins with the readers of Python and JavaScript, too",
    "shape": "a member that nobody documents is skipped by readers, or was sent for one that knows it",
    "id_absent": "the dialect allows it",
    "id_invalid": "another id would not be the one that the upstream waits for",
    "name_joined": "readers join the pieces of a name themselves",
    "name_not_ascii": "another name would not be a tool that the client has",
    "no_name": "a call that stays nameless is left out from its announcement on, whatever is said of it at the end",
    "args_overflow": "the text is what the model wrote; nothing better is known",
    "args_invalid": "likewise",
    "text_call_seen": "it is only reported: the text passes",
    "text_call_refused": "the text passes as text",
    "ambiguous_cumulative": "it is only reported: no other reading is certain",
    "block_left_open": "the repair says why it closes the block: `rewritten`, with block_open or not_closed",
    "reasoning_repeated": "readers look at one of the two fields",
    "orphan_think_close": "an interpretation of ours, of text that readers show",
    "finish_repeated": "the last one wins with readers",
    "finish_missing": "if clients need the reason, `rewritten` reports that it is added",
    "finish_contradicts": "OpenAI says `stop` behind a call that was asked for by name, and its clients know it",
    "finish_unknown": "the word is the upstream's own",
    "upstream_error": "it passes as it was sent",
    "no_terminal_marker": "judged at the end, by the dialect: Gemini has none",
    "other_dialect": "nothing of it was understood",
    "notes_left_out": "it counts others: each of those that has to be mended mends the stream itself",
    "not_carried": "said of what was written, not of what came",
    "rewritten": "likewise",
}


def test_every_code_is_decided() -> None:
    assert {name for name, code in CODES.items() if code.mends is None} == set(PASSES)
    assert {code.mends for code in CODES.values()} == {None, "payload", "stream"}


@pytest.mark.parametrize(
    ("code", "body", "left"),
    [
        ("null_payload", text("a") + event("null") + end("stop"), text("a") + end("stop")),
        ("comment_as_data", text("a") + event(": c") + end("stop"), text("a") + end("stop")),
        ("data_after_done", text("a") + end("stop") + text("b") + text("c"), text("a") + end("stop")),
    ],
)
def test_a_payload_that_brings_nothing_is_left_out_alone(backend: str, code: str, body: bytes, left: bytes) -> None:
    with using(backend):
        converter = sw.StreamConverter(target="same", source="chat")
        made = converter.feed(body) + converter.close()
    assert (made, converter.repaired) == (left, True)
    assert code in [d.code for d in converter.diagnostics]


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("finish_unknown", text("a") + end("magic")),
        ("finish_contradicts", call(0, "c", "f", "{}") + end("stop")),
        (
            "numeric_overflow",
            text("a").replace(b'{"object"', b'{"created":99999999999999999999,"object"') + end("stop"),
        ),
        ("args_invalid", call(0, "c", "f", "[1]") + end()),
        ("args_overflow", call(0, "c", "f", '{"a":1}') + call(0, arguments="x") + end()),
    ],
)
def test_what_passes_passes_byte_for_byte(backend: str, code: str, body: bytes) -> None:
    with using(backend):
        converter = sw.StreamConverter(target="same", source="chat")
        made = converter.feed(body) + converter.close()
    assert (made, converter.repaired) == (body, False)
    assert code in [d.code for d in converter.diagnostics]


HEAD = call(0, "call_1", "f", "{")
ENTRY = {"index": 0, "id": "call_1", "function": {"name": "f", "arguments": "{}"}}


def repair(body: bytes, **options: object) -> sw.StreamConverter:
    converter = sw.StreamConverter(**{"target": "same", "source": "chat", "seed": "s", **options})  # type: ignore[arg-type]
    made = converter.feed(body) + converter.close()
    assert converter.repaired == (made != body)
    return converter


@pytest.mark.parametrize(
    ("why", "before", "odd"),
    [
        ("header_again", HEAD, call(0, "call_1", "", "}") + end()),
        ("header_again", HEAD, call(0, None, "f", "}") + end()),
        ("index_taken", call(0, "call_1", "f", "{}"), call(0, "call_2", "g", "{}") + end()),
        ("id_taken", call(0, "call_1", "f", '{"a":1}'), call(1, "call_1", "g", "{}") + end()),
        ("no_name", text("a"), call(0, "call_1") + call(0, name="f", arguments="{}") + end()),
        ("no_id", text("a"), call(0, None, "f") + call(0, "call_1", arguments="{}") + end()),
        ("id_number", text("a"), call(0, 7, "f", "{}") + end()),
        ("id_word", text("a"), call(0, "null", "f") + call(0, "call_1", arguments="{}") + end()),
        ("no_list", text("a"), chunk({"tool_calls": ENTRY}) + end()),
        ("args_object", text("a"), call(0, "call_1", "f", {"a": 1}) + end()),
        ("name_in_pieces", call(0, "c", "get_"), call(0, name="time", arguments="{}") + end()),
        ("content_list", text("a"), chunk({"content": [{"type": "text", "text": "b"}]}) + end("stop")),
        ("other_index", text("a"), call(1, "call_1", "f", "{}") + end()),
        ("no_index", text("a"), chunk({"tool_calls": [{"index": 2**63}]}) + end("stop")),  # not a 64-bit integer
        ("empty_entry", text("a"), chunk({"content": "b", "tool_calls": [None]}) + end("stop")),
        ("no_delta", text("a"), event({"choices": [{"index": 0, "finish_reason": "stop"}]}) + DONE),
        ("end_missing", text("a"), chunk({}, "stop")),
    ],
)
def test_a_repair_without_a_code_of_its_own_is_told_once(backend: str, why: str, before: bytes, odd: bytes) -> None:
    body = before + odd
    with using(backend):
        converter = repair(body)
        parsed = sw.parse(body)
        reported_values = [d for d in converter.diagnostics if d.code == "rewritten"]
    place = (len(body), 2) if why == "end_missing" else (len(before), 1)
    found = [(d.detail, (d.byte_offset, d.event_ordinal), d.part, d.severity) for d in reported_values]
    assert found[0] == (why, place, None, "info")
    assert len({detail for detail, *_ in found}) == len(found)  # a later block may have another reason
    assert [d for d in converter.diagnostics if d.code != "rewritten"] == list(parsed.diagnostics)


@pytest.mark.parametrize("name", [b"", b"event: ping\n"])
def test_an_empty_event_that_is_a_fault_has_nothing_of_the_event_before(backend: str, name: bytes) -> None:
    message = b'{"id":"msg_1","content":[],"usage":{"input_tokens":1}}'
    before = b'event: message_start\ndata: {"type":"message_start","message":' + message + b"}\n\n"
    policy = sw.Policy(actions={"rewritten": "raise"})
    with using(backend):
        converter = sw.StreamConverter(target="same", source="anthropic", policy=policy)
        converter.feed(before + name + b"id: 1\n\n")
    error = converter.error
    assert error is not None
    assert (error.rule, error.detail, error.raw, error.event_type) == ("rewritten", "empty_event", b"", None)
    assert (error.byte_offset, error.event_ordinal) == (len(before), 1)


MESSAGES = {vector["name"]: chunks_of(vector) for vector in load("repair") if vector["file"] == "anthropic"}


@pytest.mark.parametrize(
    ("why", "vector", "at"),
    [
        ("start_missing", "message-start-is-missing", 0),
        ("done_marker", "done-in-place-of-message-stop", 5),
        ("done_marker", "done-under-a-name-behind-message-stop", 6),
        ("done_marker", "done-under-a-name-among-blocks", 1),
        ("not_streamed", "a-whole-message-as-an-event", 0),
        ("not_streamed", "a-whole-message-behind-its-own-stream", 8),
        ("event_name", "no-event-has-a-name", 0),
        ("event_name", "deltas-without-a-name", 4),
        ("event_name", "message-stop-without-a-name", 6),
        ("event_name", "an-event-without-a-type", 3),
        ("event_name", "an-error-without-a-name", 3),
    ],
)
def test_what_messages_lack_is_told_where_it_is_missed(backend: str, why: str, vector: str, at: int) -> None:
    blocks = MESSAGES[vector]
    with using(backend):
        converter = repair(b"".join(blocks), source="anthropic")
    reported_values = [(d.code, d.detail, d.byte_offset, d.event_ordinal) for d in converter.diagnostics]
    place = len(b"".join(blocks[:at])) + blocks[at].index(b"data:")  # the position of an event is that of its data
    assert reported_values == [("rewritten", why, place, at)]


CANDIDATE = b'{"candidates":[{"content":{"parts":[{"text":"a"}%s],"role":"model"},"index":0%s}]}'
ELEMENTS = [CANDIDATE % (b"", b""), b'{"future":{}}', CANDIDATE % (b"", b',"finishReason":"STOP"')]
BETWEEN = [b",", b",\n", b",\n\n", b"\n\n,\n\n"]


@pytest.mark.parametrize("size", [1, 100, 1000])
@pytest.mark.parametrize("between", BETWEEN, ids=["one-line", "a-line-each", "blank-lines", "commas-alone"])
def test_a_loss_in_an_array_is_told_with_its_element(backend: str, between: bytes, size: int) -> None:
    body = b"[" + between.join(ELEMENTS) + b"]"
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    with using(backend):
        converter = sw.StreamConverter(target="same", source="gemini")
        strict = sw.StreamConverter(target="same", source="gemini", policy=sw.Policy(actions={"not_carried": "raise"}))
        for one in (converter, strict):
            for piece in pieces:
                one.feed(piece)
            one.close()
    place = body.index(ELEMENTS[1])
    reported_values = [(d.code, d.detail, d.byte_offset, d.event_ordinal) for d in converter.diagnostics]
    assert reported_values == [("array_body", "", 1, 0), ("not_carried", "unknown", place, 1)]
    error = strict.error
    assert error is not None
    assert (error.rule, error.byte_offset, error.event_ordinal, error.raw) == ("not_carried", place, 1, ELEMENTS[1])
    assert strict.response.completeness == "truncated"
    assert strict.response.text == "a"


def test_a_loss_that_is_a_fault_comes_before_what_is_wrong_behind_it(backend: str) -> None:
    body = b"[" + ELEMENTS[0] + b"," + ELEMENTS[1] + b",{]"
    with using(backend):
        converter = repair(body, source="gemini", policy=sw.Policy(actions={"not_carried": "raise"}))
    assert converter.error is not None
    assert converter.error.rule == "not_carried"


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("between", BETWEEN)
def test_no_element_of_an_array_passes_outside_of_an_event(backend: str, between: bytes, size: int) -> None:
    first, _, last = ELEMENTS
    elements = [first, first.replace(b'"a"', b'"b"'), last.replace(b'"a"', b'"c"')]
    body = b"[" + between.join(elements) + b"]"
    with using(backend):
        converter = sw.StreamConverter(target="same", source="gemini")
        made = b"".join(converter.feed(body[at : at + size]) for at in range(0, len(body), size)) + converter.close()
    lines = made.splitlines()
    assert all(line.startswith(b"data: {") for line in lines[::2])
    assert not any(lines[1::2])
    assert sw.parse(made, dialect="gemini").text == "abc"
    assert [d.code for d in converter.diagnostics] == ["array_body"]


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("between", [b"\n", b"\n\n", b"\r\n\r\n\r\n"])
def test_no_line_that_is_a_document_passes_outside_of_an_event(backend: str, between: bytes, size: int) -> None:
    lines = [piece.removeprefix(b"data: ").strip() for piece in (text("a"), text("b"), text("c"), end("stop"))]
    body = b"".join(line.removesuffix(DONE).strip() + between for line in lines)
    with using(backend):
        converter = sw.StreamConverter(target="same", source="chat")
        made = b"".join(converter.feed(body[at : at + size]) for at in range(0, len(body), size)) + converter.close()
    assert all(line.startswith(b"data: ") for line in made.splitlines() if line)
    assert sw.parse(made, dialect="chat").text == "abc"
    assert converter.diagnostics[0].code == "json_lines_body"
    assert converter.response.text == "abc"


@pytest.mark.parametrize("size", [1, 1000])
def test_an_answer_with_too_long_a_line_is_cut(backend: str, size: int) -> None:
    body = b'event: response.created\ndata: {"type":"response.completed","response":{'
    limits = sw.Limits(max_field_bytes=4, max_event_bytes=64)
    with using(backend):
        converter = sw.StreamConverter(target="same", source="responses", limits=limits)
        for at in range(0, len(body), size):
            converter.feed(body[at : at + size])
        assert converter.response.completeness == "truncated"
    assert converter.error is not None
    assert converter.error.rule == "limit_max_field_bytes"


def test_what_a_code_says_is_not_repeated_as_rewritten(backend: str) -> None:
    with using(backend):
        unstable = repair(HEAD + call(0, "call_2", "", "") + call(0, "call_1", "", "}") + end())
        left_out = repair(text("a") + event("null") + end("stop"))
    assert [d.code for d in unstable.diagnostics] == ["unstable_id"]
    assert [d.code for d in left_out.diagnostics] == ["null_payload"]


def test_what_was_left_out_alone_does_not_explain_what_is_written_anew_later(backend: str) -> None:
    with using(backend):
        converter = repair(event("null") + HEAD + call(0, "call_1", "", "}") + end())
    assert [d.code for d in converter.diagnostics] == ["null_payload", "rewritten"]


def test_a_fault_is_told_as_a_fault(backend: str) -> None:
    with using(backend):
        for cut in (HEAD, HEAD[:-20], text("a"), text("a") + b"data: {"):
            converter = repair(cut)
            assert converter.error is not None
            assert converter.diagnostics == ()
        # The upstream's own error passes through, unless it is plain text, which is rewritten as an error of the
        # dialect.
        assert repair(text("a") + event({"error": {"message": "slow down"}})).diagnostics == ()
        words = repair(text("a") + event("upstream connect error"))
    assert [(d.code, d.detail) for d in words.diagnostics] == [("rewritten", "plain_words")]


def test_a_policy_decides_about_it(backend: str) -> None:
    sick = HEAD + call(0, "call_1", "", "}") + end()
    with using(backend):
        strict = repair(sick, policy="strict")
        raised = repair(sick, policy=sw.Policy(actions={"rewritten": "raise"}))
    assert (strict.error, [d.code for d in strict.diagnostics]) == (None, ["rewritten"])
    assert raised.error is not None
    assert (raised.error.rule, raised.error.detail, raised.error.event_ordinal) == ("rewritten", "header_again", 1)
    assert raised.diagnostics == ()
