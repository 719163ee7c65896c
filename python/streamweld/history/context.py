"""`Context`: the target's constraints, the policy, and the edits, losses and ids recorded during one conversion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from streamweld.history.edits import Edit, IdMap, Loss
from streamweld.history.model import EMPTY, NestedPath, pointer
from streamweld.history.rules import edits as edit_rules
from streamweld.history.survey import Survey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld.history.model import Path, Result, Turn
    from streamweld.history.policy import HistoryPolicy

__all__ = ["Context"]

_INSIGNIFICANT: Final[tuple[Any, ...]] = ([], {}, "completed")  # members with these values may be lost without a report


@dataclass(slots=True, eq=False)
class Context:
    """One conversion in progress.

    `pending`: whether the input is a single response, in which case its calls may remain unanswered. `chained`: whether
    the server stores earlier turns (`previous_response_id`), in which case results may belong to calls that are not in
    the history. `fact`: returns a constraint of the target, or None if the target does not have it.
    """

    target: str
    family: str
    constraints: Mapping[str, Any]
    policy: HistoryPolicy
    provider: str | None = None
    model: str | None = None
    tools: Mapping[str, Any] = field(default_factory=dict[str, Any])
    pending: bool = False
    chained: bool = False
    edits: list[Edit] = field(default_factory=list[Edit])
    losses: list[Loss] = field(default_factory=list[Loss])
    ids: IdMap = field(default_factory=IdMap)
    fact: Callable[[str], Any] = field(init=False)
    _survey: Survey | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.fact = self.constraints.get  # passes ask often, and a method would cost a second call

    def fresh(self) -> Context:
        """Return a context for converting a part of the history, with the same settings but without edits, losses and
        ids.
        """
        return Context(
            *(self.target, self.family, self.constraints, self.policy, self.provider, self.model, self.tools),
            pending=self.pending,
            chained=self.chained,
        )

    def survey(self, turns: list[Turn]) -> Survey:
        """Return a survey of these turns. The survey is reused until a pass returns a new list."""
        if self._survey is None or self._survey.turns is not turns:
            self._survey = Survey(turns)
        return self._survey

    def edit(self, rule: str, path: Path, what: str, removed: Any = None) -> None:
        """Record a change. `rule`: a key of the edits in `_spec/history_rules.json`."""
        self.edits.append(Edit(rule, pointer(path), what, edit_rules()[rule].why, removed))

    def lose(self, feature: str, path: Path, why: str, removed: Any = None) -> None:
        """Record content that the target cannot represent."""
        self.losses.append(Loss(feature, pointer(path), why, removed))

    def lose_members(self, members: Mapping[str, Any], path: Path, why: str) -> None:
        """Record the members of a message or block that the target cannot represent.

        Empty lists and objects, and the value `completed`, are not recorded.
        """
        for name, value in members.items():
            if value not in _INSIGNIFICANT:
                steps = name.split("/") if isinstance(name, NestedPath) else (name,)
                self.lose(steps[-1], (*path, *steps), why, value)

    def lose_error_flag(self, result: Result) -> None:
        """Record as a loss that the target cannot mark a result as an error."""
        if result.origin is not None:
            self.lose("is_error", result.path, "the target cannot mark a tool result as an error", True)

    def facts(self, name: str) -> Mapping[str, Any]:
        """Return a constraint that is a mapping, or an empty mapping if the target does not have it."""
        found: Any = self.constraints.get(name)
        return EMPTY if found is None else found
