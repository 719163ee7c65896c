"""The tables of the Gemini dialect, loaded from `_spec/dialects.json`.

The module lists the known members of a GenerateContentResponse, and reads ids, names, reasons, and token counts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.usage_counts import counts_of, read_counts
from streamweld._pure.json.kinds import integer
from streamweld._pure.json.scanner import BigInteger
from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.dialect.anomalies import Anomalies
    from streamweld._pure.json.scanner import Path, Payload
    from streamweld._pure.model.delta import Usage

SPEC = DIALECTS["gemini"]
ENVELOPE_FIELDS = frozenset(SPEC["envelope_fields"])
CANDIDATE_FIELDS = frozenset(SPEC["candidate_fields"])
CONTENT_FIELDS = frozenset(SPEC["content_fields"])
PART_FIELDS = frozenset(SPEC["part_fields"])
CALL_FIELDS = frozenset(SPEC["call_fields"])
OTHER_ARGUMENTS: tuple[str, ...] = tuple(SPEC["other_arguments"])  # names that some gateways use instead of `args`
PARTIAL_FIELDS = frozenset(SPEC["partial_fields"])
CODE_TOOL: str = SPEC["code_tool"]

_ABSENT_REASONS = frozenset(SPEC["absent_reasons"])
_ABSENT_IDS = frozenset(SPEC["absent_ids"])
_COUNTS = counts_of(SPEC["usage"])
_SUMS: dict[str, list[str]] = SPEC["usage_sums"]

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]{1,9})?Z")


def a_reason(holder: Mapping[str, Any], path: Path, key: str, notes: Anomalies) -> str | None:
    """Return a `finishReason` or a `blockReason`, or None if it is blank or a placeholder."""
    reason = notes.a_text(holder, path, key)
    return notes.clean(reason) if is_reason(reason) else None


def is_reason(value: object) -> bool:
    """Return whether the value is a string that is neither blank nor a placeholder (`absent_reasons`)."""
    return isinstance(value, str) and bool(value.strip()) and value not in _ABSENT_REASONS


def an_id(payload: Payload, holder: Mapping[str, Any], path: Path, notes: Anomalies) -> str | None:
    """Return the id as text, or None if it is absent, blank, or a placeholder.

    A numeric id is returned with the digits that the payload contains.
    """
    identity = holder.get("id")
    if identity is None:
        return None
    if isinstance(identity, str):
        trimmed = identity.strip()
        return None if not trimmed or trimmed in _ABSENT_IDS else notes.clean(identity)
    if isinstance(identity, int | float | BigInteger) and not isinstance(identity, bool):
        return payload.raw(*path, "id")
    notes.shape((*path, "id"))
    return None


def a_word(holder: Mapping[str, Any], path: Path, key: str, notes: Anomalies) -> str | None:
    """Return a string such as a name or an id, or None if it is blank."""
    word = notes.a_text(holder, path, key)
    return notes.clean(word) if word.strip() else None


def read_usage(value: Mapping[str, Any], raw: str | None) -> Usage:
    """Return the token counts in a `usageMetadata` object, and its JSON."""
    usage = read_counts(value, raw, _COUNTS)
    usage.input_tokens = _sum(value, _SUMS["input_tokens"])
    usage.output_tokens = _sum(value, _SUMS["output_tokens"])
    return usage


def _sum(value: Mapping[str, Any], keys: list[str]) -> int | None:
    numbers = [None if isinstance(value.get(key), str) else integer(value.get(key)) for key in keys]
    present = [number for number in numbers if number is not None]
    # A sum that exceeds 64 bits is treated as absent, like any other count.
    return integer(sum(present)) if present else None


def seconds(text: str) -> int | None:
    """Convert a `createTime` to seconds since 1970-01-01. The API writes this time in UTC, in the format of RFC 3339.

    Return None if the time has another format.
    """
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(group) for group in found.groups())
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 60):
        return None
    # Count the days since 1970-01-01 in the proleptic Gregorian calendar. In this calculation, years begin in March.
    year -= month < 3
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * ((month + 9) % 12) + 2) // 5 + day - 719469
    return ((days * 24 + hour) * 60 + minute) * 60 + second


def is_read(path: Path) -> bool:
    """Return whether the decoder reads the member at `path` of a chunk.

    Only duplicates of members that the decoder reads are reported.
    """
    key = path[-1]
    match path[:-1]:
        case ():
            return key in ENVELOPE_FIELDS
        case ("promptFeedback",):
            return key == "blockReason"
        case ("candidates", int()):
            return key in CANDIDATE_FIELDS
        case ("candidates", int(), "content"):
            return key in CONTENT_FIELDS
        case ("candidates", int(), "content", "parts", int()):
            return key in PART_FIELDS
        case ("candidates", int(), "content", "parts", int(), "functionCall"):
            return key in CALL_FIELDS
        case ("candidates", int(), "content", "parts", int(), "functionCall", "partialArgs", int()):
            return key in PARTIAL_FIELDS
        case _:
            return False
