"""The client side of the proxy: one session, one address, no redirects, no cookies, no proxy of the environment."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from yarl import URL

from streamweld.integrations._inflate import Inflater, is_readable
from streamweld.integrations.proxy.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import ClientResponse

    from streamweld.integrations.proxy.config import ProxyConfig

__all__ = ["BROKEN", "ask", "inflater_of", "open_session", "whole_body"]

BROKEN: Final[tuple[type[ClientError], type[TimeoutError]]] = (ClientError, TimeoutError)
"""What reading an answer raises where the connection breaks or falls silent."""

# Seconds. Servers close what is idle after five (uvicorn and Node, unless told), and a POST must not meet that.
_IDLE: Final = 4


def open_session(config: ProxyConfig) -> ClientSession:
    """The session of one proxy. It waits for a connection and for each read, never for the whole."""
    return ClientSession(
        connector=TCPConnector(limit=0, keepalive_timeout=_IDLE),
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None, sock_connect=config.connect_timeout, sock_read=config.idle_timeout),
        auto_decompress=False,  # a piece that inflates to 64 MiB shall not (R:A16)
        skip_auto_headers=("user-agent", "accept", "content-type"),
        trust_env=False,
    )


async def ask(
    session: ClientSession, method: str, url: str, headers: dict[str, str], body: bytes | None
) -> ClientResponse:
    """The head of the upstream's answer.

    Raises:
        Refusal: 502 or 504 where there is none, or one with a status that no answer has, or a redirect: it is not
            followed, and not told, because clients would take their credentials along (R:G2).
    """
    try:
        answer = await session.request(
            method, URL(url, encoded=True), headers=headers, data=body, allow_redirects=False
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


def inflater_of(answer: ClientResponse) -> Inflater:
    """What reads the body of an answer. Raises Refusal where it has an encoding that was not asked for, nor known."""
    encoding = ", ".join(answer.headers.getall("content-encoding", ()))
    if not is_readable(encoding):
        raise Refusal(502, "upstream_encoding", "the upstream packed its answer in a way that was not asked for")
    return Inflater(encoding)


async def whole_body(answer: ClientResponse, most: int) -> bytes:
    """The body, unpacked. Raises Refusal where it is broken, or longer than `most` bytes."""
    made = bytearray()
    inflater = inflater_of(answer)
    try:
        async for piece in _pieces(answer):
            for plain in inflater.feed(piece):
                made += plain
                if len(made) > most:
                    raise Refusal(502, "upstream_too_long", f"the upstream's answer has more than {most} bytes")
    except (*BROKEN, zlib.error) as error:
        raise Refusal(502, "upstream_cut", f"the upstream's answer was cut: {type(error).__name__}") from None
    return bytes(made)


async def _pieces(answer: ClientResponse) -> AsyncIterator[bytes]:
    while piece := await answer.content.readany():
        yield piece
