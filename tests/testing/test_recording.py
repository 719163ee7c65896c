"""Recordings: what `repair(record=…)` and the proxy record, what they never record, and the result of a replay."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
import httpx2
import pytest
from click.testing import CliRunner
from streamweld.cli import main
from streamweld.errors import UsageError
from streamweld.integrations.asgi import RepairMiddleware
from streamweld.integrations.httpx import repair
from streamweld.integrations.openai import repair as repair_openai
from streamweld.testing import (
    OPERATORS,
    BrokenGateway,
    Call,
    Piece,
    Recorder,
    Recording,
    ReplayTransport,
    Reply,
    Text,
    build,
    read_recording,
    write_recording,
)

if TYPE_CHECKING:
    from pathlib import Path

    from streamweld.integrations._reporting import StreamContext

STREAM = build("chat", [Text("Let me look: Zürich\u2028."), Call("get_weather", '{"city":"Oslo"}')])
ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}


def only(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    pieces = (Piece(0.0, b"data: {}\n\n"), Piece(0.25, b"\xff\xfe"), Piece(0.5, "é\u2028".encode()))
    given = Recording(pieces, "failed", "POST", "/v1/messages", 201, "text/event-stream")
    write_recording(given, tmp_path / "one.jsonl")
    assert read_recording(tmp_path / "one.jsonl") == given


def test_the_documented_lines_are_a_recording(tmp_path: Path) -> None:
    file = tmp_path / "by-hand.jsonl"
    file.write_text(
        '{"streamweld_recording": 1, "method": "POST", "path": "/v1/chat/completions", "status": 200,'
        ' "content_type": "text/event-stream", "started": "2026-01-02T03:04:05.678+00:00"}\n'
        '{"at": 0.251, "text": "data: {}\\n\\n"}\n{"at": 0.252, "base64": "/w=="}\n{"at": 1.5, "end": "complete"}\n',
        "utf-8",
    )
    found = read_recording(file)
    assert found.pieces == (Piece(0.251, b"data: {}\n\n"), Piece(0.252, b"\xff"))
    assert (found.end, found.path, found.body) == ("complete", "/v1/chat/completions", b"data: {}\n\n\xff")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "line 1"),
        ("data: {}\n\n", "line 1"),
        ('{"streamweld_recording": 2}\n', "line 1"),
        ('{"streamweld_recording": 1}\n[1]\n', "line 2"),
        ('{"streamweld_recording": 1}\n{"at": 1}\n', "line 2"),
        ('{"streamweld_recording": 1}\n{"at": 1, "base64": "?"}\n', "line 2"),
    ],
)
def test_what_is_not_a_recording_is_named_by_its_line(tmp_path: Path, text: str, line: str) -> None:
    file = tmp_path / "wrong.jsonl"
    file.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=line):
        read_recording(file)


def test_repair_records_what_came_before_it_repairs(tmp_path: Path) -> None:
    secret = "sk-this-must-not-be-recorded"
    with BrokenGateway([STREAM]) as gateway, repair(httpx.Client(), record=tmp_path) as client:
        sent = client.post(
            f"{gateway.url}/v1/chat/completions?key={secret}", json=ASKED, headers={"authorization": f"Bearer {secret}"}
        )
    assert sent.status_code == 200
    found = read_recording(only(tmp_path))
    assert found.body == STREAM.body
    assert (found.end, found.method, found.path, found.status) == ("complete", "POST", "/v1/chat/completions", 200)
    assert secret not in only(tmp_path).read_text("utf-8")
    assert only(tmp_path).stat().st_mode & 0o077 == 0


def test_asynchronous_clients_are_recorded_too(tmp_path: Path) -> None:
    async def ask() -> None:
        with BrokenGateway([STREAM]) as gateway:
            async with repair(httpx2.AsyncClient(), record=tmp_path) as client:
                await client.post(f"{gateway.url}/v1/chat/completions", json=ASKED)

    asyncio.run(ask())
    assert read_recording(only(tmp_path)).body == STREAM.body


def test_a_connection_that_fails_and_a_reader_that_leaves_are_recorded(tmp_path: Path) -> None:
    half = Reply.of(STREAM)
    cut = Reply(half.pieces[:3], end="cut")
    with BrokenGateway([cut, Reply(half.pieces[:1], end="stall")]) as gateway:
        with repair(httpx.Client(), record=tmp_path / "cut") as client, pytest.raises(httpx.RemoteProtocolError):
            client.post(f"{gateway.url}/v1/chat/completions", json=ASKED)
        with repair(httpx.Client(), record=tmp_path / "left") as client:
            with client.stream("POST", f"{gateway.url}/v1/chat/completions", json=ASKED) as response:
                next(response.iter_raw())
            del response
    found = read_recording(only(tmp_path / "cut"))
    assert (found.end, found.body) == ("failed", b"".join(piece.data for piece in cut.pieces))
    assert read_recording(only(tmp_path / "left")).end == "left"


def test_a_folder_that_cannot_be_written_does_not_break_the_stream(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    with BrokenGateway([STREAM]) as gateway, repair(httpx.Client(), record=tmp_path / "file") as client:
        with caplog.at_level(logging.WARNING, "streamweld"):
            answer = client.post(f"{gateway.url}/v1/chat/completions", json=ASKED)
        assert answer.content == STREAM.body
    assert "cannot be written" in caplog.text


def test_record_must_be_a_path() -> None:
    with pytest.raises(UsageError, match="record=1"):
        repair(httpx.Client(), record=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("module", [httpx, httpx2])
def test_a_recording_is_replayed_through_a_transport(module: Any) -> None:
    recording = Recording.of(STREAM, gap=0.01)
    client = module.Client(transport=ReplayTransport(recording))
    with client.stream("POST", "http://gateway/v1/chat/completions", json=ASKED) as response:
        assert list(response.iter_raw()) == list(STREAM.chunks)

    async def read() -> list[bytes]:
        other = module.AsyncClient(transport=ReplayTransport(recording))
        async with other.stream("POST", "http://gateway/v1/chat/completions", json=ASKED) as answer:
            return [piece async for piece in answer.aiter_raw()]

    assert asyncio.run(read()) == list(STREAM.chunks)


def test_a_replay_keeps_the_recorded_times() -> None:
    recording = Recording((Piece(0.0, b"data: 1\n\n"), Piece(0.2, b"data: 2\n\n")), "failed")
    for speed, least, most in ((1.0, 0.19, 5.0), (None, 0.0, 0.19)):
        client = httpx.Client(transport=ReplayTransport(recording, speed=speed))
        began = time.monotonic()
        with client.stream("POST", "http://gateway/v1/chat/completions") as response:
            pieces = response.iter_raw()
            assert [next(pieces), next(pieces)] == [b"data: 1\n\n", b"data: 2\n\n"]
            assert least <= time.monotonic() - began < most
            with pytest.raises(httpx.RemoteProtocolError):
                next(pieces)


def test_the_official_client_reads_a_replay() -> None:
    openai = pytest.importorskip("openai")
    http = openai.DefaultHttpxClient(transport=ReplayTransport(Recording.of(STREAM)))
    client = repair_openai(openai.OpenAI(api_key="none", base_url="http://gateway/v1", http_client=http))
    with client.chat.completions.stream(model="m", messages=ASKED["messages"]) as stream:
        (call,) = stream.get_final_completion().choices[0].message.tool_calls
    assert (call.function.name, call.function.arguments) == ("get_weather", '{"city":"Oslo"}')


def test_the_recorder_ends_once(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, method="POST", path="/v1/../responses", status=200, content_type="")
    recorder.piece(b"data: {}\n\n")
    recorder.end("complete")
    recorder.end("failed")
    recorder.piece(b"late")
    lines = recorder.file.read_text("utf-8").splitlines()
    assert [sorted(json.loads(line)) for line in lines[1:]] == [["at", "text"], ["at", "end"]]
    assert read_recording(recorder.file).end == "complete"
    assert recorder.file.parent == tmp_path


def test_the_proxy_has_the_option() -> None:
    shown = CliRunner().invoke(main, ["proxy", "--help"]).output
    assert "--record DIR" in shown
    assert "STREAMWELD_PROXY_RECORD" in shown


def serve(app: Any, *, leave: bool = False) -> bytes:
    """Return the application's complete response, without a server. `leave`: the application is canceled."""
    sent = bytearray()

    async def send(message: Any) -> None:
        sent.extend(message.get("body", b""))

    async def receive() -> Any:
        return {"type": "http.request"}

    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}

    async def run() -> None:
        task = asyncio.create_task(app(scope, receive, send))
        if leave:
            await asyncio.sleep(0.01)
            task.cancel()
        await task

    with suppress(asyncio.CancelledError):
        asyncio.run(run())
    return bytes(sent)


