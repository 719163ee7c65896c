"""Compares arguments as JSON values, because a source may repeat a call with differently formatted arguments.

Some sources stream the arguments as the model wrote them, and later repeat them in another format. A repetition in
another format is not a correction. Whitespace, escapes, member order, and 1.0 versus 1 make no difference.
"""

from __future__ import annotations

from streamweld._json import JsonFault, loads_arguments
from streamweld._pure.json.kinds import is_array, is_object

__all__ = ["is_value", "same_value"]


def is_value(text: str) -> bool:
    """Return True if the text is exactly one JSON value."""
    try:
        loads_arguments(text)
    except JsonFault:
        return False
    return True


def same_value(one: str, other: str) -> bool:
    """Return True if both strings contain exactly one JSON value each and the values are equal."""
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
