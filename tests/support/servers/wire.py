"""Shorthands for writing Chat streams in tests. Every function returns bytes or parts of a payload."""

from __future__ import annotations

import json
from typing import Any

DONE = b"data: [DONE]\n\n"


def event(payload: Any) -> bytes:
    """Return one event; `payload` is written as JSON unless it is already text."""
    text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=True, separators=(",", ":"))
    return f"data: {text}\n\n".encode()


def chunk(delta: Any, finish: str | None = None, *, index: Any = 0, **more: Any) -> bytes:
    """Return a chunk that clients accept. Its delta has the role, because any chunk may be the first of a stream."""
    if isinstance(delta, dict) and delta:
        delta = {"role": "assistant", **delta}
    choice: dict[str, Any] = {"index": index, "delta": delta}
    if finish is not None:
        choice["finish_reason"] = finish
    return event({"object": "chat.completion.chunk", **more, "choices": [choice]})


def text(content: str, finish: str | None = None) -> bytes:
    return chunk({"content": content}, finish)


def call(index: Any = None, call_id: Any = None, name: Any = None, arguments: Any = None) -> bytes:
    """Return a chunk with one element of `tool_calls`; None omits a member."""
    entry: dict[str, Any] = {}
    if index is not None:
        entry["index"] = index
    if call_id is not None:
        entry["id"] = call_id
    if call_id is not None or name is not None:
        entry["type"] = "function"
    entry["function"] = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    return chunk({"tool_calls": [entry]})


def end(reason: str = "tool_calls") -> bytes:
    return chunk({}, reason) + DONE
