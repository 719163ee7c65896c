"""Typed access to the tables in `_spec/requests.json`, and helpers for JSON values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias, cast

from streamweld._spec import load_requests
from streamweld.history.ids import form_of

__all__ = [
    "MODEL",
    "Json",
    "Option",
    "Path",
    "at",
    "claude_facts",
    "existing",
    "gateway_facts",
    "is_accepted",
    "is_list",
    "listed",
    "model_facts",
    "nearest_budget",
    "nearest_effort",
    "nearest_level",
    "object_of",
    "openai_efforts",
    "openai_rejects_sampling",
    "options",
    "pointer",
    "put",
    "reasons_by_default",
    "remove",
    "spec",
    "steps",
    "thawed",
    "tool_schema_rules",
    "words_of",
]

Json = Mapping[str, Any]
Path: TypeAlias = Sequence[str | int]
_NOTHING: Final[Json] = {}
MODEL: Final = {"bedrock-converse": "modelId"}  # the member with the model's name, if it is not `model`


def spec(name: str) -> Any:
    """Return a section of `_spec/requests.json`."""
    return load_requests()[name]


@dataclass(frozen=True, slots=True)
class Option:
    """One row of `options` in `_spec/requests.json`. The `about` member of that file describes the fields."""

    word: str
    paths: Mapping[str, Sequence[str]]
    kind: str
    implied: Sequence[Any]
    bounds: Mapping[str, Sequence[float | None]]
    max_items: Mapping[str, int]
    forms: Mapping[str, Json]
    entries: Mapping[str, Json]
    members: Mapping[str, Mapping[str, Sequence[Any] | None]]
    required: Mapping[str, Any]
    models: Mapping[str, Mapping[str, str]]
    also: Mapping[str, Sequence[str]]
    negated: Sequence[str]
    needs_tools: Sequence[str]
    vital: bool
    alone: bool
    why: str

    def path_in(self, target: str, facts: Json, model: object = None) -> str | None:
        """Return the path of the option in a request for the target.

        Return None if the target, the gateway or the model does not have the option. `facts`: how the gateway's API
        differs from the target's own API.
        """
        if self.word in facts.get("lacks", ()):
            return None
        own = facts.get("renamed", _NOTHING).get(self.word) or facts.get("adds", _NOTHING).get(self.word)
        if own is not None:
            return str(own)
        if target in self.models:
            rows = self.models[target].items() if isinstance(model, str) else ()
            return next((path for path, pattern in rows if re.search(pattern, str(model))), None)
        paths = self.paths.get(target)
        return paths[0] if paths else None

    def limits(self, target: str, facts: Json) -> tuple[float | None, float | None]:
        """Return the smallest and the largest value that the gateway accepts. The default is the target's range."""
        low, high = (
            facts.get("bounds", _NOTHING).get(self.word)
            or self.bounds.get(target)
            or self.bounds.get("*")
            or (None, None)
        )
        return low, high

    def fits(self, text: str, target: str, facts: Json) -> bool:
        """Return whether the gateway accepts the length and the characters of a text. The default is the value of the
        target."""
        form = facts.get("forms", _NOTHING).get(self.word) or self.forms.get(target)
        return form is None or form_of(form).fits(text)

    def fits_entry(self, name: object, value: object, target: str) -> bool:
        """Return whether the target accepts the key and the value of an object's entry."""
        rows = self.entries.get(target)
        if rows is None:
            return True
        texts = isinstance(name, str) and isinstance(value, str)
        return texts and form_of(rows["key"]).fits(str(name)) and form_of(rows["value"]).fits(str(value))


@cache
def options() -> tuple[Option, ...]:
    """Return all options, in the order in which they are written."""
    return tuple(
        Option(
            word=word,
            paths=row["paths"],
            kind=row["kind"],
            implied=[thawed(value) for value in row.get("implied", ())],
            bounds=row.get("bounds", _NOTHING),
            max_items=row.get("max_items", _NOTHING),
            forms=row.get("forms", _NOTHING),
            entries=row.get("entries", _NOTHING),
            members=row.get("members", _NOTHING),
            required=row.get("required", _NOTHING),
            models=row.get("models", _NOTHING),
            also=row.get("also", _NOTHING),
            negated=row.get("negated", ()),
            needs_tools=row.get("needs_tools", ()),
            vital=row.get("vital", False),
            alone=row.get("alone", False),
            why=row.get("why", ""),
        )
        for word, row in spec("options").items()
    )


