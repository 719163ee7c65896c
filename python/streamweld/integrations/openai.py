"""Repairs what the official `openai` client reads, in one line.

    client = streamweld.integrations.openai.repair(openai.OpenAI())

There is no public way to the HTTP client of a client that exists: `_clients` lists the names it is kept under.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from streamweld.integrations._body import RepairOptions
from streamweld.integrations._clients import repair_inside
from streamweld.integrations._tell import StreamContext

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["RepairOptions", "StreamContext", "repair"]

_Client = TypeVar("_Client")


def repair(client: _Client, **options: Unpack[RepairOptions]) -> _Client:
    """Every stream that the client reads from now on is repaired; what is no stream is not touched.

    The hook goes into the HTTP client that it has, so it counts for all that share it: `client.copy()`,
    `client.with_options()`, and others that were given the same `http_client=`. To leave a client as it is, make a new
    one with `http_client=DefaultHttpxClient(event_hooks=…)` and `repair_hook`. A second call replaces the options of
    the first.

    Args:
        client: `OpenAI`, `AsyncOpenAI`, or another client of that package, be it a release on httpx2 or one on httpx;
            or what was built around one, such as LangChain's `ChatOpenAI` or a pydantic-ai model.
        **options: `RepairOptions`.

    Returns:
        The same client.

    Raises:
        UsageError: for an option that cannot be, and for what is no such client.
    """
    return repair_inside(client, options)
