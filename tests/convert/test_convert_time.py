"""The creation time that conversions write: the source's, or the one that `now` returns."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw
from streamweld import errors

from tests.support.backends import using

if TYPE_CHECKING:
    from collections.abc import Callable

GEMINI = b'data: {"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"},"finishReason":"STOP"}]}\n\n'
CHAT = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":%d,"model":"m","choices":[{"index":0,'
    b'"delta":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


def created(body: bytes) -> set[int]:
    """Return every creation time in a stream of Chat Completions or Responses."""
    payloads = [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: {")]
    found = {payload["created"] for payload in payloads if "created" in payload}
    return found | {payload["response"]["created_at"] for payload in payloads if "response" in payload}


@pytest.mark.parametrize("target", ["chat", "responses"])
def test_what_the_source_does_not_state_is_the_time_that_was_given(backend: str, target: Any) -> None:
    requested: list[int] = []

    def clock() -> float:
        requested.append(1)
        return 1_700_000_000.9

    with using(backend):
        assert created(sw.convert(GEMINI, target=target, now=7)) == {7}
        assert created(b"".join(sw.iter_convert([GEMINI[:40], GEMINI[40:]], target=target, now=8.5))) == {8}
        assert created(sw.convert(GEMINI, target=target, now=clock)) == {1_700_000_000}
        assert requested == [1]
        assert created(sw.convert(GEMINI, target=target, seed="s", now=9)) == {9}


@pytest.mark.parametrize("target", ["chat", "responses"])
def test_without_now_it_is_the_current_time_or_0_with_a_seed(backend: str, target: Any) -> None:
    with using(backend):
        before = int(time.time())
        (second,) = created(sw.convert(GEMINI, target=target))
        assert before <= second <= time.time()
        assert created(sw.convert(GEMINI, target=target, seed="s")) == {0}


@pytest.mark.parametrize("told", [0, 1_600_000_000])
def test_the_time_of_the_source_stays(backend: str, told: int) -> None:
    with using(backend):
        assert created(sw.convert(CHAT % told, target="responses", now=7)) == {told}
        assert sw.convert(CHAT % told, target="same", now=7) == CHAT % told


def test_repair_states_it_in_what_it_writes(backend: str) -> None:
    function = b'"function":{"name":"f","arguments":"{}"}'
    call = b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"%b","type":"function",' + function
    call += b'}]},"finish_reason":%b}]}\n\n'
    body = call % (b"a", b"null") + call % (b"b", b'"tool_calls"')
    with using(backend):
        made = sw.convert(body + b"data: [DONE]\n\n", source="chat", target="same", now=7)
    assert made != body
    assert created(made) == {7}


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), 2**53 + 1, 10**400, "1", True, lambda: None])
def test_a_time_that_cannot_be(backend: str, wrong: float | Callable[[], float]) -> None:
    with using(backend), pytest.raises(errors.UsageError, match="seconds since 1970"):
        sw.StreamConverter(target="chat", now=wrong)
