"""`RequestContext`: a request conversion in progress, with its source and target and the recorded edits and losses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streamweld.errors import HistoryError
from streamweld.history import Edit, Loss
from streamweld.requests.tables import gateway_facts, object_of, pointer, spec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld.history import Profile
    from streamweld.requests.policy import RequestPolicy
    from streamweld.requests.tables import Json

__all__ = ["RequestContext"]


@dataclass(slots=True, eq=False)
class RequestContext:
    """One conversion in progress.

    `source` and `target` are target names. `used`: the request paths that have been handled; `unused()` records all
    other paths as losses. `done`: options that were translated together with another option.
    """

    request: Json
    source: str
    profile: Profile
    policy: RequestPolicy
    used: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])
    done: set[str] = field(default_factory=set[str])
    edits: list[Edit] = field(default_factory=list[Edit])
    losses: list[Loss] = field(default_factory=list[Loss])

    @property
    def target(self) -> str:
        """The name of the target."""
        return self.profile.target

    @property
    def same(self) -> bool:
        """Whether source and target are the same API. If so, unknown members are kept."""
        return self.source == self.target

    @property
    def facts(self) -> Json:
        """The differences between the gateway's API and the target's own API."""
        return gateway_facts(self.profile.name, self.target)

    def edit(self, rule: str, path: Sequence[str | int], what: str, removed: Any = None) -> None:
        """Record a change. `rule`: a key of `rules` in `_spec/requests.json`."""
        row = spec("rules")[rule]
        self.edits.append(Edit(rule, pointer(path), what, f"{row['text']} ({row['source']})", removed))

    def lose(
        self, feature: str, path: Sequence[str | int], why: str, removed: Any = None, *, vital: bool = False
    ) -> None:
        """Record a member that the target cannot represent. `vital`: whether the loss changes the response.

        Raises:
            HistoryError: if the loss is vital and the policy has `vital="raise"`.
        """
        if vital and self.policy.vital == "raise":
            raise HistoryError("unsupported_option", pointer(path), detail=f"{feature}: {why}")
        self.losses.append(Loss(feature, pointer(path), why, removed))

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
