"""JSON calls and free-form calls in one response, whose fragments identify their call more or less precisely.

A fragment is addressed by index, by id, by both, by a new id, by an unknown index, by its position in a list, or not at
all; some follow the finish reason. Free-form text is Greek and JSON is not, so that a test can detect whether they are
ever mixed in one call. This module does not import streamweld.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from streamweld.testing.pieces import entry, fragments_of

from tests.support.generate.chat import DONE, chunk, frame

if TYPE_CHECKING:
    from random import Random

GREEK = "αβγδεζ"
NAMES = ("f", "g", "run")
VALUES = ("Oslo", "Rome", "", "x y", "{", '"')
FINISHES = ("tool_calls", "tool_calls", "stop", "length")


class _Call:
    """A call in progress: the fragments that remain to be sent."""

    def __init__(self, rng: Random, number: int) -> None:
        self.custom = rng.random() < 0.5
        self.number = number
        self.id = rng.choice((f"c{number}", f"c{number}", "c0", None))
        self.name = rng.choice(NAMES)
        if self.custom:
            text = "".join(rng.choice(GREEK) for _ in range(rng.randint(0, 9)))
        else:
            text = json.dumps({rng.choice("ab"): rng.choice(VALUES) for _ in range(rng.randint(0, 2))})
        self.left = fragments_of(rng, text, 4)
        self.opened = False


def piece(rng: Random, call: _Call) -> dict[str, Any]:
    """Return the next fragment of a call. The first fragment is its header, with or without text."""
    header = not call.opened
    text = call.left.pop(0) if call.left and not (header and rng.random() < 0.5) else ""
    call.opened = True
    index = rng.choice((call.number, call.number, call.number, 0, rng.randint(0, 9), None, None))
    identity = (
        call.id if header or rng.random() < 0.3 else rng.choice((None, None, None, f"z{rng.randint(0, 2)}", "c0"))
    )
    name = call.name if header or rng.random() < 0.1 else None
    return addressed(rng, call, index, identity, name, text)


def addressed(rng: Random, call: _Call, index: int | None, identity: str | None, name: str | None, text: str) -> Any:
    if not call.custom:
        return entry(index, identity, name, text)
    inner = {key: value for key, value in (("name", name), ("input", text)) if value is not None}
    out = entry(index, identity)
    roll = rng.random()
    if roll < 0.7:
        out |= {"type": "custom", "custom": inner}
    elif roll < 0.85:
        out["custom"] = inner
    else:
        out |= {"type": "custom"} | inner
    return out


def mixed(rng: Random) -> list[bytes]:
    """Return the frames of one stream."""
    calls = [_Call(rng, number) for number in range(rng.randint(1, 4))]
    late = rng.randint(0, 3) if rng.random() < 0.3 else 0
    frames: list[bytes] = []
    left = list(calls)
    while left:
        several = [call for call in left if rng.random() < 0.5] if rng.random() < 0.4 else []
        entries = [piece(rng, call) for call in several or [rng.choice(left)]]
        if rng.random() < 0.1:
            rng.shuffle(entries)
        if len(entries) > 1 and rng.random() < 0.4:
            entries = [{key: value for key, value in one.items() if key not in {"index", "id"}} for one in entries]
        frames.append(chunk({"tool_calls": entries}))
        left = [call for call in left if call.left or not call.opened]
    finish = chunk({}, rng.choice(FINISHES))
    frames.insert(max(0, len(frames) - late), finish)
    if rng.random() < 0.1:
        frames.pop()
    roll = rng.random()
    if roll < 0.6:
        frames.append(DONE)
    elif roll < 0.7:
        frames.append(frame({"error": {"message": "m"}}))
    return frames
