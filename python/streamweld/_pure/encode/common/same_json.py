"""Whether two argument texts say the same: one JSON value, spelled twice (blanks, escapes, order, 1.0 and 1).

Some sources stream a call's arguments as the model spelled them and restate them as they were parsed and written again.
That takes back nothing, whatever the reader was shown. Knows JSON, no calls.
"""

from __future__ import annotations

from streamweld._json import JsonFault, loads_arguments
from streamweld._pure.json.kinds import is_array, is_object

__all__ = ["is_value", "same_value"]


def is_value(text: str) -> bool:
    """It is one whole JSON value."""
    try:
        loads_arguments(text)
    except JsonFault:
        return False
    return True


def same_value(one: str, other: str) -> bool:
    """Both are one whole JSON value, and the same."""
    try:
        return _same(loads_arguments(one), loads_arguments(other))
    except JsonFault:
        return False


def _same(one: object, other: object) -> bool:
    if is_object(one):
        return is_object(other) and one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if is_array(one):
        return is_array(other) and len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other
