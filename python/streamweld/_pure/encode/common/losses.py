"""What the target has no place for, noted once a stream, as `_spec/conversions.json` lists it.

Knows the ids of the table, no dialect. An encoder notes a loss while it takes an event; whoever drives it passes it on
as the diagnostic `not_carried` afterwards, when the encoder's own state is whole again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld._spec import load_conversions

if TYPE_CHECKING:
    from streamweld.events import Event

__all__ = ["LOSSES", "Losses"]

LOSSES: Final[frozenset[str]] = frozenset(row["id"] for row in load_conversions()["losses"])
# What closes a part or the answer says again what came before it.
_TELLING_AGAIN: Final = frozenset(
    {"text_done", "reasoning_done", "refusal_done", "tool_call", "finished", "response_started"}
)


class Losses:
    """The losses of one stream."""

    __slots__ = ("_fresh", "_said", "own")

    def __init__(self) -> None:
        self.own = False  # the source's own dialect is written: what it said once may have passed
        self._said: set[str] = set()
        self._fresh: list[str] = []

    def note(self, loss: str) -> None:
        """Something was left out, or written as something else."""
        if loss not in self._said:
            if loss not in LOSSES:
                raise KeyError(loss)
            self._said.add(loss)
            self._fresh.append(loss)

    def metadata(self, event: Event) -> None:
        """The event's members of the provider's own are not carried, if it has any."""
        if getattr(event, "provider_metadata", None) and not (self.own and event.type in _TELLING_AGAIN):
            self.note("metadata")

    def forget(self) -> None:
        """What was noted since the last call of `take` was not written after all, and so not lost."""
        self._said.difference_update(self._fresh)
        self._fresh = []

    def take(self) -> list[str]:
        """Those that are new since the last call, in order."""
        fresh, self._fresh = self._fresh, []
        return fresh
