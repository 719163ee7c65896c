"""A conversion never makes a call dispatchable that is not dispatchable in its source, whether complete or truncated.

Clients of the target run every call that looks complete, so a call that was truncated or retracted or is not JSON must
not look complete after the conversion.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING

import pytest
import streamweld as sw
from streamweld.events import ToolCall
from streamweld.testing import build, chain, random_chain, random_parts

if TYPE_CHECKING:
    from streamweld.testing import Dialect

DIALECTS: tuple[Dialect, ...] = ("chat", "responses", "anthropic", "gemini", "ai-sdk-parts", "ai-sdk-ui")
STREAMS = 40


def dispatchable(body: bytes, dialect: str) -> Counter[tuple[str, str]]:
    """Return the name and arguments of all calls, in every choice, that a reader of the events would run."""
    parser = sw.StreamParser(dialect=dialect, policy="standard")
    events = []
    try:
        events += parser.feed(body)
        events += parser.close()
    except sw.StreamError:
        pass
    calls = [event for event in events if isinstance(event, ToolCall) and event.dispatchable]
    return Counter((call.name, _normal(call.arguments)) for call in calls)


def _normal(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except ValueError:
        return arguments


def converted(body: bytes, source: str, target: str) -> bytes:
    converter = sw.StreamConverter(source=source, target=target, policy="standard")
    out = b""
    try:
        out += converter.feed(body)
    except sw.StreamError:
        pass
    return out + converter.close()


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("source", DIALECTS)
def test_a_conversion_makes_no_call_dispatchable(source: Dialect, cut: bool) -> None:
    checked = 0
    for seed in count():
        stream = chain(build(source, random_parts(source, seed)), random_chain(source, seed), seed)
        if stream is None:
            continue  # an operator of the chain does not apply
        body = stream.body
        if cut:
            body = body[: random.Random(seed).randrange(len(body) + 1)]
        given = dispatchable(body, source)
        for target in (*DIALECTS, "same"):
            if target != source:
                found = dispatchable(converted(body, source, target), source if target == "same" else target)
                assert not found - given, (seed, stream.operators, target)
        checked += 1
        if checked == STREAMS:
            return
