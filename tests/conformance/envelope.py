"""Adds the envelope that every gateway sends around the members that a case tests, for readers with strict models.

A vector often omits ids, timestamps and roles, because streamweld does not need them. A reader that requires them would
fail the case for a reason that the case does not test. Cases about the envelope itself stay unchanged, and so does any
case whose bytes are not plain compact JSON in `data:` lines.
"""

from __future__ import annotations

import json
import re
from typing import Any

_LINE = re.compile(r"^data: (\{.*\})$", re.MULTILINE)
# Files that test the envelope, the framing or the end.
_ABOUT_IT = {
    "chat": {"envelope", "chunks", "framing", "error_shapes", "events", "reasons"},
    "anthropic": {"message", "late_start", "hostile", "error_shapes", "start_reason", "auto"},
    "responses": {"cuts", "sequence", "errors", "bodies", "auto", "error_shapes", "events", "policies"},
}
_CHAT = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
_MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
    "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip
_RESPONSE = {
    "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "in_progress", "output": [],
    "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
}  # fmt: skip
_ENDS = {"response.completed": "completed", "response.incomplete": "incomplete", "response.failed": "failed"}


def fill(dialect: str, file: str, reads: list[Any]) -> list[Any]:
    """Return the reads with a complete envelope, or the same list."""
    about = _ABOUT_IT.get(dialect)
    if about is None or file in about or not all(isinstance(read, str) for read in reads):
        return reads
    texts = [match[1] for read in reads for match in _LINE.finditer(read)]
    try:
        payloads = [json.loads(text) for text in texts]
    except ValueError:
        return reads
    spelled = [_compact(payload) for payload in payloads]
    if spelled != texts or not payloads or sum(read.count("data:") for read in reads) > len(texts) + 1:
        return reads
    lead = _FILLERS[dialect](payloads)
    following = iter(payloads)
    made = [_LINE.sub(lambda _: f"data: {_compact(next(following))}", read) for read in reads]
    return [*([f"data: {_compact(lead)}\n\n"] if lead else []), *made]


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _chat(payloads: list[Any]) -> None:
    chunks = [payload for payload in payloads if isinstance(payload.get("choices"), list)]
    if any(payload.keys() & _CHAT.keys() for payload in payloads):
        return
    choices = [choice for chunk in chunks for choice in chunk["choices"] if isinstance(choice, dict)]
    deltas = [choice["delta"] for choice in choices if isinstance(choice.get("delta"), dict)]
    calls = [
        call
        for delta in deltas
        if isinstance(delta.get("tool_calls"), list)
        for call in delta["tool_calls"]
        if isinstance(call, dict)
    ]
    for chunk in chunks:
        _put_first(chunk, _CHAT)
    for choice in choices:
        choice.setdefault("finish_reason", None)
    if not any("role" in delta for delta in deltas):
        seen = set[Any]()
        for choice in choices:
            if "delta" in choice and str(choice.get("index")) not in seen and isinstance(choice["delta"], dict):
                seen.add(str(choice.get("index")))
                _put_first(choice["delta"], {"role": "assistant"})
    if not any("type" in call for call in calls):
        for call in calls:
            if isinstance(call.get("id"), str):
                call["type"] = "function"


def _anthropic(payloads: list[Any]) -> None:
    first = payloads[0]
    if first.get("type") == "message_start" and isinstance(first.get("message"), dict):
        _put_first(first["message"], {key: value for key, value in _MESSAGE.items() if key not in first["message"]})


def _responses(payloads: list[Any]) -> dict[str, Any] | None:
    if not all(str(payload.get("type")).startswith("response.") for payload in payloads):
        return None
    for payload in payloads:
        response = payload.get("response")
        if isinstance(response, dict):
            missing = {key: value for key, value in _RESPONSE.items() if key not in response and key != "output"}
            if "status" in missing:
                missing["status"] = _ENDS.get(payload["type"], "in_progress")
            if payload["type"] not in _ENDS:
                missing |= {} if "output" in response else {"output": []}
            _put_first(response, missing)
    lead = None
    if payloads[0]["type"] != "response.created":
        lead = {"type": "response.created", "response": dict(_RESPONSE)}
    if not any("sequence_number" in payload for payload in payloads):
        for number, payload in enumerate([lead, *payloads] if lead else payloads):
            payload["sequence_number"] = number
    elif lead:
        return None
    return lead


def _put_first(target: dict[str, Any], members: dict[str, Any]) -> None:
    old = dict(target)
    target.clear()
    target.update({**members, **old})


_FILLERS = {"chat": _chat, "anthropic": _anthropic, "responses": _responses}
