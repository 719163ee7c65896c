"""The HTTP client of the proxy: one session to one address, without redirects, cookies or environment proxies."""

from __future__ import annotations

import time
from io import BytesIO
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from aiohttp import (
    ClientError,
    ClientOSError,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)
from aiohttp.http import HttpProcessingError
from yarl import URL

from streamweld.errors import LimitExceeded
from streamweld.integrations._connection import ConnectionWatch
from streamweld.integrations._inflate import BrokenBodyError, Inflater, coding_of, is_readable
from streamweld.integrations._pace import Pace
from streamweld.integrations.proxy.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from aiohttp import ClientRequest, ClientResponse
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

    from streamweld.integrations.proxy.config import ProxyConfig
    from streamweld.integrations.proxy.exchange import Exchange
    from streamweld.options import Limits

__all__ = ["UpstreamCutError", "ask", "inflater_of", "open_session", "plain_pieces", "raw_pieces", "whole_body"]

# Exceptions raised while reading a response if the connection breaks or times out.
_BROKEN: Final = (ClientError, OSError, TimeoutError, HttpProcessingError)
_READ: Final = 65_536

# Seconds for which an idle connection may be reused. By default, uvicorn and Node close idle connections after five
# seconds. A POST that is sent while the server closes the connection would be lost.
_IDLE: Final = 4


class UpstreamCutError(Exception):
    """The transport failed before the upstream's response was complete.

    The message is the name of the original exception.
    """


class _Connector(TCPConnector):
    """Connector that reuses a connection only if the upstream has not sent anything after its last response.

    Without this check, such bytes would be read as the response to the next request, which may come from another
    client.
    """

    def __init__(self) -> None:
        super().__init__(limit=0, keepalive_timeout=_IDLE)  # pyright: ignore[reportUnknownMemberType]
        self._used: WeakSet[ResponseHandler] = WeakSet()

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: ClientTimeout,  # noqa: ASYNC109 (aiohttp's name)
    ) -> Connection:
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            if protocol is None or protocol not in self._used:
                break
            if not protocol.should_close:
                return connection
            connection.close()
        if protocol is not None:
            self._used.add(protocol)
        return connection


def open_session(config: ProxyConfig) -> ClientSession:
    """Create the HTTP session of one proxy.

    The session has timeouts for connecting and for each read, but no overall timeout.
    """
    return ClientSession(
        connector=_Connector(),
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None, sock_connect=config.connect_timeout, sock_read=config.idle_timeout),
        auto_decompress=False,  # a small chunk may inflate to 64 MiB, so `_inflate` decompresses in slices
        skip_auto_headers=("user-agent", "accept", "content-type"),
        trust_env=False,
        read_bufsize=_READ,  # for each stream, at most twice this many bytes are buffered
    )


async def ask(
    session: ClientSession, method: str, url: str, headers: dict[str, str], body: bytes | None
) -> ClientResponse:
    """Send a request, and return the upstream's response as soon as its status and headers have arrived.

    Raises:
        Refusal: 502 or 504 if there is no response, or if its status is invalid or a redirect. Redirects are neither
            followed nor passed on, because clients would send their credentials to the new address.
    """
    try:
        # Send a large body in pieces, so that other requests are served in between.
        data = BytesIO(body) if body is not None and len(body) > _READ else body
        answer = await session.request(
            method, URL(url, encoded=True), headers=headers, data=data, allow_redirects=False
        )
    except TimeoutError:
        raise Refusal(504, "upstream_timeout", "the upstream did not answer in time") from None
    except (ClientError, ValueError) as error:
        raise Refusal(502, "upstream_unreachable", f"the upstream did not answer: {type(error).__name__}") from None
    if 300 <= answer.status < 400 and answer.status != 304:
        answer.close()
        raise Refusal(502, "upstream_redirect", f"the upstream answered with a redirect ({answer.status})")
    # RFC 9110, section 15: statuses outside 100 to 599 are invalid. A 1xx status is unexpected, because the request did
    # not ask to switch protocols.
    if not 200 <= answer.status < 600:
        answer.close()
        raise Refusal(502, "upstream_status", f"the upstream answered with an invalid status ({answer.status})")
    return answer


def inflater_of(answer: ClientResponse, limits: Limits) -> Inflater:
    """Create the decompressor for the body of a response.

    Unknown encodings are ignored, as in clients, because some gateways send `none` or `utf-8`.

    Raises:
        Refusal: if the encoding was not requested and the standard library cannot decode it.
    """
    encoding = coding_of(", ".join(answer.headers.getall("content-encoding", ())))
    if not is_readable(encoding):
        raise Refusal(502, "upstream_encoding", "the upstream used a content encoding that was not requested")
    return Inflater(encoding, limits.max_inflate_ratio)


async def raw_pieces(answer: ClientResponse, done: Exchange, pace: Pace) -> AsyncGenerator[bytes]:
    """Yield the body as it arrives, and count its bytes. `pace` excludes the time spent waiting.

    Raises:
        UpstreamCutError: if the transport fails before the body is complete, because the connection breaks or is reset,
            the framing (chunks, length) is malformed or incomplete, or no data arrives for too long.
    """
    watch = ConnectionWatch(answer)
    try:
        while True:
            began = time.perf_counter()
            piece = await answer.content.readany()
            pace.waited(began)
            if not piece:
                break
            done.bytes_in += len(piece)
            yield piece
    except _BROKEN as error:
        raise UpstreamCutError(type(error).__name__) from None
    finally:
        was_reset = watch.was_reset()
    if was_reset:
        raise UpstreamCutError(ClientOSError.__name__)


async def plain_pieces(answer: ClientResponse, inflater: Inflater, done: Exchange, pace: Pace) -> AsyncGenerator[bytes]:
    """Yield the decompressed body, at most `SLICE` bytes at a time.

    Raises:
        UpstreamCutError: as in `raw_pieces`, and if the compressed body is malformed or incomplete.
        LimitExceeded: if the body inflates to too many bytes.
    """
    try:
        async for piece in raw_pieces(answer, done, pace):
            for plain in inflater.feed(piece):
                yield plain
        inflater.end()
    except BrokenBodyError as error:
        raise UpstreamCutError(type(error).__name__) from None


async def whole_body(answer: ClientResponse, config: ProxyConfig, done: Exchange) -> bytearray:
    """Return the complete decompressed body. Raises Refusal if the body is broken or longer than `max_body_bytes`."""
    made, pace, most = bytearray(), Pace(), config.max_body_bytes
    too_long = Refusal(502, "upstream_too_long", f"the upstream's response has more than {most} bytes")
    try:
        async for plain in plain_pieces(answer, inflater_of(answer, config.limits), done, pace):
            made += plain
            if len(made) > most:
                raise too_long
            await pace.pause()
    except UpstreamCutError as error:
        raise Refusal(502, "upstream_cut", f"the upstream's response was truncated: {error}") from None
    except LimitExceeded:
        raise too_long from None
    return made
