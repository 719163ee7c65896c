"""A large payload that no blank line ends gives the same result as a small one, whatever its lines are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
import streamweld as sw

from tests.support.attacks import MIB, PIECE
from tests.support.backends import BACKENDS, using

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE: Final = 10 * MIB
FILLING: Final = "p"
# How the lines of a body are sent: their prefix and their ending.
LINES: Final = {
    "plain": ("", "\n"),
    "plain_crlf": ("", "\r\n"),
    "data": ("data: ", "\n"),
    "data_crlf": ("data: ", "\r\n"),
}


def pretty(size: int, form: str) -> bytes:
    """A pretty-printed response of Chat."""
    prefix, end = LINES[form]
    message = {"role": "assistant", "content": FILLING * size}
    document = {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    return end.join([prefix + line for line in json.dumps(document, indent=2).split("\n")]).encode()


def converted(body: bytes, target: Any, policy: Any = "standard") -> tuple[bytes, Any, list[tuple[str, str]]]:
    """The output, the error and the diagnostics."""
    converter = sw.StreamConverter(target=target, policy=policy, seed="s", now=0)
    made = b"".join([converter.feed(body[at : at + PIECE]) for at in range(0, len(body), PIECE)])
    made += converter.close()
    error = converter.error
    place = None if error is None else (error.rule, error.byte_offset, error.event_ordinal, str(error))
    return made, place, [(one.code, one.detail) for one in converter.diagnostics]


@pytest.mark.parametrize("form", LINES)
@pytest.mark.parametrize("target", ["responses", "chat", "same"])
def test_a_pretty_printed_body(backend: str, target: str, form: str) -> None:
    with using(backend):
        small, large = (converted(pretty(size, form), target) for size in (1, SIZE))
    assert large[1:] == small[1:]
    assert small[1] is None
    assert large[0].replace(FILLING.encode() * SIZE, FILLING.encode()) == small[0]


def unfinished() -> Iterator[tuple[str, str]]:
    """Yield bodies of 600 KB that end before a blank line, each with its name."""
    long = '"' + FILLING * 600_000 + '"'
    whole = '{\n "choices": [{"index": 0, "delta": {"content": "hi"}}],\n "pad": ' + long + "\n}"
    for name, head in {
        "alone": "",
        "after_a_mark": "\ufeff",
        "after_data": "data: x\n",
        "after_empty_data": "data:\n",
        "after_a_document": '{"choices":[]}\n',
        "after_a_name": "event: x\n",
        "after_blanks": " \t",
        "after_an_event": 'data: {"choices":[{"index":0,"delta":{"content":"yo"}}]}\n\n',
        "after_the_end": "data: [DONE]\n\n",
    }.items():
        yield name, head + whole
        yield f"{name}_cut", head + whole[:-2]
    for name, tail in {
        "line_end": "\n",
        "carriage_return": "\r",
        "blanks": "\n \t",
        "part_of_a_name": "\nda",
        "name": "\nid",
        "comment": "\n: x",
        "field": "\nretry: 2",
        "data": "\ndata: x",
        "document": '\n{"choices":[]}',
        "part_of_a_document": '\n{"cho',
        "text": "x",
    }.items():
        yield f"before_{name}", whole + tail
    yield "cut_in_a_string", '{\n"a": ' + long[:-1]
    yield "cut_in_data_lines", "data: {\n" + 'data: "x":1,\n' * 60_000
    yield "documents_in_data_lines", 'data: {"choices":[]}\n' * 30_000
    yield "documents_after_data", "data: x\n" + '{"choices":[]}\n' * 40_000
    yield "text_in_data_lines", "data: x\n" * 80_000
    yield "blank_data_lines", "data:  \n" * 80_000 + "data: x"
    yield "deep", "[" * 600_000
    yield "deep_in_data_lines", "data: [\n" * 80_000
    yield "markup_in_data_lines", "data: <p>\n" * 80_000
    yield "markup", "<p>\n" * 150_000


BODIES: Final = dict(unfinished())


@pytest.mark.parametrize("name", BODIES)
def test_both_backends_agree_on_a_large_unfinished_block(name: str) -> None:
    body = BODIES[name].encode()
    for policy, target in (("strict", "responses"), ("standard", "same"), ("salvage", "chat")):
        results = []
        for backend in BACKENDS:
            with using(backend):
                results.append(converted(body, target, policy))
        assert results == results[:1] * len(results), (policy, target)
