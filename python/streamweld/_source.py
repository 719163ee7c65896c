"""A source of pieces of bytes that an iterator reads and, if it is its to close, closes exactly once."""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

__all__ = ["Source"]


class Source:
    """`chunks` as it was given: what it gives is what is iterated, and what is closed is it.

    An iterator that it made for us (where `__iter__` is a generator) is closed too, and first: nobody else could.
    """

    __slots__ = ("_iterator", "_open", "chunks")

    def __init__(self, chunks: Any, *, close: bool) -> None:
        self.chunks: Any = chunks
        self._open = close
        self._iterator: Any = None

    def __iter__(self) -> Iterator[Any]:
        iterator: Iterator[Any] = iter(self.chunks)
        self._iterator = None if iterator is self.chunks else iterator
        return iterator

    def __aiter__(self) -> AsyncIterator[Any]:
        iterator: AsyncIterator[Any] = aiter(self.chunks)
        self._iterator = None if iterator is self.chunks else iterator
        return iterator

    @classmethod
    def sync(cls, chunks: object, *, close: bool, other: str) -> Source:
        """For `for`; `other` names what takes the asynchronous ones."""
        return cls._checked(chunks, "__iter__", close, other)

    @classmethod
    def asynchronous(cls, chunks: object, *, close: bool, other: str) -> Source:
        """For `async for`; `other` names what takes the synchronous ones."""
        return cls._checked(chunks, "__aiter__", close, other)

    @classmethod
    def _checked(cls, chunks: object, method: str, close: bool, other: str) -> Source:
        if isinstance(chunks, bytes | bytearray | memoryview | str):
            raise TypeError("the source must give pieces of bytes; wrap a whole body in a list")
        if not hasattr(chunks, method):
            # A response, or its method that nobody called, is for neither of the two.
            elsewhere = hasattr(chunks, "__iter__") or hasattr(chunks, "__aiter__")
            hint = f"is for {other}" if elsewhere else "gives no pieces; take what iter_bytes() or the like returns"
            raise TypeError(f"the source has no {method}(): {type(chunks).__name__!r} {hint}")
        return cls(chunks, close=close)

    def close(self) -> None:
        iterator, self._iterator = self._iterator, None
        try:
            _call(iterator, "close")
        finally:
            if self._open:
                self._open = False
                _call(self.chunks, "close")

    async def aclose(self) -> None:
        iterator, self._iterator = self._iterator, None
        try:
            await _acall(iterator)
        finally:
            if self._open:
                self._open = False
                await _acall(self.chunks)


def _call(thing: Any, method: str) -> Any:
    act = getattr(thing, method, None)
    return None if act is None else act()


async def _acall(thing: Any) -> None:
    closing = _call(thing, "aclose" if hasattr(thing, "aclose") else "close")
    if isawaitable(closing):
        await closing
