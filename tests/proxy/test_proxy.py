"""The proxy without conversion: what it repairs, passes through and reports, and how it starts and stops."""

from __future__ import annotations

import asyncio
import gzip
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
import openai
import pytest
import streamweld as sw
from streamweld.errors import UsageError
from streamweld.integrations.proxy import ProxyConfig, create_app

from tests.integrations.test_asgi import CUT, GOOD, HEAD, TOLD_AGAIN
from tests.support.servers.proxying import ASK, between
from tests.support.servers.upstream import Talk, Upstream, running, sse, until
from tests.support.servers.wire import DONE, chunk, event, text

if TYPE_CHECKING:
    from collections.abc import Iterator

ASKED: Any = {name: value for name, value in ASK.items() if name != "stream"}
CHAT: dict[str, Any] = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "?"}]}


def chatted(url: str) -> httpx2.Response:
    return httpx2.post(f"{url}/v1/chat/completions", json=CHAT, timeout=20)


def test_what_is_repaired_is_right_under_the_official_client() -> None:
    with (
        between(Upstream(sse(*TOLD_AGAIN)), to=None) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client,
        client.chat.completions.stream(model="m", messages=[]) as stream,
    ):
        (one,) = stream.get_final_completion().choices[0].message.tool_calls or ()
    assert (one.id, one.function.name, one.function.arguments) == ("call_1", "f", '{"a":1}')  # type: ignore[union-attr]


def test_what_needs_no_repair_passes_byte_for_byte() -> None:
    body = b": OPENROUTER PROCESSING\n\n" + b"".join(GOOD)
    upstream = Upstream(sse(body[:40], body[40:]))
    with between(upstream, to="chat") as url:
        answer = httpx2.post(
            f"{url}/v1/chat/completions?api-version=1", json=CHAT, headers={"authorization": "Bearer k"}
        )
    assert answer.content == body
    assert upstream.seen[0].target == "/v1/chat/completions?api-version=1"
    assert upstream.seen[0].body == answer.request.content
    assert upstream.seen[0].header("authorization") == "Bearer k"


@pytest.mark.parametrize(
    ("base", "path", "target"),
    [
        ("", "/v1/models", "/v1/models"),
        ("/v1", "/v1/models", "/v1/models"),
        ("/api/v4/", "/v1/models", "/api/v4/models"),
        ("/api", "/v1/models", "/api/v1/models"),
        ("/v1", "/models", "/v1/models"),
        ("", "/v1/a%20b%3Fc%23d", "/v1/a%20b%3Fc%23d"),
        (
            "/v1",
            "/v1/models/meta%2Fllama%20%C3%BC",
            "/v1/models/meta%2Fllama%20%C3%BC",
        ),  # one path segment, as openai-python escapes it
        ("", "/v1/models/100%25%2fa", "/v1/models/100%25%2fa"),
    ],
)
def test_paths_are_put_behind_the_upstreams_own(base: str, path: str, target: str) -> None:
    async def script(talk: Talk) -> None:
        await talk.whole(b"[]")

    upstream = Upstream(script)
    with upstream.serving(), running_at(f"{upstream.url}{base}") as url:
        assert httpx2.get(f"{url}{path}").status_code == 200
    assert upstream.seen[0].target == target


@contextmanager
def running_at(upstream: str, **options: Any) -> Iterator[str]:
    with running(create_app(ProxyConfig(upstream, **options)), server_header=False) as url:
        yield url


@pytest.mark.parametrize("status", [200, 400, 404, 429, 500, 529])
def test_what_is_no_stream_passes_byte_for_byte(status: int) -> None:
    body = gzip.compress(b'{ "error" : {"message":"x"} }')

    async def script(talk: Talk) -> None:
        await talk.whole(body, status, content_encoding="gzip", retry_after="3", x_ratelimit_reset="9")

    with (
        between(Upstream(script), to=None) as url,
        httpx2.stream("POST", f"{url}/v1/chat/completions", json={}) as answer,
    ):
        received = b"".join(answer.iter_raw())
    assert (answer.status_code, received) == (status, body)
    told = {name: answer.headers[name] for name in ("content-encoding", "retry-after", "x-ratelimit-reset")}
    assert told == {"content-encoding": "gzip", "retry-after": "3", "x-ratelimit-reset": "9"}


