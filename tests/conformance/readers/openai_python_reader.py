"""openai-python: `chat.completions.stream()` and `responses.stream()`, which assemble a response."""

from __future__ import annotations

from typing import Any

import openai
from transport import ASKED, SDK_CLIENT, failed, reader, serve

READER = reader("openai", "openai-python")
client = openai.OpenAI(api_key="none", base_url="http://case", max_retries=0, http_client=SDK_CLIENT)


def read(case: dict[str, Any], reads: list[bytes]) -> dict[str, Any] | None:
    serve(reads)
    if case.get("dialect") == "chat":
        return chat()
    return responses() if case.get("dialect") == "responses" else None


def chat() -> dict[str, Any]:
    error, held = None, None
    try:
        with client.chat.completions.stream(model="m", messages=ASKED) as stream:
            for _ in stream:
                held = stream.current_completion_snapshot
            held = stream.get_final_completion()
    except (openai.LengthFinishReasonError, openai.ContentFilterFinishReasonError):
        pass  # the helper raises for these two finish reasons
    except Exception as thrown:
        error = failed(thrown)
    if held is None or not held.choices:
        return {"error": error, "calls": [], "text": ""}
    message = held.choices[0].message
    return {
        "error": error,
        "calls": [
            {"id": call.id, "name": call.function.name, "arguments": call.function.arguments}
            for call in message.tool_calls or ()
            if error is None
        ],
        "text": message.content or "",
        "refusal": message.refusal or "",
    }


def responses() -> dict[str, Any]:
    error, last = None, None
    try:
        with client.responses.stream(model="m", input="hi") as stream:
            for event in stream:
                last = getattr(event, "response", last)
                if event.type == "error":
                    error = event.message
            if error is None and (last is None or last.status not in ("incomplete", "failed")):
                last = stream.get_final_response()
    except Exception as thrown:
        error = failed(thrown)
    if error is None and last is not None and last.status == "failed":
        error = str(last.error)
    output = list(last.output) if last is not None else []
    return {
        "error": error,
        "calls": [
            {
                "id": item.call_id,
                "name": item.name,
                "arguments": item.arguments if item.type == "function_call" else item.input,
            }
            for item in output
            if item.type in ("function_call", "custom_tool_call")
            if error is None
        ],
        "text": "".join(
            part.text
            for item in output
            if item.type == "message"
            for part in item.content
            if part.type == "output_text"
        ),
    }
