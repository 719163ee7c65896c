"""Fit a schema to the subset of JSON Schema that an API accepts in strict mode (`strict_schemas` in the tables).

As in Anthropic's SDK, keywords that the API rejects are moved into the description, so that the model still reads them.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# (the input is JSON from the caller, so the types inside its containers are unknown)

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast
from urllib.parse import unquote

from streamweld.requests import schemas
from streamweld.requests.tables import existing, is_list, listed, object_of, spec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamweld.requests.context import RequestContext
    from streamweld.requests.tables import Json, Path

__all__ = ["Fitted", "fitted", "reference_target", "report", "schema_text", "subset_of", "why_not"]

Subset: TypeAlias = Literal["openai", "claude"]
_MAPS: Final = ("properties", "$defs", "definitions")
_LISTS: Final = ("anyOf", "allOf")
_OPEN: Final = "the target requires that the objects of the schema allow no other properties"


@dataclass(slots=True)
class Fitted:
    """A schema that the target accepts. `schema` is the given object if nothing had to be changed.

    `edits`: (path, what, removed) for each change that does not affect which values the schema accepts, or that the
    schema's description mentions. `closed`: (path, value) for each object schema that no longer accepts additional
    properties; the value is its former `additionalProperties`.
    """

    schema: Any
    edits: list[tuple[Path, str, Any]] = field(default_factory=list[tuple["Path", str, Any]])
    closed: list[tuple[Path, Any]] = field(default_factory=list[tuple["Path", Any]])


def subset_of(context: RequestContext) -> Subset | None:
    """Return the name of the subset that the gateway accepts, or None if it accepts every schema."""
    found: Subset | None = spec("strict_schemas")["gateways"].get(context.target, {}).get(context.profile.name)
    return found


def fitted(schema: Any, subset: Subset, *, empty_is_closed: bool = False) -> Fitted | None:
    """Return the schema in a form that is within the subset, or None if it has no such form.

    `empty_is_closed`: whether a root without properties stands for no properties, as in a tool without parameters.
    """
    if subset == "openai":
        return Fitted(schema) if schemas.is_strict(schema) else None
    return None if _is_recursive(schema) else _Claude(empty_is_closed=empty_is_closed).fitted(schema)


def why_not(subset: Subset) -> str:
    """Return why a schema has no form that is within the subset."""
    if subset == "openai":
        return (
            "strict mode requires that every object of the schema requires all of its properties and allows no others"
            " and rejects some keywords"
        )
    return "strict mode does not accept recursion, parts without a type, or objects that allow other properties"


def report(found: Fitted, rule: str, path: Path, context: RequestContext) -> None:
    """Record how the schema at this path was changed."""
    for below, what, removed in found.edits:
        context.edit(rule, existing(context.request, (*path, *below)), what, removed)
    for below, value in found.closed:
        context.lose("additionalProperties", (*path, *below, "additionalProperties"), _OPEN, value, vital=True)


class _Claude:
    """Writes one schema with the keywords that Claude's strict mode accepts."""

    def __init__(self, *, empty_is_closed: bool) -> None:
        table = spec("strict_schemas")["claude"]
        self.table = table
        self.pattern = re.compile(table["pattern"])
        self.empty_is_closed = empty_is_closed
        self.waiting: list[tuple[Any, Path, Any, Any]] = []  # schema, its path, where to write it: container and key

    def fitted(self, schema: Any) -> Fitted | None:
        found = Fitted(schema)
        holder: dict[str, Any] = {}
        self.waiting.append((schema, (), holder, "root"))
        while self.waiting:
            given, path, container, key = self.waiting.pop()
            if not isinstance(given, Mapping):
                return None
            container[key] = made = self._node(cast("Json", given), path, found)
            if made is None:
                return None
        if found.edits or found.closed:
            found.schema = holder["root"]
        return found

    def _node(self, given: Json, path: Path, found: Fitted) -> dict[str, Any] | None:
        made: dict[str, Any] = {}
        moved: dict[str, Any] = {}
        branches = self._branches(given)
        if branches is None:
            return None
        for name, value in given.items():
            new = branches.get(name, name)
            if new in _LISTS and listed(value):
                made[new] = inner = [None] * len(value)
                self.waiting += [(one, (*path, name, n), inner, n) for n, one in enumerate(value)]
            elif name in _MAPS and isinstance(value, Mapping):
                made[name] = members = dict.fromkeys(value)
                self.waiting += [(one, (*path, name, key), members, key) for key, one in value.items()]
            elif name == "items" and isinstance(value, Mapping):
                made[name] = None
                self.waiting.append((value, (*path, name), made, name))
            elif self._accepts(name, value):
                made[name] = value
            else:
                moved[name] = value
        for name, new in branches.items():
            found.edits.append(((*path, name), f"renamed {name} to {new}", None))
        self._typed(made, path, found)
        if schemas.is_object(made):
            self._closed(made, given, path, found)
        elif made.get("additionalProperties", False) is not False:
            del made["additionalProperties"]
            found.edits.append((path, "dropped additionalProperties, because the schema is not of an object", None))
        if moved:
            text = schema_text(moved)
            before = made.get("description")
            made["description"] = f"{before}\n\n{text}" if before else text
            found.edits.append((path, f"moved {', '.join(moved)} into the description", moved))
        return made if any(name in made for name in self.table["kinds"]) else None

    def _branches(self, given: Json) -> dict[str, str] | None:
        """Return the keywords that can be written as `anyOf` with the same or nearly the same meaning.

        Return None if the API rejects the combination: a reference within `allOf`.
        """
        referring = any("$ref" in object_of(one) for one in listed(given.get("allOf")))
        if "anyOf" not in given and listed(given.get("oneOf")) and "allOf" not in given:
            return {"oneOf": "anyOf"}
        if not referring:
            return {}
        alone = len(given["allOf"]) == 1 and "anyOf" not in given and "oneOf" not in given
        return {"allOf": "anyOf"} if alone else None

    def _accepts(self, name: str, value: Any) -> bool:
        match name:
            case "enum":
                return bool(listed(value)) and all(map(_is_plain, value))
            case "const":
                return _is_plain(value)
            case "format":
                return value in self.table["formats"]
            case "minItems":
                return not isinstance(value, bool) and value in self.table["min_items"]
            case "pattern":
                return isinstance(value, str) and self.pattern.fullmatch(value) is not None
            case "items" | "anyOf" | "allOf" | "properties" | "$defs" | "definitions":
                return False  # the caller accepts these keywords only in another form
            case "type":
                return isinstance(value, str) or bool(listed(value))
            case _:
                return name in self.table["members"]

    def _typed(self, made: dict[str, Any], path: Path, found: Fitted) -> None:
        if "properties" in made and not any(name in made for name in self.table["kinds"]):
            made["type"] = "object"
            found.edits.append((path, "added type: object", None))

    def _closed(self, made: dict[str, Any], given: Json, path: Path, found: Fitted) -> None:
        more = given.get("additionalProperties")
        if more is False:
            return
        made["additionalProperties"] = False
        if more is not None or not (made.get("properties") or (self.empty_is_closed and not path)):
            found.closed.append((path, True if more is None else more))
        else:
            found.edits.append((path, "added additionalProperties: false", None))


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def schema_text(members: Json) -> str:
    """Return members of a schema as text for the description, as in Anthropic's SDK."""
    inner = [f"{name}: {json.dumps(value, ensure_ascii=False, default=str)}" for name, value in members.items()]
    return "{" + ", ".join(inner) + "}"


