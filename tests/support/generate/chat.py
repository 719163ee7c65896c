"""Random Chat Completions streams with known expected results: conformant streams, and streams in one of 36 irregular
shapes.

Everything is derived from one `random.Random`, so a seed always gives the same stream. This module does not import
streamweld.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streamweld.testing.pieces import Call, fragments_of, random_calls, random_id, random_text
from streamweld.testing.shapes import SHAPES, std

if TYPE_CHECKING:
    from random import Random

DONE = b"data: [DONE]\n\n"


@dataclass
class Stream:
    """Frames in order, and the expected result."""

    shape: str
    frames: list[bytes]
    calls: list[Call] = field(default_factory=list)
    content: str = ""
    reasoning: str = ""
    refusal: str = ""
    finish: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        return b"".join(self.frames)


def frame(payload: Any, *, ascii_only: bool = False) -> bytes:
    return b"data: " + json.dumps(payload, ensure_ascii=ascii_only, separators=(",", ":")).encode() + b"\n\n"


def chunk(delta: Any, finish: str | None = None, index: int = 0, **top: Any) -> bytes:
    return frame({**top, "choices": [{"index": index, "delta": delta, "finish_reason": finish}]})


MAY_BE_BLANK = {"std", "sparse", "noid", "id_name_every"}
NOT_EMPTY = {"placeholder"}


def shaped(rng: Random, shape: str) -> Stream:
    """Return one stream of that shape."""
    blank = shape in MAY_BE_BLANK
    calls = random_calls(rng, least=1 if shape in NOT_EMPTY else 0, distinct=not blank, blank=blank)
    arrays = SHAPES[shape](rng, calls)
    stream = Stream(shape, [], calls, finish="tool_calls")
    if shape != "every_chunk_twice" and rng.random() < 0.3:
        stream.content = random_text(rng)
        stream.frames.append(chunk({"role": "assistant", "content": stream.content}))
    stream.frames += [chunk({"tool_calls": array}) for array in arrays]
    stream.frames += [chunk({}, "tool_calls")] * (2 if shape == "every_chunk_twice" else 1) + [DONE]
    return stream


def conformant(rng: Random) -> Stream:
    """Return a stream as OpenAI sends it: one envelope, role first, calls by index, finish, usage, [DONE]."""
    top: dict[str, Any] = {
        "id": "chatcmpl-" + random_id(rng),
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "m-1",
    }
    if rng.random() < 0.5:
        top["system_fingerprint"] = "fp_1"
    stream = Stream("conformant", [chunk({"role": "assistant", "content": "" if rng.random() < 0.5 else None}, **top)])
    for kind in ("reasoning", "refusal", "content"):
        if rng.random() < (0.7 if kind == "content" else 0.15):
            text = "".join(random_text(rng) for _ in range(3))
            setattr(stream, kind, text)
            member = "reasoning_content" if kind == "reasoning" else kind
            stream.frames += [chunk({member: piece}, **top) for piece in fragments_of(rng, text)]
    if rng.random() < 0.6:
        stream.calls = random_calls(rng, distinct=False, blank=True)
        stream.frames += [chunk({"tool_calls": array}, **top) for array in std(rng, stream.calls)]
    stream.finish = "tool_calls" if stream.calls else "stop"
    stream.frames.append(chunk({}, stream.finish, **top))
    if rng.random() < 0.5:
        usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
        stream.frames.append(frame({**top, "choices": [], "usage": usage}))
    stream.frames.append(DONE)
    return stream
