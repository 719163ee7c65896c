"""The amount of held text is bounded, and the work is linear, for any endless input: a block, half a marker, white
space.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from streamweld.events import TextDelta
from streamweld.options import Limits

from tests.conftest import FULL, NIGHTLY
from tests.support.backends import BACKENDS, make_parser
from tests.support.load.linear import assert_linear_work
from tests.text_calls.support import FAMILIES, TOOLS, event, policy_of

if TYPE_CHECKING:
    from collections.abc import Callable

BOTH = pytest.mark.parametrize("reader", BACKENDS)
CALL: str = FAMILIES["families"]["hermes"]
SIZES = {"native": 2000, "pure": 200}
LONGEST = len("<|start|>assistant<|channel|>commentary to=")  # the longest marker of the table
READ = 16_384
ID = "refresh:0"

# The start of a response, and the text that it then repeats.
ENDLESS = {
    "parameter": ("<tool_call>\n<function=run_shell>\n<parameter=command>\n", "x y "),
    "parameter of closers": ("<tool_call>\n<function=run_shell>\n<parameter=command>\n", "</parameter"),
    "JSON string": ('[TOOL_CALLS]run_shell{"command": "', "\\\\"),
    "brackets": ("[TOOL_CALLS] [", "["),
    "Python list": ("<|python_start|>[run_shell(command=[", "1,"),
    "calls in a section": (
        "<|tool_calls_section_begin|>",
        "<|tool_call_begin|>refresh:0<|tool_call_argument_begin|>{}",
    ),
    "white space in a block": ("<|tool_call_start|>", " "),
}
PREFIXES = {
    "half a tag": ("On it.\n", "<tool_cal"),
    "half a token": ("On it. ", "<|tool_calls_section_begin"),
    "opening brackets": ("On it.\n", "<"),
    "letters": ("On it.\n", "functools"),
    "half a token that stands in a longer one": ("On it. ", "<|start|>assistant<|channel|>"),
}
REPEATED = {
    **ENDLESS,
    **PREFIXES,
    "white space": ("", " "),
    "white space after a call": (CALL, "\n"),
    "ends of turn after a call": (CALL, "<|im_end|>"),
    "refused blocks": ("", CALL.replace("run_shell", "other") + "\n"),
    "mentions": ("", "so [TOOL_CALLS] is "),
    "line ends": ("On it.", "\n "),
    "fences": ("", "```\n"),
    "open backticks in a turn": ("<|im_start|>user\n", "the ` mark <|im_end|> "),
    "quoted closers in a turn": ("<|im_start|>user\n", '"<|im_end|>" '),
    "elements in elements": ("<document>", "<document>x"),
    "open quotations": ("On it. ", '("a [TOOL_CALLS] '),
    "closed quotations": ("On it. ", '("a") [TOOL_CALLS] '),
    "ends of reasoning": ("On it. ", "(a) </think> b "),
}


def held(reader: str, first: str, unit: str, count: int, limits: Limits) -> list[int]:
    """Return, after each delta, how many characters have not been emitted yet."""
    parser = make_parser(reader, policy=policy_of("{}"), tools=TOOLS, limits=limits)
    waiting: list[int] = []
    sent = shown = 0
    for piece in (first, *[unit] * count):
        sent += len(piece)
        found = parser.feed(event({"content": piece}))
        shown += sum(len(one.text) for one in found if type(one) is TextDelta)
        waiting.append(sent - shown)
    return waiting


@BOTH
@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_block_is_held_up_to_the_limit(reader: str, name: str) -> None:
    first, unit = ENDLESS[name]
    waiting = held(reader, first, unit, 2000 // len(unit), Limits(max_arguments_bytes=500))
    assert max(waiting) <= 500
    assert waiting[-1] == 0


@BOTH
@pytest.mark.parametrize("name", PREFIXES)
def test_half_a_marker_is_held_no_longer_than_a_marker(reader: str, name: str) -> None:
    waiting = held(reader, *PREFIXES[name], 50, Limits())
    assert max(waiting) < LONGEST


@BOTH
@pytest.mark.parametrize("name", REPEATED if FULL or NIGHTLY else ("parameter", "white space", "half a tag"))
def test_the_work_is_linear(reader: str, name: str) -> None:
    first, unit = REPEATED[name]

    def prepare(count: int) -> Callable[[], object]:
        body = b"".join([event({"content": piece}) for piece in (first, *[unit] * count)])
        reads = [body[at : at + READ] for at in range(0, len(body), READ)]

        def work() -> None:
            parser = make_parser(reader, policy=policy_of("{}"), tools=TOOLS)
            for read in reads:
                parser.feed(read)

        return work

    assert_linear_work(prepare, SIZES[reader])
