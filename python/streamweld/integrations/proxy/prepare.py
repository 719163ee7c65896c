"""A request's body, read once: what goes to the upstream, and what of it the answer has to be read and written with.

A pure function of the body, so that a large one can be prepared in a worker thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import orjson

from streamweld.history.conversion import tool_names
from streamweld.integrations.proxy import routes
from streamweld.integrations.proxy.members import list_of
from streamweld.integrations.proxy.refusals import Refusal
from streamweld.integrations.proxy.translate import translated

if TYPE_CHECKING:
    from streamweld.integrations.proxy.config import ProxyConfig, Speaks

__all__ = ["Prepared", "prepared"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that can be sent. It keeps nothing of the parsed body but these few facts."""

    body: bytes
    stream: bool = False
    """A stream of events is asked for."""

    model: str | None = None
    tools: list[str] | None = None
    known_call_ids: frozenset[str] = frozenset()
    include_usage: bool = True
    dropped: tuple[str, ...] = ()


def prepared(body: bytes, dialect: str | None, query: str, config: ProxyConfig, *, converts: bool) -> Prepared:
    """Read a request, and convert it if `converts`.

    Args:
        body: as the client sent it.
        dialect: the client's; None where it is not known, and so the body is not read.
        query: of the request.
        config: of the proxy.
        converts: whether the upstream speaks another dialect.

    Raises:
        Refusal: for a body that is not a JSON object, and for what the upstream's API cannot be asked.
    """
    if dialect is None:
        return Prepared(body)
    try:
        request: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        request = None
    if not isinstance(request, dict):
        raise Refusal(400, "invalid_body", "the request's body must be a JSON object")
    asked = cast("dict[str, Any]", request)
    stream = routes.is_stream(dialect, asked, query)
    model = asked.get("model")
    model = model if isinstance(model, str) else None
    if not converts:
        return Prepared(body, stream, model, _names(asked))
    told = translated(asked, cast("Speaks", dialect), config)
    return Prepared(
        orjson.dumps(told.payload),
        stream,
        model,
        list(told.tools),
        told.known_call_ids,
        told.include_usage,
        told.dropped,
    )


def _names(request: dict[str, Any]) -> list[str] | None:
    """The tools that a request declares, where it says so in a way that can be read."""
    try:
        return [*tool_names(list_of(request.get("tools")))] or None
    except TypeError:
        return None
