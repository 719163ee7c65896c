"""Agent loops with an upstream that writes a call into the text: the call runs exactly once, and the next request
contains it as a call.
"""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import TYPE_CHECKING, Any, cast

import anthropic
import httpx2
import openai
import pytest
import streamweld as sw
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route
from streamweld import Policy
from streamweld.integrations import asgi
from streamweld.integrations.asgi import RepairMiddleware
from streamweld.integrations.openai import repair

from tests.proxy.test_proxy_convert import in_turn
from tests.support.backends import BACKENDS, using
from tests.support.servers.proxying import between
from tests.support.servers.upstream import Upstream, running
from tests.text_calls.support import FAMILIES, TOOLS, events, stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

LEAKS = {
    "a leaked Qwen call": ["I look.\n\n", *FAMILIES["families"]["qwen3_coder"]],
    "a leaked DeepSeek call": ["I look.", *FAMILIES["families"]["deepseek_v31"]],
}
COMMAND = {"command": "rm -rf /tmp/x"}
FUNCTIONS: list[Any] = [
    {"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in TOOLS.items()
]
ANSWER = list(events(["Done."], finish="stop", reasoning=""))

Ran = list[tuple[str, dict[str, Any]]]


def by_openai(client: openai.OpenAI, *, most: int = 4, **options: Any) -> tuple[str, Ran]:
    """Run the loop of an openai-python user; return its last text, and the calls that it ran."""
    messages: list[Any] = [{"role": "user", "content": "Clean up."}]
    ran: Ran = []
    for _ in range(most):
        with client.chat.completions.stream(model="m", messages=messages, tools=FUNCTIONS, **options) as answer:
            message = answer.get_final_completion().choices[0].message
        messages.append(message.to_dict())
        if not message.tool_calls:
            return message.content or "", ran
        for call in message.tool_calls:
            ran.append((call.function.name, json.loads(call.function.arguments)))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "ok"})
    raise AssertionError("the loop does not end")


def by_anthropic(url: str) -> tuple[str, Ran]:
    tools: list[Any] = [{"name": name, "input_schema": schema} for name, schema in TOOLS.items()]
    messages: list[Any] = [{"role": "user", "content": "Clean up."}]
    ran: Ran = []
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client:
        for _ in range(4):
            with client.messages.stream(model="m", max_tokens=99, messages=messages, tools=tools) as answer:
                shown = answer.get_final_message()
            content = [part.model_dump(exclude_none=True) for part in shown.content]
            messages.append({"role": "assistant", "content": content})
            used = [part for part in shown.content if part.type == "tool_use"]
            if not used:
                return "".join([part.text for part in shown.content if part.type == "text"]), ran
            ran += [(part.name, dict(part.input)) for part in used]
            results = [{"type": "tool_result", "tool_use_id": part.id, "content": "ok"} for part in used]
            messages.append({"role": "user", "content": results})
    raise AssertionError("the loop does not end")


def leaking(name: str, after: list[bytes] = ANSWER) -> Upstream:
    return Upstream(in_turn(list(events(LEAKS[name], finish="stop", reasoning="")), after))


def check_history(upstream: Upstream) -> None:
    """Check that the second request contains the call as a tool call, without the text that contained it."""
    assert len(upstream.seen) == 2
    message = json.loads(upstream.seen[1].body)["messages"][1]
    [call] = message["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("run_shell", COMMAND)
    assert message["content"].strip() == "I look."


@pytest.mark.parametrize("reader", BACKENDS)
@pytest.mark.parametrize("name", LEAKS)
def test_through_a_repaired_client(reader: str, name: str) -> None:
    upstream = leaking(name)
    with using(reader), upstream.serving():
        client = repair(openai.OpenAI(base_url=upstream.url, api_key="k", max_retries=0), text_calls="promote")
        assert by_openai(client) == ("Done.", [("run_shell", COMMAND)])
    check_history(upstream)


@pytest.mark.parametrize("reader", BACKENDS)
@pytest.mark.parametrize("name", LEAKS)
@pytest.mark.parametrize("loop", ["openai", "anthropic"])
def test_through_the_proxy(reader: str, name: str, loop: str) -> None:
    """The call is also converted for a client of another API, like any other call."""
    loops: dict[str, Callable[[str], tuple[str, Ran]]] = {
        "openai": lambda url: by_openai(openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)),
        "anthropic": by_anthropic,
    }
    upstream = leaking(name)
    with using(reader), between(upstream, text_calls="promote") as url:
        assert loops[loop](url) == ("Done.", [("run_shell", COMMAND)])
    check_history(upstream)


