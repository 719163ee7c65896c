"""Repair the streams that the official `openai` client reads, in one line.

    client = streamweld.integrations.openai.repair(openai.OpenAI())

The official client has no public attribute for its HTTP client. `_clients` therefore searches a list of private
attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from streamweld.integrations._body import RepairOptions
from streamweld.integrations._clients import repair_inside
from streamweld.integrations._reporting import StreamContext

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["RepairOptions", "StreamContext", "repair"]

_Client = TypeVar("_Client")


def repair(client: _Client, **options: Unpack[RepairOptions]) -> _Client:
    """Repair every stream that this client reads after this call. Other responses are not modified.

    The hook is added to the client's HTTP client, so the hook applies to all clients that share this HTTP client:
    `client.copy()`, `client.with_options()`, and others that were created with the same `http_client=`. To leave a
    client unchanged, create a new one with `http_client=DefaultHttpxClient(event_hooks=…)` and `repair_hook`. If the
    function is called again for the same client, the new options replace the old ones.

    Args:
        client: `OpenAI`, `AsyncOpenAI`, or another client of that package, in releases based on httpx or on httpx2; or
            an object that wraps one, such as LangChain's `ChatOpenAI` or a pydantic-ai model.
        **options: `policy`, `text_calls`, `limits`, `upstream_dialect`, `endpoints`, `on_diagnostic`, `on_error`,
            `record`, as `RepairOptions` describes them.

    Returns:
        The same client.

    Raises:
        UsageError: if an option is invalid, or `client` is not such a client.
    """
    return repair_inside(client, options)
