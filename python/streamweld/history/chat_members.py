"""The common members of Chat Completions messages.

Nearly every message has only these members, and every server accepts them.

The reader marks a message or call that has only these members with `COMMON`, so that passes do not examine its members
again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.history.model import nothing

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["COMMON", "lists_common"]

# The value of `extra` for an origin or a call that has only common members: an empty mapping, compared by identity.
COMMON: Final[Mapping[str, Any]] = nothing()
_MEMBERS: Final = {
    **dict.fromkeys(("system", "developer", "user"), frozenset({"role", "content"})),
    "assistant": frozenset({"role", "content", "tool_calls"}),
    "tool": frozenset({"role", "content", "tool_call_id"}),
    "call": frozenset({"id", "type", "function"}),
    "function": frozenset({"name", "arguments"}),
    "text": frozenset({"type", "text"}),
}


def lists_common(members: Mapping[str, frozenset[str]]) -> bool:
    """Return whether a target's schema lists all common members."""
    return all(members.get(kind, frozenset()) >= common for kind, common in _MEMBERS.items())
