"""No truncation is silent over the wire: recorded streams whose connection breaks, through every integration, on the
loopback interface.

The upstream disconnects in the middle of a chunk (FIN), resets the connection (RST), or ends a chunked body without its
last chunk. A client that uses the `httpx` hook, the `aiohttp` middleware, the ASGI middleware or the proxy gets an
exception, an error of its API, or the complete response. Full counts (STREAMWELD_FULL=1): more streams and places.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx
import httpx2
import pytest
import streamweld as sw
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route
from streamweld.integrations.aiohttp import repair_middleware
from streamweld.integrations.asgi import RepairMiddleware
from streamweld.integrations.httpx import async_repair_hook, repair_hook

from tests.conftest import NIGHTLY
from tests.support.corpus import absent, recordings
from tests.support.cuts import POLICIES, Quiet, Uncut, facts_of, judge, places_in, record
from tests.support.servers.proxying import ASK, between
from tests.support.servers.upstream import Talk, Upstream, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from starlette.requests import Request

    from tests.support.corpus import Recording

pytestmark = pytest.mark.skipif(absent() is not None, reason=absent() or "")

PATHS = {
    "chat": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "responses": "/v1/responses",
    "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse",
}
PROXY_DIALECTS = ("chat", "anthropic", "responses")
BODY: dict[str, Any] = ASK | {"input": "?"}
MORE = 64  # number of announced bytes that are never sent
LONGEST = 6_000


async def fin_in_a_chunk(talk: Talk, body: bytes) -> None:
    await talk.raw(b"%x\r\n%s" % (len(body) + MORE, body))
    talk.keep = False


async def unfinished_body(talk: Talk, body: bytes) -> None:
    await talk.send(body)
    talk.keep = False


async def rst(talk: Talk, body: bytes) -> None:
    await talk.send(body)
    await asyncio.sleep(0.02)  # without the pause, the sent bytes are lost, too
    talk.reset()


FAILURES: dict[str, Callable[[Talk, bytes], Awaitable[None]]] = {
    "fin_in_a_chunk": fin_in_a_chunk,
    "unfinished_body": unfinished_body,
    "rst": rst,
}


def chosen(dialect: str) -> list[Recording]:
    """Return short streams of that dialect with a clean end."""
    rows = [r for r in recordings(dialect) if 600 < r.size < LONGEST and not r.wrapped and b"data:" in r.body]
    whole = [r for r in rows if read(r.body, dialect)[1] is None]
    return whole[:: max(1, len(whole) // (12 if NIGHTLY else 2))][: 12 if NIGHTLY else 2]


def read(body: bytes, dialect: Any) -> tuple[sw.Response, sw.StreamError | None]:
    parser = sw.StreamParser(dialect=dialect)
    try:
        parser.feed(body)
        parser.close()
    except sw.StreamError as error:
        return parser.response, error
    return parser.response, None


def failing(bodies: dict[str, bytes]) -> Upstream:
    """An upstream that sends the part of a stream that the header `x-request-id` requests, and fails in the requested
    way."""

    async def script(talk: Talk) -> None:
        failure, name, place = (talk.asked.header("x-request-id") or "").split("|")
        await talk.head()
        await FAILURES[failure](talk, bodies[name][: int(place)])

    return Upstream(script)


Got = tuple[bytes, "Exception | None"]


def by_hook(family: Any, url: str, told: dict[str, str], policy: Any) -> Got:
    got = b""
    with family.Client(event_hooks={"response": [repair_hook(policy=policy)]}, verify=False) as client:
        try:
            with client.stream("POST", url, json=BODY, headers=told) as answer:
                for piece in answer.iter_bytes():
                    got += piece
        except (httpx.HTTPError, httpx2.HTTPError, sw.StreamError) as error:
            return got, error
    return got, None


def by_async_hook(family: Any, url: str, told: dict[str, str], policy: Any) -> Got:
    async def run() -> Got:
        got = b""
        async with family.AsyncClient(
            event_hooks={"response": [async_repair_hook(policy=policy)]}, verify=False
        ) as client:
            try:
                async with client.stream("POST", url, json=BODY, headers=told) as answer:
                    async for piece in answer.aiter_bytes():
                        got += piece
            except (httpx.HTTPError, httpx2.HTTPError, sw.StreamError) as error:
                return got, error
        return got, None

    return asyncio.run(run())


def by_aiohttp(url: str, told: dict[str, str], policy: Any) -> Got:
    async def run() -> Got:
        got = b""
        async with aiohttp.ClientSession(middlewares=[repair_middleware(policy=policy)]) as session:
            try:
                async with session.post(url, json=BODY, headers=told) as answer:
                    async for piece in answer.content.iter_any():
                        got += piece
            except (aiohttp.ClientError, sw.StreamError) as error:
                return got, error
        return got, None

    return asyncio.run(run())


def plainly(url: str, told: dict[str, str]) -> Got:
    """Read with a client that does not repair anything."""
    got = b""
    try:
        with httpx2.stream("POST", url, json=BODY, headers=told, timeout=20, verify=False) as answer:
            for piece in answer.iter_bytes():
                got += piece
    except httpx2.HTTPError as error:
        return got, error
    return got, None


CLIENTS: dict[str, Callable[[str, dict[str, str], Any], Got]] = {
    "httpx": lambda *asked: by_hook(httpx, *asked),
    "httpx2": lambda *asked: by_hook(httpx2, *asked),
    "httpx-async": lambda *asked: by_async_hook(httpx, *asked),
    "aiohttp": by_aiohttp,
}


@dataclass(frozen=True)
class Cut:
    """One stream that is truncated at one place in one way."""

    name: str
    dialect: str
    body: bytes
    place: int
    failure: str

    @property
    def told(self) -> dict[str, str]:
        return {"x-request-id": f"{self.failure}|{self.name}|{self.place}"}

    @property
    def has_ended(self) -> bool:
        """True if the terminal marker was sent, so that a later failure of the connection does not matter."""
        parser = sw.StreamParser(dialect=self.dialect)  # type: ignore[arg-type]
        try:
            parser.feed(self.body[: self.place])
            parser.close(broken=True)
        except sw.StreamError:
            return False
        return True


def outcome_of(cut: Cut, got: Got, target: str | None = None) -> tuple[str, str | None]:
    """Return the outcome of a client's result; if converted, compare only texts, because call ids are generated."""
    body, error = got
    response, fault = read(body, target or cut.dialect)
    whole = cut.body if target is None else sw.convert(cut.body, source=cut.dialect, target=target)  # type: ignore[arg-type]
    uncut = read(whole, target or cut.dialect)[0]
    seen: list[Any] = [[choice.text for choice in one.choices] for one in (response, uncut)]
    if target is None:
        seen = [facts_of(response), facts_of(uncut)]
    quiet = Quiet(seen[0], response.completeness, frozenset())
    outcome, words = judge(Uncut(cut.name, seen[1], failed=False), error or fault or response.error, quiet)
    if outcome == "equal" and not cut.has_ended:
        return "silent", "the transport failed before the end, and nothing says so"
    return outcome, words


