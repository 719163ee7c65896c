"""Repair the streams that an `httpx` or `httpx2` client reads: with a response event hook, or a transport.

    client = repair(httpx2.Client())
    client = httpx2.AsyncClient(event_hooks={"response": [async_repair_hook()]})

A hook leaves the rest of the client's configuration unchanged: limits, proxies, keep-alive. Responses are not modified
if they are not streams, have a status other than 2xx, or do not come from an LLM endpoint. A stream that needs no
repair passes through byte for byte. The `StreamConverter` of a repaired response is
`response.extensions["streamweld"]`. This module does not import either library, and uses only public interfaces of the
clients; `_splice` handles the body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from streamweld.errors import UsageError
from streamweld.integrations._body import RepairOptions, Settings
from streamweld.integrations._reporting import StreamContext
from streamweld.integrations._splice import splice

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
    """The response event hook that `repair_hook` returns."""

    __slots__ = ("_settings",)

    def __init__(self, **options: Unpack[RepairOptions]) -> None:
        self._settings = Settings(**options)

    def __call__(self, response: Any) -> None:
        """Add the repair step to a response that has not been read yet."""
        splice(response, self._settings, asynchronous=False)


class AsyncRepairHook:
    """The response event hook that `async_repair_hook` returns."""

    __slots__ = ("_settings",)

    def __init__(self, **options: Unpack[RepairOptions]) -> None:
        self._settings = Settings(**options)

    def __call__(self, response: Any) -> Awaitable[None]:
        """Add the repair step to a response that has not been read yet, and return a completed awaitable.

        The step is added in this call, before the result is awaited. Therefore, the UsageError is raised even if the
        hook is attached to a synchronous client, which never awaits hooks.
        """
        splice(response, self._settings, asynchronous=True)
        return _nothing()


async def _nothing() -> None:
    pass


def repair_hook(**options: Unpack[RepairOptions]) -> RepairHook:
    """Create a response event hook for `httpx.Client` and `httpx2.Client`.

    Put this hook first, because a body that another hook has read can no longer be repaired.

    Args:
        **options: `RepairOptions`.

    Raises:
        UsageError: if an option is invalid.
    """
    return RepairHook(**options)


def async_repair_hook(**options: Unpack[RepairOptions]) -> AsyncRepairHook:
    """Create a response event hook for `httpx.AsyncClient` and `httpx2.AsyncClient`.

    If a task is canceled while it reads, the connection is closed at once. If the task is canceled at any other point,
    the connection is closed only when the response is closed, so use `async with`.

    Args:
        **options: `RepairOptions`.

    Raises:
        UsageError: if an option is invalid.
    """
    return AsyncRepairHook(**options)


def repair(client: _Client, **options: Unpack[RepairOptions]) -> _Client:
    """Add the hook to an existing client, so that every stream it reads after this call is repaired.

    The hook is placed before the existing hooks. If the function is called again for the same client, the new options
    replace the old ones.

    Args:
        client: `Client` or `AsyncClient` of httpx or httpx2.
        **options: `policy`, `text_calls`, `limits`, `upstream_dialect`, `endpoints`, `on_diagnostic`, `on_error`,
            `record`, as `RepairOptions` describes them.

    Returns:
        The same client.

    Raises:
        UsageError: if an option is invalid, or `client` is not such a client.
    """
    http: Any = client
    hooks: Any = getattr(http, "event_hooks", None)
    if isinstance(client, type):
        raise UsageError(f"{client.__name__!r} is a class; pass an instance")
    if hooks is None:
        raise UsageError(f"{type(client).__name__!r} is not a client of httpx or httpx2")
    hook = async_repair_hook(**options) if hasattr(http, "aclose") else repair_hook(**options)
    others = [other for other in hooks["response"] if not isinstance(other, RepairHook | AsyncRepairHook)]
    http.event_hooks = {**hooks, "response": [hook, *others]}
    return client


def RepairTransport(transport: _Transport, **options: Unpack[RepairOptions]) -> _Transport:  # noqa: N802
    """Wrap a transport so that the streams it receives are repaired.

    Use this function for clients that do not allow event hooks.

    A client with a custom transport neither reads proxies from the environment nor applies its own limits, so set those
    on `transport`.

    Args:
        transport: for example `httpx2.HTTPTransport()`. Closing the wrapper also closes this transport.
        **options: `RepairOptions`.

    Returns:
        A wrapper with the methods of `transport`.

    Raises:
        UsageError: if an option is invalid, or `transport` is not the transport of a synchronous client.
    """
    return cast("_Transport", _Sync(transport, Settings(**options)))


def AsyncRepairTransport(transport: _Transport, **options: Unpack[RepairOptions]) -> _Transport:  # noqa: N802
    """Wrap an asynchronous transport, such as `httpx2.AsyncHTTPTransport()`, to repair the streams it receives.

    Args:
        transport: the transport to wrap.
        **options: `RepairOptions`.

    Returns:
        A wrapper with the methods of `transport`.

    Raises:
        UsageError: if an option is invalid, or `transport` is not the transport of an asynchronous client.
    """
    return cast("_Transport", _Async(transport, Settings(**options)))


class _WrappedTransport:
    """Delegates all attributes to the wrapped transport, except for the methods that handle a request.

    The methods for synchronous and for asynchronous clients are both replaced. If only one of them were replaced, a
    transport that supports both kinds would return unrepaired responses from the other.
    """

    _handles: str
    _other: str

    def __init__(self, transport: Any, settings: Settings) -> None:
        if isinstance(transport, type) or not hasattr(transport, self._handles):
            hint = f": use {self._other}" if hasattr(transport, _OTHER[self._handles]) else ""
            raise UsageError(f"{type(transport).__name__!r} is not a transport for this kind of client{hint}")
        self._transport = transport
        self._settings = settings

    def __getattr__(self, name: str) -> Any:
        if name == "_transport":
            raise AttributeError(name)
        if name == _OTHER[self._handles]:
            raise UsageError(f"this transport is for the other kind of client: use {self._other}")
        return getattr(self._transport, name)

    def _repaired(self, response: Any, request: Any, *, asynchronous: bool) -> Any:
        response.request = request
        splice(response, self._settings, asynchronous=asynchronous)
        return response


class _Sync(_WrappedTransport):
    _handles = "handle_request"
    _other = "AsyncRepairTransport"

    def handle_request(self, request: Any) -> Any:
        return self._repaired(self._transport.handle_request(request), request, asynchronous=False)

    def __enter__(self) -> Self:
        self._transport.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._transport.__exit__(*exception)


class _Async(_WrappedTransport):
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
