"""The known members of a Messages stream, and how to read ids, names and arguments.

The tables are in `_spec/dialects.json`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.client_members import ClientMembers
from streamweld._pure.json.kinds import is_object
from streamweld._pure.json.scanner import BigInteger
from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.dialect.anomalies import Anomalies
    from streamweld._pure.json.scanner import Path, Payload

SPEC = DIALECTS["anthropic"]
EVENTS = frozenset(SPEC["events"])
READ_NAMES = frozenset(SPEC["read_names"])  # the only event names that clients read
EVENT_FIELDS = frozenset(SPEC["event_fields"])
MESSAGE_FIELDS = frozenset(SPEC["message_fields"])
MESSAGE_DELTA_FIELDS = frozenset(SPEC["message_delta_fields"])
BLOCK_FIELDS: dict[str, frozenset[str]] = {kind: frozenset(fields) for kind, fields in SPEC["blocks"].items()}
DELTA_FIELDS: dict[str, frozenset[str]] = {kind: frozenset(fields) for kind, fields in SPEC["deltas"].items()}
_DELTA_NAMES: Mapping[str, str] = SPEC["delta_names"]
_UNTYPED_DELTAS: Mapping[str, str] = SPEC["untyped_deltas"]
_UNTYPED_BLOCKS: Mapping[str, str] = SPEC["untyped_blocks"]
CLIENTS = ClientMembers(SPEC)
CALL_DELTA_FIELDS = frozenset[str](SPEC["call_delta_fields"])
RESULT_FIELDS = BLOCK_FIELDS["*_tool_result"]
ABSENT_IDS = frozenset(SPEC["absent_ids"])

_ANY_BLOCK = frozenset({"type"}).union(*BLOCK_FIELDS.values())
_ANY_DELTA = MESSAGE_DELTA_FIELDS.union(CALL_DELTA_FIELDS, *DELTA_FIELDS.values())


def type_of(value: Mapping[str, Any]) -> str:
    """Return the `type` of an event, a block or a delta, or an empty string."""
    kind = value.get("type")
    return kind if isinstance(kind, str) else ""


def delta_type(delta: Mapping[str, Any]) -> str:
    """Return the type of a delta. A missing or gateway-specific type is replaced with its standard equivalent.

    `tool_use`, `server_tool_use` and `mcp_tool_use` are the types of deltas that contain a call; an unknown type is
    returned unchanged.
    """
    kind = type_of(delta)
    if kind:
        return _DELTA_NAMES.get(kind, kind)
    return next((name for member, name in _UNTYPED_DELTAS.items() if delta.get(member) is not None), "")


def block_type(block: Mapping[str, Any]) -> str:
    """Return the type of a block. If a block has no type, its members determine the type."""
    kind = type_of(block)
    if kind:
        return kind
    return next((name for member, name in _UNTYPED_BLOCKS.items() if block.get(member) is not None), "")


def an_id(payload: Payload, holder: Mapping[str, Any], path: Path, key: str, notes: Anomalies) -> str | None:
    """Return the id exactly as sent (a number as written), or None."""
    identity = holder.get(key)
    if identity is None:
        return None
    if isinstance(identity, str):
        trimmed = identity.strip()
        return None if not trimmed or trimmed in ABSENT_IDS else notes.clean(identity)
    if isinstance(identity, int | float | BigInteger) and not isinstance(identity, bool):
        return payload.raw(*path, key)
    notes.shape((*path, key))
    return None


def a_name(holder: Mapping[str, Any], path: Path, notes: Anomalies) -> str | None:
    name = notes.a_text(holder, path, "name")
    return notes.clean(name) if name.strip() else None


def arguments(payload: Payload, holder: Mapping[str, Any], path: Path, key: str) -> str | None:
    """Return arguments as text, regardless of their JSON type.

    An empty object only opens the call, so it is ignored.
    """
    value = holder.get(key)
    if value is None or value == {}:
        return None
    if isinstance(value, str):
        return value if value.strip() else None
    return payload.raw(*path, key)


def is_read(path: Path) -> bool:
    """Return whether the decoder reads the member at `path` in an event or a complete message."""
    key = path[-1]
    match path[:-1]:
        case ():
            return key in EVENT_FIELDS or key in MESSAGE_FIELDS
        case ("message",):
            return key in MESSAGE_FIELDS
        case ("content_block",) | ("content", int()) | ("message", "content", int()):
            return key in _ANY_BLOCK
        case ("delta",):
            return key in _ANY_DELTA
        case _:
            return False


def is_error(block: Mapping[str, Any]) -> bool:
    """Return whether a tool result reports a failure.

    MCP results have a flag for this; results of other tools have an error type in their content.
    """
    if block.get("is_error") is True:
        return True
    content = block.get("content")
    return is_object(content) and type_of(content).endswith("_error")
