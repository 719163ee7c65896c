"""Which requests the proxy accepts: `Host`, `Origin`, the client token, and requests that loop back to it."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anthropic
import httpx2
import openai
import pytest
from starlette.testclient import TestClient
from streamweld.errors import UsageError
from streamweld.integrations.proxy import ProxyConfig, create_app

from tests.proxy.test_proxy import ASKED, CHAT, command
from tests.proxy.test_proxy_threats import raw
from tests.support.servers.proxying import ASK, GOOD, between, converse
from tests.support.servers.upstream import Talk, Upstream, sse
from tests.support.servers.wire import end, text

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "t0ken-of-this-proxy"
PATHS = ["/v1/messages", "/v1/chat/completions", "/v1/models", "/healthz", "/metrics"]


async def empty(talk: Talk) -> None:
    await talk.whole(b"[]")


@pytest.fixture(scope="module")
def plain() -> Iterator[str]:
    """The address of a proxy with default settings, whose upstream is never called."""
    upstream = Upstream(empty)
    with between(upstream, allow_hosts=()) as url:
        yield url
    assert upstream.seen == []


@pytest.fixture(scope="module")
def locked() -> Iterator[str]:
    """The address of a proxy with a client token."""
    upstream = Upstream(empty)
    with between(upstream, token=TOKEN) as url:
        yield url
    assert upstream.seen == []


def get(url: str, path: str, *lines: str) -> bytes:
    return raw(url, "\r\n".join([f"GET {path} HTTP/1.1", *lines, "Connection: close", "", ""]).encode())


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ")[1])


# --- Host


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8787", "localhost.evil.example", "127.0.0.1.evil.example", "localhostx"),
        *("192.0.2.1", "[2001:db8::1]", "0.0.0.0", "[::]", "", "127.0.0.1@evil.example", "evil.example/127.0.0.1"),
        *("[::1", "[evil.example]", "xn--lcalhost-4za", "127.1", "2130706433", "[::ffff:192.0.2.1]"),
    ],
)
def test_a_host_that_is_not_the_proxys_is_refused(plain: str, host: str, path: str) -> None:
    """In a DNS rebinding attack, the attacker's host name resolves to this machine and is the value of `Host`."""
    answer = get(plain, path, f"Host: {host}")
    assert status_of(answer) in (421, 400)  # h11 rejects values that are not a host
    assert (status_of(answer) == 421) == (b'"code":"host_not_allowed"' in answer or path == "/v1/messages")


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST:1", "localhost.:8787", "127.0.0.1", "127.0.0.2:8787", "[::1]", "[0:0:0::1]:8787"),
        "[::ffff:127.0.0.1]",
    ],
)
def test_loopback_names_are_the_proxys(plain: str, host: str) -> None:
    assert status_of(get(plain, "/healthz", f"Host: {host}")) == 200


@pytest.mark.parametrize(
    ("allowed", "host", "status"),
    [
        (("llm.example",), "LLM.example:443", 200),
        (("LLM.example.",), "llm.example", 200),
        (("llm.example",), "x.llm.example", 421),
        (("*.llm.example",), "x.y.LLM.example", 200),
        (("*.llm.example",), "llm.example", 421),
        (("*.llm.example",), "evilllm.example", 421),
        (("192.0.2.7", "2001:db8::7"), "[2001:DB8:0::7]:80", 200),
    ],
)
def test_hosts_that_are_allowed(allowed: tuple[str, ...], host: str, status: int) -> None:
    with between(Upstream(empty), allow_hosts=allowed) as url:
        assert status_of(get(url, "/v1/models", f"Host: {host}")) == status


def test_a_request_without_a_host_or_with_two_is_refused() -> None:
    with between(Upstream(empty), allow_hosts=()) as url:
        none = raw(url, b"GET /v1/models HTTP/1.0\r\n\r\n")
        two = get(url, "/v1/models", "Host: localhost", "Host: evil.example")
    assert (status_of(none), status_of(two)) == (421, 400)


def test_the_address_that_a_server_listens_on_is_the_proxys() -> None:
    """Starlette's test client addresses its server as `testserver`; other clients use the server's address."""
    app = create_app(ProxyConfig("http://127.0.0.1:9"))
    with TestClient(app) as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/healthz", headers={"host": "other"}).status_code == 421


