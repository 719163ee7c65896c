"""OpenTelemetry: span attributes of the middleware and the proxy, and responses as messages of the conventions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import streamweld as sw
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from streamweld.integrations import otel
from streamweld.integrations.asgi import RepairMiddleware

from tests.integrations.test_asgi import CUT, HEAD, TOLD_AGAIN, piece, starlette, streaming
from tests.integrations.test_otel_metrics import messages_with_a_cache
from tests.proxy.test_proxy import CHAT
from tests.support.servers.proxying import ASK, between
from tests.support.servers.upstream import Talk, Upstream, running, sse, until
from tests.support.servers.wire import DONE, chunk, event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.sdk.trace import ReadableSpan

EXPORTER = InMemorySpanExporter()
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(scope="module", autouse=True)
def _provider() -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
    trace.set_tracer_provider(provider)


@pytest.fixture
def spans() -> Iterator[Any]:
    EXPORTER.clear()

    def finished(count: int = 1) -> tuple[ReadableSpan, ...]:
        until(lambda: len(EXPORTER.get_finished_spans()) >= count)
        return EXPORTER.get_finished_spans()

    yield finished
    EXPORTER.clear()


def test_repairs_are_events_of_the_span_that_is_there(spans: Any) -> None:
    body = [*TOLD_AGAIN[:-1], piece("call_1", "f", '{"a":1}'), TOLD_AGAIN[-1]]
    inner = starlette(streaming(*body), on_diagnostic=otel.record)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        with trace.get_tracer("theirs").start_as_current_span("theirs"):
            await inner(scope, receive, send)

    with running(app) as url:
        expected = ["rewritten", *[note.code for note in sw.parse(b"".join(body)).diagnostics]]
        httpx2.get(f"{url}/v1/chat/completions")
        found = spans()
    theirs = next(span for span in found if any(reported.name == "streamweld.anomaly" for reported in span.events))
    assert theirs.name == "theirs"
    assert [reported.attributes["streamweld.anomaly.code"] for reported in theirs.events] == expected
    assert expected
    assert theirs.attributes["streamweld.anomaly.count"] == len(expected)
    assert not any("detail" in name for reported in theirs.events for name in reported.attributes)


@pytest.mark.usefixtures("spans")
def test_without_a_span_nothing_happens() -> None:
    otel.record(sw.Diagnostic("args_replay_dropped", "warning", 0, 0))
    assert EXPORTER.get_finished_spans() == ()
    assert RepairMiddleware(lambda *_: None, on_diagnostic=otel.record)  # type: ignore[arg-type,return-value]


def test_a_request_of_the_proxy_is_one_span(spans: Any) -> None:
    usage = event({**HEAD, "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}})
    upstream = Upstream(sse(*TOLD_AGAIN[:-1], chunk({}, "tool_calls", **HEAD), usage + DONE))
    with between(upstream, tracing=True) as url:
        httpx2.post(f"{url}/v1/messages", json=ASK, headers={"traceparent": PARENT})
        (span,) = spans()
    assert (span.name, span.kind, span.status.status_code) == ("chat m", SpanKind.CLIENT, StatusCode.UNSET)
    assert format(span.context.trace_id, "032x") == PARENT.split("-")[1]
    assert format(span.parent.span_id, "016x") == PARENT.split("-")[2]
    sent = upstream.seen[0].header("traceparent")
    assert sent == f"00-{PARENT.split('-')[1]}-{span.context.span_id:016x}-01"
    reported = dict(span.attributes)
    assert 0 < reported.pop("gen_ai.response.time_to_first_chunk") < 20
    assert reported.pop("server.port") == int(upstream.url.rsplit(":", 1)[1])
    assert reported == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.request.stream": True,
        "gen_ai.response.id": "c",
        "gen_ai.response.model": "m",
        "gen_ai.response.finish_reasons": ("tool_call",),
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 5,
        "http.response.status_code": 200,
        "server.address": "127.0.0.1",
        "streamweld.completeness": "complete",
    }


def test_input_tokens_of_a_span_include_the_cache(spans: Any) -> None:
    response = sw.parse(messages_with_a_cache())
    span = otel.RequestSpan("http://localhost/v1/messages", "anthropic", "c", stream=True, headers={})
    span.end(status=200, first=None, fault=None, response=response)
    reported = dict(spans()[0].attributes)
    assert {name: count for name, count in reported.items() if name.startswith("gen_ai.usage.")} == {
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 90,
        "gen_ai.usage.cache_creation.input_tokens": 3,
    }


def test_what_goes_wrong_is_the_spans_status(spans: Any) -> None:
    async def script(talk: Talk) -> None:
        if len(upstream.seen) == 1:
            await sse(*CUT)(talk)
        else:
            await talk.whole(b"<html>", kind="text/html")

    upstream = Upstream(script)
    with between(upstream, tracing=True) as url:
        for _ in range(2):
            httpx2.post(f"{url}/v1/chat/completions", json=CHAT)
        cut, page = spans(2)
    assert [(span.status.status_code, span.attributes["error.type"]) for span in (cut, page)] == [
        (StatusCode.ERROR, "TruncatedStream"),
        (StatusCode.ERROR, "NotAnEventStream"),
    ]
    assert cut.attributes["streamweld.completeness"] == "truncated"
    assert page.attributes["http.response.status_code"] == 502


@pytest.mark.usefixtures("spans")
def test_without_tracing_there_is_no_span() -> None:
    with between(Upstream(sse(*TOLD_AGAIN))) as url:
        httpx2.post(f"{url}/v1/messages", json=ASK)
    assert EXPORTER.get_finished_spans() == ()


def test_names_stand_once() -> None:
    assert len(set(otel.NAMES.values())) == len(otel.NAMES)
    with pytest.raises(TypeError):
        otel.NAMES["x"] = "y"  # type: ignore[index]


PARTS = b"".join(
    event(part)
    for part in (
        {"type": "stream-start", "warnings": []},
        {"type": "reasoning-start", "id": "r"},
        {"type": "reasoning-delta", "id": "r", "delta": "Look."},
        {"type": "reasoning-end", "id": "r"},
        {"type": "text-start", "id": "t"},
        {"type": "text-delta", "id": "t", "delta": "Hi"},
        {"type": "text-end", "id": "t"},
        {"type": "tool-call", "toolCallId": "s", "toolName": "search", "input": '{"q":1}', "providerExecuted": True},
        {"type": "tool-result", "toolCallId": "s", "toolName": "search", "result": [1]},
        {"type": "tool-call", "toolCallId": "a", "toolName": "f", "input": '{"a":[1.5]}'},
        {"type": "tool-call", "toolCallId": "b", "toolName": "f", "input": "no"},
        {"type": "file", "mediaType": "image/png", "data": "iVBO"},
        {"type": "finish", "finishReason": {"unified": "tool-calls"}, "usage": {}},
    )
)


def test_an_answer_as_messages() -> None:
    made = otel.to_otel_messages(sw.parse(PARTS, policy="salvage"))
    assert json.loads(json.dumps(made)) == [
        {
            "role": "assistant",
            "finish_reason": "tool_call",
            "parts": [
                {"type": "reasoning", "content": "Look."},
                {"type": "text", "content": "Hi"},
                {"type": "server_tool_call", "id": "s", "name": "search", "arguments": {"q": 1}},
                {"type": "server_tool_call_response", "id": "s", "response": [1]},
                {"type": "tool_call", "id": "a", "name": "f", "arguments": {"a": [1.5]}},
                {"type": "tool_call", "id": "b", "name": "f", "arguments": "no"},
                {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "iVBO"},
            ],
        }
    ]


def test_every_choice_is_a_message() -> None:
    body = chunk({"content": "one"}, "stop", index=0) + chunk({"refusal": "no"}, "content_filter", index=1) + DONE
    assert otel.to_otel_messages(sw.parse(body)) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "one"}], "finish_reason": "stop"},
        {"role": "assistant", "parts": [{"type": "refusal", "content": "no"}], "finish_reason": "content_filter"},
    ]
