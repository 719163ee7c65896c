"""The extension module, or None where it is absent. Every module imports it from here.

An extension that is there but broken is an error, never a reason to go on without it.
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
    """`streamweld._native`, imported once."""
    try:
        return import_module(NAME)
    except ModuleNotFoundError as missing:
        if missing.name != NAME:
            raise
        return None
