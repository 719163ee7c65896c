"""The facts that all layers and both backends share, loaded from the JSON files in this folder and made immutable.

This module imports nothing else from the package. The files contain data only; anything that needs an `if` is code,
written in both backends and tested by a vector in `tests/vectors/`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pkgutil import get_data
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CODES",
    "DIALECTS",
    "EVENTS",
    "LIMITS",
    "PLAIN_EVENTS",
    "Action",
    "Base",
    "Code",
    "Field",
    "Mends",
    "Severity",
    "load_conversions",
    "load_history",
    "load_numbered_rules",
    "load_proxy",
    "load_requests",
    "load_rules",
    "load_usage",
]

Severity = Literal["info", "warning", "error"]
Action = Literal["raise", "diagnose", "skip"]
Base = Literal["strict", "standard", "salvage"]
Mends = Literal["payload", "stream"]


@dataclass(frozen=True, slots=True)
class Code:
    """One diagnostic code. `raises` is the name of the exception that is raised if the policy requires one.

    `mends`: what a repair in the same dialect omits or rewrites when this code is reported; None if the repair changes
    nothing. `detail` describes the `detail` field of a diagnostic. `details` explains the values of that field if the
    set of values is fixed. `advice`: what a user of the library can do about the diagnostic.
    """

    name: str
    severity: Severity
    text: str
    raises: str | None
    actions: Mapping[Base, Action]
    skippable: bool
    detail: str
    details: Mapping[str, str]
    mends: Mends | None
    advice: str

    def action(self, base: Base) -> Action:
        """Return the default action under a base policy, before the user's own `actions` are applied."""
        given = self.actions.get(base)
        if given is not None:
            return given
        return "raise" if base == "strict" and self.severity != "info" else "diagnose"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an event class. A field that is not `required` defaults to `default`."""

    name: str
    type: str
    nullable: bool
    required: bool
    default: object


def _load(name: str) -> dict[str, Any]:
    data = get_data(__name__, name)  # importing `importlib.resources` takes longer than reading all the files
    if data is None:
        raise FileNotFoundError(f"{__name__}/{name}")
    return cast("dict[str, Any]", json.loads(data))


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return MappingProxyType({key: _frozen(member) for key, member in members.items()})
    if isinstance(value, list):
        items = cast("list[object]", value)
        return tuple(_frozen(item) for item in items)
    return value


def _code(name: str, raw: dict[str, Any], advice: dict[str, str]) -> Code:
    return Code(
        name=name,
        severity=raw["severity"],
        text=raw["text"],
        raises=raw.get("raises"),
        actions=MappingProxyType(raw.get("actions", {})),
        skippable=raw.get("skippable", False),
        detail=raw.get("detail", ""),
        details=MappingProxyType(raw.get("details", {})),
        mends=raw.get("mends"),
        advice=advice[raw["advice"]],
    )


_DEFAULTS: Final[Mapping[str, object]] = MappingProxyType({"": "", "()": (), "false": False, "true": True})


def _field(written: str) -> Field:
    """Parse `name: type`, `name: type?` (None is allowed and the default) or `name: type=default`."""
    name, _, kind = written.partition(": ")
    if kind.endswith("?"):
        return Field(name, kind[:-1], nullable=True, required=False, default=None)
    kind, equals, default = kind.partition("=")
    return Field(name, kind, nullable=False, required=not equals, default=_DEFAULTS[default] if equals else None)


_events = _load("events.json")
_diagnostics = _load("diagnostics.json")

LIMITS: Final[Mapping[str, int | None]] = MappingProxyType(_load("limits.json")["limits"])
CODES: Final[Mapping[str, Code]] = MappingProxyType(
    {name: _code(name, raw, _diagnostics["advice"]) for name, raw in _diagnostics["codes"].items()}
)
EVENTS: Final[Mapping[str, tuple[Field, ...]]] = MappingProxyType(
    {name: tuple(_field(written) for written in fields) for name, fields in _events["events"].items()}
)
# Events that lack the fields `choice` and `provider_metadata`, which all other events have after their own fields.
PLAIN_EVENTS: Final[frozenset[str]] = frozenset(_events["plain"])
DIALECTS: Final[Mapping[str, Any]] = _frozen({k: v for k, v in _load("dialects.json").items() if k != "about"})


@cache
def load_conversions() -> Mapping[str, Any]:
    """Return the facts for writing a dialect: finish reasons, usage conventions, faults, losses.

    The file is loaded on first use.
    """
    loaded: Mapping[str, Any] = _frozen(_load("conversions.json"))
    return loaded


@cache
def load_errors() -> Mapping[str, Any]:
    """Return the rules of errors that are not diagnostic codes. The file is loaded when the first error is raised."""
    loaded: Mapping[str, Any] = _frozen(_load("errors.json"))
    return loaded


@cache
def load_numbered_rules() -> Mapping[str, Any]:
    """Return the numbered rules: identity rules, argument rules and ambiguities. Only the documentation uses these
    rules.
    """
    loaded: Mapping[str, Any] = _frozen(_load("numbered_rules.json"))
    return loaded


@cache
def load_proxy() -> Mapping[str, Any]:
    """Return the facts about the proxy's requests: paths, headers and errors.

    Only the proxy, which exists only in Python, uses these facts.
    """
    loaded: Mapping[str, Any] = _frozen(_load("proxy.json"))
    return loaded


@cache
def load_requests() -> Mapping[str, Any]:
    """Return the facts about the members of each API's requests.

    Only Python code uses these facts, to convert or check a request.
    """
    loaded: Mapping[str, Any] = _frozen(_load("requests.json"))
    return loaded


@cache
def load_rules() -> Mapping[str, Any]:
    """Return the rules of the checker. Only Python code uses these rules."""
    loaded: Mapping[str, Any] = _frozen(_load("rules.json"))
    return loaded


@cache
def load_history(name: Literal["gateways", "history_rules"]) -> Mapping[str, Any]:
    """Return the facts about request histories. Only Python code uses these facts, to convert or check a history."""
    loaded: Mapping[str, Any] = _frozen(_load(f"{name}.json"))
    return loaded


@cache
def load_usage() -> Mapping[str, Any]:
    """Return the meaning of each member of each API's usage object, from `usage.json`, which both backends read."""
    loaded: Mapping[str, Any] = _frozen(_load("usage.json"))
    return loaded


@cache
def load_text_calls() -> Mapping[str, Any]:
    """Return the notations in which models write tool calls into text.

    The notations are loaded only if a policy enables text calls.
    """
    loaded: Mapping[str, Any] = _frozen(_load("text_calls.json"))
    return loaded
