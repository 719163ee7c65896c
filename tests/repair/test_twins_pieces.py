"""Both backends repair any sequence of small pieces of an event stream identically, within small limits.

Full counts (STREAMWELD_FULL=1): 40,000 sequences.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
import streamweld as sw

from tests.conftest import FULL
from tests.support.backends import using

COUNT = 40_000 if FULL else 1_500
SEED = 7
CHAT = b'{"choices":[{"index":0,"delta":{"content":"a"}}]}'
GEMINI = b'{"candidates":[{"content":{"parts":[{"text":"h"}],"role":"model"},"index":0}]}'
# Comments, blank lines, line ends, payloads outside any field, joined lines, long lines.
PIECES = [
    *(b":\n\n", b": c\n", b": " + b"x" * 60 + b"\n", b":x\r\n", b": data: {}\n"),
    *(b"\n", b"\r", b"\r\n", b"\r\n\r\n", b"\n\n", b" ", b"[", b",", b"\xef\xbb\xbf"),
    *(CHAT, b"{}", b"[DONE]\n", b"<html>", b"x" * 50),
    *(b"data: " + CHAT, b"data: " + CHAT + b"\n\n", b"data: " + CHAT + b"\r\n\r\n", b"data: ", b"data: [DONE]\n\n"),
    *(b"event: x", b"event: message\n", b"event: xdata: " + CHAT, b"id: 1", b"retry: 5"),
]


def sequence(number: int) -> tuple[bytes, list[int], dict[str, Any]]:
    """Return a body, the positions at which it is split, and the options of the converter."""
    rng = random.Random(f"{SEED}:{number}")
    body = b"".join(rng.choice(PIECES) for _ in range(rng.randint(1, 7)))
    if rng.random() < 0.3:
        body = b"data: " + CHAT + b"\n\n" + body
    limits = {"max_event_bytes": rng.choice([20, 40, 55, 64, 80, 120, 300])}
    if rng.random() < 0.3:
        limits["max_field_bytes"] = rng.choice([10, 40, 100])
    if rng.random() < 0.2:
        limits["max_stream_bytes"] = rng.choice([50, 100, 200])
    dialect = rng.choice(["auto", "chat", "chat", "gemini"])
    if dialect == "gemini":
        body = body.replace(CHAT, GEMINI)
    policy = rng.choice(["strict", "standard", "salvage"])
    count = min(rng.choice([0, 1, 2, len(body)]), len(body))
    cuts = sorted(rng.sample(range(len(body)), count))
    return body, cuts, {"source": dialect, "limits": sw.Limits(**limits), "policy": policy}


def repaired(backend: str, body: bytes, cuts: list[int], options: dict[str, Any]) -> tuple[Any, ...]:
    with using(backend):
        converter = sw.StreamConverter(target="same", seed="s", **options)
    ends = [*cuts, len(body)]
    out = b"".join(converter.feed(body[start:end]) for start, end in zip([0, *cuts], ends, strict=True))
    out += converter.close()
    error = converter.error
    shown = None if error is None else (type(error), error.rule, error.byte_offset, error.event_ordinal, error.raw)
    response = converter.response
    return out, converter.diagnostics, shown, response.text, response.completeness, converter.repaired


def test_pieces_within_small_limits_are_repaired_identically(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--no-native"):
        pytest.skip("--no-native: there is nothing to compare with")
    for number in range(COUNT):
        case = sequence(number)
        assert repaired("native", *case) == repaired("pure", *case), (number, case)
