"""Names the failing case of a test that checks several cases."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def case(name: object) -> Iterator[None]:
    """Add the name of the case to an exception that the block raises; pytest shows it below the exception."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"case: {name}")
        raise
