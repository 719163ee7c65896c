"""Readers of Responses streams with which streamweld is compared: two hand-written loops and openai-python's helper.
See `rivals.py`.

The hand-written loops index calls by `output_index` and rely on the deltas, as published examples do.
"""

from __future__ import annotations

import httpx
import httpx_sse
import msgspec
import orjson

from benches.rivals import Body, Result, finish, openai_client


def httpx_sse_orjson(reads: list[bytes]) -> Result:
    """Read with the loop of the httpx-sse README and orjson."""
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Body(reads))
    text: list[str] = []
    calls: dict[int, list[object]] = {}
    for sent in httpx_sse.EventSource(response).iter_sse():
        event = orjson.loads(sent.data)
        kind = event["type"]
        if kind == "response.output_text.delta":
            text.append(event["delta"])
        elif kind == "response.function_call_arguments.delta":
            calls[event["output_index"]][2].append(event["delta"])  # type: ignore[attr-defined]
        elif kind == "response.output_item.added":
            item = event["item"]
            if item["type"] == "function_call":
                calls[event["output_index"]] = [item["call_id"], item["name"], []]
        elif kind == "response.completed":
            break
    return finish(text, calls)


class _Item(msgspec.Struct):
    type: str
    call_id: str = ""
    name: str = ""


class _Event(msgspec.Struct):
    type: str
    delta: str = ""
    output_index: int = 0
    item: _Item | None = None


_decoder = msgspec.json.Decoder(_Event)


def split_msgspec(reads: list[bytes]) -> Result:
    """Split the bytes at blank lines and decode with typed msgspec, which is the fastest possible pure-Python loop."""
    decode = _decoder.decode
    text: list[str] = []
    calls: dict[int, list[object]] = {}
    rest = b""
    for read in reads:
        parts = (rest + read).split(b"\n\n")
        rest = parts.pop()
        for part in parts:
            event = decode(part[part.index(b"\n") + 7 :])
            kind = event.type
            if kind == "response.output_text.delta":
                text.append(event.delta)
            elif kind == "response.function_call_arguments.delta":
                calls[event.output_index][2].append(event.delta)  # type: ignore[attr-defined]
            elif kind == "response.output_item.added":
                item = event.item
                if item is not None and item.type == "function_call":
                    calls[event.output_index] = [item.call_id, item.name, []]
            elif kind == "response.completed":
                return finish(text, calls)
    return finish(text, calls)


def openai_stream_helper(reads: list[bytes]) -> Result:
    """Read with openai-python's own `responses.stream()` helper over a transport of its HTTP library that returns the
    reads."""
    with openai_client(reads).responses.stream(model="m", input="x") as stream:
        for _event in stream:
            pass
        response = stream.get_final_response()
    calls = [(item.call_id, item.name, item.arguments) for item in response.output if item.type == "function_call"]
    return response.output_text, calls
