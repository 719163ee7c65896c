"""`HistoryPolicy`: how `convert` repairs a broken history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from streamweld.errors import UsageError

__all__ = ["HistoryPolicy"]

_CHOICES: Final = {
    "orphan_call": ("error_result", "drop"),
    "orphan_result": ("synthesise", "text", "drop"),
    "duplicate_result": ("first", "last"),
    "reasoning": ("auto", "keep", "drop", "text"),
    "truncated_arguments": ("wrap", "drop", "empty"),
    "on_unfixable": ("raise", "keep"),
}


@dataclass(frozen=True, slots=True)
class HistoryPolicy:
    """How `convert` repairs a broken history.

    Attributes:
        orphan_call: a call without a result gets an error result (`error_result`) or is dropped (`drop`).
        orphan_result: a result without a call gets a call (`synthesise`: its name comes from `tools` or is `unknown`;
            its arguments are `{}`), becomes user text (`text`), or is dropped (`drop`).
        duplicate_result: which of several results for one call to keep: `first` or `last`. The kept result takes the
            position of the first result.
        reasoning: `auto` keeps the reasoning that the target's profile accepts and drops all other reasoning; `keep`
            keeps all reasoning that the target can represent; `drop` drops all reasoning; `text` is like `auto`, but
            turns the other reasoning into assistant text.
        truncated_arguments: arguments that are not a JSON object are wrapped as `{"_raw": "…"}` (`wrap`) or replaced
            by `{}` (`empty`), or the call is dropped together with its result (`drop`).
        on_unfixable: `raise` raises HistoryError if a violation cannot be repaired; `keep` leaves it unchanged.

    Raises:
        UsageError: if a value is not listed above.
    """

    orphan_call: Literal["error_result", "drop"] = "error_result"
    orphan_result: Literal["synthesise", "text", "drop"] = "synthesise"
    duplicate_result: Literal["first", "last"] = "first"
    reasoning: Literal["auto", "keep", "drop", "text"] = "auto"
    truncated_arguments: Literal["wrap", "drop", "empty"] = "wrap"
    on_unfixable: Literal["raise", "keep"] = "raise"

    def __post_init__(self) -> None:
        for name, words in _CHOICES.items():
            if getattr(self, name) not in words:
                raise UsageError(f"{name}={getattr(self, name)!r}: it must be one of {', '.join(words)}")
