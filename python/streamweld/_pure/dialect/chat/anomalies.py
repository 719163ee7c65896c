"""Determines which members of a Chat payload the decoder reads. Only duplicates of these members are reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.dialect.chat.calls import OUTER_CALLS
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
    key, holder = path[-1], path[:-1]
    fields = CHUNK_FIELDS | OUTER_CALLS
    if holder and holder[0] == "choices":
        # A gateway may send one choice without a list, or an object whose keys are numbers.
        is_listed = len(holder) > 1 and (isinstance(holder[1], int) or holder[1].isdigit())
        fields, holder = CHOICE_FIELDS | OUTER_CALLS | {"content"}, holder[2 if is_listed else 1 :]
        if holder and holder[0] in ("delta", "message"):
            fields, holder = DELTA_FIELDS, holder[1:]
    match holder:
        case ():
            return key in fields
        case ("tool_calls",) | ("tool_calls", int()):
            return key in CALL_FIELDS
        case ("tool_calls", "function") | ("tool_calls", int(), "function") | ("function_call",):
            return key in FUNCTION_FIELDS
        case ("tool_calls", "custom") | ("tool_calls", int(), "custom"):
            return key in CUSTOM_FIELDS
        case _:
            return False
