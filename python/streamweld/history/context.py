"""What all passes and writers share while one history is converted: the target's facts, the policy, the ledgers.

It knows no dialect; what a gateway accepts comes from its profile.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from streamweld.errors import UsageError
from streamweld.history.edits import Edit, IdMap, Loss
from streamweld.history.model import EMPTY, Inner, pointer
from streamweld.history.rules import edits as edit_rules
from streamweld.history.survey import Survey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld.history.model import Path, Turn

__all__ = ["Context", "HistoryPolicy"]

_INSIGNIFICANT: Final[tuple[Any, ...]] = ([], {}, "completed")  # as members: nobody misses them
_CHOICES = {
    "orphan_call": ("error_result", "drop"),
    "orphan_result": ("synthesise", "text", "drop"),
    "duplicate_result": ("first", "last"),
    "reasoning": ("auto", "keep", "drop", "text"),
    "truncated_arguments": ("wrap", "drop", "empty"),
    "on_unfixable": ("raise", "keep"),
}


@dataclass(frozen=True, slots=True)
class HistoryPolicy:
    """How a broken history is mended.

    Attributes:
        orphan_call: a call without a result gets a result that says so (an error), or is dropped.
        orphan_result: a result without a call gets a call (name from `tools`, or `unknown`; arguments `{}`), becomes
            text of the user, or is dropped.
        duplicate_result: which of several results for one call holds. It stands where the first one stood.
        reasoning: `auto` keeps what the target can take by its profile and drops the rest; `keep` keeps whatever
            can be said at all; `drop` drops all; `text` turns what is not kept into text of the assistant.
        truncated_arguments: arguments that are no JSON object are wrapped (`{"_raw": "…"}`), dropped with their call
            and its result, or replaced by `{}`.
        on_unfixable: what cannot be mended raises HistoryError, or is left as it is.

    Raises:
        UsageError: a word that is none of these.
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


@dataclass(slots=True, eq=False)
class Context:
    """One conversion under way.

    `pending`: the input was an answer, no request; its calls may stay unanswered.
    """

    target: str
    family: str
    constraints: Mapping[str, Any]
    policy: HistoryPolicy
    provider: str | None = None
    model: str | None = None
    tools: Mapping[str, Any] = field(default_factory=dict[str, Any])
    pending: bool = False
    edits: list[Edit] = field(default_factory=list[Edit])
    losses: list[Loss] = field(default_factory=list[Loss])
    ids: IdMap = field(default_factory=IdMap)
    _survey: Survey | None = field(default=None, init=False)

    def fresh(self) -> Context:
        """The same target, facts and options with empty ledgers, for a part of the history."""
        return Context(
            self.target, self.family, self.constraints, self.policy, self.provider, self.model, self.tools, self.pending
        )

    def survey(self, turns: list[Turn]) -> Survey:
        """What these turns hold. A list that no pass has changed is walked once."""
        if self._survey is None or self._survey.turns is not turns:
            self._survey = Survey(turns)
        return self._survey

    def edit(self, rule: str, path: Path, what: str, removed: Any = None) -> None:
        """Books a change under a rule of the table."""
        self.edits.append(Edit(rule, pointer(path), what, edit_rules()[rule].why, removed))

    def lose(self, feature: str, path: Path, why: str, removed: Any = None) -> None:
        """Books something that cannot be said in the target."""
        self.losses.append(Loss(feature, pointer(path), why, removed))

    def lose_members(self, members: Mapping[str, Any], path: Path, why: str) -> None:
        """Books members of a message or block that cannot be said, but for those that say nothing."""
        for name, value in members.items():
            if value not in _INSIGNIFICANT:
                steps = name.split("/") if isinstance(name, Inner) else (name,)
                self.lose(steps[-1], (*path, *steps), why, value)

    def fact(self, name: str, member: str | None = None) -> Any:
        """A constraint of the target, or a member of it; None where there is none."""
        found = self.constraints.get(name)
        if member is None or found is None:
            return found
        return found.get(member)

    def facts(self, name: str) -> Mapping[str, Any]:
        """A constraint of the target that has members; without any where there is none."""
        found: Any = self.constraints.get(name)
        return EMPTY if found is None else found
