"""Random Gemini streams as the API sends them, used as input for mutation. This module does not import streamweld."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from streamweld.testing.pieces import NAMES, fragments_of, random_arguments, random_id, random_text, random_value

from tests.support.generate.frames import Frame, Source

if TYPE_CHECKING:
    from random import Random

REASONS = ("STOP", "STOP", "STOP", "MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL", "OTHER", "NEW_REASON")


def frames(rng: Random) -> list[Frame]:
    """Return one response: a chunk per part, with the finish reason in the last chunk or after it."""
    envelope: dict[str, Any] = {"modelVersion": "gemini-x", "responseId": random_id(rng)}
    if rng.random() < 0.2:
        envelope["createTime"] = "2025-05-06T07:08:09.123456Z"
    count = 1 if rng.random() < 0.85 else 2
    out: list[dict[str, Any]] = []
    for index in range(count):
        out += _candidate(rng, index)
    if count > 1:
        rng.shuffle(out)
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 9, "thoughtsTokenCount": 2}
    chunks: list[dict[str, Any]] = [{"candidates": [candidate], **envelope} for candidate in out]
    for number, chunk in enumerate(chunks):
        if number + 1 == len(chunks) or rng.random() < 0.3:
            chunk["usageMetadata"] = usage | {"candidatesTokenCount": number}
    if rng.random() < 0.04:
        chunks = [{"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": []}, **envelope}]
    if rng.random() < 0.05:
        chunks = [{"response": chunk, "traceId": "t"} for chunk in chunks]
    return [(None, chunk) for chunk in chunks]


def whole(rng: Random) -> Any:
    """Return the response as one document."""
    parts = [part for _ in range(rng.randint(0, 3)) for part in _parts(rng)]
    candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": rng.choice(REASONS), "index": 0}
    return {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 1}, "modelVersion": "m"}


def _candidate(rng: Random, index: int) -> list[dict[str, Any]]:
    """Return the elements of `candidates` for one candidate, each for its own chunk."""
    out: list[dict[str, Any]] = []
    parts = [part for _ in range(rng.choice((1, 1, 2, 3))) for part in _parts(rng)]
    while parts:
        size = rng.choice((1, 1, 1, 2))
        out.append({"content": {"parts": parts[:size], "role": "model"}})
        parts = parts[size:]
    if rng.random() < 0.3 or not out:
        out.append({"content": {"role": "model"}} if rng.random() < 0.5 else {})
    if rng.random() < 0.1:
        for entry in out:
            entry["finishReason"] = "STOP"
    out[-1]["finishReason"] = rng.choice(REASONS)
    for entry in out:
        if index or rng.random() < 0.7:
            entry["index"] = index
        if rng.random() < 0.1:
            entry["safetyRatings"] = [{"category": "x"}]
        if rng.random() < 0.05:
            entry["logprobsResult"] = {"topCandidates": []}
        if rng.random() < 0.08:
            web: dict[str, Any] = {"web": {"uri": "u", "title": "t"}}
            chunks: list[Any] = [
                web,
                rng.choice((web, {"retrievedContext": {"uri": "v", "text": "x"}}, {"maps": {}}, {"z": 1})),
            ]
            entry["groundingMetadata"] = {"groundingChunks": chunks, "webSearchQueries": ["q"]}
    return out


def _parts(rng: Random) -> list[dict[str, Any]]:
    """Return parts that belong together."""
    roll = rng.random()
    if roll < 0.35:
        parts: list[dict[str, Any]] = [{"text": piece} for piece in fragments_of(rng, random_text(rng))]
        if rng.random() < 0.25:
            parts.append({"text": "", "thoughtSignature": random_id(rng)})
        return parts
    if roll < 0.5:
        parts = [{"text": piece, "thought": True} for piece in fragments_of(rng, random_text(rng))]
        if parts and rng.random() < 0.3:
            parts[-1]["thoughtSignature"] = random_id(rng)
        return parts
    if roll < 0.7:
        call: dict[str, Any] = {"name": rng.choice(NAMES), "args": json.loads(random_arguments(rng))}
        if rng.random() < 0.4:
            call["id"] = random_id(rng)
        if rng.random() < 0.1:
            del call["args"]
        return [{"functionCall": call} | ({"thoughtSignature": random_id(rng)} if rng.random() < 0.3 else {})]
    if roll < 0.88:
        return _streamed(rng)
    return _tools(rng)


def _streamed(rng: Random) -> list[dict[str, Any]]:
    """Return a call whose arguments are streamed."""
    head: dict[str, Any] = {"name": rng.choice(NAMES), "willContinue": True}
    if rng.random() < 0.5:
        head["id"] = random_id(rng)
    pieces: list[list[dict[str, Any]]] = []
    arguments = {rng.choice("abc\u00e9"): random_value(rng, 1) for _ in range(rng.randint(0, 3))}
    for path, leaf in _leaves("$", arguments):
        if isinstance(leaf, str):
            texts = fragments_of(rng, leaf, 3) or [""]
            for number, text in enumerate(texts):
                piece: dict[str, Any] = {"jsonPath": path, "stringValue": text}
                if number + 1 < len(texts) or rng.random() < 0.2:
                    piece["willContinue"] = True
                pieces.append([piece])
        elif isinstance(leaf, bool):
            pieces.append([{"jsonPath": path, "boolValue": leaf}])
        elif leaf is None:
            pieces.append([{"jsonPath": path, "nullValue": "NULL_VALUE"}])
        else:
            pieces.append([{"jsonPath": path, "numberValue": leaf}])
    if len(pieces) > 1 and rng.random() < 0.3:
        pieces = [pieces[0] + pieces[1], *pieces[2:]]
    calls: list[dict[str, Any]] = [head, *({"partialArgs": piece, "willContinue": True} for piece in pieces)]
    if rng.random() < 0.3 and pieces:
        calls = [head | calls[1], *calls[2:]]
    if rng.random() < 0.8:
        calls.append({})
    return [{"functionCall": call} for call in calls]


def _leaves(path: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in _leaves(f"{path}{_step(key)}", inner)]
    if isinstance(value, list):
        return [leaf for number, inner in enumerate(value) for leaf in _leaves(f"{path}[{number}]", inner)]
    return [(path, value)]


def _step(key: str) -> str:
    if key.isalnum():
        return f".{key}"
    quoted = key.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{quoted}']"


def _tools(rng: Random) -> list[dict[str, Any]]:
    roll = rng.randrange(6)
    if roll == 0:
        outcome = rng.choice(("OUTCOME_OK", "OUTCOME_FAILED"))
        return [
            {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
            {"codeExecutionResult": {"outcome": outcome, "output": "1"}},
        ]
    if roll == 1:
        identity = random_id(rng)
        return [
            {"toolCall": {"id": identity, "toolType": "GOOGLE_SEARCH", "args": {"q": "x"}}},
            {"toolResponse": {"id": identity, "toolType": "GOOGLE_SEARCH", "response": {"r": 1}}},
        ]
    if roll == 2:
        return [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]
    if roll == 3:
        return [{"fileData": {"mimeType": "image/png", "fileUri": "gs://x"}}]
    if roll == 4:
        return [{"functionResponse": {"name": "f", "response": {"a": 1}}}]
    return [{"newKind": {"a": 1}}]


SOURCE = Source(
    dialect="gemini",
    frames=frames,
    whole=whole,
    rich=(
        {"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED"}},
        {"error": {}, "candidates": []},
        {"code": 5, "message": "no", "status": "X"},
        {"detail": "gone"},
        {"usageMetadata": {"promptTokenCount": 2**63 - 1, "toolUsePromptTokenCount": 5}},
        {"candidates": [{"content": {"parts": [{"functionCall": {"willContinue": True}}]}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "partialArgs": []}}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "t", "functionCall": {"name": "f", "args": {}}}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "more", "x": 1, "thought": True}]}}]},
        {"candidates": [{"content": {"parts": [{"codeExecutionResult": {"output": "1"}, "x": 1}]}}]},
        {"candidates": [{"finishReason": "STOP"}]},
        {"candidates": []},
        {"promptFeedback": {"blockReason": "OTHER"}, "modelVersion": "m", "x": 1},
        {"response": {"usageMetadata": {"totalTokenCount": 1}}, "error": "no"},
        [{"candidates": [{"content": {"parts": [{"text": "in"}]}}]}, {"error": {"message": "m"}}],
        [1],
        [],
        "\ud83d",
    ),
    members=(
        *("candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId", "error", "index", "content"),
        *("finishReason", "parts", "text", "thought", "thoughtSignature", "functionCall", "functionResponse", "id"),
        *(
            "inlineData",
            "fileData",
            "executableCode",
            "codeExecutionResult",
            "toolCall",
            "toolResponse",
            "name",
            "args",
        ),
        *("partialArgs", "willContinue", "jsonPath", "stringValue", "numberValue", "boolValue", "nullValue", "status"),
        *("groundingMetadata", "groundingChunks", "response", "createTime", "x_unknown", "mimeType", "data", "code"),
    ),
    values=(
        *("STOP", "MAX_TOKENS", "FINISH_REASON_UNSPECIFIED", "$.a", "$.a.b", "$.a[0]", "$['a']", "$", "$.a\ud83d"),
        *("2025-05-06T07:08:09Z", 0, 1, 2, True, "f", "a", {"a": {}}, '{"a":1}', "{}"),
        *({"text": "t"}, {"jsonPath": "$.a", "stringValue": "x\ud83d", "willContinue": True}),
        *({"jsonPath": "$.a", "numberValue": 1e22}, {"functionCall": {"name": "f", "args": {"a": 1}}}),
        *({"jsonPath": "$.a", "stringValue": "\ude00y"}, {"web": {"uri": "w"}}),
    ),
    array=True,
)
