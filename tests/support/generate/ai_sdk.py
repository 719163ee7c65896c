"""Random AI SDK streams, both provider-level parts and UI message streams, used as input for mutation.

The parts are those of the provider specifications V2 to V4 and of `streamText`. This module does not import streamweld.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from streamweld.testing.pieces import NAMES, fragments_of, random_arguments, random_id, random_text

from tests.support.generate.frames import Frame, Source

if TYPE_CHECKING:
    from random import Random

REASONS = ("stop", "length", "content-filter", "tool-calls", "error", "other", "unknown", "x")
URLS = ("https://example.org/a", "data:image/png;base64,AAAA", "data:,plain", "data:text/plain;base64,", "u")


def _provider(rng: Random, often: float = 0.3) -> dict[str, Any]:
    """Return provider metadata, or nothing."""
    if rng.random() >= often:
        return {}
    inner = rng.choice((
        {"itemId": "msg_" + random_id(rng)}, {"itemId": "rs_1", "reasoningEncryptedContent": "enc"},
        {"signature": "sig"}, {"thoughtSignature": "thought"}, {"redactedData": "red"}, {"logprobs": [1]},
        {"itemId": "rs_1", "reasoningEncryptedContent": None}, {"signature": ""},
    ))  # fmt: skip
    return {"providerMetadata": {rng.choice(("openai", "anthropic", "google")): inner}}


def _usage(rng: Random) -> dict[str, Any]:
    return rng.choice((
        {"inputTokens": rng.randint(0, 9), "outputTokens": rng.randint(0, 9), "totalTokens": 9},
        {"inputTokens": {"total": 5, "cacheRead": 1}, "outputTokens": {"total": 3, "reasoning": 2}},
        {"promptTokens": 3, "completionTokens": 4}, {"inputTokens": None}, {}, {"inputTokens": 0},
    ))  # fmt: skip


def _texts(rng: Random, identity: str, spelling: str) -> list[dict[str, Any]]:
    """Return a text or reasoning part: its start, deltas and end."""
    kind = rng.choice(("text", "text", "reasoning"))
    pieces = fragments_of(rng, random_text(rng))
    out = [{"type": f"{kind}-start", "id": identity, **_provider(rng)}]
    out += [{"type": f"{kind}-delta", "id": identity, spelling: piece, **_provider(rng, 0.05)} for piece in pieces]
    out.append({"type": f"{kind}-end", "id": identity, **_provider(rng)})
    return out


def _shuffled(rng: Random, rows: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return several parts, either in sequence or interleaved."""
    if rng.random() < 0.6:
        return [one for row in rows for one in row]
    out: list[dict[str, Any]] = []
    while rows:
        row = rng.choice(rows)
        out.append(row.pop(0))
        rows = [row for row in rows if row]
    return out


def _parts_call(rng: Random, modern: bool) -> list[dict[str, Any]]:
    identity, name, text = random_id(rng), rng.choice(NAMES), random_arguments(rng)
    executed = {"providerExecuted": True} if rng.random() < 0.15 else {}
    out: list[dict[str, Any]] = []
    if rng.random() < 0.8:
        out.append({"type": "tool-input-start", "id": identity, "toolName": name, **executed, **_provider(rng, 0.1)})
        out += [{"type": "tool-input-delta", "id": identity, "delta": piece} for piece in fragments_of(rng, text)]
        out.append({"type": "tool-input-end", "id": identity, **_provider(rng, 0.1)})
    sent: Any = text
    if modern and rng.random() < 0.7:
        try:
            sent = json.loads(text)
        except ValueError:
            sent = text
    call = {"type": "tool-call", "toolCallId": identity, "toolName": name, "input": sent, **executed}
    if rng.random() < 0.05:
        call |= {"invalid": True, "error": rng.choice(("no such tool", {"name": "E"}))}
    out.append(call | _provider(rng, 0.15))
    roll = rng.random()
    if executed or roll < 0.3:
        key = "output" if modern else "result"
        for _ in range(rng.choice((1, 1, 2))):
            output = rng.choice(("ok", {"a": 1}))
            result = {"type": "tool-result", "toolCallId": identity, "toolName": name, key: output}
            out.append(result | rng.choice(({}, {}, {"isError": True}, {"preliminary": True})) | _provider(rng, 0.1))
    elif roll < 0.35:
        out.append({"type": "tool-error", "toolCallId": identity, "input": {}, "error": rng.choice(("no", {"a": 1}))})
    elif roll < 0.4:
        out.append({"type": "tool-output-denied", "toolCallId": identity, "toolName": name})
    return out


