"""Sync and async iterators over a source of bytes.

The iterators yield items, close the source once, and provide the reader's response, diagnostics and dialect so far.
The iterators work with any reader, and do not examine the bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
    from typing import Self

    from streamweld._source import Source
    from streamweld.events import Diagnostic
    from streamweld.response import Response

__all__ = ["AsyncItems", "Items", "Progress"]

_R = TypeVar("_R")
_T = TypeVar("_T")


class Items(Generic[_R, _T]):
    """Iterator over the items of a synchronous source."""

    __slots__ = ("_items", "_reader", "_source")

    def __init__(self, reader: _R, source: Source, items: Generator[_T]) -> None:
        self._reader = reader
        self._source = source
        self._items = items

    def __iter__(self) -> Iterator[_T]:
        # Return the generator itself. If the caller leaves the loop early, Python deletes the generator, which closes
        # the source.
        return self._items

    def __next__(self) -> _T:
        return next(self._items)

    def close(self) -> None:
        """Stop, and close the source if it is still open."""
        self._items.close()
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncItems(Generic[_R, _T]):
    """Iterator over the items of an asynchronous source."""

    __slots__ = ("_items", "_reader", "_source")

    def __init__(self, reader: _R, source: Source, items: AsyncGenerator[_T]) -> None:
        self._reader = reader
        self._source = source
        self._items = items

    def __aiter__(self) -> AsyncIterator[_T]:
        return self._items

    async def __anext__(self) -> _T:
        return await anext(self._items)

    async def aclose(self) -> None:
        """Stop, and close the source if it is still open."""
        await self._items.aclose()
        await self._source.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Reader(Protocol):
    @property
    def response(self) -> Response: ...
    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]: ...
    @property
    def dialect(self) -> str | None: ...


_Read = TypeVar("_Read", bound=_Reader)


class Progress(Generic[_Read]):
    """Progress of an iterator: response, diagnostics and dialect."""

    __slots__ = ()
    _reader: _Read

    @property
    def response(self) -> Response:
        """Everything read so far, as a new immutable `Response`."""
        return self._reader.response

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All repairs, anomalies and losses so far, in order."""
        return self._reader.diagnostics

    @property
    def dialect(self) -> str | None:
        """The wire format of the source; None until it is detected."""
        return self._reader.dialect
