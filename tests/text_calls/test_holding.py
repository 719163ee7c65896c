"""Which deltas are held back until the text shows whether a call begins, and how they are emitted afterwards."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from streamweld.events import TextDelta

from tests.conftest import FULL
from tests.support.backends import BACKENDS, make_parser
from tests.support.harness import read
from tests.text_calls.support import FAMILIES, TOOLS, event, events, policy_of

COUNT = 400 if FULL else 40
CALL: str = FAMILIES["families"]["hermes"]

# The text of each delta, and the texts that are emitted at once for it. A delta is held as a whole, because a consumer
# that renders deltas must not see other deltas than without `text_calls` if the text contains no call.
CASES = {
    "a token may follow prose": (["On it. <", "b>x", "y"], [[], ["On it. <", "b>x"], ["y"]]),
    "the beginning of a token in several deltas": (
        ["a [", "TOOL", "_", "BOX"],
        [[], [], [], ["a [", "TOOL", "_", "BOX"]],
    ),
    "one possible beginning after another": (["a <", "<", "b"], [[], ["a <"], ["<", "b"]]),
    "in a fence, where no call is allowed": (["```\nx <", " y"], [[], ["```\nx <", " y"]]),
    "in a list item, where no call is allowed": (["- a [", "b"], [[], ["- a [", "b"]]),
    "a tag that begins a line": (["On it.\n", "<tool", "box>"], [["On it.\n"], [], ["<tool", "box>"]]),
    "a tag after white space": (["On it.\n \t", "<to", "p>"], [["On it.\n \t"], [], ["<to", "p>"]]),
    "a tag after the end of reasoning": (["a</think>", "<to", "p>"], [["a</think>"], [], ["<to", "p>"]]),
    "a tag after prose": (["On it. ", "<to", "p>"], [["On it. "], ["<to"], ["p>"]]),
    "a word that begins a line": (["On it.\n", "func", "tion"], [["On it.\n"], [], ["func", "tion"]]),
    "a word after prose": (["On it: ", "func", "tion"], [["On it: "], ["func"], ["tion"]]),
    "text that ends like no marker": (["a < b", " and x[0]."], [["a < b"], [" and x[0]."]]),
    "a call": (["On it.\n<tool", CALL[len("<tool") :]], [[], ["On it.\n"]]),
    "a call in the middle of a delta": (["On", " it.\n" + CALL], [["On"], [" it.\n"]]),
    "a tag where no call is allowed": (["> <tool", "_call>", " x"], [[], ["> <tool", "_call>"], [" x"]]),
    "a token where no call is allowed": (["> [TOOL", "_CALLS]", " x"], [[], ["> [TOOL"], ["_CALLS]", " x"]]),
}
PIECES = (
    *("<", "[", "]", "<|", "[T", "f", "fun", "functool", "]<]", "<\uff5c", "<t", ">", "\n", " ", "\n  ", "\t", "> "),
    *(
        "</think>",
        "</thi",
        "nk>",
        "[/THINK]",
        "<td>",
        "x[0]",
        "a < b",
        "word",
        " of",
        " the",
        "é",
        "|",
        "`",
        "- ",
        "```",
    ),
)


@pytest.mark.parametrize("reader", BACKENDS)
@pytest.mark.parametrize("name", CASES)
def test_emitted_at_once(reader: str, name: str) -> None:
    pieces, expected = CASES[name]
    parser = make_parser(reader, policy=policy_of("{}"), tools=TOOLS)
    parser.feed(event({"role": "assistant", "content": ""}))
    emitted = [parser.feed(event({"content": piece})) for piece in pieces]
    assert [[one.text for one in found if type(one) is TextDelta] for found in emitted] == expected


@pytest.mark.parametrize("reader", BACKENDS)
def test_text_without_a_marker_gives_the_same_events(reader: str) -> None:
    rnd = random.Random(3)
    for _ in range(COUNT):
        pieces = [rnd.choice(PIECES) for _ in range(rnd.randrange(1, 80))]
        body = b"".join(events(pieces, finish="stop", reasoning=""))
        size = rnd.choice((100, 2_000, len(body)))
        reads = [body[at : at + size] for at in range(0, len(body), size)]
        found = []
        for mode in ("off", "promote"):
            options = {"dialect": "chat", "policy": {"text_calls": mode}, "tools": TOOLS, "seed": "r"}
            found.append(read(reader, reads, options).events)
        off, promote = found
        assert promote == off, (body, size)


@pytest.mark.parametrize("reader", BACKENDS)
def test_deltas_of_other_items_do_not_separate_a_marker(reader: str) -> None:
    """Events that alternate are read in rows, and the text of a row is not the text of one item."""
    part = {"type": "output_text", "text": "", "annotations": []}
    items = (
        {"id": "m", "type": "message", "status": "in_progress", "role": "assistant", "content": []},
        {
            "id": "c",
            "type": "function_call",
            "call_id": "c1",
            "name": "refresh",
            "arguments": "",
            "status": "in_progress",
        },
    )
    texts = [
        "On it. ",
        *["so "] * 8,
        "a <",
        "|tool_call|>[",
        json.dumps({"name": "refresh", "arguments": {"a": 1}}),
        "]",
    ]
    opening = [
        {"type": "response.created", "response": {"id": "r", "object": "response", "model": "m", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": items[0]},
        {"type": "response.content_part.added", "item_id": "m", "output_index": 0, "content_index": 0, "part": part},
        {"type": "response.output_item.added", "output_index": 1, "item": items[1]},
    ]
    deltas: list[dict[str, Any]] = []
    for text in texts:
        deltas += [
            {
                "type": "response.output_text.delta",
                "item_id": "m",
                "output_index": 0,
                "content_index": 0,
                "delta": text,
            },
            {"type": "response.function_call_arguments.delta", "item_id": "c", "output_index": 1, "delta": " "},
        ]
    body = b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in [*opening, *deltas])
    for size in (1, 200, len(body)):
        parser = make_parser(reader, policy=policy_of("{}"), tools=TOOLS, dialect="responses")
        emitted = [one for at in range(0, len(body), size) for one in parser.feed(body[at : at + size])]
        assert [one.text for one in emitted if type(one) is TextDelta] == [*texts[:9], "a "], size