@cache
def gateway_facts(gateway: str, target: str) -> Json:
    """Return the differences between a gateway's API and the target's own API.

    If the gateway lists all its members, `lacks` contains the options whose members it does not have.
    """
    facts: Json = spec("gateways").get(gateway, _NOTHING)
    found: Json = facts.get(target, _NOTHING) if gateway != "about" else _NOTHING
    only = found.get("only")
    if only is None:
        return found
    paths = {option.word: option.path_in(target, found) for option in options() if target in option.paths}
    lacks = [word for word, path in paths.items() if path is not None and path.partition(".")[0] not in only]
    if "functions" not in only:
        lacks.append("functions")
    return {**found, "lacks": (*found.get("lacks", ()), *lacks)}


def words_of(option: str, target: str, facts: Json) -> Json:
    """Return the gateway's or the target's names of the values of an option, keyed by streamweld's names."""
    own: Json | None = facts.get("words", _NOTHING).get(option)
    found: Json = spec("words")[option][target] if own is None else own
    return found


def model_facts(family: str, model: object) -> Json:
    """Return the table row for a model, by its version. The name may include a vendor prefix and a date."""
    table = spec("models")[family]
    found = _pattern(family).search(model) if isinstance(model, str) else None
    if found is None:
        unknown: Json = table["unknown"]
        return unknown
    version = [int(found[1]), int(found[2] or 0)]
    row: Json = next(row for row in table["rows"] if version >= list(row["from"]))
    variant = row["variants"].get(found[3]) if "variants" in row else None
    return row if variant is None else {**row, **variant}


def openai_efforts(model: object, facts: Json) -> Sequence[str] | None:
    """Return the reasoning efforts that an OpenAI model accepts, or None if it accepts all of them.

    Also return None for a gateway that has its own reasoning options.
    """
    if not isinstance(model, str) or "thinking" in facts or "efforts" in facts:
        return None
    return next((row for pattern, row in _efforts() if pattern.search(model)), None)


def openai_rejects_sampling(model: object, effort: object, facts: Json) -> bool:
    """Return whether an OpenAI model rejects sampling options. False for a gateway that has its own reasoning options.

    `effort`: the reasoning effort of the request, or None.
    """
    if not isinstance(model, str) or "thinking" in facts or "efforts" in facts:
        return False
    never, with_effort = _sampling()
    return bool(never.search(model) or (effort not in (None, "none") and with_effort.search(model)))


@cache
def _sampling() -> tuple[re.Pattern[str], re.Pattern[str]]:
    table = spec("openai_sampling")
    return re.compile(table["never"]), re.compile(table["with_effort"])


@cache
def _efforts() -> tuple[tuple[re.Pattern[str], Sequence[str]], ...]:
    return tuple((re.compile(row["match"]), row["efforts"]) for row in spec("openai_efforts")["rows"])


def nearest_level(level: str, facts: Json) -> str:
    """Return the level if the model accepts it, otherwise the next higher accepted level, or the highest level if there
    is none.
    """
    return nearest_effort(level, facts.get("levels", (level,)))


def nearest_effort(level: str, levels: Sequence[str]) -> str:
    """Return the effort if it is in `levels`, otherwise the next higher level, or the highest level if there is
    none.
    """
    order = spec("thinking")["efforts"]
    above = [word for word in levels if order.index(word) >= order.index(level)]
    return above[0] if above else levels[-1]


def nearest_budget(budget: int, facts: Json) -> int:
    """Return the budget, or the nearest budget that the model accepts. 0 disables thinking; -1 means that the budget is
    not fixed.
    """
    low, high = facts.get("budgets", (budget, budget))
    if budget == -1 or (budget == 0 and not facts.get("always_thinks")):
        return budget
    return int(max(low, min(budget, high)))


