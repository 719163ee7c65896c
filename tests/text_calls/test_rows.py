"""Many deltas in one read give the same events as one delta per read, even if parts of them look like markers."""

from __future__ import annotations

import random

import pytest

from tests.conftest import FULL
from tests.support.backends import BACKENDS
from tests.support.harness import read
from tests.text_calls.support import FAMILIES, TOOLS, events

COUNT = 400 if FULL else 40
# Pieces of markup that begin like a marker, markers, and the starts and ends of lines.
PIECES = (
    *("<", "[", "]", "<|", "[T", "f", "fun", "functools", "]<]", "<\uff5c", "<t", ">", "\n", " ", "\n  ", "\t"),
    *("</think>", "</thi", "nk>", "[/THINK]", "<td>", "x[0]", "a < b", "word", " of", " the", "é", "|", "`", "- "),
    *FAMILIES["families"].values(),
)
PLAIN = ("word", " of", " the", " is", " it", " was", " an", " be", " on")


def pieces_of(rnd: random.Random) -> list[str]:
    """Return a text of many plain pieces with a few pieces of markup among them."""
    share = rnd.choice((0.02, 0.1, 0.4))
    pieces = [rnd.choice(PIECES if rnd.random() < share else PLAIN) for _ in range(rnd.randrange(40, 200))]
    return [part for piece in pieces for part in ([piece] if rnd.random() < 0.8 else piece) if part]


@pytest.mark.parametrize("reader", BACKENDS)
def test_rows_and_single_deltas(reader: str) -> None:
    rnd = random.Random(18)
    for _ in range(COUNT):
        sent = list(events(pieces_of(rnd), finish="stop", reasoning=""))
        policy = {
            "text_calls": rnd.choice(("promote", "report")),
            "text_call_after": rnd.choice(("end", "anywhere")),
            "text_call_markerless": rnd.random() < 0.2,
        }
        options = {"dialect": "chat", "policy": policy, "tools": TOOLS, "seed": "r"}
        body = b"".join(sent)
        size = rnd.choice((500, 2_000, 16_384, len(body)))
        at_once = read(reader, [body[at : at + size] for at in range(0, len(body), size)], options)
        one_by_one = read(reader, sent, options)
        assert at_once.events == one_by_one.events, (body, size, options)
        assert at_once.response == one_by_one.response
