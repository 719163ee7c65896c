"""Distributes work over processes, for suites whose full counts take minutes on one processor."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

NIGHTLY = os.environ.get("STREAMWELD_NIGHTLY") == "1"
_I = TypeVar("_I")
_O = TypeVar("_O")


def spread(function: Callable[[_I], _O], items: Iterable[_I], *, alone: bool = False) -> list[_O]:
    """Return `[function(item) for item in items]`, computed in several processes (`alone`: in this one).

    If pytest-xdist keeps the other processors busy, more processes only cost their start. The nightly counts take so
    long that the last test of a run would leave the other processors idle.
    """
    rows = list(items)
    others = 1 if NIGHTLY else int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    workers = min((os.cpu_count() or 1) // others, len(rows))
    if alone or workers < 2:
        return [function(row) for row in rows]
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(function, rows))
