"""What the checker says: `Violation`, and the table of rules (`_spec/rules.json`) that every one of them names.

A rule's id, severity, text and source stand in that table and nowhere else. It knows no dialect and no bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from streamweld._show import printable
from streamweld._spec import load_rules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._spec import Severity

__all__ = ["Place", "Report", "Rule", "Violation", "facts", "rules"]

_DETAIL = 200  # characters of a detail
MOST_OF_A_RULE = 100  # violations of one rule that are listed; the rest is counted


class Place(NamedTuple):
    """Where in a stream: what a violation is about begins there."""

    byte_offset: int
    """Absolute, a BOM counted: the first byte of the event's first data line, or of the line that is wrong."""
    event_ordinal: int
    """0-based number of the event; at the end of the stream, the number of events."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the table. `basis` is `text` (the source says so), `reader` (what its official readers need), or
    `reading` (a stricter reading, or what usage shows)."""

    id: str
    severity: Severity
    basis: str
    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule that a stream breaks, and where.

    `severity` is `error` (readers of this dialect lose or mix something), `warning` (the source's text is broken, and
    readers get by) or `info` (worth knowing; many honest providers do it).

    >>> import streamweld as sw
    >>> found = sw.check(b'data: {"type":"message_stop"}\\n\\n')
    >>> [violation.rule for violation in found][:2]
    ['anthropic.event_missing', 'anthropic.message_start_missing']
    >>> found[0].where
    Place(byte_offset=0, event_ordinal=0)
    """

    rule: str
    """The rule's id, `<dialect>.<name>` or `framing.<name>`: a key of `_spec/rules.json`."""
    where: Place
    message: str
    """One line that is safe to print: the rule's text, and what was seen."""
    source: str
    """The document that the rule comes from, and the section."""
    severity: Severity

    def to_dict(self) -> dict[str, Any]:
        """As data that `json.dumps` takes; the place is flat: `byte_offset`, `event_ordinal`."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "byte_offset": self.where.byte_offset,
            "event_ordinal": self.where.event_ordinal,
            "message": self.message,
            "source": self.source,
        }


@cache
def rules() -> Mapping[str, Rule]:
    """The table: id -> rule."""
    table = load_rules()
    made: dict[str, Rule] = {}
    for family, rows in table["rules"].items():
        for name, (severity, basis, source, section, text) in rows.items():
            said = f"{table['sources'][source]}, {section}{table['bases'][basis]}"
            made[f"{family}.{name}"] = Rule(f"{family}.{name}", severity, basis, said, text)
    return made


def facts(dialect: str) -> Mapping[str, Any]:
    """The words and required members of a dialect that its rules speak of."""
    found: Mapping[str, Any] = load_rules()["facts"][dialect]
    return found


class Report:
    """Where violations are gathered; holds the place of what is being looked at."""

    def __init__(self) -> None:
        self.place: Place = Place(0, 0)
        self.dropped: int = 0
        self._found: list[Violation] = []
        self._said: dict[str, int] = {}

    def say(self, rule: str, detail: str = "", at: Place | None = None) -> None:
        said = self._said.get(rule, 0)
        self._said[rule] = said + 1
        if said >= MOST_OF_A_RULE:
            self.dropped += 1
            return
        known = rules()[rule]
        message = f"{known.text}: {printable(detail, _DETAIL)}" if detail else known.text
        self._found.append(Violation(rule, at or self.place, message, known.source, known.severity))

    def once(self, rule: str, detail: str = "") -> None:
        """For what holds for a whole stream once it holds: it is said at its first place only."""
        if rule not in self._said:
            self.say(rule, detail)

    def take(self) -> list[Violation]:
        found, self._found = self._found, []
        return found
