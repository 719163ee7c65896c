"""Text calls in every dialect: parsed, converted and repaired.

Streams with rejected calls pass through byte for byte.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
import streamweld as sw
from streamweld.events import TextDone

from tests.support.backends import BACKENDS, using
from tests.text_calls.support import FAMILIES, TOOLS, stream

DIALECTS = ("chat", "responses", "anthropic", "gemini", "ai-sdk-parts", "ai-sdk-ui")
PROMOTE = sw.Policy(text_calls="promote")
CALL = FAMILIES["families"]["hermes"]
COMMAND = ("run_shell", {"command": "rm -rf /tmp/x"})
# Violations that the sources of these tests contain, or that passed through before the rest was rewritten.
KNOWN = {"gemini.usage_missing", "ai-sdk-ui.step"}


def body_of(dialect: str, *pieces: str) -> bytes:
    """Return a response with this text in a dialect."""
    chat = stream(pieces)
    return chat if dialect == "chat" else sw.convert(chat, target=dialect, seed="s")  # type: ignore[arg-type]


def in_pieces(body: bytes, target: str, size: int) -> tuple[bytes, sw.StreamConverter]:
    converter = sw.StreamConverter(target=target, policy=PROMOTE, tools=TOOLS, seed="t")  # type: ignore[arg-type]
    out = b"".join([converter.feed(body[at : at + size]) for at in range(0, len(body), size)])
    return out + converter.close(), converter


@pytest.mark.parametrize("reader", BACKENDS)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("prose", ["", "On it.\n"])
def test_a_call_in_every_dialect(reader: str, dialect: str, prose: str) -> None:
    with using(reader):
        body = body_of(dialect, prose, CALL[:20], CALL[20:])
        read = sw.parse(body, policy=PROMOTE, tools=TOOLS)
        assert [(call.name, call.parsed) for call in read.dispatchable_calls] == [COMMAND]
        assert (read.text, read.finish_reason) == (prose, "tool_calls")
        for target in ("same", *DIALECTS):
            out, converter = in_pieces(body, target, 57)
            made = sw.parse(out)
            assert [(call.name, call.parsed) for call in made.dispatchable_calls] == [COMMAND], target
            assert (made.text, made.finish_reason, converter.error) == (prose, "tool_calls", None), target
            assert {violation.rule for violation in sw.check(out)} <= KNOWN, target
            assert b"<tool_call>" not in out, target


@pytest.mark.parametrize("reader", BACKENDS)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "text", ["Hello <b", CALL + "\nNo.", "Go.\n" + CALL[:-5], "```\n" + CALL + "\n```", CALL.replace("run_shell", "x")]
)
def test_text_that_is_not_promoted_passes_byte_for_byte(reader: str, dialect: str, text: str) -> None:
    with using(reader):
        body = body_of(dialect, *[text[at : at + 9] for at in range(0, len(text), 9)])
        for size in (13, len(body)):
            out, converter = in_pieces(body, dialect, size)
            assert out == body
            assert not converter.repaired


@pytest.mark.parametrize("reader", BACKENDS)
def test_a_promoted_call_goes_into_a_history_as_a_call(reader: str) -> None:
    with using(reader):
        response = sw.parse(body_of("chat", "On it.\n", CALL), policy=PROMOTE, tools=TOOLS)
    requested = {"role": "user", "content": "Clean up."}
    call_id = response.tool_calls[0].call_id
    result = {"role": "tool", "tool_call_id": call_id, "content": "ok"}
    made = sw.history.convert([requested, response, result], target="openai-chat").payload["messages"]
    [call] = made[1]["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == COMMAND
    assert made[1]["content"] == "On it.\n"


@pytest.mark.parametrize("reader", BACKENDS)
@pytest.mark.parametrize("policy", ["standard", "salvage"])
def test_a_cut_at_every_byte_loses_nothing_and_promotes_nothing(reader: str, policy: str) -> None:
    """Until the finish reason has been read, a call in the text may be incomplete."""
    body = body_of("chat", "On it.\n", *CALL.split(" "))
    finish = body.index(b'"finish_reason": "stop"')
    switches = sw.Policy(policy, text_calls="promote")  # type: ignore[arg-type]
    for place in range(0, finish, 7):
        with using(reader):
            plain = sw.StreamParser(dialect="chat", policy=policy)  # type: ignore[arg-type]
            staged = sw.StreamParser(dialect="chat", policy=switches, tools=TOOLS)
        for parser in (plain, staged):
            with suppress(sw.StreamError):
                parser.feed(body[:place])
                parser.close()
        assert staged.response.text == plain.response.text
        assert staged.response.tool_calls == ()


def test_promotion_needs_tools() -> None:
    with pytest.raises(sw.UsageError, match="needs tools"):
        sw.StreamParser(policy=PROMOTE)


@pytest.mark.parametrize(
    "families", [["herms"], [{"family": "x"}], [{"family": "x", "tier": "tag", "shape": "json", "open": "a"}], ["xlam"]]
)
def test_a_family_that_cannot_be_is_refused(families: list[object]) -> None:
    with pytest.raises(sw.UsageError, match=r"famil"):
        sw.Policy(text_calls="promote", text_call_families=families)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "meant"),
    {
        "qwen": "'hermes' or 'qwen3_coder'",
        "Qwen/Qwen3-Coder-480B": "'hermes' or 'qwen3_coder'",
        "gpt-oss-120b": "'harmony'",  # harmony_bare has no marker
        "claude": "'anthropic_xml' or 'anthropic_xml_prefixed' or 'anthropic_bare'",
        "xLAM-2": "'xlam'",  # there is no other family
        "herms": "'hermes'",
        "GLM-5": "'glm'",
    }.items(),
)
def test_the_families_of_a_model_are_suggested(given: str, meant: str) -> None:
    with pytest.raises(sw.UsageError) as caught:
        sw.Policy(text_call_families=(given,))
    assert str(caught.value).endswith(f"unknown family {given!r}; did you mean {meant}?")


def test_without_a_suggestion_all_families_are_listed() -> None:
    with pytest.raises(sw.UsageError, match="unknown family '123'; families: hermes, granite_20b, "):
        sw.Policy(text_call_families=("123",))


def test_one_family_needs_no_tuple() -> None:
    given: Any = "hermes"
    assert sw.Policy(text_call_families=given) == sw.Policy(text_call_families=("hermes",))
    own: Any = {"family": "own", "tier": "tag", "shape": "json", "open": "[[", "close": "]]", "values": ["object"]}
    assert sw.Policy(text_call_families=own).text_call_families == (own,)
    wrong: Any = 7
    with pytest.raises(sw.UsageError, match=r"text_call_families=7: it must be families, such as \('hermes', 'glm'\)"):
        sw.Policy(text_call_families=wrong)


PARTS = {
    # A part without text does not wait for text, and the call of the next part replaces that part's text.
    "one after the other": ((["ab "] * 3 + [""], ["", "", "", "On it.\n" + CALL]), ["ab ab ab ", "On it.\n"], 1),
    "taking turns": ((["ab "] * 40 + [""], ["cd "] * 40 + ["\n" + CALL]), None, 0),
    "a call in each": (([CALL, "", " "], ["", CALL, ""]), None, 0),
    "a half marker in the first": ((["ab\n<tool", "", ""], ["", "<tool_", "call>x"]), None, 0),
    "the second one first": ((["", "", "ab"], ["cd\n", CALL, ""]), None, 0),
}


def parts_of(columns: tuple[list[str], list[str]]) -> list[bytes]:
    """Return a Responses stream with two texts that are both open from the start, and with its deltas in the order of
    the rows.
    """
    at = {"item_id": "m", "output_index": 0}

    def event(kind: str, **members: object) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()

    def part(text: str) -> dict[str, object]:
        return {"type": "output_text", "text": text, "annotations": []}

    def item(*parts: object) -> dict[str, object]:
        return {"id": "m", "type": "message", "status": "completed", "role": "assistant", "content": [*parts]}

    def response(*output: object) -> dict[str, object]:
        return {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [*output]}

    texts = ["".join(column) for column in columns]
    whole = item(*map(part, texts))
    made = [event("response.created", response={**response(), "status": "in_progress"})]
    made.append(event("response.output_item.added", output_index=0, item=item()))
    made += [event("response.content_part.added", **at, content_index=place, part=part("")) for place in (0, 1)]
    for row in zip(*columns, strict=True):
        made += [
            event("response.output_text.delta", **at, content_index=place, delta=piece)
            for place, piece in enumerate(row)
            if piece
        ]
    for place, text in enumerate(texts):
        made.append(event("response.output_text.done", **at, content_index=place, text=text))
        made.append(event("response.content_part.done", **at, content_index=place, part=part(text)))
    made.append(event("response.output_item.done", output_index=0, item=whole))
    return [*made, event("response.completed", response=response(whole))]


@pytest.mark.parametrize("name", PARTS)
def test_parts_that_are_open_at_once(name: str) -> None:
    """If the deltas of two parts alternate, their text is not scanned. Both backends emit the same events, whatever the
    size of the reads.
    """
    columns, texts, calls = PARTS[name]
    outcomes = []
    for reader in BACKENDS:
        for reads in (parts_of(columns), [b"".join(parts_of(columns))]):
            with using(reader):
                parser = sw.StreamParser(dialect="responses", policy=PROMOTE, tools=TOOLS, seed="p")
            outcomes.append([event for read in reads for event in parser.feed(read)] + parser.close())
            assert [call.parsed for call in parser.response.tool_calls] == [COMMAND[1]] * calls
            # In the order of the parts, because they may end in another order.
            ends = sorted((event for event in outcomes[-1] if isinstance(event, TextDone)), key=lambda one: one.part)
            assert [event.text for event in ends] == (texts or ["".join(column) for column in columns])
    assert all(outcome == outcomes[0] for outcome in outcomes)
