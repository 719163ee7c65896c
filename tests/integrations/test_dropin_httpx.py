"""The hook and the transport with `httpx` and `httpx2`, sync and async, over the loopback interface."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from typing import TYPE_CHECKING, Any

import brotli
import httpx
import httpx2
import pytest
import streamweld as sw
from streamweld.integrations.httpx import (
    AsyncRepairTransport,
    RepairTransport,
    async_repair_hook,
    repair,
    repair_hook,
)

from tests.integrations.dropin.server import Answer, Gateway
from tests.integrations.dropin.streams import body_of, cells, frame_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

FAMILIES = pytest.mark.parametrize("family", [httpx, httpx2], ids=["httpx", "httpx2"])
CHAT = {cell["name"]: cell for cell in cells("chat")}
MESSAGES = {cell["name"]: cell for cell in cells("messages")}
CLEAN = body_of(CHAT["clean"])
BROKEN = body_of(CHAT["b"])
STREAM = {"stream": True}
PATH = "/v1/chat/completions"
JSON = {"content-type": "application/json"}
POLICY = sw.Policy(actions={"index_missing": "raise"})


def calls_of(body: bytes) -> list[tuple[str, Any]]:
    """Read the calls by joining fragments by index, as the clients do, because streamweld's own parser would repair
    them again.
    """
    calls: dict[int, list[str]] = {}
    for line in body.decode().splitlines():
        if line.startswith("data: {"):
            for choice in json.loads(line[6:]).get("choices", []):
                for piece in choice["delta"].get("tool_calls") or []:
                    call = calls.setdefault(piece["index"], ["", ""])
                    call[0] += piece.get("id") or ""
                    call[1] += piece["function"].get("arguments") or ""
    return [(call_id, json.loads(arguments)) for call_id, arguments in calls.values()]


TWO = [("call_1", {"code": "print(1)"}), ("call_2", {})]


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    """A gateway with plain responses; a test that needs another response adds it."""
    answers = {
        "clean": Answer([CLEAN]),
        "broken": Answer([BROKEN]),
        "cut": Answer([body_of(CHAT["f"])]),
        "unnumbered": Answer([bytes([byte]) for byte in body_of(CHAT["b3"])]),
        "drip": Answer([bytes([byte]) for byte in BROKEN]),
    }
    with Gateway(answers) as found:
        yield found
        assert found.quiet(), f"{found.open} connections are still open"


def ask(family: Any, gateway: Gateway, name: str, *, path: str = PATH, sent: Any = STREAM, **options: Any) -> Any:
    """Send one POST with a client that has the hook; return the response, read to the end."""
    with family.Client(event_hooks={"response": [repair_hook(**options)]}) as client:
        return client.post(gateway.url(name) + path, json=sent)


def aask(family: Any, gateway: Gateway, name: str, *, path: str = PATH, sent: Any = STREAM, **options: Any) -> Any:
    async def run() -> Any:
        async with family.AsyncClient(event_hooks={"response": [async_repair_hook(**options)]}) as client:
            return await client.post(gateway.url(name) + path, json=sent)

    return asyncio.run(run())


ASKS = pytest.mark.parametrize("asks", [ask, aask], ids=["sync", "async"])


@FAMILIES
@ASKS
def test_a_stream_that_needs_no_repair_passes_byte_for_byte(family: Any, asks: Any, gateway: Gateway) -> None:
    response = asks(family, gateway, "clean")
    assert response.content == CLEAN
    assert response.extensions["streamweld"].repaired is False
    assert response.elapsed.total_seconds() > 0


@FAMILIES
@ASKS
def test_a_broken_stream_is_repaired(family: Any, asks: Any, gateway: Gateway) -> None:
    for name in ("broken", "drip"):
        response = asks(family, gateway, name)
        assert calls_of(response.content) == TWO
        assert response.extensions["streamweld"].repaired is True
        assert response.extensions["streamweld"].response.finish_reason == "tool_calls"


@FAMILIES
@ASKS
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_encoded_bodies(family: Any, asks: Any, gateway: Gateway, encoding: str) -> None:
    packed = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress}[encoding](BROKEN)
    pieces = [packed[at : at + 7] for at in range(0, len(packed), 7)]
    headers = {"content-type": "text/event-stream", "content-encoding": encoding}
    gateway.answers["packed"] = Answer(pieces, headers=headers)
    response = asks(family, gateway, "packed")
    assert calls_of(response.content) == TWO
    assert "content-encoding" not in response.headers


@FAMILIES
@ASKS
def test_the_type_is_read_without_case_and_parameters(family: Any, asks: Any, gateway: Gateway) -> None:
    gateway.answers["odd"] = Answer([BROKEN], headers={"content-type": "Text/Event-Stream;charset=windows-1252"})
    assert calls_of(asks(family, gateway, "odd").content) == TWO


@FAMILIES
@ASKS
def test_what_is_called_something_else_is_read_as_the_client_reads_it(family: Any, asks: Any, gateway: Gateway) -> None:
    gateway.answers["untold"] = Answer([BROKEN], headers={})
    gateway.answers["text"] = Answer([BROKEN], headers={"content-type": "text/plain"})
    for name in ("untold", "text"):
        response = asks(family, gateway, name)
        assert calls_of(response.content) == TWO
        assert response.headers["content-type"].startswith("text/event-stream")
        assert asks(family, gateway, name, sent={"stream": False}).content == BROKEN


@FAMILIES
@ASKS
def test_a_page_or_a_plain_answer_instead_of_a_stream_is_an_error_or_a_stream(
    family: Any, asks: Any, gateway: Gateway
) -> None:
    whole = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    }
    gateway.answers["page"] = Answer([b"<html>Bad gateway</html>"], headers={"content-type": "text/html"})
    gateway.answers["whole"] = Answer([json.dumps(whole).encode()], headers=JSON)
    page = asks(family, gateway, "page")
    assert b'data: {"error":' in page.content
    assert isinstance(page.extensions["streamweld"].error, sw.NotAnEventStream)
    streamed = asks(family, gateway, "whole").content
    assert streamed.endswith(b"data: [DONE]\n\n")
    assert sw.parse(streamed).text == "Hi"


@FAMILIES
@ASKS
def test_what_is_not_for_us_is_not_touched(family: Any, asks: Any, gateway: Gateway) -> None:
    answer = b'{"choices": [ ]}'
    gateway.answers |= {
        "json": Answer([answer], headers=JSON),
        "refused": Answer([answer], status=429, headers=JSON),
        "refused-stream": Answer([BROKEN], status=500),
    }
    for name, path, sent in (
        ("json", PATH, {"model": "m"}),
        ("refused", PATH, STREAM),
        ("refused-stream", PATH, STREAM),
        ("broken", "/v1/threads/runs", STREAM),
        ("broken", "/v1/completions", STREAM),
        ("broken", "/v1/images/generations", STREAM),
    ):
        response = asks(family, gateway, name, path=path, sent=sent)
        assert response.content == b"".join(gateway.answers[name].pieces)
        assert "streamweld" not in response.extensions
        assert response.headers["content-type"] == gateway.answers[name].headers["content-type"]


@FAMILIES
@ASKS
def test_a_cut_is_an_error_event_or_our_exception(family: Any, asks: Any, gateway: Gateway) -> None:
    ended = asks(family, gateway, "cut")
    assert ended.content.startswith(body_of(CHAT["f"]))
    assert b'data: {"error":' in ended.content[len(body_of(CHAT["f"])) :]
    assert b"[DONE]" not in ended.content
    with pytest.raises(sw.TruncatedStream) as caught:
        asks(family, gateway, "cut", on_error="raise")
    assert caught.value.partial is not None
    assert [call.state for call in caught.value.partial.tool_calls] == ["incomplete"]


@FAMILIES
@ASKS
def test_diagnostics_policy_and_limits(family: Any, asks: Any, gateway: Gateway) -> None:
    reported: list[sw.Diagnostic] = []
    response = asks(family, gateway, "unnumbered", on_diagnostic=reported.append)
    assert reported
    assert reported == list(response.extensions["streamweld"].diagnostics)
    refused = asks(family, gateway, "unnumbered", policy=POLICY).extensions["streamweld"].error
    assert isinstance(refused, sw.StreamError)
    small = asks(family, gateway, "broken", limits=sw.Limits(max_tool_calls=1))
    assert isinstance(small.extensions["streamweld"].error, sw.LimitExceeded)
    assert b'data: {"error":' in small.content


@FAMILIES
@ASKS
def test_what_the_callback_raises_is_logged(
    family: Any, asks: Any, gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(diagnostic: sw.Diagnostic) -> None:
        raise LookupError(diagnostic.code)

    response = asks(family, gateway, "unnumbered", on_diagnostic=refuse)
    assert calls_of(response.content) == TWO
    found = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(found) == len(response.extensions["streamweld"].diagnostics) > 0
    for record in found:
        assert record.name == "streamweld"
        assert record.exc_info is not None
        assert record.exc_info[0] is LookupError


@FAMILIES
@ASKS
def test_the_answer_in_another_dialect(family: Any, asks: Any, gateway: Gateway) -> None:
    gateway.answers["claude"] = Answer([frame_bytes(frame) for frame in MESSAGES["clean"]["frames"]])
    quiet = asks(family, gateway, "claude", upstream_dialect="anthropic")
    requested = asks(
        family,
        gateway,
        "claude",
        upstream_dialect="auto",
        sent={"stream": True, "stream_options": {"include_usage": True}},
    )
    for response in (quiet, requested):
        assert calls_of(response.content) == [("toolu_1", {"code": "print(1)"})]
        assert response.content.endswith(b"data: [DONE]\n\n")
    assert b'"usage"' not in quiet.content
    assert b'"usage":{"prompt_tokens":5' in requested.content


@FAMILIES
@ASKS
def test_other_endpoints(family: Any, asks: Any, gateway: Gateway) -> None:
    for spoken in ("chat", "same"):
        response = asks(family, gateway, "broken", path="/api/chat", endpoints={"/api/chat": spoken})
        assert calls_of(response.content) == TWO
    assert asks(family, gateway, "broken", path="/api/chat").content == BROKEN


@pytest.mark.parametrize(
    "options",
    [
        {"on_error": "ignore"},
        {"policy": "lenient"},
        {"upstream": "openai"},
        {"endpoints": {"/x": "openai"}},
    ],
)
def test_an_option_that_cannot_be_is_refused_at_once(options: Any) -> None:
    for make in (repair_hook, async_repair_hook):
        with pytest.raises(sw.UsageError):
            make(**options)


def test_what_is_no_client_and_no_response_is_refused() -> None:
    with pytest.raises(sw.UsageError, match="not a client"):
        repair(object())
    with pytest.raises(sw.UsageError, match="is not an httpx2 or httpx response"):
        repair_hook()(object())


@FAMILIES
def test_repair_puts_one_hook_before_all_others(family: Any, gateway: Gateway) -> None:
    seen: list[bytes] = []
    reported: list[sw.Diagnostic] = []
    with family.Client(event_hooks={"response": [lambda response: seen.append(response.read())]}) as client:
        assert repair(repair(client), on_diagnostic=reported.append) is client
        assert len(client.event_hooks["response"]) == 2
        assert client.post(gateway.url("unnumbered") + PATH, json=STREAM).content == seen[0]
    assert calls_of(seen[0]) == TWO
    assert reported


@FAMILIES
def test_a_body_that_another_hook_has_read_is_repaired(family: Any, gateway: Gateway) -> None:
    hooks = [lambda response: response.read(), repair_hook()]
    with family.Client(event_hooks={"response": hooks}) as client:
        response = client.post(gateway.url("broken") + PATH, json=STREAM)
        assert calls_of(response.content) == calls_of(b"".join(response.iter_bytes())) == TWO
        assert response.extensions["streamweld"].repaired
        assert client.post(gateway.url("clean") + PATH, json=STREAM).content == CLEAN


@FAMILIES
def test_a_body_whose_bytes_are_gone_is_reported(
    family: Any, gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = [lambda response: list(response.iter_raw()), repair_hook()]
    with family.Client(event_hooks={"response": hooks}) as client:
        request = client.build_request("POST", gateway.url("broken") + PATH, json=STREAM)
        client.send(request, stream=True).close()
    assert [record.getMessage() for record in caplog.records if record.name == "streamweld"] == [
        "a stream is not repaired: another hook has read it, and its bytes are gone; put repair first"
    ]


@FAMILIES
@pytest.mark.parametrize("packed", [False, True])
def test_a_mock_transport_with_the_whole_body(family: Any, packed: bool) -> None:
    headers = {"content-type": "text/event-stream"} | ({"content-encoding": "gzip"} if packed else {})

    def answer(_: Any) -> Any:
        return family.Response(200, headers=headers, content=gzip.compress(BROKEN) if packed else BROKEN)

    async def run() -> bytes:
        async with repair(family.AsyncClient(transport=family.MockTransport(answer))) as client:
            return (await client.post(f"http://gateway{PATH}", json=STREAM)).content  # type: ignore[no-any-return]

    with repair(family.Client(transport=family.MockTransport(answer))) as client:
        assert calls_of(client.post(f"http://gateway{PATH}", json=STREAM).content) == TWO
        with client.stream("POST", f"http://gateway{PATH}", json=STREAM) as response:
            assert calls_of(b"".join(response.iter_bytes())) == TWO
    assert calls_of(asyncio.run(run())) == TWO


@FAMILIES
def test_a_mock_transport_with_a_stream_that_is_cut(family: Any) -> None:
    def answer(_: Any) -> Any:
        return family.Response(200, headers={"content-type": "text/event-stream"}, content=body_of(CHAT["f"]))

    with (
        repair(family.Client(transport=family.MockTransport(answer)), on_error="raise") as client,
        pytest.raises(sw.TruncatedStream) as caught,
    ):
        client.post(f"http://gateway{PATH}", json=STREAM)
    assert caught.value.partial is not None


@FAMILIES
def test_transports(family: Any, gateway: Gateway) -> None:
    url = gateway.url("drip") + PATH

    async def run() -> bytes:
        transport = AsyncRepairTransport(family.AsyncHTTPTransport())
        async with family.AsyncClient(transport=transport) as client:
            return (await client.post(url, json=STREAM)).content  # type: ignore[no-any-return]

    with family.Client(transport=RepairTransport(family.HTTPTransport())) as client:
        response = client.post(url, json=STREAM)
        assert client.post(gateway.url("clean") + PATH, json=STREAM).content == CLEAN
    assert calls_of(response.content) == calls_of(asyncio.run(run())) == TWO
    assert gateway.connections == 2  # each client kept its own connection, which the second request reused


@FAMILIES
def test_an_early_break_closes_the_connection(family: Any, gateway: Gateway) -> None:
    gateway.answers["long"] = Answer([frame_bytes(CHAT["clean"]["frames"][0])], end="hang")

    async def run() -> None:
        async with (
            family.AsyncClient(event_hooks={"response": [async_repair_hook()]}) as client,
            client.stream("POST", gateway.url("long") + PATH, json=STREAM) as response,
        ):
            async for _ in response.aiter_lines():
                break

    asyncio.run(run())
    with family.Client(event_hooks={"response": [repair_hook()]}) as client:
        with client.stream("POST", gateway.url("long") + PATH, json=STREAM) as response:
            for _ in response.iter_lines():
                break
        assert gateway.quiet()  # the connection is closed although the client is still open
    assert gateway.aborted == 2


@FAMILIES
def test_a_response_that_is_never_read_is_closed(family: Any, gateway: Gateway) -> None:
    async def run() -> None:
        async with (
            family.AsyncClient(event_hooks={"response": [async_repair_hook()]}) as client,
            client.stream("POST", gateway.url("broken") + PATH, json=STREAM),
        ):
            pass

    asyncio.run(run())
    with (
        family.Client(event_hooks={"response": [repair_hook()]}) as client,
        client.stream("POST", gateway.url("broken") + PATH, json=STREAM),
    ):
        pass


@FAMILIES
def test_the_read_timeout_is_the_clients(family: Any, gateway: Gateway) -> None:
    gateway.answers["hang"] = Answer([frame_bytes(frame) for frame in CHAT["f"]["frames"]], end="hang")
    with (
        family.Client(event_hooks={"response": [repair_hook()]}, timeout=0.3) as client,
        pytest.raises(family.ReadTimeout),
    ):
        client.post(gateway.url("hang") + PATH, json=STREAM)


@FAMILIES
def test_a_task_may_close_what_another_one_reads(family: Any, gateway: Gateway) -> None:
    gateway.answers["hang"] = Answer([frame_bytes(frame) for frame in CHAT["f"]["frames"]], end="hang")

    async def run() -> None:
        async with family.AsyncClient(event_hooks={"response": [async_repair_hook()]}) as client:
            request = client.build_request("POST", gateway.url("hang") + PATH, json=STREAM)
            response = await client.send(request, stream=True)
            reading = asyncio.ensure_future(response.aread())
            await asyncio.sleep(0.2)
            await response.aclose()
            (found,) = await asyncio.wait_for(asyncio.gather(reading, return_exceptions=True), 5)
            assert isinstance(found, BaseException)

    asyncio.run(run())
    assert gateway.quiet()
    assert gateway.aborted == 1
