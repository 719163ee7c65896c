"""The findings of the checker (`Violation`), and the table of rules that they refer to (`_spec/rules.json`).

The id, severity, text and source of a rule are defined only in that table. This module does not depend on a dialect.
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

__all__ = ["BrokenClient", "Place", "Report", "Rule", "Violation", "facts", "rules"]

_DETAIL = 200  # maximum length of a detail, in characters
MOST_OF_A_RULE = 100  # maximum number of violations listed per rule; further ones are only counted


class Place(NamedTuple):
    """The place in a stream where the faulty event or line begins."""

    byte_offset: int
    """Absolute offset, including a BOM: the first byte of the event's first data line, or of the faulty line."""
    event_ordinal: int
    """0-based number of the event; at the end of the stream, the number of events."""


class BrokenClient(NamedTuple):
    """A client that was observed to misread or reject streams that break a rule."""

    client: str
    version: str
    """The version that was tested."""
    effect: str
    """The effect on the client, such as `raises TypeError`."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table of rules.

    `basis` is `text` (the source requires it), `reader` (the official readers need it), or `reading` (a stricter
    interpretation of the source, or common practice). `breaks_client` lists the clients that were observed to misread
    or reject a stream that breaks this rule.
    """

    id: str
    severity: Severity
    basis: str
    source: str
    text: str
    breaks_client: tuple[BrokenClient, ...] = ()

    @property
    def advice(self) -> str:
        """What to do about a stream that breaks the rule."""
        kind = "broken" if self.breaks_client else "info" if self.severity == "info" else "unbroken"
        advice: str = load_rules()["advice"][kind]
        return advice


@dataclass(frozen=True, slots=True)
class Violation:
    """One place where a stream breaks a rule.

    `severity` is `error` (readers of this dialect lose or mix up content), `warning` (the specification is violated,
    but readers tolerate it) or `info` (unusual but harmless; many well-behaved providers do it).

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
    """One line that is safe to print: the rule's text, and the observed value."""
    source: str
    """The document and section that define the rule."""
    severity: Severity

    def to_dict(self) -> dict[str, Any]:
        """Return the violation as data that `json.dumps` accepts. The place becomes `byte_offset` and `event_ordinal`.

        `breaks_client` lists the clients that were observed to misread or reject streams that break this rule:
        `client`, the tested `version`, `effect`.
        """
        return {
            "rule": self.rule,
            "severity": self.severity,
            "byte_offset": self.where.byte_offset,
            "event_ordinal": self.where.event_ordinal,
            "message": self.message,
            "source": self.source,
            "breaks_client": [broken._asdict() for broken in rules()[self.rule].breaks_client],
        }


@cache
def rules() -> Mapping[str, Rule]:
    """Return all rules by id."""
    table = load_rules()
    made: dict[str, Rule] = {}
    for family, rows in table["rules"].items():
        for name, (severity, basis, source, section, text) in rows.items():
            basis_text = f"{table['sources'][source]}, {section}{table['bases'][basis]}"
            broken = table["breaks_client"].get(f"{family}.{name}", {})
            clients = tuple(BrokenClient(client, row["version"], row["effect"]) for client, row in broken.items())
            made[f"{family}.{name}"] = Rule(f"{family}.{name}", severity, basis, basis_text, text, clients)
    return made


def facts(dialect: str) -> Mapping[str, Any]:
    """Return the facts about a dialect that its rules use: known words and required members."""
    found: Mapping[str, Any] = load_rules()["facts"][dialect]
    return found


class Report:
    """Collects violations, and stores the position of the payload that is being checked."""

    def __init__(self) -> None:
        self.position: Place = Place(0, 0)
        self.dropped: int = 0
        self._found: list[Violation] = []
        self._counts: dict[str, int] = {}

    def record(self, rule: str, detail: str = "", at: Place | None = None) -> None:
        basis_text = self._counts.get(rule, 0)
        self._counts[rule] = basis_text + 1
        if basis_text >= MOST_OF_A_RULE:
            self.dropped += 1
            return
        known = rules()[rule]
        message = f"{known.text}: {printable(detail, _DETAIL)}" if detail else known.text
        self._found.append(Violation(rule, at or self.position, message, known.source, known.severity))

    def once(self, rule: str, detail: str = "") -> None:
        """Report a violation that concerns the whole stream. Only the first call for a rule has an effect."""
        if rule not in self._counts:
            self.record(rule, detail)

    def take(self) -> list[Violation]:
        found, self._found = self._found, []
        return found
