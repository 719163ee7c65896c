"""google-genai: `models.generate_content_stream()`, with the loop that applications write around it."""

from __future__ import annotations

from typing import Any

from google import genai
from google.genai import types
from transport import CLIENT, failed, reader, serve

READER = reader("google-genai")
client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url="http://case", httpx_client=CLIENT))


def read(case: dict[str, Any], reads: list[bytes]) -> dict[str, Any] | None:
    if case.get("dialect") != "gemini":
        return None
    serve(reads)
    error, text, reasoning = None, "", ""
    calls: list[dict[str, Any]] = []
    try:
        for chunk in client.models.generate_content_stream(model="m", contents="hi"):
            for candidate in (chunk.candidates or ())[:1]:
                for part in (candidate.content.parts if candidate.content else None) or ():
                    if part.thought:
                        reasoning += part.text or ""
                    else:
                        text += part.text or ""
                    if part.function_call is not None:
                        call = part.function_call
                        calls.append({"id": call.id, "name": call.name, "arguments": call.args})
    except Exception as thrown:
        error = failed(thrown)
    # Gemini often sends no id, and the client pairs calls and results by position, so a missing id does not count as an
    # error.
    for number, call in enumerate(calls):
        call["id"] = call["id"] or f"position {number}"
    return {"error": error, "calls": [] if error else calls, "text": text, "reasoning": reasoning}
