"""A share of a list that stays the same when something is added to the list: a new vector changes no other test."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_T = TypeVar("_T")


def one_of(share: int, rows: Iterable[_T], name: Callable[[_T], str] = str) -> list[_T]:
    """About one of `share` rows, chosen by its name."""
    return [row for row in rows if crc32(name(row).encode()) % share == 0]
