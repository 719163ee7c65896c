"""Records content that the target cannot represent, each kind once per stream.

The kinds are in `_spec/conversions.json`.

An encoder records a loss while it handles an event. The converter reports the loss afterwards as the diagnostic
`not_carried`, when the encoder's state is consistent again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld._spec import load_conversions

if TYPE_CHECKING:
    from streamweld.events import Event

__all__ = ["LOSSES", "Losses"]

LOSSES: Final[frozenset[str]] = frozenset(row["id"] for row in load_conversions()["losses"])
# Events that close a part or the response and repeat earlier metadata.
_REPEATED: Final = frozenset(
    {"text_done", "reasoning_done", "refusal_done", "tool_call", "finished", "response_started"}
)


class Losses:
    """Stores the losses of one stream, in the order in which they occurred."""

    __slots__ = ("_fresh", "_reported", "own")

    def __init__(self) -> None:
        self.own = False  # same dialect, so metadata in a closing event may have passed through before
        self._reported: set[str] = set()
        self._fresh: list[str] = []

    def note(self, loss: str) -> None:
        """Record that content was omitted or replaced. Only the first loss with each id is kept."""
        if loss not in self._reported:
            if loss not in LOSSES:
                raise KeyError(loss)
            self._reported.add(loss)
            self._fresh.append(loss)

    def metadata(self, event: Event) -> None:
        """Record a loss if the event has provider metadata, unless the event only repeats metadata that has passed
        through.
        """
        if getattr(event, "provider_metadata", None) and not (self.own and event.type in _REPEATED):
            self.note("metadata")

    def forget(self) -> None:
        """Discard the losses that have not been reported yet, because the output that caused them was discarded."""
        self._reported.difference_update(self._fresh)
        self._fresh = []

    def take(self) -> list[str]:
        """Return the losses since the last call to `take`, in order."""
        fresh, self._fresh = self._fresh, []
        return fresh
