"""Streams whose transport fails, through the proxy: none looks complete to a client, in the log or in a metric."""

from __future__ import annotations

import logging
import re
from itertools import permutations
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import streamweld as sw

from tests.support.failing import FAILURES, MARKERS, TIDY, WHOLE, failing
from tests.support.servers.proxying import ASK, between
from tests.support.servers.upstream import Upstream, sse, until

if TYPE_CHECKING:
    from collections.abc import Callable

PATHS = {
    "chat": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "responses": "/v1/responses",
    "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse",
}
BODY: dict[str, Any] = ASK | {"input": "?"}
PROXY_DIALECTS = ("chat", "anthropic", "responses")
IDLE = 0.5


@pytest.fixture
def outcome(caplog: pytest.LogCaptureFixture) -> Callable[[], tuple[str, str | None]]:
    """Return how the next stream ended, according to its line in the log."""
    caplog.set_level(logging.INFO, "streamweld.proxy")

    def of_line() -> tuple[str, str | None]:
        until(lambda: [record for record in caplog.records if record.name == "streamweld.proxy"])
        (line,) = [record.getMessage() for record in caplog.records if record.name == "streamweld.proxy"]
        caplog.clear()
        ended, fault = re.search(r" outcome=(\w+)", line), re.search(r" fault=(\w+)", line)
        assert ended is not None
        return ended[1], fault and fault[1]

    return of_line


def got(url: str, failure: str, source: str, target: str, kind: str) -> httpx2.Response:
    told = {"x-request-id": f"{failure}|{source}|{kind}"}
    return httpx2.post(url + PATHS[target], json=BODY, headers=told, timeout=20)


@pytest.mark.parametrize("policy", ["strict", "standard", "salvage", sw.Policy(missing_terminal="assume")])
@pytest.mark.parametrize("source", PATHS)
def test_a_tidy_stream_whose_transport_fails_is_cut(source: str, policy: Any, outcome: Callable[[], Any]) -> None:
    found = {}
    with between(failing(), to=None, policy=policy, idle_timeout=IDLE) as url:
        for failure in FAILURES:
            answer = got(url, failure, source, source, "tidy")
            assert answer.content.startswith(TIDY[source])
            with pytest.raises(sw.UpstreamError):  # the error has the form of the API
                sw.parse(answer.content, dialect=source)
            assert MARKERS.get(source, b"no marker") not in answer.content
            found[failure] = outcome()
        metrics = httpx2.get(f"{url}/metrics").text
    assert found == dict.fromkeys(FAILURES, ("fault", "TruncatedStream"))
    assert 'outcome="complete"' not in metrics


@pytest.mark.parametrize(("source", "target"), list(permutations(PROXY_DIALECTS, 2)))
def test_the_same_when_it_is_converted(source: str, target: str, outcome: Callable[[], Any]) -> None:
    found = {}
    with between(failing(), to=source, idle_timeout=IDLE) as url:
        for failure in FAILURES:
            answer = got(url, failure, source, target, "tidy")
            with pytest.raises(sw.UpstreamError):
                sw.parse(answer.content, dialect=target)  # type: ignore[arg-type]
            assert MARKERS[target] not in answer.content
            found[failure] = outcome()
    assert found == dict.fromkeys(FAILURES, ("fault", "TruncatedStream"))


@pytest.mark.parametrize("source", PROXY_DIALECTS)
def test_a_stream_that_had_its_terminal_marker_is_complete_however_its_transport_ends(
    source: str, outcome: Callable[[], Any]
) -> None:
    with between(failing(), to=None, idle_timeout=IDLE) as url:
        for failure in FAILURES:
            answer = got(url, failure, source, source, "whole")
            assert answer.content == WHOLE[source]
            assert outcome() == ("complete", None)


def test_a_clean_end_without_a_marker_is_no_fault_of_the_transport(outcome: Callable[[], Any]) -> None:
    with between(Upstream(sse(TIDY["chat"])), to=None) as url:
        answer = httpx2.post(url + PATHS["chat"], json=BODY)
    assert sw.parse(answer.content).completeness == "complete"  # repair adds the missing `[DONE]`
    assert outcome() == ("complete", None)


def test_what_the_policy_takes_for_whole_is_not_logged_as_complete(outcome: Callable[[], Any]) -> None:
    """An Anthropic stream ends after `content_block_stop`. With `missing_terminal="assume"`, it ends normally, and the
    missing end is reported.
    """
    body = TIDY["anthropic"].partition(b"event: message_delta")[0]
    for policy, expected in (
        ("standard", ("fault", "TruncatedStream")),
        ("salvage", ("assumed", None)),
        (sw.Policy(missing_terminal="assume"), ("assumed", None)),
    ):
        with between(Upstream(sse(body)), to=None, policy=policy) as url:
            answer = httpx2.post(url + PATHS["anthropic"], json=BODY)
        assert (b"event: message_stop" in answer.content) == (expected[0] == "assumed")
        assert outcome() == expected


@pytest.mark.parametrize("failure", [name for name in FAILURES if name != "silence"])
def test_a_whole_answer_whose_transport_fails_is_an_error(failure: str, outcome: Callable[[], Any]) -> None:
    with between(failing(), to="chat") as url:
        told = {"x-request-id": f"{failure}|chat|tidy"}
        answer = httpx2.post(f"{url}/v1/messages", json=BODY | {"stream": False}, headers=told)
    assert answer.status_code == 502
    assert "was truncated" in answer.json()["error"]["message"]
    assert outcome() == ("upstream_error", "upstream_cut")
