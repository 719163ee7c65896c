"""A proxy between a Chat upstream and Anthropic clients, over the loopback interface, for the proxy suites."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx2
from streamweld.integrations.proxy import ProxyConfig, create_app

from tests.support.servers.upstream import Upstream, running
from tests.support.servers.wire import end, text

if TYPE_CHECKING:
    from collections.abc import Iterator

GOOD = [text("Hello"), end("stop")]
ASK: dict[str, Any] = {"model": "m", "stream": True, "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}


@contextmanager
def between(upstream: Upstream, *, base: str = "", **options: Any) -> Iterator[str]:
    """Run a proxy in front of the upstream and yield its address; `base` is the path prefix of the upstream."""
    with (
        upstream.serving(),
        running(
            create_app(ProxyConfig(upstream.url + base, **{"to": "chat", "allow_hosts": ("h",), **options})),
            server_header=False,
        ) as url,
    ):
        yield url


def converse(url: str, **options: Any) -> httpx2.Response:
    """Request an Anthropic stream from a Chat upstream and read it to the end."""
    return httpx2.post(f"{url}/v1/messages", json=ASK, timeout=20, **options)
