"""Chat streams whose calls all have index 0, without ids or with one shared id, and the expected result of each.

The calls follow each other, each in one piece or in fragments. Names share prefixes or are equal; arguments are equal,
empty objects or different. Each stream comes with its expected result: the list of calls, or the diagnostic for the
ambiguity.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.support.generate.chat import DONE, frame

if TYPE_CHECKING:
    from random import Random

NAMES = ("get", "get_weather", "get_weather_now", "search", "search_web", "run", "run_tests", "web", "f", "fetch")
VALUES: tuple[dict[str, Any], ...] = (
    {}, {"q": 1}, {"q": 2}, {"q": "a"}, {"x": {"q": 1}}, {"x": {}}, {"list": [1, {"q": 1}]}, {"city": "Zürich", "n": 3},
)  # fmt: skip


@dataclass(frozen=True)
class SharedIndex:
    """One stream, its calls, and whether a call is an exact copy of the previous one."""

    body: bytes
    calls: tuple[tuple[str, str], ...]
    repeats: bool


def _pieces(rng: Random, text: str) -> list[str]:
    cuts = sorted(rng.sample(range(1, len(text)), min(len(text) - 1, rng.randint(0, 4))))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def shared_index(rng: Random, identity: str | None) -> SharedIndex:
    """Return a stream of two to five calls at index 0. `identity` is the id of every call; None omits the ids."""
    calls = [(rng.choice(NAMES), rng.choice(VALUES)) for _ in range(rng.randint(2, 5))]
    header_alone, echo = rng.random() < 0.5, rng.random() < 0.3
    frames = []
    for name, value in calls:
        pieces = _pieces(rng, json.dumps(value, ensure_ascii=False, separators=rng.choice(((",", ":"), (", ", ": ")))))
        if header_alone:
            pieces.insert(0, "")
        for place, piece in enumerate(pieces):
            entry: dict[str, Any] = {"index": 0, "function": {"arguments": piece}}
            if place == 0:
                entry["function"]["name"] = name
                entry["type"] = "function"
            if identity is not None and (place == 0 or echo):
                entry["id"] = identity
            frames.append(frame({"choices": [{"index": 0, "delta": {"tool_calls": [entry]}, "finish_reason": None}]}))
    frames.append(frame({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}))
    frames.append(DONE)
    wanted = tuple((name, json.dumps(value, sort_keys=True)) for name, value in calls)
    return SharedIndex(b"".join(frames), wanted, len(set(wanted)) < len(wanted))
