"""Determines which members of a Chat payload the decoder reads. Duplicates of other members are not reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.dialect.chat.metadata import (
    CALL_FIELDS,
    CHOICE_FIELDS,
    CHUNK_FIELDS,
    CUSTOM_FIELDS,
    DELTA_FIELDS,
    FUNCTION_FIELDS,
)

if TYPE_CHECKING:
    from streamweld._pure.json.scanner import Path


def is_read(path: Path) -> bool:
    """Return whether the decoder reads the member at `path` in a chunk."""
    key = path[-1]
    match path[:-1]:
        case ():
            return key in CHUNK_FIELDS
        case ("choices", int()):
            return key in CHOICE_FIELDS
        case ("choices", int(), "delta" | "message"):
            return key in DELTA_FIELDS
        case ("choices", int(), "delta" | "message", "tool_calls") | (
            "choices",
            int(),
            "delta" | "message",
            "tool_calls",
            int(),
        ):
            return key in CALL_FIELDS
        case ("choices", int(), "delta" | "message", "tool_calls", "function") | (
            "choices",
            int(),
            "delta" | "message",
            "tool_calls",
            int(),
            "function",
        ):
            return key in FUNCTION_FIELDS
        case ("choices", int(), "delta" | "message", "function_call"):
            return key in FUNCTION_FIELDS
        case ("choices", int(), "delta" | "message", "tool_calls", "custom") | (
            "choices",
            int(),
            "delta" | "message",
            "tool_calls",
            int(),
            "custom",
        ):
            return key in CUSTOM_FIELDS
        case _:
            return False
