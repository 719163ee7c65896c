"""`RequestContext`: a request conversion in progress, with its source and target and the recorded edits and losses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from streamweld.errors import HistoryError
from streamweld.history import Edit, Loss
from streamweld.history.places import before, parsed
from streamweld.requests.tables import existing, gateway_facts, object_of, pointer, spec, steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld import history
    from streamweld.history import Profile
    from streamweld.history.places import Moved
    from streamweld.requests.policy import RequestPolicy
    from streamweld.requests.tables import Json, Path

__all__ = ["RequestContext"]


@dataclass(slots=True, eq=False)
class RequestContext:
    """One conversion in progress.

    `source` and `target` are target names. `used`: the request paths that have been handled; `unused()` records all
    other paths as losses. `done`: options that were translated together with another option. `written` maps the dotted
    path of an option in the target to its path in `request`. `moved` maps paths in `request` to paths in the caller's
    request (`given`), for members that were renamed or moved before the conversion.
    """

    request: Json
    given: Json
    source: str
    profile: Profile
    policy: RequestPolicy
    used: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])
    done: set[str] = field(default_factory=set[str])
    written: dict[str, Path] = field(default_factory=dict[str, "Path"])
    moved: Moved = field(default_factory=dict["tuple[str, ...]", "tuple[str | int, ...]"])
    edits: list[Edit] = field(default_factory=list[Edit])
    losses: list[Loss] = field(default_factory=list[Loss])

    @property
    def target(self) -> str:
        """The name of the target."""
        return self.profile.target

    @property
    def same(self) -> bool:
        """Whether source and target are the same API, in which case unknown members are kept."""
        return self.source == self.target

    @property
    def facts(self) -> Json:
        """The differences between the gateway's API and the target's own API."""
        return gateway_facts(self.profile.name, self.target)

    def origin(self, path: str) -> Path:
        """Return the path in `request` of the option that was written at this dotted path of the target.

        An option that the conversion added has no such path. For such an option, the result is its path in the target.
        """
        found = steps(path)
        for end in range(len(found), 0, -1):
            if source := self.written.get(".".join(found[:end])):
                return source
        return found

    def place(self, path: Path) -> str:
        """Return the JSON pointer that a member of `request` has in the caller's request."""
        return pointer(before(path, self.moved))

    def existing_place(self, path: Path) -> str:
        """Like `place`, but return the pointer to the nearest enclosing member that exists in the caller's request."""
        return pointer(existing(self.given, before(path, self.moved)))

    def placed(self, done: history.Conversion) -> tuple[Sequence[Edit], Sequence[Loss]]:
        """Return the edits and losses of the history, with paths in the caller's request."""
        if not self.moved:
            return done.edits, done.losses
        return (
            [replace(edit, path=self.place(parsed(edit.path))) for edit in done.edits],
            [replace(loss, path=self.existing_place(parsed(loss.path))) for loss in done.losses],
        )

    def edit(self, rule: str, path: Path, what: str, removed: Any = None) -> None:
        """Record a change. `rule`: a key of `rules` in `_spec/requests.json`."""
        row = spec("rules")[rule]
        self.edits.append(Edit(rule, self.place(path), what, f"{row['text']} ({row['source']})", removed))

    def lose(self, feature: str, path: Path, why: str, removed: Any = None, *, vital: bool = False) -> None:
        """Record a member that the target cannot represent. `vital`: whether the loss changes the response.

        The path of the loss is that of the nearest enclosing member that exists in the caller's request.

        Raises:
            HistoryError: if the loss is vital and the policy has `vital="raise"`.
        """
        place = self.existing_place(path)
        if vital and self.policy.vital == "raise":
            raise HistoryError("unsupported_option", place, detail=f"{feature}: {why}")
        self.losses.append(Loss(feature, place, why, removed))

    def lose_given(self, path: Path, why: str, removed: Any) -> None:
        """Record the loss of a member at a path in the caller's request."""
        self.losses.append(Loss(str(path[-1]), pointer(path), why, removed))

    def unused(self) -> None:
        """Record a loss for every request member that has not been handled."""
        for name, value in self.request.items():
            self._unused((name,), value)

    def _unused(self, path: tuple[str, ...], value: Any) -> None:
        if path in self.used or value is None:
            return
        inner = object_of(value)
        if inner and any(used[: len(path)] == path for used in self.used):
            for name, member in inner.items():
                self._unused((*path, name), member)
        else:
            self.lose(path[-1], path, f"{self.target} does not have this member", value)
