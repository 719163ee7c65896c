"""The result that the vendors' own Python clients return for a stream: openai, anthropic, google-genai.

A record has `error` (class and text, or None), `text`, `reasoning`, `refusal`, `calls` (`id`, `name`, `arguments` or
`input`), `finish` and `usage` in the client's own terms; values that a client does not expose are left out. This module
does not compare anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECONDS = 20.0
ASKED: Any = [{"role": "user", "content": "hi"}]


def failed(error: Exception) -> dict[str, str]:
    return {"name": type(error).__name__, "message": str(error)}


class Clients:
    """One client per vendor, all of them connected to the loopback server; `close` closes their connections."""

    def __init__(self, origin: str) -> None:
        self._openai = openai.OpenAI(api_key="none", base_url=origin, max_retries=0, timeout=SECONDS)
        self._anthropic = anthropic.Anthropic(api_key="none", base_url=origin, max_retries=0, timeout=SECONDS)
        self._genai = genai.Client(
            api_key="none", http_options=types.HttpOptions(base_url=origin, timeout=int(SECONDS * 1000))
        )
        self._origin = origin

    def close(self) -> None:
        self._openai.close()
        self._anthropic.close()
        self._genai.close()

    def read(self, name: str, key: str) -> dict[str, Any]:
        """Return the record of the named client for a body of the server."""
        reader: Callable[[Clients, str], dict[str, Any]] = CLIENTS[name]
        return reader(self, key)

    # Chat Completions

    def chat_helper(self, key: str) -> dict[str, Any]:
        client = self._openai.with_options(base_url=f"{self._origin}/{key}")
        held: Any = None
        error = None
        try:
            with client.chat.completions.stream(model="m", messages=ASKED) as stream:
                for _ in stream:
                    held = stream.current_completion_snapshot
                held = stream.get_final_completion()
        except (openai.LengthFinishReasonError, openai.ContentFilterFinishReasonError):
            pass  # the helper raises for these two finish reasons; the stream itself is valid
        except Exception as thrown:  # noqa: BLE001
            error = failed(thrown)
        if held is None or not held.choices:
            return {"error": error, "text": "", "calls": [], "finish": None, "usage": held and held.usage}
        choice = held.choices[0]
        message = choice.message
        return {
            "error": error,
            "text": message.content or "",
            "refusal": message.refusal or "",
            "reasoning": (message.model_extra or {}).get("reasoning_content") or "",
            "annotations": [entry.to_dict() for entry in message.annotations or ()],
            "calls": [
                {"id": call.id, "name": call.function.name, "arguments": call.function.arguments}
                for call in message.tool_calls or ()
                if call.function is not None  # None for a custom call, for which this helper has no type
            ],
            "finish": choice.finish_reason,
            "usage": held.usage and held.usage.to_dict(),
        }

    def chat_loop(self, key: str) -> dict[str, Any]:
        """Read the stream with the loop that applications write: calls by index, texts joined."""
        client = self._openai.with_options(base_url=f"{self._origin}/{key}")
        out: dict[str, Any] = {"error": None, "text": "", "refusal": "", "reasoning": "", "finish": None, "usage": None}
        calls: dict[int, dict[str, Any]] = {}
        try:
            for chunk in client.chat.completions.create(model="m", messages=ASKED, stream=True):
                if chunk.usage is not None:
                    out["usage"] = chunk.usage.to_dict()
                for choice in chunk.choices:
                    if choice.index:
                        continue
                    delta = choice.delta
                    out["text"] += delta.content or ""
                    out["refusal"] += delta.refusal or ""
                    out["reasoning"] += (delta.model_extra or {}).get("reasoning_content") or ""
                    for piece in delta.tool_calls or ():
                        function: Any = piece.function
                        call = calls.setdefault(piece.index, {"id": piece.id, "name": function.name, "arguments": ""})
                        call["arguments"] += function.arguments
                    out["finish"] = choice.finish_reason or out["finish"]
        except Exception as thrown:  # noqa: BLE001
            out["error"] = failed(thrown)
        return {**out, "calls": [calls[index] for index in sorted(calls)]}

    # Responses

    def responses_helper(self, key: str) -> dict[str, Any]:
        client = self._openai.with_options(base_url=f"{self._origin}/{key}")
        error = None
        last: Any = None
        try:
            with client.responses.stream(model="m", input="hi") as stream:
                for event in stream:
                    last = getattr(event, "response", last)
                if event.type == "response.completed":
                    last = stream.get_final_response()
        except Exception as thrown:  # noqa: BLE001
            error = failed(thrown)
        return {"error": error, **_response(last)}

    def responses_loop(self, key: str) -> dict[str, Any]:
        """Iterate over the events and take the values of the `done` events."""
        client = self._openai.with_options(base_url=f"{self._origin}/{key}")
        error = None
        last: Any = None
        items: list[Any] = []
        try:
            for event in client.responses.create(model="m", input="hi", stream=True):
                last = getattr(event, "response", last)
                if event.type == "response.output_item.done":
                    items.append((event.output_index, event.item))
                elif event.type == "error":
                    error = {"name": "error", "message": event.message}
        except Exception as thrown:  # noqa: BLE001
            error = failed(thrown)
        return {"error": error, **_response(last, [item for _, item in sorted(items, key=lambda row: row[0])])}

    # Anthropic

    def messages_helper(self, key: str) -> dict[str, Any]:
        client = self._anthropic.with_options(base_url=f"{self._origin}/{key}")
        held: Any = None
        error = None
        sent: dict[int, str] = {}
        try:
            with client.messages.stream(model="m", max_tokens=10, messages=ASKED) as stream:
                for event in stream:
                    held = stream.current_message_snapshot
                    if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                        sent[event.index] = sent.get(event.index, "") + event.delta.partial_json
                held = stream.get_final_message()
        except Exception as thrown:  # noqa: BLE001
            error = failed(thrown)
        blocks: list[Any] = list(held.content) if held is not None else []
        return {
            "error": error,
            "text": "".join(block.text for block in blocks if block.type == "text"),
            "reasoning": "".join(block.thinking for block in blocks if block.type == "thinking"),
            "calls": [
                {"id": block.id, "name": block.name, "input": block.input, "arguments": sent.get(index, "{}")}
                for index, block in enumerate(blocks)
                if block.type == "tool_use"
            ],
            "finish": held and held.stop_reason,
            "usage": held and held.usage and held.usage.to_dict(),
        }

    # Gemini

    def generate_content(self, key: str) -> dict[str, Any]:
        out: dict[str, Any] = {"error": None, "text": "", "reasoning": "", "finish": None, "usage": None}
        calls: list[dict[str, Any]] = []
        try:
            for chunk in self._genai.models.generate_content_stream(model=key, contents="hi"):
                if chunk.usage_metadata is not None:
                    out["usage"] = chunk.usage_metadata.model_dump(exclude_none=True)
                for candidate in chunk.candidates or ():
                    if candidate.index:
                        continue
                    for part in (candidate.content.parts if candidate.content else None) or ():
                        out["reasoning" if part.thought else "text"] += part.text or ""
                        if part.function_call is not None:
                            made = part.function_call
                            calls.append({"id": made.id, "name": made.name, "input": made.args})
                    if candidate.finish_reason is not None:
                        out["finish"] = candidate.finish_reason.value
        except Exception as thrown:  # noqa: BLE001
            out["error"] = failed(thrown)
        return {**out, "calls": calls}


def _response(response: Any, items: list[Any] | None = None) -> dict[str, Any]:
    """Build the record of a Response, from `items` if they are given, otherwise from the response's own output."""
    held = items if items is not None else list(response.output) if response is not None else []
    parts: list[Any] = [part for item in held if item.type == "message" for part in item.content]
    thought = [
        part for item in held if item.type == "reasoning" for part in (*(item.summary or ()), *(item.content or ()))
    ]
    details = response and response.incomplete_details
    return {
        "text": "".join(part.text for part in parts if part.type == "output_text"),
        "refusal": "".join(part.refusal for part in parts if part.type == "refusal"),
        "reasoning": "".join(part.text for part in thought),
        "calls": [
            {
                "id": item.call_id,
                "name": item.name,
                "arguments": item.input if item.type == "custom_tool_call" else item.arguments,
                "custom": item.type == "custom_tool_call",
                "status": getattr(item, "status", None),
            }
            for item in held
            if item.type in ("function_call", "custom_tool_call")
        ],
        "finish": (details.reason if details else response.status) if response is not None else None,
        "usage": response.usage.to_dict() if response is not None and response.usage else None,
    }


CLIENTS = {
    "openai chat.completions.stream": Clients.chat_helper,
    "openai chat.completions.create": Clients.chat_loop,
    "openai responses.stream": Clients.responses_helper,
    "openai responses.create": Clients.responses_loop,
    "anthropic messages.stream": Clients.messages_helper,
    "google-genai generate_content_stream": Clients.generate_content,
}


@pytest.fixture(scope="session")
def python_clients(loopback: Any) -> Iterator[Clients]:
    """The clients of this session (one set per worker)."""
    clients = Clients(loopback.origin)
    yield clients
    clients.close()
