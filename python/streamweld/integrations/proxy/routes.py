"""Routing by path, which determines the client's dialect and the upstream URL.

No other part of a request affects the routing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qs, quote, unquote, urlsplit

from streamweld._spec import load_proxy

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["dialect_of", "is_safe", "is_stream", "model_of", "of_gateway", "path_of", "request_path", "target_of"]

_ROUTES: Final = load_proxy()["routes"]
_PATTERNS: Final = {name: re.compile(route["pattern"], re.ASCII) for name, route in _ROUTES.items()}
_VERSION: Final = re.compile(r"v\d+(?:(?:alpha|beta)\d*)?", re.ASCII)
_KEEP: Final = "/:@!$&'()*+,;=-._~"
_NO_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})", re.ASCII)


def dialect_of(path: str) -> str | None:
    """Return the dialect of the API at this path, or None if the path is unknown.

    >>> dialect_of("/v1/chat/completions"), dialect_of("/api/v1/messages"), dialect_of("/v1/threads/t/messages")
    ('chat', 'anthropic', None)
    """
    return next((name for name, pattern in _PATTERNS.items() if pattern.search(path)), None)


def path_of(dialect: str, model: str, *, stream: bool, gateway: str | None = None) -> tuple[str, str]:
    """Return the endpoint of an API for requests that can be converted: the escaped path and the query.

    `gateway`: the upstream's gateway, if it offers the API at different paths.

    >>> path_of("chat", "m", stream=True)
    ('/v1/chat/completions', '')
    >>> path_of("gemini", "gemini-3", stream=True), path_of("gemini", "../x:y", stream=False)[0]
    (('/v1beta/models/gemini-3:streamGenerateContent', 'alt=sse'), '/v1beta/models/..%2Fx%3Ay:generateContent')
    >>> path_of("anthropic", "claude-sonnet-4-5@20250929", stream=True, gateway="vertex")[0]
    '/models/claude-sonnet-4-5%4020250929:streamRawPredict'
    """
    own = of_gateway(gateway, dialect)
    path: str = (own or _ROUTES[dialect])["path"]
    if dialect != "gemini" and own is None:
        return path, ""
    named = f"{path}/{quote(model.removeprefix('models/'), safe='')}"
    methods = own or {"stream": "streamGenerateContent", "whole": "generateContent"}
    return f"{named}:{methods['stream' if stream else 'whole']}", "alt=sse" if stream and dialect == "gemini" else ""


def of_gateway(gateway: str | None, dialect: str) -> Mapping[str, Any] | None:
    """Return how a gateway's paths, keys and bodies differ from those of its API, or None if they do not differ."""
    name = (gateway or "").partition("@")[0]
    found: Mapping[str, Any] | None = load_proxy()["gateways"].get(name, {}).get(dialect)
    return found


def model_of(path: str) -> str | None:
    """Return the model in a Gemini API path, or None if the path does not contain one.

    >>> model_of("/v1beta/models/gemini-3:streamGenerateContent"), model_of("/v1/messages")
    ('gemini-3', None)
    """
    name, _, method = path.rpartition("/")[2].rpartition(":")
    return name if name and method else None


def is_safe(path: str) -> bool:
    """Return True if an unescaped path does not contain `..`, another host or invisible characters.

    For a safe path, the resulting URL is always below the upstream's URL.

    >>> is_safe("/v1/models"), is_safe("/v1/../admin"), is_safe("//evil.example/"), is_safe("http://evil.example/")
    (True, False, False, False)
    """
    segments = path.split("/")
    return (
        segments[0] == ""
        and len(segments) > 1
        and not any(part in (".", "..") for part in segments)
        and all(segments[1:-1])
        and path.isprintable()
        and "\\" not in path
    )


def request_path(path: str, raw: bytes | None, root: str = "") -> tuple[str, str]:
    """Return the path of a request, unescaped and as the client wrote it.

    An escaped slash does not separate segments: `meta%2Fllama` is one segment.

    Args:
        path, raw, root: ASGI's `path`, `raw_path` (which some servers do not set) and `root_path`, the prefix at which
            the application is mounted, which is removed.

    >>> request_path("/v1/models/meta/llama", b"/v1/models/meta%2Fllama")
    ('/v1/models/meta/llama', '/v1/models/meta%2Fllama')
    >>> request_path("/my llm/v1/models", b"/my%20llm/v1/models", "/my llm"), request_path("/a b", None)
    (('/v1/models', '/v1/models'), ('/a b', '/a%20b'))
    """
    sent = None if raw is None else _NO_ESCAPE.sub("%25", quote(raw.partition(b"?")[0], safe=_KEEP + "%"))
    root = root.rstrip("/")
    if root and path.startswith(f"{root}/"):
        path = path[len(root) :]
        segments = (sent or "").split("/")
        depth = root.count("/") + 1
        sent = "/".join(["", *segments[depth:]]) if unquote("/".join(segments[:depth])) == root else None
    return path, quote(path, safe=_KEEP) if sent is None else sent


def target_of(upstream: str, path: str, query: str = "") -> str:
    """Return the upstream URL for an escaped path. The caller must have checked the unescaped path with `is_safe`.

    >>> target_of("https://gateway.example/api/v1/", "/v1/chat/completions")
    'https://gateway.example/api/v1/chat/completions'
    >>> target_of("https://gateway.example", "/v1/models", "limit=2")
    'https://gateway.example/v1/models?limit=2'
    """
    parts = urlsplit(upstream)
    base = [part for part in parts.path.split("/") if part]
    requested = path.split("/")[1:]
    if base and _VERSION.fullmatch(base[-1]) and _VERSION.fullmatch(requested[0]):
        requested = requested[1:]
    url = f"{parts.scheme}://{parts.netloc}/{'/'.join([*base, *requested])}"
    return f"{url}?{query}" if query else url


def is_stream(dialect: str, request: object, path: str, query: str) -> bool:
    """Return True if a request asks for an event stream.

    In the Gemini API, the path and the query determine the form of the response: without `alt=sse`, the response is an
    array, which passes through unchanged.
    """
    if dialect == "gemini":
        return path.endswith(":streamGenerateContent") and "sse" in parse_qs(query).get("alt", ())
    return isinstance(request, dict) and cast("dict[str, object]", request).get("stream") is True
