"""Repairs what the official `openai` client reads, in one line.

    client = streamweld.integrations.openai.repair(openai.OpenAI())

Of that client it knows one name, `_client`: there is no public way to the HTTP client of one that exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from streamweld.integrations._body import RepairOptions
from streamweld.integrations.httpx import repair as repair_http

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["RepairOptions", "repair"]

_Client = TypeVar("_Client")


def repair(client: _Client, **options: Unpack[RepairOptions]) -> _Client:
    """Every stream that the client reads from now on is repaired; what is no stream is not touched.

    The hook goes into the HTTP client that it has, so it counts for all that share it: `client.copy()`,
    `client.with_options()`, and others that were given the same `http_client=`. To leave a client as it is, make a new
    one with `http_client=DefaultHttpxClient(event_hooks=…)` and `repair_hook`. A second call replaces the options of
    the first.

    Args:
        client: `OpenAI`, `AsyncOpenAI`, or another client of that package, be it a release on httpx2 or one on httpx.
        **options: `RepairOptions`.

    Returns:
        The same client.

    Raises:
        UsageError: for an option that cannot be, and for what is no such client.
    """
    http: Any = getattr(client, "_client", None) or client
    repair_http(http, **options)
    return client
