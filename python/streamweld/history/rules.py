"""The rules that edits and violations cite, loaded from `_spec/history_rules.json`: code, text, source, severity."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from streamweld._spec import load_history

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._spec import Severity

__all__ = ["Rule", "checks", "edits"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `source`: the document and section, or the issue with the server's own words. `why`: both."""

    code: str
    text: str
    source: str
    severity: Severity
    why: str


def _rules(section: Literal["edits", "checks"]) -> Mapping[str, Rule]:
    raw = load_history("history_rules")[section]
    return {
        code: Rule(code, rule["text"], rule["source"], rule["severity"], f"{rule['text']} ({rule['source']})")
        for code, rule in raw.items()
    }


@cache
def edits() -> Mapping[str, Rule]:
    """The rules that an `Edit` cites."""
    return _rules("edits")


@cache
def checks() -> Mapping[str, Rule]:
    """The rules that a violation cites."""
    return _rules("checks")
