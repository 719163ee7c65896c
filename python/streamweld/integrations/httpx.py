"""Repairs what an `httpx` or `httpx2` client reads: as a response event hook, or as a transport. It depends on neither.

    client = repair(httpx2.Client())
    client = httpx2.AsyncClient(event_hooks={"response": [async_repair_hook()]})

A hook keeps everything else of the client: limits, proxies, keep-alive. Answers to other than LLM endpoints, with
another status than 2xx, and those that are no streams are not touched. A stream that needs no repair passes byte for
byte. The `StreamConverter` of a response that is read through it is `response.extensions["streamweld"]`.
It knows the two interfaces of these clients that are public, and no body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from streamweld.errors import UsageError
from streamweld.integrations._body import RepairOptions, Settings
from streamweld.integrations._splice import splice
from streamweld.integrations._tell import StreamContext

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from typing import Self, Unpack

__all__ = [
    "AsyncRepairHook",
    "AsyncRepairTransport",
    "RepairHook",
    "RepairOptions",
    "RepairTransport",
    "StreamContext",
    "async_repair_hook",
    "repair",
    "repair_hook",
]

_Client = TypeVar("_Client")
_Transport = TypeVar("_Transport")
_OTHER: Final = {"handle_request": "handle_async_request", "handle_async_request": "handle_request"}


class RepairHook:
    """What `repair_hook` returns."""

    __slots__ = ("_settings",)

    def __init__(self, **options: Unpack[RepairOptions]) -> None:
        self._settings = Settings(**options)

    def __call__(self, response: Any) -> None:
        """Puts the repairer into a response that has not been read yet."""
        splice(response, self._settings, asynchronous=False)


class AsyncRepairHook:
    """What `async_repair_hook` returns."""

    __slots__ = ("_settings",)

    def __init__(self, **options: Unpack[RepairOptions]) -> None:
        self._settings = Settings(**options)

    def __call__(self, response: Any) -> Awaitable[None]:
        """Puts the repairer into a response that has not been read yet; there is nothing to wait for.

        It does so before it is awaited: a client that awaits no hook is told so.
        """
        splice(response, self._settings, asynchronous=True)
        return _nothing()


async def _nothing() -> None:
    pass


def repair_hook(**options: Unpack[RepairOptions]) -> RepairHook:
    """A response event hook for `httpx.Client` and `httpx2.Client`.

    Put it first: a hook before it that reads the body leaves nothing to repair.

    Args:
        **options: `RepairOptions`.

    Raises:
        UsageError: for an option that cannot be.
    """
    return RepairHook(**options)


def async_repair_hook(**options: Unpack[RepairOptions]) -> AsyncRepairHook:
    """A response event hook for `httpx.AsyncClient` and `httpx2.AsyncClient`.

    A task that is cancelled while it reads closes the connection at once. One that is cancelled elsewhere does so when
    the response is closed: use `async with`.

    Args:
        **options: `RepairOptions`.

    Raises:
        UsageError: for an option that cannot be.
    """
    return AsyncRepairHook(**options)


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
    if isinstance(client, type):
        raise UsageError(f"{client.__name__!r} is a class: repair() takes a client that was made of one")
    if hooks is None:
        raise UsageError(f"{type(client).__name__!r} is not a client of httpx or httpx2")
    hook = async_repair_hook(**options) if hasattr(http, "aclose") else repair_hook(**options)
    others = [other for other in hooks["response"] if not isinstance(other, RepairHook | AsyncRepairHook)]
    http.event_hooks = {**hooks, "response": [hook, *others]}
    return client


def RepairTransport(transport: _Transport, **options: Unpack[RepairOptions]) -> _Transport:  # noqa: N802
    """A transport that repairs what another one receives, where hooks cannot be set.

    A client that gets a transport reads no proxies from the environment and sets no limits of its own: give those to
    `transport`.

    Args:
        transport: such as `httpx2.HTTPTransport()`. It is closed with this one.
        **options: `RepairOptions`.

    Returns:
        What stands in for `transport`: it has the same methods.

    Raises:
        UsageError: for an option that cannot be, and for what is no transport of a synchronous client.
    """
    return cast("_Transport", _Sync(transport, Settings(**options)))


def AsyncRepairTransport(transport: _Transport, **options: Unpack[RepairOptions]) -> _Transport:  # noqa: N802
    """The same for asynchronous clients, around `httpx2.AsyncHTTPTransport()` and its like.

    Args:
        transport: the transport to stand in for.
        **options: `RepairOptions`.

    Returns:
        What stands in for `transport`: it has the same methods.

    Raises:
        UsageError: for an option that cannot be, and for what is no transport of an asynchronous client.
    """
    return cast("_Transport", _Async(transport, Settings(**options)))


class _StandIn:
    """What is asked for neither here nor below is asked of the transport itself, but not to handle a request: one that
    can do it for the other kind of client, too, would do it unrepaired."""

    _handles: str
    _other: str

    def __init__(self, transport: Any, settings: Settings) -> None:
        if isinstance(transport, type) or not hasattr(transport, self._handles):
            hint = f": take {self._other}" if hasattr(transport, _OTHER[self._handles]) else ""
            raise UsageError(f"{type(transport).__name__!r} is no transport of this kind of client{hint}")
        self._transport = transport
        self._settings = settings

    def __getattr__(self, name: str) -> Any:
        if name == "_transport":
            raise AttributeError(name)
        if name == _OTHER[self._handles]:
            raise UsageError(f"this transport is for the other kind of client: take {self._other}")
        return getattr(self._transport, name)

    def _repaired(self, response: Any, request: Any, *, asynchronous: bool) -> Any:
        response.request = request
        splice(response, self._settings, asynchronous=asynchronous)
        return response


class _Sync(_StandIn):
    _handles = "handle_request"
    _other = "AsyncRepairTransport"

    def handle_request(self, request: Any) -> Any:
        return self._repaired(self._transport.handle_request(request), request, asynchronous=False)

    def __enter__(self) -> Self:
        self._transport.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._transport.__exit__(*exception)


class _Async(_StandIn):
    _handles = "handle_async_request"
    _other = "RepairTransport"

    async def handle_async_request(self, request: Any) -> Any:
        response = await self._transport.handle_async_request(request)
        return self._repaired(response, request, asynchronous=True)

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._transport.__aexit__(*exception)
