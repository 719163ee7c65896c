"""The known members of a Messages stream, and how to read ids, names, and arguments.

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
PROVIDER_ITEMS = frozenset[str](SPEC["provider_items"])  # blocks that only the provider reads
RESULT_FIELDS = BLOCK_FIELDS["*_tool_result"]
ABSENT_IDS = frozenset(SPEC["absent_ids"])

_ANY_BLOCK = frozenset({"type"}).union(*BLOCK_FIELDS.values())
_ANY_DELTA = MESSAGE_DELTA_FIELDS.union(CALL_DELTA_FIELDS, *DELTA_FIELDS.values())


def type_of(value: Mapping[str, Any]) -> str:
    """Return the `type` of an event, a block, or a delta, or an empty string."""
    kind = value.get("type")
    return kind if isinstance(kind, str) else ""


def delta_type(delta: Mapping[str, Any]) -> str:
    """Return the type of a delta, in its standard form.

    A gateway-specific type is replaced, and a missing type is derived from the members. The type of a delta with a call
    may be `tool_use`, `server_tool_use`, or `mcp_tool_use`. An unknown type is returned unchanged.
    """
    kind = type_of(delta)
    if kind:
        return _DELTA_NAMES.get(kind, kind)
    return next((name for member, name in _UNTYPED_DELTAS.items() if delta.get(member) is not None), "")


def block_type(block: Mapping[str, Any]) -> str:
    """Return the type of a block.

    If the type is missing, derive it from the members. If the type cannot be derived, return an empty string.
    """
    kind = type_of(block)
    if kind:
        return kind
    return next((name for member, name in _UNTYPED_BLOCKS.items() if block.get(member) is not None), "")


def an_id(payload: Payload, holder: Mapping[str, Any], path: Path, key: str, notes: Anomalies) -> str | None:
    """Return the id as text, or None if it is absent, blank, or a placeholder.

    A numeric id is returned with the digits that the payload contains.
    """
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
    """Return the arguments of a call as text, whatever their JSON type, or None if they are absent, blank, or an empty
    object.

    Gateways send an empty object only to open a call.
    """
    value = holder.get(key)
    if value is None or value == {}:
        return None
    if isinstance(value, str):
        return value if value.strip() else None
    return payload.raw(*path, key)


def is_read(path: Path) -> bool:
    """Return whether the decoder reads the member at `path` in an event or a complete message.

    Only duplicates of members that the decoder reads are reported.
    """
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

    MCP results have the flag `is_error`; results of other tools have an error type in their content.
    """
    if block.get("is_error") is True:
        return True
    content = block.get("content")
    return is_object(content) and type_of(content).endswith("_error")
