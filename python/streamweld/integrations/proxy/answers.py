"""Responses that the proxy creates: JSON bodies, and refusals in the error format of an API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld.integrations.proxy import routes
from streamweld.integrations.proxy.access import log
from streamweld.integrations.proxy.exchange import Exchange
from streamweld.integrations.proxy.refusals import refusal_body

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Scope, Send

    from streamweld.integrations.proxy.exchange import Outcome
    from streamweld.integrations.proxy.metrics import Metrics
    from streamweld.integrations.proxy.refusals import Refusal

__all__ = ["CLOSE", "refuse", "send_json", "send_refusal"]

CLOSE: Mapping[str, str] = {"connection": "close"}
"""Headers for a response to a request whose body was not read."""
_OUTCOMES: Final[Mapping[int, Outcome]] = {502: "upstream_error", 503: "shutdown", 504: "upstream_error"}


async def send_json(send: Send, done: Exchange, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    """Send a complete JSON body, or only the headers for a HEAD request."""
    done.status = status
    sent = {
        **headers,
        "content-type": "application/json",
        "content-length": str(len(body)),
        "x-content-type-options": "nosniff",
    }
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in sent.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body if done.method != "HEAD" else b""})
    done.wrote(body)


async def send_refusal(send: Send, done: Exchange, refusal: Refusal, headers: Mapping[str, str]) -> None:
    """Send a refusal in the error format of the requested API."""
    done.status, done.outcome, done.fault = refusal.status, _OUTCOMES.get(refusal.status, "refused"), refusal.code
    body = refusal_body(done.dialect, refusal.status, refusal.code, refusal.message)
    await send_json(send, done, refusal.status, body, {**refusal.headers, **headers})


async def refuse(scope: Scope, send: Send, refusal: Refusal, metrics: Metrics) -> None:
    """Refuse a request before its body is read. A refused request is counted and logged like any other request."""
    path, _ = routes.request_path(scope["path"], scope.get("raw_path"), scope.get("root_path", ""))
    dialect = routes.dialect_of(path) if scope["method"] == "POST" else None
    done = Exchange(scope["method"], path, dialect, dialect)
    try:
        await send_refusal(send, done, refusal, CLOSE)
    finally:
        done.ended()
        metrics.count(done)
        log(done)
