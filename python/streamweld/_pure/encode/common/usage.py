"""Normalizes token counts across APIs: the input includes the cache, and the output includes the reasoning.

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
    """The normalized token counts of one response. A count is None if it is unknown."""

    input: int | None
    output: int | None
    cached: int | None
    cache_write: int | None
    reasoning: int | None
    total: int | None

    @property
    def is_blank(self) -> bool:
        """True if the input, the output, and the total are unknown."""
        return self.input is None and self.output is None and self.total is None


def neutral(usage: Usage, source: str | None) -> Counts:
    """Return the normalized counts of a response in the dialect `source`."""
    found = normalized(usage, source)
    return Counts(found.input, found.output, found.cached_read, found.cache_write, found.reasoning, found.total)
