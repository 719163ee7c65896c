"""The proxy as a server: uvicorn around the application, on one address, until it is told to stop.

It stops in order: no connection is taken any more, and streams that are open come to their end; those that do not in
time end with an error of their API.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

import uvicorn

from streamweld.integrations.proxy.app import create_app

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld.integrations.proxy.config import ProxyConfig

__all__ = ["serve"]

# Seconds. Longer than pools and balancers keep a connection that is idle (60 at most, of their own accord): a POST that
# meets its close is lost, for a client must not send it twice (RFC 9110 9.2.2). As long as nginx waits.
_KEEP_ALIVE: Final = 75


def serve(config: ProxyConfig, host: str, port: int, *, grace: int, ready: Callable[[str], object]) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        config: of the proxy.
        host, port: where to listen; port 0 takes a free one.
        grace: seconds that open streams have to come to their end, once the server is told to stop. What is open then
            ends as a stream that was cut, and what has no answer yet is refused.
        ready: called with the address, once connections are taken.

    Raises:
        OSError: where the address is not to be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=2048) as listening:
        name, number = listening.getsockname()[:2]
        ready(f"http://[{name}]:{number}" if ":" in name else f"http://{name}:{number}")
        server = uvicorn.Server(
            uvicorn.Config(
                create_app(config),
                http="h11",  # uvicorn would take httptools where it finds it, which reads what h11 refuses (R:G3)
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # nobody tells this server who a client is (R:G1)
                lifespan="on",
                ws="none",
                timeout_graceful_shutdown=grace,
                timeout_keep_alive=_KEEP_ALIVE,
            )
        )
        server.run(sockets=[listening])
