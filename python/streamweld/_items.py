"""What an iterator over a source of bytes is, sync and async: its items, and the source, which is closed once.

Layer 0. It knows that something reads the source; not what, and no bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
    from typing import Self

    from streamweld._source import Source

__all__ = ["AsyncItems", "Items"]

_R = TypeVar("_R")
_T = TypeVar("_T")


class Items(Generic[_R, _T]):
    """The items of a source that is a plain iterable, and who reads them."""

    __slots__ = ("_items", "_reader", "_source")

    def __init__(self, reader: _R, source: Source, items: Generator[_T]) -> None:
        self._reader = reader
        self._source = source
        self._items = items

    def __iter__(self) -> Iterator[_T]:
        # The generator itself: a loop that is left drops it, which closes the source at once.
        return self._items

    def __next__(self) -> _T:
        return next(self._items)

    def close(self) -> None:
        """Stop; closes the source, if that was not done before."""
        self._items.close()
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncItems(Generic[_R, _T]):
    """The items of an asynchronous source, and who reads them."""

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
        """Stop; closes the source, if that was not done before."""
        await self._items.aclose()
        await self._source.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
