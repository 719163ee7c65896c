"""Unknown members of the source's own objects, which an encoder for the same dialect writes as they were sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.encode.common.writer import quoted, spliced
from streamweld._pure.json.scanner import replace_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.json.members import Raw

__all__ = ["joined", "size", "writable"]


def joined(start: str, extra: Raw) -> str:
    """Return the object with additional members, whose values are JSON as sent."""
    return start[:-1] + "".join([f",{quoted(name)}:{spliced(raw)}" for name, raw in extra.items()]) + "}"


def writable(members: Mapping[str, str]) -> Raw:
    """Return a copy with names that UTF-8 can represent. A repeated name has the position of its last value."""
    copied: Raw = {}
    for name, raw in members.items():
        name_as_utf8 = replace_lone_surrogates(name)
        copied.pop(name_as_utf8, None)
        copied[name_as_utf8] = raw
    return copied


def size(extra: Raw) -> int:
    """Return the size of the members, in bytes."""
    return sum([len(name.encode()) + len(raw.encode()) for name, raw in extra.items()])
