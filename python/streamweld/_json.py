"""The one door for JSON values that a user sees: provider metadata and parsed tool-call arguments.

Built in Python for both backends, so that a number or a broken surrogate means the same everywhere. It knows no events.
"""

from __future__ import annotations

from typing import Any

from streamweld._pure.json_door import JsonFault

__all__ = ["JsonFault", "loads_arguments", "loads_raw"]


def loads_raw(text: str) -> Any:
    """The value of a text that the core has found to be JSON."""
    raise NotImplementedError


def loads_arguments(text: str) -> Any:
    """The value of a tool call's argument text, or JsonFault (`reason`, `pos`). Of a repeated key the last one holds."""
    raise NotImplementedError
