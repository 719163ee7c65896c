"""`HistoryViolation` and `Report`, which collects violations.

The text, source and severity of each rule are in `_spec/history_rules.json`. If the gateway's profile has a source for
the constraint, the violation cites that source, which is more specific.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamweld._show import printable
from streamweld.history.rules import checks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._spec import Severity
    from streamweld.history.profiles import Profile

__all__ = ["HistoryViolation", "Path", "Report"]

Path: TypeAlias = tuple[str | int, ...]
_DETAIL = 120
_NONE: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class HistoryViolation:
    """A rule of the target that a history breaks, and the place where the history breaks it.

    Attributes:
        rule: the code of the rule, a key of the checks in `streamweld/_spec/history_rules.json`.
        path: JSON pointer into the history passed to `check`.
        message: one printable line with the rule and the value that breaks it.
        source: the document or issue that the rule or the gateway's constraint comes from.
        severity: `error` (the request is rejected, or its meaning changes) or `warning`.
    """

    rule: str
    path: str
    message: str
    source: str
    severity: Severity

    def to_dict(self) -> dict[str, Any]:
        """Return the violation as a dictionary that `json.dumps` accepts."""
        return {name: getattr(self, name) for name in ("rule", "path", "message", "source", "severity")}


class Report:
    """Collects violations, and gives the checks access to the target's constraints."""

    __slots__ = ("_constraints", "_found", "profile")

    def __init__(self, profile: Profile) -> None:
        self.profile: Profile = profile
        self._constraints: dict[str, Any] = dict(profile.constraints)
        self._found: list[tuple[Path, HistoryViolation]] = []

    def fact(self, constraint: str) -> Any:
        """Return the value of a constraint, or None if the profile does not have it."""
        return self._constraints.get(constraint)

    def facts(self, constraint: str) -> Mapping[str, Any]:
        """Return a constraint that is a mapping, or an empty mapping if the profile does not have it."""
        found: Any = self._constraints.get(constraint)
        return found or _NONE

    def add(self, rule: str, path: Path, detail: str = "", constraint: str | None = None) -> None:
        """Record a violation.

        `constraint`: if the profile has a source for this constraint, cite that source instead of the rule's.
        """
        known = checks()[rule]
        source = self.profile.sources.get(constraint, known.source) if constraint else known.source
        message = f"{known.text}: {printable(detail, _DETAIL)}" if detail else known.text
        pointer = "".join(["/" + str(step).replace("~", "~0").replace("/", "~1") for step in path])
        self._found.append((path, HistoryViolation(rule, pointer, message, source, known.severity)))

    def found(self) -> list[HistoryViolation]:
        """Return all violations, in the order of the history."""
        return [violation for _, violation in sorted(self._found, key=_place)]


def _place(row: tuple[Path, HistoryViolation]) -> list[tuple[int, int, str]]:
    return [(0, step, "") if isinstance(step, int) else (1, 0, step) for step in row[0]]