def _parts_extra(rng: Random) -> dict[str, Any]:
    return dict(rng.choice((
        {"type": "source", "sourceType": "url", "id": "s", "url": rng.choice(URLS), "title": "t"},
        {"type": "source", "sourceType": "document", "id": "s", "mediaType": "text/plain", "title": "t"},
        {"type": "file", "mediaType": "image/png", "data": rng.choice(("AAAA", *URLS))},
        {"type": "file", "mediaType": "image/png", "data": {"type": "url", "url": rng.choice(URLS)}},
        {"type": "reasoning-file", "mediaType": "image/png", "data": {"type": "data", "data": "AAAA"}},
        {"type": "file", "file": {"base64Data": "AAAA", "mediaType": "image/png"}},
        {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "c"},
        {"type": "custom", "kind": "openai.thing"}, {"type": "raw", "rawValue": {"a": [1]}},
        {"type": "later", "id": "x"},
    )))  # fmt: skip


def _finish_reason(rng: Random, calls: bool) -> Any:
    reason = rng.choice(REASONS) if rng.random() < 0.3 else "tool-calls" if calls else "stop"
    return {"unified": reason, "raw": rng.choice(("end_turn", None, 3))} if rng.random() < 0.5 else reason


def parts(rng: Random) -> list[Frame]:
    """Return one response of a provider, or of `streamText` with its steps."""
    modern = rng.random() < 0.5
    out: list[dict[str, Any]] = []
    if rng.random() < 0.8:
        warnings = rng.choice(([], [], [{"type": "other", "message": "w"}]))
        out.append({"type": "start"} if modern else {"type": "stream-start", "warnings": warnings})
    calls = False
    for _ in range(rng.choice((1, 1, 2, 3)) if modern else 1):
        if modern:
            out.append({"type": "start-step", "request": {"body": "b"}, "warnings": []})
        elif rng.random() < 0.7:
            stamp = rng.choice(("2025-07-01T10:00:00.000Z", "2025-07-01T10:00:00.250Z", "2025-02-30T00:00:00Z", "now"))
            out.append({"type": "response-metadata", "id": "resp_1", "modelId": "m", "timestamp": stamp})
        rows: list[list[dict[str, Any]]] = []
        for number in range(rng.choice((0, 1, 1, 2, 3))):
            roll = rng.random()
            if roll < 0.5:
                rows.append(_texts(rng, rng.choice((str(number), "0", random_id(rng))), "text" if modern else "delta"))
            elif roll < 0.9:
                calls = True
                rows.append(_parts_call(rng, modern))
            else:
                rows.append([_parts_extra(rng)])
        out += _shuffled(rng, rows)
        reason = _finish_reason(rng, calls)
        if modern:
            out.append({"type": "finish-step", "finishReason": reason, "usage": _usage(rng), "response": {"id": "r"}})
    key = "totalUsage" if modern else "usage"
    out.append({"type": "finish", "finishReason": _finish_reason(rng, calls), key: _usage(rng), **_provider(rng, 0.2)})
    return [(None, one) for one in out]


def _ui_call(rng: Random) -> list[dict[str, Any]]:
    identity, name, text = random_id(rng), rng.choice(NAMES), random_arguments(rng)
    key = {"toolCallId": identity}
    executed = {"providerExecuted": True} if rng.random() < 0.15 else {}
    out: list[dict[str, Any]] = []
    if rng.random() < 0.8:
        out.append({"type": "tool-input-start", **key, "toolName": name, **executed, **_provider(rng, 0.1)})
        out += [{"type": "tool-input-delta", **key, "inputTextDelta": piece} for piece in fragments_of(rng, text)]
    sent: Any = text
    if rng.random() < 0.9:
        try:
            sent = json.loads(text)
        except ValueError:
            sent = text
    roll = rng.random()
    if roll < 0.1:
        failed = {"type": "tool-input-error", **key, "toolName": name, "input": sent, "errorText": "no"}
        return [*out, failed | executed]
    out.append({"type": "tool-input-available", **key, "toolName": name, "input": sent, **executed, **_provider(rng)})
    if roll < 0.5:
        for _ in range(rng.choice((1, 1, 2))):
            out.append({"type": "tool-output-available", **key, "output": rng.choice(("ok", {"a": 1}, None))})
    elif roll < 0.6:
        out.append({"type": "tool-output-error", **key, "errorText": "failed"})
    elif roll < 0.65:
        out.append({"type": "tool-output-denied", **key})
    return out


