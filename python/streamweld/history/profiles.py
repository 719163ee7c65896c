"""Gateway profiles: what a gateway accepts, with dates and sources. Profiles are bundled (`_spec/gateways.json`) or
defined by the user.

    profiles.load("vercel-ai-gateway")              # without a date: the newest profile
    profiles.load("vercel-ai-gateway@2026-01-29")
    profiles.resolve({"name": "mine", "like": "anthropic", "constraints": {"first_role": None}}, "anthropic")

A constraint that is absent does not apply. The code that reads a constraint defines its meaning.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from streamweld._messages import choice_message
from streamweld._spec import load_history
from streamweld.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["STALE_DAYS", "TARGETS", "Profile", "default", "load", "names", "provider", "resolve", "target_name"]

_T = TypeVar("_T")
TARGETS: Final[tuple[str, ...]] = tuple(load_history("gateways")["defaults"])
STALE_DAYS: Final = 60  # profiles older than this should be reviewed, because gateways change
# Names of stream dialects that are accepted as target names.
_ALIASES: Final = {"chat": "openai-chat", "ai-sdk-parts": "ai-sdk-model"}
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_USER_KEYS: Final = frozenset({"name", "date", "like", "with", "targets", "constraints", "sources"})


@dataclass(frozen=True, slots=True)
class Profile:
    """The constraints of one gateway, for one of its targets.

    Attributes:
        name: such as `anthropic`, without the date.
        date: the ISO date when the constraints were looked up; `""` for a user-defined profile without a date.
        evidence: `tested` (the tests run the vendor's own validator or SDK), `documented` (by the vendor) or `reported`
            (in client issues). A user-defined profile inherits `evidence` from the profile in `like`; without `like`,
            `evidence` is `""`.
        target: the target that the constraints apply to.
        targets: every target that the gateway offers.
        constraints: name -> value. A constraint that is absent does not apply.
        sources: name of a constraint -> a document and section, or an issue that quotes the server.
        options: option -> value -> the constraints that apply for that value. `with_options` selects the values.
    """

    name: str
    date: str
    target: str
    targets: tuple[str, ...]
    constraints: Mapping[str, Any]
    sources: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    options: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    evidence: str = ""
    # Values that depend only on the profile and are needed in every conversion. A key is either the chosen options, for
    # the profile with these options set, or a dialect, for the constraints of a history in that dialect.
    _derived: dict[Any, Any] = field(default_factory=dict[Any, Any], init=False, repr=False, compare=False)

    def age(self, today: dt.date | None = None) -> int | None:
        """Return the age of the profile in days, or None if it has no date."""
        return (
            ((today or dt.datetime.now(tz=dt.UTC).date()) - dt.date.fromisoformat(self.date)).days
            if self.date
            else None
        )

    def with_options(self, **chosen: str | bool | None) -> Profile:
        """Return the profile with some of its options set.

        An option that is None keeps its default. Options that the profile does not have are ignored.

        Raises:
            UsageError: if a value is not among the values of its option.

        >>> load("openai-responses").with_options(store=False).constraints["reasoning"]["needs_encrypted"]
        True
        """
        sent = {name: value for name, value in chosen.items() if value is not None and name in self.options}
        if not sent:
            return self
        return self.derived(tuple(sent.items()), lambda: self._with(sent))

    def derived(self, key: Any, compute: Callable[[], _T]) -> _T:
        """Return the value of `compute()`, calling it only once for each key."""
        found: _T | None = self._derived.get(key)
        if found is None:
            found = self._derived[key] = compute()
        return found

    def _with(self, sent: Mapping[str, Any]) -> Profile:
        constraints, sources = dict(self.constraints), dict(self.sources)
        for option, value in sent.items():
            values = self.options[option]
            word = str(value).lower() if isinstance(value, bool) else value
            if word not in values:
                raise UsageError(f"{option}={value!r}: for {self.name} it must be one of {', '.join(values)}")
            _apply(values[word], constraints, sources, merge=True)
        return replace(self, constraints=MappingProxyType(constraints), sources=MappingProxyType(sources))


def _apply(given: Mapping[str, Any], constraints: dict[str, Any], sources: dict[str, str], *, merge: bool) -> None:
    """Override constraints with `name -> [value, source]` entries; with `merge`, mappings are merged one level deep."""
    for name, row in given.items():
        if row is None:
            constraints.pop(name, None)
            sources.pop(name, None)
            continue
        value, source = row
        before: Any = constraints.get(name)
        if merge and isinstance(value, Mapping) and isinstance(before, Mapping):
            both = {**cast("Mapping[str, Any]", before), **cast("Mapping[str, Any]", value)}
            constraints[name] = MappingProxyType({key: held for key, held in both.items() if held is not None})
        else:
            constraints[name] = value
        sources[name] = source


@cache
def _entries() -> tuple[Mapping[str, Any], ...]:
    entries: tuple[Mapping[str, Any], ...] = load_history("gateways")["profiles"]
    return entries


@cache
def _providers() -> Mapping[str, str]:
    fields: Mapping[str, Iterable[str]] = load_history("gateways")["providers"]
    return {word: family for family, words in fields.items() for word in words}


def provider(word: str) -> str:
    """Return the name that `reasoning.issuers` uses for a provider or gateway. Names are not case-sensitive.

    Raises:
        UsageError: if the name is unknown. `providers` in `_spec/gateways.json` lists the known names.

    >>> provider("Azure-OpenAI")
    'azure'
    """
    found = _providers().get(word.lower())
    if found is None:
        raise UsageError(choice_message("provider", word, sorted(_providers()), informal={}))
    return found


def names() -> tuple[str, ...]:
    """Return the names of all bundled profiles, as `name@date`."""
    return tuple([f"{entry['name']}@{entry['date']}" for entry in _entries()])


@cache
def target_name(name: str, argument: Literal["source", "target"] = "target") -> str:
    """Return the API, one of `TARGETS`, to which a name or alias refers.

    Raises:
        UsageError: if there is no such API. The error message contains the name of the argument.
    """
    known = _ALIASES.get(name, name)
    if known not in TARGETS:
        raise UsageError(choice_message(argument, name, TARGETS if argument == "target" else ("auto", *TARGETS)))
    return known


def _newest(found: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    return max(found, key=lambda entry: cast("str", entry["date"]), default=None)


@cache
def load(name: str, target: str | None = None) -> Profile:
    """Return the profile with this name or `name@date`.

    Args:
        name: the name of the profile. Without a date, the newest profile of that name is returned.
        target: one of the targets that the gateway offers; None selects the first target.

    Raises:
        UsageError: if there is no such profile, or if its gateway does not offer that target.

    >>> load("vercel-ai-gateway").date
    '2026-01-31'
    """
    plain, _, date = name.partition("@")
    entry = _newest([one for one in _entries() if one["name"] == plain and (not date or one["date"] == date)])
    if entry is None:
        dated = [one for one in names() if one.partition("@")[0] == plain]
        choices = dated or list(dict.fromkeys(one["name"] for one in _entries()))
        raise UsageError(f"{choice_message('gateway', name, choices, informal={})} (or pass a mapping)")
    targets = tuple(entry["targets"])
    chosen = targets[0] if target is None else target_name(target)
    if chosen not in targets:
        raise UsageError(f"gateway={name!r} does not support {chosen}; supported: {', '.join(targets)}")
    fields = entry["targets"][chosen]
    constraints: dict[str, Any] = {}
    sources: dict[str, str] = {}
    options: Mapping[str, Any] = _NOTHING
    if "like" in fields:
        base = load(fields["like"], chosen)
        constraints, sources, options = dict(base.constraints), dict(base.sources), base.options
    _apply(fields["constraints"], constraints, sources, merge=False)
    options = fields.get("options", options)
    return Profile(
        *(plain, entry["date"], chosen, targets, MappingProxyType(constraints), MappingProxyType(sources), options),
        evidence=entry["evidence"],
    )


@cache
def default(target: str) -> Profile:
    """Return the default profile for a target, used if no gateway is given.

    Raises:
        UsageError: if there is no such target.
    """
    known = target_name(target)
    return load(load_history("gateways")["defaults"][known], known)


def resolve(gateway: str | Profile | Mapping[str, Any] | None, target: str) -> Profile:
    """Return the profile for a `gateway` argument.

    Args:
        gateway: None for the target's default; a name; a Profile; or a mapping with any of `name`, `date`, `like` (the
            profile to start from; if absent, the target's default; None starts without constraints), `with` (its
            options), `constraints` (name -> value; None removes a constraint) and `sources`.
        target: the API that the payload is for.

    Raises:
        UsageError: if the name is unknown, the gateway does not offer the target, or the mapping has other keys.

    >>> resolve({"like": "bedrock-converse", "with": {"family": "qwen"}}, "bedrock-converse").constraints["first_role"]
    Traceback (most recent call last):
    KeyError: 'first_role'
    """
    known = target_name(target)
    if gateway is None:
        return default(known)
    if isinstance(gateway, str):
        return load(gateway, known)
    if isinstance(gateway, Profile):
        if gateway.target == known:
            return gateway
        raise UsageError(f"the profile {gateway.name!r} is for {gateway.target}, not for {known}")
    return _of_user(gateway, known)


def _of_user(fields: Mapping[str, Any], target: str) -> Profile:
    if unknown := fields.keys() - _USER_KEYS:
        raise UsageError(f"unknown members of a profile: {', '.join(sorted(map(str, unknown)))}")
    targets = tuple(fields.get("targets", (target,)))
    if target not in targets:
        raise UsageError(
            f"gateway={fields.get('name', '')!r} does not support {target}; supported: {', '.join(targets)}"
        )
    like: str | None = fields.get("like", load_history("gateways")["defaults"][target])
    base = Profile("", "", target, targets, _NOTHING) if like is None else load(like, target)
    base = base.with_options(**fields.get("with", {}))
    constraints, sources = dict(base.constraints), dict(base.sources)
    given = fields.get("sources", {})
    rows: dict[str, Any] = {}
    for name, value in fields.get("constraints", {}).items():
        rows[name] = None if value is None else (value, given.get(name, "the user's own profile"))
    _apply(rows, constraints, sources, merge=False)
    return replace(
        base,
        name=fields.get("name", base.name),
        date=fields.get("date", base.date),
        targets=targets,
        constraints=MappingProxyType(constraints),
        sources=MappingProxyType(sources),
    )
