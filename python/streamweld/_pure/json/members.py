"""Extract unmodeled payload members as raw JSON text, and join them into one JSON object.

Each dialect passes in the members that it models. The values of the members are not parsed.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.json.scanner import Path, Payload

__all__ = ["Raw", "as_object", "compact", "leftovers", "may_remember"]

Raw = dict[str, str]  # member -> its text on the wire

# The sender chooses the keys, so the number and the length of stored members must be limited.
_REMEMBERED = 64
_LONGEST_KEY = 256  # in characters
_LONGEST = 4096

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[ \t\r\n]+')


def leftovers(payload: Payload, path: Path, value: Mapping[str, Any], modelled: frozenset[str]) -> Raw:
    """Return the unmodeled members of one object, in wire order. Members whose value is null are omitted."""
    if modelled.issuperset(value):
        return {}
    if all(value[key] is None for key in value.keys() - modelled):
        return {}
    members = payload.members(*path)
    return {key: raw for key, raw in members.items() if key not in modelled and raw != "null"}


def may_remember(known: Raw, key: str, raw: str) -> bool:
    """Return True if the member may be stored, so that it is emitted again only if it changes.

    If the new value of a stored member is too long, the stored value is discarded.
    """
    if len(raw) <= _LONGEST and len(key) <= _LONGEST_KEY:
        return key in known or len(known) < _REMEMBERED
    if key in known:
        known[key] = ""
    return False


def as_object(members: Mapping[str, str]) -> str | None:
    """Return the text of a JSON object with these members. Return None if the mapping is empty."""
    if not members:
        return None
    return "{" + ",".join(f"{json.dumps(key)}:{raw}" for key, raw in members.items()) + "}"


def compact(raw: str) -> str:
    """Return a JSON text without whitespace between its tokens."""
    return _TOKEN.sub(lambda found: found[0] if found[0][0] == '"' else "", raw)
