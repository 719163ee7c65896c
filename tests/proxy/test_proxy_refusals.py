"""Requests that the proxy rejects before it calls an upstream: each gets a response, is logged and is counted."""

from __future__ import annotations

import json
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
import openai
import pytest

from tests.proxy.test_proxy_threats import raw
from tests.support.servers.proxying import ASK, GOOD, between
from tests.support.servers.upstream import Talk, Upstream, sse

if TYPE_CHECKING:
    from collections.abc import Callable

INVALID = "invalid_request_error"
KEYS = (b"authorization", b"x-api-key")


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Return the access log so far."""
    caplog.set_level(logging.INFO, "streamweld.proxy")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "streamweld.proxy"]


def counted(url: str, name: str) -> dict[str, float]:
    """Return the values of a metric by labels."""
    rows = [row.rsplit(" ", 1) for row in httpx2.get(f"{url}/metrics").text.splitlines() if row.startswith(f"{name}{{")]
    return {labels.removeprefix(name): float(value) for labels, value in rows}


async def empty(talk: Talk) -> None:
    await talk.whole(b"[]")


# --- Paths and methods


@pytest.mark.parametrize(
    ("path", "logged"),
    [
        ("/v1/models%0a", "/v1/models\\n"),
        ("/v1/%0Amodels", "/v1/\\nmodels"),
        ("/v1/models%0d", "/v1/models\\r"),
        ("/v1/%0d%0a127.0.0.1%20status=200", "/v1/\\r\\n127.0.0.1%20status=200"),
        ("/%0a", "/\\n"),
        ("/v1/%00", "/v1/\\x00"),
        ("/v1/%c2%85%e2%80%a8%e2%80%a9x", "/v1/\\x85\\u2028\\u2029x"),
        ("/healthz%0a", "/healthz\\n"),
        ("/metrics%0a", "/metrics\\n"),
        ("/healthz/%0a", "/healthz/\\n"),
        ("/v1/x%0a/", "/v1/x\\n/"),
        ("http://elsewhere.example/v1/models", "http://elsewhere.example/v1/models"),
    ],
)
def test_a_path_that_nobody_can_be_asked_for_is_logged_and_counted(
    path: str, logged: str, lines: Callable[[], list[str]]
) -> None:
    upstream = Upstream(empty)
    with between(upstream) as url:
        answer = raw(url, f"GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode())
        assert counted(url, "streamweld_requests_total") == {'{dialect="none",status="400"}': 1}
        assert counted(url, "streamweld_faults_total") == {'{fault="invalid_path"}': 1}
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"]["code"] == "invalid_path"
    assert upstream.seen == []
    (line,) = lines()
    assert line.startswith(f"method=GET path={logged} status=400 mode=pass outcome=refused fault=invalid_path ")
    assert line.isprintable()


def test_a_path_of_an_api_with_a_control_character_is_refused_in_its_words(lines: Callable[[], list[str]]) -> None:
    with between(Upstream(sse(*GOOD))) as url:
        answer = raw(url, b"POST /v1/%0a/v1/messages HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400 ")
    (line,) = lines()
    assert "path=/v1/\\n/v1/messages status=400" in line


def test_a_method_that_does_not_pass_is_logged_and_counted(lines: Callable[[], list[str]]) -> None:
    upstream = Upstream(empty)
    with between(upstream) as url:
        answer = httpx2.request("OPTIONS", f"{url}/v1/models")
        assert counted(url, "streamweld_requests_total") == {'{dialect="none",status="405"}': 1}
        assert counted(url, "streamweld_faults_total") == {'{fault="invalid_method"}': 1}
    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET, HEAD, PATCH, POST, PUT")
    assert answer.json()["error"]["code"] == "invalid_method"
    assert upstream.seen == []
    (line,) = lines()
    assert line.startswith("method=OPTIONS path=/v1/models status=405 mode=pass outcome=refused fault=invalid_method ")


# --- Headers that are ambiguous or unreadable


def asked(url: str, path: str, *headers: tuple[str, bytes]) -> tuple[int, Any]:
    """Send a POST with exactly these headers. Return the status of the response and its error."""
    body = json.dumps(ASK | {"stream": False}).encode()
    rows = b"".join(b"%s: %s\r\n" % (name.encode(), value) for name, value in headers)
    head = f"POST {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
    answer = raw(url, head.encode() + rows + b"\r\n" + body)
    status, body = int(answer.split(b" ")[1]), answer.partition(b"\r\n\r\n")[2]
    return status, json.loads(body)["error"] if status >= 400 else None


TWICE = [
    *("authorization", "x-api-key", "api-key", "x-goog-api-key", "content-type", "anthropic-version"),
    *("idempotency-key", "openai-beta", "openai-organization", "openai-project"),
]


@pytest.mark.parametrize("second", [b"s3cret-1", b"s3cret-2", b""], ids=["the same", "another", "empty"])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions", "/v1/models"])
def test_a_header_of_which_one_may_stand_is_refused_twice(
    path: str, second: bytes, lines: Callable[[], list[str]]
) -> None:
    upstream = Upstream(empty)
    with between(upstream) as url:
        found = [asked(url, path, (name, b"s3cret-1"), (name.title(), second)) for name in TWICE]
        assert counted(url, "streamweld_faults_total") == {'{fault="repeated_header"}': len(TWICE)}
    messages = [f"{name} must not be sent twice" for name in TWICE]
    if path == "/v1/messages":
        assert found == [(400, {"type": INVALID, "message": message}) for message in messages]
    else:
        rest = {"type": INVALID, "param": None, "code": "repeated_header"}
        assert found == [(400, {"message": message, **rest}) for message in messages]
    assert upstream.seen == []
    for line in lines():
        assert f"path={path} status=400 " in line
        assert " outcome=refused fault=repeated_header " in line
        assert "s3cret" not in line
    assert len(lines()) == len(TWICE)


@pytest.mark.parametrize(
    "value", [b"Bearer k\xc3\xa9y", b"Bearer k\xff", b"Bearer\tkey"], ids=["utf-8", "latin-1", "tab"]
)
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
def test_a_header_that_cannot_be_passed_on_is_refused(path: str, value: bytes, lines: Callable[[], list[str]]) -> None:
    upstream = Upstream(empty)
    names = [*TWICE, "accept", "anthropic-beta"]
    with between(upstream) as url:
        found = [asked(url, path, (name, value)) for name in names]
        assert counted(url, "streamweld_faults_total") == {'{fault="invalid_header"}': len(names)}
    assert [(status, error["type"]) for status, error in found] == [(400, INVALID)] * len(names)
    assert [error["message"] for _, error in found] == [
        f"{name} must contain only printable ASCII characters" for name in names
    ]
    assert upstream.seen == []
    assert [line.split(" fault=")[1].split(" ")[0] for line in lines()] == ["invalid_header"] * len(names)
    assert not [line for line in lines() if "Bearer" in line or not line.isascii()]


def with_two_keys() -> httpx2.Client:
    """A client that sends its key twice, like a program that adds a key to existing ones."""

    def again(request: httpx2.Request) -> None:
        rows = request.headers.raw
        request.headers = httpx2.Headers([*rows, *[row for row in rows if row[0].lower() in KEYS]])

    return httpx2.Client(event_hooks={"request": [again]})


def test_official_clients_raise_their_own_error_for_a_second_key() -> None:
    with between(Upstream(sse(*GOOD))) as url, with_two_keys() as http:
        claude = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0, http_client=http)
        with pytest.raises(anthropic.BadRequestError, match=r"(authorization|x-api-key) must not be sent twice"):
            claude.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "?"}])
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, http_client=http)
        with pytest.raises(openai.BadRequestError, match="authorization must not be sent twice"):
            client.chat.completions.create(model="m", messages=[])


def test_lists_are_joined() -> None:
    """RFC 9110 5.3, for headers that are lists: `accept` (RFC 9110 12.5.1), `tracestate` (W3C), `anthropic-beta`."""
    upstream = Upstream(empty)
    with between(upstream) as url:
        given = [
            ("anthropic-beta", b"a,b"),
            ("Anthropic-Beta", b"c"),
            ("accept", b"text/event-stream"),
            ("accept", b""),
        ]
        given += [
            ("tracestate", b"x=1"),
            ("tracestate", b"y=2"),
            ("accept", b"*/*;q=0.1"),
            ("authorization", b"Bearer k"),
        ]
        assert asked(url, "/v1/chat/completions", *given) == (200, None)
    sent = Counter(name for name, _ in upstream.seen[0].headers)
    assert [name for name, times in sent.items() if times > 1] == []
    found = {
        name: upstream.seen[0].header(name) for name in ("anthropic-beta", "accept", "tracestate", "authorization")
    }
    assert found == {
        "anthropic-beta": "a,b, c",
        "accept": "text/event-stream, */*;q=0.1",
        "tracestate": "x=1, y=2",
        "authorization": "Bearer k",
    }


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_what_only_tells_of_a_client_is_left_out_and_named_in_the_log(
    path: str, lines: Callable[[], list[str]]
) -> None:
    """Repeated informational headers are dropped and logged. Of two `traceparent` headers, neither can be trusted (W3C
    Trace Context).
    """
    upstream = Upstream(empty)
    given = [
        ("traceparent", b"00-1-1-01"),
        ("traceparent", b"00-2-2-01"),
        ("x-request-id", b"\xff"),
        ("x-title", b"\xc3"),
    ]
    given += [
        ("x-stainless-s3cret", b"\xff"),
        ("x-stainless-other", b"\xff"),
        ("user-agent", b"x"),
        ("x-api-key", b"k"),
    ]
    with between(upstream) as url:
        asked(url, path, *given)
    names = {name for name, _ in upstream.seen[0].headers}
    assert "user-agent" in names
    assert not names & {"traceparent", "x-request-id", "x-title", "x-stainless-s3cret"}
    (line,) = lines()
    assert line.split(" dropped=")[1].split(",")[:4] == ["traceparent", "x-request-id", "x-title", "x-stainless-*"]


def test_a_header_that_does_not_pass_may_stand_as_often_as_it_likes() -> None:
    upstream = Upstream(empty)
    with between(upstream) as url:
        given = [("x-forwarded-for", b"1"), ("x-forwarded-for", b"\xff"), ("cookie", b"a=\xff"), ("cookie", b"b")]
        assert asked(url, "/v1/chat/completions", *given, ("content-type", b"application/json")) == (200, None)
    assert {name for name, _ in upstream.seen[0].headers} == {
        "host",
        "accept-encoding",
        "content-length",
        "content-type",
        "via",
    }
