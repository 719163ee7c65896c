"""Check that a schema is within the subset of JSON Schema that an API accepts in strict mode.

Uses the tables of `streamweld.requests.strict_schemas`, but shares no code with it.
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

__all__ = ["violation"]


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
