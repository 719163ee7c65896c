"""Decide which requests the proxy accepts, based on the host, the origin and the client's token.

Any web page can make a browser send requests to a server on the user's machine and, with DNS rebinding, read the
responses. The page cannot set the `Host` or `Origin` header of these requests, so the proxy checks both before anything
else. If other machines can reach the proxy, a token identifies legitimate clients.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from streamweld._show import printable
from streamweld._spec import load_proxy
from streamweld.integrations.proxy.answers import refuse
from streamweld.integrations.proxy.hosts import canonical, host_of, is_loopback, origin_of
from streamweld.integrations.proxy.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from streamweld.integrations.proxy.config import ProxyConfig
    from streamweld.integrations.proxy.metrics import Metrics

__all__ = ["TOKEN_HEADER", "Admission", "admits_host_and_origin", "admits_token"]

TOKEN_HEADER: Final = "x-streamweld-token"  # noqa: S105 (a name)
"""The header for the token, for clients that send the upstream's key as API key. The header is never forwarded."""

_DEDICATED: Final = TOKEN_HEADER.encode()
_SLOTS: Final = {name.encode(): prefix.encode() for name, prefix in load_proxy()["credentials"]["read"]}
_SHOWN: Final = 100


class Admission:
    """ASGI middleware that refuses requests for which `check` raises.

    The refusal has the error format of the API that the path belongs to.

    Args:
        app: the application that handles accepted requests.
        check: returns the scope for `app`, or raises Refusal.
        metrics: counts refused requests.
    """

    def __init__(self, app: ASGIApp, check: Callable[[Scope], Scope], metrics: Metrics) -> None:
        self._app = app
        self._check = check
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                scope = self._check(scope)
            except Refusal as refusal:
                await refuse(scope, send, refusal, self._metrics)
                return
        await self._app(scope, receive, send)


def admits_host_and_origin(config: ProxyConfig) -> Callable[[Scope], Scope]:
    """Return a function that checks `Host` and `Origin`.

    A host is accepted if it is a loopback name or address, if it is the address to which the client connected, or if
    `allow_hosts` lists it. An origin is accepted only if `allow_origins` lists it. Clients other than browsers do not
    send an origin.
    """
    hosts = frozenset(canonical(host) for host in config.allow_hosts if not host.startswith("*"))
    suffixes = tuple(host[1:].lower() for host in config.allow_hosts if host.startswith("*."))
    any_host = "*" in config.allow_hosts
    origins = frozenset(origin_of(origin) for origin in config.allow_origins)
    any_origin = "*" in config.allow_origins

    def is_own(host: str | None, scope: Scope) -> bool:
        if host is None:
            return False
        server = scope.get("server") or ("",)
        return is_loopback(host) or host == canonical(server[0]) or host in hosts or host.endswith(suffixes)

    def check(scope: Scope) -> Scope:
        given = _values(scope, b"host")
        if not (any_host or (len(given) == 1 and is_own(host_of(given[0]), scope))):
            named = printable(given[0], _SHOWN) if given else ""
            raise Refusal(
                421,
                "host_not_allowed",
                f"the proxy does not serve the host {named!r}; to allow it, start the proxy with --allow-host",
            )
        for origin in _values(scope, b"origin"):
            if not any_origin and origin_of(origin) not in origins:
                raise Refusal(
                    403,
                    "origin_not_allowed",
                    f"the proxy does not serve web pages of {printable(origin, _SHOWN)!r}; to allow them, start the "
                    "proxy with --allow-origin",
                )
        return scope

    return check


def admits_token(config: ProxyConfig) -> Callable[[Scope], Scope]:
    """Return a function that checks the client's token. If no token is configured, the function accepts every request.

    The token is accepted in `x-streamweld-token`. If this header is missing, the token is accepted in any header that
    can contain an API key. The returned scope does not contain the header with the token, so the token cannot reach the
    upstream.
    """
    if config.token is None:
        return lambda scope: scope
    token = config.token.encode()

    def is_token(value: bytes) -> bool:
        return hmac.compare_digest(value.strip(), token)

    def check(scope: Scope) -> Scope:
        headers = scope["headers"]
        # Compare the token with every value, so that the time does not depend on which value matches.
        dedicated = [is_token(value) for name, value in headers if name == _DEDICATED]
        matches = [is_token(_key(name, value)) for name, value in headers]
        if not (all(dedicated) if dedicated else any(matches)):
            raise Refusal(
                401,
                "invalid_token",
                f"the proxy requires its token, as the API key or in the header {TOKEN_HEADER}",
                {"www-authenticate": "Bearer"},
            )
        passed = zip(headers, matches, strict=True)
        return {**scope, "headers": [header for header, match in passed if not match and header[0] != _DEDICATED]}

    return check


def _key(name: bytes, value: bytes) -> bytes:
    """Return the API key in a header; empty if the header does not contain one."""
    prefix = _SLOTS.get(name)
    carries = prefix is not None and value[: len(prefix)].lower() == prefix.lower()
    return value[len(prefix or b"") :] if carries else b""


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for given, value in scope["headers"] if given == name]
