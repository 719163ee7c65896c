"""Streams whose transport fails, with the HTTP clients: each raises the client's exception or an error of its API."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx
import httpx2
import pytest
import streamweld as sw
from streamweld.integrations.aiohttp import repair_middleware
from streamweld.integrations.httpx import async_repair_hook, repair_hook

from tests.support.failing import CONNECTIONS, ENCODINGS, FAILURES, MARKERS, TIDY, WHOLE, failing

if TYPE_CHECKING:
    from collections.abc import Iterator

PATHS = {"chat": "/v1/chat/completions", "anthropic": "/v1/messages", "responses": "/v1/responses"}
PATHS |= {"gemini": "/v1beta/models/m:streamGenerateContent"}
STREAM = {"stream": True}
SOURCES = pytest.mark.parametrize("source", PATHS)
FAMILIES = pytest.mark.parametrize("family", [httpx, httpx2], ids=["httpx", "httpx2"])
IDLE = 0.5


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with failing().serving() as upstream:
        yield upstream.url


def asked(failure: str, source: str, kind: str) -> dict[str, str]:
    return {"x-request-id": f"{failure}|{source}|{kind}"}


def sync(family: Any, url: str, source: str, reported: dict[str, str], **options: Any) -> tuple[bytes, Any, Any]:
    """Return the received bytes, the exception that ended the reading, and the converter."""
    received = b""
    with (
        family.Client(event_hooks={"response": [repair_hook(**options)]}, timeout=IDLE) as client,
        client.stream("POST", url + PATHS[source], json=STREAM, headers=reported) as response,
    ):
        try:
            for piece in response.iter_bytes():
                received += piece
        except Exception as error:  # noqa: BLE001 (the test checks which exception it is)
            return received, error, response.extensions["streamweld"]
    return received, None, response.extensions["streamweld"]


def asynchronous(
    family: Any, url: str, source: str, reported: dict[str, str], **options: Any
) -> tuple[bytes, Any, Any]:
    async def ask() -> tuple[bytes, Any, Any]:
        received = b""
        async with (
            family.AsyncClient(event_hooks={"response": [async_repair_hook(**options)]}, timeout=IDLE) as client,
            client.stream("POST", url + PATHS[source], json=STREAM, headers=reported) as response,
        ):
            try:
                async for piece in response.aiter_bytes():
                    received += piece
            except Exception as error:  # noqa: BLE001 (the test checks which exception it is)
                return received, error, response.extensions["streamweld"]
        return received, None, response.extensions["streamweld"]

    return asyncio.run(ask())


ASKS = pytest.mark.parametrize("ask", [sync, asynchronous], ids=["sync", "async"])


@SOURCES
@FAMILIES
@ASKS
def test_a_connection_that_fails_is_the_clients_exception_and_the_converter_has_a_cut(
    url: str, family: Any, ask: Any, source: str
) -> None:
    for failure in CONNECTIONS:
        received, raised, converter = ask(family, url, source, asked(failure, source, "tidy"))
        assert received == TIDY[source], failure
        assert isinstance(raised, family.TransportError), failure
        assert isinstance(converter.error, sw.TruncatedStream), failure
        assert converter.response.completeness == "truncated", failure


@SOURCES
@FAMILIES
@ASKS
def test_a_packed_body_that_fails_is_an_error_of_the_api(url: str, family: Any, ask: Any, source: str) -> None:
    for failure in ENCODINGS:
        received, raised, converter = ask(family, url, source, asked(failure, source, "tidy"))
        assert raised is None, failure
        assert received.startswith(TIDY[source]), failure
        assert MARKERS.get(source, b"no marker") not in received, failure
        with pytest.raises(sw.UpstreamError):
            sw.parse(received, dialect=source)  # type: ignore[arg-type]
        assert isinstance(converter.error, sw.TruncatedStream), failure
        received, raised, converter = ask(family, url, source, asked(failure, source, "tidy"), on_error="raise")
        assert received == TIDY[source], failure
        assert raised is converter.error, failure


@FAMILIES
@ASKS
@pytest.mark.parametrize("source", MARKERS)
def test_a_stream_that_had_its_marker_is_whole(url: str, family: Any, ask: Any, source: str) -> None:
    for failure in FAILURES:
        received, _, converter = ask(family, url, source, asked(failure, source, "whole"))
        assert received == WHOLE[source], failure
        assert converter.error is None, failure
        assert converter.response.completeness == "complete", failure


@SOURCES
def test_the_same_under_aiohttp(url: str, source: str) -> None:
    """aiohttp decompresses bodies itself, and does not detect a truncated gzip body."""

    async def ask(failure: str) -> tuple[bytes, Any]:
        timeout = aiohttp.ClientTimeout(sock_read=IDLE)
        session = aiohttp.ClientSession(middlewares=[repair_middleware()], timeout=timeout)
        received = b""
        reported = asked(failure, source, "tidy")
        async with session:
            try:
                async with session.post(url + PATHS[source], json=STREAM, headers=reported) as response:
                    async for piece in response.content.iter_any():
                        received += piece
            except Exception as error:  # noqa: BLE001 (the test checks which exception it is)
                return received, error
        return received, None

    for failure in [*CONNECTIONS, "gzip that breaks", "deflate that ends early"]:
        received, raised = asyncio.run(ask(failure))
        if raised is None:
            assert received.startswith(TIDY[source]), failure
            with pytest.raises(sw.UpstreamError):
                sw.parse(received, dialect=source)  # type: ignore[arg-type]
            assert failure == "rst of a body that ends with its connection"
        else:
            assert isinstance(raised, aiohttp.ClientError | TimeoutError), failure
            assert TIDY[source].startswith(received), failure
