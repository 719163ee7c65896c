"""The tables of `_spec/requests.json` as types, and the small functions over JSON that every module here uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld._spec import load_requests

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Json",
    "Option",
    "at",
    "gateway_facts",
    "is_list",
    "listed",
    "model_facts",
    "object_of",
    "options",
    "pointer",
    "put",
    "reasons_by_default",
    "spec",
    "steps",
]

Json = Mapping[str, Any]
_NOTHING: Final[Json] = {}


def spec(name: str) -> Any:
    """A section of the tables."""
    return load_requests()[name]


@dataclass(frozen=True, slots=True)
class Option:
    """One row of `options`; see `about` in the tables."""

    word: str
    paths: Mapping[str, Sequence[str]]
    kind: str
    implied: Sequence[Any]
    bounds: Mapping[str, Sequence[float | None]]
    max_items: Mapping[str, int]
    required: Mapping[str, Any]
    negated: Sequence[str]
    needs_tools: Sequence[str]
    vital: bool
    why: str

    def place(self, target: str, facts: Json) -> str | None:
        """Where it is written in a request for the target; None where the target or the gateway has no such option."""
        if self.word in facts.get("lacks", ()):
            return None
        own = facts.get("renamed", _NOTHING).get(self.word) or facts.get("adds", _NOTHING).get(self.word)
        if own is not None:
            return str(own)
        paths = self.paths.get(target)
        return paths[0] if paths else None

    def limits(self, target: str, facts: Json) -> tuple[float | None, float | None]:
        """The smallest and the largest value that the target, or the gateway, accepts."""
        low, high = (
            facts.get("bounds", _NOTHING).get(self.word)
            or self.bounds.get(target)
            or self.bounds.get("*")
            or (None, None)
        )
        return low, high


@cache
def options() -> tuple[Option, ...]:
    """Every option, in the order in which they are written."""
    return tuple(
        Option(
            word=word,
            paths=row["paths"],
            kind=row["kind"],
            implied=[_thawed(value) for value in row.get("implied", ())],
            bounds=row.get("bounds", _NOTHING),
            max_items=row.get("max_items", _NOTHING),
            required=row.get("required", _NOTHING),
            negated=row.get("negated", ()),
            needs_tools=row.get("needs_tools", ()),
            vital=row.get("vital", False),
            why=row.get("why", ""),
        )
        for word, row in spec("options").items()
    )


def gateway_facts(gateway: str, target: str) -> Json:
    """Where a gateway's API differs from the target's own."""
    facts: Json = spec("gateways").get(gateway, _NOTHING)
    found: Json = facts.get(target, _NOTHING) if gateway != "about" else _NOTHING
    return found


def model_facts(family: str, model: object) -> Json:
    """What depends on the version of the model. Its name may have a vendor's prefix and a date."""
    table = spec("models")[family]
    found = _pattern(family).search(model) if isinstance(model, str) else None
    if found is None:
        unknown: Json = table["unknown"]
        return unknown
    version = [int(found[1]), int(found[2] or 0)]
    return next(row for row in table["rows"] if version >= list(row["from"]))


@cache
def _pattern(family: str) -> re.Pattern[str]:
    return re.compile(spec("models")[family]["pattern"])


def reasons_by_default(model: object) -> bool:
    """Whether this model of the Responses API reasons if the request does not mention it."""
    return isinstance(model, str) and _by_default().search(model) is not None


@cache
def _by_default() -> re.Pattern[str]:
    return re.compile(spec("thinking")["by_default"])


def _thawed(value: Any) -> Any:
    """A frozen value of the tables as JSON has it."""
    if isinstance(value, Mapping):
        return {name: _thawed(member) for name, member in cast("Json", value).items()}
    return [_thawed(item) for item in cast("Sequence[Any]", value)] if isinstance(value, tuple) else value


def object_of(value: object) -> Json:
    """The mapping; an empty one in the place of anything else."""
    return cast("Json", value) if isinstance(value, Mapping) else _NOTHING


def is_list(value: object) -> bool:
    """Whether JSON would write it as an array."""
    return isinstance(value, list | tuple)


def listed(value: object) -> Sequence[Any]:
    """The list; an empty one in the place of anything else."""
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else ()


def steps(path: str) -> tuple[str, ...]:
    """The steps of a dotted path."""
    return tuple(path.split("."))


def at(request: Json, path: str) -> Any:
    """The value at a dotted path; None where there is none."""
    value: Any = request
    for name in path.split("."):
        value = object_of(value).get(name)
    return value


def put(made: dict[str, Any], path: str, value: Any) -> None:
    """Sets the value at a dotted path. Objects on the way are copied, so that nothing given is modified."""
    *above, last = path.split(".")
    for name in above:
        inner = dict(object_of(made.get(name)))
        made[name] = inner
        made = inner
    made[last] = value


def pointer(path: Sequence[str | int]) -> str:
    """The path as a JSON pointer."""
    return "".join(["/" + str(step).replace("~", "~0").replace("/", "~1") for step in path])