def test_a_stream_on_a_path_that_is_not_known_passes() -> None:
    with between(Upstream(sse(*CUT)), to=None) as url:
        assert httpx2.post(f"{url}/v1/threads/t/runs", json={}).content == b"".join(CUT)


def test_a_broken_body_looks_broken() -> None:
    async def script(talk: Talk) -> None:
        await talk.head(200, "application/json")
        await talk.send(b'{"data":[')
        await asyncio.sleep(0.1)
        talk.cut()

    with between(Upstream(script), to=None) as url, pytest.raises(httpx2.RemoteProtocolError):
        httpx2.get(f"{url}/v1/models")


def test_a_cut_is_an_error_of_the_clients_own() -> None:
    async def script(talk: Talk) -> None:
        await talk.head()
        await talk.send(*CUT)
        talk.cut()

    with (
        between(Upstream(script), to=None) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client,
        pytest.raises(openai.APIError, match="truncated"),
        client.chat.completions.stream(model="m", messages=[]) as stream,
    ):
        stream.get_final_completion()


def test_a_page_is_an_error_that_clients_try_again() -> None:
    async def script(talk: Talk) -> None:
        await talk.whole(b"<html>", kind="text/html")

    upstream = Upstream(script)
    with (
        between(upstream, to=None) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=1) as client,
        pytest.raises(openai.InternalServerError, match="text/html"),
    ):
        client.chat.completions.create(model="m", messages=[], stream=True)
    assert len(upstream.seen) == 2


def test_an_upstream_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with running_at(f"http://127.0.0.1:{port}") as url:
        answer = httpx2.post(f"{url}/v1/messages", json=ASK)
    assert answer.status_code == 502
    assert answer.json() == {
        "type": "error",
        "error": {"type": "api_error", "message": "the upstream did not answer: ClientConnectorError"},
    }


def test_an_upstream_that_does_not_answer() -> None:
    async def script(talk: Talk) -> None:
        await talk.wait_for_leave()

    with between(Upstream(script), to=None, idle_timeout=0.3) as url:
        assert chatted(url).status_code == 504


def test_connections_to_the_upstream_are_used_again() -> None:
    upstream = Upstream(sse(*GOOD))
    connections = set()

    async def script(talk: Talk) -> None:
        connections.add(talk.peer)
        await sse(*GOOD)(talk)

    upstream.script = script
    with between(upstream, to=None) as url:
        for _ in range(5):
            assert chatted(url).status_code == 200
    assert len(connections) == 1


def test_many_at_a_time_are_not_mixed_up() -> None:
    async def script(talk: Talk) -> None:
        word = talk.asked.body.split(b"<")[1].split(b">")[0].decode()
        body = b"".join([chunk({"content": letter}, **HEAD) for letter in word] + [chunk({}, "stop", **HEAD), DONE])
        await talk.head()
        for at in range(0, len(body), 7):
            await talk.send(body[at : at + 7])
            await asyncio.sleep(0)
        await talk.end()

    async def one(client: httpx2.AsyncClient, url: str, number: int) -> str:
        messages = [{"role": "user", "content": f"<word-{number}>"}]
        path, body = ("/v1/chat/completions", {}) if number % 2 else ("/v1/messages", {"max_tokens": 5})
        answer = await client.post(f"{url}{path}", json={**CHAT, **body, "messages": messages})
        return str(sw.parse(answer.content).text)

    async def all_of(url: str) -> list[str]:
        async with httpx2.AsyncClient(timeout=60) as client:
            return await asyncio.gather(*[one(client, url, number) for number in range(50)])

    with between(Upstream(script), to="chat") as url:
        assert asyncio.run(all_of(url)) == [f"word-{number}" for number in range(50)]


