"""A source of pieces of bytes that an iterator reads and, if it is its to close, closes exactly once. Layer 0."""

from __future__ import annotations

from inspect import isawaitable
from typing import Any

__all__ = ["Source"]


class Source:
    """`chunks` as it was given: what it gives is what is iterated, and what is closed is it."""

    __slots__ = ("_open", "chunks")

    def __init__(self, chunks: Any, *, close: bool) -> None:
        self.chunks = chunks
        self._open = close

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
            raise TypeError(f"the source has no {method}(): {type(chunks).__name__!r} is for {other}, if for any")
        return cls(chunks, close=close)

    def close(self) -> None:
        if self._open:
            self._open = False
            close = getattr(self.chunks, "close", None)
            if close is not None:
                close()

    async def aclose(self) -> None:
        if self._open:
            self._open = False
            close = getattr(self.chunks, "aclose", None) or getattr(self.chunks, "close", None)
            if close is not None:
                closing = close()
                if isawaitable(closing):
                    await closing
