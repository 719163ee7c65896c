"""Fit the schema of a tool to what an API accepts even without strict mode (`tool_schemas` in the tables).

Constraints that the API does not accept at the root of a schema are moved into its description, as in
`streamweld.requests.strict_schemas`, so that the model still reads them.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# (the input is JSON from the caller, so the types inside its containers are unknown)

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld.errors import HistoryError
from streamweld.requests.strict_schemas import reference_target, schema_text
from streamweld.requests.tables import MODEL, existing, is_list, listed, object_of, tool_schema_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamweld.requests.context import RequestContext
    from streamweld.requests.tables import Json, Path

__all__ = ["fitted"]

_RULE: Final = "schema_keyword"
_MAPS: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS: Final = ("anyOf", "allOf", "oneOf", "prefixItems")
_SINGLE: Final = ("items", "additionalItems", "additionalProperties", "not", "if", "then", "else", "contains")
_BRANCHES: Final = ("allOf", "anyOf", "oneOf")
_PLAIN: Final = frozenset({"type", "properties", "required", "title", "description"})
_LIMITS: Final = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))


def fitted(schema: Mapping[str, Any], place: Path, context: RequestContext) -> Mapping[str, Any]:
    """Return the schema of a tool in a form that the gateway accepts. `place`: the path of the schema.

    The result is the given object if nothing had to be changed.

    Raises:
        HistoryError: if a part that has to be moved into the description is not JSON (`unreadable`).
    """
    model = context.request.get(MODEL.get(context.source, "model"))
    found = tool_schema_rules(context.target, context.profile.name, model)
    if found is None:
        return schema
    try:
        return _Fitting(found, place, context).fitted(schema)
    except (ValueError, RecursionError):
        detail = "the schema contains itself, or is nested too deeply"
        raise HistoryError("unreadable", context.existing_place(place), detail=detail) from None


class _Fitting:
    """The changes of one schema. `found`: the rules of the gateway; `place`: the path of the schema."""

    def __init__(self, found: Json, place: Path, context: RequestContext) -> None:
        self.rules = found
        self.place = place
        self.context = context

    def fitted(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        schema = self._root(schema)
        if self._is_sound(schema):
            return self._names(schema)
        holder: dict[str, Any] = {}
        done: dict[int, dict[str, Any]] = {}  # id of a part -> its new value, because Python objects may be shared
        # Entries are (schema, its path, where to write it: container and key).
        waiting: list[tuple[Any, Path, Any, Any]] = [(schema, (), holder, "root")]
        while waiting:
            given, path, container, key = waiting.pop()
            if not isinstance(given, Mapping) or id(given) in done:
                container[key] = done.get(id(given), given)
                continue
            container[key] = done[id(given)] = made = self._part(dict(cast("Json", given)), path)
            below: list[tuple[Any, Path, Any, Any]] = []
            for name, value in made.items():
                if name in _MAPS and isinstance(value, Mapping):
                    made[name] = inner = dict(value)
                    below += [(one, (*path, name, step), inner, step) for step, one in value.items()]
                elif name in _LISTS and is_list(value):
                    made[name] = branches = list(value)
                    below += [(one, (*path, name, n), branches, n) for n, one in enumerate(value)]
                elif name in _SINGLE and isinstance(value, Mapping):
                    below.append((value, (*path, name), made, name))
            waiting += reversed(below)  # so that the edits are in the order of the document
        return self._names(holder["root"])

    def _edit(self, path: Path, what: str, removed: Any = None) -> None:
        self.context.edit(_RULE, existing(self.context.request, (*self.place, *path)), what, removed)

    # --- the root

    def _root(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the schema without keywords that the API rejects at the root.

        The properties of the branches of a combination become properties of the root. They are required if every branch
        requires them.
        """
        rejected = [name for name in self.rules.get("root", ()) if name in schema]
        if not rejected:
            return schema
        properties, required, lossless = _merged(schema)
        removed = {name: schema[name] for name in rejected}
        made = {name: value for name, value in schema.items() if name not in removed}
        made = {"type": "object", **made, "properties": properties}
        made.pop("required", None)
        if required:
            made["required"] = required
        moved = {name: value for name, value in removed.items() if name not in lossless}
        if moved:
            text, before = schema_text(moved), made.get("description")
            made["description"] = f"{before}\n\n{text}" if before else text
            self._edit((), f"moved {', '.join(moved)} of the root into the description", moved)
        merged = [name for name in removed if name in lossless]
        if merged:
            self._edit((), f"merged {', '.join(merged)} of the root into its properties", None)
        return made

    def _names(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the schema without properties whose names the API rejects."""
        pattern = self.rules.get("names")
        properties = object_of(schema.get("properties"))
        if pattern is None:
            return schema
        wrong = dict.fromkeys([name for name in properties if re.fullmatch(pattern, str(name)) is None])
        if not wrong:
            return schema
        for name in wrong:
            why = f"the target accepts only property names that match {pattern}"
            path = (*self.place, "properties", name)
            self.context.lose("properties", path, why, properties[name], vital=True)
        made = {**schema, "properties": {name: one for name, one in properties.items() if name not in wrong}}
        if is_list(schema.get("required")):
            made["required"] = [
                one for one in listed(schema["required"]) if not isinstance(one, str) or one not in wrong
            ]
        return made

    # --- every part

    def _is_sound(self, schema: Any) -> bool:
        """Return whether no part of the schema has to be changed."""
        return all(not self._faults(given, depth) for given, depth in _parts(schema))

    def _faults(self, given: Json, depth: int) -> bool:
        if self.rules.get("items") and _lacks_items(given):
            return True
        if self.rules.get("typed_branches") and depth and "type" in given and listed(given.get("anyOf")):
            return True
        return bool(self.rules.get("draft")) and (
            is_list(given.get("items"))
            or any(isinstance(given.get(name), bool) for name, _ in _LIMITS)
            or ("required" in given and not is_list(given["required"]))
        )

    def _part(self, made: dict[str, Any], path: Path) -> dict[str, Any]:
        """Return one part of the schema in a form that the API accepts. Parts within it are changed separately."""
        if self.rules.get("draft"):
            self._draft(made, path)
        if self.rules.get("items") and _lacks_items(made):
            made["items"] = {}
            self._edit(path, "added items, which accepts all elements")
        branches = listed(made.get("anyOf"))
        if self.rules.get("typed_branches") and path and "type" in made and branches:
            kind = made.pop("type")
            made["anyOf"] = [
                one if not isinstance(one, Mapping) or {"type", "$ref", "anyOf"} & one.keys() else {"type": kind, **one}
                for one in branches
            ]
            self._edit(path, "moved the type into the branches of anyOf", kind)
        return made

    def _draft(self, made: dict[str, Any], path: Path) -> None:
        """Replace keywords of older drafts of JSON Schema with those of draft 2020-12."""
        if is_list(made.get("items")):
            elements, more = made.pop("items"), made.pop("additionalItems", None)
            if elements and "prefixItems" not in made:
                made["prefixItems"] = elements
            if more is not None:
                made["items"] = more
            self._edit((*path, "items"), "renamed a list of items to prefixItems", None)
        for name, bound in _LIMITS:
            value = made.get(name)
            if isinstance(value, bool):
                del made[name]
                if value and bound in made:
                    made[name] = made.pop(bound)
                    self._edit((*path, name), f"wrote {bound} with {name} as a number", value)
                else:
                    self._edit((*path, name), f"dropped {name}, because it is not a number", value)
        if "required" in made and not is_list(made["required"]):
            self._edit((*path, "required"), "dropped required, because it is not a list of names", made["required"])
            del made["required"]
        flagged = [name for name, one in object_of(made.get("properties")).items() if _is_flagged(one)]
        names = listed(made.get("required"))
        added = set(flagged).difference(_names_of(made))
        if added:
            made["required"] = [*names, *[name for name in flagged if name in added]]


def _is_flagged(schema: Any) -> bool:
    """Return whether a property is marked as required in its own schema, as in draft 3 of JSON Schema."""
    return object_of(schema).get("required") is True


def _lacks_items(given: Json) -> bool:
    kind = given.get("type")
    return (kind == "array" or "array" in listed(kind)) and given.get("items") is None


def _parts(schema: Any) -> Iterator[tuple[Json, int]]:
    """Yield the schema and all schemas within it, each with 0 for the root and 1 for the others."""
    waiting = [(schema, 0)]
    seen: set[int] = set()
    while waiting:
        value, depth = waiting.pop()
        if not isinstance(value, Mapping) or id(value) in seen:
            continue
        seen.add(id(value))
        given = cast("Json", value)
        yield given, depth
        for name in _MAPS:
            waiting += [(one, 1) for one in object_of(given.get(name)).values()]
        for name in _LISTS:
            waiting += [(one, 1) for one in listed(given.get(name))]
        waiting += [(given[name], 1) for name in _SINGLE if name in given]


def _merged(schema: Mapping[str, Any]) -> tuple[dict[str, Any], list[str], set[str]]:
    """Return the properties and required names of the root together with those of its branches.

    Also return which of the root's keywords were merged completely: references and `allOf`, if no property occurs
    twice and the branches have no other constraints.
    """
    own = object_of(schema.get("properties"))
    required = dict.fromkeys(_names_of(schema))
    variants: dict[str, dict[str, Any]] = {}  # property -> text of a schema -> the schema
    lossless = {name for name in ("allOf", "$ref") if name in schema}
    seen = {id(schema)}
    # Entries are (branch, whether every value must match it, keyword of the root).
    waiting = deque(_branches(schema, "", schema, required, every=True))
    while waiting:
        branch, every, keyword = waiting.popleft()
        if not isinstance(branch, Mapping):
            lossless.discard(keyword)
        elif id(branch) not in seen:
            seen.add(id(branch))
            given = cast("Json", branch)
            if given.keys() - _PLAIN or given.get("type", "object") != "object":
                lossless.discard(keyword)
            for name, one in object_of(given.get("properties")).items():
                if name in own or name in variants:
                    lossless.discard(keyword)
                if name not in own:
                    variants.setdefault(name, {})[schema_text({"": one})] = one
            if every:
                required |= dict.fromkeys(_names_of(given))
            waiting += _branches(given, keyword, schema, required, every=every)
    properties = dict(own)
    for name, found in variants.items():
        several = list(found.values())
        properties[name] = several[0] if len(several) == 1 else {"anyOf": several}
    return properties, [name for name in required if name in properties], lossless


def _names_of(given: Json) -> list[str]:
    return [name for name in listed(given.get("required")) if isinstance(name, str)]


def _branches(
    given: Json, keyword: str, root: Json, required: dict[str, None], *, every: bool
) -> Iterator[tuple[Any, bool, str]]:
    """Yield the branches of a schema. Names that all branches of a choice require are added to `required`."""
    if "$ref" in given:
        yield reference_target(given["$ref"], root), every, keyword or "$ref"
    for name in _BRANCHES:
        branches = [_resolved(one, root) for one in listed(given.get(name))]
        for one in branches:
            yield one, every and name == "allOf", keyword or name
        if every and branches and name != "allOf":
            common = [set(_names_of(object_of(one))) for one in branches]
            required |= dict.fromkeys(
                [one for one in _names_of(object_of(branches[0])) if all(one in names for names in common)]
            )


def _resolved(schema: Any, root: Json) -> Any:
    given = object_of(schema)
    return reference_target(given["$ref"], root) if "$ref" in given else schema
