"""The streams for `streamweld demo`. The main sample has the format of a DeepSeek response that a router forwarded.

All of its anomalies were observed in real streams. The call's id is in every chunk. The call's name is in the first
chunk, and all other chunks have the name `""`. The last chunk repeats all arguments. There are keep-alive comments
between chunks. The finish reason is `stop` although there is a call. A reader that starts a new call at each id finds
231 calls.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from streamweld.testing import Call, Reasoning, Text, build

__all__ = ["ARGUMENTS", "CALL_ID", "DELTAS", "NAME", "REASONING", "TEXT", "recordings", "sample"]

CALL_ID = "functions.run-sandbox:2"
NAME = "run-sandbox"
DELTAS = 231
REASONING = "The user wants the largest gap between primes below 10,000. A sieve is enough; I will run it."
TEXT = "Let me compute that."
CODE = """\
def primes(limit):
    sieve = bytearray([1]) * limit
    sieve[:2] = b"\\0\\0"
    for n in range(2, int(limit ** 0.5) + 1):
        if sieve[n]:
            sieve[n * n::n] = bytes(len(range(n * n, limit, n)))
    return [n for n, prime in enumerate(sieve) if prime]

found = primes(10_000)
gap, after = max((b - a, a) for a, b in zip(found, found[1:]))
print(f"largest gap: {gap}, after {after} to {after + gap}")
"""
ARGUMENTS = json.dumps({"language": "python", "code": CODE, "timeout_s": 30})

_CUT = 60_000  # in the middle of the arguments


def _event(choice: dict[str, Any] | None, usage: dict[str, int] | None = None) -> bytes:
    chunk: dict[str, Any] = {
        "id": "gen-1763712000-Zk3VtQ9sYw2LrB5nXcPd",
        "provider": "DeepSeek",
        "model": "deepseek/deepseek-chat-v3.1",
        "object": "chat.completion.chunk",
        "created": 1763712000,
        "choices": [] if choice is None else [{"index": 0, "logprobs": None} | choice],
    }
    if usage is not None:
        chunk["usage"] = usage
    return b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"


def _delta(finish: str | None = None, **delta: Any) -> bytes:
    return _event({"delta": {"role": "assistant", "content": ""} | delta, "finish_reason": finish})


def _call(arguments: str, name: str) -> bytes:
    function = {"name": name, "arguments": arguments}
    return _delta(tool_calls=[{"index": 0, "id": CALL_ID, "type": "function", "function": function}])


def _pieces(text: str, count: int) -> list[str]:
    cuts = [at * len(text) // count for at in range(count + 1)]
    return [text[start:end] for start, end in pairwise(cuts)]


def sample() -> bytes:
    """Return the body, as received from the network."""
    keep_alive = b": ROUTER PROCESSING\n\n"
    out = [keep_alive * 3]
    out += [_delta(reasoning=piece) for piece in _pieces(REASONING, 18)]
    out += [_delta(content=piece) for piece in _pieces(TEXT, 5)]
    out.append(_call("", NAME))
    for number, piece in enumerate(_pieces(ARGUMENTS, DELTAS - 2)):
        out.append(_call(piece, ""))
        if number % 60 == 59:
            out.append(keep_alive)
    out.append(_call(ARGUMENTS, ""))
    out.append(_delta("stop"))
    out.append(_event(None, {"prompt_tokens": 412, "completion_tokens": 268, "total_tokens": 680}))
    out.append(b"data: [DONE]\n\n")
    return b"".join(out)


def recordings() -> dict[str, bytes]:
    """Return sample recordings by file name: one with faults, one without, and a truncated one."""
    clean = build("chat", [Reasoning(REASONING), Text(TEXT), Call(NAME, ARGUMENTS)])
    body = sample()
    return {"clean.sse": clean.body, "cut.sse": body[:_CUT], "deepseek.sse": body}
