"""Token counts in one convention, whatever the source's: `input` with all cached tokens, `output` with all reasoning.

Knows the table of conventions, and no way to write them: each encoder turns these numbers into its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamweld._spec import load_conversions

if TYPE_CHECKING:
    from streamweld.events import Usage

__all__ = ["Counts", "neutral"]


@dataclass(frozen=True, slots=True)
class Counts:
    """None where the source did not say."""

    input: int | None
    output: int | None
    cached: int | None
    cache_write: int | None
    reasoning: int | None
    total: int | None

    @property
    def is_blank(self) -> bool:
        """Nothing to write."""
        return self.input is None and self.output is None and self.total is None


def neutral(usage: Usage, source: str | None) -> Counts:
    """The counts of a source of that dialect. The total is the source's own; else the sum, if both sides are known."""
    known = usage.input_tokens
    if known is not None:
        left_out = load_conversions()["usage"].get(source, {}).get("input_excludes", ())
        if "cached" in left_out:
            known += usage.cached_input_tokens or 0
        if "cache_write" in left_out:
            known += usage.cache_write_tokens or 0
    total, output, reasoning = usage.total_tokens, usage.output_tokens, usage.reasoning_tokens
    if total is not None and known is not None and output is not None and reasoning:
        if total == known + output + reasoning:
            output += reasoning  # xAI counts the reasoning beside the output, in the dialects of others
    elif total is None and known is not None and output is not None:
        total = known + output
    return Counts(known, output, usage.cached_input_tokens, usage.cache_write_tokens, reasoning, total)
