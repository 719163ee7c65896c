"""Messages of the logger `streamweld` and calls of `on_diagnostic` for a stream, with each integration."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx
import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from streamweld.errors import UsageError
from streamweld.integrations._body import RepairOptions
from streamweld.integrations._reporting import StreamContext, callback, plain_url
from streamweld.integrations.aiohttp import repair_middleware
from streamweld.integrations.anthropic import repair as anthropic_repair
from streamweld.integrations.asgi import RepairMiddleware
from streamweld.integrations.httpx import repair
from streamweld.integrations.openai import repair as openai_repair

from tests.integrations.dropin.server import Answer, Gateway
from tests.integrations.dropin.streams import body_of, cells
from tests.support.servers.proxying import between
from tests.support.servers.upstream import Talk, Upstream, sse
from tests.support.servers.wire import DONE, chunk

if TYPE_CHECKING:
    from collections.abc import Callable

    import streamweld as sw

HEAD: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}
BROKEN = (
    chunk({"tool_calls": [{"id": "call_1", "function": {"name": "f", "arguments": "{}"}}]}, **HEAD)
    + chunk({}, "tool_calls", **HEAD)
    + DONE
)
CUT = BROKEN[: BROKEN.index(b'"finish_reason":"tool_calls"') - 40]
CLEAN = body_of(next(cell for cell in cells("chat") if cell["name"] == "clean"))
STREAM = {"stream": True}
PATH = "/v1/chat/completions"
HEADERS = {"content-type": "text/event-stream", "x-request-id": "req-7"}


def by_httpx(body: bytes, tell: Any, requested: Any = STREAM) -> str:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, headers=HEADERS, stream=httpx.ByteStream(body)))
    with repair(httpx.Client(transport=transport), on_diagnostic=tell) as client:
        client.post(f"http://user:secret@gateway{PATH}?key=secret#x", json=requested)
    return f"http://gateway{PATH}"


def by_async_httpx2(body: bytes, tell: Any, requested: Any = STREAM) -> str:
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=HEADERS, stream=httpx2.ByteStream(body)))

    async def run() -> None:
        async with repair(httpx2.AsyncClient(transport=transport), on_diagnostic=tell) as client:
            await client.post(f"http://user:secret@gateway{PATH}?key=secret", json=requested)

    asyncio.run(run())
    return f"http://gateway{PATH}"


def by_aiohttp(body: bytes, tell: Any, requested: Any = STREAM) -> str:
    with Gateway({"a": Answer([body], headers=HEADERS)}) as gateway:

        async def run() -> None:
            session = aiohttp.ClientSession(middlewares=[repair_middleware(on_diagnostic=tell)])
            async with session, session.post(f"{gateway.url('a')}{PATH}?key=secret", json=requested) as response:
                await response.read()

        asyncio.run(run())
        return f"{gateway.url('a')}{PATH}"


def by_asgi(body: bytes, tell: Any) -> str:
    async def answer(_: Any) -> StreamingResponse:
        return StreamingResponse([body], headers=HEADERS)

    app = Starlette(routes=[Route(PATH, answer, methods=["POST"])])
    with TestClient(RepairMiddleware(app, on_diagnostic=tell)) as client:
        client.post(f"{PATH}?key=secret", json=STREAM)
    return f"http://testserver{PATH}"


EACH = pytest.mark.parametrize("read", [by_httpx, by_async_httpx2, by_aiohttp, by_asgi])


def lines(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "streamweld" and record.levelno == level]


@EACH
def test_a_repaired_stream_is_one_line_of_info(read: Callable[[bytes, Any], str], caplog: Any) -> None:
    with caplog.at_level(logging.INFO, "streamweld"):
        url = read(BROKEN, None)
    reported = "diagnostics=index_missing:1"
    assert lines(caplog, logging.INFO) == [
        f"repaired a stream: url={url} model=m-1 request_id=req-7 dialect=chat {reported}"
    ]
    assert lines(caplog, logging.DEBUG) == []
    assert "secret" not in caplog.text


@EACH
def test_each_diagnostic_is_one_line_of_debug(read: Callable[[bytes, Any], str], caplog: Any) -> None:
    with caplog.at_level(logging.DEBUG, "streamweld"):
        read(BROKEN, None)
    (line,) = lines(caplog, logging.DEBUG)
    assert line.startswith("index_missing (info) at byte 0, event 0: ")
    assert line.endswith(" [model=m-1 request_id=req-7]")
    assert len(lines(caplog, logging.INFO)) == 1


@EACH
def test_a_clean_stream_is_not_logged(read: Callable[[bytes, Any], str], caplog: Any) -> None:
    with caplog.at_level(logging.DEBUG, "streamweld"):
        read(CLEAN, None)
    assert lines(caplog, logging.INFO) == lines(caplog, logging.DEBUG) == []


@EACH
def test_a_stream_that_passes_unchanged_was_not_repaired(read: Callable[[bytes, Any], str], caplog: Any) -> None:
    unknown_reason = chunk({"role": "assistant", "content": "x"}, **HEAD) + chunk({}, "lunch", **HEAD) + DONE
    with caplog.at_level(logging.DEBUG, "streamweld"):
        url = read(unknown_reason, None)
    assert lines(caplog, logging.INFO) == []
    expected = f"passed a stream unchanged that has diagnostics: url={url} "
    assert lines(caplog, logging.DEBUG)[-1].startswith(expected)
    assert "diagnostics=finish_unknown:1" in lines(caplog, logging.DEBUG)[-1]


def test_an_unknown_dialect_that_passes_is_not_an_error(caplog: Any) -> None:
    reported: list[sw.Diagnostic] = []
    with caplog.at_level(logging.DEBUG, "streamweld"):
        url = by_asgi(b'data: {"hello":1}\n\n', reported.append)
    assert reported == []
    (line,) = lines(caplog, logging.DEBUG)
    assert line.startswith(f"passed a stream unchanged because its dialect is unknown: url={url}")
    assert [record.levelname for record in caplog.records if record.name == "streamweld"] == ["DEBUG"]


@EACH
def test_a_cut_stream_is_a_warning_with_its_error(read: Callable[[bytes, Any], str], caplog: Any) -> None:
    with caplog.at_level(logging.INFO, "streamweld"):
        url = read(CUT, None)
    expected = f"url={url} model=m-1 request_id=req-7 dialect=chat diagnostics=index_missing:1 error=truncated"
    assert lines(caplog, logging.WARNING) == [f"a stream ended with an error: {expected}"]
    assert lines(caplog, logging.INFO) == []


@EACH
def test_the_callback_gets_the_error_that_ended_the_stream(read: Callable[[bytes, Any], str], caplog: Any) -> None:
    reported: list[sw.Diagnostic] = []
    with caplog.at_level(logging.DEBUG, "streamweld"):
        read(CUT, reported.append)
    assert [(one.code, one.severity) for one in reported] == [("index_missing", "info"), ("truncated", "error")]
    assert (reported[1].detail, reported[1].byte_offset) == ("mid_event", len(CUT))
    assert [line.split()[0] for line in lines(caplog, logging.DEBUG)] == ["index_missing", "truncated"]


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (b'data: {"error":{"message":"over","type":"t"}}\n\n', "upstream_error", "in the stream: over"),
        (b"data: {\n\n", "malformed_json", "is not valid JSON"),
        (b"<!doctype html><p>no</p>", "not_an_event_stream", "the body is not an event stream"),
    ],
)
@pytest.mark.parametrize("read", [by_httpx, by_async_httpx2, by_aiohttp])
def test_each_kind_of_error_is_reported_once(read: Callable[..., str], body: bytes, code: str, message: str) -> None:
    reported: list[sw.Diagnostic] = []
    with suppress(httpx.HTTPError, UsageError):
        read(body, reported.append)
    assert [one.code for one in reported if one.severity == "error"] == [code]
    assert message in reported[-1].message


@EACH
def test_the_line_names_the_reason_of_a_rewrite(read: Callable[[bytes, Any], str], caplog: Any) -> None:
    unnamed = CLEAN.replace(b'"object":"chat.completion.chunk"', b'"object":"x"')
    with caplog.at_level(logging.INFO, "streamweld"):
        read(unnamed, None)
    (line,) = lines(caplog, logging.INFO)
    assert "diagnostics=rewritten(other_object):1" in line


@EACH
def test_the_callback_gets_the_stream_of_a_diagnostic(read: Callable[[bytes, Any], str]) -> None:
    reported: list[tuple[sw.Diagnostic, StreamContext]] = []
    url = read(BROKEN, lambda diagnostic, context: reported.append((diagnostic, context)))
    assert [diagnostic.code for diagnostic, _ in reported] == ["index_missing"]
    assert {context for _, context in reported} == {StreamContext(url, "m-1", "req-7", "chat")}


@pytest.mark.parametrize("read", [by_httpx, by_async_httpx2, by_aiohttp])
def test_the_requested_model_stands_in_for_one_that_the_stream_does_not_name(
    read: Callable[..., str], caplog: Any
) -> None:
    reported: list[StreamContext] = []
    unnamed = BROKEN.replace(b'"model":"m-1"', b'"x":1')
    assert unnamed != BROKEN
    with caplog.at_level(logging.INFO, "streamweld"):
        read(unnamed, lambda _, context: reported.append(context), {**STREAM, "model": "m-asked"})
    assert [context.model for context in reported] == ["m-asked"]
    assert " model=m-asked request_id=req-7 " in lines(caplog, logging.INFO)[0]


def test_the_requested_model_of_gemini_is_in_the_path() -> None:
    reported: list[StreamContext] = []
    body = b'data: {"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"}}]}\n\n'
    transport = httpx.MockTransport(lambda _: httpx.Response(200, headers=HEADERS, stream=httpx.ByteStream(body)))
    reporting = repair(
        httpx.Client(transport=transport), policy="salvage", on_diagnostic=lambda _, context: reported.append(context)
    )
    with reporting as client:
        client.post("http://gateway/v1beta/models/gemini-9:streamGenerateContent?alt=sse", json={})
    assert [(context.model, context.request_id) for context in reported] == [("gemini-9", "req-7")]  # truncated


@EACH
def test_a_callback_of_one_argument_gets_the_diagnostic(read: Callable[[bytes, Any], str]) -> None:
    reported: list[sw.Diagnostic] = []
    read(BROKEN, reported.append)
    assert [diagnostic.code for diagnostic in reported] == ["index_missing"]


@pytest.fixture
def seen() -> list[Any]:
    return []


class Keeper:
    def __init__(self, seen: list[Any]) -> None:
        self.one = seen.append
        self.seen = seen

    def two(self, diagnostic: Any, context: Any) -> None:
        self.seen.append((diagnostic, context))


def test_who_gets_the_context_is_decided_by_the_signature(seen: list[Any]) -> None:
    keeper = Keeper(seen)
    both: list[Any] = [
        keeper.two,
        lambda diagnostic, context: seen.append((diagnostic, context)),
        lambda diagnostic, context=None: seen.append((diagnostic, context)),
    ]
    alone: list[Any] = [
        keeper.one,
        lambda diagnostic, out=seen: out.append(diagnostic),
        lambda *args: seen.extend(args),
    ]
    for given, expected in [(both, ("d", "c")), (alone, "d")]:
        for function in given:
            made = callback(function)
            assert made is not None
            made("d", "c")  # type: ignore[arg-type]
            assert seen.pop() == expected
    assert seen == []


def test_a_url_is_reported_without_what_may_be_secret() -> None:
    assert plain_url("https://a:b@host:1/p/q?key=x#y") == "https://host:1/p/q"
    assert plain_url("/p?key=x") == "/p"


def test_the_proxy_logs_one_line_of_info_and_each_diagnostic(caplog: Any) -> None:
    with caplog.at_level(logging.DEBUG, "streamweld"), between(Upstream(sse(BROKEN))) as url:
        httpx2.post(f"{url}{PATH}", json={"model": "m-1", "stream": True, "messages": []})
    info = [record.getMessage() for record in caplog.records if record.name.startswith("streamweld.proxy")]
    assert sum("diagnostics=index_missing:1" in line for line in info) == 1
    assert [line.split()[0] for line in lines(caplog, logging.DEBUG)] == ["index_missing"]


@pytest.mark.parametrize("assigned", ["", "req 7"])
@pytest.mark.parametrize("to", ["chat", None])
def test_the_proxy_logs_model_and_request_id(assigned: str, to: str | None, caplog: Any) -> None:
    """The id that the upstream assigned takes precedence over the client's. Both may contain any characters that a
    header may contain.
    """

    async def script(talk: Talk) -> None:
        await talk.whole(BROKEN, 200, "text/event-stream", **({"x_request_id": assigned} if assigned else {}))

    requested = {"model": "m 1\n", "stream": True, "messages": []}
    with caplog.at_level(logging.DEBUG, "streamweld"), between(Upstream(script), to=to) as url:
        httpx2.post(f"{url}{PATH}", json=requested, headers={"x-request-id": "mine"})
    expected = "req%207" if assigned else "mine"
    (record,) = [one for one in caplog.records if one.name == "streamweld.proxy" and "path=" in one.getMessage()]
    assert f" model=m%201\\n request_id={expected} outcome=complete " in record.getMessage()
    assert (record.facts["model"], record.facts["request_id"]) == ("m%201\\n", expected)
    (line,) = lines(caplog, logging.DEBUG)
    assert line.endswith(f" [model=m 1\\n request_id={assigned or 'mine'}]")


def test_an_unknown_option_is_named_with_the_one_that_was_meant() -> None:
    wrong: Any = {"on_errors": print}
    with pytest.raises(UsageError, match=r"there is no option on_errors=; did you mean on_error=\?"):
        repair(httpx.Client(), **wrong)


def test_tools_are_read_from_the_request() -> None:
    wrong: Any = {"tools": []}
    with pytest.raises(UsageError, match=r"tools=: the tools are read from the body of each request"):
        repair(httpx.Client(), **wrong)


@pytest.mark.parametrize("function", [repair, openai_repair, anthropic_repair])
def test_help_lists_the_options_of_repair(function: Any) -> None:
    shown = (inspect.getdoc(function) or "").partition("**options:")[2].partition("Returns:")[0]
    named = re.findall(r"`([a-z_]+)`", shown)
    assert named == list(RepairOptions.__annotations__)
