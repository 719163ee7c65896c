"""Maps the finish reasons of all dialects, in any spelling, to streamweld's finish reasons.

Gateways forward the finish reasons of their upstream API, sometimes in capitals or camel case. A reason is looked up in
the dialect's own table with its exact spelling, then in the same table ignoring case and separators, then in the tables
of the other dialects. A reason with a detail (`content_filter: RECITATION`) is looked up as a whole, then without the
detail.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal

from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from streamweld.events import FinishReason

    Meaning = FinishReason | Literal["natural"]

__all__ = ["meaning"]

_LONGEST = 64  # maximum length in bytes of a finish reason that is looked up regardless of its spelling


def meaning(dialect: str, raw: str) -> Meaning | None:
    """Return the meaning of the finish reason, or None if no table contains it.

    The meaning "natural" stands for a normal end: `stop`, or `tool_calls` if there are calls.
    """
    known: Meaning | None = DIALECTS[dialect]["finish"].get(raw)
    if known is None and len(raw) <= _LONGEST and raw.isascii():
        known = _folded(dialect).get(_fold(raw))
    reason, colon, _ = raw.partition(":")
    if known is not None or not colon:
        return known
    # A reason that means success is not used without its detail, because the detail may contradict it.
    known = meaning(dialect, reason)
    return None if known in ("stop", "tool_calls", "natural") else known


@cache
def _folded(dialect: str) -> dict[str, Meaning]:
    """Return the finish reasons of all dialects in lower case and without separators.

    The dialect's own reasons take precedence over the others, which are added in order of dialect name.
    """
    tables = {name: facts["finish"] for name, facts in sorted(DIALECTS.items()) if "finish" in facts}
    out: dict[str, Meaning] = {}
    for table in (tables.pop(dialect), *tables.values()):
        for word, means in table.items():
            out.setdefault(_fold(word), means)
    return out


def _fold(word: str) -> str:
    return word.lower().replace("_", "").replace("-", "").replace(" ", "")
