"""Selects a share of a list by name, so that a new vector does not change which other vectors are selected."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_T = TypeVar("_T")


def one_of(share: int, rows: Iterable[_T], name: Callable[[_T], str] = str) -> list[_T]:
    """Return about one in `share` rows, selected by name."""
    return [row for row in rows if crc32(name(row).encode()) % share == 0]
