"""The proxy as an ASGI application: it serves `/healthz` and `/metrics`, and forwards or refuses all other paths.

Host and origin are checked for every request. The token is checked for every path except `/healthz`, which does not
disclose any information.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route

from streamweld.errors import UsageError
from streamweld.integrations.proxy.admission import Admission, admits_host_and_origin, admits_token
from streamweld.integrations.proxy.endpoint import LAST, METHODS, Conversation
from streamweld.integrations.proxy.hosts import origin_of
from streamweld.integrations.proxy.metrics import CONTENT_TYPE, Metrics
from streamweld.integrations.proxy.upstream import open_session
from streamweld.integrations.proxy.warm import warm_up

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import ASGIApp, Receive, Scope, Send

    from streamweld.integrations.proxy.config import ProxyConfig

__all__ = ["create_app"]


class _CatchAllApp:
    """The ASGI application for all paths other than the proxy's own."""

    def __init__(self, config: ProxyConfig, metrics: Metrics) -> None:
        self._config = config
        self._metrics = metrics
        self._pseudonym = f"streamweld-{secrets.token_hex(8)}"
        self._open: set[asyncio.Task[object]] = set()

    async def stop(self) -> None:
        """End all open responses as truncated while the session to the upstream still exists."""
        for task in self._open:
            if not task.cancelling():
                task.cancel()
        if self._open:
            await asyncio.wait(self._open, timeout=LAST)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        session = getattr(request.state, "session", None)
        if session is None:
            raise UsageError(
                "the proxy has not been started: the server must run its lifespan, or the application that mounts it"
            )
        task = cast("asyncio.Task[object]", asyncio.current_task())
        self._open.add(task)
        try:
            conversation = Conversation(request, send, session, self._config, self._metrics, pseudonym=self._pseudonym)
            await conversation.hold()
        except ClientDisconnect:
            pass  # the client disconnected before it had sent the whole request, so no response is possible
        finally:
            self._open.discard(task)


class _Own(Route):
    """One of the proxy's own paths.

    The framework's pattern would also match this path with a line feed at the end, which is a different path.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] == "http" and scope["path"].endswith("\n"):
            return Match.NONE, {}
        return super().matches(scope)


class _Rest(Route):
    """The route for all other requests.

    A path pattern would not match a line feed, or a request target that is not a path (RFC 9112 3.2). The framework
    would then respond to such requests itself. With this route, such requests are refused, logged and counted like all
    other requests.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http":
            return Match.NONE, {}
        return Match.FULL, {"endpoint": self.endpoint, "path_params": {}}


def create_app(config: ProxyConfig) -> Starlette:
    """Create the application for one proxy.

    The session to the upstream is opened at the start of the application's lifespan.
    """
    metrics = Metrics()
    everything = _CatchAllApp(config, metrics)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[dict[str, Any]]:
        warm_up(config)
        async with open_session(config) as session:
            try:
                yield {"session": session}
            finally:
                await everything.stop()

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def measured(scope: Scope, receive: Receive, send: Send) -> None:
        await Response(metrics.text(), headers={"content-type": CONTENT_TYPE})(scope, receive, send)

    def with_token(app: ASGIApp) -> ASGIApp:
        return Admission(app, admits_token(config), metrics)

    middleware = [Middleware(Admission, admits_host_and_origin(config), metrics)]
    if config.allow_origins:
        # Browsers send preflight requests without a token. Browsers let a page read a response only if the response has
        # these headers.
        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=[origin_of(origin) or origin for origin in config.allow_origins],
                allow_methods=METHODS,
                allow_headers=["*"],
                expose_headers=["*"],
            )
        )
    return Starlette(
        routes=[
            _Own("/healthz", health),
            _Own("/metrics", with_token(measured), methods=["GET"]),
            _Rest("/{path:path}", with_token(everything)),
        ],
        middleware=middleware,
        lifespan=lifespan,
    )
