"""Parsers of a chosen backend, created through the public classes.

No other test module depends on how the package selects a backend.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

from streamweld import _backend, sse, stream
from streamweld.stream import StreamParser

if TYPE_CHECKING:
    from collections.abc import Iterator

CHOICE = "backend"  # the attribute of these modules that holds the chosen backend
CHOOSERS = (_backend, stream, import_module("streamweld.convert"))  # `sw.convert` is a function, not the module
BACKENDS: tuple[str, ...] = get_args(_backend.Backend)


@contextmanager
def using(backend: str) -> Iterator[None]:
    """Use `backend` for everything opened inside the block; one process can use both backends."""
    usual = _backend.backend
    for module in CHOOSERS:
        setattr(module, CHOICE, backend)
    try:
        yield
    finally:
        for module in CHOOSERS:
            setattr(module, CHOICE, usual)


def make_parser(backend: str, dialect: Any = "chat", **options: Any) -> StreamParser:
    """Create a StreamParser that uses `backend`."""
    with using(backend):
        return StreamParser(dialect=dialect, **options)


def make_frame_reader(backend: str, **options: Any) -> sse.FrameReader:
    """Create a frame reader, which parses only the event-stream layer."""
    with using(backend):
        reader = sse.FrameReader(**options)
    found = type(reader._framer).__name__.lower().strip("_")
    if found != backend:
        raise AssertionError(f"asked for {backend}, got {found}")
    return reader