def test_what_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "streamweld.proxy")
    with between(Upstream(sse(*TOLD_AGAIN)), to="chat") as url:
        assert httpx2.get(f"{url}/healthz").json() == {"status": "ok"}
        chatted(url)
        httpx2.post(f"{url}/v1/messages", json=ASK)
        httpx2.post(f"{url}/v1/messages", json={})
        # A stream is counted after its last byte, so a client may have that byte before the count changes.
        until(lambda: "streamweld_stream_seconds_count 2.0\n" in httpx2.get(f"{url}/metrics").text)
        answer = httpx2.get(f"{url}/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    counted = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
    kinds = 'dialect="chat",mode="repair",upstream="chat"'
    converted = 'dialect="anthropic",mode="convert",upstream="chat"'
    expected = {
        'streamweld_requests_total{dialect="chat",status="200"}': 1,
        'streamweld_requests_total{dialect="anthropic",status="400"}': 1,
        'streamweld_streams_total{dialect="chat",mode="repair",outcome="complete",upstream="chat"}': 1,
        f"streamweld_streams_repaired_total{{{kinds}}}": 1,
        'streamweld_diagnostics_total{code="rewritten"}': 1,
        f"streamweld_events_total{{{kinds}}}": 6,
        f"streamweld_events_total{{{converted}}}": 7,
        "streamweld_streams_open": 0,
        'streamweld_faults_total{fault="invalid_model"}': 1,
        'streamweld_bytes_total{direction="in"}': 2 * len(b"".join(TOLD_AGAIN)),
        "streamweld_first_byte_seconds_count": 2,
        "streamweld_stream_seconds_count": 2,
    }
    assert {name: float(counted[name]) for name in expected} == expected
    lines = [record.getMessage() for record in caplog.records if record.name == "streamweld.proxy"]
    assert [line.split(" outcome=")[1].split(" ")[0] for line in lines] == ["complete", "complete", "refused"]
    request = "method=POST path=/v1/chat/completions status=200 mode=repair dialect=chat"
    assert f"{request} model=m outcome=complete" in lines[0]


ERROR = b'{"error":{"message":"slow down","type":"rate_limit_error"}}'
PAGE = b"<!doctype html><title>502</title>"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("path", ["chat/completions", "messages"])
@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [(429, "application/json", ERROR), (503, "text/html", PAGE), (200, "text/html", PAGE), (200, "text/html", b"")],
    ids=["429", "error page", "page", "empty page"],
)
def test_an_error_of_the_upstream_is_not_counted_as_a_success(
    caplog: pytest.LogCaptureFixture, path: str, status: int, kind: str, body: bytes, stream: bool
) -> None:
    """`/v1/messages` is converted, `/v1/chat/completions` is not."""
    caplog.set_level(logging.INFO, "streamweld.proxy")
    with between(Upstream(lambda talk: talk.whole(body, status, kind)), to="chat") as url:
        answer = httpx2.post(f"{url}/v1/{path}", json={**ASK, "stream": stream}, timeout=20)
        until(lambda: "streamweld_requests_total{" in httpx2.get(f"{url}/metrics").text)
        metrics = httpx2.get(f"{url}/metrics").text
    assert answer.status_code in (status, 502)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "streamweld.proxy"]
    assert " outcome=upstream_error " in line
    assert "streamweld_streams_repaired_total{" not in metrics
    outcomes = [one for one in metrics.splitlines() if one.startswith("streamweld_streams_total{")]
    assert all('outcome="upstream_error"' in one for one in outcomes)
    assert len(outcomes) == stream


