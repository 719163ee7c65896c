"""Invalid streams of named events: conformant streams with mutated frames and members, derived from one seed.

A `Source` defines the conformant streams of a dialect. The streams have no expected results, because the suites that
use them only compare backends or look for crashes.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.support.generate.noise import LINES, NASTY, corrupt, line_ends, random_options

if TYPE_CHECKING:
    from collections.abc import Callable

Frame = tuple[str | None, Any]  # the event name and its payload: a document, or bytes that are not JSON


@dataclass(frozen=True)
class Source:
    """The building blocks for the streams of a dialect."""

    dialect: str
    frames: Callable[[random.Random], list[Frame]]  # a stream as the API sends it
    whole: Callable[[random.Random], Any]  # the response as one document
    rich: tuple[Any, ...]  # payloads that may occur anywhere
    members: tuple[str, ...]  # names of members
    values: tuple[Any, ...] = ()  # values that may occur anywhere, in addition to NASTY
    events: tuple[str, ...] = ()  # names of events
    array: bool = False  # a body may be one array
    marker: bool = False  # `[DONE]` ends a stream


def random_case(source: Source, seed: int) -> tuple[bytes, dict[str, Any]]:
    """Return stream number `seed`: (body, options)."""
    rng = random.Random(f"{source.dialect} {seed}")
    body = _body(rng, source)
    return body, {"dialect": source.dialect} | random_options(rng, body)


def _body(rng: random.Random, source: Source) -> bytes:
    kind = rng.random()
    if kind < 0.05:
        document = source.whole(rng)
        for _ in range(rng.choice((0, 0, 1, 3))):
            document = _mutate(rng, source, document)
        return _text(rng, document)
    frames = source.frames(rng)
    if kind < 0.9:
        frames = _shaken(rng, source, frames)
    elif source.marker:
        frames = [*frames, (None, b"[DONE]")]
    if rng.random() < 0.08:
        frames = _merged(rng, frames, _shaken(rng, source, source.frames(rng)))
    if source.array and rng.random() < 0.12:
        texts = [_text(rng, payload) for _, payload in frames]
        body = b"[" + rng.choice((b",", b",\n", b"\r\n,")).join(texts) + rng.choice((b"]", b"]\n", b"]\n", b"", b",]"))
    else:
        body = b"".join(_frame(rng, *frame) for frame in frames)
    if 0.6 < kind < 0.75:
        body = corrupt(rng, body)
    if rng.random() < 0.08:
        body = body[: rng.randrange(len(body) + 1)]
    if rng.random() < 0.04:
        body = line_ends(rng, body)
    return body


def _frame(rng: random.Random, event: str | None, payload: Any) -> bytes:
    text = _text(rng, payload)
    roll = rng.random()
    if roll < 0.01:
        return text + b"\n"
    if roll < 0.015:
        return rng.choice(LINES) + b"data: " + text + b"\n\n"
    named = event is not None and rng.random() < 0.97
    end = b"\n" if rng.random() < 0.005 else b"\n\n"
    return (b"event: %s\n" % (event or "").encode() if named else b"") + b"data: " + text + end


def _text(rng: random.Random, payload: Any) -> bytes:
    """Return the payload as JSON, sometimes with a duplicate member; return bytes unchanged."""
    if isinstance(payload, bytes):
        return payload
    loose = rng.random() < 0.1
    text = json.dumps(payload, separators=(", ", ": ") if loose else (",", ":"))
    if rng.random() < 0.2 and "\\ud" not in text:
        text = json.dumps(payload, ensure_ascii=False)
    if rng.random() < 0.02:
        at = [place for place, sign in enumerate(text) if sign == "{" and text[place + 1 : place + 2] == '"']
        keys = [word.rsplit('"', 1)[-1] for word in text.split('":')[:-1]]
        if at and keys:
            place = rng.choice(at) + 1
            twin = f"{json.dumps(rng.choice(keys))}:{json.dumps(rng.choice(NASTY))},"
            text = text[:place] + twin + text[place:]
    return text.encode()


def _merged(rng: random.Random, left: list[Frame], right: list[Frame]) -> list[Frame]:
    """Merge two streams into one. They are interleaved, each in its own order, or concatenated."""
    if rng.random() < 0.5:
        return left + right
    out: list[Frame] = []
    left, right = list(left), list(right)
    while left or right:
        side = left if left and (not right or rng.random() < 0.5) else right
        out.append(side.pop(0))
    return out


def _shaken(rng: random.Random, source: Source, frames: list[Frame]) -> list[Frame]:
    often = rng.choice((0.02, 0.08, 0.08, 0.3))
    out: list[Frame] = []
    for event, payload in frames:
        roll = rng.random()
        if roll >= often:
            out.append((event, payload))
            continue
        kind = rng.randrange(16)
        if kind < 7:
            changed = payload
            for _ in range(rng.choice((1, 1, 2))):
                changed = _mutate(rng, source, changed, frames)
            out.append((event, changed))
        elif kind == 7:
            out += [(event, payload)] * 2
        elif kind == 8 and out:
            out.insert(rng.randrange(len(out)), (event, payload))
        elif kind == 9:
            out += [(rng.choice((None, "error", *source.events)), payload)]
        elif kind == 10:
            out += [(event, payload), (event, rng.choice(source.rich))]
        elif kind == 11:
            out += [(event, rng.choice(source.rich)), (event, payload)]
        elif kind == 12:
            out += [(event, payload), rng.choice(frames)]
        elif kind == 13:
            text = json.dumps(payload).encode()
            out.append((event, text[: rng.randrange(len(text) + 1)]))
        elif kind == 14:
            text = json.dumps(payload).encode()
            out.append((event, text[: rng.randrange(len(text))] + json.dumps(rng.choice(frames)[1]).encode()))
        # Mutation 15 drops the frame.
    if rng.random() < (0.9 if source.marker else 0.1):
        out.append((None, b"[DONE]"))
    if rng.random() < 0.1 and out:
        out = out[: rng.randrange(len(out) + 1)]
    return out


def _mutate(rng: random.Random, source: Source, value: Any, frames: list[Frame] | None = None, depth: int = 0) -> Any:
    """Return `value` with one random change."""
    if isinstance(value, dict) and value and rng.random() < 0.85 - 0.1 * (depth == 0):
        out = dict(value)
        key = rng.choice(list(out))
        roll = rng.random()
        if roll < 0.1:
            del out[key]
        elif roll < 0.15:
            out[rng.choice(source.members)] = out.pop(key)
        elif roll < 0.3:
            out[rng.choice(source.members)] = _value(rng, source, frames)
        else:
            out[key] = _mutate(rng, source, out[key], frames, depth + 1)
        return out
    if isinstance(value, list) and value and rng.random() < 0.8:
        items = list(value)
        at = rng.randrange(len(items))
        roll = rng.random()
        if roll < 0.1:
            items.insert(at, _value(rng, source, frames))
        elif roll < 0.2:
            items.append(items[at])
        elif roll < 0.3:
            del items[at]
        else:
            items[at] = _mutate(rng, source, items[at], frames, depth + 1)
        return items
    return _value(rng, source, frames)


def _value(rng: random.Random, source: Source, frames: list[Frame] | None) -> Any:
    roll = rng.random()
    if roll < 0.25 and frames:
        # Use a value from elsewhere in the same stream, so that ids and indexes collide.
        value = rng.choice(frames)[1]
        while isinstance(value, dict | list) and value and rng.random() < 0.85:
            value = rng.choice(list(value.values()) if isinstance(value, dict) else value)
        return value
    if roll < 0.6 and source.values:
        return rng.choice(source.values)
    return rng.choice(NASTY)