def claude_facts(target: str, request: Json) -> Json | None:
    """Return the table row for the model of the request, or None if it is not a Claude model."""
    api = spec("claude").get(target)
    if api is None:
        return None
    model = at(request, api["paths"]["model"])
    others = target != "anthropic"  # the API also offers models of other vendors
    if others and not (isinstance(model, str) and ("claude" in model.lower() or "anthropic" in model.lower())):
        return None
    return model_facts("anthropic", model)


def tool_schema_rules(target: str, gateway: str, model: object) -> Json | None:
    """Return what the gateway requires of the schema of a tool, or None if it accepts every schema."""
    table = spec("tool_schemas")
    pattern = table["models"].get(target)
    if pattern is not None and re.search(pattern, str(model)) is None:
        return None
    name = table["gateways"].get(target, {}).get(gateway)
    return None if name is None else cast("Json", table["rules"][name])


@cache
def _pattern(family: str) -> re.Pattern[str]:
    return re.compile(spec("models")[family]["pattern"])


def is_accepted(kind: str, constraints: Json) -> bool:
    """Return whether the gateway accepts tools with this `type`. A type in the gateway's list may end with `*`."""
    types = constraints.get("tool_types")
    return types is None or any(
        kind.startswith(entry[:-1]) if entry.endswith("*") else kind == entry for entry in types
    )


def reasons_by_default(model: object) -> bool:
    """Return whether a Responses API model reasons even if the request has no reasoning options."""
    return isinstance(model, str) and _by_default().search(model) is not None


@cache
def _by_default() -> re.Pattern[str]:
    return re.compile(spec("thinking")["by_default"])


def thawed(value: Any) -> Any:
    """Return a frozen table value as plain dictionaries and lists."""
    if isinstance(value, Mapping):
        return {name: thawed(member) for name, member in cast("Json", value).items()}
    return [thawed(item) for item in cast("Sequence[Any]", value)] if isinstance(value, tuple) else value


def object_of(value: object) -> Json:
    """Return the value if it is a mapping, otherwise an empty mapping."""
    return cast("Json", value) if isinstance(value, Mapping) else _NOTHING


def is_list(value: object) -> bool:
    """Return whether the value would be an array in JSON."""
    return isinstance(value, list | tuple)


def listed(value: object) -> Sequence[Any]:
    """Return the value if it is a list, otherwise an empty list."""
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else ()


def steps(path: str) -> tuple[str, ...]:
    """Return the steps of a dotted path."""
    return tuple(path.split("."))


def at(request: Json, path: str) -> Any:
    """Return the value at a dotted path, or None if there is none."""
    value: Any = request
    for name in path.split("."):
        value = object_of(value).get(name)
    return value


def put(made: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at a dotted path. Nested objects are copied, so that the caller's objects are not modified."""
    *above, last = path.split(".")
    for name in above:
        inner = dict(object_of(made.get(name)))
        made[name] = inner
        made = inner
    made[last] = value


def remove(made: dict[str, Any], path: str) -> None:
    """Remove the value at a dotted path, and the enclosing objects that become empty. Nested objects are copied."""
    above, _, last = path.rpartition(".")
    holder = object_of(at(made, above)) if above else made
    if last not in holder:
        return
    rest = {name: value for name, value in holder.items() if name != last}
    if not above:
        del made[last]
    elif rest:
        put(made, above, rest)
    else:
        remove(made, above)


def existing(request: Json, path: Path) -> Path:
    """Return the path, shortened to the nearest member that the request contains."""
    value: Any = request
    for n, step in enumerate(path):
        key = int(step) if is_list(value) and str(step).isdecimal() else step
        if key not in (range(len(value)) if is_list(value) else object_of(value)):
            return path[:n]
        value = value[key]
    return path


def pointer(path: Path) -> str:
    """Return the path as a JSON pointer."""
    return "".join(["/" + str(step).replace("~", "~0").replace("/", "~1") for step in path])