def application(*answers: list[bytes], reads: bool = True, **options: Any) -> tuple[Any, list[bytes]]:
    """Return an application that streams these answers in turn, and the bodies that it has read."""
    bodies: list[bytes] = []
    rest = iter(answers)

    async def endpoint(request: Request) -> StreamingResponse:
        bodies.append(b"".join([part async for part in request.stream()]) if reads else b"")
        return StreamingResponse(iter(next(rest)), media_type="text/event-stream")

    app = Starlette(routes=[Route("/v1/chat/completions", endpoint, methods=["POST"])])
    app.add_middleware(RepairMiddleware, **options)  # type: ignore[arg-type]
    return app, bodies


LEAK = list(events(LEAKS["a leaked Qwen call"], finish="stop", reasoning=""))
LEAK_TEXT = "".join(LEAKS["a leaked Qwen call"])


@pytest.mark.parametrize("reader", BACKENDS)
@pytest.mark.parametrize("options", [{"text_calls": "promote"}, {"policy": Policy(text_calls="promote")}])
def test_through_the_middleware_of_an_application(reader: str, options: dict[str, Any]) -> None:
    """The application reads the request unchanged, and its client gets the call."""
    app, bodies = application(LEAK, ANSWER, **options)
    with using(reader), running(app) as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
        assert by_openai(client) == ("Done.", [("run_shell", COMMAND)])
    first, second = [json.loads(body) for body in bodies]
    assert first["tools"] == FUNCTIONS
    [call] = second["messages"][1]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == COMMAND


@pytest.mark.parametrize("reads", [True, False])
def test_the_application_need_not_read_the_body(reads: bool) -> None:
    app, bodies = application(LEAK, reads=reads, text_calls="promote")
    sent = json.dumps({"model": "m", "messages": [], "stream": True, "tools": FUNCTIONS}).encode()
    kind = {"content-type": "application/json"}
    with running(app) as url:
        answer = httpx2.post(f"{url}/v1/chat/completions", content=iter([sent[:50], sent[50:]]), headers=kind)
    [call] = sw.parse(answer.content).tool_calls
    assert json.loads(call.arguments) == COMMAND
    assert bodies == [sent if reads else b""]


