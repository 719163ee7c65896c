"""A byte order mark is skipped only at the start of a stream, so it affects when repair passes a payload only there.

The HTML Standard strips one mark when it decodes the stream
(https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream). Anywhere else, a mark is part
of a field name that no client knows.
"""

from __future__ import annotations

import pytest
import streamweld as sw

from tests.support.backends import using

MARK = b"\xef\xbb\xbf"
CHUNK = b'{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s}]}'
ONE = CHUNK % b'{"role":"assistant","content":"a"}'
TWO = CHUNK % b'{"content":"b"}'

# The pieces of a stream, and the pieces that have been parsed after each of them, by the length of the text.
CASES = {
    "a payload after the mark": ([MARK + ONE + b"\n", TWO + b"\n"], [1, 2]),
    "a mark in a piece of its own": ([MARK[:1], MARK[1:], ONE + b"\n", TWO + b"\n"], [0, 0, 1, 2]),
    "data after the mark waits for its end": ([MARK + b"data: " + ONE + b"\n", b"\n"], [0, 1]),
    "data in the piece after the mark": ([MARK, b"data: " + ONE + b"\n", b"\n"], [0, 0, 1]),
    "a mark in mid-stream": ([ONE + b"\n", MARK + TWO + b"\n", b"\n", TWO + b"\n"], [1, 1, 1, 2]),
    "data after a mark in mid-stream": ([ONE + b"\n", MARK + b"data: " + TWO + b"\n", TWO + b"\n"], [1, 1, 2]),
    "two marks": ([MARK + MARK + ONE + b"\n", ONE + b"\n", TWO + b"\n"], [0, 1, 2]),
    "an incomplete mark": ([MARK[:2] + ONE + b"\n", ONE + b"\n", TWO + b"\n"], [0, 1, 2]),
}


@pytest.mark.parametrize("name", CASES)
def test_when_a_payload_passes(backend: str, name: str) -> None:
    pieces, wanted = CASES[name]
    with using(backend):
        converter = sw.StreamConverter(source="chat", target="same", seed="s")
        found = []
        for piece in pieces:
            converter.feed(piece)
            found.append(len(converter.response.text))
    assert found == wanted
