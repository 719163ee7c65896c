"""Run the proxy as a server: uvicorn serves the application on one address until a signal stops it.

On the first signal, the server stops accepting connections but lets open streams finish. Streams that do not finish in
time end with an error in the format of their API. A second signal ends the process at once.
"""

from __future__ import annotations

import logging
import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from streamweld.errors import UsageError
from streamweld.integrations.proxy.access import LOGGER
from streamweld.integrations.proxy.app import create_app
from streamweld.integrations.proxy.hosts import is_local, is_loopback, resolved
from streamweld.integrations.proxy.signals import end_at_once

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from types import FrameType

    from streamweld.integrations.proxy.config import ProxyConfig

__all__ = ["HeadTimeout", "serve"]

# Seconds for which an idle connection is kept open. The value must exceed the time for which connection pools and load
# balancers keep idle connections by default (at most 60 seconds). With a shorter time, the server might close a
# connection while a client sends a POST. That request would be lost, and a client must not retry it (RFC 9110, section
# 9.2.2). nginx uses the same value.
_KEEP_ALIVE: Final = 75
HEAD_SECONDS: Final = 60.0
"""Number of seconds in which the head of a request must be complete, counted from the connection or the first byte of
the request. nginx uses the same value.
"""
_PORTS: Final = {"http": 80, "https": 443}
_EVERY_ADDRESS: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 (compared, not bound)


def serve(config: ProxyConfig, host: str, port: int, *, grace: int, ready: Callable[[str], object]) -> None:
    """Serve until SIGINT or SIGTERM; a second signal ends the process at once.

    Args:
        config: the configuration of the proxy.
        host, port: the address to listen on; port 0 selects a free port. The `Host` header of a request may contain
            this host.
        grace: how many seconds open streams have to finish after the server is stopped. After the grace period, streams
            end as if they were truncated, and requests without a response are refused.
        ready: called with the address as soon as connections are accepted.

    Raises:
        UsageError: if other machines can reach the address and there is no token, if the address is the upstream's, or
            if the host, port or grace is invalid.
        OSError: if the address cannot be bound.
    """
    addresses = _addresses(host, port)
    if grace < 0:
        raise UsageError(f"grace={grace!r}: it must not be negative")
    exposed = not all(is_loopback(address) for address in addresses)
    if exposed and config.token is None:
        raise UsageError(
            f"other machines can reach {host}: set a token that clients must send (--token, or the environment "
            "variable STREAMWELD_PROXY_TOKEN), or listen on 127.0.0.1"
        )
    if _leads_back(config.upstream, addresses, port):
        raise UsageError(f"the upstream {config.upstream} is the address that the proxy listens on")
    if not addresses <= _EVERY_ADDRESS:
        config = replace(config, allow_hosts=(*config.allow_hosts, host))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=2048) as listening:
        # asyncio sets TCP_NODELAY only for sockets with an explicit protocol. Without TCP_NODELAY, a small event waits
        # for the ACK of the previous event.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        name, number = listening.getsockname()[:2]

        def started() -> None:
            ready(f"http://[{name}]:{number}" if ":" in name else f"http://{name}:{number}")
            if exposed:
                LOGGER.warning(
                    "other machines can reach %s: every request needs the token, which is sent unencrypted unless a "
                    "server in front of the proxy provides TLS",
                    host,
                )

        server = _Server(
            started,
            uvicorn.Config(
                create_app(config),
                http=HeadTimeout,  # uvicorn prefers httptools, which accepts requests that h11 rejects
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # no proxy is trusted, so forwarded headers are ignored
                lifespan="on",
                ws="none",
                timeout_graceful_shutdown=grace,
                timeout_keep_alive=_KEEP_ALIVE,
            ),
        )
        server.run(sockets=[listening])


class _Server(uvicorn.Server):
    """A server that ends at once on a second signal.

    uvicorn itself waits for open streams after a second SIGTERM, and for their endings after a second SIGINT.

    Args:
        started: called as soon as connections are accepted.
        config: the configuration of the server.
    """

    def __init__(self, started: Callable[[], object], config: uvicorn.Config) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Do not log in `handle_exit`, because that method may interrupt another write to standard error.
        LOGGER.info("stopping", extra={"facts": {"grace": self.config.timeout_graceful_shutdown}})
        uvicorn_log = logging.getLogger("uvicorn.error")
        uvicorn_log.addFilter(_lower_cancellation)
        try:
            await super().shutdown(sockets)
        finally:
            uvicorn_log.removeFilter(_lower_cancellation)
        LOGGER.info("stopped")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            end_at_once(sig, frame)
        super().handle_exit(sig, frame)


def _lower_cancellation(record: logging.LogRecord) -> bool:
    """Lower the level of uvicorn's record about cancelled requests from ERROR to INFO.

    Streams may be open when the grace period ends. The server handles this case: each stream ends with an error of its
    API.
    """
    if record.levelno == logging.ERROR and "timeout graceful shutdown exceeded" in str(record.msg):
        record.levelno, record.levelname = logging.INFO, logging.getLevelName(logging.INFO)
    return True


class HeadTimeout(H11Protocol):
    """Closes a connection if the headers of a request do not arrive in time, or if the response ends before the request
    body has arrived.

    uvicorn limits only the idle time after a response. Without this class, a client could keep any number of
    connections open by never sending a request, or by sending a body that the server does not read. While a body is
    being read, the timeouts of `ProxyConfig` apply instead.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit for receiving the headers of the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Read the data. The time limit starts with the first byte of the headers, and later bytes do not extend it."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Close the connection if the client is still sending the body of the request."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time limit."""
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _addresses(host: str, port: int) -> frozenset[str]:
    if not 0 <= port <= 65_535:
        raise UsageError(f"port={port!r}: it must be a number from 0 to 65535")
    if not host:
        raise UsageError("host must not be empty: 0.0.0.0 or :: stands for every address")
    try:
        return resolved(host)
    except OSError as error:
        raise UsageError(f"the host {host!r} cannot be resolved: {error.strerror or error}") from None


def _leads_back(upstream: str, addresses: frozenset[str], port: int) -> bool:
    """Return True if requests to the upstream would reach the proxy itself. Longer loops are detected by `Via`."""
    parts = urlsplit(upstream)
    if port == 0 or (parts.port or _PORTS[parts.scheme]) != port:
        return False
    try:
        requested = resolved(parts.hostname or "")
    except OSError:  # no network yet, or the name does not exist; the first request reports the error
        return False
    if addresses & _EVERY_ADDRESS:
        return any(is_local(address) for address in requested)
    # Connecting to the unspecified address reaches the loopback address of this machine.
    return bool(requested & addresses) or (
        bool(requested & _EVERY_ADDRESS) and any(is_loopback(own) for own in addresses)
    )
