"""Repairs what an `httpx` or `httpx2` client reads: as a response event hook, or as a transport. It depends on neither.

    client = repair(httpx2.Client())
    client = httpx2.AsyncClient(event_hooks={"response": [async_repair_hook()]})

A hook keeps everything else of the client: limits, proxies, keep-alive. Answers to other than LLM endpoints, with
another status than 2xx, and those that are no streams are not touched. A stream that needs no repair passes byte for
byte. The `StreamConverter` of a response that is read through it is `response.extensions["streamweld"]`.
It knows the two interfaces of these clients that are public, and no body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from streamweld.errors import UsageError
from streamweld.integrations._body import RepairOptions, Settings
from streamweld.integrations._splice import splice

if TYPE_CHECKING:
    from typing import Self, Unpack

    _Transport: TypeAlias = Any  # of either library: its interface is what counts
else:
    _Transport = object

__all__ = [
    "AsyncRepairHook",
    "AsyncRepairTransport",
    "RepairHook",
    "RepairOptions",
    "RepairTransport",
    "async_repair_hook",
    "repair",
    "repair_hook",
]

_Client = TypeVar("_Client")


class RepairHook:
    """What `repair_hook` returns."""

    __slots__ = ("_settings",)

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __call__(self, response: Any) -> None:
        """Puts the repairer into a response that has not been read yet."""
        splice(response, self._settings)


class AsyncRepairHook:
    """What `async_repair_hook` returns."""

    __slots__ = ("_settings",)

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def __call__(self, response: Any) -> None:
        """Puts the repairer into a response that has not been read yet."""
        splice(response, self._settings)


def repair_hook(**options: Unpack[RepairOptions]) -> RepairHook:
    """A response event hook for `httpx.Client` and `httpx2.Client`.

    Put it first: a hook before it that reads the body leaves nothing to repair.

    Args:
        **options: `RepairOptions`.

    Raises:
        UsageError: for an option that cannot be.
    """
    return RepairHook(Settings(**options))


def async_repair_hook(**options: Unpack[RepairOptions]) -> AsyncRepairHook:
    """A response event hook for `httpx.AsyncClient` and `httpx2.AsyncClient`.

    A task that is cancelled while it reads closes the connection at once. One that is cancelled elsewhere does so when
    the response is closed: use `async with`.

    Args:
        **options: `RepairOptions`.

    Raises:
        UsageError: for an option that cannot be.
    """
    return AsyncRepairHook(Settings(**options))


def repair(client: _Client, **options: Unpack[RepairOptions]) -> _Client:
    """The hook for a client that exists: every stream that it reads from now on is repaired.

    The hook comes before those that are there. A second call replaces the options of the first.

    Args:
        client: `Client` or `AsyncClient` of httpx or httpx2.
        **options: `RepairOptions`.

    Returns:
        The same client.

    Raises:
        UsageError: for an option that cannot be, and for what is no such client.
    """
    http: Any = client
    hooks: Any = getattr(http, "event_hooks", None)
    if hooks is None:
        raise UsageError(f"{type(client).__name__!r} is no client of httpx or httpx2")
    hook = async_repair_hook(**options) if hasattr(http, "aclose") else repair_hook(**options)
    others = [other for other in hooks["response"] if not isinstance(other, RepairHook | AsyncRepairHook)]
    http.event_hooks = {**hooks, "response": [hook, *others]}
    return client


class RepairTransport(_Transport):  # type: ignore[misc] # pyright: ignore[reportUntypedBaseClass]
    """A transport that repairs what another one receives, where hooks cannot be set.

    A client that gets a transport reads no proxies from the environment and sets no limits of its own: give those to
    `transport`.

    Args:
        transport: such as `httpx2.HTTPTransport()`, or `client._transport`. It is closed with this one.
        **options: `RepairOptions`.

    Raises:
        UsageError: for an option that cannot be.
    """

    def __init__(self, transport: Any, **options: Unpack[RepairOptions]) -> None:
        self._transport = transport
        self._settings = Settings(**options)

    def handle_request(self, request: Any) -> Any:
        """Sends one request; its response, with the repairer in it."""
        response = self._transport.handle_request(request)
        response.request = request
        splice(response, self._settings)
        return response

    def close(self) -> None:
        """Closes the other transport."""
        self._transport.close()

    def __enter__(self) -> Self:
        self._transport.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._transport.__exit__(*exception)


class AsyncRepairTransport(_Transport):  # type: ignore[misc] # pyright: ignore[reportUntypedBaseClass]
    """The same for asynchronous clients, around `httpx2.AsyncHTTPTransport()` and its like."""

    def __init__(self, transport: Any, **options: Unpack[RepairOptions]) -> None:
        self._transport = transport
        self._settings = Settings(**options)

    async def handle_async_request(self, request: Any) -> Any:
        """Sends one request; its response, with the repairer in it."""
        response = await self._transport.handle_async_request(request)
        response.request = request
        splice(response, self._settings)
        return response

    async def aclose(self) -> None:
        """Closes the other transport."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._transport.__aexit__(*exception)
