"""Finds a member that may contain the arguments of a call under a name that no gateway is known to use.

A call with such a member and no other arguments is not dispatchable, because a tool that is called without its
arguments may do something else. The code is the same for every dialect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.json.automaton import Automaton
from streamweld._pure.json.kinds import is_object
from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

__all__ = ["may_hold_arguments"]

_HARMLESS: tuple[str, ...] = tuple(DIALECTS["harmless_members"])
_WHITE = " \t\r\n"


def may_hold_arguments(holder: Mapping[str, object], known: Container[str]) -> bool:
    """Return whether an object that describes a call has an unknown member whose value is a non-empty object.

    The value may also be the text of such an object, or the beginning of its text. `known`: the names of the members
    that the decoder interprets.
    """
    return any(
        name not in known and _is_document(value) and not any(word in name.lower() for word in _HARMLESS)
        for name, value in holder.items()
    )


def _is_document(value: object) -> bool:
    if not isinstance(value, str):
        return is_object(value) and len(value) > 0
    text = value.strip(_WHITE)
    if not text.startswith("{") or not text[1:].strip(_WHITE + "}"):
        return text == "{"
    return Automaton().feed(text.encode("utf-8", "replace")) != "broken"