def _ui_extra(rng: Random) -> dict[str, Any]:
    return dict(rng.choice((
        {"type": "source-url", "sourceId": "s", "url": rng.choice(URLS), "title": "t"},
        {"type": "source-document", "sourceId": "s", "mediaType": "text/plain", "title": "t"},
        {"type": "file", "url": rng.choice(URLS), "mediaType": "image/png"},
        {"type": "reasoning-file", "url": rng.choice(URLS), "mediaType": "image/png"},
        {"type": "data-weather", "id": "w", "data": {"a": rng.randint(0, 9)}}, {"type": "data-x", "data": 1},
        {"type": "data-note", "data": {}, "transient": True},
        {"type": "message-metadata", "messageMetadata": {"b": 1, "usage": _usage(rng)}},
        {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "c"}, {"type": "custom", "kind": "k"},
        {"type": "reset-step"}, {"type": "later"},
    )))  # fmt: skip


def chunks(rng: Random) -> list[Frame]:
    """Return one message of a UI message stream, with its steps."""
    start: dict[str, Any] = {"type": "start"}
    if rng.random() < 0.6:
        start["messageId"] = "msg-" + random_id(rng)
    if rng.random() < 0.3:
        start["messageMetadata"] = {"a": 1, "model": "m"}
    out = [start]
    calls = False
    for _ in range(rng.choice((1, 1, 2, 3))):
        out.append({"type": "start-step"})
        rows: list[list[dict[str, Any]]] = []
        for number in range(rng.choice((0, 1, 1, 2, 3))):
            roll = rng.random()
            if roll < 0.5:
                rows.append(_texts(rng, rng.choice((str(number), "0", random_id(rng))), "delta"))
            elif roll < 0.85:
                calls = True
                rows.append(_ui_call(rng))
            else:
                rows.append([_ui_extra(rng)])
        out += _shuffled(rng, rows)
        out.append({"type": "finish-step"})
    finish: dict[str, Any] = {"type": "finish"}
    if rng.random() < 0.7:
        finish["finishReason"] = rng.choice(REASONS) if rng.random() < 0.3 else "tool-calls" if calls else "stop"
    if rng.random() < 0.4:
        finish["messageMetadata"] = {"totalUsage": _usage(rng), "a": 2}
    out.append(finish)
    return [(None, one) for one in out]


def _error_body(rng: Random) -> Any:
    """Return an error body. Neither dialect has responses that are not streamed, so a body that is one document is an
    error response.
    """
    return rng.choice((
        {"error": {"message": "m", "code": 5, "type": "t"}}, {"error": "words"}, {"message": "m", "code": "c"},
        {"message": "m"}, {"detail": "d"}, {"type": "error", "errorText": "e"}, {"type": "error", "error": {"a": 1}},
    ))  # fmt: skip


