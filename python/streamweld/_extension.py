"""The extension module, or None if it is not installed. All modules import it from here.

If an installed extension is broken, an error is raised; it is never ignored.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["NAME", "extension"]

NAME = "streamweld._native"


@cache
def extension() -> ModuleType | None:
    """Return `streamweld._native`, imported once, or None."""
    try:
        return import_module(NAME)
    except ModuleNotFoundError as missing:
        if missing.name != NAME:
            raise
        return None
