"""The client side of the proxy: one session, one address, no redirects, no cookies, no proxy of the environment."""

from __future__ import annotations

import time
from io import BytesIO
from typing import TYPE_CHECKING, Final

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
from streamweld.integrations._inflate import BrokenBodyError, Inflater, is_readable
from streamweld.integrations._pace import Pace
from streamweld.integrations.proxy.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from aiohttp import ClientResponse

    from streamweld.integrations.proxy.config import ProxyConfig
    from streamweld.integrations.proxy.exchange import Exchange
    from streamweld.options import Limits

__all__ = ["UpstreamCutError", "ask", "inflater_of", "open_session", "plain_pieces", "raw_pieces", "whole_body"]

# What reading an answer raises where the connection breaks or falls silent.
_BROKEN: Final = (ClientError, OSError, TimeoutError, HttpProcessingError)
_READ: Final = 65_536

# Seconds. Servers close what is idle after five (uvicorn and Node, unless told), and a POST must not meet that.
_IDLE: Final = 4


class UpstreamCutError(Exception):
    """The transport failed before the upstream's answer was complete. The message is the name of what was raised."""


def open_session(config: ProxyConfig) -> ClientSession:
    """The session of one proxy. It waits for a connection and for each read, never for the whole."""
    return ClientSession(
        connector=TCPConnector(limit=0, keepalive_timeout=_IDLE),
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None, sock_connect=config.connect_timeout, sock_read=config.idle_timeout),
        auto_decompress=False,  # a small piece may inflate to 64 MiB: `_inflate` does it in slices
        skip_auto_headers=("user-agent", "accept", "content-type"),
        trust_env=False,
        read_bufsize=_READ,  # of each stream, at most twice that is waiting
    )


async def ask(
    session: ClientSession, method: str, url: str, headers: dict[str, str], body: bytes | None
) -> ClientResponse:
    """The head of the upstream's answer.

    Raises:
        Refusal: 502 or 504 where there is none, or one with a status that no answer has, or a redirect: it is not
            followed, and not told, because clients would take their credentials along.
    """
    try:
        # A large body is sent in pieces, between which others are served.
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
    if not 200 <= answer.status < 600:  # RFC 9110 15: others are not valid, and a switch of protocols was not asked for
        answer.close()
        raise Refusal(
            502, "upstream_status", f"the upstream answered with a status that no answer has ({answer.status})"
        )
    return answer


def inflater_of(answer: ClientResponse, limits: Limits) -> Inflater:
    """What reads the body of an answer. Raises Refusal where it has an encoding that was not asked for, nor known."""
    encoding = ", ".join(answer.headers.getall("content-encoding", ()))
    if not is_readable(encoding):
        raise Refusal(502, "upstream_encoding", "the upstream packed its answer in a way that was not asked for")
    return Inflater(encoding, limits.max_inflate_ratio)


async def raw_pieces(answer: ClientResponse, done: Exchange, pace: Pace) -> AsyncGenerator[bytes]:
    """The body as it comes, which is counted; `pace` is told how long it was waited for.

    Raises:
        UpstreamCutError: if the transport fails before the body is complete: the connection breaks or is reset, the
            framing (chunks, length) is malformed or not finished, or nothing comes for too long.
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
    """The body unpacked, at most `SLICE` bytes at once.

    Raises:
        UpstreamCutError: as `raw_pieces`, and if the packed body is malformed or not complete.
        LimitExceeded: if it inflates to too much.
    """
    try:
        async for piece in raw_pieces(answer, done, pace):
            for plain in inflater.feed(piece):
                yield plain
        inflater.end()
    except BrokenBodyError as error:
        raise UpstreamCutError(type(error).__name__) from None


async def whole_body(answer: ClientResponse, config: ProxyConfig, done: Exchange) -> bytearray:
    """The body, unpacked. Raises Refusal where it is broken, or longer than `max_body_bytes`."""
    made, pace, most = bytearray(), Pace(), config.max_body_bytes
    too_long = Refusal(502, "upstream_too_long", f"the upstream's answer has more than {most} bytes")
    try:
        async for plain in plain_pieces(answer, inflater_of(answer, config.limits), done, pace):
            made += plain
            if len(made) > most:
                raise too_long
            await pace.pause()
    except UpstreamCutError as error:
        raise Refusal(502, "upstream_cut", f"the upstream's answer was cut: {error}") from None
    except LimitExceeded:
        raise too_long from None
    return made
