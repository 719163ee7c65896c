"""The threat list, rows A15 to A17 and A19: upstream responses that are not streams, against a proxy."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import time
import tracemalloc
import zlib
from urllib.parse import urlsplit

import pytest
from streamweld.integrations._inflate import SLICE, Inflater

from tests.support.servers.proxying import ASK, GOOD, between, converse
from tests.support.servers.upstream import Talk, Upstream, sse, until
from tests.support.servers.wire import DONE, text


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<!doctype html><html>Sign in</html>", "text/html; charset=utf-8"),
        (b"<!doctype html><html>Sign in</html>", "text/event-stream"),
        (b"Sign in, please.", "text/plain"),
        (gzip.compress(b"<html></html>", mtime=0), "application/octet-stream"),
        (b"", "text/event-stream"),
        (b"", "application/json"),
    ],
)
def test_a15_what_is_no_stream_is_an_error_and_no_empty_answer(body: bytes, kind: str) -> None:
    async def script(talk: Talk) -> None:
        await talk.head(200, kind)
        if body:
            await talk.send(body)
        await talk.end()

    with between(Upstream(script)) as url:
        answer = converse(url)
    assert answer.status_code == 502
    message = answer.json()["error"]["message"]
    assert "status 200" in message
    assert kind in message


def test_a15_an_error_that_is_no_stream_is_told() -> None:
    async def script(talk: Talk) -> None:
        await talk.whole(b'{"error":{"message":"no credit","type":"billing_error"}}')

    with between(Upstream(script)) as url:
        answer = converse(url)
    assert "event: error" in answer.text
    assert "no credit" in answer.text
    assert "message_stop" not in answer.text


def test_a15_json_lines_are_a_stream() -> None:
    lines = b"".join(piece[6:-1] for piece in (text("Hel"), text("lo", "stop")))
    with between(Upstream(sse(lines, kind="application/x-ndjson"))) as url:
        answer = converse(url)
    assert "event: message_stop" in answer.text


def test_a16_a_small_body_does_not_become_a_large_piece() -> None:
    bomb = gzip.compress(bytes(64 * 1024 * 1024))
    tracemalloc.start()
    largest = total = 0
    for piece in Inflater("gzip").feed(bomb):
        largest, total = max(largest, len(piece)), total + len(piece)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (largest, total) == (SLICE, 64 * 1024 * 1024)
    assert peak < 1024 * 1024


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw deflate", "two members"])
def test_a16_an_encoding_that_was_not_asked_for_is_read(encoding: str) -> None:
    plain = b"".join(GOOD)
    raw_deflate = zlib.compressobj(wbits=-15)
    packed = {
        "gzip": gzip.compress(plain),
        "deflate": zlib.compress(plain),
        "raw deflate": raw_deflate.compress(plain) + raw_deflate.flush(),
        "two members": gzip.compress(plain[:20]) + gzip.compress(plain[20:]),
    }[encoding]
    name = "deflate" if "deflate" in encoding else "gzip"
    pieces = [packed[at : at + 7] for at in range(0, len(packed), 7)]
    with between(Upstream(sse(*pieces, content_encoding=name))) as url:
        answer = converse(url)
    assert '"text":"Hello"' in answer.text
    assert "event: message_stop" in answer.text
    assert "content-encoding" not in answer.headers


def test_a16_the_cap_is_for_what_comes_out() -> None:
    bomb = gzip.compress(b": " + b"x" * (16 * 1024 * 1024) + b"\n\n" + b"".join(GOOD))
    with between(Upstream(sse(text("Hi"), content_encoding="identity")), max_stream_bytes=1024 * 1024) as url:
        assert "stream_truncated" in converse(url).text or "truncated" in converse(url).text
    with between(Upstream(sse(bomb, content_encoding="gzip")), max_stream_bytes=1024 * 1024) as url:
        answer = converse(url)
    assert "event: error" in answer.text
    assert "exceeds a limit" in answer.text


def test_a16_an_unknown_encoding_is_refused() -> None:
    with between(Upstream(sse(*GOOD, content_encoding="br"))) as url:
        assert converse(url).status_code == 502


@pytest.mark.parametrize(
    ("timeouts", "trickle"),
    [({"idle_timeout": 0.4}, b""), ({"event_timeout": 0.4}, b":\n"), ({"event_timeout": 0.4}, b"x")],
)
def test_a17_a_stream_that_stalls_ends_as_a_cut_one(timeouts: dict[str, float], trickle: bytes) -> None:
    async def script(talk: Talk) -> None:
        await talk.head()
        await talk.send(text("Hel"))
        while trickle:
            await talk.send(trickle)
            await asyncio.sleep(0.05)
        await talk.wait_for_leave()

    upstream = Upstream(script)
    with between(upstream, **timeouts) as url:
        began = time.monotonic()
        answer = converse(url)
        assert time.monotonic() - began < 5
        until(lambda: upstream.seen[0].gone_at)
    assert "event: error" in answer.text
    assert "message_stop" not in answer.text


def test_a17_a_client_that_takes_nothing_holds_no_upstream() -> None:
    async def script(talk: Talk) -> None:
        await talk.head()
        while True:
            await talk.send(text("x" * 1000) * 50)

    upstream = Upstream(script)
    with between(upstream, client_timeout=0.5) as url:
        parts = urlsplit(url)
        body = json.dumps(ASK).encode()
        with socket.create_connection((parts.hostname, parts.port)) as connection:
            connection.sendall(
                b"POST /v1/messages HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
            )
            until(lambda: upstream.seen and upstream.seen[0].gone_at)


def test_a17_a_request_that_never_comes_is_given_up() -> None:
    with between(Upstream(sse(*GOOD)), idle_timeout=0.3) as url:
        parts = urlsplit(url)
        with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
            connection.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: h\r\nContent-Length: 50\r\n\r\n{")
            assert connection.recv(100).startswith(b"HTTP/1.1 408 ")


def test_a_request_whose_bytes_trickle_in_is_given_up() -> None:
    """Each byte arrives in time, but together they would take too long."""
    with between(Upstream(sse(*GOOD)), idle_timeout=0.5) as url:
        parts = urlsplit(url)
        with socket.create_connection((parts.hostname, parts.port), timeout=0.05) as connection:
            connection.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n{")
            assert answer_while_sending(connection, b" ", 200).startswith(b"HTTP/1.1 408 ")


def test_a_slow_request_with_enough_bytes_is_read() -> None:
    with between(Upstream(sse(*GOOD)), idle_timeout=0.5) as url:
        parts = urlsplit(url)
        body = json.dumps(ASK).encode() + b" " * 9_900
        pieces = [body[at : at + 500] for at in range(0, len(body), 500)]
        with socket.create_connection((parts.hostname, parts.port), timeout=20) as connection:
            connection.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(body))
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(0.05)
            assert connection.recv(100).startswith(b"HTTP/1.1 200 ")


def answer_while_sending(connection: socket.socket, piece: bytes, times: int) -> bytes:
    """Send the piece repeatedly. Return the bytes that the peer sends, if any."""
    for _ in range(times):
        try:
            connection.sendall(piece)
            return connection.recv(100)
        except TimeoutError:
            continue
    return b""


@pytest.mark.parametrize(
    "kind",
    ["text/event-stream;charset=windows-1252", "TEXT/Event-Stream ; x=y", "text/plain", "application/json", None, "x"],
)
def test_a19_what_a_type_claims_changes_no_byte(kind: str | None) -> None:
    async def script(talk: Talk) -> None:
        await talk.head(200, kind)
        await talk.send(*[piece.replace(b"Hello", "Grüße".encode()) for piece in GOOD])
        await talk.end()

    with between(Upstream(script)) as url:
        answer = converse(url)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert '"text":"Grüße"' in answer.content.decode("utf-8")
    assert "event: message_stop" in answer.text


def test_headers_that_are_no_text_break_nothing() -> None:
    async def script(talk: Talk) -> None:
        await talk.raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/\xff\xe6\xbc\xa2\r\n")
        await talk.raw(b"x-request-id: \xe6\xbc\xa2\r\nretry-after: 1\r\nrequest-id: a\r\nRequest-Id: b\r\n\r\n")
        await talk.send(*(GOOD if len(upstream.seen) == 1 else [b"<html>"]))
        await talk.end()

    upstream = Upstream(script)
    with between(upstream) as url:
        answer = converse(url, headers={"x-request-id": b"\xff\xe6", "user-agent": "x"})
        page = converse(url)
    assert "event: message_stop" in answer.text
    assert "x-request-id" not in answer.headers
    assert answer.headers["retry-after"] == "1"
    assert answer.headers["request-id"] == "a, b"  # neither of the two is chosen
    assert upstream.seen[0].header("x-request-id") is None
    assert (page.status_code, "no content type" in page.text) == (502, True)


def test_nobody_on_the_way_may_hold_a_stream() -> None:
    with between(Upstream(sse(*GOOD, cache_control="public", etag="x", content_length_="3"))) as url:
        answer = converse(url)
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["cache-control"] == "no-cache, no-transform"
    assert not {"etag", "content-length"} & set(answer.headers)
    assert DONE.strip() not in answer.content