def application(*pieces: bytes, kind: str = "text/event-stream", stall: bool = False) -> Any:
    async def app(_: Any, __: Any, send: Any) -> None:
        headers = [(b"content-type", kind.encode()), (b"x-request-id", b"req-7")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if stall:
            await asyncio.sleep(60)
        await send({"type": "http.response.body", "body": b""})

    return app


def test_the_middleware_records_what_the_application_sent(tmp_path: Path) -> None:
    pieces = [piece for piece in STREAM.chunks if piece]
    assert serve(RepairMiddleware(application(*pieces), record=tmp_path)) == b"".join(pieces)
    found = read_recording(only(tmp_path))
    assert [piece.data for piece in found.pieces] == pieces
    assert found.request_id == "req-7"
    assert (found.end, found.method, found.path, found.status) == ("complete", "POST", "/v1/chat/completions", 200)


def test_the_middleware_records_a_stream_that_breaks(tmp_path: Path) -> None:
    half = STREAM.body[: len(STREAM.body) // 2]
    serve(RepairMiddleware(application(half, stall=True), record=tmp_path), leave=True)
    found = read_recording(only(tmp_path))
    assert (found.body, found.end) == (half, "failed")


def test_the_middleware_records_streams_only(tmp_path: Path) -> None:
    assert serve(RepairMiddleware(application(b"{}", kind="application/json"), record=tmp_path)) == b"{}"
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="record=3"):
        RepairMiddleware(application(), record=3)  # type: ignore[arg-type]


def test_the_request_id_leads_from_the_log_to_the_recording(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    headers = {"content-type": "text/event-stream", "x-request-id": "req-42"}
    caplog.set_level("INFO", "streamweld")
    broken = OPERATORS["no_index"](STREAM)
    assert broken is not None
    contexts: list[StreamContext] = []

    def named(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers=headers, content=broken.body)

    def report(_: object, context: StreamContext) -> None:
        contexts.append(context)

    with repair(httpx.Client(transport=httpx.MockTransport(named)), record=tmp_path, on_diagnostic=report) as client:
        client.post("http://gateway/v1/chat/completions", json=ASKED)
    found = read_recording(only(tmp_path))
    assert found.request_id == "req-42"
    assert {context.request_id for context in contexts} == {"req-42"}
    assert "request_id=req-42 " in caplog.text
    write_recording(found, tmp_path / "copy.jsonl")
    assert read_recording(tmp_path / "copy.jsonl") == found


def test_a_request_id_that_is_not_text_is_escaped(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, method="POST", path="/", status=200, content_type="", request_id="a\udcff")
    recorder.end("complete")
    assert read_recording(recorder.file).request_id == "a\\udcff"


def test_a_file_that_is_not_a_recording_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.sse"
    file.write_bytes(STREAM.body)
    with pytest.raises(ValueError, match="this is not a JSON object; if it is the body of a response, pass its bytes"):
        read_recording(file)
    file.write_bytes(b'{"streamweld_recording": 1}\n[1]\n')
    with pytest.raises(ValueError, match=re.escape(f"{file}: line 2: this is not a JSON object")):
        read_recording(file)
