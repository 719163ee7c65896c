"""Which diagnostics mend a stream of its own dialect, and why the others let it pass as it was sent."""

from __future__ import annotations

import pytest
import streamweld as sw
from streamweld._spec import CODES

from tests.backends import using
from tests.wire import DONE, call, end, event, text

# Readers of the dialect take it as we do, or nothing better could be written.
PASSES = {
    "numeric_overflow": "a number is a number to every reader",
    "duplicate_key": "the last one wins with the readers of Python and JavaScript, too",
    "shape": "a member that nobody documents is skipped by readers, or was sent for one that knows it",
    "id_absent": "the dialect allows it",
    "id_invalid": "another id would not be the one that the upstream waits for",
    "name_joined": "readers join the pieces of a name themselves",
    "no_name": "a call that stays nameless is left out from its announcement on, whatever is said of it at the end",
    "args_overflow": "the text is what the model wrote; nothing better is known",
    "args_invalid": "likewise",
    "reasoning_repeated": "readers look at one of the two fields",
    "orphan_think_close": "an interpretation of ours, of text that readers show",
    "finish_repeated": "the last one wins with readers",
    "finish_missing": "a reader sees that no reason came",
    "finish_contradicts": "OpenAI says `stop` behind a call that was asked for by name, and its clients know it",
    "finish_unknown": "the word is the upstream's own",
    "upstream_error": "it passes as it was sent",
    "no_terminal_marker": "judged at the end, by the dialect: Gemini has none",
    "other_dialect": "nothing of it was understood",
    "not_carried": "said of what was written, not of what came",
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
        ("finish_missing", text("a") + DONE),
        ("finish_unknown", text("a") + end("magic")),
        ("finish_contradicts", call(0, "c", "f", "{}") + end("stop")),
        (
            "numeric_overflow",
            event('{"created":99999999999999999999,"choices":[{"index":0,"delta":{"content":"a"}}]}') + DONE,
        ),
        ("args_invalid", call(0, "c", "f", "[1]") + end()),
        ("args_overflow", call(0, "c", "f", '{"a":1}') + call(0, arguments="x") + end()),
        ("name_joined", call(0, "c", "get_") + call(0, name="time", arguments="{}") + end()),
    ],
)
def test_what_passes_passes_byte_for_byte(backend: str, code: str, body: bytes) -> None:
    with using(backend):
        converter = sw.StreamConverter(target="same", source="chat")
        made = converter.feed(body) + converter.close()
    assert (made, converter.repaired) == (body, False)
    assert code in [d.code for d in converter.diagnostics]
