"""Parse a request body once, and return the body for the upstream and the facts needed to handle the response.

The work has no side effects, so a large body can be processed in a worker thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import orjson

from streamweld.history.conversion import tool_names
from streamweld.integrations._tools import declared_tools
from streamweld.integrations.proxy import routes
from streamweld.integrations.proxy.config import PROXY_DIALECTS
from streamweld.integrations.proxy.json_values import list_of
from streamweld.integrations.proxy.refusals import Refusal
from streamweld.integrations.proxy.translate import translated

if TYPE_CHECKING:
    from streamweld.integrations.proxy.config import ProxyConfig, ProxyDialect
    from streamweld.options import Tools

__all__ = ["Prepared", "prepared"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that is ready to be sent. The parsed body is not stored."""

    body: bytes
    stream: bool = False
    """True if the request asks for a stream."""

    model: str | None = None
    tools: Tools | None = None
    known_call_ids: frozenset[str] = frozenset()
    include_usage: bool = True
    dropped: tuple[str, ...] = ()


def prepared(body: bytes, dialect: str | None, path: str, query: str, config: ProxyConfig) -> Prepared:
    """Parse a request, and convert it if the upstream has another dialect or is a gateway with its own rules.

    Args:
        body: the body, as the client sent it.
        dialect: the client's dialect; if it is None (unknown), the body is not parsed.
        path, query: the path and query of the request.
        config: the configuration of the proxy.

    Raises:
        Refusal: if the body is not a JSON object, or if the upstream's API cannot express the request.
    """
    if dialect is None:
        return Prepared(body)
    try:
        request: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        request = None
    if not isinstance(request, dict):
        raise Refusal(400, "invalid_body", "the request's body must be a JSON object")
    requested = cast("dict[str, Any]", request)
    stream = routes.is_stream(dialect, requested, path, query)
    named = routes.model_of(path)  # also needed for Claude on Vertex AI, where the body does not contain the model
    model = requested.get("model") if named is None else named
    model = model if isinstance(model, str) else None
    tools: Tools | None = declared_tools(requested) if config.reading.text_calls == "promote" else _names(requested)
    same = dialect == config.to
    if config.to is None or dialect not in PROXY_DIALECTS or (same and config.gateway is None):
        return Prepared(body, stream, model, tools)
    given = requested
    if dialect == "gemini" and not same and not stream and path.endswith(":streamGenerateContent"):
        raise Refusal(400, "unsupported_stream", "a converted stream consists of events: add alt=sse to the query")
    if named is not None:
        given = {name: value for name, value in requested.items() if name != "anthropic_version"} | {"model": named}
    fields = translated(given, cast("ProxyDialect", dialect), config, stream=stream)
    payload = fields.payload
    own = routes.of_gateway(config.gateway, config.to)
    if own is not None or config.to == "gemini":  # this API expects the model in the path
        payload = {name: value for name, value in payload.items() if name != "model"} | (own or {}).get("body", {})
    made = body if payload == requested else orjson.dumps(payload)
    return Prepared(
        made,
        stream,
        model,
        list(fields.tools) if config.reading.text_calls == "off" else tools,
        fields.known_call_ids,
        fields.include_usage,
        fields.dropped,
    )


def _names(request: dict[str, Any]) -> list[str] | None:
    """Return the names of the tools that a request declares, or None if they cannot be read."""
    try:
        return [*tool_names(list_of(request.get("tools")))] or None
    except TypeError:
        return None