@pytest.mark.parametrize(
    "options",
    [
        {"to": "grpc"},
        {"gateway": "openrouter"},
        {"to": "chat", "gateway": "nobody"},
        {"policy": "loose"},
        {"idle_timeout": 0},
        {"max_body_bytes": True},
    ],
)
def test_options_that_cannot_be(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        ProxyConfig("http://gateway.example", **options)


# --- The command


@contextmanager
def command(*args: str, ready: str = " -> ") -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "streamweld", "proxy", "--port", "0", *args],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUTF8": "1"},
    )
    assert process.stderr is not None
    lines: list[str] = []
    reader = threading.Thread(target=lambda source: lines.extend(iter(source.readline, "")), args=(process.stderr,))
    reader.start()
    try:
        until(lambda: any(ready in line for line in lines) or process.poll() is not None, 30)
        yield process, lines[0].split(" ")[1] if lines else "", lines
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stderr.close()


def test_the_command_serves_and_lets_streams_finish() -> None:
    go = threading.Event()

    async def script(talk: Talk) -> None:
        await talk.head()
        await talk.send(text("Hel"))
        await asyncio.to_thread(go.wait, 20)
        await talk.send(text("lo"), chunk({}, "stop") + DONE)
        await talk.end()

    upstream = Upstream(script)
    with upstream.serving(), command("--upstream", f"{upstream.url}/v1", "--to", "chat") as (process, url, lines):
        assert httpx2.get(f"{url}/healthz").status_code == 200
        with httpx2.stream("POST", f"{url}/v1/chat/completions", json=CHAT, timeout=20) as answer:
            pieces = answer.iter_raw()
            first = next(pieces)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            refused = pytest.raises(httpx2.ConnectError)
            with refused:
                httpx2.get(f"{url}/healthz")
            assert process.poll() is None
            go.set()
            rest = b"".join(pieces)
        process.wait(10)
    assert sw.parse(first + rest).text == "Hello"
    assert any("path=/v1/chat/completions status=200 mode=repair" in line for line in lines)
    assert not any("Traceback" in line for line in lines)


def test_the_command_under_an_official_client() -> None:
    upstream = Upstream(sse(*TOLD_AGAIN))
    with upstream.serving(), command("--upstream", upstream.url, "--to", "chat") as (_, url, _lines):
        client = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)
        with client, client.messages.stream(**ASKED) as stream:
            message = stream.get_final_message()
    assert [part.model_dump(exclude_none=True) for part in message.content] == [
        {"type": "tool_use", "id": "call_1", "name": "f", "input": {"a": 1}}
    ]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["--upstream", "gateway.example"], 2, "http or https URL"),
        (["--upstream", "http://[::1"], 2, "http or https URL"),
        (["--upstream", "http://h", "--to", "xml"], 2, "'xml': it must be one of"),
        (["--upstream", "http://h", "--gateway", "kimi"], 2, "also set upstream-dialect"),
        (["--upstream", "http://h", "--host", "192.0.2.1", "--token", "t"], 3, "192.0.2.1:0: "),
        (["--upstream", "http://u:secret@h"], 2, "no user"),
    ],
)
def test_the_command_refuses(args: list[str], code: int, said: str) -> None:
    with command(*args) as (process, _, lines):
        assert process.wait(30) == code
        until(lambda: any(said in line for line in lines))
    assert "secret" not in "".join(lines)


def test_what_is_missing_is_named() -> None:
    hide = (
        "import importlib.util as u\n"
        "real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'aiohttp' else real(name, *a)\n"
        "from streamweld.integrations.proxy import ProxyConfig, create_app\n"
        "try: create_app(ProxyConfig('http://h'))\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True, check=False)
    assert done.stdout == "aiohttp is not installed: pip install 'streamweld[proxy]'\n", done.stderr


def test_an_error_in_the_stream_passes_as_it_was_sent() -> None:
    error = event({"error": {"message": "overloaded", "code": 529}})
    said = chunk({"role": "assistant", "content": "Hi"}, **HEAD)
    with between(Upstream(sse(said, error)), to=None) as url:
        answer = chatted(url)
    assert answer.content == said + error
