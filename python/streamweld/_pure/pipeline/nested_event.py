"""Read an event that a relay wrapped in the data of another event, such as `data: data: {…}`.

Some relays pass each line that they receive on as a `data` line of their own, including its field name
(<https://github.com/openclaw/openclaw/issues/96497>).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from streamweld._pure.pipeline.salvage import WHITE, lines_in

__all__ = ["NestedEvent", "nested_event"]

_MOST_LEVELS: Final = 4  # maximum number of events around one payload
_LINE: Final = re.compile(rb"(data|event|id|retry):[ \t\r\x0c]*(.*)", re.DOTALL)
_WORD: Final = re.compile(rb"[A-Za-z0-9._:/-]*")
_NUMBER: Final = re.compile(rb"[0-9]*")


@dataclass(frozen=True, slots=True)
class NestedEvent:
    """An event whose lines are the data of another event."""

    event: bytes | None  # the value of the last `event` line
    data: bytes | None  # the values of the `data` lines, joined by line feeds


def nested_event(data: bytes) -> NestedEvent | None:
    """Return the innermost event in the data of an event, or None if the data is not itself an event.

    Data is an event if each of its lines is blank, a comment, or a field, and at least one line is a field. A JSON
    document never begins like that. An error message may do so; therefore, the values of all fields except `data` must
    have the form that relays send: a word or a number.
    """
    found = _unwrap(data)
    if found is None:
        return None
    for _ in range(1, _MOST_LEVELS):
        # Relays that repeat a prefix send one line.
        inner = None if found.data is None or b"\n" in found.data else _unwrap(found.data)
        if inner is None:
            break
        found = NestedEvent(found.event if inner.event is None else inner.event, inner.data)
    return found


def _unwrap(data: bytes) -> NestedEvent | None:
    if data.lstrip(WHITE)[:1] not in (b"d", b"e", b"i", b"r"):
        return None  # nearly every payload ends here
    event: bytes | None = None
    joined: bytearray | None = None  # a list of the values would take several times the memory of short lines
    has_fields = False
    for sent in lines_in(data):
        line = sent.strip(WHITE)
        if not line or line[:1] == b":":
            continue
        field = _LINE.fullmatch(line)
        if field is None:
            return None
        name, value = field.groups()
        if name == b"data":
            if joined is None:
                joined = bytearray(value)
            else:
                joined += b"\n" + value
        elif (_NUMBER if name == b"retry" else _WORD).fullmatch(value) is None:
            return None
        elif name == b"event":
            event = value
        has_fields = True
    if not has_fields:
        return None
    return NestedEvent(event, None if joined is None else bytes(joined))
