"""Find the HTTP clients inside an official client, or inside a framework's wrapper around an official client."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from streamweld.errors import UsageError
from streamweld.integrations.httpx import repair as repair_http

if TYPE_CHECKING:
    from streamweld.integrations._body import RepairOptions

__all__ = ["repair_inside"]

_T = TypeVar("_T")
# Attributes that contain a client: `_client` in openai, anthropic and their resources; `root_client` and
# `root_async_client` in langchain-openai; `_client` and `_async_client` in langchain-anthropic; `client` in pydantic-ai
# and others.
_PLACES: Final = ("_client", "_async_client", "root_client", "root_async_client", "client", "async_client")
_DEPTH: Final = 3


def repair_inside(client: _T, options: RepairOptions) -> _T:
    """Add repair to every HTTP client found in `client`, and return `client`.

    Raises:
        UsageError: if none is found.
    """
    found = list({id(http): http for http in _clients(client, _DEPTH)}.values())
    if not found:
        name = client.__name__ if isinstance(client, type) else type(client).__name__
        is_class = isinstance(client, type)
        what = "is a class, not an instance" if is_class else "is not a client, and contains no httpx or httpx2 client"
        raise UsageError(
            f"{name!r} {what}. Pass an official client such as openai.OpenAI(), a LangChain or pydantic-ai model "
            "made with one, or an httpx client"
        )
    for http in found:
        repair_http(http, **options)
    return client


def _clients(thing: Any, depth: int) -> list[Any]:
    if thing is None or isinstance(thing, type | ModuleType | str):
        return []
    if hasattr(thing, "event_hooks"):
        return [thing]
    if depth == 0:
        return []
    return [http for location in _PLACES for http in _clients(getattr(thing, location, None), depth - 1)]
