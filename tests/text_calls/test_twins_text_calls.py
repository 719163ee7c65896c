"""Both backends give the same events, diagnostics and responses for texts full of markers, in random pieces."""

from __future__ import annotations

import random

import pytest

from tests.conftest import FULL, NIGHTLY
from tests.support.backends import BACKENDS
from tests.support.harness import read
from tests.text_calls.support import FAMILIES, TOOLS, stream

# Nightly 100,000 texts, in CI 5,000. They are divided into shards, so that an interrupted run can continue with `-k`.
COUNT = 1_000 if FULL else 60
SHARDS = 100 if NIGHTLY else 5
DECLARED = (
    TOOLS,
    TOOLS,
    {"run_shell": {"type": "object", "properties": {"command": {"type": ["integer", "boolean"]}}}},
    {"run_shell": {**TOOLS["run_shell"], "x-text-calls": False}, "refresh": None},
)
CALLS = [*FAMILIES["families"].values(), *FAMILIES["switched"].values()]
PROSE = (
    *("On it.", " ", "\n", "\n\n", "`", "```\n", "> ", "- ", "1. ", "| "),
    *("<think>", "</think>", "<pre>", "</pre>", "<!--", "-->", "\t", "    ", "\u201c", "x", "f", "<", "<|"),
    *("~~~\n", "```json\n", "@@ -1 +1 @@\n", "12: ", "**", "</tool_call>", "<|im_end|>", "so [TOOL_CALLS] is"),
)


def text_of(rnd: random.Random) -> str:
    """Return prose, calls, pieces of calls, and modified calls."""
    made: list[str] = []
    for _ in range(rnd.randrange(1, 7)):
        call = rnd.choice(CALLS)
        match rnd.randrange(6):
            case 0 | 1:
                made.append(rnd.choice(PROSE))
            case 2:
                made.append(call[: rnd.randrange(len(call))])
            case 3:
                place = rnd.randrange(len(call))
                made.append(call[:place] + rnd.choice("x<>\"'{}[]\\\n|é") + call[place + rnd.randrange(2) :])
            case 4:
                made.append(call.replace("run_shell", rnd.choice(("refresh", "other", "run_shell "))))
            case _:
                made.append(call + rnd.choice(("", "\n", " ", "<|im_end|>", "\nand")))
    return "".join(made)


def pieces_of(text: str, rnd: random.Random) -> list[str]:
    places = sorted({rnd.randrange(len(text) + 1) for _ in range(rnd.randrange(12))})
    cut = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
    return [piece for piece in cut if piece]


def options_of(rnd: random.Random) -> dict[str, object]:
    policy = {
        "text_calls": rnd.choice(("promote", "promote", "promote", "report")),
        "text_call_after": rnd.choice(("end", "end", "anywhere")),
        "text_call_markerless": rnd.random() < 0.3,
        "text_call_reasoning": rnd.random() < 0.2,
    }
    return {"dialect": "chat", "policy": policy, "tools": rnd.choice(DECLARED), "seed": "twin"}


@pytest.mark.parametrize("seed", range(SHARDS))
@pytest.mark.skipif(len(BACKENDS) < 2, reason="one backend reads text calls: there is nothing to compare")
def test_the_same_in_both_backends(seed: int) -> None:
    rnd = random.Random(18 + seed)
    promoted = 0
    for number in range(COUNT):
        # One text in four is only a call, and one in eight is promoted if its family does not need an option.
        text = text_of(rnd) if number % 4 else rnd.choice(CALLS)
        pieces = pieces_of(text, rnd)
        finish = rnd.choice(("stop", "stop", "stop", "length", None))
        reasoning = text_of(rnd) if rnd.random() < 0.2 else ""
        options = options_of(rnd)
        if number % 8 == 0:
            finish, options = "stop", {**options, "policy": {"text_calls": "promote"}, "tools": TOOLS}
        body = stream(pieces, finish=finish, reasoning=reasoning)
        native, pure = (read(reader, [body], options) for reader in ("native", "pure"))
        assert native.told() == pure.told(), (pieces, options)
        assert native.response == pure.response, (pieces, options)
        promoted += len([call for call in pure.response.tool_calls if call.origin == "text"])
    assert promoted > COUNT // 20