def test_a_body_that_is_read_ahead_is_in_memory_once() -> None:
    pieces = 256  # of 64 KiB
    numbers = iter(range(pieces))
    read: list[int] = []

    async def receive() -> dict[str, Any]:
        number = next(numbers)
        return {"type": "http.request", "body": bytes(65_536), "more_body": number + 1 < pieces}

    async def app(_scope: Any, receive: Any, _send: Any) -> None:
        read.append(len((await receive())["body"]))

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"content-type", b"application/json")]}
    tracemalloc.start()
    asyncio.run(RepairMiddleware(app, text_calls="promote")(scope, receive, cast("Any", None)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert read == [pieces * 65_536]
    assert peak < 1.3 * read[0]


@pytest.mark.parametrize(
    ("most", "kind", "asks"),
    [
        (10**6, "application/json", {"tool_choice": "none", "tools": FUNCTIONS}),
        (10**6, "application/json", {}),
        (10**6, "multipart/form-data; boundary=x", {"tools": FUNCTIONS}),
        (100, "application/json", {"tools": FUNCTIONS}),
    ],
    ids=["choice none", "no tools", "not JSON", "too long"],
)
def test_the_middleware_promotes_no_call_without_tools(
    most: int, kind: str, asks: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asgi, "_MAX_REQUEST", most)
    app, bodies = application(LEAK, text_calls="promote")
    sent = json.dumps({"model": "m", "messages": [], "stream": True, **asks}).encode()
    pieces = iter([sent[n : n + 40] for n in range(0, len(sent), 40)])
    with running(app) as url:
        answer = httpx2.post(f"{url}/v1/chat/completions", content=pieces, headers={"content-type": kind}, timeout=20)
    shown = sw.parse(answer.content)
    assert (shown.text, shown.tool_calls) == (LEAK_TEXT, ())
    assert bodies == [sent]


def test_a_client_that_leaves_while_its_request_is_read() -> None:
    """The application learns that the client has disconnected, after the part of the body that was sent."""
    given: list[Any] = [
        {"type": "http.request", "body": b'{"tools":', "more_body": True},
        {"type": "http.disconnect"},
    ]
    got: list[Any] = []

    async def app(_scope: Any, receive: Any, _send: Any) -> None:
        got.extend([await receive(), await receive()])

    rest = iter(given)

    async def receive() -> Any:
        return next(rest)

    scope: Any = {"type": "http", "method": "POST", "path": "/", "headers": []}

    async def send(_: Any) -> None:
        raise AssertionError("nothing was sent")

    asyncio.run(RepairMiddleware(app, text_calls="promote")(scope, receive, send))
    assert got == given


@pytest.mark.parametrize(
    "body", [b'{"tools":' + b"[" * 100_000, b'{"tools":1}', b'"tools"', b'{"tools":[1,{"name":2}]}']
)
def test_a_request_that_is_not_one_is_left_to_the_application(body: bytes) -> None:
    app, bodies = application(LEAK, text_calls="promote")
    with running(app) as url:
        answer = httpx2.post(f"{url}/v1/chat/completions", content=body, timeout=20)
    shown = sw.parse(answer.content)
    assert (shown.text, shown.tool_calls) == (LEAK_TEXT, ())
    assert bodies == [body]


@pytest.mark.parametrize(("families", "ran"), [(("qwen3_coder",), [("run_shell", COMMAND)]), (("kimi_k2",), [])])
def test_the_proxy_promotes_the_given_families_only(families: tuple[str, ...], ran: Ran) -> None:
    upstream = leaking("a leaked Qwen call")
    with between(upstream, text_calls="promote", text_call_families=families) as url:
        assert by_openai(openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0))[1] == ran


@pytest.mark.parametrize(("text_calls", "ran"), [(None, [("run_shell", COMMAND)]), ("off", [])])
def test_the_proxy_follows_the_policy_unless_it_has_its_own_value(text_calls: Any, ran: Ran) -> None:
    upstream = leaking("a leaked Qwen call")
    with between(upstream, policy=Policy(text_calls="promote"), text_calls=text_calls) as url:
        assert by_openai(openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0))[1] == ran


@pytest.mark.parametrize("reader", BACKENDS)
def test_a_request_that_forbids_calls_gets_none(reader: str) -> None:
    """With the tool choice `none`, or without tools, the text remains text."""
    leak = list(events(LEAKS["a leaked Qwen call"], finish="stop", reasoning=""))
    upstream = Upstream(in_turn(leak, leak))
    text = "".join(LEAKS["a leaked Qwen call"])
    with using(reader), upstream.serving():
        client = repair(openai.OpenAI(base_url=upstream.url, api_key="k", max_retries=0), text_calls="promote")
        assert by_openai(client, tool_choice="none") == (text, [])
        requested: list[Any] = [{"role": "user", "content": "?"}]
        with client.chat.completions.stream(model="m", messages=requested) as answer:
            message = answer.get_final_completion().choices[0].message
    assert (message.content, message.tool_calls) == (text, None)


@pytest.mark.parametrize("reader", BACKENDS)
def test_a_call_that_is_sent_in_both_forms_runs_once(reader: str) -> None:
    sent = [{"id": "call_1", "name": "run_shell", "arguments": COMMAND}]
    leak = stream(LEAKS["a leaked Qwen call"], structured=sent)
    upstream = Upstream(in_turn([leak], ANSWER))
    with using(reader), upstream.serving():
        client = repair(openai.OpenAI(base_url=upstream.url, api_key="k", max_retries=0), text_calls="promote")
        assert by_openai(client) == ("Done.", [("run_shell", COMMAND)])
    check_history(upstream)
