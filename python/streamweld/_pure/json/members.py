"""The members of a payload that nobody models: kept as sent, and joined into one raw JSON object.

Knows raw JSON texts. Knows no dialect (which members are modelled comes from outside), no events, and builds no values.
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

# Keys are the sender's: how many members are remembered, and how long ones, must not grow with the stream.
_REMEMBERED = 64
_LONGEST_KEY = 256  # characters
_LONGEST = 4096

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[ \t\r\n]+')


def leftovers(payload: Payload, path: Path, value: Mapping[str, Any], modelled: frozenset[str]) -> Raw:
    """The unmodelled members of one object, null ones aside, in wire order."""
    if modelled.issuperset(value):
        return {}
    if all(value[key] is None for key in value.keys() - modelled):
        return {}
    members = payload.members(*path)
    return {key: raw for key, raw in members.items() if key not in modelled and raw != "null"}


def may_remember(known: Raw, key: str, raw: str) -> bool:
    """Whether the member may be put there to be told once; a known one that may not is forgotten."""
    if len(raw) <= _LONGEST and len(key) <= _LONGEST_KEY:
        return key in known or len(known) < _REMEMBERED
    if key in known:
        known[key] = ""
    return False


def as_object(members: Mapping[str, str]) -> str | None:
    """One raw JSON object of members, or None where there is none."""
    if not members:
        return None
    return "{" + ",".join(f"{json.dumps(key)}:{raw}" for key, raw in members.items()) + "}"


def compact(raw: str) -> str:
    """A JSON text without the white space between its tokens."""
    return _TOKEN.sub(lambda found: found[0] if found[0][0] == '"' else "", raw)
