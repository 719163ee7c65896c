"""Compares the result of a truncated stream with that of the complete stream, and counts unreported truncations.

A truncation is *silent* if no exception was raised and the response has other calls or other text than the complete
stream. Silent truncations are allowed only in the streams of `cut_undecidable.json`, in which a truncated stream looks
exactly like a complete one.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.support.harness import policy_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamweld.errors import StreamError
    from streamweld.response import Response

__all__ = ["POLICIES", "TRIED", "UNDECIDABLE", "Quiet", "Uncut", "facts_of", "judge", "places_in", "record"]

POLICIES = ("standard", "strict")
_LIST = json.loads(Path(__file__).with_name("cut_undecidable.json").read_text("utf-8"))
_CLASSES: dict[str, dict[str, Any]] = _LIST["classes"]
# For each stream name: the classes of undecidable cases to which the stream belongs.
UNDECIDABLE: dict[str, list[dict[str, Any]]] = {
    name: [row for row in _CLASSES.values() if name in row["streams"]]
    for named in _CLASSES.values()
    for name in named["streams"]
}
TRIED: Counter[str] = Counter()  # outcomes of the truncations tested in this process, for the summary
_BLOCK_END = re.compile(rb"\r?\n\r?\n|\r\r")

Facts: TypeAlias = "list[Any]"


def facts_of(response: Response) -> Facts:
    """Return the data that a client acts on: the texts and calls of every choice."""
    return [
        (
            choice.index,
            choice.text,
            choice.reasoning,
            choice.refusal,
            [
                (call.call_id, call.name, call.arguments, call.state, call.dispatchable)
                for call in (*choice.tool_calls, *choice.server_tool_calls)
            ],
        )
        for choice in response.choices
    ]


@dataclass(frozen=True)
class Uncut:
    """The result of the complete stream."""

    name: str
    facts: Facts
    failed: bool


@dataclass(frozen=True)
class Quiet:
    """A truncation for which no exception was raised."""

    facts: Facts
    completeness: str
    codes: frozenset[str]


def judge(uncut: Uncut, error: StreamError | None, quiet: Quiet) -> tuple[str, str | None]:
    """Return the outcome of a truncation and, if it was silent, a description of the difference."""
    if error is not None:
        return "reported", None
    if quiet.facts == uncut.facts and not uncut.failed:
        return "equal", None
    for row in UNDECIDABLE.get(uncut.name, ()):
        if quiet.completeness in row["completeness"] and quiet.codes.issuperset(row["diagnostics"]):
            return "undecidable", None
    return "silent", f"{quiet.completeness}, {sorted(quiet.codes)}: {quiet.facts} instead of {uncut.facts}"


def record(outcomes: Iterable[Counter[str]]) -> Counter[str]:
    """Add up the outcomes and record them for the summary of the run."""
    total: Counter[str] = Counter()
    for one in outcomes:
        total += one
    TRIED.update(total)
    return total


def places_in(body: bytes, name: str, count: int | None) -> list[int]:
    """Return the cut positions: at block ends, just before them, and at random. If `count` is None: at every block end
    and at 60 other positions.
    """
    chance = random.Random(name)
    ends = [found.end() for found in _BLOCK_END.finditer(body)]
    chosen = ends if count is None else chance.sample(ends, min(count, len(ends)))
    near = {end - back for end in chosen for back in (0, 1, 2)}
    anywhere = range(1, len(body))
    near.update(chance.sample(anywhere, min(len(anywhere), 60 if count is None else count)))
    return sorted(place for place in near if 0 < place < len(body))


def options_of(options: dict[str, Any], policy: str) -> dict[str, Any]:
    """Return the options of a stream with a different base policy."""
    return policy_of({**options, "policy": policy})
