"""Named, seeded shapes of Chat streams and their expected results, and definitions that all dialects share.

A shape is named after its structure on the wire. The bytes are generated to resemble recorded ones. This module does
not depend on streamweld. The other dialects are in `responses.py` and `anthropic.py`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import orjson

WORDS = ["the", "of", "and", "to", "in", "is", "that", "it", "for", "on", "with", "as", "was", "at", "by", "an", "be"]


@dataclass(frozen=True)
class Shape:
    """One stream: its bytes, one piece per event, and the expected result."""

    name: str
    events: list[bytes]
    text: str = ""
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    deltas: int = 0
    dialect: str = "chat"

    @property
    def body(self) -> bytes:
        return b"".join(self.events)

    def reads(self, size: int | None) -> list[bytes]:
        """Return the body as network reads. For `size`, None means one event per read, 0 the complete body, and any
        other value the size of a piece in bytes.
        """
        if size is None:
            return list(self.events)
        body = self.body
        if size == 0:
            return [body]
        return [body[at : at + size] for at in range(0, len(body), size)]


def _chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
    chunk = {
        "id": "chatcmpl-BvKz3mPq7RsT9uVwXyZ1aBcDeFgHi",
        "object": "chat.completion.chunk",
        "created": 1763712000,
        "model": "gpt-4.1-mini-2025-04-14",
        "service_tier": "default",
        "system_fingerprint": "fp_5d58a6052a",
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
        "usage": None,
    }
    return b"data: " + orjson.dumps(chunk) + b"\n\n"


def _usage() -> bytes:
    chunk = {
        "id": "chatcmpl-BvKz3mPq7RsT9uVwXyZ1aBcDeFgHi",
        "object": "chat.completion.chunk",
        "created": 1763712000,
        "model": "gpt-4.1-mini-2025-04-14",
        "service_tier": "default",
        "system_fingerprint": "fp_5d58a6052a",
        "choices": [],
        "usage": {"prompt_tokens": 50, "completion_tokens": 2000, "total_tokens": 2050},
    }
    return b"data: " + orjson.dumps(chunk) + b"\n\n"


def text_pieces(rng: random.Random, count: int) -> list[str]:
    """Return `count` words, each with a space before it, of about five characters."""
    return [" " + rng.choice(WORDS) for _ in range(count)]


def short_text_deltas(count: int = 2000, seed: int = 1) -> Shape:
    """W1: `count` text deltas of about five characters in OpenAI's envelope, about 300 bytes per chunk."""
    return _text_stream("short-text-deltas", text_pieces(random.Random(seed), count))


def text_shape(text: str, seed: int = 1) -> Shape:
    """Return a stream of a given text in deltas of one to seven characters."""
    rng = random.Random(seed)
    pieces: list[str] = []
    at = 0
    while at < len(text):
        size = rng.randint(1, 7)
        pieces.append(text[at : at + size])
        at += size
    return _text_stream("text", pieces)


def _text_stream(name: str, pieces: list[str]) -> Shape:
    events = [_chunk({"role": "assistant", "content": "", "refusal": None})]
    events += [_chunk({"content": piece}) for piece in pieces]
    events += [_chunk({}, "stop"), _usage(), b"data: [DONE]\n\n"]
    return Shape(name, events, text="".join(pieces), deltas=len(pieces))


def argument_pieces(rng: random.Random, count: int) -> list[str]:
    """Return `count` pieces of 4 to 12 characters that together form one JSON object."""
    body: list[str] = []
    size = 0
    while size < count * 8:
        body.append(rng.choice(WORDS))
        size += len(body[-1])
    text = orjson.dumps({"path": "src/main.py", "content": " ".join(body)}).decode()
    sizes = [rng.randint(4, 12) for _ in range(count - 1)]
    out, at = [], 0
    for size in sizes:
        out.append(text[at : at + size])
        at += size
    out.append(text[at:])
    return [piece for piece in out if piece]


def parallel_tool_calls(
    style: str, calls: int = 4, fragments: int = 250, seed: int = 2, *, interleaved: bool = False
) -> Shape:
    """W2: parallel calls of many short fragments, sequential or interleaved; `deepseek` repeats the id (and an empty
    name) in every chunk."""
    rng = random.Random(seed)
    truth: list[tuple[str, str, str]] = []
    turns: list[tuple[int, dict[str, object]]] = []
    for index in range(calls):
        call_id, name = f"call_{rng.getrandbits(80):020x}", f"write_file_{index}"
        pieces = argument_pieces(rng, fragments)
        function: dict[str, object] = {"name": name, "arguments": ""}
        turns.append((0, {"index": index, "id": call_id, "type": "function", "function": function}))
        for turn, piece in enumerate(pieces, 1):
            entry: dict[str, object] = {"index": index, "function": {"arguments": piece}}
            if style == "deepseek":
                entry = {
                    "index": index,
                    "id": call_id,
                    "type": "function",
                    "function": {"name": "", "arguments": piece},
                }
            turns.append((turn, entry))
        truth.append((call_id, name, "".join(pieces)))
    if interleaved:
        turns.sort(key=lambda turn: turn[0])
    events = [_chunk({"role": "assistant", "content": None})]
    events += [_chunk({"tool_calls": [entry]}) for _, entry in turns]
    events += [_chunk({}, "tool_calls"), _usage(), b"data: [DONE]\n\n"]
    kind = "interleaved" if interleaved else "parallel"
    return Shape(f"{kind}-tool-calls-{style}", events, calls=truth, deltas=len(turns) - calls)


def all_shapes() -> list[Shape]:
    return [short_text_deltas(), parallel_tool_calls("openai"), parallel_tool_calls("deepseek")]


READS: dict[str, int | None] = {"one event": None, "1460 B": 1460, "16 KiB": 16384, "whole": 0}
