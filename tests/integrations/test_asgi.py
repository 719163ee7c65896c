"""`RepairMiddleware` under uvicorn: Starlette, FastAPI, sse-starlette, gzip on either side, clients that disconnect."""

from __future__ import annotations

import asyncio
import gzip
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anthropic
import fastapi
import httpx2
import openai
import pytest
import streamweld as sw
from sse_starlette.sse import EventSourceResponse
from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route
from streamweld.errors import UsageError
from streamweld.integrations import asgi
from streamweld.integrations.asgi import RepairMiddleware
from streamweld.testing.recording import parse_recording

from tests.support.servers.upstream import running, until
from tests.support.servers.wire import DONE, chunk, end, event, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

GOOD = [text("Hel"), text("lo"), end("stop")]
# The id is in every chunk, and the name is blank after the first chunk. An official client concatenates them
# (`call_1call_1`).
HEAD: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def piece(call_id: str | None, name: str, arguments: str) -> bytes:
    reported: dict[str, Any] = {"index": 0, "id": call_id, "type": "function"}
    return chunk({"tool_calls": [{**reported, "function": {"name": name, "arguments": arguments}}]}, **HEAD)


TOLD_AGAIN = [
    chunk({"role": "assistant", "content": None}, **HEAD),
    piece("call_1", "f", ""),
    piece("call_1", "", '{"a":'),
    piece("call_1", "", "1}"),
    chunk({}, "tool_calls", **HEAD) + DONE,
]
CUT = TOLD_AGAIN[:3]


def streaming(*pieces: bytes, kind: str = "text/event-stream", status: int = 200, **headers: str) -> Any:
    """Return an endpoint that streams these pieces."""

    async def body() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece
            await asyncio.sleep(0)

    async def endpoint(_: Any = None) -> StreamingResponse:
        reported = {name.replace("_", "-"): value for name, value in headers.items()}
        return StreamingResponse(body(), status, reported, kind)

    return endpoint


def starlette(endpoint: Any, **options: Any) -> Starlette:
    app = Starlette(routes=[Route("/v1/chat/completions", endpoint, methods=["GET", "POST"])])
    app.add_middleware(RepairMiddleware, **options)  # type: ignore[arg-type]
    return app


def got(app: Any, method: str = "GET", **options: Any) -> httpx2.Response:
    with running(app) as url:
        return httpx2.request(method, f"{url}/v1/chat/completions", **options)


def calls_of(app: Any) -> list[tuple[Any, Any, Any]]:
    """Return the calls that openai's own helper reads from the stream."""
    with (
        running(app) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client,
        client.chat.completions.stream(model="m", messages=[]) as stream,
    ):
        shown = stream.get_final_completion().choices[0].message
    return [(one.id, one.function.name, one.function.arguments) for one in shown.tool_calls or ()]  # type: ignore[union-attr]


def fast() -> Any:
    app = fastapi.FastAPI()
    app.post("/v1/chat/completions")(streaming(*TOLD_AGAIN))
    app.add_middleware(RepairMiddleware)  # type: ignore[arg-type]
    return app


def with_events() -> Any:
    """Return an sse-starlette application, which takes the data of events and makes its own frames."""

    async def endpoint(_: Any) -> EventSourceResponse:
        async def data() -> AsyncIterator[dict[str, str]]:
            for frame in sw.sse.iter_frames(TOLD_AGAIN):
                yield {"data": frame.data}

        return EventSourceResponse(data())

    return starlette(endpoint)


def gzip_outside() -> Any:
    app = starlette(streaming(*TOLD_AGAIN))
    app.add_middleware(GZipMiddleware, minimum_size=1)
    return app


def gzip_inside() -> Any:
    app = Starlette(routes=[Route("/v1/chat/completions", streaming(*TOLD_AGAIN), methods=["POST"])])
    app.add_middleware(GZipMiddleware, minimum_size=1)
    app.add_middleware(RepairMiddleware)  # type: ignore[arg-type]
    return app


def packed() -> Any:
    """Return an application that always compresses its streams, regardless of what the client accepts."""
    body = gzip.compress(b"".join(TOLD_AGAIN))
    return starlette(streaming(body[:40], body[40:], content_encoding="gzip", content_length=str(len(body))))