@cache
def cuts_of(dialect: str, *, full: bool) -> tuple[Cut, ...]:
    found: list[Cut] = []
    for recording in chosen(dialect):
        body, name = recording.body, f"{recording.folder}/{recording.name}"
        # After one of the last blocks, a truncated stream looks complete.
        ends = [place + 2 for place in range(len(body)) if body.startswith(b"\n\n", place)][-4:-1]
        for number, place in enumerate(sorted({*places_in(body, name, 6 if NIGHTLY else 2 if full else 1), *ends})):
            ways = list(FAILURES) if NIGHTLY else [list(FAILURES)[number % len(FAILURES)]]
            found += [Cut(name, dialect, body, place, failure) for failure in ways]
    return tuple(found)


def try_all(cuts: Iterable[Cut], get: Callable[[Cut], Got], target: str | None = None) -> None:
    outcomes: Counter[str] = Counter()
    wrong = []
    for cut in cuts:
        outcome, words = outcome_of(cut, get(cut), target)
        outcomes[outcome] += 1
        if words is not None:
            wrong.append(f"{cut.name} {cut.failure} at {cut.place} of {len(cut.body)}: {words}")
    record([outcomes])
    assert wrong[:5] == []
    assert outcomes["silent"] == outcomes["undecidable"] == 0
    assert outcomes["reported"]


def all_cuts(*, full: bool) -> list[Cut]:
    return [cut for dialect in PATHS for cut in cuts_of(dialect, full=full)]


def bodies_of(cuts: Iterable[Cut]) -> dict[str, bytes]:
    return {cut.name: cut.body for cut in cuts}


@pytest.mark.parametrize("client", CLIENTS)
def test_clients(client: str, full: bool) -> None:
    cuts = all_cuts(full=full)
    with failing(bodies_of(cuts)).serving() as upstream:
        for policy in POLICIES:
            try_all(cuts, lambda cut: CLIENTS[client](upstream.url + PATHS[cut.dialect], cut.told, policy))  # noqa: B023


@pytest.mark.parametrize("policy", POLICIES)
def test_proxy(policy: Any, full: bool) -> None:
    cuts = all_cuts(full=full)
    with between(failing(bodies_of(cuts)), to=None, policy=policy) as url:
        try_all(cuts, lambda cut: plainly(url + PATHS[cut.dialect], cut.told))


@pytest.mark.parametrize("source", PROXY_DIALECTS)
def test_proxy_that_converts(source: str, full: bool) -> None:
    cuts = cuts_of(source, full=full)
    with between(failing(bodies_of(cuts)), to=source) as url:
        for target in PROXY_DIALECTS:
            if target != source:
                try_all(cuts, lambda cut: plainly(url + PATHS[target], cut.told), target)  # noqa: B023


async def raises() -> None:
    raise ConnectionError("the application lost its upstream")


async def returns() -> None:
    """Return a body that is shorter than announced."""


ENDS: dict[str, Callable[[], Awaitable[None]]] = {"raises": raises, "returns": returns}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("end", ENDS)
def test_asgi_middleware(end: str, policy: Any, full: bool) -> None:
    """The application fails in the middle of the stream; how its own upstream failed does not matter."""
    cuts = all_cuts(full=full)
    bodies = bodies_of(cuts)

    async def endpoint(request: Request) -> StreamingResponse:
        _, name, place = request.headers["x-request-id"].split("|")

        async def streamed() -> AsyncIterator[bytes]:
            yield bodies[name][: int(place)]
            await ENDS[end]()

        length = {"content-length": str(len(bodies[name]))} if end == "returns" else {}
        return StreamingResponse(streamed(), headers=length, media_type="text/event-stream")

    app = Starlette(routes=[Route("/{path:path}", endpoint, methods=["POST"])])
    app.add_middleware(RepairMiddleware, policy=policy)  # type: ignore[arg-type]
    with running(app) as url:
        try_all(cuts, lambda cut: plainly(url + PATHS[cut.dialect], cut.told))
