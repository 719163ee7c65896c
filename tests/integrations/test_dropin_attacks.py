"""The drop-in repair, used wrongly, twice, or unusually: the result is correct or one clear error, and never silently
empty.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx
import httpx2
import openai
import pytest
import streamweld as sw
from streamweld.integrations.aiohttp import repair_middleware, repair_response
from streamweld.integrations.asgi import RepairMiddleware
from streamweld.integrations.httpx import (
    AsyncRepairTransport,
    RepairTransport,
    async_repair_hook,
    repair,
    repair_hook,
)
from streamweld.integrations.openai import repair as repair_openai

from tests.integrations.dropin.server import Answer, Gateway
from tests.integrations.dropin.streams import body_of, cells
from tests.integrations.test_dropin_httpx import BROKEN, CHAT, PATH, STREAM, TWO, calls_of
from tests.support.servers.upstream import Talk, Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator

FAMILIES = pytest.mark.parametrize("family", [httpx, httpx2], ids=["httpx", "httpx2"])
MESSAGES = {cell["name"]: cell for cell in cells("messages")}


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    answers = {
        "broken": Answer([BROKEN]),
        "claude": Answer([body_of(MESSAGES["clean"])]),
        "page": Answer([b"<p>no"], headers={"content-type": "text/html"}),
    }
    with Gateway(answers) as found:
        yield found
        assert found.quiet(), f"{found.open} connections are still open"


# --- The sync hook on an async client, or vice versa


@FAMILIES
def test_the_hook_of_the_other_kind_of_client_is_an_error_at_its_first_answer(family: Any, gateway: Gateway) -> None:
    url = gateway.url("page") + "/anything"
    with (
        family.Client(event_hooks={"response": [async_repair_hook()]}) as client,
        pytest.raises(sw.UsageError, match="use repair_hook"),
    ):
        client.get(url)

    async def ask() -> None:
        async with family.AsyncClient(event_hooks={"response": [repair_hook()]}) as client:
            await client.get(url)

    with pytest.raises(sw.UsageError, match="use async_repair_hook"):
        asyncio.run(ask())


@FAMILIES
def test_the_transport_of_the_other_kind_is_refused(family: Any) -> None:
    with pytest.raises(sw.UsageError, match="use AsyncRepairTransport"):
        RepairTransport(family.AsyncHTTPTransport())
    with pytest.raises(sw.UsageError, match="use RepairTransport"):
        AsyncRepairTransport(family.HTTPTransport())
    for make in (RepairTransport, AsyncRepairTransport):
        with pytest.raises(sw.UsageError, match="is not a transport"):
            make(family.Client)


@FAMILIES
def test_a_class_is_no_client(family: Any) -> None:
    with pytest.raises(sw.UsageError, match="'AsyncClient' is a class"):
        repair(family.AsyncClient)
    with pytest.raises(sw.UsageError, match="'OpenAI' is a class"):
        repair_openai(openai.OpenAI)


@FAMILIES
def test_a_transport_that_serves_both_kinds_of_client_is_repaired_for_its_own_alone(family: Any) -> None:
    class Both(family.BaseTransport, family.AsyncBaseTransport):  # type: ignore[misc]
        def handle_request(self, request: Any) -> Any:  # noqa: ARG002
            headers = {"content-type": "text/event-stream"}
            return family.Response(200, headers=headers, stream=family.ByteStream(BROKEN))

        async def handle_async_request(self, request: Any) -> Any:
            return self.handle_request(request)

    with family.Client(transport=RepairTransport(Both())) as client:
        assert calls_of(client.post(f"http://gateway{PATH}", json=STREAM).content) == TWO

    async def ask(transport: Any) -> Any:
        async with family.AsyncClient(transport=transport) as client:
            return await client.post(f"http://gateway{PATH}", json=STREAM)

    assert calls_of(asyncio.run(ask(AsyncRepairTransport(Both()))).content) == TWO
    with pytest.raises(sw.UsageError, match="use AsyncRepairTransport"):
        asyncio.run(ask(RepairTransport(Both())))


# --- Twice


@FAMILIES
def test_what_is_repaired_already_is_not_repaired_again(family: Any, gateway: Gateway) -> None:
    """With a transport and a hook, or with two hooks, the one next to the connection does the repair. The second one
    would mistake its output for that of the upstream.
    """
    url = gateway.url("claude") + PATH
    reports: list[sw.Diagnostic] = []
    transport = RepairTransport(family.HTTPTransport(), upstream_dialect="anthropic")
    hooks = [repair_hook(upstream_dialect="anthropic"), repair_hook(upstream_dialect="anthropic")]
    for client in (repair(family.Client(transport=transport)), family.Client(event_hooks={"response": hooks})):
        with client:
            assert calls_of(client.post(url, json=STREAM).content) == [("toolu_1", {"code": "print(1)"})]
    with repair(
        family.Client(transport=RepairTransport(family.HTTPTransport(), on_diagnostic=reports.append))
    ) as client:
        response = client.post(gateway.url("broken") + PATH, json=STREAM)
    assert response.extensions["streamweld"].repaired
    assert reports == list(response.extensions["streamweld"].diagnostics)


# --- Invalid options are reported by name before anything is read


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"upstream_dialect": "claude"}, "upstream_dialect='claude'"),
        ({"upstream": "chat"}, "there is no option upstream=; did you mean upstream_dialect="),
        ({"on_diagnostic": "print"}, "on_diagnostic='print'"),
        ({"endpoints": ["/x"]}, "endpoints="),
        ({"endpoints": {1: "chat"}}, "endpoints="),
    ],
)
def test_an_option_that_cannot_be_is_told_by_its_name(options: Any, said: str) -> None:
    with pytest.raises(sw.UsageError) as caught:
        repair_hook(**options)
    assert said in str(caught.value)


def test_a_callback_that_nobody_would_await_is_refused() -> None:
    async def tell(_: sw.Diagnostic) -> None:
        raise AssertionError

    class Tells:
        async def __call__(self, _: sw.Diagnostic) -> None:
            raise AssertionError

    for callback in (tell, Tells(), Tells().__call__):
        for make in (repair_hook, async_repair_hook):
            with pytest.raises(sw.UsageError, match=r"on_diagnostic=.*: it is called, not awaited"):
                make(on_diagnostic=callback)
        with pytest.raises(sw.UsageError, match="on_diagnostic"):
            RepairMiddleware(tell, on_diagnostic=callback)  # type: ignore[arg-type]
    with pytest.raises(sw.UsageError, match="on_diagnostic=3"):
        RepairMiddleware(tell, on_diagnostic=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("what", [None, openai, "client"], ids=["none", "module", "text"])
def test_what_is_no_client_is_told_by_its_own_name(what: Any) -> None:
    with pytest.raises(sw.UsageError, match=rf"^'{type(what).__name__}' is not a client"):
        repair_openai(what)


# --- Under aiohttp


@contextmanager
def answering(head: bytes, body: bytes) -> Iterator[str]:
    async def script(talk: Talk) -> None:
        await talk.raw(b"HTTP/1.1 200 OK\r\n%b\r\ncontent-length: %d\r\n\r\n%b" % (head, len(body), body))

    with Upstream(script).serving() as upstream:
        yield upstream.url


def test_a_type_that_is_no_text_breaks_nothing() -> None:
    async def ask(url: str) -> bytes:
        session = aiohttp.ClientSession(middlewares=[repair_middleware()])
        async with session, session.post(url + PATH, json=STREAM) as response:
            return await response.read()

    for head in (b"content-type: text/event-stream; x=\xff\xe9", b"content-type: \xff"):
        with answering(head, BROKEN) as url:
            assert calls_of(asyncio.run(ask(url))) == TWO


def test_what_the_callback_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(diagnostic: sw.Diagnostic) -> None:
        raise LookupError(diagnostic.code)

    async def ask(url: str) -> bytes:
        session = aiohttp.ClientSession(middlewares=[repair_middleware(on_diagnostic=refuse)])
        async with session, session.post(url + PATH, json=STREAM) as response:
            return await response.read()

    with answering(b"content-type: text/event-stream", body_of(CHAT["b3"])) as url:
        assert calls_of(asyncio.run(ask(url))) == TWO
    ours = [record for record in caplog.records if record.name == "streamweld"]
    raised = [record for record in ours if record.exc_info is not None]
    assert {record.exc_info[0] for record in raised if record.exc_info} == {LookupError}


def test_a_second_middleware_leaves_what_is_repaired_already(gateway: Gateway) -> None:
    async def ask() -> bytes:
        twice = [repair_middleware(upstream_dialect="anthropic"), repair_middleware(upstream_dialect="anthropic")]
        session = aiohttp.ClientSession(middlewares=twice)
        async with session, session.post(gateway.url("claude") + PATH, json=STREAM) as response:
            return await repair_response(response).read()

    assert calls_of(asyncio.run(ask())) == [("toolu_1", {"code": "print(1)"})]