def test_a_refused_host_is_told_in_the_words_of_the_api_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "streamweld.proxy")
    with between(Upstream(sse(*GOOD)), allow_hosts=()) as url:
        answer = converse(url, headers={"host": "evil.example"})
        metrics = httpx2.get(f"{url}/metrics").text
    assert answer.status_code == 421
    message = answer.json()["error"].pop("message")
    assert "'evil.example'" in message
    assert "--allow-host" in message
    assert answer.json()["type"] == "error"
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert 'streamweld_faults_total{fault="host_not_allowed"} 1.0' in metrics
    (line,) = [record.getMessage() for record in caplog.records if record.name == "streamweld.proxy"]
    assert "method=POST path=/v1/messages status=421 " in line
    assert "outcome=refused fault=host_not_allowed" in line


# --- Origin


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost:3000", "file://", "", "http://127.0.0.1:8787"]
)
def test_requests_of_web_pages_are_refused(plain: str, origin: str, path: str) -> None:
    answer = httpx2.request("GET", plain + path, headers={"origin": origin})
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "origin_not_allowed"
    assert "access-control-allow-origin" not in answer.headers


def test_an_allowed_page_can_ask_and_read() -> None:
    upstream = Upstream(sse(*GOOD))
    page = {"origin": "http://localhost:3000"}
    asks = page | {"access-control-request-method": "POST", "access-control-request-headers": "authorization,x-y"}
    with between(upstream, to=None, allow_origins=("HTTP://localhost:3000/",), token=TOKEN) as url:
        path = f"{url}/v1/chat/completions"
        preflight = httpx2.options(path, headers=asks)
        other = httpx2.options(path, headers=asks | {"origin": "http://localhost:3001"})
        answer = httpx2.post(path, json=CHAT, headers=page | {"authorization": f"Bearer {TOKEN}"})
        tokenless = httpx2.post(path, json=CHAT, headers=page)
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == page["origin"]
    assert "POST" in preflight.headers["access-control-allow-methods"]
    assert "x-y" in preflight.headers["access-control-allow-headers"]
    assert (other.status_code, "access-control-allow-origin" in other.headers) == (403, False)
    assert answer.content == b"".join(GOOD)
    assert answer.headers["access-control-allow-origin"] == page["origin"]
    assert (tokenless.status_code, tokenless.headers["access-control-allow-origin"]) == (401, page["origin"])
    assert len(upstream.seen) == 1


# --- The token


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions", "/v1/models", "/metrics"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer"},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": f"Bearer {TOKEN[:-1]}"},
        {"authorization": TOKEN},
        {"authorization": f"Basic {TOKEN}"},
        {"x-api-key": TOKEN.upper()},
        {"cookie": TOKEN},
        {"x-streamweld-token": "other", "x-api-key": TOKEN},
    ],
)
def test_without_the_token_nothing_is_asked(locked: str, headers: dict[str, str], path: str) -> None:
    method = "GET" if path in ("/metrics", "/v1/models") else "POST"
    answer = httpx2.request(method, locked + path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"]["type"] == (
        "authentication_error" if path == "/v1/messages" else "invalid_request_error"
    )


def test_health_needs_no_token_and_a_query_is_no_place_for_it(locked: str) -> None:
    assert httpx2.get(f"{locked}/healthz").status_code == 200
    assert httpx2.get(f"{locked}/v1/models?key={TOKEN}").status_code == 401


@pytest.mark.parametrize(
    ("headers", "passed"),
    [
        ({"authorization": f"Bearer {TOKEN}"}, {}),
        ({"authorization": f"bearer  {TOKEN}"}, {}),
        ({"x-api-key": TOKEN}, {}),
        ({"x-goog-api-key": TOKEN}, {}),
        ({"api-key": TOKEN}, {}),
        ({"x-streamweld-token": TOKEN}, {}),
        ({"x-streamweld-token": TOKEN, "authorization": "Bearer upstream"}, {"authorization": "Bearer upstream"}),
        ({"x-streamweld-token": TOKEN, "x-api-key": TOKEN, "api-key": "upstream"}, {"api-key": "upstream"}),
        ({"authorization": f"Bearer {TOKEN}", "x-api-key": "upstream"}, {"x-api-key": "upstream"}),
        ({"authorization": "Bearer upstream", "x-api-key": TOKEN}, {"authorization": "Bearer upstream"}),
    ],
)
def test_the_token_opens_and_does_not_go_on(headers: dict[str, str], passed: dict[str, str]) -> None:
    upstream = Upstream(empty)
    with between(upstream, token=TOKEN, to=None) as url:
        assert httpx2.get(f"{url}/v1/models", headers=headers).status_code == 200
        assert httpx2.get(f"{url}/metrics", headers=headers).status_code == 200
    (asked,) = upstream.seen
    keys = ("authorization", "x-api-key", "x-goog-api-key", "api-key", "x-streamweld-token")
    assert {name: value for name, value in asked.headers if name in keys} == passed
    assert TOKEN not in repr(asked)


