"""The extension module, or None if it is not installed. All other modules import the extension from this module.

If an installed extension is broken, or was built from the sources of another version, an error is raised.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from streamweld._spec import EVENTS

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["NAME", "NAMES", "extension"]

NAME: Final = "streamweld._native"
NAMES: Final = (
    *("ArrowBatch", "ArrowReader", "ArrowSchema", "ArrowTable", "BUILD_INFO", "Converter", "Fold", "Framer", "Parser"),
    *("Repairer", "complete_object", "describe_arrow", "read_arrow"),
)
"""The names that the extension module must have, in addition to the event classes."""


@cache
def extension() -> ModuleType | None:
    """Return `streamweld._native`, imported once, or None.

    Raises:
        ImportError: if the extension lacks a name or event field that this version uses.
    """
    try:
        module = import_module(NAME)
    except ModuleNotFoundError as missing:
        if missing.name != NAME:
            raise
        return None
    lacking = _lacking(module)
    if lacking is not None:
        file = module.__file__
        raise ImportError(
            f"{file} was built from different sources than this version of streamweld: it lacks {lacking}. Reinstall "
            "streamweld, or run `make build` in a source tree",
            name=NAME,
            path=file,
        )
    return module


def _lacking(module: ModuleType) -> str | None:
    """Return the first name or event field that is missing from the module, or None if nothing is missing.

    A missing name reveals most extensions that were built from other sources, because most changes to the interface add
    a name or a field.
    """
    for name in (*NAMES, *EVENTS):
        if not hasattr(module, name):
            return name
    for name, fields in EVENTS.items():
        known = getattr(module, name).__match_args__
        for field in fields:
            if field.name not in known:
                return f"{name}.{field.name}"
    return None
