"""Collects the unknown members of Chat chunks, which become the `metadata` of events.

`_spec/dialects.json` lists the known members at each level of a chunk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.json.members import as_object, leftovers, may_remember
from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.json.members import Raw
    from streamweld._pure.json.scanner import Path, Payload

CHUNK_FIELDS = frozenset(DIALECTS["chat"]["envelope_fields"])
CHOICE_FIELDS = frozenset(DIALECTS["chat"]["choice_fields"])
DELTA_FIELDS = frozenset(DIALECTS["chat"]["delta_fields"])
TOOL_USE_FIELDS = frozenset[str](DIALECTS["chat"]["tool_use_fields"])  # members of a delta that is itself a call
CALL_FIELDS = frozenset(DIALECTS["chat"]["call_fields"])
FUNCTION_FIELDS = frozenset(DIALECTS["chat"]["function_fields"])
CUSTOM_FIELDS = frozenset(DIALECTS["chat"]["custom_fields"])
IMAGE_FIELDS = frozenset(DIALECTS["chat"]["image_fields"])

_PLAIN = frozenset({str, int})


class ChunkMembers:
    """Stores the unknown members of earlier chunks. Most chunks repeat these members, so only changes are emitted."""

    __slots__ = ("_plain", "_seen")

    def __init__(self) -> None:
        self._seen: Raw = {}
        self._plain: dict[str, str | int] = {}  # values that need no comparison of JSON text

    def changed_fields(self, payload: Payload, path: Path, value: Mapping[str, Any], modelled: frozenset[str]) -> Raw:
        """Return the unknown members that are new or have changed since the last chunk that contained them."""
        if modelled.issuperset(value) or self._is_known(payload, value, modelled):
            return {}
        fresh: Raw = {}
        seen = self._seen
        for key, raw in leftovers(payload, path, value, modelled).items():
            if seen.get(key) == raw:
                continue
            fresh[key] = raw
            if not may_remember(seen, key, raw):
                self._plain.pop(key, None)
                continue
            seen[key] = raw
            member = value[key]
            if (isinstance(member, str) and "\\" not in raw) or (type(member) is int and member):
                self._plain[key] = member
            else:
                self._plain.pop(key, None)
        return fresh

    def _is_known(self, payload: Payload, value: Mapping[str, Any], modelled: frozenset[str]) -> bool:
        """Return whether every unknown member is an unchanged plain value, so that no JSON text has to be compared."""
        plain = self._plain
        for key in value.keys() - modelled:
            member = value[key]
            if member is not None and (type(member) not in _PLAIN or plain.get(key) != member):
                return False
        return "\\" not in payload.text


class PendingMetadata:
    """The unknown members of a choice in a chunk.

    The members are attached to the first event of the choice, together with the unknown members of the chunk.
    """

    __slots__ = ("_chunk", "members")

    def __init__(self, chunk: Raw, members: Raw) -> None:
        self._chunk = chunk  # metadata of the chunk, for the first event of any choice
        self.members = members  # members of the choice, then of the delta, which take precedence

    def take(self) -> str | None:
        """Return the metadata for the current event, and clear it so that the next event does not contain it."""
        if not self._chunk and not self.members:
            return None
        taken = as_object({**self._chunk, **self.members})
        self._chunk.clear()
        self.members.clear()
        return taken
