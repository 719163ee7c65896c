"""Readers of Messages streams with which streamweld is compared: two hand-written loops and anthropic-python's helper.
See `rivals.py`.
"""

from __future__ import annotations

import anthropic
import httpx
import httpx_sse
import msgspec
import orjson

from benches.rivals import Body, Result, finish, transport


def httpx_sse_orjson(reads: list[bytes]) -> Result:
    """Read with the loop of the httpx-sse README and orjson."""
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Body(reads))
    text: list[str] = []
    calls: dict[int, list[object]] = {}
    for sent in httpx_sse.EventSource(response).iter_sse():
        event = orjson.loads(sent.data)
        kind = event["type"]
        if kind == "content_block_delta":
            delta = event["delta"]
            if delta["type"] == "text_delta":
                text.append(delta["text"])
            elif delta["type"] == "input_json_delta" and event["index"] in calls:  # others are server tools
                calls[event["index"]][2].append(delta["partial_json"])  # type: ignore[attr-defined]
        elif kind == "content_block_start":
            block = event["content_block"]
            if block["type"] == "tool_use":
                calls[event["index"]] = [block["id"], block["name"], []]
        elif kind == "message_stop":
            break
    return finish(text, calls)


class _Delta(msgspec.Struct):
    type: str = ""
    text: str = ""
    partial_json: str = ""


class _Block(msgspec.Struct):
    type: str
    id: str = ""
    name: str = ""


class _Event(msgspec.Struct):
    type: str
    index: int = 0
    delta: _Delta | None = None
    content_block: _Block | None = None


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
            if kind == "content_block_delta":
                delta = event.delta
                if delta is None:
                    continue
                if delta.type == "text_delta":
                    text.append(delta.text)
                elif delta.type == "input_json_delta" and event.index in calls:  # others are server tools
                    calls[event.index][2].append(delta.partial_json)  # type: ignore[attr-defined]
            elif kind == "content_block_start":
                block = event.content_block
                if block is not None and block.type == "tool_use":
                    calls[event.index] = [block.id, block.name, []]
            elif kind == "message_stop":
                return finish(text, calls)
    return finish(text, calls)


def anthropic_stream_helper(reads: list[bytes]) -> Result:
    """Read with anthropic-python's own `messages.stream()` helper over a transport of its HTTP library, as for Chat."""
    client = anthropic.Anthropic(
        api_key="none",
        base_url="http://upstream.invalid",
        max_retries=0,
        http_client=anthropic.DefaultHttpxClient(transport=transport(reads)),
    )
    with client.messages.stream(max_tokens=4000, messages=[{"role": "user", "content": "x"}], model="m") as stream:
        for _event in stream:
            pass
        message = stream.get_final_message()
    text = "".join(block.text for block in message.content if block.type == "text")
    # The helper returns values, not texts; the texts in the shapes are formatted by orjson.
    calls = [
        (block.id, block.name, orjson.dumps(block.input).decode())
        for block in message.content
        if block.type == "tool_use"
    ]
    return text, calls