def test_the_upstreams_key_is_put_where_its_api_reads_it_beside_a_token() -> None:
    upstream = Upstream(sse(*GOOD))
    with between(upstream, token=TOKEN) as url:
        assert converse(url, headers={"x-streamweld-token": TOKEN, "x-api-key": "upstream"}).status_code == 200
        assert converse(url, headers={"x-api-key": TOKEN}).status_code == 200
    assert [asked.header("authorization") for asked in upstream.seen] == ["Bearer upstream", None]


def test_the_token_works_as_the_api_key_of_official_clients() -> None:
    upstream = Upstream(sse(text("Hi"), end("stop")))
    with between(upstream, token=TOKEN) as url:
        with openai.OpenAI(base_url=f"{url}/v1", api_key=TOKEN, max_retries=0) as chat:
            assert list(chat.chat.completions.create(model="m", messages=[], stream=True))
        with anthropic.Anthropic(base_url=url, api_key=TOKEN, max_retries=0) as claude:
            assert list(claude.messages.create(**ASKED, stream=True))
        with (
            anthropic.Anthropic(base_url=url, api_key="other", max_retries=0) as claude,
            pytest.raises(anthropic.AuthenticationError, match="requires its token"),
        ):
            claude.messages.create(**ASKED)
    assert len(upstream.seen) == 2
    assert TOKEN not in repr(upstream.seen)


