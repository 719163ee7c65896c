"""What a finish reason means, in the word of any dialect and however it is written.

Gateways pass on the words of the API behind them, in capitals or in camel case. A dialect's own table holds first, as
it is written there; then the same without regard to case and separators; then the words of the other dialects.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal

from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from streamweld.events import FinishReason

    Meaning = FinishReason | Literal["natural"]

__all__ = ["meaning"]

_LONGEST = 64  # bytes; no word is longer


def meaning(dialect: str, raw: str) -> Meaning | None:
    """What the reason means. None: no table has it. "natural": a word for every end that nobody forced."""
    known: Meaning | None = DIALECTS[dialect]["finish"].get(raw)
    if known is not None or len(raw) > _LONGEST or not raw.isascii():
        return known
    return _folded(dialect).get(_fold(raw))


@cache
def _folded(dialect: str) -> dict[str, Meaning]:
    """All words without case and separators. The dialect's own go first, then those of the others by name."""
    tables = {name: facts["finish"] for name, facts in sorted(DIALECTS.items()) if name != "detect"}
    out: dict[str, Meaning] = {}
    for table in (tables.pop(dialect), *tables.values()):
        for word, means in table.items():
            out.setdefault(_fold(word), means)
    return out


def _fold(word: str) -> str:
    return word.lower().replace("_", "").replace("-", "").replace(" ", "")
