"""The input and output of `by_evidence.decide`: a tool-call fragment (`Incoming`), and the decision about the call that
the fragment belongs to (`Decision`).

`route_fragment` carries out the decision.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamweld._pure.assemble.part.call import Call

__all__ = ["Decision", "Incoming", "Resolution"]


class Resolution(Enum):
    """What happens to the fragment."""

    JOIN = "join"  # the fragment belongs to the call
    NEW = "new"  # the fragment opens a new call
    DROP = "drop"  # the fragment belongs to the call, but its payload only repeats the arguments and is dropped
    REPLAY = "replay"  # the fragment belongs to the call, and its payload may repeat the arguments, so it is held back
    IGNORE = "ignore"  # the fragment belongs to no call


class Incoming:
    """A tool-call fragment whose index is usable or None, and whose argument text is bytes."""

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
    """The decision on one fragment: the rule that applied, the call (None if a new one opens), and what to report."""

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
        self.note = note  # code of an ambiguity to report, because the stream does not determine the decision
        self.tentative = tentative
        self.displaced_empty = displaced_empty  # AM1: the call without arguments whose index the new call took
