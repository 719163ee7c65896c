"""The broken gateway, its pytest plugin, and the guide's test as a user would run it."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import tomllib
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from streamweld.errors import UsageError
from streamweld.testing import BrokenGateway, Call, Piece, Recording, Reply, Request, Text, build, every_operator
from streamweld.testing.plugin import broken_gateway

from tests.docs.pages import DOCS, blocks
from tests.support.places import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["broken_gateway"]

STREAM = build("chat", [Text("Let me look."), Call("get_weather", '{"city":"Oslo"}')])


CLIENT = httpx.Client()
NAMED = ("-p", "streamweld.testing.plugin")


def post(url: str, **more: Any) -> httpx.Response:
    return CLIENT.post(url + "/v1/chat/completions", json={"stream": True}, **more)


def test_a_script_is_answered_in_order(broken_gateway: Callable[..., BrokenGateway]) -> None:
    gateway = broken_gateway([b"one", STREAM, Reply((Piece(0.0, b"{}"),), 503, "application/json")])
    assert [post(gateway.url).content for _ in range(2)] == [b"one", STREAM.body]
    for _ in range(2):  # the last response is repeated
        last = post(gateway.url)
        assert (last.status_code, last.headers["content-type"], last.content) == (503, "application/json", b"{}")
    first = gateway.requests[0]
    assert (first.method, first.path, first.body) == ("POST", "/v1/chat/completions", b'{"stream":true}')
    assert first.json() == {"stream": True}
    with pytest.raises(ValueError, match="Expecting value"):
        Request("POST", "/", {}, b"").json()


def test_a_script_can_be_a_function_of_the_request() -> None:
    def reply(request: Request) -> bytes:
        return request.path.encode()

    with BrokenGateway(reply) as gateway:
        assert CLIENT.get(gateway.url + "/a?b=1").content == b"/a?b=1"


def test_pieces_arrive_as_they_are_scripted() -> None:
    with BrokenGateway([Recording.of(STREAM, gap=0.03)], speed=1) as gateway:
        began = time.monotonic()
        with CLIENT.stream("POST", gateway.url) as answer:
            assert list(answer.iter_raw()) == list(STREAM.chunks)
        assert time.monotonic() - began >= 0.03 * (len(STREAM.chunks) - 1)


@pytest.mark.parametrize(
    ("end", "raised"),
    [("cut", httpx.RemoteProtocolError), ("reset", httpx.TransportError), ("stall", httpx.ReadTimeout)],
)
def test_a_body_ends_badly(end: Any, raised: type[Exception]) -> None:
    began = time.monotonic()
    with BrokenGateway([Reply.of(STREAM, end=end)]) as gateway, pytest.raises(raised):
        post(gateway.url, timeout=0.3)
    assert time.monotonic() - began < 5  # `close` does not wait for stalled connections


@pytest.mark.parametrize(
    ("end", "hint"), [("silence", "; did you mean stall?"), ("truncated", "; did you mean cut?"), ("x", "")]
)
def test_an_unknown_end_is_refused_with_the_one_that_was_meant(end: Any, hint: str) -> None:
    expected = re.escape(f"end={end!r}: it must be one of complete, cut, reset, stall{hint}") + "$"
    with pytest.raises(UsageError, match=expected):
        Reply((), end=end)
    with pytest.raises(UsageError, match=expected):
        Reply.of(STREAM, end=end)


def test_a_client_that_leaves_does_not_stop_the_gateway() -> None:
    with BrokenGateway([Recording.of(STREAM, gap=0.01), STREAM], speed=1) as gateway:
        with CLIENT.stream("POST", gateway.url) as answer:
            next(answer.iter_raw())
        assert post(gateway.url).content == STREAM.body


def test_every_operator_takes_the_first_stream_that_it_applies_to() -> None:
    texts = build("chat", [Text("Hello there")])
    names = [broken.operators for broken in every_operator(texts, STREAM)]
    assert len(names) == len(set(names)) > 120
    assert all(len(each) == 1 for each in names)
    assert ("index_is_a_string",) in names


@pytest.mark.parametrize("dialect", ["chat", "responses", "anthropic"])
def test_calls_of_other_tools_can_be_left_out(dialect: Any) -> None:
    two = build(dialect, [Call("get_weather", '{"city":"Oslo"}'), Call("get_time", '{"zone":"CET"}')])
    own = {(call.name, call.arguments) for call in two.expected.calls}
    kept = list(every_operator(two, keep_calls=True))
    assert all((call.name, call.arguments) in own for broken in kept for call in broken.expected.calls)
    left = {broken.operators[0] for broken in every_operator(two)} - {broken.operators[0] for broken in kept}
    assert "two_objects" not in left
    if dialect == "chat":
        assert left >= {"looks_cumulative", "no_arguments", "arguments_restart", "non_ascii_name"}


def test_the_plugin_is_declared() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"streamweld": "streamweld.testing.plugin"}


def test_the_test_of_the_guide_passes(tmp_path: Path) -> None:
    page = (DOCS / "guides" / "testing.md").read_text("utf-8")
    (code,) = [block.code for block in blocks(page) if "def test_agent" in block.code]
    (tmp_path / "test_agent.py").write_text(code, "utf-8")
    # An older environment, installed without the entry point, does not have the plugin. To load it twice is an error.
    installed = "streamweld" in entry_points(group="pytest11").names
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", ".", *(() if installed else NAMED)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert " passed" in done.stdout


NOT_REPLIES = [
    (None, "is None: an operator returns None if it does not apply to the stream"),
    ("mine.sse", "is of type str: pass read_recording(file) for a recording"),
    (REPOSITORY / "mine.sse", "Path: pass read_recording(file) for a recording"),
    (7, "is of type int: pass a stream of `build`, a Recording, a Reply, or the bytes of a body"),
]


@pytest.mark.parametrize(("given", "message"), NOT_REPLIES)
def test_a_script_that_contains_something_else_is_rejected(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)) as caught:
        BrokenGateway([STREAM, given])
    assert str(caught.value).startswith("script[1] is ")
    with pytest.raises(TypeError, match=re.escape(message)):
        Reply.of(given)


@pytest.mark.parametrize(("given", "message"), NOT_REPLIES)
def test_a_function_that_does_not_return_a_reply_fails_the_test(given: Any, message: str) -> None:
    def script(_: Request) -> Any:
        return given

    gateway = BrokenGateway(script)
    answer = post(gateway.url)
    assert (answer.status_code, message in answer.text) == (500, True)
    with pytest.raises(TypeError, match=re.escape(message)):
        gateway.close()


def test_an_exception_of_a_function_is_raised_when_the_gateway_closes() -> None:
    def script(request: Request) -> bytes:
        raise KeyError(request.path)

    gateway = BrokenGateway(script)
    answer = post(gateway.url)
    assert (answer.status_code, "KeyError" in answer.text) == (500, True)
    with pytest.raises(KeyError, match="/v1/chat/completions"):
        gateway.close()
