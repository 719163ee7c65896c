"""Invalid streams: mutated chunks, corrupted bytes, junk, and random options, all derived from one seed.

The streams have no expected results, because the suites that use them only compare backends or look for crashes. The
module uses only the names of options and diagnostic codes from streamweld.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

from streamweld._spec import CODES
from streamweld.testing.pieces import fragments_of, random_text
from streamweld.testing.shapes import SHAPES

from tests.support.generate.chat import DONE, chunk, conformant, frame, shaped
from tests.support.generate.mixed import mixed
from tests.support.generate.scrambled_frames import scrambled_frames, whole_body

NASTY: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 1.0, 0.5, 10**9, 2**63, 2**64, -(2**63) - 1, 1e300, "", " ", "0", "1", "-1",
    "null", "None", "x", "\ud83d", "\ude00", "a\ud83d", "\ude00b", "\x00", "[DONE]", "{", "{}", '{"a":1}', '"x"',
    "stop", "length", "tool_calls", "content_filter", "error", [], [None], [[]], ["x"], {}, {"a": 1}, {"text": "t"},
    [{"type": "text", "text": "t"}], [{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x":'}}],
    {"name": "f", "arguments": "{}"},
)  # fmt: skip
MEMBERS = (
    "id", "model", "created", "object", "choices", "usage", "error", "index", "delta", "message", "finish_reason",
    "finishReason", "role", "content", "refusal", "reasoning", "reasoning_content", "reasoning_text",
    "reasoning_details", "tool_calls", "function_call", "function", "name", "arguments", "type", "logprobs",
    "annotations", "images", "audio", "extra_content", "data", "code", "custom", "signature", "x_unknown",
    "provider", "text", "thinking",
)  # fmt: skip
RICH = (
    {"reasoning_details": [{"type": "reasoning.text", "text": "think", "index": 0, "signature": "sig"}]},
    {"reasoning_details": [{"type": "reasoning.encrypted", "data": "abc", "id": "r1"}]},
    {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "hi"}]},
    {"content": "<think>so</think>then"}, {"content": "</think>"}, {"content": "<th"}, {"content": "ink>"},
    {"annotations": [{"type": "url_citation", "url_citation": {"url": "u"}}]},
    {"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
    {"audio": {"id": "a", "data": "AAAA", "transcript": "t"}}, {"function_call": {"name": "f", "arguments": ""}},
    {"function_call": {"arguments": "{}"}}, {"refusal": "no"}, {"reasoning": "r", "reasoning_content": "r"},
    {"tool_calls": [{"index": 0, "custom": {"name": "f", "input": "free"}}]},
    {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": {"a": "x"}}}]},
    {"tool_calls": [{"index": 0, "extra_content": {"google": {"thought_signature": "s"}}}]},
)  # fmt: skip
LINES = (
    b": comment\n", b"event: ping\n", b"event: error\n", b"id: 7\n", b"retry: 10\n", b"data\n", b"data:\n",
    b"data: null\n\n", b"data: [DONE]\n\n", b"[DONE]\n", b"data: : comment\n\n",
    b'{"error":{"message":"m","code":5}}\n', b"{\n", b"}\n", b"<html>\n", b"data: oops\n\n", b'data: {"a":\n\n',
    b"\n", b"\r\n", b"\r", b"garbage\n", b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x82", b"\xed\xa0",
    b"data: \xed\xa0\n\n",
    b'data: {"error":{"message":"m","type":"t"}}\n\n', b'data: {"choices":[],"usage":{"prompt_tokens":1}}\n\n',
    b'{"choices":[{"index":0,"delta":{"content":"s"}}]}\n', b"data: 1e999\n\n", b'data: "text"\n\n',
    b"data: [1]\n\n", b'data: {"choices":[{"index":0,"message":{"content":"whole"},"finish_reason":"stop"}]}\n\n',
    b'data: {"success":true,"data":{"choices":[{"index":0,"delta":{"content":"in"}}]}}\n\n',
)  # fmt: skip
SWITCHES: dict[str, tuple[Any, ...]] = {
    "same_index_new_id_same_name_empty": ("merge",), "orphan_index": ("latest",),
    "dup_id_parallel_headers": ("split", "join", "auto"), "dup_id_empty_header": ("keep",),
    "identical_idless_same_index": ("keep",), "on_overflow": ("split",), "duplicate_payload": ("drop",),
    "content_mode": ("auto", "cumulative"), "drop_restated_content": (False,), "restart_on_new_stream_id": (True,),
    "merge_choices": (True,), "unstable_id": ("last",), "inline_reasoning": (True,), "close_calls_at": ("finish",),
}  # fmt: skip
TOOLS: tuple[Any, ...] = (
    ["get_weather", "search"], ["get", "get_weather", "weather", "f"], [], ["b\u00e4d", "g"],
    {"f": {"type": "object", "required": ["a"]}, "g": None, "get_weather": {"required": ["city", "a"]}},
    {"search": {}, "f": {"required": []}},
)  # fmt: skip
SMALL_LIMITS = {
    "max_event_bytes": (64, 300), "max_field_bytes": (4,), "max_json_depth": (3, 6), "max_choices": (1,),
    "max_tool_calls": (1, 2), "max_tool_index": (0, 1), "max_arguments_bytes": (8, 40),
    "max_total_arguments_bytes": (10, 60), "max_name_bytes": (3, 8), "max_id_bytes": (2, 6),
    "max_text_bytes": (3, 20), "max_events": (1, 5), "max_stream_bytes": (100, 700), "max_diagnostics": (0, 1),
}  # fmt: skip


def mutate(rng: random.Random, value: Any, depth: int = 0) -> Any:
    """Return `value` with one random change."""
    if isinstance(value, dict) and value and rng.random() < 0.8 - 0.1 * (depth == 0):
        out = dict(value)
        key = rng.choice(list(out))
        roll = rng.random()
        if roll < 0.08:
            del out[key]
        elif roll < 0.2:
            out[rng.choice(MEMBERS)] = rng.choice(NASTY)
        else:
            out[key] = mutate(rng, out[key], depth + 1)
        return out
    if isinstance(value, list) and value and rng.random() < 0.8:
        out_list = list(value)
        at = rng.randrange(len(out_list))
        roll = rng.random()
        if roll < 0.1:
            out_list.insert(at, rng.choice(NASTY))
        elif roll < 0.2:
            out_list.append(out_list[at])
        else:
            out_list[at] = mutate(rng, out_list[at], depth + 1)
        return out_list
    return rng.choice(NASTY)


def payload_of(data: bytes) -> Any:
    if not data.startswith(b"data: {"):
        return None
    try:
        return json.loads(data[6:])
    except ValueError:
        return None


def rewrite(rng: random.Random, data: bytes) -> bytes:
    """Return the frame with its JSON written differently (same meaning) or split over lines."""
    payload = payload_of(data)
    if payload is None:
        return data
    roll = rng.random()
    if roll < 0.3:
        return b"data: " + json.dumps(payload, ensure_ascii=True).encode() + b"\n\n"
    if roll < 0.5:
        lines = json.dumps(payload, indent=1, ensure_ascii=False).encode("utf-8", "replace").split(b"\n")
        return b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"
    if roll < 0.6:
        at = rng.randrange(6, len(data) - 2)
        return data[:at] + b"\ndata: " + data[at:]
    if roll < 0.7:
        return data.replace(b"data: ", b"data:", 1)
    if roll < 0.8:
        return data[:-1]  # no blank line: two documents in one event
    if roll < 0.9:
        return data[6:]  # no data: field
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r")))


def noisy_frames(rng: random.Random, frames: list[bytes]) -> list[bytes]:
    out: list[bytes] = []
    for data in frames:
        roll = rng.random()
        payload = payload_of(data)
        if roll < 0.25 and payload is not None:
            for _ in range(rng.randint(1, 2)):
                payload = mutate(rng, payload)
            out.append(frame(payload, ascii_only=True))
        elif roll < 0.33:
            out.append(rewrite(rng, data))
        elif roll < 0.38:
            out += [rng.choice(LINES), data]
        elif roll < 0.41:
            out += [data, data]
        elif roll < 0.43:
            continue
        elif roll < 0.47:
            out += [chunk(rng.choice(RICH), index=rng.choice((0, 0, 0, 1))), data]
        elif roll < 0.49 and out:
            out.insert(rng.randrange(len(out)), data)
        elif roll < 0.51:
            out.append(data[: rng.randrange(len(data))])
        else:
            out.append(data)
    return out


def corrupt(rng: random.Random, body: bytes) -> bytes:
    """Return the body with a few bytes changed, removed, duplicated or swapped."""
    data = bytearray(body)
    for _ in range(rng.randint(1, 3)):
        if not data:
            break
        at = rng.randrange(len(data))
        roll = rng.randrange(6)
        if roll == 0:
            data[at] = rng.choice(b'\x00"{}[],:\\\n\r 0e-\xff\xe2\xed')
        elif roll == 1:
            del data[at : at + rng.randint(1, 12)]
        elif roll == 2:
            data[at:at] = data[at : at + rng.randint(1, 20)]
        elif roll == 3:
            data[at:at] = rng.choice(LINES)
        elif roll == 4:
            del data[at:]
        else:
            data[at : at + 1] = bytes([data[at] ^ (1 << rng.randrange(8))])
    return bytes(data)


def junk(rng: random.Random) -> bytes:
    """Return tokens of the format in random order, or random bytes."""
    if rng.random() < 0.2:
        return rng.randbytes(rng.randint(0, 200))
    tokens = (
        *LINES, b"data: ", b"data:", b"{", b"}", b"[", b"]", b'"choices":', b'"delta":', b'"content":"', b'"', b",",
        b":", b"1", b"-", b"e9", b"\\u", b"\\ud83d", b"null", b"true", b'"index":0', b'"tool_calls":[{',
        b'"function":{', b'"arguments":"', b" ", b"id:", b"event:",
    )  # fmt: skip
    return b"".join(rng.choice(tokens) for _ in range(rng.randint(0, 40)))


def random_policy(rng: random.Random) -> dict[str, Any]:
    policy: dict[str, Any] = {}
    roll = rng.random()
    if roll < 0.35:
        policy["base"] = "salvage"
    elif roll < 0.45:
        policy["base"] = "strict"
    often = rng.choice((0.03, 0.06, 0.3))
    for name, values in SWITCHES.items():
        if rng.random() < often:
            policy[name] = rng.choice(values)
    if rng.random() < 0.1:
        codes = rng.sample(sorted(CODES), rng.choice((1, 3, 12)))
        policy["actions"] = {
            code: rng.choice(("raise", "diagnose", "skip" if CODES[code].skippable else "diagnose")) for code in codes
        }
    return {"base": "standard"} | policy if policy else {}


def random_options(rng: random.Random, body: bytes = b"") -> dict[str, Any]:
    """Return keyword arguments of StreamParser; the policy is a dict of Policy's arguments."""
    options: dict[str, Any] = {}
    policy = random_policy(rng)
    if policy:
        options["policy"] = policy
    if rng.random() < 0.15:
        options["tools"] = rng.choice(TOOLS)
    if rng.random() < 0.08:
        sent = [found.decode("utf-8", "replace") for found in re.findall(rb'"id":"([^"\\\\]{1,40})"', body)]
        options["known_call_ids"] = ["call_sw_0", "a", "call_sw_1", *rng.sample(sent, min(len(sent), 2))]
    if rng.random() < 0.06:
        options["seed"] = rng.choice(("s1", "x_" * 20))
    if rng.random() < 0.1:
        options["dialect"] = "auto"
    if rng.random() < 0.05:
        options["content_type"] = rng.choice(("text/html", "application/json; charset=utf-8", "text/event-stream", ""))
    if rng.random() < 0.14:
        names = rng.sample(list(SMALL_LIMITS), rng.choice((1, 1, 1, 2, 4)))
        options["limits"] = {name: rng.choice((*SMALL_LIMITS[name], None)) for name in names}
    return options


