"""The rules that edits and violations cite (code, text, source, severity), loaded from `_spec/history_rules.json`."""

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
    """One rule. `source`: a document and section, or an issue that quotes the server. `why`: text and source."""

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
    """Return the rules that edits cite, keyed by code."""
    return _rules("edits")


@cache
def checks() -> Mapping[str, Rule]:
    """Return the rules that violations cite, keyed by code."""
    return _rules("checks")
