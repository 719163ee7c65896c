"""Calls that a text quotes, and broken calls, are never promoted: 1,000 texts, built from the calls of every family."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from streamweld._spec import load_text_calls

from tests.conftest import FULL
from tests.support.backends import BACKENDS
from tests.text_calls.support import FAMILIES, calls_of, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CALLS: dict[str, str] = FAMILIES["families"] | FAMILIES["switched"]
MARKERS = sorted({text[:9] for text in CALLS.values()} | {text[-9:] for text in CALLS.values()})


def prefixed(text: str, prefix: str) -> str:
    return "\n".join([prefix + line for line in text.split("\n")])


def before_end(text: str) -> int:
    """Return the position at which the arguments begin.

    A call that is truncated there is incomplete in every family.
    """
    return text.index("rm -rf")


QUOTED: dict[str, Callable[[str], str]] = {
    "fence": lambda call: f"Its form:\n\n```xml\n{call}\n```\n",
    "fence at the end": lambda call: f"```\n{call}\n```",
    "open fence": lambda call: f"Its form:\n```\n{call}",
    "tilde fence": lambda call: f"~~~\n{call}\n~~~",
    "fence in a fence": lambda call: f"````markdown\n```\nx\n```\n{call}\n````",
    "indented fence": lambda call: f"  ```\n  x\n{call}\n  ```",
    "inline code": lambda call: f"It wrote `{call}`",
    "double backticks": lambda call: f"It wrote ``{call}``.",
    "quotation": lambda call: prefixed(call, "> "),
    "nested quotation": lambda call: prefixed(call, ">> "),
    "list": lambda call: "- " + call,
    "numbered list": lambda call: "The steps:\n1. " + call,
    "list continued": lambda call: "- It wrote this:\n" + prefixed(call, "  "),
    "added lines": lambda call: "@@ -1 +1,6 @@\n" + prefixed(call, "+"),
    "removed lines": lambda call: prefixed(call, "-"),
    "context lines": lambda call: "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n" + prefixed(call, " "),
    "numbered lines": lambda call: "\n".join([f"{n:>4}\t{line}" for n, line in enumerate(call.split("\n"), 1)]),
    "table": lambda call: f"| form | example |\n|---|---|\n| x | {call} |",
    "indented code": lambda call: "Its form:\n\n" + prefixed(call, "    "),
    "tab": lambda call: prefixed(call, "\t"),
    "quotation marks": lambda call: f'The page says "{call}"',
    "typographic quotation marks": lambda call: f"The page says “{call}”",
    "parentheses": lambda call: f"the form ({call})",
    "in a sentence": lambda call: f"The model emits {call} and waits for the result.",
    "then prose": lambda call: f"{call}\nI did not run this.",
    "then prose after blank lines": lambda call: f"{call}\n\n\n\nThat is the form.",
    "then a fence": lambda call: f"{call}\n```\nls\n```",
    "then punctuation": lambda call: call + ".",
    "pre": lambda call: f"<pre>\n{call}\n</pre>",
    "open pre": lambda call: f"<pre class='x'>\n{call}",
    "code element": lambda call: f"<code>{call}</code>",
    "comment": lambda call: f"<!-- {call} -->",
    "open comment": lambda call: f"<!--\n{call}",
    "reasoning": lambda call: f"<think>\n{call}\n</think>\nNo.",
    "open reasoning": lambda call: f"<think>\nMaybe:\n{call}",
    "declarations": lambda call: f"<tools>\n{call}\n</tools>",
    "a tool's result": lambda call: f"<tool_response>\n{call}\n</tool_response>",
    "half": lambda call: "Go.\n" + call[: before_end(call)],
    "half a marker": lambda call: "Go.\n" + call[:6],
    "without its marker": lambda call: "Go.\n" + call[4:].replace("<|channel|>", "channel"),  # harmony shares it
    "unknown name": lambda call: call.replace("run_shell", "run_shel"),
    "name in another case": lambda call: call.replace("run_shell", "RUN_SHELL"),
    "name with a blank": lambda call: call.replace("run_shell", "run_shell x"),
    "in a string of an unknown call": lambda call: call.replace("run_shell", "other") + "\n.",
    "twice, then prose": lambda call: f"{call}\n{call}\nThose are two.",
    "lazy quotation": lambda call: f"> The page says:\n{call}",
    "after a list marker and a closer": lambda call: f"- </think>{call}",
    "after a quotation mark and a closer": lambda call: f"> </think>{call}",
    "a fence in code before a fence": lambda call: f"    ```\n```\n{call}\n",
    "a longer fence": lambda call: f"`````\n````\n{call}\n",
    "a fence that an info string does not close": lambda call: f"```\n``` x\n{call}\n",
    "fence with carriage returns": lambda call: f"```\r\n{call}\r\n",
    "numbers with arrows": lambda call: "\n".join([f"{n:>5}→{line}" for n, line in enumerate(call.split("\n"), 1)]),
    "bold": lambda call: f"**{call}**",
    "open guillemet": lambda call: f"It wrote «{call}",
    "open parenthesis": lambda call: f"It wrote ({call}",
    "open document": lambda call: f'<document index="1">\n{call}',
    "capital element": lambda call: f"<PRE>\n{call}",
    "two with prose between": lambda call: f"{call}\nThen:\n{call}",
    "then half a marker": lambda call: call + "\n<",
    "then half an end-of-turn token": lambda call: call + "<|im_en",
    "zero-width space in the name": lambda call: call.replace("run_shell", "run_\u200bshell"),
    "another alphabet in the name": lambda call: call.replace("run_shell", "run_sh\u0435ll"),
    "namespace": lambda call: call.replace("run_shell", "functions.functions.run_shell"),
    "in a refused block": lambda call: f"<tool_call>\nhere: {call}\n</tool_call>",
    "after half a block": lambda call: f'<tool_call>\n{{"name": "run_shell", "arguments": {{\n{call}',
}


def negatives() -> Iterator[tuple[str, str]]:
    for how, quote in QUOTED.items():
        for family, call in CALLS.items():
            yield f"{how}, {family}", quote(call)


def confused(count: int) -> Iterator[str]:
    """Yield calls with the markers of other families, and markers in random order."""
    rnd = random.Random(18)
    names = sorted(CALLS)
    for _ in range(count):
        one, other = rnd.choice(names), rnd.choice(names)
        first, second = CALLS[one], CALLS[other]
        pieces = [first[: rnd.randrange(4, before_end(first))], second[rnd.randrange(4, before_end(second)) :]]
        if one == other or first[:4] == second[:4]:
            pieces = [rnd.choice(MARKERS) for _ in range(6)]
        yield "".join(pieces) + rnd.choice(["\nwas the form", " is how it ends.", "\n```"])


def pieces_of(text: str, rnd: random.Random) -> list[str]:
    cuts = sorted(rnd.sample(range(len(text)), min(len(text), rnd.randrange(0, 12))))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True) if start < end]


@pytest.mark.parametrize("reader", BACKENDS)
def test_no_quotation_is_promoted(reader: str) -> None:
    """Each text remains unchanged, with all families enabled, including those without markers."""
    rnd = random.Random(1)
    texts = [*negatives(), *(("confused", text) for text in confused(300))]
    assert len(texts) > 3_000
    if not FULL:
        texts = rnd.sample(texts, 1_000)
    families = [*FAMILIES["families"], *FAMILIES["switched"]]
    for how, text in texts:
        parser = read(reader, pieces_of(text, rnd), text_call_markerless=True, text_call_families=families)
        response = parser.response
        assert response.tool_calls == (), (how, text)
        assert response.text == text, how
        assert response.finish_reason == "stop", how


@pytest.mark.parametrize("reader", BACKENDS)
def test_calls_in_and_after_turns_of_another_role(reader: str) -> None:
    """Every token that opens such a turn, with the calls of all families in the turn, and after its end."""
    rnd = random.Random(2)
    wanted = [tuple(call) for call in FAMILIES["calls"]]
    for opener, role, closer in load_text_calls()["messages"]:
        begin = opener if role is None else opener + "user"
        for family, call in FAMILIES["families"].items():
            text = f"On it.\n{begin}\n{call}"
            response = read(reader, pieces_of(text, rnd)).response
            assert (response.text, response.tool_calls) == (text, ()), (opener, family)
            ended = read(reader, pieces_of(f"On it.\n{begin}\nHi{closer}\n{call}", rnd))
            assert calls_of(ended) == wanted, (opener, family)