def random_pieces(rng: random.Random, body: bytes) -> list[bytes]:
    """Split `body` into chunks as a network might."""
    roll = rng.random()
    if roll < 0.25:
        return [body]
    if roll < 0.35:  # partly byte by byte
        first = rng.randrange(max(1, len(body) - 600))
        stretch = body[first : first + 600]
        return [body[:first], *[stretch[i : i + 1] for i in range(len(stretch))], body[first + 600 :]]
    size = rng.choice((5, 40, 150, 600))
    out, at = [], 0
    while at < len(body):
        step = rng.randint(0, size)
        out.append(body[at : at + step])
        at += step
    return out


def random_frames(rng: random.Random) -> list[bytes]:
    roll = rng.random()
    if roll < 0.25:
        frames = conformant(rng).frames
    elif roll < 0.55:
        frames = shaped(rng, rng.choice(list(SHAPES))).frames
    elif roll < 0.7:
        frames = mixed(rng)
    else:
        return scrambled_frames(rng)
    if rng.random() < 0.2:
        other = scrambled_frames(rng) if rng.random() < 0.3 else shaped(rng, rng.choice(list(SHAPES))).frames
        frames = frames[:-1] + other  # two responses in one stream
    if rng.random() < 0.2:
        text = random_text(rng)
        frames = [chunk({rng.choice(("content", "reasoning")): p}, index=1) for p in fragments_of(rng, text)] + frames
    return frames


