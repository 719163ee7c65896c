"""Maps the finish reasons of all dialects, in any spelling, to the finish reasons of streamweld.

Gateways forward the finish reasons of their upstream API, sometimes in capitals or camel case. A reason is looked up in
three steps: in the table of its dialect with the exact spelling, in the same table without regard to case and
separators, and in the tables of the other dialects. A reason with a detail, such as `content_filter: RECITATION`, is
first looked up as a whole, and then without the detail.

`finish` in `_spec/dialects.json` contains the reasons that clients of the dialect may receive, and `finish_aliases`
contains reasons that gateways send instead.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal

from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from streamweld.events import FinishReason

    Meaning = FinishReason | Literal["natural"]

__all__ = ["is_alias", "meaning"]

_LONGEST = 64  # maximum length in bytes of a finish reason that is looked up regardless of its spelling
_COMMON = ("stop", "natural", "length", "tool_calls", "content_filter")  # every dialect has a word for these meanings


def meaning(dialect: str, raw: str) -> Meaning | None:
    """Return the meaning of the finish reason, or None if no table contains it.

    The meaning "natural" is a normal end, which becomes `tool_calls` if there are calls and `stop` otherwise.
    """
    known: Meaning | None = DIALECTS[dialect]["finish"].get(raw)
    if known is None and len(raw) <= _LONGEST and raw.isascii():
        known = _folded(dialect).get(_fold(raw))
    reason, colon, _ = raw.partition(":")
    if known is not None or not colon:
        return known
    # A reason that means success is not used without its detail, because the detail may contradict the reason.
    known = meaning(dialect, reason)
    return None if known in ("stop", "tool_calls", "natural") else known


def is_alias(dialect: str, raw: str) -> bool:
    """Return True if clients of the dialect do not know the finish reason, but know another word with its meaning.

    Such a reason comes from another API, such as `tool_use` in Chat Completions, or has another spelling, such as
    `MAX_TOKENS`. Clients compare the word exactly: a client that waits for `length` would treat a truncated response as
    complete.
    """
    return raw not in DIALECTS[dialect]["finish"] and ":" not in raw and meaning(dialect, raw) in _COMMON


@cache
def _folded(dialect: str) -> dict[str, Meaning]:
    """Return the finish reasons of all dialects in lower case and without separators.

    The reasons of the dialect itself take precedence. The reasons of the other dialects are added in the order of the
    dialect names.
    """
    tables = {
        name: facts["finish"] | facts.get("finish_aliases", {})
        for name, facts in sorted(DIALECTS.items())
        if "finish" in facts
    }
    out: dict[str, Meaning] = {}
    for table in (tables.pop(dialect), *tables.values()):
        for word, means in table.items():
            out.setdefault(_fold(word), means)
    return out


def _fold(word: str) -> str:
    return word.lower().replace("_", "").replace("-", "").replace(" ", "")