APPS = {
    "starlette": lambda: starlette(streaming(*TOLD_AGAIN)),
    "a byte at a time": lambda: starlette(streaming(*[bytes([b]) for b in b"".join(TOLD_AGAIN)])),
    "fastapi": fast,
    "sse-starlette": with_events,
    "gzip outside": gzip_outside,
    "gzip inside": gzip_inside,
    "packed": packed,
    "plain asgi": lambda: RepairMiddleware(
        Starlette(routes=[Route("/v1/chat/completions", streaming(*TOLD_AGAIN), methods=["POST"])])
    ),  # type: ignore[arg-type]
}


def test_without_it_the_client_joins_what_is_repeated() -> None:
    app = Starlette(routes=[Route("/v1/chat/completions", streaming(*TOLD_AGAIN), methods=["POST"])])
    assert calls_of(app) == [("call_1call_1call_1", "f", '{"a":1}')]


@pytest.mark.parametrize("name", APPS)
def test_a_client_sees_the_call_once(name: str) -> None:
    assert calls_of(APPS[name]()) == [("call_1", "f", '{"a":1}')]


@pytest.mark.parametrize("kind", ["text/event-stream", "Text/Event-Stream; charset=windows-1252"])
def test_a_good_stream_passes_byte_for_byte(kind: str) -> None:
    body = b": hello\n\n" + b"".join(GOOD)
    answer = got(starlette(streaming(body[:33], body[33:], kind=kind, x_own="1", content_length=str(len(body)))))
    assert answer.content == body
    assert answer.headers["x-own"] == "1"
    assert "content-length" not in answer.headers


def test_another_event_stream_of_the_application_passes() -> None:
    """Its dialect is unknown, so nothing can be repaired, and no event may be lost."""
    pieces = [b'event: progress\ndata: {"done":%d}\n\n' % number for number in range(40)]
    seen: list[str] = []
    answer = got(starlette(streaming(*pieces), on_diagnostic=lambda diagnostic: seen.append(diagnostic.code)))
    assert answer.content == b"".join(pieces)
    assert "rewritten" not in seen


@pytest.mark.parametrize(
    ("kind", "status", "headers"),
    [
        ("application/json", 200, {}),
        ("text/event-stream", 500, {}),
        ("text/event-stream", 206, {}),
        ("text/event-stream", 200, {"content_encoding": "br"}),
    ],
)
def test_everything_else_passes(kind: str, status: int, headers: dict[str, str]) -> None:
    body = b"".join(CUT)
    reported = {"content_length": str(len(body)), **headers}
    with (
        running(starlette(streaming(*CUT, kind=kind, status=status, **reported))) as url,
        httpx2.stream("GET", f"{url}/v1/chat/completions") as answer,
    ):
        assert b"".join(answer.iter_raw()) == body
    assert answer.status_code == status
    assert answer.headers["content-length"] == str(len(body))


def test_answers_without_a_body_pass() -> None:
    answer = got(starlette(streaming(b"", content_length="7")), "HEAD")
    assert (answer.status_code, answer.headers["content-length"]) == (200, "7")


@pytest.mark.parametrize("made", [JSONResponse({"a": 1}), PlainTextResponse("x")])
def test_plain_answers_pass(made: Any) -> None:
    async def endpoint(_: Any) -> Any:
        return made

    answer = got(starlette(endpoint))
    assert (answer.content, answer.headers["content-length"]) == (made.body, str(len(made.body)))


def test_a_file_that_the_server_sends_passes_with_its_length(tmp_path: Path) -> None:
    """`pathsend`: uvicorn does not support it, so the test checks the ASGI messages directly."""
    file = tmp_path / "recorded.sse"
    file.write_bytes(b"".join(CUT))
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await FileResponse(file, media_type="text/event-stream")(scope, receive, send)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "headers": [], "extensions": {"http.response.pathsend": {}}}
    asyncio.run(RepairMiddleware(app)(scope, None, send))  # type: ignore[arg-type]
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.pathsend"]
    assert dict(sent[0]["headers"])[b"content-length"] == str(file.stat().st_size).encode()


