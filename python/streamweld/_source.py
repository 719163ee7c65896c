"""A source of byte chunks. An iterator reads the source and, if it owns the source, closes it exactly once."""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

__all__ = ["Source"]


class Source:
    """The `chunks` object that the caller passed.

    This object is iterated and then closed. If its `__iter__` returns a separate iterator (for example, if `__iter__`
    is a generator function), that iterator is closed first, because no other code has a reference to it.
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
        """Return a source that is read with `for`.

        `other` is the function that accepts asynchronous sources, for the error message.
        """
        return cls._checked(chunks, "__iter__", close, other)

    @classmethod
    def asynchronous(cls, chunks: object, *, close: bool, other: str) -> Source:
        """Return a source that is read with `async for`.

        `other` is the function that accepts synchronous sources, for the error message.
        """
        return cls._checked(chunks, "__aiter__", close, other)

    @classmethod
    def _checked(cls, chunks: object, method: str, close: bool, other: str) -> Source:
        if isinstance(chunks, bytes | bytearray | memoryview):
            raise TypeError("the source must yield chunks of bytes; for a whole body, pass [body], or use parse(body)")
        if isinstance(chunks, str):
            raise TypeError(
                "the source must yield chunks of bytes, not of str: pass iter_bytes() instead of iter_text(), open "
                "files with mode 'rb', or encode the text as UTF-8 and pass [body]"
            )
        if not hasattr(chunks, method):
            # The object is not iterable: for example, it is a response object, or a method that was not called.
            elsewhere = hasattr(chunks, "__iter__") or hasattr(chunks, "__aiter__")
            hint = (
                f"is for {other}"
                if elsewhere
                else "cannot be iterated; pass what its iter_bytes() or a similar method returns"
            )
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
