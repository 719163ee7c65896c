"""One large response or request does not block the others: `/healthz` responds while the proxy works on it."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import streamweld as sw

from tests.proxy.test_proxy import command
from tests.support.servers.upstream import Talk, Upstream, sse
from tests.support.servers.wire import DONE, chunk, event

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

SIZE = 1_800_000
MOST = 0.25
"""Maximum time in seconds. A step of work takes some milliseconds, plus thread switches."""

HEAD: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
WORD = 'some words, "quoted" and\nbroken; '


def words(size: int) -> str:
    return WORD * (size // len(WORD))


def many_events(size: int) -> bytes:
    one = chunk({"content": WORD}, **HEAD)
    return one * (size // len(one)) + chunk({}, "stop", **HEAD) + DONE


def one_event(size: int) -> bytes:
    return chunk({"content": words(size)}, **HEAD) + chunk({}, "stop", **HEAD) + DONE


def one_call(size: int) -> bytes:
    function = {"name": "f", "arguments": json.dumps({"a": words(size)})}
    call = {"index": 0, "id": "call_1", "type": "function", "function": function}
    return chunk({"tool_calls": [call]}, **HEAD) + chunk({}, "tool_calls", **HEAD) + DONE


def many_pieces_of_a_call(size: int) -> bytes:
    arguments = json.dumps({"a": words(size // 8)})
    first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}
    pieces = [chunk({"tool_calls": [first]}, **HEAD)]
    for at in range(0, len(arguments), 20):
        piece = {"index": 0, "function": {"arguments": arguments[at : at + 20]}}
        pieces.append(chunk({"tool_calls": [piece]}, **HEAD))
    return b"".join(pieces) + chunk({}, "tool_calls", **HEAD) + DONE


def whole(size: int) -> bytes:
    """Return one JSON response with a text and the maximum number of calls."""
    calls = [
        {"id": f"call_{at}", "type": "function", "function": {"name": "f", "arguments": json.dumps({"a": words(800)})}}
        for at in range(1000)
    ]
    message = {"role": "assistant", "content": words(size - 1_000_000), "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return json.dumps(body | {"usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}).encode()


def history(size: int) -> list[dict[str, Any]]:
    """Return many short turns with calls and their results, as Anthropic messages."""
    turns: list[dict[str, Any]] = []
    at = 0
    while len(turns) * 150 < size:
        at += 1
        turns += [
            {"role": "user", "content": f"question {at}: {WORD}"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": f"toolu_{at}", "name": "f", "input": {"n": at}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"toolu_{at}", "content": WORD}]},
            {"role": "assistant", "content": [{"type": "text", "text": WORD}]},
        ]
    return [*turns, {"role": "user", "content": "and now?"}]


def many_items(size: int) -> bytes:
    """Return a Responses stream with a new item for each delta, none of which is ever closed."""
    response = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "in_progress",
        "model": "m",
        "output": [],
    }
    pieces = [event({"type": "response.created", "sequence_number": 0, "response": response})]
    length = 0
    while length < size:
        place = {"item_id": f"msg_{len(pieces)}", "output_index": len(pieces) - 1, "content_index": 0}
        delta = {"type": "response.output_text.delta", "sequence_number": len(pieces), **place, "delta": "word "}
        pieces.append(event(delta))
        length += len(pieces[-1])
    return b"".join(pieces)


ASK: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}], "stream": True}


def worked(pid: int) -> float:
    """Return the processor time in seconds that a process has used; if it cannot be read, the elapsed time."""
    if sys.platform != "linux":
        return time.perf_counter()
    words = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Health:
    """Requests `/healthz` continuously, from its own thread.

    `seconds`: the processor time of the proxy until it responded, or the elapsed time if that is less, because on a
    busy machine, a proxy that is not scheduled cannot respond either.
    """

    def __init__(self, url: str, pid: int) -> None:
        self._url = url
        self._pid = pid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self.seconds: list[float] = []

    def _ask(self) -> None:
        with httpx2.Client(timeout=60) as client:
            while not self._stop.is_set():
                began, before = time.perf_counter(), worked(self._pid)
                assert client.get(f"{self._url}/healthz").status_code == 200
                self.seconds.append(min(time.perf_counter() - began, worked(self._pid) - before))
                time.sleep(0.002)

    def __enter__(self) -> Self:
        self._thread.start()
        while not self.seconds:
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)


async def as_json(talk: Talk) -> None:
    await talk.whole(whole(SIZE))


ANSWERS: dict[str, Callable[[int], bytes]] = {
    "many events": many_events,
    "one event": one_event,
    "one call": one_call,
    "many pieces of a call": many_pieces_of_a_call,
}


def asked(upstream: Upstream, path: str, body: Any, to: str = "chat") -> tuple[httpx2.Response, list[float]]:
    sent = json.dumps(body).encode()
    with (
        upstream.serving(),
        command("--upstream", upstream.url, "--to", to) as (process, url, _lines),
        Health(url, process.pid) as health,
    ):
        answer = httpx2.post(url + path, content=sent, headers={"content-type": "application/json"}, timeout=120)
        seconds = list(health.seconds)
    print(f"{len(answer.content)} bytes, /healthz {len(seconds)} times, at most {max(seconds):.3f} s")
    return answer, seconds


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
@pytest.mark.parametrize("name", ANSWERS)
def test_a_large_stream(backend: str, name: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMWELD_BACKEND", backend)
    answer, seconds = asked(Upstream(sse(ANSWERS[name](SIZE))), path, ASK | {"input": "?"})
    shown = sw.parse(answer.content)
    assert shown.completeness == "complete"
    assert len(shown.text) + sum(len(call.arguments) for call in shown.tool_calls) > SIZE // 10
    assert max(seconds) < MOST


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages"])
def test_a_large_stream_of_items(backend: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMWELD_BACKEND", backend)
    answer, seconds = asked(Upstream(sse(many_items(SIZE))), path, ASK | {"input": "?"}, "responses")
    with pytest.raises(sw.UpstreamError):  # the stream has no end
        sw.parse(answer.content)
    assert max(seconds) < MOST


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses"])
def test_a_large_whole_answer(backend: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMWELD_BACKEND", backend)
    answer, seconds = asked(Upstream(as_json), path, ASK | {"input": "?", "stream": False})
    assert answer.status_code == 200
    assert len(sw.parse(answer.content).tool_calls) == 1000
    assert max(seconds) < MOST


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
def test_a_large_request(path: str) -> None:
    """Megabytes of short messages, to be converted or passed through."""
    messages = history(2 * SIZE) if path == "/v1/messages" else ASK["messages"] * 45_000
    upstream = Upstream(sse(chunk({"content": "x"}, **HEAD), chunk({}, "stop", **HEAD), DONE))
    answer, seconds = asked(upstream, path, ASK | {"messages": messages})
    assert sw.parse(answer.content).text == "x"
    assert max(seconds) < MOST