def test_a_cut_is_an_error_of_the_client() -> None:
    with (
        running(starlette(streaming(*CUT))) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client,
        pytest.raises(openai.APIError, match="truncated"),
        client.chat.completions.stream(model="m", messages=[]) as stream,
    ):
        stream.get_final_completion()


def test_an_application_that_fails_has_its_failure_said_and_raised() -> None:
    raised: list[BaseException] = []

    async def endpoint(_: Any) -> StreamingResponse:
        async def body() -> AsyncIterator[bytes]:
            yield GOOD[0] + GOOD[1]
            raise OSError("the upstream broke")

        return StreamingResponse(body(), media_type="text/event-stream")

    inner = starlette(endpoint)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            await inner(scope, receive, send)
        except Exception as error:
            raised.append(error)
            raise

    with running(app) as url:
        got_so_far: list[bytes] = []
        with httpx2.stream("GET", f"{url}/v1/chat/completions") as answer, pytest.raises(httpx2.RemoteProtocolError):
            got_so_far.extend(answer.iter_raw())
    received = b"".join(got_so_far)
    assert received.startswith(GOOD[0] + GOOD[1])
    assert received.count(b'data: {"error":') == 1
    assert DONE not in received
    assert "the upstream broke" in repr(raised)


def test_an_anthropic_stream_is_told_by_itself() -> None:
    started = {"type": "message", "id": "msg_1", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    started |= {"stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    used = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    body = b"event: message_start\n" + event({"type": "message_start", "message": started})
    body += b"event: content_block_start\n" + event({"type": "content_block_start", "index": 0, "content_block": used})
    app = Starlette(routes=[Route("/v1/messages", streaming(body), methods=["POST"])])
    app.add_middleware(RepairMiddleware)  # type: ignore[arg-type]
    with (
        running(app) as url,
        anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client,
        pytest.raises(anthropic.APIStatusError, match="truncated"),
        client.messages.stream(model="m", max_tokens=1, messages=[]) as stream,
    ):
        stream.get_final_message()


def test_options_reach_the_stream() -> None:
    reported: list[str] = []
    policy = sw.Policy("standard", actions={"args_replay_dropped": "raise"})
    again = [*TOLD_AGAIN[:-1], piece("call_1", "f", '{"a":1}'), TOLD_AGAIN[-1]]
    lax = got(starlette(streaming(*again), on_diagnostic=lambda note: reported.append(note.code)))
    strict = got(starlette(streaming(*again), policy=policy, dialect="chat"))
    short = got(starlette(streaming(*GOOD), limits=sw.Limits(max_stream_bytes=200)))
    assert "args_replay_dropped" in reported
    assert DONE in lax.content
    assert b'data: {"error":' in strict.content
    assert b"exceeds a limit" in short.content
    with pytest.raises(UsageError, match="xml"):
        RepairMiddleware(starlette(streaming()), dialect="xml")  # type: ignore[arg-type]


def test_nothing_is_held_back_and_a_client_that_leaves_ends_the_source() -> None:
    closed: list[float] = []

    async def endpoint(_: Any) -> StreamingResponse:
        async def body() -> AsyncIterator[bytes]:
            try:
                yield text("Hel")
                await asyncio.sleep(60)
            finally:
                closed.append(time.monotonic())

        return StreamingResponse(body(), media_type="text/event-stream")

    with running(starlette(endpoint, dialect="chat")) as url:
        with httpx2.stream("GET", f"{url}/v1/chat/completions") as answer:
            assert next(answer.iter_raw()) == text("Hel")
            left = time.monotonic()
        until(lambda: closed)
    assert closed[0] - left < 1


@pytest.mark.parametrize("spec", ["2.3", "2.4"])
def test_a_client_that_leaves_is_not_a_truncation(spec: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Starlette cancels the stream when it receives the disconnect; since ASGI 2.4, `send` raises an OSError."""
    sent: list[bytes] = []

    async def endpoint(_: Any) -> StreamingResponse:
        async def body() -> AsyncIterator[bytes]:
            while True:
                yield text("Hel")
                await asyncio.sleep(0)

        return StreamingResponse(body(), media_type="text/event-stream")

    streams = asyncio.Event()

    async def receive() -> Any:
        await streams.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if len(sent) >= 2 and spec == "2.4":
            raise OSError("the client has disconnected")
        sent.append(message.get("body", b""))
        if len(sent) == 2:
            streams.set()

    path = "/v1/chat/completions"
    scope = {"type": "http", "method": "GET", "path": path, "headers": [], "asgi": {"spec_version": spec}}
    noted: list[str] = []
    app = starlette(endpoint, record=tmp_path, on_diagnostic=lambda note: noted.append(note.code))
    with caplog.at_level("INFO", "streamweld"), suppress(OSError, ClientDisconnect):
        asyncio.run(app(scope, receive, send))
    (file,) = tmp_path.iterdir()
    assert parse_recording(file.read_text("utf-8")).end == "left"
    assert noted == []
    assert [record for record in caplog.records if record.name == "streamweld"] == []
    assert not any(b"error" in body for body in sent)


def test_what_gives_nothing_yet_keeps_a_client_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "KEEP_ALIVE_SECONDS", 0.0)
    body = b"".join(TOLD_AGAIN)
    answer = got(starlette(streaming(*[body[at : at + 5] for at in range(0, len(body), 5)])))
    assert asgi.KEEP_ALIVE in answer.content
    assert sw.parse(answer.content).dispatchable_calls[0].arguments == '{"a":1}'
    assert sw.check(answer.content) == []


def test_other_connections_pass() -> None:
    seen: list[str] = []

    async def app(scope: Any, *_: Any) -> None:
        seen.append(scope["type"])

    for kind in ("lifespan", "websocket"):
        asyncio.run(RepairMiddleware(app)({"type": kind}, None, None))  # type: ignore[arg-type]
    assert seen == ["lifespan", "websocket"]


def test_a_stream_that_outlives_a_server_ends_with_an_error() -> None:
    """A stream that is open at the end of uvicorn's shutdown time is canceled, and ends with an error."""

    async def endpoint(_: Any) -> StreamingResponse:
        async def body() -> AsyncIterator[bytes]:
            yield chunk({"role": "assistant", "content": "Hel"}, **HEAD)
            await asyncio.sleep(60)

        return StreamingResponse(body(), media_type="text/event-stream")

    got_so_far: list[bytes] = []

    def read(url: str) -> None:
        ask = httpx2.stream("GET", f"{url}/v1/chat/completions", timeout=30)
        with suppress(httpx2.RemoteProtocolError), ask as answer:  # uvicorn does not end canceled bodies
            got_so_far.extend(answer.iter_raw())

    with running(starlette(endpoint), grace=1) as url:
        reads = threading.Thread(target=read, args=(url,))
        reads.start()
        until(lambda: got_so_far)
    reads.join(10)
    assert b"".join(got_so_far).count(b'data: {"error":') == 1


def test_what_passes_a_limit_ends_the_answer_and_the_source() -> None:
    """At a limit, the client gets an error at once, and the application is canceled."""
    stopped = threading.Event()

    async def endpoint(_: Any) -> StreamingResponse:
        async def body() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield text("x" * 1000)
                    await asyncio.sleep(0)
            finally:
                stopped.set()

        return StreamingResponse(body(), media_type="text/event-stream")

    app = starlette(endpoint, limits=sw.Limits(max_stream_bytes=100_000))
    with running(app) as url:
        body = httpx2.get(f"{url}/v1/chat/completions", timeout=5).content
        assert stopped.wait(5)
    assert body.endswith(b'"code":"limit_exceeded"}}\n\n')


def test_what_the_callback_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(note: sw.Diagnostic) -> None:
        raise LookupError(note.code)

    unnumbered = chunk({"tool_calls": [{"id": "call_1", "function": {"name": "f", "arguments": "{}"}}]}, **HEAD)
    with running(starlette(streaming(TOLD_AGAIN[0], unnumbered, end()), on_diagnostic=refuse)) as url:
        body = httpx2.get(f"{url}/v1/chat/completions").content
    assert body.endswith(DONE)
    assert b'data: {"error":' not in body
    raised = [record for record in caplog.records if record.exc_info is not None]
    assert {record.exc_info[0] for record in raised if record.exc_info} == {LookupError}
