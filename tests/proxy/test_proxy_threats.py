"""The threat list, rows G1 to G11, against a proxy and real sockets."""

from __future__ import annotations

import json
import logging
import re
import socket
import time
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamweld.errors import UsageError
from streamweld.integrations.proxy import ProxyConfig
from streamweld.integrations.proxy.names import unnamed
from streamweld.integrations.proxy.routes import is_safe, request_path, target_of

from tests.support.servers.command import EVIL
from tests.support.servers.proxying import ASK, GOOD, between, converse
from tests.support.servers.upstream import Talk, Upstream, sse, until
from tests.support.servers.wire import end, event, text

if TYPE_CHECKING:
    from pathlib import Path


def raw(url: str, request: bytes) -> bytes:
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece
    return answer


# --- G1 to G4: the upstream of a request, and the forwarded parts


def test_g1_a_client_does_not_choose_the_upstream() -> None:
    upstream, elsewhere = Upstream(sse(*GOOD)), Upstream(sse(*GOOD))
    with elsewhere.serving(), between(upstream) as url:
        host = urlsplit(elsewhere.url).netloc
        told = {"host": host, "x-forwarded-host": host, "forwarded": f"host={host}", "x-upstream": elsewhere.url}
        body = ASK | {"api_base": elsewhere.url, "base_url": elsewhere.url}
        answer = httpx2.post(f"{url}/v1/messages?api_base={elsewhere.url}", json=body, headers=told)
        absolute = raw(
            url, f"GET {elsewhere.url}/v1/models HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
        )
        double = raw(url, f"GET //{host}/v1/models HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert answer.status_code == 200
    assert absolute.startswith(b"HTTP/1.1 400 ")
    assert double.startswith(b"HTTP/1.1 400 ")
    assert elsewhere.seen == []
    (asked,) = upstream.seen
    assert asked.header("host") == urlsplit(upstream.url).netloc
    assert not [name for name, _ in asked.headers if name.startswith(("x-forwarded", "forwarded", "x-upstream"))]
    assert host.encode() not in asked.body
    assert asked.target == "/v1/chat/completions"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_g2_a_redirect_is_not_followed_and_not_told(status: int) -> None:
    elsewhere = Upstream(sse(*GOOD))

    async def script(talk: Talk) -> None:
        await talk.whole(b"", status, location=f"{elsewhere.url}/v1/chat/completions")

    with elsewhere.serving(), between(Upstream(script)) as url:
        answer = converse(url, headers={"x-api-key": "secret"}, follow_redirects=True)
    assert (answer.status_code, answer.json()["error"]["type"]) == (502, "api_error")
    assert "location" not in answer.headers
    assert elsewhere.seen == []


def test_g3_only_listed_headers_pass() -> None:
    async def script(talk: Talk) -> None:
        headers = {
            "set_cookie": "a=b",
            "connection": "keep-alive, x-request-id",
            "x_request_id": "r",
            "retry_after": "1",
        }
        await talk.head(200, "application/json", server="s", keep_alive="timeout=5", trailer="x", **headers)
        await talk.send(b"{}")
        await talk.end()

    upstream = Upstream(script)
    told = {"cookie": "c=d", "te": "trailers", "connection": "keep-alive, x-stainless-os", "x-stainless-os": "L"}
    told |= {"x-stainless-lang": "python", "accept-encoding": "br", "proxy-authorization": "p", "upgrade": "h2c"}
    with between(upstream) as url:
        answer = httpx2.get(f"{url}/v1/models", headers=told | {"authorization": "Bearer k"})
    sent = dict(upstream.seen[0].headers)
    assert sent == {
        "host": urlsplit(upstream.url).netloc,
        "accept": "*/*",
        "accept-encoding": "identity",
        "via": sent["via"],
        "authorization": "Bearer k",
        "user-agent": sent["user-agent"],
        "x-stainless-lang": "python",
    }
    assert set(answer.headers) == {"content-type", "date", "transfer-encoding", "retry-after"}


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Content-Length: +5\r\n",
        "X-Request-Id: a\r\n\tfolded: b\r\nContent-Length: x\r\n",
    ],
)
def test_g3_requests_that_can_be_read_in_two_ways_reach_nobody(lines: str) -> None:
    upstream = Upstream(sse(*GOOD))
    body = b"5\r\nhello\r\n0\r\n\r\nGET /v1/smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
    with between(upstream) as url:
        answer = raw(url, f"POST /v1/models HTTP/1.1\r\nHost: h\r\n{lines}\r\n".encode() + body)
    assert upstream.seen == []
    assert answer.split(b" ")[1] in (b"400", b"501")
    assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    "lines", [b"content-length: 2\r\ncontent-length: 3\r\n", b"content-length: 2\r\ntransfer-encoding: chunked\r\n"]
)
def test_g3_answers_that_can_be_read_in_two_ways_reach_nobody(lines: bytes) -> None:
    async def script(talk: Talk) -> None:
        await talk.raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n" + lines + b"\r\n{}}")
        talk.cut()

    with between(Upstream(script)) as url:
        assert httpx2.get(f"{url}/v1/models").status_code == 502


