"""Parsers of a chosen backend, through the public classes. Only this module knows how the package picks one."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

from streamweld import _backend, sse, stream
from streamweld.stream import StreamParser

if TYPE_CHECKING:
    from collections.abc import Iterator

CHOICE = "backend"  # the name under which these modules hold the chosen backend
CHOOSERS = (_backend, stream, import_module("streamweld.convert"))  # `sw.convert` is the function
BACKENDS: tuple[str, ...] = get_args(_backend.Backend)


@contextmanager
def using(backend: str) -> Iterator[None]:
    """Whatever is opened inside reads with `backend`; both may be used in one process."""
    usual = _backend.backend
    for module in CHOOSERS:
        setattr(module, CHOICE, backend)
    try:
        yield
    finally:
        for module in CHOOSERS:
            setattr(module, CHOICE, usual)


def make_parser(backend: str, dialect: Any = "chat", **options: Any) -> StreamParser:
    """A StreamParser that reads with `backend`."""
    with using(backend):
        return StreamParser(dialect=dialect, **options)


def make_frame_reader(backend: str, **options: Any) -> sse.FrameReader:
    """The event-stream layer alone."""
    with using(backend):
        reader = sse.FrameReader(**options)
    found = type(reader._framer).__name__.lower().strip("_")
    if found != backend:
        raise AssertionError(f"asked for {backend}, got {found}")
    return reader
