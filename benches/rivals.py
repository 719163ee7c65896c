"""Readers of Chat streams with which streamweld is compared. Each takes reads (list[bytes]) and returns (text, calls).

The baselines are loops that a good engineer writes by hand; they support only conformant streams. The helper is the
official client's own, fed through its real transport interface. The floors do less work than any reader.
`rivals_responses.py` and `rivals_anthropic.py` contain the readers for those dialects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import httpx
import httpx2
import httpx_sse
import msgspec
import openai
import orjson

Result = tuple[str, list[tuple[str, str, str]]]
Reader = Callable[[list[bytes]], Result]


class Body(httpx.SyncByteStream):
    def __init__(self, reads: Iterable[bytes]) -> None:
        self._reads = reads

    def __iter__(self) -> Iterator[bytes]:
        yield from self._reads


def finish(text: list[str], calls: dict[int, list[object]]) -> Result:
    out = [(str(call[0]), str(call[1]), "".join(call[2])) for _, call in sorted(calls.items())]  # type: ignore[arg-type]
    return "".join(text), out


def httpx_sse_orjson(reads: list[bytes]) -> Result:
    """Read with the loop of the httpx-sse README and orjson, one dict of calls by index."""
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Body(reads))
    text: list[str] = []
    calls: dict[int, list[object]] = {}
    for event in httpx_sse.EventSource(response).iter_sse():
        if event.data == "[DONE]":
            break
        chunk = orjson.loads(event.data)
        for choice in chunk["choices"]:
            delta = choice["delta"]
            content = delta.get("content")
            if content:
                text.append(content)
            for entry in delta.get("tool_calls") or ():
                call = calls.get(entry["index"])
                if call is None:
                    calls[entry["index"]] = [entry["id"], entry["function"]["name"], [entry["function"]["arguments"]]]
                else:
                    call[2].append(entry["function"]["arguments"])  # type: ignore[attr-defined]
    return finish(text, calls)


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _Call(msgspec.Struct):
    index: int
    function: _Function
    id: str | None = None


class _Delta(msgspec.Struct):
    content: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta


class _Chunk(msgspec.Struct):
    choices: list[_Choice]


_decoder = msgspec.json.Decoder(_Chunk)


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
            payload = part[6:]
            if payload == b"[DONE]":
                break
            for choice in decode(payload).choices:
                delta = choice.delta
                if delta.content:
                    text.append(delta.content)
                if delta.tool_calls:
                    for entry in delta.tool_calls:
                        call = calls.get(entry.index)
                        if call is None:
                            calls[entry.index] = [entry.id, entry.function.name, [entry.function.arguments]]
                        else:
                            call[2].append(entry.function.arguments)  # type: ignore[attr-defined]
    return finish(text, calls)


class _Body2(httpx2.SyncByteStream):
    def __init__(self, reads: Iterable[bytes]) -> None:
        self._reads = reads

    def __iter__(self) -> Iterator[bytes]:
        yield from self._reads


def transport(reads: list[bytes]) -> httpx2.MockTransport:
    """Return a transport of the official clients' HTTP library that responds to every request with these reads."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        del request
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=_Body2(reads))

    return httpx2.MockTransport(answer)


def openai_client(reads: list[bytes]) -> openai.OpenAI:
    return openai.OpenAI(
        api_key="none",
        base_url="http://upstream.invalid/v1",
        max_retries=0,
        http_client=openai.DefaultHttpxClient(transport=transport(reads)),
    )


def openai_stream_helper(reads: list[bytes]) -> Result:
    """Read with openai-python's own `.stream()` helper over a transport of its HTTP library that returns the reads."""
    with openai_client(reads).chat.completions.stream(model="m", messages=[{"role": "user", "content": "x"}]) as stream:
        for _event in stream:
            pass
        message = stream.get_final_completion().choices[0].message
    calls = [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()]
    return message.content or "", calls


def floor_orjson(reads: list[bytes]) -> int:
    """Parse every payload with orjson.loads and discard the values, because no JSON reader in Python is faster than its
    parser.
    """
    count = 0
    for part in b"".join(reads).split(b"\n\n"):
        payload = part[part.find(b"data: ") + 6 :]
        if payload and payload != b"[DONE]":
            orjson.loads(payload)
            count += 1
    return count


def floor_newlines(reads: list[bytes]) -> int:
    """Scan for line endings with memchr, because no framer is faster than the search for line endings."""
    return sum(read.count(b"\n") for read in reads)
