"""Types for routing a tool-call fragment (`Incoming`): `Decision` is the result of `by_evidence.decide`.

`route_fragment` carries out the decision.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamweld._pure.assemble.part.call import Call

__all__ = ["Decision", "Incoming", "Resolution"]


class Resolution(Enum):
    """What to do with the fragment."""

    JOIN = "join"  # the fragment belongs to the call
    NEW = "new"  # the fragment opens a new call
    DROP = "drop"  # the fragment addresses the call, but its payload is a replay
    REPLAY = "replay"  # the fragment addresses the call and may be a replay of it, so its payload is held back
    IGNORE = "ignore"  # the fragment does not belong to any call


class Incoming:
    """A normalized fragment: its index is usable or None, and its payload is bytes."""

    __slots__ = ("array_len", "custom", "id", "index", "is_object", "name", "payload", "position")

    def __init__(
        self,
        index: int | None,
        identity: str | None,
        name: str | None,
        payload: bytes,
        *,
        is_object: bool = False,
        custom: bool = False,
        position: int = 0,
        array_len: int = 1,
    ) -> None:
        self.index = index
        self.id = identity
        self.name = name
        self.payload = payload
        self.is_object = is_object
        self.custom = custom
        self.position = position
        self.array_len = array_len

    @property
    def starts_object(self) -> bool:
        return self.payload.lstrip(b" \t\n\r").startswith(b"{")


class Decision:
    """The decision on one fragment: the rule, the call (unless a new one opens), and what to report."""

    __slots__ = ("call", "resolution", "note", "rule", "displaced_empty", "tentative")

    def __init__(
        self,
        rule: str,
        call: Call | None = None,
        resolution: Resolution = Resolution.JOIN,
        *,
        note: str | None = None,
        tentative: bool = False,
        displaced_empty: Call | None = None,
    ) -> None:
        self.rule = rule
        self.call = call
        self.resolution = resolution
        self.note = note  # code of the ambiguity for which a default was applied
        self.tentative = tentative
        self.displaced_empty = displaced_empty  # the call that was empty when the new call took over its index (AM1)