@given(st.text(st.characters(codec="utf-8", include_characters="/.\\@:?#%"), max_size=30))
def test_g4_no_path_leads_to_another_host(path: str) -> None:
    written = f"/{path}".partition("?")[0]
    # The forms in which a server passes the path: only decoded, or also raw, with or without escapes.
    for asked, raw in (("/" + path, None), (unquote(written), written.encode()), (written, quote(written).encode())):
        told, sent = request_path(asked, raw)
        assert told == asked
        if is_safe(told):
            made = urlsplit(target_of("http://gateway.example:81/base", sent))
            assert (made.scheme, made.netloc, made.query, made.fragment) == ("http", "gateway.example:81", "", "")
            assert unquote(made.path) == "/base" + told
            assert ".." not in unquote(made.path).split("/")


@pytest.mark.parametrize(
    "upstream",
    [
        *("gateway.example", "ftp://gateway.example", "http://", "http://u:p@gateway.example", "http://g.example?x=1"),
        *(
            "http://g.example/#x",
            "http://g.example:x/",
            "file:///etc/passwd",
            "http://g.example/ x",
            "http://g\n.example",
        ),
    ],
)
def test_g4_an_upstream_is_a_plain_address(upstream: str) -> None:
    with pytest.raises(UsageError, match="upstream must") as told:
        ProxyConfig(upstream)
    assert "u:p" not in str(told.value)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/chat/completions/", "/v1/responses", "/api/v1/messages"])
def test_an_upstream_is_a_base_url(path: str) -> None:
    """The path of the client's request is appended to the upstream URL, so an endpoint's path would be repeated."""
    with pytest.raises(UsageError, match="the base URL"):
        ProxyConfig(f"http://gateway.example{path}")


# --- G5 and G9: which data are kept


def test_g5_no_credential_and_no_payload_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    secrets = ["s3cret-key", "s3cret-cookie", "s3cret-query", "s3cret-question", "s3cret-answer", "s3cret-error"]
    body = ASK | {"messages": [{"role": "user", "content": "s3cret-question"}]}
    headers = {"x-api-key": "s3cret-key", "cookie": "s3cret-cookie"}

    async def script(talk: Talk) -> None:
        if len(upstream.seen) == 1:
            await sse(text("s3cret-answer"), event({"error": {"message": "s3cret-error"}}))(talk)
        elif len(upstream.seen) == 2:
            await talk.whole(b"<html>s3cret-answer</html>", kind="text/html")
        else:
            talk.cut()

    upstream = Upstream(script)
    config = ProxyConfig("http://127.0.0.1:9", to="chat")
    with between(upstream) as url:
        for _ in range(3):
            httpx2.post(f"{url}/v1/messages?key=s3cret-query", json=body, headers=headers)
        metrics = httpx2.get(f"{url}/metrics").text
    told = [record.getMessage() for record in caplog.records if record.name == "streamweld.proxy"]
    assert [line.split(" status=")[1].split(" ")[0] for line in told] == ["200", "502", "502"]
    everything = caplog.text + metrics + repr(config)
    assert [secret for secret in secrets if secret in everything] == []


