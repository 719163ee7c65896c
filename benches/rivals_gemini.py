"""Readers of Gemini streams with which streamweld is compared: two hand-written loops. See `rivals.py`."""

from __future__ import annotations

import httpx
import httpx_sse
import msgspec
import orjson

from benches.rivals import Body, Result


def httpx_sse_orjson(reads: list[bytes]) -> Result:
    """Read with the loop of the httpx-sse README and orjson."""
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Body(reads))
    text: list[str] = []
    calls: list[tuple[str, str, str]] = []
    for sent in httpx_sse.EventSource(response).iter_sse():
        for candidate in orjson.loads(sent.data).get("candidates") or ():
            for part in candidate["content"]["parts"]:
                call = part.get("functionCall")
                if call is not None:
                    calls.append((call["id"], call["name"], orjson.dumps(call["args"]).decode()))
                elif not part.get("thought"):
                    text.append(part["text"])
    return "".join(text), calls


class _Call(msgspec.Struct):
    name: str
    args: msgspec.Raw
    id: str = ""


class _Part(msgspec.Struct):
    text: str = ""
    thought: bool = False
    functionCall: _Call | None = None  # noqa: N815 (the wire's name)


class _Content(msgspec.Struct):
    parts: list[_Part]


class _Candidate(msgspec.Struct):
    content: _Content


class _Chunk(msgspec.Struct):
    candidates: list[_Candidate] = []


_decoder = msgspec.json.Decoder(_Chunk)


def split_msgspec(reads: list[bytes]) -> Result:
    """Split the bytes at blank lines and decode with typed msgspec, which is the fastest possible pure-Python loop."""
    decode = _decoder.decode
    text: list[str] = []
    calls: list[tuple[str, str, str]] = []
    rest = b""
    for read in reads:
        parts = (rest + read).split(b"\n\n")
        rest = parts.pop()
        for part in parts:
            for candidate in decode(part[6:]).candidates:
                for piece in candidate.content.parts:
                    call = piece.functionCall
                    if call is not None:
                        calls.append((call.id, call.name, bytes(call.args).decode()))
                    elif not piece.thought:
                        text.append(piece.text)
    return "".join(text), calls