def test_the_token_is_in_no_log_and_no_representation(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    config = ProxyConfig("http://127.0.0.1:9", token=TOKEN)
    with between(Upstream(empty), token=TOKEN) as url:
        for key in (TOKEN, f"{TOKEN}x"):
            httpx2.get(f"{url}/v1/models", headers={"authorization": f"Bearer {key}"})
        metrics = httpx2.get(f"{url}/metrics", headers={"x-api-key": TOKEN}).text
    assert TOKEN not in caplog.text + repr(config) + metrics


# --- Loops


def test_a_request_that_comes_back_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """The upstream of the proxy is the proxy itself under another name. One request causes one loop and one error."""
    caplog.set_level(logging.INFO, "streamweld.proxy")
    own: list[str] = []

    async def back(talk: Talk) -> None:
        """Relay the request with its `Via`, as other relays do."""
        via = talk.asked.header("via") or ""
        async with httpx2.AsyncClient() as client:
            answer = await client.get(own[0] + talk.asked.target, headers={"via": f"{via}, 1.1 relay"})
        await talk.whole(answer.content, answer.status_code)

    upstream = Upstream(back)
    with between(upstream, to=None) as url:
        own.append(url)
        answer = httpx2.get(f"{url}/v1/models")
    assert (answer.status_code, answer.json()["error"]["code"]) == (508, "loop_detected")
    assert len(upstream.seen) == 1
    lines = [record.getMessage() for record in caplog.records if record.name == "streamweld.proxy"]
    assert [line.split(" status=")[1].split(" ")[0] for line in lines] == ["508", "508"]
    assert sorted("fault=loop_detected" in line for line in lines) == [False, True]


def test_the_name_in_a_via_is_compared_without_case() -> None:
    """Host names are case-insensitive, so a relay may change their case."""
    upstream = Upstream(empty)
    with between(upstream) as url:
        httpx2.get(f"{url}/v1/models")
        own = upstream.seen[0].header("via") or ""
        assert httpx2.get(f"{url}/v1/models", headers={"via": own.upper()}).status_code == 508


def test_every_request_carries_a_via_and_keeps_the_one_it_came_with() -> None:
    upstream = Upstream(empty)
    with between(upstream) as first, between(upstream) as second:
        httpx2.get(f"{first}/v1/models")
        httpx2.get(f"{first}/v1/models", headers=[("via", "1.0 a"), ("via", "2 b (x)"), ("via", b"1.1 \xff")])
        httpx2.get(f"{second}/v1/models")
        httpx2.post(f"{second}/v1/messages", json={**ASK, "stream": False})
    alone, after, other, converted = [asked.header("via") or "" for asked in upstream.seen]
    assert alone.startswith("1.1 streamweld-")
    assert after == f"1.0 a, 2 b (x), {alone}"
    assert other == converted != alone


# --- The command


REFUSED = [
    (["--host", "0.0.0.0"], "set a token"),
    (["--host", "::"], "set a token"),
    (["--host", "192.0.2.1"], "set a token"),
    (["--host", "0"], "set a token"),
    (["--host", ""], "host must not be empty"),
    (["--host", "no-such-host.invalid"], "cannot be resolved"),
    (["--host", "a b"], "cannot be resolved"),
    (["--port", "65536"], "65536"),
    (["--to", "grpc"], "'grpc': it must be one of"),
    (["--to", "chat", "--gateway", "nobody"], "nobody"),
    (["--allow-host", "*"], "a token is required"),
    (["--upstream", "http://127.0.0.1:8787/v1", "--port", "8787"], "the address that the proxy listens on"),
    (["--upstream", "http://localhost:8787", "--port", "8787"], "the address that the proxy listens on"),
    (["--upstream", "http://[::ffff:127.0.0.1]:8787", "--port", "8787"], "the address that the proxy listens on"),
    (["--upstream", "http://0.0.0.0:8787", "--port", "8787"], "the address that the proxy listens on"),
    (["--upstream", "http://127.0.0.1:8787", "--port", "8787", "--host", "0.0.0.0", "--token", "t"], "listens on"),
    (["--upstream", "http://127.0.0.1", "--port", "80"], "the address that the proxy listens on"),
]


@pytest.mark.parametrize(("args", "said"), REFUSED, ids=[" ".join(args) for args, _ in REFUSED])
def test_a_configuration_that_cannot_be_is_refused_at_start(args: list[str], said: str) -> None:
    upstream = [] if "--upstream" in args else ["--upstream", "http://gateway.example"]
    with command(*upstream, *args) as (process, _, lines):
        assert process.wait(30) == 2
    (told,) = [line for line in lines if said in line]
    assert told.startswith(("streamweld: ", "Error: "))
    assert not any("Traceback" in line for line in lines)


def test_a_host_that_others_reach_is_served_with_a_token_and_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMWELD_PROXY_TOKEN", TOKEN)
    upstream = Upstream(sse(*GOOD))
    with upstream.serving(), command("--upstream", upstream.url, "--host", "0.0.0.0") as (_, url, lines):
        local = f"http://127.0.0.1:{urlsplit(url).port}/v1/chat/completions"
        refused = httpx2.post(local, json=CHAT)
        answer = httpx2.post(local, json=CHAT, headers={"authorization": f"Bearer {TOKEN}"})
    assert (refused.status_code, answer.status_code, len(upstream.seen)) == (401, 200, 1)
    (warning,) = [line for line in lines if "WARNING" in line]
    assert "other machines can reach 0.0.0.0" in warning
    assert TOKEN not in "".join(lines)


def test_a_token_is_not_needed_where_only_this_machine_reaches_it() -> None:
    with command("--upstream", "http://127.0.0.1:9", "--host", "localhost") as (_, url, lines):
        assert httpx2.get(f"{url}/metrics").status_code == 200
    assert not any("WARNING" in line for line in lines)


@pytest.mark.parametrize(
    "options",
    [
        {"upstream": "http://h:65536"},
        {"upstream": "http://h:x"},
        {"upstream": "http://h:0"},
        {"to": "grpc"},
        {"gateway": "openrouter"},
        {"to": "chat", "gateway": "nobody"},
        {"policy": "loose"},
        {"token": ""},
        {"token": "t\u00f6ken"},
        {"token": "a b"},
        {"allow_hosts": "llm.example"},
        {"allow_hosts": ("*",)},
        {"allow_hosts": ("http://llm.example",)},
        {"allow_hosts": ("llm.example:80",)},
        {"allow_origins": ("*",)},
        {"allow_origins": ("app.example",)},
        {"allow_origins": ("https://app.example/path",)},
        {"allow_hosts": ("",)},
        {"allow_origins": ("null ",)},
        {"allow_origins": ("https://",)},
        {"allow_origins": ("https://a\n.example",)},
        {"max_body_bytes": 1.5},
        {"max_stream_bytes": 2**63},
        {"connect_timeout": float("inf")},
    ],
)
def test_options_that_cannot_be(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        ProxyConfig(**{"upstream": "http://gateway.example", **options})


def test_any_host_and_origin_with_a_token() -> None:
    with between(Upstream(empty), token=TOKEN, allow_hosts=("*",), allow_origins=("*",)) as url:
        lines = ["Host: any.example", "Origin: https://evil.example"]
        assert status_of(get(url, "/v1/models", *lines)) == 401
        answer = get(url, "/v1/models", *lines, f"X-Api-Key: {TOKEN}")
    assert status_of(answer) == 200
    assert b"access-control-allow-origin: *" in answer
    assert json.loads(answer.partition(b"\r\n\r\n")[2].split(b"\r\n")[1]) == []
