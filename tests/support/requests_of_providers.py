"""Extracts calls, results and texts from requests to five APIs. This module does not import streamweld."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Asked(NamedTuple):
    """A call; in Gemini requests ids are optional."""

    call_id: str | None
    name: str
    arguments: Any


class Said(NamedTuple):
    """The calls and the results of a request, in order. A result consists of its call's id and all of its texts."""

    calls: list[Asked]
    results: list[tuple[str | None, str]]


def texts(value: Any) -> Iterator[str]:
    """Yield every string of a JSON value, including member names; strings that contain JSON are also parsed and
    searched."""
    if isinstance(value, str):
        yield value
        if value[:1] in ("{", "["):
            try:
                yield from texts(json.loads(value))
            except ValueError:
                return
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from texts(inner)


def said(provider: str, body: Any) -> Said:
    """Return the calls and results of a request body of that provider."""
    return _READERS[provider](body)


def _all(value: Any) -> str:
    return "\n".join(texts(value))


def _chat(body: Any) -> Said:
    out = Said([], [])
    for message in body["messages"]:
        for call in message.get("tool_calls") or ():
            function = call["function"]
            out.calls.append(Asked(call["id"], function["name"], json.loads(function["arguments"])))
        if message["role"] == "tool":
            out.results.append((message["tool_call_id"], _all(message["content"])))
    return out


def _responses(body: Any) -> Said:
    out = Said([], [])
    for item in body["input"]:
        if item.get("type") == "function_call":
            out.calls.append(Asked(item["call_id"], item["name"], json.loads(item["arguments"])))
        elif item.get("type") == "function_call_output":
            out.results.append((item["call_id"], _all(item["output"])))
    return out


def _anthropic(body: Any) -> Said:
    out = Said([], [])
    for message in body["messages"]:
        for block in message["content"]:
            if block["type"] == "tool_use":
                out.calls.append(Asked(block["id"], block["name"], block["input"]))
            elif block["type"] == "tool_result":
                out.results.append((block["tool_use_id"], _all(block["content"])))
    return out


def _google(body: Any) -> Said:
    out = Said([], [])
    for content in body["contents"]:
        for part in content["parts"]:
            if "functionCall" in part:
                call = part["functionCall"]
                out.calls.append(Asked(call.get("id"), call["name"], call["args"]))
            elif "functionResponse" in part:
                reported = part["functionResponse"]
                out.results.append((reported.get("id"), _all(reported["response"])))
    return out


_READERS = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "open-responses": _responses,
    "anthropic": _anthropic,
    "google": _google,
}
