"""`HistoryViolation` and `Report`, which collects violations.

A rule's text, source and severity are in `_spec/history_rules.json`. If a gateway's profile gives a source for the
constraint, that more specific source is cited.
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
    """One rule of the target that a history breaks, and where.

    Attributes:
        rule: the code of the rule, a key of the checks in `streamweld/_spec/history_rules.json`.
        path: JSON pointer into what was given to `check`.
        message: one line that is safe to print: the rule, and what was seen.
        source: the document or issue that the gateway's constraint comes from.
        severity: `error` (the request is refused, or means something else) or `warning`.
    """

    rule: str
    path: str
    message: str
    source: str
    severity: Severity

    def to_dict(self) -> dict[str, Any]:
        """The violation as data that `json.dumps` takes."""
        return {name: getattr(self, name) for name in ("rule", "path", "message", "source", "severity")}


class Report:
    """Gathers violations; holds the constraints they are judged by."""

    __slots__ = ("_constraints", "_found", "profile")

    def __init__(self, profile: Profile) -> None:
        self.profile: Profile = profile
        self._constraints: dict[str, Any] = dict(profile.constraints)
        self._found: list[tuple[Path, HistoryViolation]] = []

    def fact(self, constraint: str) -> Any:
        """The value of a constraint; None where it does not hold."""
        return self._constraints.get(constraint)

    def facts(self, constraint: str) -> Mapping[str, Any]:
        """The members of a constraint that is a mapping; none where it does not hold."""
        found: Any = self._constraints.get(constraint)
        return found or _NONE

    def add(self, rule: str, path: Path, detail: str = "", constraint: str | None = None) -> None:
        """Writes down a violation. `constraint`: whose source is cited before the rule's own."""
        known = checks()[rule]
        source = self.profile.sources.get(constraint, known.source) if constraint else known.source
        message = f"{known.text}: {printable(detail, _DETAIL)}" if detail else known.text
        pointer = "".join(["/" + str(step).replace("~", "~0").replace("/", "~1") for step in path])
        self._found.append((path, HistoryViolation(rule, pointer, message, source, known.severity)))

    def found(self) -> list[HistoryViolation]:
        """All of them, in the order of the history."""
        return [violation for _, violation in sorted(self._found, key=_place)]


def _place(row: tuple[Path, HistoryViolation]) -> list[tuple[int, int, str]]:
    return [(0, step, "") if isinstance(step, int) else (1, 0, step) for step in row[0]]
