"""OpenTelemetry metrics, read back from the SDK: measurements of a stream, by iterator, by hook and by middleware."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import streamweld as sw
from openai import OpenAI
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from starlette.applications import Starlette
from starlette.routing import Route
from streamweld.integrations import otel, otel_metrics
from streamweld.integrations.httpx import repair
from streamweld.integrations.openai import repair as openai_repair
from streamweld.testing import BrokenGateway, Text, build

from tests.integrations.test_asgi import starlette, streaming
from tests.support.servers.upstream import running
from tests.support.servers.wire import DONE, chunk, event

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

HEAD = {"id": "c", "model": "m"}
USAGE = event({**HEAD, "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 50, "total_tokens": 57}})
# A comment before the first token, a call whose arguments are repeated, and token counts.
CALL = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
BODY = [
    b": keep-alive\n\n",
    chunk({"role": "assistant"}, **HEAD),
    chunk({"content": "Let me see."}, **HEAD),
    chunk({"tool_calls": [CALL]}, **HEAD),
    chunk({"tool_calls": [CALL]}, **HEAD),
    chunk({}, "tool_calls", **HEAD),
    USAGE + DONE,
]
ABOUT = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.response.model": "m"}


class Meters:
    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        provider = MeterProvider([self.reader])
        self.metrics = otel.StreamMetrics(meter_provider=provider, attributes={"deployment": "t"})

    def read(self) -> dict[str, list[Any]]:
        """Return the points of each instrument."""
        data = self.reader.get_metrics_data()
        assert data is not None
        (scope,) = data.resource_metrics[0].scope_metrics
        assert scope.scope.name == "streamweld"
        return {metric.name: list(metric.data.data_points) for metric in scope.metrics}


@pytest.fixture
def meters() -> Meters:
    return Meters()


def about(point: Any, **more: str) -> bool:
    return dict(point.attributes) == ABOUT | {"deployment": "t"} | {
        name.replace("__", "."): v for name, v in more.items()
    }


def slowly(pieces: list[bytes], seconds: float = 0.01) -> Iterator[bytes]:
    for piece in pieces:
        time.sleep(seconds)
        yield piece


def check_whole(points: dict[str, list[Any]]) -> None:
    """Check the measurements, which are the same for every way of reading `BODY`."""
    (streams,) = points["streamweld.streams"]
    assert (streams.value, streams.attributes["streamweld.completeness"]) == (1, "complete")
    assert "error.type" not in streams.attributes
    found = {point.attributes["streamweld.anomaly.code"]: point.value for point in points["streamweld.repairs"]}
    assert found == {"args_replay_dropped": 1}
    (rate,) = points["streamweld.output_token_rate"]
    (first,) = points["streamweld.time_to_first_token"]
    (chunk_,) = points["gen_ai.client.operation.time_to_first_chunk"]
    (lasted,) = points["gen_ai.client.operation.duration"]
    assert 0 < chunk_.sum <= first.sum < lasted.sum < 20
    assert rate.count == first.count == lasted.count == 1
    assert rate.sum == pytest.approx(50 / (lasted.sum - first.sum))
    tokens = {point.attributes["gen_ai.token.type"]: point.sum for point in points["gen_ai.client.token.usage"]}
    assert tokens == {"input": 7, "output": 50}
    (gaps,) = points["gen_ai.client.operation.time_per_output_chunk"]
    assert gaps.sum == pytest.approx(lasted.sum - chunk_.sum)
    assert about(gaps)
    assert gaps.explicit_bounds[0] == 0.001
    assert points.keys() == set(otel.METRICS.values())


def test_an_iterator(meters: Meters) -> None:
    events = list(meters.metrics.measure(sw.iter_batches(slowly(BODY))))
    assert events == list(sw.iter_events(BODY))
    points = meters.read()
    check_whole(points)
    # The comment does not cause an event.
    (gaps,) = points["gen_ai.client.operation.time_per_output_chunk"]
    assert gaps.count == len(list(sw.iter_batches(BODY))) - 1
    assert points["streamweld.time_to_first_token"][0].sum >= 0.03  # the first token is in the third piece


def test_an_asynchronous_iterator(meters: Meters) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in BODY:
            await asyncio.sleep(0.001)
            yield piece

    async def run() -> list[Any]:
        return [one async for one in meters.metrics.ameasure(sw.aiter_batches(pieces()))]

    assert asyncio.run(run()) == list(sw.iter_events(BODY))
    check_whole(meters.read())


def test_the_clock_starts_where_it_is_told(meters: Meters) -> None:
    started = time.perf_counter() - 5
    list(meters.metrics.measure(sw.iter_batches(BODY), started=started))
    points = meters.read()
    assert 5 < points["gen_ai.client.operation.time_to_first_chunk"][0].sum < 6
    assert 5 < points["gen_ai.client.operation.duration"][0].sum < 6


def test_a_cut_stream(meters: Meters) -> None:
    with pytest.raises(sw.TruncatedStream):
        list(meters.metrics.measure(sw.iter_batches(BODY[:3])))
    points = meters.read()
    (streams,) = points["streamweld.streams"]
    assert about(streams, streamweld__completeness="truncated", error__type="TruncatedStream")
    assert points["gen_ai.client.operation.duration"][0].attributes["error.type"] == "TruncatedStream"
    assert "gen_ai.client.token.usage" not in points


def messages_with_a_cache() -> bytes:
    """Return a stream in which `input_tokens` excludes cached tokens, as in Anthropic's API. The conventions count them
    as input.
    """
    counts = {"input_tokens": 7, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 3, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [], "usage": counts}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}
    return event({"type": "message_start", "message": message}) + event(end) + event({"type": "message_stop"})


def test_input_tokens_include_the_cache(meters: Meters) -> None:
    list(meters.metrics.measure(sw.iter_batches([messages_with_a_cache()])))
    tokens = meters.read()["gen_ai.client.token.usage"]
    assert {point.attributes["gen_ai.token.type"]: point.sum for point in tokens} == {"input": 100, "output": 5}


def test_a_cut_stream_has_no_token_counts(meters: Meters) -> None:
    """The first event of Messages reports one output token, whatever follows."""
    text = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    pieces = [messages_with_a_cache().split(b"\n\n")[0] + b"\n\n", event(start), event(text), event(text)]
    with pytest.raises(sw.TruncatedStream):
        list(meters.metrics.measure(sw.iter_batches(slowly(pieces))))
    points = meters.read()
    assert points["streamweld.streams"][0].attributes["streamweld.completeness"] == "truncated"
    assert not {"gen_ai.client.token.usage", "streamweld.output_token_rate"} & set(points)


def test_a_stream_that_is_left(meters: Meters) -> None:
    closed: list[bool] = []

    def source() -> Iterator[bytes]:
        try:
            yield from BODY
        finally:
            closed.append(True)

    events = meters.metrics.measure(sw.iter_batches(source()))
    next(events)
    events.close()
    assert closed == [True]
    (streams,) = meters.read()["streamweld.streams"]
    assert streams.attributes["streamweld.completeness"] == "open"


def test_a_repaired_client(meters: Meters) -> None:
    app = Starlette(routes=[Route("/v1/chat/completions", streaming(*BODY), methods=["POST"])])
    with running(app) as url:
        requested = {"model": "m", "stream": True}
        with (
            repair(httpx2.Client(), on_diagnostic=meters.metrics) as client,
            client.stream("POST", f"{url}/v1/chat/completions", json=requested) as response,
        ):
            assert response.read()
    check_whole(meters.read())


@pytest.mark.parametrize("reads_events", [True, False])
def test_a_client_that_stops_reading_at_the_terminal_marker(
    meters: Meters, reads_events: bool, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """openai-python stops at `[DONE]`, before the end of the input."""
    monkeypatch.setattr(import_module("streamweld.convert"), "backend", backend)
    client = openai_repair(OpenAI(api_key="k", base_url="http://gateway/v1"), on_diagnostic=meters.metrics)
    stream = build("chat", [Text("Let me look.")])
    requested: Any = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    with BrokenGateway([stream]) as gateway, client:
        client.base_url = f"{gateway.url}/v1"
        if reads_events:
            with client.chat.completions.stream(**requested) as events:
                assert events.get_final_completion().choices[0].message.content == "Let me look."
        else:
            chunks = list(client.chat.completions.create(**requested, stream=True))
            assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Let me look."
    (streams,) = meters.read()["streamweld.streams"]
    assert streams.attributes["streamweld.completeness"] == "complete"


def test_the_middleware(meters: Meters) -> None:
    with running(starlette(streaming(*BODY), on_diagnostic=meters.metrics)) as url:
        assert httpx2.get(f"{url}/v1/chat/completions").content
    check_whole(meters.read())


def test_without_the_api_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otel_metrics, "find_spec", lambda _: None)
    with pytest.raises(sw.MissingExtra, match=r"streamweld\[otel\]"):
        otel.StreamMetrics()


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    code = (
        "import sys, streamweld.integrations.otel; print(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_an_event_costs_a_tenth_of_a_microsecond(meters: Meters) -> None:
    """The cost per event is the time added to the plain loop, in reads of the usual size, including the recording at
    the end."""
    body = b"".join(chunk({"content": "word "}, **HEAD) for _ in range(40_000)) + DONE
    reads = [body[at : at + 16_384] for at in range(0, len(body), 16_384)]

    def plain() -> float:
        began = time.thread_time()
        count = sum(1 for _ in sw.iter_events(reads))
        took = time.thread_time() - began
        assert count > 40_000
        return took / count

    def measured() -> float:
        began = time.thread_time()
        count = sum(1 for _ in meters.metrics.measure(sw.iter_batches(reads)))
        return (time.thread_time() - began) / count

    added = min(measured() for _ in range(5)) - min(plain() for _ in range(5))
    assert added < 0.1e-6
