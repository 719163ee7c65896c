"""Streams built from a small vocabulary, so that ids, indexes, texts and tags repeat and collide.

Examples are two calls with one id, a repeated text, a tag that is split in two, and a finish reason that arrives too
early. The streams have no expected results. This module does not import streamweld.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.generate.chat import DONE, frame

if TYPE_CHECKING:
    from random import Random

ARGUMENTS: tuple[Any, ...] = (
    "{", "}", "{}", '{"a"', ':1}', '{"a":1}', '{"b":"x', '"}', '{"a":1}{"a":1}', '{"a":1} ', "", "", " ", '"', "[]",
    "null", "1", '"{\\"a\\":1}"', '"{\\"a\\"', ':1}"', '{"a":1,', '"b":2}', "\ud83d", "\ude00", "\\ud8", "é", "oops",
    '{"a":1,"a":2}', '{"n":123456789012345678901}', {}, {"a": 1}, {"b": 2}, None, [], 7, True,
)  # fmt: skip
TEXTS = (
    "a", "b", "ab", "aba", "abab", "hello", "hello ", "hello world", "hello world!", " ", "\n", "", "é", "\ud83d",
    "\ude00", "<think>", "</think>", "<thi", "nk>", "</th", "<", "<think>hello</think>", "<think>\nhello\n</think>\n",
    "hello</think>b", "\ufffd",
)  # fmt: skip
IDS = ("a", "b", "c", "a", "b", "call_sw_0", "a__2", "", None, "null", " a ", 7, "x" * 600, "\x07", "é")
FINISHES = (
    "stop", "length", "tool_calls", "content_filter", "error", "function_call", "end_turn", "", " ", "STOP", "eos", 3,
)  # fmt: skip
NAMES = ("f", "g", "f", "get_weather", "get_", "weather", "search", "", " ", None, "b\u00e4d", "x" * 200, 5)
INDEXES: tuple[Any, ...] = (0, 0, 0, 1, 1, 2, 3, "0", "1", 1.0, -1, True, None, 5000, 2**63, 0.5, "x", [])
USAGE: tuple[Any, ...] = (
    {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}, {"prompt_tokens": 0}, {"total_tokens": "3"}, None,
    {"input_tokens": 4, "output_tokens": 5.0}, {"prompt_tokens_details": {"cached_tokens": 1}, "x": 1e400}, [], {},
    {"completion_tokens_details": {"reasoning_tokens": 2}, "prompt_tokens": -1, "total_tokens": 2**70},
)  # fmt: skip
ERRORS: tuple[Any, ...] = (
    {"message": "m", "code": 429, "type": "t"}, "died", {"message": {"a": [1, " x "]}}, {}, [], 5, False, None,
    {"code": None, "type": ["t"], "message": None}, {"message": "lone \ud83d"},
)  # fmt: skip
DETAILS = (
    {"type": "reasoning.text", "text": "hello"}, {"type": "reasoning.text", "text": "hello world", "signature": "s"},
    {"type": "reasoning.encrypted", "data": "AAAA"}, {"type": "reasoning.summary", "summary": "b"}, None, 1,
    {"text": "\ud83d", "signature": "\ud83d", "format": "x"},
)  # fmt: skip
PARTS: tuple[Any, ...] = (
    {"type": "text", "text": "hello"}, {"type": "text", "text": "b", "x": 1}, {"type": "refusal", "refusal": "no"},
    {"type": "thinking", "thinking": [{"type": "text", "text": "hello"}, {"text": 1}, None]},
    {"thinking": "b"}, {"type": "image_url", "image_url": "http://x/y.png"}, {"type": "strange"}, None, "hello", [],
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}, "index": 0},
    {"image_url": {"url": "http://\ud83d"}}, {"image_url": {"url": "data:\ud83d;base64,\ud83d"}}, {"text": None},
    {"type": "text", "text": "<think>b</think>a"}, {"image_url": {"url": ""}},
)  # fmt: skip
NOTES: tuple[dict[str, Any], ...] = (
    {"logprobs": None}, {"logprobs": {"content": []}}, {"x": 1}, {"x": 2}, {"y": {"z": [1, 2]}}, {"provider": "p"},
    {"content_filter_results": {}}, {"x": None}, {"é": "\ud83d"}, {"stop_reason": 12},
)  # fmt: skip
LEGACY: tuple[Any, ...] = (
    {"name": "f", "arguments": '{"a"'}, {"arguments": ":1}"}, {"name": "g", "arguments": {}}, {}, 1, None,
)  # fmt: skip
REASONING = ("reasoning", "reasoning_content", "reasoning_text", "thinking", "reasoning", "reasoning_content")
EVENTS = (b"event: error\n", b"event: ping\n", b"event: message\n", b"event: \xff\n", b"id: 1\n")


def entry(rng: Random) -> Any:
    """Return one element of `tool_calls`."""
    if rng.random() < 0.03:
        return rng.choice((None, "x", [], {}, {"index": 0}))
    out: dict[str, Any] = {}
    inner: dict[str, Any] = {}
    if rng.random() < 0.75:
        out["index"] = rng.choice(INDEXES if rng.random() < 0.3 else INDEXES[:6])
    if rng.random() < 0.45:
        out["id"] = rng.choice(IDS if rng.random() < 0.3 else IDS[:5])
    if rng.random() < 0.45:
        inner["name"] = rng.choice(NAMES if rng.random() < 0.4 else NAMES[:3])
    if rng.random() < 0.8:
        inner["arguments"] = rng.choice(ARGUMENTS)
    roll = rng.random()
    if roll < 0.9:
        out["function"] = inner
    elif roll < 0.94:
        out |= inner
    elif roll < 0.97:
        if "arguments" in inner:
            inner["input"] = inner.pop("arguments")
        out["custom"] = inner
    else:
        out |= {"function": inner, "name": "f", "arguments": "{}"}
    if rng.random() < 0.2:
        out["type"] = rng.choice(("function", "function", "custom", "strange", "", None, 1))
    if rng.random() < 0.06:
        (out if rng.random() < 0.5 else inner).update(rng.choice(NOTES))
    return out


def delta(rng: Random, kinds: str) -> dict[str, Any]:
    """Return members of a delta or a message, by `kinds`: those for calls ("c"), for text ("t"), and for everything
    else ("x").
    """
    out: dict[str, Any] = {}
    if rng.random() < 0.15:
        out["role"] = "assistant"
    if "t" in kinds and rng.random() < 0.5:
        out["content"] = rng.choice(TEXTS)
    if "t" in kinds and rng.random() < 0.3:
        for _ in range(rng.choice((1, 1, 2))):
            out[rng.choice(REASONING)] = rng.choice(TEXTS)
    if "c" in kinds and rng.random() < 0.7:
        out["tool_calls"] = [entry(rng) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        if rng.random() < 0.03:
            out["tool_calls"] = rng.choice((None, "x", {}, out["tool_calls"][0], []))
    if "x" in kinds and rng.random() < 0.5:
        out |= extra(rng)
    return out


def extra(rng: Random) -> dict[str, Any]:
    """Return one of the rarer members of a delta."""
    roll = rng.randrange(9)
    if roll == 0:
        return {"content": [rng.choice(PARTS) for _ in range(rng.randint(0, 3))]}
    if roll == 1:
        return {"reasoning_details": [rng.choice(DETAILS) for _ in range(rng.randint(0, 2))]}
    if roll == 2:
        return {"function_call": rng.choice(LEGACY)}
    if roll == 3:
        return {"refusal": rng.choice(("no", "no, ", "", None, 3, "\ud83d"))}
    if roll == 4:
        return {"annotations": rng.choice(([{"type": "url"}], [], None, {"a": 1}, [1, "\ud83d"]))}
    if roll == 5:
        return {"images": rng.choice(([PARTS[5]], [PARTS[10], PARTS[12], None, 1], [], "x"))}
    if roll == 6:
        return {"audio": rng.choice(({"id": "a", "data": "AA"}, {"transcript": "t"}, None, "x"))}
    if roll == 7:
        return dict(rng.choice(NOTES))
    return {"content": rng.choice((1, True, {"text": "hello"}, None))}


def choice(rng: Random, kinds: str, indexes: tuple[Any, ...]) -> Any:
    out: dict[str, Any] = {"index": rng.choice(indexes), "delta": delta(rng, kinds)}
    if rng.random() < 0.07:
        out["finish_reason"] = rng.choice(FINISHES if rng.random() < 0.5 else FINISHES[:4])
    elif rng.random() < 0.3:
        out["finish_reason"] = None
    if "x" not in kinds or rng.random() > 0.12:
        return out
    roll = rng.randrange(8)
    if roll == 0:
        out["message"] = delta(rng, "tcx")
    elif roll == 1:
        out["message"] = out["delta"]
    elif roll == 2:
        out["message"] = out.pop("delta")
    elif roll == 3:
        out |= rng.choice(NOTES)
    elif roll == 4:
        out["usage"] = rng.choice(USAGE)
    elif roll == 5:
        out["error"] = rng.choice(ERRORS)
    elif roll == 6:
        out["finishReason"] = rng.choice(FINISHES)
    else:
        return rng.choice((None, 1, {}, {"delta": None}, {"delta": 5}, {"index": 0}))
    return out


def payload(rng: Random, kinds: str, indexes: tuple[Any, ...]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if rng.random() < 0.5:
        out["id"] = rng.choice(("r1", "r1", "r1", "r2", "", None, 1))
    out["choices"] = [choice(rng, kinds, indexes) for _ in range(1 if rng.random() < 0.85 else rng.randint(0, 3))]
    if "x" not in kinds or rng.random() > 0.12:
        return out
    roll = rng.randrange(7)
    if roll == 0:
        out["usage"] = rng.choice(USAGE)
    elif roll == 1:
        out["error"] = rng.choice(ERRORS)
    elif roll == 2:
        out |= rng.choice(NOTES)
    elif roll == 3:
        out |= {"object": rng.choice(("chat.completion", "chat.completion.chunk", "error")), "model": "m"}
    elif roll == 4:
        out["x_groq"] = {"usage": rng.choice(USAGE)}
    elif roll == 5:
        return {"data": out} | rng.choice(({}, {"x": 1}, {"success": True}))
    else:
        return rng.choice(({"message": "m", "code": 1}, {"object": "x"}, {"error": rng.choice(ERRORS)}, {"usage": 1}))
    return out


def twice(rng: Random, text: bytes) -> bytes:
    """Duplicate a member of an object. If that happens inside the text of a call, the result is not valid JSON."""
    places = [at for at in range(len(text)) if text[at : at + 2] == b'{"']
    at = rng.choice(places) + 1 if places else 0
    member = rng.choice((b'"index":1,', b'"content":"a",', b'"id":"b",', b'"x":1,', b'"delta":{},'))
    return text[:at] + member + text[at:]


def scrambled_frames(rng: Random) -> list[bytes]:
    """Return the frames of one stream."""
    kinds = rng.choice(("c", "c", "t", "tc", "tx", "tcx", "tcx"))
    indexes = rng.choice(((0,), (0,), (0,), (0, 0, 1), (0, 1, 2, None, "0", -1, 2**40)))
    frames = []
    for _ in range(rng.choice((2, 4, 8, 14))):
        data = frame(payload(rng, kinds, indexes), ascii_only=True)
        if rng.random() < 0.02:
            data = twice(rng, data)
        if rng.random() < 0.02:
            data = rng.choice(EVENTS) + data
        frames.append(data)
        if rng.random() < 0.04:
            frames.append(data)
    if rng.random() < 0.6:
        reason = rng.choice(("stop", "tool_calls", "length"))
        frames.append(frame({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
    if rng.random() < 0.75:
        frames.append(DONE)
    if rng.random() < 0.05:
        frames.append(frame(rng.choice(({"choices": [], "cost": 1}, {"choices": []}, {"x": 1}, {"error": "e"}))))
    return frames


def whole_body(rng: Random) -> bytes:
    """Return a response that is not streamed."""
    choices = []
    for index in range(rng.choice((1, 1, 2))):
        reason = rng.choice(FINISHES)
        choices.append({"index": index, "message": delta(rng, "tcx"), "finish_reason": reason})
    body: dict[str, Any] = {"object": "chat.completion", "id": "r", "model": "m", "choices": choices}
    if rng.random() < 0.5:
        body["usage"] = rng.choice(USAGE)
    if rng.random() < 0.2:
        del body["object"]
    if rng.random() < 0.1:
        body["error"] = rng.choice(ERRORS)
    return json.dumps(body, indent=rng.choice((None, None, 2))).encode() + rng.choice((b"", b"\n", b"\n\n"))