def line_ends(rng: random.Random, body: bytes) -> bytes:
    """Return the same lines with other line endings that the standard allows."""
    roll = rng.random()
    if roll < 0.4:
        return body.replace(b"\n", b"\r\n")
    if roll < 0.7:
        return body.replace(b"\n", b"\r")
    return b"".join(
        line[:-1] + rng.choice((b"\n", b"\r", b"\r\n")) if line.endswith(b"\n") else line
        for line in body.splitlines(keepends=True)
    )


def random_body(rng: random.Random) -> bytes:
    kind = rng.random()
    if kind < 0.05:
        return conformant(rng).body
    if kind < 0.17:
        return shaped(rng, rng.choice(list(SHAPES))).body
    if kind < 0.24:
        return junk(rng)
    if kind < 0.27:
        body = whole_body(rng)
        return corrupt(rng, body) if rng.random() < 0.3 else body
    frames = random_frames(rng)
    body = b"".join(noisy_frames(rng, frames)) if kind < 0.62 else b"".join(frames)
    if 0.55 < kind < 0.8:
        body = corrupt(rng, body)
    if rng.random() < 0.1 and body.endswith(DONE):
        body = body[: -len(DONE)]
    if rng.random() < 0.05:
        body = body[: rng.randrange(len(body) + 1)] + rng.choice((b"", b"\xed\xa0", b"\xe6\x97", b"\xf4\x90", b"\xff"))
    if rng.random() < 0.06:
        body = line_ends(rng, body)
    return b"\xef\xbb\xbf" + body if rng.random() < 0.02 else body


def random_case(seed: int) -> tuple[bytes, dict[str, Any]]:
    """Return stream number `seed`: (body, options)."""
    rng = random.Random(seed)
    body = random_body(rng)
    return body, random_options(rng, body)