def _is_recursive(schema: Any) -> bool:
    """Return whether a part of the schema contains itself, or refers to a part that the schema does not have."""
    entered: set[int] = {id(schema)}
    done: set[int] = set()
    waiting = [(schema, _parts(schema, schema))]
    while waiting:
        value, parts = waiting[-1]
        part = next(parts, waiting)
        if part is waiting:
            waiting.pop()
            done.add(id(value))
        elif part is None or (id(part) in entered and id(part) not in done):
            return True
        elif id(part) not in entered:
            entered.add(id(part))
            waiting.append((part, _parts(part, schema)))
    return False


def _parts(value: Any, root: Any) -> Iterator[Any]:
    """Yield the schemas within a schema, and the target of the schema's reference (None if the target is not in this
    document).
    """
    given = object_of(value)
    for name in _MAPS:
        yield from object_of(given.get(name)).values()
    for name in (*_LISTS, "oneOf"):
        yield from listed(given.get(name))
    if isinstance(given.get("items"), Mapping):
        yield given["items"]
    if "$ref" in given:
        yield reference_target(given["$ref"], root)


def reference_target(reference: Any, root: Any) -> Any:
    """Return the schema that a reference within this document refers to, or None if there is none."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    value = root
    for step in reference.split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        steps = cast("Sequence[Any]", value) if is_list(value) else None
        if steps is not None:
            value = steps[int(name)] if name.isdecimal() and len(name) < 10 and int(name) < len(steps) else None
        else:
            value = object_of(value).get(name)
    return value if isinstance(value, Mapping) else None
