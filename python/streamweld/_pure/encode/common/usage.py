"""Token counts that are normalized across sources: `input` includes the cache, and `output` includes the reasoning.

`streamweld.usage` reads the counts, and each encoder converts them to the definitions of its target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamweld.usage import normalized

if TYPE_CHECKING:
    from streamweld.events import Usage

__all__ = ["Counts", "neutral"]


@dataclass(frozen=True, slots=True)
class Counts:
    """The token counts for one response; None if unknown."""

    input: int | None
    output: int | None
    cached: int | None
    cache_write: int | None
    reasoning: int | None
    total: int | None

    @property
    def is_blank(self) -> bool:
        """True if there is nothing to write."""
        return self.input is None and self.output is None and self.total is None


def neutral(usage: Usage, source: str | None) -> Counts:
    """Return the counts for a response in the dialect `source`."""
    found = normalized(usage, source)
    return Counts(found.input, found.output, found.cached_read, found.cache_write, found.reasoning, found.total)
