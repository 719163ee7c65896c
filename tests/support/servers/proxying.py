"""A proxy between an upstream of Chat and clients of Anthropic, over loopback, for the suites of the proxy."""

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
    """The address of a proxy before the upstream; `base`: the path that the upstream begins with."""
    with (
        upstream.serving(),
        running(
            create_app(ProxyConfig(upstream.url + base, **{"to": "chat", "allow_hosts": ("h",), **options})),
            server_header=False,
        ) as url,
    ):
        yield url


def converse(url: str, **options: Any) -> httpx2.Response:
    """A stream in the words of Anthropic from an upstream in those of Chat, read to its end."""
    return httpx2.post(f"{url}/v1/messages", json=ASK, timeout=20, **options)
