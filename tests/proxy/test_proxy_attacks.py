"""Upstreams that send invalid data, and slow clients: one clear response, in bounded memory."""

from __future__ import annotations

import asyncio
import gzip
import re
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import openai
import pytest
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Mount, Route
from streamweld.integrations._inflate import SLICE
from streamweld.integrations.asgi import RepairMiddleware
from streamweld.integrations.proxy import ProxyConfig, create_app

from tests.integrations.dropin.streams import cells, frame_bytes
from tests.proxy.test_proxy import CHAT, chatted, command
from tests.proxy.test_proxy_threats import raw
from tests.support.servers.proxying import between, converse
from tests.support.servers.upstream import Talk, Upstream, running, sse
from tests.support.servers.wire import end, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

MEBI = 1_048_576
COMMENTS = (b": " + b"x" * 1021 + b"\n\n") * 1024  # 1 MiB that passes byte for byte


@pytest.mark.parametrize("status", ["099 Low", "101 Switching Protocols", "600 High", "999 No"])
@pytest.mark.parametrize("ask", [chatted, converse], ids=["repair", "convert"])
def test_a_status_that_is_none_is_an_error_of_the_upstream(ask: Callable[[str], httpx2.Response], status: str) -> None:
    async def script(talk: Talk) -> None:
        await talk.raw(
            f"HTTP/1.1 {status}\r\nupgrade: x\r\nconnection: upgrade\r\ncontent-length: 2\r\n\r\n{{}}".encode()
        )
        talk.cut()

    with between(Upstream(script)) as url:
        answer = ask(url)
    assert answer.status_code == 502
    assert status[:3].lstrip("0") in answer.json()["error"]["message"]


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a16_what_a_small_piece_inflates_to_waits_for_a_slow_client() -> None:
    """128 MiB compressed to 130 KiB, and a client that has read only the first piece."""
    bomb = gzip.compress(COMMENTS * 128)

    async def script(talk: Talk) -> None:
        await talk.head(content_encoding="gzip")
        await talk.send(bomb)
        await talk.end()

    def memory(pid: int) -> int:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text("utf-8"))
        assert found is not None
        return int(found[1]) * 1024

    upstream = Upstream(script)
    with upstream.serving(), command("--upstream", upstream.url) as (process, url, _):
        assert httpx2.get(f"{url}/healthz").status_code == 200
        before = memory(process.pid)
        with httpx2.stream("POST", f"{url}/v1/chat/completions", json=CHAT, timeout=20) as answer:
            next(answer.iter_raw())
            time.sleep(1)
            assert httpx2.get(f"{url}/healthz", timeout=2).status_code == 200
            assert memory(process.pid) - before < 32 * MEBI


def test_a16_what_a_small_piece_inflates_to_goes_through_the_middleware_in_slices() -> None:
    plain = COMMENTS * 8 + text("Hi") + end("stop")
    sent: list[bytes] = []

    async def app(_: Any, __: Any, send: Any) -> None:
        headers = [(b"content-type", b"text/event-stream"), (b"content-encoding", b"gzip")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": gzip.compress(plain), "more_body": False})

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            sent.append(message["body"])
            mores.append(message["more_body"])

    mores: list[bool] = []
    asyncio.run(RepairMiddleware(app)({"type": "http", "method": "POST"}, None, send))  # type: ignore[arg-type]
    assert b"".join(sent) == plain
    assert max(map(len, sent)) <= 2 * SLICE
    assert mores == [True] * (len(mores) - 1) + [False]


def test_g3_the_parser_is_the_one_that_was_chosen_whatever_else_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uvicorn prefers httptools if it is installed, but httptools accepts requests that h11 rejects: with two hosts, or
    none.
    """
    (tmp_path / "httptools.py").write_text("raise SystemExit('it was taken')\n", "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with command("--upstream", "http://127.0.0.1:9") as (process, url, lines):
        assert process.poll() is None, lines
        hosts = raw(url, b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n")
    assert hosts.startswith(b"HTTP/1.1 400 ")


# --- As an application in another one


def test_the_application_below_a_path_of_another_one() -> None:
    """The upstream receives the path after the mount prefix, with its escapes unchanged."""

    async def script(talk: Talk) -> None:
        await talk.whole(b"[]")

    upstream = Upstream(script)
    with upstream.serving():
        proxy = create_app(ProxyConfig(f"{upstream.url}/v1"))

        @asynccontextmanager
        async def lifespan(_: Any) -> AsyncIterator[Any]:
            async with proxy.router.lifespan_context(proxy) as state:
                yield state

        app = Starlette(routes=[Mount("/my llm", proxy)], lifespan=lifespan)
        with running(app) as url:
            assert httpx2.get(f"{url}/my%20llm/healthz").json() == {"status": "ok"}
            assert httpx2.get(f"{url}/my%20llm/v1/models/a%2Fb").status_code == 200
            assert httpx2.get(f"{url}/my%20llm/v1/models/my%20llm/").status_code == 200
    assert [asked.target for asked in upstream.seen] == ["/v1/models/a%2Fb", "/v1/models/my%20llm/"]


def test_an_application_that_nobody_has_started_says_so(caplog: pytest.LogCaptureFixture) -> None:
    app = Starlette(routes=[Mount("/llm", create_app(ProxyConfig("http://127.0.0.1:9")))])
    with running(app) as url:
        assert httpx2.get(f"{url}/llm/v1/models").status_code == 500
    assert "UsageError: the proxy has not been started: " in caplog.text


# --- A truncation that a client would not detect


def test_a_cut_of_responses_is_raised_by_a_client_that_reads_event_by_event() -> None:
    """openai-python raises for `error`, and passes a `response.incomplete` to the loop as if nothing had happened."""
    (cut,) = [cell for cell in cells("responses") if cell["name"] == "f"]
    pieces = [frame_bytes(frame) for frame in cut["frames"]]

    async def endpoint(_: Any) -> StreamingResponse:
        async def body() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

        return StreamingResponse(body(), media_type="text/event-stream")

    app = RepairMiddleware(Starlette(routes=[Route("/v1/responses", endpoint, methods=["POST"])]))
    with between(Upstream(sse(*pieces)), to=None) as proxied, running(app) as repaired:
        for url in (proxied, repaired):
            with (
                openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client,
                pytest.raises(openai.APIError, match="the upstream's stream was truncated"),
            ):
                list(client.responses.create(model="m", input="?", stream=True))
