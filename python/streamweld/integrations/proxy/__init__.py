"""A proxy for one gateway (extra `proxy`).

The proxy repairs every stream, and converts requests and responses for clients of other APIs.

    streamweld proxy --upstream https://gateway.example/v1 --upstream-dialect chat

    app = create_app(ProxyConfig("https://gateway.example/v1", to="chat"))      # the same, for a server of your own

Importing this module does not need the extra; `create_app` and `serve` do.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from streamweld.errors import MissingExtra
from streamweld.integrations.proxy.config import ProxyConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.applications import Starlette

__all__ = ["ProxyConfig", "create_app", "serve"]

_NEEDS = ("starlette", "aiohttp", "uvicorn", "prometheus_client")


def _need(config: ProxyConfig) -> None:
    for name in _NEEDS:
        if find_spec(name) is None:
            raise MissingExtra("proxy", name)
    if config.tracing and find_spec("opentelemetry") is None:
        raise MissingExtra("otel", "opentelemetry-api")


def create_app(config: ProxyConfig) -> Starlette:
    """Create the proxy as an ASGI application, with `/healthz` and `/metrics`.

    The server must support the ASGI lifespan protocol.

    The application cannot determine the address on which it is served. If other machines can reach that address, set a
    token in `config`.

    If the proxy is mounted in another application, only the lifespan of the outer application runs. Enter the proxy's
    lifespan from the outer lifespan: `async with proxy.router.lifespan_context(proxy) as state: yield state`.

    Raises:
        MissingExtra: if the packages of the extra `proxy` are not installed, or with `tracing` those of `otel`.
    """
    _need(config)
    made: Starlette = import_module("streamweld.integrations.proxy.app").create_app(config)
    return made


def serve(config: ProxyConfig, host: str, port: int, *, grace: int, ready: Callable[[str], object]) -> None:
    """Serve on an address until SIGINT or SIGTERM. After the signal, open streams have `grace` seconds to finish.

    Streams that do not finish in time end with an error in the format of their API, like truncated streams. The signal
    is then raised again, so an interrupt results in a `KeyboardInterrupt`. A second signal ends the process at once.

    Raises:
        MissingExtra: as `create_app`.
        UsageError: if other machines can reach the address and `config` has no token, if the address is the upstream's,
            or if the host, port or grace is invalid.
        OSError: if the address cannot be bound.
    """
    _need(config)
    import_module("streamweld.integrations.proxy.serve").serve(config, host, port, grace=grace, ready=ready)
