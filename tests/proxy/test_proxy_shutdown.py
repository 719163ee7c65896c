"""Shutdown of the proxy while streams are open: the streams of every API end with that API's error."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
import openai
import pytest
from streamweld.testing.recording import parse_recording

from tests.integrations.test_asgi import HEAD
from tests.proxy.test_proxy import ASKED, CHAT, command
from tests.support.servers.proxying import ASK
from tests.support.servers.upstream import Talk, Upstream, sse, until
from tests.support.servers.wire import chunk, end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FIRST = chunk({"role": "assistant", "content": "Hel"}, **HEAD)


async def silent(talk: Talk) -> None:
    """Send one piece, and then no data for longer than any grace period."""
    await talk.head()
    await talk.send(FIRST)
    await talk.wait_for_leave(60)


async def deaf(talk: Talk) -> None:
    """Do not send anything, not even a head."""
    await talk.wait_for_leave(60)


def chat(url: str) -> Iterator[Any]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        yield from client.chat.completions.create(model="m", messages=[], stream=True)


def responses(url: str) -> Iterator[Any]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        yield from client.responses.create(model="m", input="?", stream=True)


def messages(url: str) -> Iterator[Any]:
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client:
        yield from client.messages.create(**ASKED, stream=True)


CLIENTS = [(chat, openai.APIError), (responses, openai.APIError), (messages, anthropic.APIStatusError)]


@pytest.mark.parametrize(("client", "error"), CLIENTS, ids=["chat", "responses", "messages"])
def test_a_stream_that_outlives_the_grace_ends_with_an_error_of_its_api(
    client: Callable[[str], Iterator[Any]], error: type[Exception]
) -> None:
    upstream = Upstream(silent)
    with (
        upstream.serving(),
        command("--upstream", f"{upstream.url}/v1", "--to", "chat", "--grace", "1") as (process, url, lines),
    ):
        events = client(url)
        next(events)
        told = time.monotonic()
        process.send_signal(signal.SIGTERM)
        with pytest.raises(error, match="the proxy was stopped before the stream ended") as caught:
            list(events)
        process.wait(10)
        assert 1.0 <= time.monotonic() - told < 5
    assert not isinstance(caught.value, openai.APIConnectionError)
    (asked,) = upstream.seen
    until(lambda: asked.gone_at is not None)
    (line,) = [line for line in lines if "path=" in line]
    assert "outcome=shutdown fault=TruncatedStream" in line
    assert not any("Traceback" in line for line in lines)
    assert not any(" ERROR " in line for line in lines)
    messages = [line.split("INFO ")[-1].strip() for line in lines if "INFO stop" in line]
    assert messages == ["stopping", "stopped"]


def test_the_recording_of_a_stream_that_the_proxy_stops_ends_as_left(tmp_path: Path) -> None:
    upstream = Upstream(silent)
    options = ("--to", "chat", "--grace", "0", "--record", str(tmp_path))
    with upstream.serving(), command("--upstream", f"{upstream.url}/v1", *options) as (process, url, _):
        events = chat(url)
        next(events)
        process.send_signal(signal.SIGTERM)
        with pytest.raises(openai.APIError):
            list(events)
        process.wait(10)
    (file,) = tmp_path.iterdir()
    assert parse_recording(file.read_text("utf-8")).end == "left"


def test_what_has_no_answer_when_the_grace_is_over_is_refused_with_a_status_that_is_tried_again() -> None:
    upstream = Upstream(deaf)
    got: list[httpx2.Response] = []
    with (
        upstream.serving(),
        command("--upstream", upstream.url, "--to", "chat", "--grace", "0") as (process, url, lines),
    ):
        asks = threading.Thread(
            target=lambda: got.append(httpx2.post(f"{url}/v1/messages", json=ASK, timeout=20)), daemon=True
        )
        asks.start()
        until(lambda: upstream.seen)
        process.send_signal(signal.SIGTERM)
        asks.join(10)
        process.wait(10)
    (answer,) = got
    assert answer.status_code == 503
    assert answer.json() == {"type": "error", "error": {"type": "api_error", "message": "the proxy is being stopped"}}
    assert not any("Traceback" in line for line in lines)


def test_many_streams_end_at_once_when_the_grace_is_over() -> None:
    async def ask(client: httpx2.AsyncClient, url: str, begun: asyncio.Semaphore) -> bytes:
        async with client.stream("POST", f"{url}/v1/chat/completions", json=CHAT, timeout=30) as answer:
            body = b""
            async for piece in answer.aiter_raw():
                if not body:
                    begun.release()
                body += piece
            return body

    async def all_of_them(url: str, stop: Callable[[], None]) -> list[bytes]:
        begun = asyncio.Semaphore(0)
        async with httpx2.AsyncClient(limits=httpx2.Limits(max_connections=None)) as client:
            asks = [asyncio.create_task(ask(client, url, begun)) for _ in range(50)]
            for _ in asks:
                await asyncio.wait_for(begun.acquire(), 20)
            stop()
            return await asyncio.gather(*asks)

    upstream = Upstream(silent)
    with upstream.serving(), command("--upstream", upstream.url, "--grace", "1") as (process, url, _):
        bodies = asyncio.run(all_of_them(url, lambda: process.send_signal(signal.SIGTERM)))
        process.wait(10)
    assert {body.startswith(FIRST) and b'data: {"error":{' in body for body in bodies} == {True}
    until(lambda: not upstream.open)


def test_an_interrupt_ends_it_in_order() -> None:
    with command("--upstream", "http://127.0.0.1:9") as (process, url, lines):
        assert httpx2.get(f"{url}/healthz").status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 128 + signal.SIGINT
    assert [line.split()[-1] for line in lines[1:]] == ["stopping", "stopped"]


WITH_SPANS = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
from streamweld.__main__ import main

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter()))
trace.set_tracer_provider(provider)
main()
"""


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_spans_that_wait_to_be_sent_are_sent_before_the_end(told: signal.Signals) -> None:
    """The SDK sends its last spans in exit handlers, which do not run if the signal kills the process."""
    with Upstream(sse(FIRST, end("stop"))).serving() as upstream:
        args = ["proxy", "--port", "0", "--otel", "--upstream", upstream.url]
        process = subprocess.Popen(
            [sys.executable, "-c", WITH_SPANS, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        with process:
            assert process.stderr is not None
            url = process.stderr.readline().split(" ")[1]
            assert httpx2.post(f"{url}/v1/chat/completions", json=CHAT, timeout=20).status_code == 200
            process.send_signal(told)
            spans, _ = process.communicate(timeout=20)
    assert '"name": "chat m"' in spans
    assert process.returncode == 128 + told


@pytest.mark.parametrize("flags", [("--otel",), ()])
def test_spans_that_no_sdk_exports_are_a_warning_at_start(flags: tuple[str, ...]) -> None:
    with command("--upstream", "http://127.0.0.1:9", *flags) as (process, _, lines):
        process.terminate()
        assert process.wait(20) == 128 + signal.SIGTERM
    shown = [line for line in lines if "no OpenTelemetry SDK is set up, so no span is exported" in line]
    assert len(shown) == len(flags)
    assert all("opentelemetry-instrument" in line for line in shown)


def test_otel_without_its_extra_is_refused_at_start() -> None:
    without = (
        "import importlib.util as util\nfound = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'opentelemetry' else found(name, *rest)\n"
        "from streamweld.__main__ import main\nmain()"
    )
    args = ["proxy", "--port", "0", "--otel", "--upstream", "http://127.0.0.1:9"]
    done = subprocess.run(
        [sys.executable, "-c", without, *args], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "pip install 'streamweld[otel]'" in line


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_at_once(first: signal.Signals, second: signal.Signals) -> None:
    upstream = Upstream(silent)
    with (
        upstream.serving(),
        command("--upstream", upstream.url, "--grace", "300") as (process, url, lines),
        httpx2.stream("POST", f"{url}/v1/chat/completions", json=CHAT, timeout=20) as answer,
    ):
        pieces = answer.iter_raw()
        assert next(pieces) == FIRST
        process.send_signal(first)
        time.sleep(0.5)
        assert process.poll() is None
        told = time.monotonic()
        process.send_signal(second)
        assert process.wait(10) == 128 + second
        assert time.monotonic() - told < 1
        with pytest.raises(httpx2.RemoteProtocolError):
            list(pieces)
    assert not any("Traceback" in line for line in lines)


def test_a_signal_ends_what_others_do_at_the_end() -> None:
    """A second signal ends slow exit handlers, such as those of an SDK that sends its last spans to a collector that
    does not respond.
    """
    slow = "import atexit, time\nfrom streamweld.__main__ import main\natexit.register(time.sleep, 60)\nmain()"
    process = subprocess.Popen(
        [sys.executable, "-c", slow, "proxy", "--port", "0", "--upstream", "http://127.0.0.1:9"],
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        time.sleep(1)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 128 + signal.SIGTERM
        assert [line.split()[-1] for line in process.stderr.read().splitlines()] == ["stopping", "stopped"]
