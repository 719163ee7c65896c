"""Writes unknown members of the source's objects as they were sent, if the target has the same dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld._pure.encode.common.writer import quoted, spliced
from streamweld._pure.json.scanner import replace_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.json.members import Raw

__all__ = ["MAX_REPEATED_SIZE", "joined", "members_text", "merged", "size", "writable"]

# If one source chunk is rewritten as several chunks, each of them repeats the unknown members of the source chunk,
# unless these members have more bytes than this.
MAX_REPEATED_SIZE: Final = 4096


def joined(start: str, extra: Raw) -> str:
    """Return the object with additional members, whose values are JSON as sent."""
    return start[:-1] + members_text(extra) + "}"


def members_text(extra: Mapping[str, str]) -> str:
    """Return additional members as JSON text, with a comma before each member."""
    return "".join([f",{quoted(name)}:{spliced(raw)}" for name, raw in extra.items()])


def writable(members: Mapping[str, str]) -> Raw:
    """Return a copy of the members in which every name can be encoded as UTF-8. If a name occurs several times, its
    last value is kept.
    """
    copied: Raw = {}
    for name, raw in members.items():
        name_as_utf8 = replace_lone_surrogates(name)
        copied.pop(name_as_utf8, None)
        copied[name_as_utf8] = raw
    return copied


def merged(before: Raw, members: Raw) -> Raw:
    """Add members to those of earlier chunks. Earlier members that exceed `MAX_REPEATED_SIZE` are dropped."""
    return ({} if size(before) > MAX_REPEATED_SIZE else before) | members


def size(extra: Raw) -> int:
    """Return the size of the names and values, in bytes."""
    return sum([len(name.encode()) + len(raw.encode()) for name, raw in extra.items()])