def test_g9_what_is_logged_moves_no_terminal(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with between(Upstream(sse(*GOOD))) as url:
        httpx2.get(url + "/v1/" + "".join(f"%{byte:02x}" for byte in (EVIL + " status=200").encode()))
    (line,) = [record.getMessage() for record in caplog.records if record.name == "streamweld.proxy"]
    assert line.isprintable()
    assert line.isascii()
    assert line.count("status=") == 2
    assert " status=400 " in line


# --- G6 and G7


@pytest.mark.parametrize("when", ["before_the_head", "before_an_event", "between_events", "while_it_floods"])
def test_g6_the_upstream_is_left_when_the_client_leaves(when: str) -> None:
    async def script(talk: Talk) -> None:
        if when != "before_the_head":
            await talk.head()
        if when == "between_events":
            await talk.send(text("Hello"))
        if when == "while_it_floods":
            while True:
                await talk.send(text("x" * 1000) * 50)
        await talk.wait_for_leave()

    upstream = Upstream(script)
    with between(upstream) as url:
        parts = urlsplit(url)
        body = json.dumps(ASK).encode()
        connection = socket.create_connection((parts.hostname, parts.port))
        connection.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        until(lambda: upstream.seen)
        if when in ("between_events", "while_it_floods"):
            assert connection.recv(100).startswith(b"HTTP/1.1 200 OK")
        else:
            time.sleep(0.2)
        left = time.monotonic()
        connection.close()
        until(lambda: upstream.seen[0].gone_at)
        assert upstream.seen[0].gone_at is not None
        assert upstream.seen[0].gone_at - left < 1
        until(lambda: "client_gone" in httpx2.get(f"{url}/metrics").text or when.startswith("before_the_head"))
        assert "streamweld_streams_open 0.0" in httpx2.get(f"{url}/metrics").text


def test_g7_a_request_that_is_too_long_is_not_read() -> None:
    upstream = Upstream(sse(*GOOD))
    with between(upstream, max_body_bytes=10_000) as url:
        shown = raw(url, b"POST /v1/messages HTTP/1.1\r\nHost: h\r\nContent-Length: 10000000000\r\n\r\n{")
        chunked = httpx2.post(f"{url}/v1/messages", content=(b"x" * 1000 for _ in range(20)))
        inside = httpx2.post(f"{url}/v1/messages", json=ASK)
    assert shown.startswith(b"HTTP/1.1 413 ")
    assert (chunked.status_code, chunked.json()["error"]["type"]) == (413, "request_too_large")
    assert inside.status_code == 200
    assert len(upstream.seen) == 1


# --- G8, G10 and G11: upstream responses


def test_g8_nothing_of_a_page_reaches_a_client() -> None:
    page = b"<html><script>alert(1)</script><img src=x onerror=alert(1)></html>"

    async def script(talk: Talk) -> None:
        await talk.whole(page, kind="text/html")

    with between(Upstream(script)) as url:
        answer = converse(url)
    assert answer.status_code == 502
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "alert" not in answer.text


def test_g10_events_of_no_dialect_reach_nobody() -> None:
    evil = b'event: execute\ndata: {"type":"execute","code":"alert(1)"}\n\n'
    with between(Upstream(sse(text("Hello"), evil, end("stop")))) as url:
        answer = converse(url)
    assert "execute" not in answer.text
    assert '"text":"Hello"' in answer.text
    assert "event: message_stop" in answer.text


@pytest.mark.parametrize("end_of_line", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("path", ["chat/completions", "messages", "responses"])
def test_g10_names_that_an_api_does_not_have_are_taken_off(path: str, end_of_line: bytes) -> None:
    lines = [
        b"event: execute",
        b'data: {"type":"event: execute","choices":[]}',
        b"",
        b"event:execute",
        b": x",
        b"",
        b"",
    ]
    evil = end_of_line.join(lines)
    with between(Upstream(sse(b"\xef\xbb\xbf" + evil, evil, GOOD[0])), to=None) as url:
        answer = httpx2.post(f"{url}/v1/{path}", json=ASK)
    lines_out = re.split(rb"\r\n|\r|\n", answer.content)
    assert not [line for line in lines_out if line.lstrip(b"\xef\xbb\xbf").startswith(b"event:") and b"execute" in line]
    assert answer.content.count(b'"type":"event: execute"') == 2


@pytest.mark.parametrize(
    ("dialect", "names"),
    [
        ("anthropic", ["message_start", "content_block_delta", "message_stop", "ping", "error"]),
        ("responses", ["response.created", "response.output_text.delta", "response.completed", "error", "keepalive"]),
        ("chat", ["error", "message"]),
    ],
)
def test_g10_the_apis_own_names_stay(dialect: str, names: list[str]) -> None:
    blocks = b"".join(b"event: %s\ndata: {}\n\n" % name.encode() for name in names)
    assert unnamed(dialect)(blocks) == blocks
    assert unnamed(dialect)(blocks.replace(b"event: ", b"event: x")) == b"data: {}\n\n" * len(names)


def test_g11_no_path_leaves_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    upstream = Upstream(sse(event({"id": "../../evil", "choices": [{"index": 0, "delta": {"content": "x"}}]}), *GOOD))
    with between(upstream) as url:
        paths = ["/v1/..%2f..%2fadmin", "/v1/%2e%2e/admin", "/..%5cadmin", "/v1//admin", "/v1/./x", "/v1/%00"]
        found = [
            raw(url, f"GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode()).split(b" ")[1]
            for path in paths
        ]
        assert converse(url).status_code == 200
    assert found == [b"400"] * len(paths)
    assert [asked.target for asked in upstream.seen] == ["/v1/chat/completions"]
    assert list(tmp_path.iterdir()) == []
