"""Parsers of a chosen backend, through the public class. Only this module knows how the package picks one."""

from __future__ import annotations

from typing import Any, get_args

from streamweld import _backend, stream
from streamweld.stream import StreamParser

CHOICE = "backend"  # the name under which the stream module holds the chosen backend
BACKENDS: tuple[str, ...] = get_args(_backend.Backend)


def make_parser(backend: str, dialect: Any = "chat", **options: Any) -> StreamParser:
    """A StreamParser that reads with `backend`; both may be used in one process."""
    usual = getattr(stream, CHOICE)
    setattr(stream, CHOICE, backend)
    try:
        return StreamParser(dialect=dialect, **options)
    finally:
        setattr(stream, CHOICE, usual)
