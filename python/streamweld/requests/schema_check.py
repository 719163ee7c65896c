"""Check that a schema is within the subset of JSON Schema that an API accepts, in strict mode and without it.

Uses the tables of `streamweld.requests.strict_schemas` and `streamweld.requests.tool_schemas`, but shares no code with
them.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# (the input is JSON from the caller, so the types inside its containers are unknown)

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from streamweld.requests.tables import is_list, listed, object_of, spec

if TYPE_CHECKING:
    from streamweld.requests.tables import Json

__all__ = ["refused", "violation"]


def violation(schema: Any, subset: str) -> str | None:
    """Return what the subset does not accept in the schema, or None if it accepts the schema."""
    table = spec("strict_schemas")[subset]
    waiting: list[Any] = [schema]
    if subset == "openai" and (object_of(schema).get("type") != "object" or "anyOf" in object_of(schema)):
        return "the root is not an object"
    while waiting:
        found = waiting.pop()
        if not isinstance(found, Mapping):
            return f"{found!r} is not a schema"
        given = cast("Json", found)
        what = _of_openai(given, table) if subset == "openai" else _of_claude(given, table)
        if what is None and _is_open(given):
            what = "an object without additionalProperties: false"
        if what is not None:
            return what
        for member in ("properties", "$defs", "definitions"):
            waiting += object_of(given.get(member)).values()
        for member in ("anyOf", "allOf", "items", "prefixItems"):
            if member in given:
                waiting += listed(given[member]) if is_list(given[member]) else [given[member]]
    return _cycle(schema) if subset == "claude" else None


def refused(schema: Any, rules: Json) -> str | None:
    """Return what the rules for the schema of a tool do not accept, or None if they accept the schema."""
    root = object_of(schema)
    found = next((name for name in rules.get("root", ()) if name in root), None)
    if found is not None:
        return f"{found} at the root"
    if "names" in rules:
        for name in object_of(root.get("properties")):
            if re.fullmatch(rules["names"], str(name)) is None:
                return f"a property with the name {name!r}"
    waiting: list[tuple[Any, str]] = [(schema, "")]
    seen: set[int] = set()
    while waiting:
        value, place = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        given = object_of(value)
        what = _old(given) if rules.get("draft") else None
        if what is None and rules.get("items"):
            kind = given.get("type")
            what = "an array without items" if "array" in (kind, *listed(kind)) and given.get("items") is None else None
        if what is None and rules.get("typed_branches") and place and "type" in given and listed(given.get("anyOf")):
            what = "a type next to anyOf"
        if what is not None:
            return f"{what} at {place or 'the root'}"
        for name, member in given.items():
            inside = f"{place}/{name}"
            if name in ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"):
                waiting += [(one, f"{inside}/{key}") for key, one in object_of(member).items()]
            elif name in ("anyOf", "allOf", "oneOf", "prefixItems"):
                waiting += [(one, f"{inside}/{n}") for n, one in enumerate(listed(member))]
            elif isinstance(member, Mapping) and name not in ("default", "const", "enum", "examples", "example"):
                waiting.append((member, inside))
    return None


def _old(given: Json) -> str | None:
    """Return a keyword with a value that draft 2020-12 does not allow."""
    if is_list(given.get("items")):
        return "items with a list of schemas"
    if "required" in given and not is_list(given["required"]):
        return "required without a list of names"
    return next(
        (
            f"{name} as a boolean"
            for name in ("exclusiveMinimum", "exclusiveMaximum")
            if isinstance(given.get(name), bool)
        ),
        None,
    )


def _is_open(given: Json) -> bool:
    kind = given.get("type")
    is_object = kind == "object" or "object" in listed(kind) or bool(given.get("properties"))
    return given.get("additionalProperties", None if is_object else False) is not False


def _of_openai(given: Json, table: Json) -> str | None:
    required = listed(given.get("required"))
    optional = [name for name in object_of(given.get("properties")) if name not in required]
    if optional:
        return f"{optional[0]} is not required"
    return next((name for name in given if name in table["rejected"]), None)


def _of_claude(given: Json, table: Json) -> str | None:
    for name, value in given.items():
        wrong = name not in table["members"]
        match name:
            case "format":
                wrong = value not in table["formats"]
            case "minItems":
                wrong = value is True or value is False or value not in table["min_items"]
            case "pattern":
                wrong = not isinstance(value, str) or re.fullmatch(table["pattern"], value) is None
            case "const" | "enum":
                plain = [value] if name == "const" else listed(value)
                wrong = not plain or any(isinstance(one, Mapping) or is_list(one) for one in plain)
            case "items" | "properties" | "$defs" | "definitions":
                wrong = not isinstance(value, Mapping)
            case "anyOf" | "allOf":
                wrong = not listed(value) or (name == "allOf" and any("$ref" in object_of(one) for one in value))
            case _:
                pass
        if wrong:
            return f"{name}: {value}"
    return None if any(name in given for name in table["kinds"]) else "a part without a type"


def _cycle(schema: Any) -> str | None:
    """Return a reference that makes the schema recursive or points outside the schema, or None if there is none."""
    # Entries are (leaving, part, name). A part is left after all parts inside it have been visited.
    waiting: list[tuple[bool, Any, str]] = [(False, schema, "")]
    within: set[int] = set()
    known: set[int] = set()
    while waiting:
        leaving, part, name = waiting.pop()
        if leaving:
            within.discard(id(part))
            continue
        if not isinstance(part, Mapping) or id(part) in within:
            return f"$ref: {name}"
        if id(part) in known:
            continue
        known.add(id(part))
        within.add(id(part))
        waiting.append((True, part, name))
        given = cast("Json", part)
        for member in ("properties", "$defs", "definitions"):
            waiting += [(False, inner, name) for inner in object_of(given.get(member)).values()]
        inside = [*listed(given.get("anyOf")), *listed(given.get("allOf"))]
        if "items" in given:
            inside.append(given["items"])
        waiting += [(False, inner, name) for inner in inside]
        if "$ref" in given:
            reference = str(given["$ref"])
            waiting.append((False, _at(reference, schema), reference))
    return None


def _at(reference: str, root: Any) -> Any:
    head, *names = reference.split("/")
    value: Any = root if head == "#" else None
    for name in names:
        key = re.sub("%([0-9A-Fa-f]{2})", lambda code: chr(int(code[1], 16)), name)
        key = key.replace("~1", "/").replace("~0", "~")
        entries = dict(enumerate(listed(value)))
        value = entries.get(int(key[:9])) if entries and key.isdecimal() else object_of(value).get(key)
    return value
