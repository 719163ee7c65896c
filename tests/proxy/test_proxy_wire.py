"""Attacks on the HTTP framing: forged `Via`, slow heads, pipelining, unusual framing, and unsolicited responses."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import time
import zlib
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx2
import pytest
from streamweld.integrations.proxy import ProxyConfig, create_app
from streamweld.integrations.proxy.serve import HeadTimeout

from tests.support.servers.proxying import ASK, GOOD, between, converse
from tests.support.servers.upstream import Talk, Upstream, running, sse, until

if TYPE_CHECKING:
    from collections.abc import Callable

BODY = json.dumps(ASK).encode()
POST = b"POST /v1/messages HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"


def opened(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=10)


def received(connection: socket.socket) -> bytes:
    answer = b""
    while piece := connection.recv(65_536):
        answer += piece
    return answer


def talked(url: str, *pieces: bytes) -> bytes:
    """Send the pieces, a moment apart, and return everything until the proxy closes the connection."""
    with opened(url) as connection:
        for place, piece in enumerate(pieces):
            if place:
                time.sleep(0.05)
            connection.sendall(piece)
        return received(connection)


async def empty(talk: Talk) -> None:
    await talk.whole(b"{}")


# --- Via


@pytest.mark.parametrize("appended", ["1.1 relay", "1.1 relay (caf\u00e9)", "1.1\trelay"])
def test_a_loop_is_detected_whatever_else_via_contains(appended: str) -> None:
    forged = ("", "1.1 x" * 3000, ", , ,", '1.1 x ("', "1.1 streamweld-0000000000000000")
    own: list[str] = []

    async def back(talk: Talk) -> None:
        via = f"{talk.asked.header('via') or ''}, {appended}".encode("latin-1")
        async with httpx2.AsyncClient() as client:
            answer = await client.get(own[0] + talk.asked.target, headers={"via": via})
        await talk.whole(answer.content, answer.status_code)

    upstream = Upstream(back)
    with between(upstream, to=None) as url:
        own.append(url)
        answers = [httpx2.get(f"{url}/v1/models", headers={"via": value}) for value in forged]
    assert [answer.status_code for answer in answers] == [508] * len(forged)
    assert len(upstream.seen) == len(forged)


def test_a_via_of_others_blocks_nothing() -> None:
    forged = ("1.1 streamweld-0123456789abcdef", "1.1 streamweld", "x" * 20_000, ",")
    upstream = Upstream(empty)
    with between(upstream, to=None) as url:
        answers = [httpx2.get(f"{url}/v1/models", headers={"via": value}) for value in forged]
    assert [answer.status_code for answer in answers] == [200] * len(forged)
    last = [(asked.header("via") or "").rpartition(", ")[2] for asked in upstream.seen]
    assert all(value.startswith("1.1 streamweld-") for value in last)


# --- Requests


def trickle(connection: socket.socket) -> None:
    connection.sendall(b"GET /healthz HTTP/1.1\r\n")
    for _ in range(80):
        connection.sendall(b"X: y\r\n")
        time.sleep(0.1)


def is_healthy(connection: socket.socket) -> bool:
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
    return is_health(connection)


def is_health(connection: socket.socket) -> bool:
    """Receive one response, whose head and body may arrive apart. Return whether it says that the proxy is healthy."""
    answer = b""
    while not answer.endswith(b"}") and (more := connection.recv(1000)):
        answer += more
    return answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b'{"status":"ok"}')


def test_a_head_that_trickles_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamweld.integrations.proxy.serve.HEAD_SECONDS", 0.6)
    app = create_app(ProxyConfig("http://127.0.0.1:9", allow_hosts=("h",)))
    with running(app, http=HeadTimeout) as url, opened(url) as silent, opened(url) as slow, opened(url) as good:
        assert is_healthy(good)
        began = time.monotonic()
        with pytest.raises(ConnectionError):
            trickle(slow)
        assert received(silent) == b""
        assert time.monotonic() - began < 4
        assert is_healthy(good)  # idle connections have a longer limit


def test_a_connection_ends_with_an_answer_that_came_before_the_body() -> None:
    """The rest of the body is not read, so a client could keep the connection open with one byte from time to time."""
    app = create_app(ProxyConfig("http://127.0.0.1:9", allow_hosts=("h",)))
    with running(app, http=HeadTimeout) as url, opened(url) as early, opened(url) as whole:
        early.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 9000000\r\n\r\n{")
        assert received(early).endswith(b'{"status":"ok"}')  # until the end of the connection
        whole.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}")
        assert is_health(whole)
        assert is_healthy(whole)


AMBIGUOUS = [
    b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    b"Transfer-Encoding : chunked\r\n",
    b"Transfer-Encoding: chunked, identity\r\n",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    b"Transfer-Encoding:\x0bchunked\r\n",
    b"Content-Length: 5, 6\r\n",
    b"Content-Length: -1\r\n",
    b"Content-Length: 0x5\r\n",
    b"Host: h\r\n",
    b"X\x00: y\r\n",
    b"X: a\rb\r\n",
]


def test_ambiguous_requests_reach_nobody() -> None:
    head, body = b"POST /v1/files HTTP/1.1\r\nHost: h\r\n", b"\r\n5\r\nhello\r\n0\r\n\r\n"
    upstream = Upstream(empty)
    with between(upstream, to=None) as url:
        for lines in AMBIGUOUS:
            answer = talked(url, head + lines + body)
            assert answer.split(b" ")[1] in (b"400", b"413", b"501"), (lines, answer)
            assert answer.count(b"HTTP/1.1 ") == 1, (lines, answer)
    assert upstream.seen == []


@pytest.mark.parametrize(("version", "host", "status"), [(b"1.0", b"Host: h\r\n", b"200"), (b"1.0", b"", b"421")])
def test_http_1_0(version: bytes, host: bytes, status: bytes) -> None:
    """The response is not chunked, and the connection is not kept alive."""
    head = b"POST /v1/messages HTTP/%b\r\n%bContent-Length: %d\r\n\r\n" % (version, host, len(BODY))
    with between(Upstream(sse(*GOOD))) as url:
        answer = talked(url, head + BODY)
    assert answer.split(b" ")[1] == status
    assert b"transfer-encoding" not in answer.lower()
    assert (b"event: message_stop" in answer) == (status == b"200")


def test_pipelined_requests_are_answered_in_order() -> None:
    upstream = Upstream(sse(*GOOD))
    one = POST + b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
    last = b"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    with between(upstream) as url:
        answer = talked(url, one + one + last)
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    assert answer.count(b"event: message_stop") == 2
    assert answer.endswith(b'{"status":"ok"}')
    assert len(upstream.seen) == 2


def test_expect_100_continue() -> None:
    """The interim response is sent only if the body will be read."""
    with between(Upstream(sse(*GOOD)), max_body_bytes=1000) as url, opened(url) as connection:
        connection.sendall(
            POST + b"Connection: close\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY)
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        connection.sendall(BODY)
        assert b"event: message_stop" in received(connection)
        refused = talked(url, POST + b"Expect: 100-continue\r\nContent-Length: 5000\r\n\r\n")
    assert refused.startswith(b"HTTP/1.1 413 ")


def test_chunk_extensions_and_trailers_of_a_request() -> None:
    upstream = Upstream(sse(*GOOD))
    half = len(BODY) // 2
    chunks = b"".join(b"%x;a=b;c\r\n%b\r\n" % (len(part), part) for part in (BODY[:half], BODY[half:]))
    head = POST + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    with between(upstream) as url:
        answer = talked(url, head + chunks + b"0\r\nAuthorization: Bearer evil\r\nX-Request-Id: evil\r\n\r\n")
    assert b"event: message_stop" in answer
    (asked,) = upstream.seen
    assert json.loads(asked.body)["messages"] == ASK["messages"]
    assert "evil" not in repr(asked.headers)


@pytest.mark.parametrize("body", [b"", BODY[:10]])
def test_a_client_that_leaves_in_its_body_asks_nobody(body: bytes) -> None:
    upstream = Upstream(sse(*GOOD))
    with between(upstream) as url:
        with opened(url) as connection:
            connection.sendall(POST + b"Content-Length: %d\r\n\r\n%b" % (len(BODY), body))
            time.sleep(0.1)
        assert converse(url).status_code == 200
    assert len(upstream.seen) == 1


@pytest.mark.parametrize("head", [b"X: " + b"x" * 100_000, b"X: y\r\n" * 20_000, b"Host: h\r\nX" + b"x" * 100_000])
def test_a_head_that_is_too_long(head: bytes) -> None:
    upstream = Upstream(empty)
    with between(upstream, to=None) as url:
        try:
            answer = talked(url, b"GET /v1/models HTTP/1.1\r\n" + head)
        except ConnectionError:  # reset, because input was left unread
            answer = b"HTTP/1.1 400 "
        assert httpx2.get(f"{url}/healthz").status_code == 200
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert upstream.seen == []


# --- Responses


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(data) + packer.flush()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "Deflate": raw_deflate,
}


@pytest.mark.parametrize("encoding", PACKED)
def test_a_body_that_inflates_too_much_ends_with_an_error(encoding: str) -> None:
    bomb = PACKED[encoding](b"".join(GOOD[:1]) + b": " + bytes(24 * 1024 * 1024) + b"\n\n" + b"".join(GOOD))
    with between(Upstream(sse(bomb, content_encoding=encoding))) as url:
        answer = converse(url)
    assert "exceeds a limit" in answer.text
    assert "message_stop" not in answer.text
    assert len(answer.content) < 10_000


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, gzip", "deflate, gzip", "gzip, br", "gzip,zstd"])
def test_an_encoding_that_was_not_requested_is_refused(encoding: str) -> None:
    packed = gzip.compress(gzip.compress(b"".join(GOOD)))
    with between(Upstream(sse(packed, content_encoding=encoding))) as url:
        answers = [httpx2.post(f"{url}/v1/messages", json=ASK | {"stream": stream}) for stream in (True, False)]
    assert [(answer.status_code, answer.json()["error"]["type"]) for answer in answers] == [(502, "api_error")] * 2


@pytest.mark.parametrize("encoding", ["none", "utf-8", "UTF-8, gzip"])
def test_an_encoding_that_does_not_exist_is_ignored(encoding: str) -> None:
    """Clients ignore unknown encodings, and some gateways send them."""
    body = b"".join(GOOD)
    packed = gzip.compress(body) if "gzip" in encoding else body
    with between(Upstream(sse(packed, content_encoding=encoding))) as url:
        assert "event: message_stop" in converse(url).text


@pytest.mark.parametrize("body", [b"", b"\x1f\x8b\x08", b"plain text", gzip.compress(b"".join(GOOD), mtime=0)[:-30]])
def test_a_packed_body_that_is_broken_is_no_success(body: bytes) -> None:
    pieces = [body] if body else []
    with between(Upstream(sse(*pieces, content_encoding="gzip"))) as url:
        answer = converse(url)
    assert answer.status_code == 502 or "event: error" in answer.text
    assert "message_stop" not in answer.text


@pytest.mark.parametrize("delay", [0.0, 0.1])
def test_an_answer_that_nobody_asked_for_reaches_nobody(delay: float) -> None:
    """Bytes after a response must not become the response to the next request, which may come from another client."""
    evil = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 6\r\n\r\n"evil"'

    async def script(talk: Talk) -> None:
        if len(upstream.seen) == 1:
            await talk.raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")
            await asyncio.sleep(delay)
            await talk.raw(evil)
        else:
            await talk.whole(b'"good"')

    upstream = Upstream(script)
    with between(upstream, to=None) as url:
        first = httpx2.get(f"{url}/v1/models")
        time.sleep(2 * delay)
        rest = [httpx2.get(f"{url}/v1/models") for _ in range(3)]
    assert first.text == "{}"
    assert [answer.text for answer in rest] == ['"good"'] * 3


def test_interim_answers_chunk_extensions_and_trailers_of_an_upstream() -> None:
    async def script(talk: Talk) -> None:
        await talk.raw(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")
        await talk.raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\n")
        for piece in GOOD:
            await talk.raw(b"%x;name=value\r\n%b\r\n" % (len(piece), piece))
        await talk.raw(b"0\r\nx-request-id: late\r\nset-cookie: a=b\r\n\r\n")

    with between(Upstream(script)) as url:
        answer = converse(url)
    assert "event: message_stop" in answer.text
    assert not {"x-request-id", "set-cookie", "link"} & set(answer.headers)


@pytest.mark.parametrize(
    "early", [b"garbage\r\n\r\n", b"data: {}\n\n", b"\x00" * 100, b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 50_000]
)
def test_bytes_that_are_not_a_head_are_an_error(early: bytes) -> None:
    async def script(talk: Talk) -> None:
        await talk.raw(early)
        talk.cut()

    with between(Upstream(script)) as url:
        assert converse(url).status_code == 502


@pytest.mark.parametrize("rest", ["0\r\n\r\n", ""])
def test_an_upstream_that_closes_its_half(rest: str) -> None:
    async def script(talk: Talk) -> None:
        await talk.head()
        await talk.send(*GOOD[:1] if not rest else GOOD)
        await talk.raw(rest.encode())
        talk.half_close()
        await talk.wait_for_leave(5)

    with between(Upstream(script)) as url:
        answer = converse(url)
    assert ("event: message_stop" in answer.text) == bool(rest)
    assert ("event: error" in answer.text) == (not rest)


def test_a_client_that_reads_slowly_slows_the_upstream_down() -> None:
    """The proxy buffers a limited amount of data, not the complete response."""
    sent = 0

    async def script(talk: Talk) -> None:
        nonlocal sent
        await talk.head()
        piece = b": " + b"x" * 65_000 + b"\n\n"
        for _ in range(1000):
            await talk.send(piece)
            sent += len(piece)

    with between(Upstream(script), to=None) as url, opened(url) as connection:
        body = json.dumps(ASK | {"messages": []}).encode()
        connection.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        until(lambda: sent)
        time.sleep(0.5)
        before = sent
        for _ in range(5):
            assert connection.recv(1000)
            time.sleep(0.05)
        assert sent - before < 8 * 1024 * 1024
        assert sent < 40_000_000  # sockets hold some megabytes