_VALUES: tuple[Any, ...] = (
    "0", "1", "c0", "c1", "text", "text-delta", "text-start", "reasoning-delta", "reasoning-start", "tool-call",
    "tool-input-start", "tool-input-delta", "tool-input-available", "tool-result", "finish", "finish-step",
    "start-step", "start", "error", "abort", "raw", "data-x", "reset-step", "stop", "tool-calls", True, False, 0, 7,
    '{"a":1}', "{", {"a": 1}, {"openai": {"itemId": "i"}}, {"anthropic": {"signature": "s"}},
    {"p": {"redactedData": "d"}},
    {"p": 1, "q": {"itemId": ""}, "r": {"itemId": "j"}}, {"unified": "stop", "raw": "x"},
    {"unified": " ", "raw": "length"}, {"unified": None},
    "2025-07-01T10:00:00Z", "0001-01-01T00:00:00.123Z", "\u001c", "\u00a0", 10**20, -0.0, 1e2,
    [], {}, "https://example.org", "data:image/png;base64,AA\ud83d", {"url": "data:;base64,x"},
    {"usage": {"inputTokens": 3}},
    {"totalUsage": {"outputTokens": "4"}, "\ud83d": 1},
)  # fmt: skip
_MEMBERS = (
    "type", "id", "delta", "text", "providerMetadata", "toolCallId", "toolName", "input", "providerExecuted",
    "x_unknown", "finishReason", "usage", "totalUsage", "error", "message", "code", "url", "title", "mediaType", "data",
    "file", "isError", "invalid", "dynamic", "timestamp", "modelId", "warnings",
)  # fmt: skip
_RICH: tuple[Any, ...] = (
    {"type": "text-start", "id": "0"}, {"type": "text-delta", "id": "0", "delta": "again"},
    {"type": "text-end", "id": "0"},
    {"type": "reasoning-delta", "id": "0", "delta": "hm"}, {"type": "text-delta", "delta": "nobody's"},
    {"type": "text-delta", "id": "0", "delta": "\ud83d"}, {"type": "text-delta", "id": "0", "delta": "\ude00"},
    {"type": "abort"}, {"type": "abort", "reason": "r"}, {"type": "start-step"}, {"type": "ping"}, {"a": 1}, [], [1],
    "x", 1, None, {"type": 5}, {"type": []}, {"error": {"message": "m"}}, {"message": "m", "code": 1},
    {"type": "reasoning-start", "id": "r", "providerMetadata": {"anthropic": {"redactedData": "d"}}},
    {"type": "reasoning-end", "id": "r", "providerMetadata": {"anthropic": {"signature": "s"}}},
    {"type": "text-delta", "id": "0", "delta": "m", "providerMetadata": 5, "x": None, "y": [{"z": 1}]},
)  # fmt: skip
PARTS = Source(
    "ai-sdk-parts", parts, _error_body,
    (*_RICH, {"type": "raw", "rawValue": 1}, {"type": "tool-input-start", "id": "c0", "toolName": "f"},
     {"type": "tool-input-delta", "id": "c0", "delta": "{}"}, {"type": "tool-input-end", "id": "c0"},
     {"type": "tool-call", "toolCallId": "c0", "toolName": "f", "input": "{}"},
     {"type": "tool-call", "toolCallId": "c0", "toolName": "g", "input": {"a": "\ud83d"}},
     {"type": "tool-result", "toolCallId": "c0", "result": 1}, {"type": "error", "error": "words"},
     {"type": "error", "error": {"name": "E", "statusCode": 429, "message": "m"}},
     {"type": "finish-step", "finishReason": "stop", "usage": {"inputTokens": 1}},
     {"type": "response-metadata", "id": "r2"}, {"type": "stream-start", "warnings": [1]}),
    _MEMBERS, _VALUES, ("ping", "message"),
)  # fmt: skip
UI = Source(
    "ai-sdk-ui", chunks, _error_body,
    (*_RICH, {"type": "tool-input-start", "toolCallId": "c0", "toolName": "f"},
     {"type": "tool-input-delta", "toolCallId": "c0", "inputTextDelta": "{}"},
     {"type": "tool-input-available", "toolCallId": "c0", "toolName": "f", "input": {}},
     {"type": "tool-input-available", "toolCallId": "c0", "toolName": "g", "input": {"a": 1}},
     {"type": "tool-input-error", "toolCallId": "c0", "toolName": "f", "input": "{", "errorText": "e"},
     {"type": "tool-output-available", "toolCallId": "c0", "output": 1}, {"type": "reset-step"},
     {"type": "finish-step"}, {"type": "finish"}, {"type": "error", "errorText": "e"},
     {"type": "error", "errorText": {"message": "m", "code": "\ud83d"}}, {"type": "start", "messageId": "m2"},
     {"type": "message-metadata", "messageMetadata": {"a": None, "b": 5}}, {"type": "data-x", "id": "i", "data": 2}),
    (*_MEMBERS, "inputTextDelta", "errorText", "output", "messageId", "messageMetadata", "transient", "sourceId"),
    _VALUES, ("ping", "message"), marker=True,
)  # fmt: skip
